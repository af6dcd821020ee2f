"""Compiles kernels for NVIDIA GPUs and runs what their functions start, by the interpreter of PTX behind CUDA's driver API
(libsdx-fakecuda.so).

A kernel's function is host code: arithmetic on sizes, buffers, and launches. `Kernels` interprets it, so that code generation can be
tested without sessions.
"""

import ctypes
import os
import re
import subprocess
from pathlib import Path

import numpy as np

ROOT = Path(__file__).resolve().parents[2]
BUILD = Path(os.environ.get("SARDONYX_BUILD", ROOT / "build" / "release"))
TYPES = {"f64": "f8", "f32": "f4", "f16": "f2", "bf16": "u2", "i1": "u1", "i8": "i1", "i16": "i2", "i32": "i4", "i64": "i8", "index": "i8"}


class CheckFailed(Exception):
    """A check of a kernel failed, with this sentence."""


class LaunchConfig(ctypes.Structure):
    _fields_ = [(name, ctypes.c_uint) for name in ("gx", "gy", "gz", "bx", "by", "bz", "shared")] + [
        ("stream", ctypes.c_void_p),
        ("attributes", ctypes.c_void_p),
        ("count", ctypes.c_uint),
    ]


class Driver:
    """CUDA's driver, as far as it is needed."""

    def __init__(self):
        self.library = ctypes.CDLL(str(BUILD / "lib" / "libsdx-fakecuda.so"))
        self.library.sdxFakeCudaLastFault.restype = ctypes.c_char_p
        self.functions = {}
        self("cuInit", 0)
        device, context = ctypes.c_int(), ctypes.c_void_p()
        self.stream = ctypes.c_void_p()
        self("cuDeviceGet", ctypes.byref(device), 0)
        self("cuDevicePrimaryCtxRetain", ctypes.byref(context), device)
        self("cuCtxPushCurrent", context)
        self("cuStreamCreateWithPriority", ctypes.byref(self.stream), 1, 0)

    def __call__(self, name, *arguments):
        if name not in self.functions:
            found, status = ctypes.c_void_p(), ctypes.c_int()
            self.library.cuGetProcAddress_v2(name.encode(), ctypes.byref(found), 12000, ctypes.c_uint64(0), ctypes.byref(status))
            self.functions[name] = ctypes.CFUNCTYPE(ctypes.c_int)(found.value)
        code = self.functions[name](*arguments)
        assert code == 0, f"{name}: {code}, {self.library.sdxFakeCudaLastFault()}"

    def allocate(self, size):
        address = ctypes.c_uint64()
        self("cuMemAlloc", ctypes.byref(address), ctypes.c_size_t(max(size, 1)))
        return address.value

    def write(self, address, data):
        if data:
            self("cuMemcpyHtoDAsync", ctypes.c_uint64(address), bytes(data), ctypes.c_size_t(len(data)), self.stream)
            self("cuStreamSynchronize", self.stream)

    def read(self, address, size):
        data = ctypes.create_string_buffer(max(size, 1))
        self("cuStreamSynchronize", self.stream)
        if size:
            self("cuMemcpyDtoHAsync", data, ctypes.c_uint64(address), ctypes.c_size_t(size), self.stream)
            self("cuStreamSynchronize", self.stream)
        return data.raw[:size]


class Buffer:
    """A memref in the device's memory: the address of its first element, sizes, strides and a numpy type."""

    def __init__(self, address, sizes, dtype, strides=None):
        self.address, self.sizes, self.dtype = address, list(sizes), np.dtype(dtype)
        self.strides = strides or [int(np.prod(self.sizes[i + 1 :], dtype=np.int64)) for i in range(len(self.sizes))]


def parse_buffer(text):
    sizes, element = re.match(r"memref<((?:[\d?]+x)*)(\w+)", text).groups()
    return [None if size == "?" else int(size) for size in sizes.split("x")[:-1]], TYPES[element]


