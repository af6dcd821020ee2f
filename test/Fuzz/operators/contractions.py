"""Matrix products and sums of products."""

import numpy as np

from references import Refused


def matmul(g):
    a = g.value(op="MatMul", low=1)
    depth = a.shape[-1]
    columns = g.size()
    kind = g.rng.random()
    if kind < 0.15:
        shape = (depth,)
    elif kind < 0.6 or a.rank < 3:
        shape = (depth, columns)
    else:
        shape = (*g.broadcast(a.shape[:-2]), depth, columns)
    b = g.value(a.dtype, shape=shape, reuse=0.3)
    if g.maybe(0.4):
        b = g.hold(b.array, 1.0)
    g.emit("MatMul", [a, b])


def square(g):
    """A value with itself."""
    a = g.value(op="MatMul", low=2)
    perm = [*range(a.rank - 2), a.rank - 1, a.rank - 2]
    (t,) = g.emit("Transpose", [a], perm=perm)
    g.emit("MatMul", [a, t] if g.maybe() else [t, a])


def gemm(g):
    a = g.value(op="Gemm", rank=2)
    flip_a, flip_b = g.int(0, 1), g.int(0, 1)
    rows, depth = a.shape[::-1] if flip_a else a.shape
    columns = g.size()
    b = g.value(a.dtype, shape=(columns, depth) if flip_b else (depth, columns), reuse=0.4)
    c = None
    if g.maybe(0.7):
        c = g.new(a.dtype, g.pick([(rows, columns), (columns,), (1, columns), (rows, 1), (1,), ()]), const=0.6)
    real = a.dtype.kind not in "iu"

    def exact(*arrays):  # the reference multiplies integers by alpha in floating point
        return real or all(np.abs(v.astype(np.float64)).max(initial=0) < 2**20 for v in arrays)

    g.emit(
        "Gemm",
        [a, b, c],
        valid=exact,
        transA=flip_a,
        transB=flip_b,
        alpha=g.pick([None, 0.5, 2.0]) if real else None,
        beta=g.pick([None, 0.25, 0.0]) if real else None,
    )


EQUATIONS = """ij,jk->ik ij,jk ij,kj->ik bij,bjk->bik bij,bkj->bik i,i-> i,j->ij ij->ji ij-> ii->i ii ij->i
 bhid,bhjd->bhij bhij,bhjd->bhid bij,jk->bik ij,ij->ij ij,ij->i ijk,jil->kl a,a,a->a
 ab,bc,cd->ad ...ij,...jk->...ik ...i->... i...,j->...ij bijc,bijc->bc ij,jk,k->i bi,bo,oij->bj
 xyz->zxy iij->j""".split()


def einsum(g):
    equation = g.pick(EQUATIONS)
    sizes = {c: g.pick([1, 2, 3, 4, 5, 8, 17]) for c in "abcdhijklboxyz"}
    dots = g.shape(g.int(0, 2), high=2)
    dtype = g.dtype("Einsum")
    inputs = []
    for term in equation.split("->")[0].split(","):
        shape = []
        for part in term.replace("...", "."):
            shape += dots if part == "." else [sizes[part]]
        if np.prod(shape) > 20000:
            raise Refused("large")
        inputs.append(g.value(dtype, shape=shape, reuse=0.3))
    g.emit("Einsum", inputs, equation=equation if g.maybe(0.8) else equation.replace(",", " , "))


def matmul_integer(g):
    a = g.value(g.pick([np.uint8, np.uint8, np.int8]), low=2, high=3)
    b = g.new(g.pick([np.uint8, np.int8]), (a.shape[-1], g.size()), const=0.7)
    zero_a = g.hold(g.data(a.dtype, (), low=0, high=9), 0.8, keep=True) if g.maybe() else None
    zero_b = None
    if g.maybe(0.4):
        zero_b = g.hold(g.data(b.dtype, g.pick([(), (b.shape[1],)]), low=0, high=9), 0.8, keep=True)
    g.emit("MatMulInteger", [a, b, zero_a, zero_b])


def det(g):
    size = g.int(1, 6)
    x = g.new(g.pick([np.float32, np.float64]), (*g.shape(g.int(0, 2)), size, size))
    g.emit("Det", [x])


def attention(g):
    if not g.has("Attention"):
        raise Refused("Attention")
    batch, heads, rows, keys, size = (
        g.int(1, 3),
        g.pick([1, 2, 4]),
        g.pick([1, 3, 8, 17]),
        g.pick([1, 4, 17, 33]),
        g.pick([4, 8, 16]),
    )
    groups = g.pick([d for d in (1, 2, 4) if heads % d == 0])
    dtype = g.pick([np.float32, np.float32, np.float32, np.float16])
    flat = g.maybe(0.3)

    def make(count, length, width):
        shape = (batch, length, count * width) if flat else (batch, count, length, width)
        return g.new(dtype, shape, const=0.1)

    value_size = g.pick([size, size, 8])
    inputs = [make(heads, rows, size), make(groups, keys, size), make(groups, keys, value_size)]
    if g.maybe(0.4):
        if g.maybe(0.4):
            inputs.append(g.new(bool, (rows, keys)))
        else:
            inputs.append(g.new(dtype, g.pick([(rows, keys), (batch, 1, rows, keys), (batch, heads, rows, keys)])))

    def fits(q, k, *_):
        """Half precision holds the products: where they become infinite hangs on the order of the steps."""
        largest = np.abs(q).max(initial=0) * np.abs(k).max(initial=0)
        return q.dtype != np.float16 or bool(largest * size < 30000.0)

    counts = {"q_num_heads": heads, "kv_num_heads": groups} if flat else {}
    g.emit(
        "Attention",
        inputs,
        valid=fits,
        is_causal=g.pick([None, 0, 1]),
        scale=g.pick([None, 0.25]),
        softcap=g.pick([None, None, 2.0]),
        **counts,
    )


OPERATORS = [matmul, matmul, matmul, matmul, square, gemm, gemm, einsum, einsum, matmul_integer, det, attention]
