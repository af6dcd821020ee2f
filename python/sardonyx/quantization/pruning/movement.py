"""Rules of operators that move numbers: offsets, permutations, and sizes that are split and merged."""

from __future__ import annotations

import numpy as np

from ..quant_utils import attribute
from .sizes import axes_of


def transpose(rules, node):
    value, result = node.input[0], node.output[0]
    rank = rules.rank(value)
    for axis, source in enumerate(attribute(node, "perm") or reversed(range(rank))):
        rules.links.join(value, source, result, axis)
    return [value, result]


def concat(rules, node):
    result = node.output[0]
    along = attribute(node, "axis") % rules.rank(result)
    start = 0
    for name in node.input:
        for axis in range(rules.rank(result)):
            if axis != along:
                rules.links.join(name, axis, result, axis)
        size = rules.sizes.of[name][along]
        rules.links.join(name, along, result, along, None, np.arange(start, start + size))
        start += size
    return [*node.input, result]


def split(rules, node):
    value = node.input[0]
    along = attribute(node, "axis", 0) % rules.rank(value)
    if len(node.input) > 1 and node.input[1] and node.input[1] not in rules.constants:
        return None
    start = 0
    for name in node.output:
        for axis in range(rules.rank(value)):
            if axis != along:
                rules.links.join(value, axis, name, axis)
        size = rules.sizes.of[name][along]
        rules.links.join(value, along, name, along, np.arange(start, start + size))
        start += size
    return [value, *node.output]


def slice_ends(node, constants, sizes):
    """{axis: (start, step)} of a Slice of constant ends; None where they are computed."""
    rank = len(sizes)
    if attribute(node, "starts") is not None:
        starts, steps = attribute(node, "starts"), None
        axes = attribute(node, "axes") or list(range(len(starts)))
    else:
        names = [*node.input[1:], *[""] * 4][:4]
        if any(name and name not in constants for name in names):
            return None
        starts, axes = constants[names[0]], constants[names[2]] if names[2] else np.arange(len(constants[names[0]]))
        steps = constants[names[3]] if names[3] else None
    found = {}
    for place, axis in enumerate(axes):
        axis, step, start = int(axis) % rank, int(steps[place]) if steps is not None else 1, int(starts[place])
        start += sizes[axis] if start < 0 else 0
        found[axis] = min(max(start, 0), sizes[axis] - (step < 0)), step
    return found


def slicing(rules, node):
    value, result = node.input[0], node.output[0]
    sizes = rules.sizes.of
    ends = slice_ends(node, rules.constants, sizes[value])
    if ends is None:
        return None
    for axis in range(rules.rank(value)):
        start, step = ends.get(axis, (0, 1))
        count = sizes[result][axis]
        if step != 1:
            rules.links.keep(value, axis)
            rules.links.keep(result, axis)
        else:
            rules.links.join(value, axis, result, axis, np.arange(start, start + count))
    return [value, result]


def pad(rules, node):
    """Places that are added stay, and so do all of an axis whose ends are repeated."""
    value, result = node.input[0], node.output[0]
    rank = rules.rank(value)
    pads = attribute(node, "pads")
    if pads is None:
        pads = rules.constants.get(node.input[1])
    if pads is None or len(node.input) > 3 and node.input[3]:
        return None
    plain = attribute(node, "mode", b"constant") in (b"constant", "constant")
    for axis in range(rank):
        before, after = int(pads[axis]), int(pads[axis + rank])
        size = rules.sizes.of[value][axis]
        if min(before, after) < 0 or ((before or after) and not plain):
            rules.links.keep(value, axis)
            rules.links.keep(result, axis)
            continue
        rules.links.join(value, axis, result, axis, None, np.arange(before, before + size))
        added = np.r_[0:before, before + size : before + size + after]
        rules.links.keep(result, axis, added)
    return [value, result]


def gather(rules, node):
    (value, indices), result = node.input, node.output[0]
    along = attribute(node, "axis", 0) % rules.rank(value)
    count = rules.rank(indices)
    rules.links.keep(value, along)
    for axis in range(rules.rank(value)):
        if axis != along:
            rules.links.join(value, axis, result, axis if axis < along else axis + count - 1)
    for axis in range(count):
        rules.links.join(indices, axis, result, along + axis)
    return [value, indices, result]


def squeeze(rules, node):
    value, result = node.input[0], node.output[0]
    longer, shorter = (value, result) if node.op_type == "Squeeze" else (result, value)
    axes = axes_of(node, rules.constants, rules.rank(longer))
    if axes is None:
        axes = [axis for axis, size in enumerate(rules.sizes.of[longer]) if size == 1]
    rest = [axis for axis in range(rules.rank(longer)) if axis not in axes]
    for place, axis in enumerate(rest):
        rules.links.join(longer, axis, shorter, place)
    for axis in axes:
        rules.links.keep(longer, axis)
    return [value, result]


