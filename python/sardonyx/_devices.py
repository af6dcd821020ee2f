"""Devices, memory and execution providers as objects, by onnxruntime's names: there is the CPU and its memory, and that
of CUDA devices."""

from __future__ import annotations

import enum
import operator

from ._providers import CPU_PROVIDER, CUDA_PROVIDER, PROVIDERS
from ._suggest import close_to
from .errors import Fail, InvalidArgument


class OrtDeviceVendorId(enum.IntEnum):
    """Makers of devices by their number on the PCI bus: NONE, AMD, NVIDIA, ARM, MICROSOFT, HUAWEI, QUALCOMM, INTEL."""

    NONE = 0x0000
    AMD = 0x1002
    NVIDIA = 0x10DE
    ARM = 0x13B5
    MICROSOFT = 0x1414
    HUAWEI = 0x19E5
    QUALCOMM = 0x5143
    INTEL = 0x8086


class OrtAllocatorType(enum.IntEnum):
    """How memory is got: INVALID, ORT_DEVICE_ALLOCATOR, ORT_ARENA_ALLOCATOR."""

    INVALID = -1
    ORT_DEVICE_ALLOCATOR = 0
    ORT_ARENA_ALLOCATOR = 1


class OrtMemType(enum.IntEnum):
    """What memory is for: CPU_INPUT, CPU_OUTPUT, CPU (the same as CPU_OUTPUT), DEFAULT."""

    CPU_INPUT = -2
    CPU_OUTPUT = -1
    CPU = -1
    DEFAULT = 0


class OrtDeviceMemoryType(enum.IntEnum):
    """Whether the CPU can reach a device's memory: DEFAULT, HOST_ACCESSIBLE."""

    DEFAULT = 0
    HOST_ACCESSIBLE = 5


class OrtMemoryInfoDeviceType(enum.IntEnum):
    """Kinds of devices that have memory: CPU, GPU, FPGA, NPU."""

    CPU = 0
    GPU = 1
    FPGA = 2
    NPU = 3


class OrtHardwareDeviceType(enum.IntEnum):
    """Kinds of hardware: CPU, GPU, NPU."""

    CPU = 0
    GPU = 1
    NPU = 2


class OrtExecutionProviderDevicePolicy(enum.IntEnum):
    """What to prefer among devices; where there is one, all choose the same."""

    DEFAULT = 0
    PREFER_CPU = 1
    PREFER_NPU = 2
    PREFER_GPU = 3
    MAX_PERFORMANCE = 4
    MAX_EFFICIENCY = 5
    MIN_OVERALL_POWER = 6


class ArenaExtendStrategy(enum.IntEnum):
    """How an arena grows: kNextPowerOfTwo, kSameAsRequested."""

    kNextPowerOfTwo = 0
    kSameAsRequested = 1


_TYPES = {"cpu": 0, "cuda": 1, "gpu": 1, "webgpu": 1, "fpga": 2, "npu": 3, "cann": 3, "dml": 4}
_VENDORS = {"cuda": OrtDeviceVendorId.NVIDIA, "dml": OrtDeviceVendorId.MICROSOFT, "cann": OrtDeviceVendorId.HUAWEI}


def _type_of(name: str) -> int:
    """The number of a type of devices by its name. Raises `InvalidArgument` for a name that onnxruntime has not."""
    known = _TYPES.get(name.lower())
    if known is None:
        like = close_to(name, _TYPES)
        raise InvalidArgument(f"Unsupported device type: {name}" + (f" (did you mean {like}?)" if like else ""))
    return known


