"""OrtValue and SparseTensor, as onnxruntime has them, on memory of numpy's."""

from __future__ import annotations

import enum
import math
import operator
from typing import Any

import numpy as np

from . import _cuda, _runtime
from ._arrays import _as_strings, _bits, dtype_of, element_type_of
from ._devices import CPU, OrtDevice, OrtMemoryInfo, place_of
from .errors import Fail, InvalidArgument

_STRING, _BOOL, _UINT8, _BFLOAT16 = 8, 9, 2, 16
# ONNX's names of element types, where they differ from numpy's and ml_dtypes'.
_TYPE_NAMES = {
    1: "float", 8: "string", 11: "double", 17: "float8e4m3fn", 18: "float8e4m3fnuz", 19: "float8e5m2",
    20: "float8e5m2fnuz", 23: "float4e2m1", 24: "float8e8m0", 27: "float6e2m3", 28: "float6e3m2",
}  # fmt: skip


def type_name(element_type: int) -> str:
    """ONNX's name of an element type by its number: "float"."""
    return _TYPE_NAMES.get(element_type) or dtype_of(element_type).name


def _contiguous(array: np.ndarray) -> np.ndarray:
    if array.flags.c_contiguous and array.flags.aligned and array.dtype.isnative:
        return array
    return np.array(array, array.dtype.newbyteorder("="), order="C", copy=True)


