"""Sessions from the text of a graph."""

from onnx import parser

import sardonyx as sdx


def make(model):
    options = sdx.SessionOptions()
    options.cache, options.intra_op_num_threads = False, 1
    return sdx.InferenceSession(model.SerializeToString(), options)


def load(graph, opset=22):
    return make(parser.parse_model(f'<ir_version: 10, opset_import: ["" : {opset}]> m {graph}'))


def run(session, *feed):
    """The outputs for inputs in the model's order."""
    return session.run(None, {a.name: v for a, v in zip(session.get_inputs(), feed)})