class OrtDevice:
    """Where memory lies: `OrtDevice(type, memory type, vendor, id)`, or `OrtDevice(type, memory type, id)`.

    Devices can be named that are not there; nothing can be put on them. `_pybind_state.OrtDevice` is this class, too.
    """

    def __init__(self, device_type: int = 0, memory_type: int = 0, *vendor_and_id: int):
        if len(vendor_and_id) > 2:
            raise TypeError(f"an OrtDevice is of at most four numbers, got {2 + len(vendor_and_id)}")
        self._type, self._memory = operator.index(device_type), operator.index(memory_type)
        self._vendor = operator.index(vendor_and_id[0]) if len(vendor_and_id) == 2 else 0
        self._id = operator.index(vendor_and_id[-1]) if vendor_and_id else 0
        self._name = "cpu" if self._type == _TYPES["cpu"] else ""

    @staticmethod
    def make(ort_device_name: str, device_id: int, vendor_id: int = -1) -> OrtDevice:
        """The device of a name ("cpu", "cuda", "gpu" …). Raises `InvalidArgument` for a name that onnxruntime has not."""
        kind = _type_of(ort_device_name)
        vendor = _VENDORS.get(ort_device_name.lower(), 0) if vendor_id < 0 else vendor_id
        device = OrtDevice(kind, 0, int(vendor), operator.index(device_id))
        device._name = ort_device_name.lower()
        return device

    @staticmethod
    def cpu() -> int:
        """The number of the type of CPUs."""
        return _TYPES["cpu"]

    @staticmethod
    def cuda() -> int:
        """The number of the type of GPUs."""
        return _TYPES["cuda"]

    @staticmethod
    def gpu() -> int:
        """The number of the type of GPUs."""
        return _TYPES["gpu"]

    @staticmethod
    def webgpu() -> int:
        """The number of the type of GPUs."""
        return _TYPES["webgpu"]

    @staticmethod
    def fpga() -> int:
        """The number of the type of FPGAs."""
        return _TYPES["fpga"]

    @staticmethod
    def npu() -> int:
        """The number of the type of NPUs."""
        return _TYPES["npu"]

    @staticmethod
    def cann() -> int:
        """The number of the type of NPUs."""
        return _TYPES["cann"]

    @staticmethod
    def dml() -> int:
        """The number of the type of DirectML's devices."""
        return _TYPES["dml"]

    @staticmethod
    def default_memory() -> int:
        """The number of a device's own memory."""
        return 0

    def device_id(self) -> int:
        """Which one of several."""
        return self._id

    def device_type(self) -> int:
        """The number of its type: that of `cpu()`, `gpu()` …"""
        return self._type

    def device_mem_type(self) -> int:
        """The number of its memory: 0 is its own."""
        return self._memory

    def device_vendor_id(self) -> int:
        """Its maker: see `OrtDeviceVendorId`."""
        return self._vendor

    mem_type, vendor_id = device_mem_type, device_vendor_id

    def _get_c_device(self) -> OrtDevice:
        return self

    def __repr__(self):
        return f"OrtDevice({self._type}, {self._memory}, {self._vendor}, {self._id})"


CPU = -1  # in the place of a CUDA device's number


def place_of(device, device_id: int = 0, failure=Fail) -> int:
    """The number of a CUDA device, by a name or as an OrtDevice, or CPU. Raises where there is no such device."""
    if isinstance(device, OrtDevice):
        kind, name, device_id = device.device_type(), device._name or repr(device), device.device_id()
        is_cuda = kind == _TYPES["cuda"] and device.device_vendor_id() in (0, OrtDeviceVendorId.NVIDIA)
    else:
        kind, name = _type_of(device), device.lower()
        is_cuda = name in ("cuda", "gpu")
    if kind == _TYPES["cpu"]:
        return CPU
    if not is_cuda:
        raise failure(f"there is no memory of the device '{name}'; only 'cpu' and 'cuda' are supported")
    from . import _cuda

    if problem := _cuda.problem(needs_code=False):
        raise failure(f"there is no memory of the device '{name}': {problem}")
    return operator.index(device_id)


class OrtMemoryInfo:
    """Memory by the name of its device ("Cpu", "Cuda"), how it is got, the device's number and what it is for.

    Raises `Fail` for any other device.
    """

    def __init__(self, name: str, allocator_type: OrtAllocatorType, device_id: int, mem_type: OrtMemType):
        if name.lower() not in ("cpu", "cuda"):
            raise Fail(f"there is no memory of the device '{name}'; only 'Cpu' and 'Cuda' are supported")
        self._name, self._kind = name, OrtAllocatorType(allocator_type)
        self._id, self._purpose = operator.index(device_id), OrtMemType(mem_type)
        self._device_memory = OrtDeviceMemoryType.DEFAULT
        self._vendor = int(OrtDeviceVendorId.NVIDIA) if name.lower() == "cuda" else 0

    @classmethod
    def create_v2(
        cls,
        name: str,
        device_type: OrtMemoryInfoDeviceType,
        vendor_id: int,
        device_id: int,
        device_memory_type: OrtDeviceMemoryType,
        alignment: int,
        allocator_type: OrtAllocatorType,
    ) -> OrtMemoryInfo:
        """The same by the device's type and maker, under any name."""
        if OrtMemoryInfoDeviceType(device_type) != OrtMemoryInfoDeviceType.CPU:
            raise Fail(f"there is no memory of a device of the type {OrtMemoryInfoDeviceType(device_type).name}; only the CPU's")
        info = cls("Cpu", allocator_type, device_id, OrtMemType.DEFAULT)
        info._name, info._vendor, info._device_memory = name, operator.index(vendor_id), OrtDeviceMemoryType(device_memory_type)
        return info

    @property
    def name(self) -> str:
        """The name of the device."""
        return self._name

    @property
    def device_id(self) -> int:
        """The number of the device."""
        return self._id

    @property
    def mem_type(self) -> OrtMemType:
        """What the memory is for."""
        return self._purpose

    @property
    def allocator_type(self) -> OrtAllocatorType:
        """How the memory is got."""
        return self._kind

    @property
    def device_mem_type(self) -> OrtDeviceMemoryType:
        """Whether the CPU can reach it."""
        return self._device_memory

    @property
    def device_vendor_id(self) -> int:
        """The device's maker."""
        return self._vendor