class OrtValue:
    """A value of a model by the name that onnxruntime gives it: it holds numpy's array, which it does not copy, memory of
    a CUDA device, or what a run gives for other values. bfloat16 and the like are dtypes of ml_dtypes.

    Devices are names ("cpu", "cuda") or OrtDevices: onnxruntime has two classes, of which `_pybind_state.OrtValue` takes
    the latter; here they are one.
    """

    _keeps: object = None  # what has to stay as long as the value

    def __init__(self, value: Any, element_type: int = 0):
        self._value = value
        self._type = element_type

    def __repr__(self):
        if not self.is_tensor():
            return f"OrtValue({self.data_type()})"
        return f"OrtValue({self.data_type()} {list(self.shape())} on {self.device_name()})"

    @classmethod
    def ortvalue_from_numpy(
        cls, numpy_obj: np.ndarray, /, device_type: str | OrtDevice = "cpu", device_id: int = 0, vendor_id: int = -1
    ) -> OrtValue:
        """A tensor in an array's memory; what is not contiguous is copied, and so is what goes to a device. Raises `Fail` for
        strings, and where there is no such device."""
        place = place_of(device_type, device_id)
        if not isinstance(numpy_obj, np.ndarray) or numpy_obj.dtype.kind in "UOST":
            raise Fail("Creation of OrtValues is currently only supported from non-string numpy arrays")
        if not element_type_of(numpy_obj.dtype.newbyteorder("=")):
            raise Fail(f"no ONNX tensor has the dtype {numpy_obj.dtype}")
        array = _contiguous(numpy_obj)
        return cls(array if place == CPU else _cuda.to_device(array, element_type_of(array.dtype), place))

    @classmethod
    def ortvalue_from_numpy_with_onnx_type(cls, data: np.ndarray, /, onnx_element_type: int) -> OrtValue:
        """The bits of an array as elements of a type of the same size."""
        dtype = _dtype(operator.index(onnx_element_type))
        if not isinstance(data, np.ndarray) or data.dtype.hasobject or data.dtype.itemsize != dtype.itemsize:
            raise Fail(f"an array with elements of {dtype.itemsize} bytes is needed, got {getattr(data, 'dtype', data)}")
        return cls(_contiguous(data).view(dtype))

    @classmethod
    def ortvalue_from_shape_and_type(
        cls,
        shape,
        element_type,
        device_type: str | OrtDevice = "cpu",
        device_id: int = 0,
        vendor_id: int = -1,
        memory_info: OrtMemoryInfo | None = None,
    ) -> OrtValue:
        """A tensor whose elements are not set. `element_type` is ONNX's number or a dtype."""
        place = place_of(device_type, device_id)
        dtype = _dtype(element_type)
        if place != CPU:
            return cls(_cuda.allocate(tuple(shape), element_type_of(dtype), place))
        try:
            return cls(np.empty(tuple(shape), dtype))
        except ValueError as problem:
            raise Fail(f"no tensor has the shape {list(shape)}: {problem}") from None

    ortvalue_from_shape_and_onnx_type = ortvalue_from_shape_and_type

    @classmethod
    def ort_value_from_sparse_tensor(cls, sparse_tensor: SparseTensor) -> OrtValue:
        """A value that holds a sparse tensor."""
        return cls(sparse_tensor)

    @classmethod
    def from_dlpack(cls, data, /, is_bool_tensor: bool = False) -> OrtValue:
        """The memory of another library's tensor, which is not copied, or of a DLPack capsule, whose bytes may stand
        for booleans. On a CUDA device what the tensor's own stream writes is waited for; who writes to a capsule's memory
        on other streams than the default one has to be done before."""
        if isinstance(data, OrtValue):
            return cls(data._tensor())
        is_bool = is_bool_tensor or _looks_bool(data)
        tensor = _cuda.import_tensor(data) if hasattr(data, "__dlpack_device__") else None
        if tensor is not None:
            if is_bool and tensor.type == _UINT8:
                tensor.type = _BOOL
            return cls(tensor)
        if not hasattr(data, "__dlpack__") and type(data).__name__ != "PyCapsule":
            raise TypeError("from_dlpack expected a valid DLPack capsule named 'dltensor'")
        try:
            element_type, array, is_writable = _runtime.import_memory(data)
        except (RuntimeError, InvalidArgument):
            if type(data).__name__ == "PyCapsule":
                try:
                    return cls(_cuda.import_capsule(data, is_bool))
                except InvalidArgument:
                    pass
            raise Fail("DLPack is taken of contiguous tensors on the CPU or on CUDA devices only") from None
        if not element_type:
            raise Fail("the tensor has a type of elements that no ONNX tensor has")
        if is_bool and element_type == _UINT8:
            element_type = _BOOL
        array = array.view(dtype_of(element_type))
        array.flags.writeable = is_writable
        return cls(array)

    def __dlpack__(self, *, stream=None):
        """A DLPack capsule of the tensor's memory. Raises `BufferError` where DLPack has no way to say what it is. Nothing
        on a device is left to wait for, whatever the stream."""
        array = self._tensor()
        element_type = self.element_type()
        if element_type > _BFLOAT16 or element_type == _STRING:
            raise BufferError(f"DLPack has no elements of the type {type_name(element_type)}")
        if isinstance(array, _cuda.DeviceTensor):
            return _runtime.export_memory(array.data, element_type, array.shape, array, array.device)
        if not array.flags.writeable:
            raise BufferError("DLPack has no way to say that memory must not be written")
        return _runtime.export_memory(array.ctypes.data, element_type, list(array.shape), array)

    def to_dlpack(self):
        """The same as `__dlpack__`."""
        return self.__dlpack__()

    def __dlpack_device__(self) -> tuple[int, int]:
        """(1, 0): the CPU; (2, its number): a CUDA device."""
        array = self._tensor()
        return (2, array.device) if isinstance(array, _cuda.DeviceTensor) else (1, 0)

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        """The memory of a tensor on a CUDA device, as numba and others take it; no attribute of other values."""
        if not isinstance(self._value, _cuda.DeviceTensor):
            raise AttributeError("__cuda_array_interface__ is of tensors on CUDA devices only")
        return _cuda.interface_of(self._value)

    def update_inplace(self, data) -> None:
        """Copies elements in, as many bytes as there are, whatever the shape."""
        if isinstance(data, OrtValue):
            data = data._tensor()
        elif not isinstance(data, np.ndarray):
            raise TypeError("data must be a numpy.ndarray or an OrtValue.")
        target = self._tensor()
        if isinstance(target, _cuda.DeviceTensor) or isinstance(data, _cuda.DeviceTensor):
            _copy_on_device(target, data)
            return
        if target.dtype.hasobject or data.dtype.newbyteorder("=") != target.dtype:
            raise Fail(f"the OrtValue has elements of {target.dtype}, got {data.dtype}")
        if data.size != target.size:
            raise Fail("The input size of numpy arrays does not match the size of the OrtValue.")
        if not target.flags.writeable:
            raise Fail("the memory of the OrtValue must not be written")
        np.copyto(target, _contiguous(data).reshape(target.shape))

    def as_sparse_tensor(self) -> SparseTensor:
        """The sparse tensor that it holds; raises `Fail` where it is none."""
        if not self.is_sparse_tensor():
            raise Fail(f"This OrtValue does not contain SparseTensor, but {self.data_type()}")
        return self._value

    def _tensor(self) -> Any:
        if not self.is_tensor():
            raise Fail(f"Only OrtValues that are Tensors are currently supported, this one is {self.data_type()}")
        return self._value

    def numpy(self) -> np.ndarray:
        """The tensor's memory as an array, or a copy of what lies on a device; raises `Fail` where it is no tensor."""
        array = self._tensor()
        return _cuda.to_host(array) if isinstance(array, _cuda.DeviceTensor) else array

    def __array__(self, dtype=None, copy=None):
        array = self.numpy()
        if copy is not None:
            return np.array(array, dtype=dtype, copy=copy)
        return array if dtype is None else np.asarray(array, dtype=dtype)

    def shape(self) -> list[int]:
        """The sizes of a tensor, or of a sparse one when it is dense."""
        if self.is_sparse_tensor():
            return self._value.dense_shape()
        return list(self._tensor().shape)

    def element_type(self) -> int:
        """ONNX's number of the type of a tensor's elements."""
        if self.is_sparse_tensor():
            return self._value._element_type
        array = self._tensor()
        if isinstance(array, _cuda.DeviceTensor):
            return array.type
        return _STRING if array.dtype.hasobject else element_type_of(array.dtype)

    def data_type(self) -> str:
        """ONNX's name of the type: "tensor(float)"."""
        value = self._value
        if self.is_sparse_tensor():
            return value.data_type()
        if self.is_tensor():
            return f"tensor({type_name(self.element_type())})"
        if isinstance(value, dict):
            return "map"
        if isinstance(value, list):
            kind = type_name(self._type) if self._type else "?"
            return "seq(map)" if value and isinstance(value[0], dict) else f"seq(tensor({kind}))"
        return "optional"

    def device_name(self) -> str:
        """Where the memory lies: cpu or cuda."""
        return "cuda" if isinstance(self._value, _cuda.DeviceTensor) else "cpu"

    def data_ptr(self) -> int:
        """The address of a tensor's first element."""
        array = self._tensor()
        return array.data if isinstance(array, _cuda.DeviceTensor) else array.ctypes.data

    def tensor_size_in_bytes(self) -> int:
        """Bytes of a tensor's elements."""
        array = self._tensor()
        return array.bytes if isinstance(array, _cuda.DeviceTensor) else array.nbytes

    def is_tensor(self) -> bool:
        """Whether it holds a tensor."""
        return isinstance(self._value, (np.ndarray, _cuda.DeviceTensor))

    def is_sparse_tensor(self) -> bool:
        """Whether it holds a sparse tensor."""
        return isinstance(self._value, SparseTensor)

    def is_tensor_sequence(self) -> bool:
        """Whether it holds a list of tensors."""
        return isinstance(self._value, list) and not (self._value and isinstance(self._value[0], dict))

    def has_value(self) -> bool:
        """Whether an optional holds anything; true of other values."""
        return self._value is not None

    # onnxruntime's class of this name holds one of another class.
    @property
    def _ortvalue(self) -> OrtValue:
        return self

    def _get_c_value(self) -> OrtValue:
        return self

    def _as_initializer(self, name: str):
        """(element type, shape, bytes or a list of them) of a copy."""
        array = self.numpy()
        element_type = self.element_type()
        if element_type == _STRING:
            return element_type, list(array.shape), _as_strings(array, name)[1]
        if element_type >= 21 and element_type != 24:
            raise Fail(f"initializer '{name}' cannot be given as {self.data_type()}, whose elements are less than a byte")
        return element_type, list(array.shape), (array if element_type < 16 else _bits(array)).tobytes()


