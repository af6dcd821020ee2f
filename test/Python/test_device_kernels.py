"""Kernels for NVIDIA GPUs, compiled from MLIR and run by the interpreter of PTX, against numpy."""

import math

import numpy as np
import pytest

from device_kernels import TYPES, CheckFailed, Kernels

NUMPY = {**TYPES, "bf16": "u2"}
RANDOM = np.random.default_rng(7)
HEADER = "#g = #gpu.address_space<global>\n"


def module(body, target="sm = 80"):
    return f"{HEADER}module attributes {{sdx.target = #nv.target<{target}>}} {{\n{body}\n}}"


def make_map(dims, results):
    """affine_map<(d0, d1) -> (d1)> of make_map(2, [1])."""
    names = ", ".join(f"d{i}" for i in range(dims))
    return f"affine_map<({names}) -> ({', '.join(f'd{i}' for i in results)})>"


def elementwise(name, types, body, shapes, maps=None):
    """A kernel of one operation on elements; the last type and shape are the result's. Sizes are numbers or "?"."""
    rank = len(shapes[-1])
    maps = maps or [make_map(rank, range(rank))] * len(shapes)
    memrefs = ["memref<" + "".join(f"{size}x" for size in shape) + f"{type}, #g>" for shape, type in zip(shapes, types)]
    tensors = [memref.replace("memref", "tensor").replace(", #g", "") for memref in memrefs]
    arguments = ", ".join(f"%m{i}: {memref}" for i, memref in enumerate(memrefs))
    last = len(shapes) - 1
    lines = [f"func.func private @{name}({arguments}) attributes {{sdx.kernel}} {{"]
    lines += [f"%t{i} = bufferization.to_tensor %m{i} restrict : {memrefs[i]} to {tensors[i]}" for i in range(last)]
    opens = []
    for dim, size in enumerate(shapes[-1]):
        if size == "?":
            lines += [f"%c{dim} = arith.constant {dim} : index", f"%d{dim} = memref.dim %m{last}, %c{dim} : {memrefs[-1]}"]
            opens.append(f"%d{dim}")
    ins = f"ins({', '.join(f'%t{i}' for i in range(last))} : {', '.join(tensors[:-1])}) " if last else ""
    inputs = ", ".join(f"%x{i}: {type}" for i, type in enumerate(types[:-1]))
    inputs += (", " if inputs else "") + f"%old: {types[-1]}"
    parallel = ", ".join(['"parallel"'] * rank)
    lines += [
        f"%e = tensor.empty({', '.join(opens)}) : {tensors[-1]}",
        f"%r = linalg.generic {{indexing_maps = [{', '.join(maps)}], iterator_types = [{parallel}]}} {ins}outs(%e : {tensors[-1]}) {{",
        f"^bb0({inputs}):",
        body,
        f"}} -> {tensors[-1]}",
        f"bufferization.materialize_in_destination %r in restrict writable %m{last} : ({tensors[-1]}, {memrefs[-1]}) -> ()",
        "return",
        "}",
    ]
    return "\n".join(lines)


@pytest.mark.parametrize("type", ["f64", "f32", "f16", "i8", "i16", "i32", "i64"])
def test_each_type_of_elements(type):
    """(x + y) * y, rounded after each operation; integers wrap."""
    kind = "f" if type[0] == "f" else "i"
    body = f"%s = arith.add{kind} %x0, %x1 : {type}\n%p = arith.mul{kind} %s, %x1 : {type}\nlinalg.yield %p : {type}"
    kernels = Kernels(module(elementwise("k", [type] * 3, body, [("?", 5)] * 3)))
    dtype = np.dtype(NUMPY[type])
    if kind == "f":
        x, y = RANDOM.standard_normal((2, 301, 5)).astype(dtype)
    else:
        x, y = RANDOM.integers(-(2 ** (8 * dtype.itemsize - 1)), 2 ** (8 * dtype.itemsize - 1), (2, 301, 5), dtype=dtype)
    result = np.zeros_like(x)
    kernels.run("k", x, y, result)
    with np.errstate(over="ignore"):
        np.testing.assert_array_equal(result, (x + y) * y)


