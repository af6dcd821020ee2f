"""Kernels from the text of one operation, compiled by upstream's tools.

What packs operands here is written after the descriptions of the operations in dialects/CPU.
"""

import ctypes
import os
import subprocess
from pathlib import Path

import numpy as np

ROOT = Path(__file__).resolve().parents[2]
BIN = Path(os.environ.get("SARDONYX_BUILD", ROOT / "build" / "release")) / "bin"
LLVM = Path(os.environ.get("SARDONYX_LLVM", "/usr/lib/llvm-22")) / "bin"
PANEL = 32
TYPES = {"float32": "f32", "bfloat16": "bf16", "int8": "i8", "uint8": "i8", "int16": "i16", "int32": "i32", "int64": "i64"}
LOWER = (
    "arith-expand{include-bf16=true},lower-affine,convert-scf-to-cf,expand-strided-metadata,lower-affine,convert-math-to-llvm,convert-vector-to-llvm,"
    "convert-arith-to-llvm,finalize-memref-to-llvm,convert-func-to-llvm,convert-cf-to-llvm,reconcile-unrealized-casts"
)


def spell(array):
    return "x".join([*map(str, array.shape), TYPES[array.dtype.name]])


def descriptor(array):
    """The memref of an array, as C has it."""
    numbers = [array.ctypes.data, array.ctypes.data, 0, *array.shape, *(s // array.itemsize for s in array.strides)]
    return (ctypes.c_int64 * len(numbers))(*numbers)


def compile_kernel(folder, op, inputs, result, init=None, attributes="", passes="", target="#cpu.target<>", flags=()):
    """`op` on %t0, %t1, ... and the tensor %f of `init`, or of anything, as a kernel with `attributes`, by passes on functions
    for `target`: the path of a library."""
    arguments = ", ".join(f"%{i}: memref<{spell(x)}>" for i, x in enumerate(inputs))
    tensors = "\n".join(
        f"  %t{i} = bufferization.to_tensor %{i} restrict : memref<{spell(x)}> to tensor<{spell(x)}>" for i, x in enumerate(inputs)
    )
    to = f"tensor<{spell(result)}>"
    fill = f"  %e = tensor.empty() : {to}"
    if init is not None:
        element = TYPES[result.dtype.name]
        fill += f"\n  %c = arith.constant {init} : {element}\n  %f = linalg.fill ins(%c : {element}) outs(%e : {to}) -> {to}"
    outs = "%f" if init is not None else "%e"
    text = f"""
module attributes {{sdx.target = {target}}} {{
func.func @kernel({arguments}, %out: memref<{spell(result)}>)
    attributes {{sdx.kernel, llvm.emit_c_interface{attributes}}} {{
{tensors}
{fill}
  %r = {op.replace("OUTS", f"outs({outs} : {to})")} -> {to}
  bufferization.materialize_in_destination %r in restrict writable %out : ({to}, memref<{spell(result)}>) -> ()
  return
}}
}}
"""

    def pipe(tool, *flags, given):
        done = subprocess.run([tool, *flags], input=given, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        return done.stdout

    loops = pipe(BIN / "onnx-opt", f"-pass-pipeline=builtin.module(func.func({passes}))", given=text)
    lowered = pipe(LLVM / "mlir-opt", "--allow-unregistered-dialect", f"-pass-pipeline=builtin.module({LOWER})", given=loops)
    ir = pipe(LLVM / "mlir-translate", "--mlir-to-llvmir", "--allow-unregistered-dialect", given=lowered)
    library = folder / f"{len(list(folder.iterdir()))}.so"
    pipe(LLVM / "clang", "-x", "ir", "-O1", *flags, "-shared", "-fPIC", "-", "-o", library, "-lm", given=ir)
    return library


def call(library, inputs, result):
    """The kernel's result, in an array like `result`."""
    arrays = [np.ascontiguousarray(x) for x in [*inputs, result]]
    ctypes.CDLL(str(library))._mlir_ciface_kernel(*(ctypes.byref(descriptor(x)) for x in arrays))
    return arrays[-1]


def panels(matrix):
    """[K,N] as [No,K,32]; columns past N are zero."""
    k, n = matrix.shape
    count = -(-n // PANEL)
    wide = np.zeros((k, count * PANEL), matrix.dtype)
    wide[:, :n] = matrix
    return np.ascontiguousarray(wide.reshape(k, count, PANEL).transpose(1, 0, 2))


def grouped(matrix, group):
    """[K,N] in panels in which `group` values of k lie together."""
    k, n = matrix.shape
    deep = np.zeros((-(-k // group) * group, n), matrix.dtype)
    deep[:k] = matrix
    packed = panels(deep)
    return np.ascontiguousarray(
        packed.reshape(len(packed), -1, group, PANEL).transpose(0, 1, 3, 2).reshape(len(packed), -1, PANEL * group)
    )


def pack_filters(w, group, lanes, unit=1):
    """[OC,C/group,k...] as cpu.narrow_conv has them: `lanes` values of K together, a multiple of `unit` of such groups."""
    filters, depth = w.shape[0] // group, w[0].size
    last = np.moveaxis(w, 1, -1).reshape(group, filters, depth)
    deep = np.zeros((group, filters, -(-depth // (unit * lanes)) * unit * lanes), w.dtype)
    deep[:, :, :depth] = last
    return np.concatenate([grouped(x.T, lanes) for x in deep])


def window(**values):
    """Attributes of a window, lists of integers or single ones."""
    texts = [
        f"{k} = array<i64: {', '.join(map(str, v))}>" if isinstance(v, (list, tuple)) else f"{k} = {v} : i64"
        for k, v in values.items()
    ]
    return ", ".join(texts)
