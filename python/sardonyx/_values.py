"""Values by the names that onnxruntime gives them. All lie in the memory of numpy arrays."""

from __future__ import annotations

import enum

import numpy as np

from . import _runtime
from ._arrays import dtype_of, element_type_of
from .errors import InvalidArgument

_TYPE_NAMES = {"float32": "float", "float64": "double", "object": "string"}
_STRING = 8


def _type_name(dtype: np.dtype) -> str:
    name = "object" if dtype.kind in "UOST" else dtype.name
    return f"tensor({_TYPE_NAMES.get(name, name)})"


def _on_cpu(device_type: str, device_id: int = 0) -> None:
    if device_type.lower() != "cpu" or device_id != 0:
        raise InvalidArgument(f"there is no device '{device_type}:{device_id}'; values are in the memory of the CPU")


class OrtDevice:
    """Where a value is: the CPU."""

    def __init__(self, name: str = "cpu", device_id: int = 0):
        _on_cpu(name, device_id)

    @staticmethod
    def make(ort_device_name: str, device_id: int = 0, vendor_id: int = -1) -> OrtDevice:
        return OrtDevice(ort_device_name, device_id)

    def device_type(self) -> int:
        return 0

    def device_id(self) -> int:
        return 0


class _Capsule:
    """A DLPack capsule as what has one."""

    def __init__(self, capsule):
        self._capsule = capsule

    def __dlpack__(self, **_):
        return self._capsule

    def __dlpack_device__(self):
        return 1, 0


class OrtValue:
    """A tensor, a sequence of tensors, a sparse tensor, or what an optional holds.

    A tensor shares the memory of the array that it was made of.
    """

    def __init__(self, value):
        self._value = value

    @classmethod
    def ortvalue_from_numpy(cls, numpy_obj, /, device_type="cpu", device_id=0, vendor_id=-1) -> OrtValue:
        _on_cpu(device_type, device_id)
        array = np.asarray(numpy_obj)
        if not element_type_of(array.dtype) and array.dtype.kind not in "UOST":
            raise InvalidArgument(f"no tensor of ONNX has the dtype {array.dtype}")
        return cls(np.ascontiguousarray(array).reshape(array.shape))

    @classmethod
    def ortvalue_from_numpy_with_onnx_type(cls, data: np.ndarray, /, onnx_element_type: int) -> OrtValue:
        """The same memory as elements of another type of as many bits, as bfloat16 in uint16."""
        dtype = dtype_of(onnx_element_type)
        if dtype.itemsize != data.dtype.itemsize:
            raise InvalidArgument(f"elements of {data.dtype} and of {dtype} differ in size")
        return cls(data.view(dtype))

    @classmethod
    def ortvalue_from_shape_and_type(
        cls, shape, element_type, device_type="cpu", device_id=0, vendor_id=-1
    ) -> OrtValue:
        """Memory for a tensor, with anything in it. `element_type` is ONNX's number or what numpy takes for a dtype."""
        _on_cpu(device_type, device_id)
        return cls(np.empty(shape, dtype_of(element_type) if isinstance(element_type, int) else np.dtype(element_type)))

    @classmethod
    def ort_value_from_sparse_tensor(cls, sparse_tensor: SparseTensor) -> OrtValue:
        return cls(sparse_tensor)

    @classmethod
    def from_dlpack(cls, data, /) -> OrtValue:
        """A tensor on the memory of any library's array on the CPU, or of a DLPack capsule."""
        if isinstance(data, OrtValue):
            return cls(data.numpy())
        element_type, array = _runtime.from_dlpack(data if hasattr(data, "__dlpack__") else _Capsule(data))
        return cls(array if element_type < 16 else array.view(dtype_of(element_type)))

    def __dlpack_device__(self) -> tuple[int, int]:
        return 1, 0

    def __dlpack__(self, *, stream=None, **how):
        array = self.numpy()
        if element_type_of(array.dtype) != 16:
            return array.__dlpack__(**how)
        return _runtime.to_dlpack(array.view(np.uint16), 16).__dlpack__(**how)

    def __array__(self, dtype=None, copy=None):
        return np.array(self.numpy(), dtype, copy=copy) if copy is not None else np.asarray(self.numpy(), dtype)

    def _content(self):
        """What a session takes."""
        if isinstance(self._value, SparseTensor):
            raise InvalidArgument("sparse tensors are no inputs of models here; give a dense one")
        return self._value

    def numpy(self) -> np.ndarray:
        if not self.is_tensor():
            raise InvalidArgument(f"a value that holds {self.data_type()} has no numpy array")
        return self._value

    def update_inplace(self, data) -> None:
        """Copies the elements of an array or another value, of the same type and shape, to this one's memory."""
        source = data.numpy() if isinstance(data, OrtValue) else data
        if not isinstance(source, np.ndarray):
            raise TypeError("data must be a numpy.ndarray or an OrtValue.")
        target = self.numpy()
        if source.dtype != target.dtype or source.shape != target.shape:
            raise InvalidArgument(
                f"a value of {target.dtype}{list(target.shape)} cannot be updated with one of "
                f"{source.dtype}{list(source.shape)}"
            )
        np.copyto(target, source)

    def as_sparse_tensor(self) -> SparseTensor:
        if not self.is_sparse_tensor():
            raise InvalidArgument(f"the value holds {self.data_type()}, no sparse tensor")
        return self._value

    def shape(self) -> list[int]:
        return list(self._value.dense_shape() if self.is_sparse_tensor() else self.numpy().shape)

    def element_type(self) -> int:
        dtype = self.numpy().dtype
        return _STRING if dtype.kind in "UOST" else element_type_of(dtype)

    def data_type(self) -> str:
        if self._value is None:
            return "nothing"
        if self.is_tensor_sequence():
            return f"seq({_type_name(self._value[0].dtype)})" if self._value else "seq()"
        if self.is_tensor():
            return _type_name(self._value.dtype)
        return self._value.data_type() if self.is_sparse_tensor() else "map"

    def device_name(self) -> str:
        return "cpu"

    def data_ptr(self) -> int:
        return self.numpy().ctypes.data

    def tensor_size_in_bytes(self) -> int:
        return self.numpy().nbytes

    def is_tensor(self) -> bool:
        return isinstance(self._value, np.ndarray)

    def is_sparse_tensor(self) -> bool:
        return isinstance(self._value, SparseTensor)

    def is_tensor_sequence(self) -> bool:
        return isinstance(self._value, list)

    def has_value(self) -> bool:
        return self._value is not None


