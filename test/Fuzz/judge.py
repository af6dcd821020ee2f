"""Whether an answer is right.

The expected values come from stepping through the nodes. A value that differs by more than
rounding is looked at again: the steps are repeated with every intermediate value moved by some units
in the last place, and an answer within the spread of that is right. Comparisons, roundings and
selections of nearly equal numbers may so go either way; nothing else may.
"""

import numpy as np

from references import EPSILON, FLOAT, SMALL, is_float, scale_of
from values import Items, Map, Maps, Maybe, held

SPREADS = 24
POLE = 1e5
# Here onnxruntime computes with single precision what is double; the normalisations are so defined
# (stash_type), and the constants of some activations are attributes, which are single; onnx.reference's Erf is.
SINGLE = set(
    """Resize GroupNormalization LayerNormalization RMSNormalization Gelu QuickGelu FastGelu BiasGelu HardSwish Shrink Erf Adam Adagrad Momentum
 HannWindow HammingWindow BlackmanWindow SkipLayerNormalization SimplifiedLayerNormalization FlexAttention TreeEnsemble GridSample AffineGrid DeformConv""".split()
)


def near(got, want, loose):
    """A mask of the elements that agree up to rounding. `loose` says what the graph has that makes more of it:
    "sums", "single" precision, "quantised" numbers, "slopes"."""
    if not is_float(want.dtype):
        if "quantised" in loose and want.dtype.itemsize == 1:
            return np.abs(got.astype(int) - want.astype(int)) <= 1
        # A slope that differences give is an integer up to rounding only.
        if "slopes" in loose and want.dtype.kind in "iu":
            return np.abs(got.astype(float) - want.astype(float)) <= 1
        return got == want
    if want.dtype.itemsize == 1:
        return close(got.astype(np.float64), want.astype(np.float64), 0.26, 1e-2)
    x, y = got.astype(np.float64), want.astype(np.float64)
    if want.dtype == FLOAT:
        x, y = (np.where(np.abs(v) > 3.3e38, np.sign(v) * np.inf, v) for v in (x, y))
    # For double both references leave a few digits to chance: attributes are single precision.
    if "slopes" in loose:
        return close(x, y, 1e-4, 1e-4 * max(scale_of(y), 1e-2))
    epsilon = max(EPSILON[want.dtype], EPSILON[FLOAT] if "single" in loose else 2.0**-44)
    # Elements of a sum or product are as exact as the largest term, not as the result; for the activations
    # among SINGLE that is one that is near to 1.
    scale = scale_of(y)
    absolute = (64 if loose else 16) * epsilon * max(min(scale, 1e30), 0.1 if "single" in loose else 0)
    if want.dtype in SMALL:
        absolute = max(4 * epsilon * min(scale, 1e30), 1e-7)
    else:
        absolute = max(absolute, 1e-38)
    relative = (6 if want.dtype in SMALL else 512 if loose else 128) * epsilon
    return close(x, y, relative, absolute)


def close(x, y, relative, absolute):
    with np.errstate(all="ignore"):
        return (x == y) | (np.isnan(x) & np.isnan(y)) | (np.abs(x - y) <= relative * np.abs(y) + absolute)


def moved(array, rng, ulps=4, quantised=False):
    """A value that rounding may have made of it, rounding to bytes included where it is `quantised`."""
    if quantised and array.dtype.itemsize == 1 and array.dtype.kind in "iu":
        limits = np.iinfo(array.dtype)
        return np.clip(array.astype(int) + rng.integers(-1, 2, array.shape), limits.min, limits.max).astype(array.dtype)
    epsilon = EPSILON.get(array.dtype)
    if epsilon is None or not array.size:
        return array
    # No float16 here: the noise itself is computed in double precision.
    noise = 1 + rng.uniform(-ulps, ulps, array.shape) * epsilon
    with np.errstate(all="ignore"):
        return (array.astype(np.float64) * noise).astype(array.dtype)


def differences_of_items(got, want, spread, loose):
    if not isinstance(got, list) or len(got) != len(want):
        return f"{len(got) if isinstance(got, list) else 'no'} items, expected {len(want)}"
    for i, (item, wanted) in enumerate(zip(got, want)):

        def moved_items(i=i):
            return [None if o is None or len(o) != len(want) else o[i] for o in spread()]

        text = differences(item, wanted, moved_items, loose)
        if text:
            return f"item {i}: {text}"
    return None


def differences_of_maps(got, want, spread, loose):
    if not isinstance(got, dict) or set(got) != set(want.keys):
        return f"keys {list(got)[:9] if isinstance(got, dict) else 'of nothing'}, expected {want.keys[:9]}"
    got, want = held(got, want).in_order(), want.in_order()
    return differences(got.array, want.array, lambda: [o and o.in_order().array for o in spread()], loose)


def differences(got, want, spread, loose):
    """Why `got` isn't `want`, None if it is. `spread()` gives the same value after moves."""
    if isinstance(want, Maybe):
        if (got is None) != (want.value is None):
            return f"{'nothing' if got is None else 'something'}, expected {'something' if got is None else 'nothing'}"
        return got is not None and differences(got, want.value, lambda: [o and o.value for o in spread()], loose)
    if isinstance(want, Map):
        return differences_of_maps(got, want, spread, loose)
    if isinstance(want, (Items, Maps)):
        return differences_of_items(got, want, spread, loose)
    if not isinstance(got, np.ndarray):
        return f"a {type(got).__name__}, expected a tensor"
    if got.dtype != want.dtype:
        return f"type {got.dtype}, expected {want.dtype}"
    if got.shape != want.shape:
        others = spread()
        if any(o is None or o.shape != want.shape for o in others):
            return None  # how many there are hangs on rounding
        return f"shape {got.shape}, expected {want.shape}"
    bad = ~near(got, want, loose)
    if not bad.any():
        return None
    others = spread()
    if any(o is None or o.shape != want.shape for o in others):
        return None
    if is_float(want.dtype):
        with np.errstate(all="ignore"):
            y = want.astype(np.float64)
            all_of = np.stack([o.astype(np.float64) for o in others])
            reach = np.abs(all_of - y).max(0)
            unstable = ~np.isfinite(all_of).all(0) | ~np.isfinite(y)
            settled = (all_of == y).all(0) | (np.isnan(all_of).all(0) & np.isnan(y))
            x = got.astype(np.float64)
            excused = (np.abs(x - y) <= 8 * reach) | (unstable & ~settled)
            # Beside a pole: large numbers of both signs, so that their divisor may be 0, too.
            pole = (all_of.min(0) < -POLE) & (all_of.max(0) > POLE)
            excused |= pole & ~np.isfinite(x)
            # An integer that flips under a move is one that may flip.
            bad &= ~excused
    else:
        bad &= (np.stack(others) == want).all(0)
    if not bad.any():
        return None
    at = tuple(int(i) for i in np.argwhere(bad)[0])
    return f"{int(bad.sum())} of {bad.size} elements differ; at {list(at)}: {got[at]}, expected {want[at]}"