def test_bf16_rounds_to_even():
    body = "%s = arith.addf %x0, %x1 : bf16\n%w = arith.extf %s : bf16 to f32\nlinalg.yield %w : f32"
    kernels = Kernels(module(elementwise("k", ["bf16", "bf16", "f32"], body, [("?",)] * 3)))
    bits = (RANDOM.standard_normal((2, 1000)).astype(np.float32).view(np.uint32) >> 16).astype(np.uint16)
    x, y = (bits.astype(np.uint32) << 16).view(np.float32)
    exact = (x + y).view(np.uint32)
    expected = ((exact + 0x7FFF + ((exact >> 16) & 1)) & 0xFFFF0000).view(np.float32)
    result = np.zeros(1000, np.float32)
    kernels.run("k", bits[0], bits[1], result)
    np.testing.assert_array_equal(result, expected)


def test_division_and_roots_are_exact():
    body = "%q = arith.divf %x0, %x1 : f32\n%a = math.absf %q : f32\n%r = math.sqrt %a : f32\nlinalg.yield %r : f32"
    kernels = Kernels(module(elementwise("k", ["f32"] * 3, body, [("?",)] * 3)))
    # Subnormal numbers are among them.
    x = np.exp(RANDOM.uniform(-100, 80, 5000)).astype(np.float32)
    y = np.exp(RANDOM.uniform(-60, 60, 5000)).astype(np.float32)
    result = np.zeros_like(x)
    kernels.run("k", x, y, result)
    with np.errstate(over="ignore"):
        np.testing.assert_array_equal(result, np.sqrt(x / y))
    assert "div.rn.f32" in kernels.ptx and "sqrt.rn.f32" in kernels.ptx
    assert not any(word in kernels.ptx for word in (".ftz", ".approx", ".full"))


def test_nothing_is_contracted():
    body = "%p = arith.mulf %x0, %x1 : f32\n%s = arith.addf %p, %x0 : f32\nlinalg.yield %s : f32"
    kernels = Kernels(module(elementwise("k", ["f32"] * 3, body, [("?",)] * 3)))
    x, y = RANDOM.standard_normal((2, 4000)).astype(np.float32)
    result = np.zeros_like(x)
    kernels.run("k", x, y, result)
    np.testing.assert_array_equal(result, x * y + x)
    assert "mul.rn.f32" in kernels.ptx and "add.rn.f32" in kernels.ptx


def test_broadcast_transpose_and_booleans():
    """y[i, j] = x[j, i] > row[j], a byte."""
    body = "%c = arith.cmpf ogt, %x0, %x1 : f32\n%b = arith.extui %c : i1 to i8\nlinalg.yield %b : i8"
    maps = [make_map(2, [1, 0]), make_map(2, [1]), make_map(2, [0, 1])]
    kernels = Kernels(module(elementwise("k", ["f32", "f32", "i8"], body, [("?", "?"), ("?",), ("?", "?")], maps)))
    for rows, columns in ((37, 300), (1, 1), (0, 4), (4, 0)):
        x = RANDOM.standard_normal((columns, rows)).astype(np.float32)
        row = RANDOM.standard_normal(columns).astype(np.float32)
        result = np.full((rows, columns), 7, np.int8)
        kernels.run("k", x, row, result)
        np.testing.assert_array_equal(result, x.T > row)


def test_more_than_65535_blocks():
    body = "%i = linalg.index 0 : index\n%v = arith.index_cast %i : index to i32\n%b = arith.trunci %v : i32 to i8\nlinalg.yield %b : i8"
    kernels = Kernels(module(elementwise("k", ["i8"], body, [("?",)])))
    result = np.zeros(256 * 65536 + 300, np.int8)
    kernels.run("k", result)
    np.testing.assert_array_equal(result, np.arange(result.size, dtype=np.int64).astype(np.int8))


SUM = """
func.func private @k(%x: memref<?x?xf32, #g>, %y: memref<?xf32, #g>, %z: memref<?xf32, #g>) attributes {sdx.kernel} {
  %0 = bufferization.to_tensor %x restrict : memref<?x?xf32, #g> to tensor<?x?xf32>
  %zero = arith.constant 0.0 : f32
  %least = arith.constant 0xFF800000 : f32
  %c0 = arith.constant 0 : index
  %n = memref.dim %y, %c0 : memref<?xf32, #g>
  %e = tensor.empty(%n) : tensor<?xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<?xf32>) -> tensor<?xf32>
  %g = linalg.fill ins(%least : f32) outs(%e : tensor<?xf32>) -> tensor<?xf32>
  %s:2 = linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d0)>,
      affine_map<(d0, d1) -> (d0)>], iterator_types = ["parallel", "reduction"]}
      ins(%0 : tensor<?x?xf32>) outs(%f, %g : tensor<?xf32>, tensor<?xf32>) {
  ^bb0(%in: f32, %sum: f32, %max: f32):
    %a = arith.addf %sum, %in : f32
    %m = arith.maximumf %max, %in : f32
    linalg.yield %a, %m : f32, f32
  } -> (tensor<?xf32>, tensor<?xf32>)
  bufferization.materialize_in_destination %s#0 in restrict writable %y : (tensor<?xf32>, memref<?xf32, #g>) -> ()
  bufferization.materialize_in_destination %s#1 in restrict writable %z : (tensor<?xf32>, memref<?xf32, #g>) -> ()
  return
}
"""


