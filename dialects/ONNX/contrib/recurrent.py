"""Recurrent networks."""

from .schema import BYTES, F32, I32, Contrib

OPS = [
    Contrib(
        "DynamicQuantizeLSTM",
        "LSTM of quantized weights [directions, inputs, 4 * hidden]. Before each product "
        "its left side is quantized by its own range: X as a whole, the hidden state in "
        "each step.",
        types={"T": F32, "T1": I32, "T2": BYTES},
        inputs="X: T, W: T2, R: T2, B?: T, sequence_lens?: T1, initial_h?: T, "
        "initial_c?: T, P?: T, W_scale: T, W_zero_point: T2, R_scale: T, R_zero_point: T2",
        outputs="Y?: T, Y_h?: T, Y_c?: T",
        attributes="activation_alpha?: floats, activation_beta?: floats, "
        "activations?: strings, clip?: float, direction: string = forward, "
        "hidden_size?: int, input_forget: int = 0",
        builder="buildDynamicQuantizeLSTM",
    ),
]
