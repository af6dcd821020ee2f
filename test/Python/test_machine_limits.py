"""What code is kept from on a machine that has it: tile registers, and products of f32 by them."""

import pytest
import sardonyx
from onnx import parser


def target(**options):
    """What a module says of its machine, a processor with AMX."""
    model = parser.parse_model('<ir_version: 10, opset_import: ["": 21]> m (float[n] x) => (float[n] y) { y = Relu (x) }')
    session = sardonyx.SessionOptions()
    session.cpu = "sapphirerapids"
    session.intra_op_num_threads = 1
    for name, value in options.items():
        setattr(session, name, value)
    text = sardonyx.compile(model, to="import", options=session)
    return text[text.index("#cpu.target<") : text.index("\n", text.index("#cpu.target<"))]


def test_all_that_the_machine_has():
    text = target(split_floats=True)
    assert "f32 = amx_bf16x6" in text and "int8 = amx" in text and "bf16 = amx" in text


@pytest.mark.parametrize("options", [{"numerics": "exact"}, {"split_floats": False}])
def test_without_split_floats(options):
    text = target(**options)
    assert "f32 =" not in text and "int8 = amx" in text and "bf16 = amx" in text


def test_without_tile_registers():
    text = target(split_floats=True, check_bounds=True)
    assert "amx" not in text and "int8 = vnni" in text and "bf16 = dot" in text