@pytest.mark.parametrize("shape", [(300, 70), (1, 1), (5, 0), (0, 3)])
def test_reductions(shape):
    kernels = Kernels(module(SUM))
    x = RANDOM.standard_normal(shape).astype(np.float32)
    if x.size > 1:
        x[shape[0] // 2, 3] = np.nan
    y, z = np.ones((2, shape[0]), np.float32)
    kernels.run("k", x, y, z)
    np.testing.assert_allclose(y, x.sum(1), rtol=1e-4, atol=1e-5)
    np.testing.assert_array_equal(z, x.max(1, initial=-np.inf))


GATHER = """
func.func private @k(%x: memref<?x4xf32, #g>, %i: memref<?xi64, #g>, %y: memref<?x4xf32, #g>) attributes {sdx.kernel} {
  %0 = bufferization.to_tensor %x restrict : memref<?x4xf32, #g> to tensor<?x4xf32>
  %1 = bufferization.to_tensor %i restrict : memref<?xi64, #g> to tensor<?xi64>
  %c0 = arith.constant 0 : index
  %rows = memref.dim %x, %c0 : memref<?x4xf32, #g>
  %n = memref.dim %y, %c0 : memref<?x4xf32, #g>
  %e = tensor.empty(%n) : tensor<?x4xf32>
  %r = linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d0)>, affine_map<(d0, d1) -> (d0, d1)>],
      iterator_types = ["parallel", "parallel"]} ins(%1 : tensor<?xi64>) outs(%e : tensor<?x4xf32>) {
  ^bb0(%in: i64, %out: f32):
    %at = arith.index_cast %in : i64 to index
    %j = linalg.index 1 : index
    %ok = arith.cmpi ult, %at, %rows : index
    sdx.check %ok, "node 'g' (Gather): index {0} is out of range for {1} rows" (%at, %rows)
    %safe = arith.select %ok, %at, %c0 : index
    %v = tensor.extract %0[%safe, %j] : tensor<?x4xf32>
    linalg.yield %v : f32
  } -> tensor<?x4xf32>
  bufferization.materialize_in_destination %r in restrict writable %y : (tensor<?x4xf32>, memref<?x4xf32, #g>) -> ()
  return
}
"""


def test_checked_gather():
    kernels = Kernels(module(GATHER))
    x = RANDOM.standard_normal((9, 4)).astype(np.float32)
    indices = RANDOM.integers(0, 9, 700)
    result = np.zeros((700, 4), np.float32)
    kernels.run("k", x, indices, result)
    np.testing.assert_array_equal(result, x[indices])
    indices[613] = 9
    with pytest.raises(CheckFailed, match=r"node 'g' \(Gather\): index 9 is out of range for 9 rows"):
        kernels.run("k", x, indices, result)
    # A record that says nothing again is of a run that goes well.
    indices[613] = 8
    kernels.run("k", x, indices, result)
    np.testing.assert_array_equal(result, x[indices])


SORT = """
func.func private @k(%x: memref<?x?xf32, #g>, %y: memref<?x?xf32, #g>) attributes {sdx.kernel} {
  %0 = bufferization.to_tensor %x restrict : memref<?x?xf32, #g> to tensor<?x?xf32>
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %m = memref.dim %y, %c0 : memref<?x?xf32, #g>
  %n = memref.dim %y, %c1 : memref<?x?xf32, #g>
  %e = tensor.empty(%m, %n) : tensor<?x?xf32>
  %r = scf.forall (%i) in (%m) shared_outs(%all = %e) -> (tensor<?x?xf32>) {
    %row = tensor.extract_slice %all[%i, 0] [1, %n] [1, 1] : tensor<?x?xf32> to tensor<?xf32>
    %sorted = scf.for %k = %c0 to %n step %c1 iter_args(%state = %row) -> (tensor<?xf32>) {
      %v = tensor.extract %0[%i, %k] : tensor<?x?xf32>
      // Moves larger numbers up by one, and puts this one below them.
      %end:2 = scf.for %j = %c0 to %k step %c1 iter_args(%s = %state, %moving = %v) -> (tensor<?xf32>, f32) {
        %w = tensor.extract %s[%j] : tensor<?xf32>
        %less = arith.cmpf olt, %moving, %w : f32
        %small = arith.select %less, %moving, %w : f32
        %large = arith.select %less, %w, %moving : f32
        %t = tensor.insert %small into %s[%j] : tensor<?xf32>
        scf.yield %t, %large : tensor<?xf32>, f32
      }
      %done = tensor.insert %end#1 into %end#0[%k] : tensor<?xf32>
      scf.yield %done : tensor<?xf32>
    }
    scf.forall.in_parallel {
      tensor.parallel_insert_slice %sorted into %all[%i, 0] [1, %n] [1, 1] : tensor<?xf32> into tensor<?x?xf32>
    }
  } {mapping = [#sdx.task]}
  bufferization.materialize_in_destination %r in restrict writable %y : (tensor<?x?xf32>, memref<?x?xf32, #g>) -> ()
  return
}
"""


def test_tasks_work_in_place():
    kernels = Kernels(module(SORT))
    x = RANDOM.standard_normal((40, 17)).astype(np.float32)
    result = np.zeros_like(x)
    kernels.run("k", x, result)
    np.testing.assert_array_equal(result, np.sort(x, axis=1))
    assert kernels.launches == ["k"]


MEMORY = """
func.func private @k(%x: memref<?x?xf32, #g>, %scale: memref<1xf32, #g>, %y: memref<?x?xf32, #g>) attributes {sdx.kernel} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %m = memref.dim %x, %c0 : memref<?x?xf32, #g>
  %n = memref.dim %x, %c1 : memref<?x?xf32, #g>
  %factor = memref.load %scale[%c0] : memref<1xf32, #g>
  %twice = arith.addf %factor, %factor : f32
  scf.parallel (%i) = (%c0) to (%m) step (%c1) {
    %row = memref.alloc(%n) : memref<?xf32, #g>
    %last = memref.alloc() : memref<4xf32, #g>
    scf.for %k = %c0 to %n step %c1 {
      %v = memref.load %x[%i, %k] : memref<?x?xf32, #g>
      %w = arith.mulf %v, %twice : f32
      memref.store %w, %row[%k] : memref<?xf32, #g>
      memref.store %w, %last[%c1] : memref<4xf32, #g>
    }
    scf.for %k = %c0 to %n step %c1 {
      %to = arith.subi %n, %k : index
      %at = arith.subi %to, %c1 : index
      %v = memref.load %row[%k] : memref<?xf32, #g>
      %l = memref.load %last[%c1] : memref<4xf32, #g>
      %w = arith.addf %v, %l : f32
      memref.store %w, %y[%i, %at] : memref<?x?xf32, #g>
    }
  }
  return
}
"""


def test_memory_of_threads_and_scalars_of_the_device():
    kernels = Kernels(module(MEMORY))
    x = RANDOM.standard_normal((300, 21)).astype(np.float32)
    result = np.zeros_like(x)
    kernels.run("k", x, np.array([1.5], np.float32), result)
    scaled = x * np.float32(3)
    np.testing.assert_array_equal(result, (scaled + scaled[:, -1:])[:, ::-1])
    assert kernels.launches == ["k_0_scalars", "k_1_tasks"]


STRIDED = """
func.func private @k(%x: memref<?x?xf32, strided<[?, ?], offset: ?>, #g>, %y: memref<?x?xf32, #g>) attributes {sdx.kernel} {
  memref.copy %x, %y : memref<?x?xf32, strided<[?, ?], offset: ?>, #g> to memref<?x?xf32, #g>
  return
}
"""


def test_pieces_of_buffers_are_copied():
    kernels = Kernels(module(STRIDED))
    whole = RANDOM.standard_normal((12, 30)).astype(np.float32)
    buffer = kernels.upload(whole)
    buffer.address += (2 * 30 + 1) * 4
    buffer.sizes, buffer.strides = [5, 9], [60, 3]
    result = np.zeros((5, 9), np.float32)
    kernels.run("k", buffer, result)
    np.testing.assert_array_equal(result, whole[2::2, 1::3][:5, :9])


FUNCTIONS = {
    "exp": np.exp,
    "expm1": np.expm1,
    "log": np.log,
    "log1p": np.log1p,
    "sinh": np.sinh,
    "cosh": np.cosh,
    "tanh": np.tanh,
    "asinh": np.arcsinh,
    "acosh": np.arccosh,
    "atanh": np.arctanh,
    "erf": np.vectorize(lambda x: math.erf(float(x)), otypes=[np.longdouble]),
    "sin": np.sin,
    "cos": np.cos,
    "tan": np.tan,
    "asin": np.arcsin,
    "acos": np.arccos,
    "atan": np.arctan,
    "powf": np.power,
    "fmod": np.fmod,
}
SPECIAL = [0.0, -0.0, 1, -1, np.inf, -np.inf, np.nan, 5e-324, -5e-324, 1e-310, 1e308, -1e308, 0.5, -0.5, 2, 3, -2, 1e-20, 710.2, -746, 1e5, 1e22]


def make_arguments(dtype):
    x = [
        SPECIAL,
        RANDOM.standard_normal(1500) * 3,
        RANDOM.uniform(-1, 1, 1500),
        np.exp(RANDOM.uniform(-700, 700, 500)) * RANDOM.choice([-1, 1], 500),
        1 + RANDOM.standard_normal(300) * 1e-3,
        np.arange(1, 300) * np.pi / 4,
    ]
    with np.errstate(over="ignore"):
        return np.concatenate(x).astype(dtype)


@pytest.mark.parametrize("type", ["f32", "f64"])
def test_functions(type):
    """All to 4 units in the last place, signs of zeros, infinity and NaN as numpy has them."""
    bodies = []
    for name in FUNCTIONS:
        operation = "arith.remf" if name == "fmod" else f"math.{name}"
        operands = "%x0, %x1" if name in ("powf", "fmod") else "%x0"
        bodies.append(elementwise(f"k_{name}", [type] * 3, f"%r = {operation} {operands} : {type}\nlinalg.yield %r : {type}", [("?",)] * 3))
    kernels = Kernels(module("\n".join(bodies)))
    x = make_arguments(np.dtype(NUMPY[type]))
    y = RANDOM.permutation(x)
    y[::2] = RANDOM.integers(-5, 6, y[::2].shape)
    # Each special number to the power of each.
    first, second = np.meshgrid(*[x[: len(SPECIAL)]] * 2)
    x, y = np.concatenate([x, first.ravel()]), np.concatenate([y, second.ravel()])
    for name, function in FUNCTIONS.items():
        result = np.zeros_like(x)
        kernels.run(f"k_{name}", x, y, result)
        with np.errstate(all="ignore"):
            operands = (x, y) if name == "fmod" else (x.astype(np.longdouble), y.astype(np.longdouble))
            exact = function(*operands) if name in ("powf", "fmod") else function(operands[0])
            expected = exact.astype(x.dtype)
            np.testing.assert_array_equal(np.isnan(result), np.isnan(expected), name)
            np.testing.assert_array_equal(np.isinf(result), np.isinf(expected), name)
            known = np.isfinite(expected)
            error = np.abs(result[known].astype(np.longdouble) - exact[known]) / np.spacing(np.abs(expected[known]))
            np.testing.assert_array_equal(np.signbit(result)[known], np.signbit(expected)[known], name)
        assert error.max() <= 4, (name, error.max(), x[known][error.argmax()])


def test_f16_is_computed_in_f32():
    body = "%r = math.exp %x0 : f16\nlinalg.yield %r : f16"
    kernels = Kernels(module(elementwise("k", ["f16", "f16"], body, [("?",)] * 2)))
    x = RANDOM.uniform(-20, 11, 3000).astype(np.float16)
    result = np.zeros_like(x)
    kernels.run("k", x, result)
    np.testing.assert_array_equal(result, np.exp(x.astype(np.float64)).astype(np.float16))


@pytest.mark.parametrize(("target", "lines"), [("sm = 80", [".version 7.0", ".target sm_80"]), ('sm = 90, feature = "a"', [".version 8.0", ".target sm_90a"])])
def test_code_is_for_the_target_and_the_same_each_time(target, lines):
    first, second = (Kernels(module(SUM + GATHER.replace("@k", "@other"), target)) for _ in range(2))
    assert all(line in first.ptx for line in lines)
    assert first.ptx == second.ptx


def test_a_function_without_an_expansion_is_refused():
    body = "%r = math.cbrt %x0 : f32\nlinalg.yield %r : f32"
    with pytest.raises(AssertionError, match="'math.cbrt' op is a function that no instruction computes"):
        Kernels(module(elementwise("k", ["f32", "f32"], body, [("?",)] * 2)))
