"""Nodes that stay float by their place in the graph, whatever samples say."""

from __future__ import annotations

from ..graph_index import GraphIndex

PASSING = {"Reshape", "Transpose", "Squeeze", "Unsqueeze", "Flatten", "Identity", "Expand", "Dropout"}
JOINING = {"Add", "Where"}
_SENSITIVE = {"Softmax", "LogSoftmax", "Exp", "Greater", "GreaterOrEqual", "Less", "LessOrEqual", "Equal"}


def mask_nodes(graph) -> dict[str, str]:
    """{node: reason} of each Add or Where whose sum goes into Softmax, Exp or a comparison, and of what reads it.

    A mask of -10000 takes all steps of 8 bits, and the scores beside it get one. Further Adds and Wheres, Reshape and
    the like between the two stay float as well. Nodes must have names.
    """
    index = GraphIndex(graph)
    found: dict[str, str] = {}
    for node in graph.node:
        if node.op_type not in JOINING:
            continue
        for path in _paths(index, node.output[0]):
            found.setdefault(node.name, f"{node.op_type} into {path[-1].op_type}")
            for reader in path:
                found.setdefault(reader.name, f"reads '{node.name}', {node.op_type} into {path[-1].op_type}")
    return found


def _paths(index, name):
    """Chains of readers of a value that pass it on, each up to a sensitive one."""
    for reader in index.readers.get(name, []):
        if reader.op_type in _SENSITIVE:
            yield [reader]
        elif reader.op_type in JOINING or (reader.op_type in PASSING and reader.input[0] == name):
            for path in _paths(index, reader.output[0]):
                yield [reader, *path]