def _copy_on_device(target, source) -> None:
    """Copies all elements between tensors of which one lies on a device."""

    def told(tensor):
        if isinstance(tensor, _cuda.DeviceTensor):
            return dtype_of(tensor.type), tensor.shape
        return tensor.dtype.newbyteorder("="), tensor.shape

    (dtype, shape), (given, given_shape) = told(target), told(source)
    if dtype != given:
        raise Fail(f"the OrtValue has elements of {dtype}, got {given}")
    if math.prod(shape) != math.prod(given_shape):
        raise Fail("The input size of numpy arrays does not match the size of the OrtValue.")
    if isinstance(target, _cuda.DeviceTensor):
        _cuda.overwrite(target, source if isinstance(source, _cuda.DeviceTensor) else _contiguous(source))
    elif not target.flags.writeable:
        raise Fail("the memory of the OrtValue must not be written")
    else:
        _cuda.read_into(target, source)


def _dtype(element_type) -> np.dtype:
    try:
        dtype = dtype_of(element_type) if isinstance(element_type, int) else np.dtype(element_type)
    except TypeError:
        what = f"tensor type {element_type} is not supported" if isinstance(element_type, int) else "Not a valid numpy type"
        raise Fail(what) from None
    if not element_type_of(dtype):
        raise Fail(f"no ONNX tensor has the dtype {dtype}")
    return dtype