def memory_of(place: int) -> OrtMemoryInfo:
    """The memory of the CPU or, by its number, of a CUDA device."""
    name = "Cpu" if place == CPU else "Cuda"
    return OrtMemoryInfo(name, OrtAllocatorType.ORT_DEVICE_ALLOCATOR, max(place, 0), OrtMemType.DEFAULT)


def _setting(name: str, text: str):
    def read(self) -> int:
        return self._values[name]

    def write(self, value: int) -> None:
        self._values[name] = operator.index(value)

    return property(read, write, doc=text)


class OrtArenaCfg:
    """How an arena of memory grows: four numbers, or a dict of them by name. It is kept; memory is planned otherwise here.

    `max_mem`, `arena_extend_strategy`, `initial_chunk_size_bytes`, `max_dead_bytes_per_chunk`, and in a dict also
    `initial_growth_chunk_size_bytes` and `max_power_of_two_extend_bytes`. -1 stands for a default.
    """

    _NAMES = (
        "max_mem", "arena_extend_strategy", "initial_chunk_size_bytes", "max_dead_bytes_per_chunk",
        "initial_growth_chunk_size_bytes", "max_power_of_two_extend_bytes",
    )  # fmt: skip

    def __init__(self, *settings):
        values = dict.fromkeys(self._NAMES, -1) | {"max_mem": 0}
        if len(settings) == 1 and isinstance(settings[0], dict):
            given = settings[0]
        elif len(settings) == 4:
            given = dict(zip(self._NAMES, settings))
        else:
            raise TypeError(f"an OrtArenaCfg is of four numbers or of a dict, got {settings}")
        for name, value in given.items():
            if name not in values:
                like = close_to(name, self._NAMES)
                raise Fail(f"Invalid OrtArenaCfg option: {name}" + (f" (did you mean {like}?)" if like else ""))
            values[name] = operator.index(value)
        self._values = values

    max_mem = _setting("max_mem", "Bytes at most; 0: no limit.")
    arena_extend_strategy = _setting("arena_extend_strategy", "0: by powers of two; 1: by what is asked for.")
    initial_chunk_size_bytes = _setting("initial_chunk_size_bytes", "Bytes of the first piece.")
    max_dead_bytes_per_chunk = _setting("max_dead_bytes_per_chunk", "Bytes that a piece may waste.")
    initial_growth_chunk_size_bytes = _setting("initial_growth_chunk_size_bytes", "Bytes of the second piece.")
    max_power_of_two_extend_bytes = _setting("max_power_of_two_extend_bytes", "Bytes at most by which powers of two grow.")


class OrtHardwareDevice:
    """A piece of hardware: the CPU, or a CUDA device."""

    def __init__(self, place: int = CPU):
        self._place = place

    @property
    def type(self) -> OrtHardwareDeviceType:
        """Its kind: CPU or GPU."""
        return OrtHardwareDeviceType.CPU if self._place == CPU else OrtHardwareDeviceType.GPU

    @property
    def vendor(self) -> str:
        """Its maker's name, for the CPU as the system tells it; empty where it does not."""
        return _cpu_vendor() if self._place == CPU else "NVIDIA"

    @property
    def vendor_id(self) -> int:
        """Its maker's number; 0 where it is not known."""
        makers = {"GenuineIntel": OrtDeviceVendorId.INTEL, "AuthenticAMD": OrtDeviceVendorId.AMD, "NVIDIA": OrtDeviceVendorId.NVIDIA}
        return int(makers.get(self.vendor, 0))

    @property
    def device_id(self) -> int:
        """Which one of several, as the driver counts; of the CPU 0."""
        return max(self._place, 0)

    @property
    def metadata(self) -> dict[str, str]:
        """What else is told of it: nothing."""
        return {}


