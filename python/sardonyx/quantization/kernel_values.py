"""Values that a kernel makes and uses up by itself: rounding them costs accuracy and time, and saves no memory."""

from __future__ import annotations

from .graph_index import GraphIndex

WITHIN = "within the kernel of what it reads"  # why a node is float

# Operators that compute each number of a result from one number of each input.
ELEMENTWISE = {
    "Abs", "Add", "BatchNormalization", "BiasGelu", "Ceil", "Celu", "Clip", "Cos", "Div", "Elu", "Erf", "Exp", "FastGelu",
    "Floor", "Gelu", "HardSigmoid", "HardSwish", "LeakyRelu", "Log", "Max", "Min", "Mish", "Mul", "Neg", "PRelu", "Pow",
    "QuickGelu", "Reciprocal", "Relu", "Round", "Selu", "Sigmoid", "Sin", "Softplus", "Softsign", "Sqrt", "Sub", "Swish",
    "Tanh", "ThresholdedRelu", "Where",
}  # fmt: skip
# What hands numbers on, and is faster with bytes.
_MOVING = {
    "Concat", "DepthToSpace", "Dropout", "Expand", "Flatten", "Gather", "GatherElements", "GatherND", "Identity", "MaxPool",
    "Pad", "Reshape", "Resize", "Slice", "SpaceToDepth", "Split", "Squeeze", "Tile", "Transpose", "Unsqueeze", "Upsample",
}  # fmt: skip
# Of many instructions, and with bytes a table.
_LONG = {
    "BiasGelu", "Celu", "Cos", "Elu", "Erf", "Exp", "FastGelu", "Gelu", "Log", "Mish", "Pow", "QuickGelu", "Selu", "Sigmoid",
    "Sin", "Softplus", "Swish", "Tanh",
}  # fmt: skip
_REMOVABLE = {"Clip", "Relu"}  # the range of the bytes that they make does their work


def values_within_kernels(index: GraphIndex) -> set[str]:
    """Names of values between a node and the elementwise nodes after it, and of constants that only these read.

    An elementwise node is part of the kernel of that of its inputs which is made last; the others are values in memory.
    What a long function is computed from is not among them: of bytes the kernel computes it by a table.
    """
    graph = index.graph
    kernel: dict[str, int] = {}  # {value: place of the node that begins the kernel}
    for place, node in enumerate(graph.node):
        if node.op_type in _MOVING:
            continue
        begin = place
        if node.op_type in ELEMENTWISE:
            begin = max((kernel[name] for name in node.input if _passes(name, index, kernel)), default=place)
        kernel.update((name, begin) for name in node.output if name)

    def is_within(name):
        readers = index.readers.get(name, [])
        if not _passes(name, index, kernel) or any(kernel[node.output[0]] != kernel[name] for node in readers):
            return False
        removable = len(readers) == 1 and readers[0].op_type in _REMOVABLE
        return not removable or is_within(readers[0].output[0])

    within = {name for name in kernel if is_within(name)}
    for node in graph.node:
        if node.op_type in _LONG:
            within -= _ends_of_table(node, index)
    for name in (*index.initializers, *index.inputs):
        readers = index.readers.get(name, [])
        if readers and all(node.op_type in ELEMENTWISE for node in readers):
            within.add(name)
    return within


def _ends_of_table(node, index) -> set[str]:
    """The values that must be bytes for a long function to be a table: what it is computed from, and, where it meets
    other values before it is rounded, what meets them."""
    source = node.input[0]
    while True:
        maker = index.producers.get(source)
        moving = _varying(maker, index) if maker is not None and maker.op_type in ELEMENTWISE else []
        if len(moving) != 1 or any(name and name not in moving and not _is_scalar(name, index) for name in maker.input):
            break
        source = moving[0]
    of_source, waiting = {source}, [source]
    while waiting:
        for reader in _elementwise_readers(waiting.pop(), index):
            if reader.output[0] not in of_source and of_source.issuperset(_varying(reader, index)):
                of_source.add(reader.output[0])
                waiting.append(reader.output[0])
    met = {
        name for name in of_source
        if any(not of_source.issuperset(_varying(reader, index)) for reader in _elementwise_readers(name, index))
    }  # fmt: skip
    return {source, *met}


def _elementwise_readers(name, index):
    return [node for node in index.readers.get(name, []) if node.op_type in ELEMENTWISE]


def _varying(node, index) -> list[str]:
    return [name for name in dict.fromkeys(node.input) if name and name not in index.initializers]


def _is_scalar(name, index) -> bool:
    tensor = index.initializers.get(name)
    return tensor is not None and all(size == 1 for size in tensor.dims)


def _passes(name, index, kernel) -> bool:
    """Whether a value is made by a kernel, and read by elementwise nodes alone."""
    readers = index.readers.get(name, [])
    return (
        name in kernel
        and name not in index.outputs
        and bool(readers)
        and all(node.op_type in ELEMENTWISE for node in readers)
    )
