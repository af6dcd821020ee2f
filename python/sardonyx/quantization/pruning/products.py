"""Rules of products: what is summed over ends there, what is made begins there."""

from __future__ import annotations

import numpy as np

from ..quant_utils import attribute


def _consumer(rules, node, value, axis, weight, weight_axis):
    from .rules import Consumer

    rules.links.join(value, axis, weight, weight_axis)
    rules.consumers.append(Consumer(node, value, axis, weight, weight_axis))


def convolution(rules, node):
    """Without groups inputs end and outputs begin; with groups a group's inputs and outputs go together."""
    value, weight, result = node.input[0], node.input[1], node.output[0]
    if weight not in rules.index.initializers or weight in rules.index.inputs:
        return None
    links, sizes = rules.links, rules.sizes.of
    turned = node.op_type == "ConvTranspose"
    groups = attribute(node, "group", 1)
    outputs, inputs = (1, 0) if turned else (0, 1)  # axes of the weight
    links.join(value, 0, result, 0)
    for name in (value, weight, result):
        for axis in range(2, len(sizes[name])):
            links.keep(name, axis)
    if groups == 1:
        _consumer(rules, node, value, 1, weight, inputs)
        links.join(weight, outputs, result, 1)
    else:
        links.keep(weight, 1)
        links.join(weight, 0, *((value, 1) if turned else (result, 1)))
        taken, made = sizes[value][1], sizes[result][1]
        first = np.arange(groups)
        for name, size in ((value, taken), (result, made)):  # all of a group with its first
            all_places = np.arange(size)
            links.join(name, 1, name, 1, all_places, all_places // (size // groups) * (size // groups))
        links.join(value, 1, result, 1, first * (taken // groups), first * (made // groups))
    if len(node.input) > 2 and node.input[2]:
        links.join(node.input[2], 0, result, 1)
    return [*node.input, result]


def gemm(rules, node):
    value, weight, result = node.input[0], node.input[1], node.output[0]
    links = rules.links
    turned = attribute(node, "transA", 0), attribute(node, "transB", 0)
    rows, inner = (1, 0) if turned[0] else (0, 1)
    weight_inner, columns = (1, 0) if turned[1] else (0, 1)
    links.join(value, rows, result, 0)
    links.join(weight, columns, result, 1)
    if weight in rules.index.initializers and weight not in rules.index.inputs:
        _consumer(rules, node, value, inner, weight, weight_inner)
    else:
        links.keep(value, inner)
        links.keep(weight, weight_inner)
    if len(node.input) > 2 and node.input[2]:
        _broadcast(rules, node.input[2], result)
    return [*node.input, result]


def _broadcast(rules, name, result, but=()):
    sizes = rules.sizes.of
    shift = len(sizes[result]) - len(sizes[name])
    for axis, size in enumerate(sizes[name]):
        if axis in but:
            continue
        if size == sizes[result][axis + shift] and not (size == 1 and rules.sizes.is_one(name, axis)):
            rules.links.join(name, axis, result, axis + shift)
        else:
            rules.links.keep(name, axis)


def matmul(rules, node):
    value, weight, result = node.input[0], node.input[1], node.output[0]
    links = rules.links
    ranks = rules.rank(value), rules.rank(weight)
    if min(ranks) < 2:
        return None
    inner = ranks[0] - 1, ranks[1] - 2
    _broadcast(rules, value, result, (inner[0],))
    _broadcast(rules, weight, result, (inner[1], ranks[1] - 1))
    links.join(weight, ranks[1] - 1, result, rules.rank(result) - 1)
    if ranks[1] == 2 and weight in rules.index.initializers and weight not in rules.index.inputs:
        _consumer(rules, node, value, inner[0], weight, 0)
    else:
        links.keep(value, inner[0])
        links.keep(weight, inner[1])
    return [*node.input, result]


def attention(rules, node):
    """Heads of queries, keys, values and results; several heads of queries to one of keys go together."""
    if len([name for name in node.output if name]) > 1 or len([name for name in node.input[3:] if name]):
        return None
    (query, key, value), result = node.input[:3], node.output[0]
    sizes, links = rules.sizes.of, rules.links
    flat = rules.rank(query) == 3
    axis = 2 if flat else 1
    heads = [attribute(node, "q_num_heads"), attribute(node, "kv_num_heads")] if flat else [sizes[query][1], sizes[key][1]]
    counts = {query: heads[0], key: heads[1], value: heads[1], result: heads[0]}
    for name in (query, key, value, result):
        if flat:
            every = np.arange(sizes[name][2])
            length = sizes[name][2] // counts[name]
            links.join(name, 2, name, 2, every, every // length * length)
        for other in range(rules.rank(name)):
            if other == 0:
                links.join(name, 0, result, 0)
            elif other != axis:
                links.keep(name, other)
    every = np.arange(heads[0])
    first = {name: sizes[name][axis] // count for name, count in counts.items()}
    links.join(query, axis, result, axis, every * first[query], every * first[result])
    for name in (key, value):
        links.join(query, axis, name, axis, every * first[query], every // (heads[0] // heads[1]) * first[name])
    return [query, key, value, result]


TABLE = {
    "Conv": convolution, "ConvTranspose": convolution, "Gemm": gemm, "MatMul": matmul, "Attention": attention,
}  # fmt: skip