def _cpu_vendor() -> str:
    try:
        with open("/proc/cpuinfo", encoding="utf-8") as file:
            return next((line.split(":")[1].strip() for line in file if line.startswith("vendor_id")), "")
    except OSError:
        return ""


class OrtSyncStream:
    """A queue of work of a device, of which sessions have their own: `OrtEpDevice.create_sync_stream` raises."""

    def get_handle(self) -> int:
        """The address of the device's own queue: 0."""
        return 0


class OrtEpDevice:
    """An execution provider on a device: the CPU's, or CUDA's on one of its devices."""

    def __init__(self, place: int = CPU):
        self._place = place

    def __eq__(self, other):
        return isinstance(other, OrtEpDevice) and self._place == other._place

    def __hash__(self):
        return hash(self._place)

    @property
    def ep_name(self) -> str:
        """"CPUExecutionProvider" or "CUDAExecutionProvider"."""
        return CPU_PROVIDER if self._place == CPU else CUDA_PROVIDER

    @property
    def ep_vendor(self) -> str:
        """Who makes the provider: "Sardonyx"."""
        return "Sardonyx"

    @property
    def ep_metadata(self) -> dict[str, str]:
        """Its version."""
        from ._runtime import __version__

        return {"version": __version__}

    @property
    def ep_options(self) -> dict[str, str]:
        """Its options: which device, where there may be several."""
        return {} if self._place == CPU else {"device_id": str(self._place)}

    @property
    def device(self) -> OrtHardwareDevice:
        """The hardware that it runs on."""
        return OrtHardwareDevice(self._place)

    def memory_info(self, memory_type: OrtDeviceMemoryType) -> OrtMemoryInfo | None:
        """Memory of this type that is the device's alone: a CUDA device's own; otherwise None, as onnxruntime's CPU has none."""
        if OrtDeviceMemoryType(memory_type) != OrtDeviceMemoryType.DEFAULT or self._place == CPU:
            return None
        return memory_of(self._place)

    def create_sync_stream(self) -> OrtSyncStream:
        """Raises `Fail`: the CPU has no queues of work, and sessions on a CUDA device have their own, or the one of
        `user_compute_stream`."""
        raise Fail("the CPU has no sync streams" if self._place == CPU else "sessions have streams of their own; see user_compute_stream")


CPU_DEVICE = OrtEpDevice()


def get_ep_devices() -> list[OrtEpDevice]:
    """All execution providers with their devices: the CPU's, and CUDA's for each device."""
    from . import _cuda

    return [CPU_DEVICE, *(OrtEpDevice(number) for number in range(_cuda.count_devices()))]


def register_execution_provider_library(registration_name: str, library_path) -> None:
    """Raises `Fail`: libraries of execution providers are built for onnxruntime alone."""
    raise Fail(
        f"Failed to load library {library_path} as '{registration_name}': Sardonyx takes no libraries of execution providers"
    )


def unregister_execution_provider_library(registration_name: str) -> None:
    """Raises `Fail`: no library of an execution provider can have been registered."""
    raise Fail(f"Execution provider library: {registration_name} was not registered.")


def create_and_register_allocator(mem_info: OrtMemoryInfo, arena_cfg: OrtArenaCfg | None = None) -> None:
    """Accepted for compatibility: memory is planned when a model is compiled, and all sessions share what is free."""
    _check_allocator(mem_info, arena_cfg)


def create_and_register_allocator_v2(
    provider_type: str, mem_info: OrtMemoryInfo, options: dict[str, str], arena_cfg: OrtArenaCfg | None = None
) -> None:
    """The same for a provider, which must be the CPU's."""
    if provider_type not in PROVIDERS:
        raise Fail(f"there is no provider '{provider_type}'; there is {PROVIDERS[0]}")
    _check_allocator(mem_info, arena_cfg)


def _check_allocator(mem_info, arena_cfg) -> None:
    if not isinstance(mem_info, OrtMemoryInfo) or not isinstance(arena_cfg, (OrtArenaCfg, type(None))):
        raise TypeError(f"an allocator is of an OrtMemoryInfo and an OrtArenaCfg or None, got {mem_info!r} and {arena_cfg!r}")


def preload_dlls(cuda: bool = True, cudnn: bool = True, msvc: bool = True, directory=None) -> None:
    """Accepted for compatibility: no library of CUDA's is needed."""


def disable_telemetry_events() -> None:
    """Accepted for compatibility: nothing is told to anybody."""


def enable_telemetry_events() -> None:
    """Accepted for compatibility: nothing is told to anybody."""