def resize(rules, node):
    value, result = node.input[0], node.output[0]
    for axis, size in enumerate(rules.sizes.of[value]):
        if axis < 2 and size == rules.sizes.of[result][axis]:
            rules.links.join(value, axis, result, axis)
        else:
            rules.links.keep(value, axis)
            rules.links.keep(result, axis)
    return [value, result]


def expand(rules, node):
    from .rules import elementwise

    value, result = node.input[0], node.output[0]
    shift = rules.rank(result) - rules.rank(value)
    elementwise_only = type(node)(op_type=node.op_type, input=[value], output=[result])
    elementwise(rules, elementwise_only)
    for axis in range(rules.rank(result)):
        if axis < shift or rules.sizes.of[value][axis - shift] != rules.sizes.of[result][axis]:
            rules.links.keep(result, axis)
    return [value, result]


def shape(rules, node):
    """Sizes that are read stay; those that only Gathers of constant places read are known."""
    value, result = node.input[0], node.output[0]
    rank = rules.rank(value)
    read = set(range(attribute(node, "start", 0) % max(rank, 1), rank))
    readers = rules.index.readers.get(result, [])
    chosen = [rules.constants.get(reader.input[1]) for reader in readers if reader.op_type == "Gather"]
    plain = attribute(node, "start", 0) == 0 and attribute(node, "end") is None
    if plain and result not in rules.index.outputs and len(chosen) == len(readers) and all(c is not None for c in chosen):
        read = {int(place) % rank for places in chosen for place in np.atleast_1d(places).ravel()}
    for axis in read:
        rules.links.keep(value, axis)
    return [value]


def factors(before, after):
    """Pairs of lists of axes whose products are equal, as short as they can be; None where there are no such."""
    pairs = []
    place, other = 0, 0
    while place < len(before) or other < len(after):
        first, second = [], []
        sizes = [1, 1]
        if place < len(before):
            first.append(place)
            sizes[0] = before[place]
            place += 1
        if other < len(after):
            second.append(other)
            sizes[1] = after[other]
            other += 1
        while sizes[0] != sizes[1]:
            if sizes[0] < sizes[1] and place < len(before):
                sizes[0] *= before[place]
                first.append(place)
                place += 1
            elif sizes[0] > sizes[1] and other < len(after):
                sizes[1] *= after[other]
                second.append(other)
                other += 1
            else:
                return None
        pairs.append((first, second))
    return pairs


def reshape(rules, node):
    """Axes that stay are joined. Where one is split, or some are merged, one of several goes in whole places.

    Which one is told by `choices`; the others stay.
    """
    value, result = node.input[0], node.output[0]
    sizes = rules.sizes.of
    if 0 in sizes[value]:
        return None
    pairs = factors(sizes[value], sizes[result])
    if pairs is None:
        return None
    for place, pair in enumerate(pairs):
        sides = []
        for name, axes in zip((value, result), pair):
            ones = [axis for axis in axes if sizes[name][axis] == 1 and rules.sizes.is_one(name, axis)]
            for axis in ones if len(ones) < len(axes) or len(axes) != 1 else ():
                rules.links.keep(name, axis)
            sides.append((name, [axis for axis in axes if axis not in ones] if len(axes) > 1 else axes))
        _join_block(rules, (node.name, place), *sides)
    return [value, result]


def _join_block(rules, key, one, several):
    """Joins the axes of two values that have equally many places together."""
    from .rules import block_places

    if len(one[1]) != 1:
        one, several = several, one
    (name, axes), (other, many) = one, several
    sizes = rules.sizes.of
    if len(axes) == 1 and len(many) == 1:
        rules.links.join(name, axes[0], other, many[0])
        return
    if len(axes) != 1 or not many:
        for each, places in (one, several):
            for axis in places:
                rules.links.keep(each, axis)
        return
    rules.blocks.append((key, other, many))
    if rules.choices is None:
        return
    chosen = rules.choices[key]
    for place, axis in enumerate(many):
        if place == chosen:
            rules.links.join(name, axes[0], other, axis, None, block_places([sizes[other][each] for each in many], place))
        else:
            rules.links.keep(other, axis)
    if chosen is None:
        rules.links.keep(name, axes[0])


TABLE = {
    "Transpose": transpose, "Concat": concat, "Split": split, "Slice": slicing, "Pad": pad, "Gather": gather,
    "Squeeze": squeeze, "Unsqueeze": squeeze, "Resize": resize, "Upsample": resize, "Expand": expand, "Shape": shape,
    "Reshape": reshape, "Flatten": reshape,
}  # fmt: skip