class OrtSparseFormat(enum.IntEnum):
    ORT_SPARSE_UNDEFINED = 0
    ORT_SPARSE_COO = 1
    ORT_SPARSE_CSRC = 2
    ORT_SPARSE_BLOCK_SPARSE = 4


class _CooView:
    def __init__(self, indices):
        self._indices = indices

    def indices(self) -> np.ndarray:
        return self._indices


class _CsrView:
    def __init__(self, inner, outer):
        self._inner, self._outer = inner, outer

    def inner(self) -> np.ndarray:
        return self._inner

    def outer(self) -> np.ndarray:
        return self._outer


def _indices_of(array, name: str) -> np.ndarray:
    array = np.ascontiguousarray(array)
    if array.dtype != np.int64:
        raise InvalidArgument(f"{name} are int64, got {array.dtype}")
    return array


class SparseTensor:
    """The values of a sparse tensor and where they are. Models take and give dense tensors here."""

    def __init__(self, format, dense_shape, values, view):
        self._format, self._view = format, view
        self._dense_shape = np.asarray(dense_shape, np.int64).reshape(-1)
        self._values = np.ascontiguousarray(values)
        if self._values.ndim != 1 or (self._dense_shape < 0).any():
            raise InvalidArgument("a sparse tensor has a list of values and a shape without negative sizes")

    @classmethod
    def sparse_coo_from_numpy(cls, dense_shape, values, coo_indices, ort_device=None) -> SparseTensor:
        """`coo_indices`: for each value its index in the flat tensor, or its coordinates in a row."""
        indices = _indices_of(coo_indices, "coo_indices")
        made = cls(OrtSparseFormat.ORT_SPARSE_COO, dense_shape, values, _CooView(indices))
        count, shape = len(made._values), made._dense_shape
        if indices.shape not in ((count,), (count, len(shape))):
            raise InvalidArgument(f"coo_indices of {count} values have the shape [{count}] or [{count}, {len(shape)}]")
        most = shape if indices.ndim == 2 else np.prod(shape, dtype=np.int64)
        if ((indices < 0) | (indices >= most)).any():
            raise InvalidArgument("coo_indices lie outside of the tensor")
        return made

    @classmethod
    def sparse_csr_from_numpy(
        cls, dense_shape, values, inner_indices, outer_indices, ort_device=None
    ) -> SparseTensor:
        """`inner_indices`: the column of each value; `outer_indices`: where each row's values begin, and the end."""
        inner, outer = _indices_of(inner_indices, "inner_indices"), _indices_of(outer_indices, "outer_indices")
        made = cls(OrtSparseFormat.ORT_SPARSE_CSRC, dense_shape, values, _CsrView(inner, outer))
        if len(made._dense_shape) != 2:
            raise InvalidArgument("a tensor in CSR format has two dimensions")
        rows, columns = made._dense_shape
        count = len(made._values)
        if inner.shape != (count,) or ((inner < 0) | (inner >= columns)).any():
            raise InvalidArgument("inner_indices are the column of each value")
        if outer.shape != (rows + 1,) or outer[0] != 0 or outer[-1] != count or (np.diff(outer) < 0).any():
            raise InvalidArgument("outer_indices begin with 0, do not fall, and end with the number of values")
        return made

    def format(self) -> OrtSparseFormat:
        return self._format

    def dense_shape(self) -> np.ndarray:
        return self._dense_shape

    def values(self) -> np.ndarray:
        return self._values

    def as_coo_view(self) -> _CooView:
        if self._format != OrtSparseFormat.ORT_SPARSE_COO:
            raise InvalidArgument("the tensor is not in COO format")
        return self._view

    def as_csrc_view(self) -> _CsrView:
        if self._format != OrtSparseFormat.ORT_SPARSE_CSRC:
            raise InvalidArgument("the tensor is not in CSR format")
        return self._view

    def data_type(self) -> str:
        return f"sparse_{_type_name(self._values.dtype)}"

    def device_name(self) -> str:
        return "cpu"