class Kernels:
    """The kernels of a module, as text, for the target that its `sdx.target` says."""

    def __init__(self, module):
        command = [BUILD / "bin" / "onnx-opt", "-", "--sdx-run-target=stage=codegen"]
        done = subprocess.run(command, input=module, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        image = re.search(r'sdx\.images = \[\{(?:\w+ = "\w*", )*bytes = "((?:[^"\\]|\\.)*)", (.*)\}\]', done.stdout)
        self.ptx = re.sub(
            r"\\([0-9A-Fa-f]{2}|\\|.)", lambda m: m[1] if len(m[1]) == 1 else chr(int(m[1], 16)), image[1]
        )
        self.messages = re.findall(r'text = "((?:[^"\\]|\\.)*)"', image[2])
        self.functions = {}
        for name, arguments, body in re.findall(r"func\.func private @(\w+)\(([^\n]*)\) attributes \{[^\n]*\} \{\n(.*?)\n  \}", done.stdout, re.DOTALL):
            self.functions[name] = (re.findall(r"(%\w+): ", arguments), body)
        self.driver = Driver()
        self.module = ctypes.c_void_p()
        self.driver("cuModuleLoadDataEx", ctypes.byref(self.module), self.ptx.encode() + b"\0", 0, None, None)
        self.record = self.driver.allocate(48)
        self.launches = []

    def upload(self, array):
        buffer = Buffer(self.driver.allocate(array.nbytes), array.shape, array.dtype)
        self.driver.write(buffer.address, np.ascontiguousarray(array).tobytes())
        return buffer

    def run(self, name, *arguments):
        """Calls a kernel with arrays, numbers and buffers; arrays are afterwards as it left them."""
        self.driver.write(self.record, bytes(48))
        values = [self.upload(a) if isinstance(a, np.ndarray) else a for a in arguments]
        names, body = self.functions[name]
        values_of = dict(zip(names, values))
        for line in body.split("\n"):
            self.step(line.strip(), values_of)
        words = np.frombuffer(self.driver.read(self.record, 48), np.int64)
        if words[0]:
            raise CheckFailed(re.sub(r"\{(\d)\}", lambda m: str(words[2 + int(m[1])]), self.messages[words[1]]))
        for array, value in zip(arguments, values):
            if isinstance(array, np.ndarray):
                array[...] = np.frombuffer(self.driver.read(value.address, array.nbytes), array.dtype).reshape(array.shape)

    def step(self, line, env):
        """One operation of the host."""
        if line == "return" or line.startswith("memref.dealloc"):
            return
        results, _, operation = line.rpartition(" = ") if line.startswith("%") else ("", "", line)
        name = operation.split(" ", 1)[0].split("(")[0]
        operands = [env[v] for v in re.findall(r"%[\w#]+", operation)]
        kind = operation.rsplit(" : ", 1)[-1]
        if name == "sdx.launch":
            self.launch(operation, env)
        elif name == "memref.copy":
            source, target = operands
            size = int(np.prod(source.sizes, dtype=np.int64)) * source.dtype.itemsize
            self.driver.write(target.address, self.driver.read(source.address, size))
        else:
            env[results] = self.compute(name, operation, operands, kind)
            if name == "memref.extract_strided_metadata":
                base, offset, sizes, strides = (part.split(":")[0] for part in results.split(", "))
                for i, (size, stride) in enumerate(zip(operands[0].sizes, operands[0].strides)):
                    env[f"{sizes}#{i}"], env[f"{strides}#{i}"] = size, stride
                    env[sizes], env[strides] = size, stride

    def compute(self, name, operation, operands, kind):
        if name == "arith.constant":
            text = operation.split()[1]
            if text in ("true", "false"):
                return text == "true"
            return int(text) if kind[0] == "i" else float(text) if not text.startswith("0x") else None
        if name == "memref.dim":
            return operands[0].sizes[operands[1]]
        if name == "memref.alloc":
            sizes, dtype = parse_buffer(kind)
            known = iter(operands)
            sizes = [next(known) if size is None else size for size in sizes]
            return Buffer(self.driver.allocate(int(np.prod(sizes, dtype=np.int64)) * np.dtype(dtype).itemsize), sizes, dtype)
        if name == "memref.extract_strided_metadata":
            return operands[0]
        if name == "sdx.failure_record":
            return Buffer(self.record, [6], "i8")
        if name == "arith.cmpi":
            predicate = re.search(r"cmpi (\w+)", operation)[1]
            x, y = operands
            return {"eq": x == y, "ne": x != y, "slt": x < y, "ult": x < y, "sgt": x > y, "sge": x >= y, "sle": x <= y, "ule": x <= y}[predicate]
        x, y = (operands + [0, 0])[:2]
        return {
            "arith.addi": lambda: x + y,
            "arith.subi": lambda: x - y,
            "arith.muli": lambda: x * y,
            "arith.divui": lambda: x // y,
            "arith.ceildivui": lambda: -(-x // y),
            "arith.ceildivsi": lambda: -(-x // y),
            "arith.maxsi": lambda: max(x, y),
            "arith.select": lambda: y if x else operands[2],
            "arith.index_cast": lambda: x,
            "arith.extui": lambda: int(x),
            "arith.sitofp": lambda: float(x),
        }[name]()

    def launch(self, operation, env):
        kernel, blocks, threads, shared, arguments, kinds = re.match(
            r'sdx\.launch "(\w+)" blocks\((.*?)\) threads \[(.*?)\](?: shared (\d+))?\s*\((.*?) : (.*)\)', operation
        ).groups()
        self.launches.append(kernel)
        grid = [env[v.strip()] for v in blocks.split(",")]
        if 0 in grid:
            return
        words, kinds = [], re.findall(r"memref<(?:[^<>]|<(?:[^<>]|<[^<>]*>)*>)*>|\w+", kinds)
        for value, kind in zip((env[v.strip()] for v in arguments.split(",")), kinds):
            data = value.address if isinstance(value, Buffer) else value
            dtype = "i8" if isinstance(value, Buffer) else TYPES[kind]
            words.append(ctypes.create_string_buffer(np.array([data]).astype(dtype).tobytes(), 8))
        pointers = (ctypes.c_void_p * max(1, len(words)))(*[ctypes.addressof(word) for word in words])
        config = LaunchConfig(*grid, *(int(n) for n in threads.split(",")), int(shared or 0), self.driver.stream, None, 0)
        function = ctypes.c_void_p()
        self.driver("cuModuleGetFunction", ctypes.byref(function), self.module, kernel.encode())
        self.driver("cuLaunchKernelEx", ctypes.byref(config), function, pointers, None)
        self.driver("cuStreamSynchronize", self.driver.stream)
