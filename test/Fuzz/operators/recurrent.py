"""LSTM, GRU and RNN."""

import numpy as np

GATES = {"LSTM": 4, "GRU": 3, "RNN": 1}
# Without Softplus: onnxruntime's overflows where e^x does, and the reference has none.
ACTIVATIONS = ["Relu", "Tanh", "Sigmoid", "Softsign", "HardSigmoid", "Elu"]


def recurrent(g):
    op = g.pick(["LSTM", "GRU", "RNN"])
    gates = GATES[op]
    steps, batch, width, size = g.int(1, 6), g.pick([1, 2, 3, 8]), g.pick([1, 3, 8, 17]), g.pick([1, 4, 5, 16, 17])
    direction = g.pick(["forward", "reverse", "bidirectional"])
    ways = 2 if direction == "bidirectional" else 1
    dtype = g.pick([np.float32] * 5 + [np.float64])
    layout = 0  # onnxruntime has no other
    x = g.value(dtype, shape=(steps, batch, width), reuse=0.5)

    def weights(*shape):
        return g.hold((g.rng.standard_normal(shape) * 0.5).astype(dtype), 0.8)

    inputs = [x, weights(ways, gates * size, width), weights(ways, gates * size, size)]
    optional = [
        lambda: weights(ways, 2 * gates * size),
        lambda: g.hold(g.rng.integers(1, steps + 1, batch).astype(np.int32), 0.5, keep=True),
        lambda: g.new(dtype, (ways, batch, size)),
    ]
    if op == "LSTM":
        optional += [lambda: g.new(dtype, (ways, batch, size)), lambda: weights(ways, 3 * size)]
    inputs += [make() if g.maybe() else None for make in optional]
    count = {"LSTM": 3, "GRU": 2, "RNN": 1}[op]
    # onnxruntime has no recurrent layers of doubles, and the reference leaves activations out.
    chosen = g.maybe(0.3) and dtype == np.float32
    activations = [g.pick(ACTIVATIONS) for _ in range(count * ways)] if chosen else None
    if op != "LSTM" and activations:
        activations = activations[: ways * (2 if op == "GRU" else 1)]
    outputs = [g.maybe(0.8), g.maybe(0.6), op == "LSTM" and g.maybe(0.5)][: 3 if op == "LSTM" else 2]
    if not any(outputs):
        outputs[0] = True
    while not outputs[-1]:
        outputs.pop()

    def valid(v, w, r, *rest):
        # onnx.reference broadcasts initial states; onnxruntime multiplies no state that is not given, and
        # its Relu makes 0 of what is no number. Without a step it gives zeros as the last state, not the first.
        sound = len(v) > 0 and all(np.isfinite(a).all() for a in (v, w, r, *rest) if a.dtype.kind == "f")
        return sound and all(a.shape[1] == v.shape[1] for a in rest if a.ndim == 3)

    g.emit(
        op,
        inputs,
        outputs=outputs,
        valid=valid,
        hidden_size=size,
        direction=direction,
        activations=activations,
        layout=layout or None,
        clip=g.pick([None, None, 0.5]),
        linear_before_reset=g.pick([None, 1]) if op == "GRU" else None,
        input_forget=g.pick([None, None, 1]) if op == "LSTM" else None,
    )


OPERATORS = [recurrent]