def _looks_bool(data) -> bool:
    """Whether bytes stand for booleans: older DLPack has no type for them."""
    if callable(getattr(data, "data_type", None)):
        return data.data_type() == "tensor(bool)"
    dtype = getattr(data, "dtype", None)
    return getattr(dtype, "name", str(dtype)) in ("bool", "bool_", "torch.bool")


def copy_tensors(src, dst, stream=None) -> None:
    """Copies each tensor of `src` into the one of `dst` at its place."""
    src, dst = list(src), list(dst)
    if len(src) != len(dst):
        raise Fail(f"as many tensors are needed to copy to as there are to copy, got {len(dst)} and {len(src)}")
    for source, target in zip(src, dst):
        target.update_inplace(source)


class OrtSparseFormat(enum.IntEnum):
    """How a sparse tensor tells where its values are: UNDEFINED, COO, CSRC, BLOCK_SPARSE."""

    ORT_SPARSE_UNDEFINED = 0
    ORT_SPARSE_COO = 1
    ORT_SPARSE_CSRC = 2
    ORT_SPARSE_BLOCK_SPARSE = 4


def _fixed(array: np.ndarray) -> np.ndarray:
    """The same memory as an array that nobody may write to."""
    view = array.view()
    view.flags.writeable = False
    return view


class SparseCooView:
    """Where the values of a sparse tensor are: `indices()`."""

    def __init__(self, indices):
        self._indices = _fixed(indices)

    def indices(self) -> np.ndarray:
        """For each value its place in the flat tensor, or its row and column; int64."""
        return self._indices


class SparseCsrView:
    """Where the values of a sparse tensor are, row by row: `inner()` and `outer()`."""

    def __init__(self, inner, outer):
        self._inner, self._outer = _fixed(inner), _fixed(outer)

    def inner(self) -> np.ndarray:
        """The column of each value; int64."""
        return self._inner

    def outer(self) -> np.ndarray:
        """Where each row begins, and the end; int64."""
        return self._outer


class SparseTensor:
    """A tensor by its elements that are not zero. Models take and give none: it is for other uses."""

    def __init__(self, dense_shape, values, view, format):
        self._shape = np.array([operator.index(size) for size in dense_shape], np.int64)
        if (self._shape < 0).any():
            raise Fail(f"a sparse tensor cannot have the shape {self._shape.tolist()}")
        if not isinstance(values, np.ndarray) or values.ndim != 1:
            raise Fail("the values of a sparse tensor are an array of one dimension")
        self._values, self._view, self._format = _fixed(values), view, format
        is_string = values.dtype.kind in "UOST"
        self._element_type = _STRING if is_string else element_type_of(values.dtype)
        if not self._element_type:
            raise Fail(f"no ONNX tensor has the dtype {values.dtype}")

    @classmethod
    def sparse_coo_from_numpy(cls, dense_shape, values, coo_indices, ort_device: OrtDevice) -> SparseTensor:
        """`coo_indices`: for each value its place in the flat tensor, or its row and column."""
        indices = _indices(coo_indices, "coo_indices", (1, 2))
        tensor = cls(dense_shape, values, SparseCooView(indices), OrtSparseFormat.ORT_SPARSE_COO)
        if len(indices) != len(values):
            raise Fail(f"Index size: {indices.size} must be equal to or twice the values size: {len(values)}")
        if indices.ndim == 2 and (indices.shape[1] != 2 or len(tensor._shape) != 2):
            raise Fail("coo_indices of two dimensions are pairs for a tensor of two dimensions")
        limit = tensor._shape if indices.ndim == 2 else np.prod(tensor._shape, dtype=object)
        if indices.size and ((indices < 0).any() or (indices >= limit).any()):
            raise Fail(f"coo_indices lie outside of the shape {tensor._shape.tolist()}")
        return tensor

    @classmethod
    def sparse_csr_from_numpy(
        cls, dense_shape, values, inner_indices, outer_indices, ort_device: OrtDevice
    ) -> SparseTensor:
        """`inner_indices`: the column of each value; `outer_indices`: where each row begins, and the end."""
        inner = _indices(inner_indices, "inner_indices", (1,))
        outer = _indices(outer_indices, "outer_indices", (1,))
        tensor = cls(dense_shape, values, SparseCsrView(inner, outer), OrtSparseFormat.ORT_SPARSE_CSRC)
        if len(tensor._shape) != 2:
            raise Fail("a sparse tensor of rows has two dimensions")
        if len(inner) != len(values):
            raise Fail(f"inner_indices must be as many as the values, {len(values)}, got {len(inner)}")
        rows, columns = tensor._shape.tolist()
        if len(outer) != rows + 1 and (len(outer) or len(values)):
            raise Fail(f"outer_indices must be one more than the rows, {rows + 1}, got {len(outer)}")
        if len(inner) and (inner.min() < 0 or inner.max() >= columns):
            raise Fail(f"inner_indices lie outside of the shape {[rows, columns]}")
        if len(outer) and (outer[0] != 0 or outer[-1] != len(values) or (np.diff(outer) < 0).any()):
            raise Fail("outer_indices must ascend from 0 to the number of values")
        return tensor

    def values(self) -> np.ndarray:
        """The values; nobody may write to them."""
        return self._values

    def _as(self, kind, name):
        if not isinstance(self._view, kind):
            raise Fail(f"This sparse tensor does not contain {name} indices, it is {self._format.name}")
        return self._view

    def as_coo_view(self) -> SparseCooView:
        """Where the values are; raises `Fail` where that is told row by row."""
        return self._as(SparseCooView, "COO")

    def as_csrc_view(self) -> SparseCsrView:
        """Where the values are, row by row; raises `Fail` where that is told of each."""
        return self._as(SparseCsrView, "CSR(C)")

    def as_blocksparse_view(self):
        """Raises `Fail`: no tensor of blocks can be made."""
        return self._as((), "BlockSparse")

    def to_cuda(self, ort_device):
        """Raises `Fail`: sparse tensors lie in the CPU's memory only."""
        raise Fail("there is no memory of the device 'cuda'")

    def format(self) -> OrtSparseFormat:
        """How the tensor tells where its values are."""
        return self._format

    def dense_shape(self) -> list[int]:
        """The sizes of the tensor when it is dense."""
        return self._shape.tolist()

    def data_type(self) -> str:
        """ONNX's name of the type: "sparse_tensor(float)"."""
        return f"sparse_tensor({type_name(self._element_type)})"

    def device_name(self) -> str:
        """Where the memory lies: cpu."""
        return "cpu"

    get_coo_data, get_csrc_data, get_blocksparse_data = as_coo_view, as_csrc_view, as_blocksparse_view

    def _get_c_tensor(self) -> SparseTensor:
        return self


def _indices(value, name: str, ranks) -> np.ndarray:
    array = np.asarray(value)
    if array.dtype.kind not in "iu" and array.size:
        raise Fail(f"{name} are integers, got an array of {array.dtype}")
    if array.ndim not in ranks:
        raise Fail(f"{name} have {' or '.join(map(str, ranks))} dimensions, got {array.ndim}")
    return array.astype(np.int64, copy=False)
