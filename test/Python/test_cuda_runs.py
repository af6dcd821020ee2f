"""How sessions on a CUDA device run: as graphs, at what cost, and how exactly."""

import pytest
from cuda_scripts import script  # noqa: F401

import sardonyx as sdx

GRAPHS = """
    rng = np.random.default_rng(5)
    options = {"enable_cuda_graph": "%d"}
    session = load(providers=[("CUDAExecutionProvider", options)])
    for round in range(6):
        for rows in (5, 1, 3):
            x = rng.standard_normal((rows, 8), dtype=np.float32)
            check(session.run(None, {"x": x, "w": W}), x)
    # Inputs and results on the device, whose addresses are others each time.
    values = []
    for round in range(6):
        x = rng.standard_normal((5, 8), dtype=np.float32)
        binding = session.io_binding()
        binding.bind_ortvalue_input("x", sdx.OrtValue.ortvalue_from_numpy(x, "cuda"))
        binding.bind_cpu_input("w", W)
        for name in "yz":
            binding.bind_output(name, "cuda")
        session.run_with_iobinding(binding)
        values.append((binding.get_outputs(), x))
    for outputs, x in values:
        check([output.numpy() for output in outputs], x)
"""


def test_runs_that_repeat_are_graphs(script):
    script(GRAPHS % 1)
    script(GRAPHS % 0, SARDONYX_FAKECUDA_FAIL="cuGraphCreate:1")
    # A run has six kernels. They are launched once for each of three shapes, and perhaps again for the first, which found no
    # memory yet.
    script("\n".join(GRAPHS.splitlines()[:8]) % 1, SARDONYX_FAKECUDA_FAIL="cuLaunchKernelEx:25:700")


def test_what_a_run_costs(script):
    script("""
        session = load(providers=CUDA[:1])
        assert session.device_use is None
        for round in range(3):
            check(session.run(None, FEEDS))
        use = session.device_use
        # Two inputs and two results.
        assert use["copies"] == 4 and use["copied_bytes"] == 4 * (5 * 8 + 8 * 4 + 5 * 4 + 5 * 8), use
        assert use["submissions"] == 1 and use["waits"] == 1 and use["kernels"] >= 2, use
        assert 0 < use["host_seconds"] < 1 and use["memory_bytes"] > 0, use
        assert load(providers=CUDA[1:]).device_use is None
    """)


def test_a_graph_that_is_refused(script):
    script(GRAPHS % 1, says="cuGraphInstantiateWithFlags fails", SARDONYX_FAKECUDA_FAIL="cuGraphInstantiateWithFlags:1")


def test_precision(script):
    """Operands are rounded to what the option says, sums are not; errors are those of the rounded operands."""
    script("""
        import onnx
        import onnxruntime as ort
        rng = np.random.default_rng(11)
        loaded = onnx.load_from_string(model(
            "m (float[N,70] x, float[2,12,9,9] image) => (float[N,40] y, float[2,16,5,5] z) "
            "<float[70,96] v, float[40,96] w, float[16,12,3,3] f> { "
            "h = MatMul(x, v)  r = Relu(h)  s = Add(r, h)  y = Gemm<transB = 1>(s, w) "
            "c = Conv<pads = [1, 1, 1, 1], strides = [2, 2]>(image, f)  z = Tanh(c) }"))
        shapes = {"v": (70, 96), "w": (40, 96), "f": (16, 12, 3, 3)}
        del loaded.graph.initializer[:]
        for name, shape in shapes.items():
            values = rng.standard_normal(shape).astype(np.float32) / 8
            loaded.graph.initializer.append(onnx.numpy_helper.from_array(values, name))
        source = loaded.SerializeToString()
        feeds = {"x": rng.standard_normal((19, 70)).astype(np.float32), "image": rng.standard_normal((2, 12, 9, 9)).astype(np.float32)}
        right = ort.InferenceSession(source).run(None, feeds)

        def errors(settings=None, options={}):
            session = sdx.InferenceSession(source, settings, providers=[("CUDAExecutionProvider", options)])
            return [np.linalg.norm(a - b) / np.linalg.norm(b) for a, b in zip(session.run(None, feeds), right)]

        def settings(precision):
            options = sdx.SessionOptions()
            options.precision = precision
            return options

        for precision, least, most in (("f32", 0, 1e-6), ("tf32", 5e-5, 1e-3), ("f16", 5e-5, 1e-3), ("bf16", 5e-4, 8e-3), ("bf16x3", 1e-6, 2e-5)):
            found = errors(settings(precision))
            assert all(least <= error < most for error in found), (precision, found)
        # onnxruntime's option of the provider.
        assert errors(options={"use_tf32": 1}) == errors(settings("tf32"))
        # Infinities and what is no number stay what they are.
        x = np.ones((2, 70), np.float32)
        x[0, 3], x[1, 4] = np.nan, np.inf
        for precision in ("tf32", "f16", "bf16", "bf16x3"):
            (y,) = sdx.InferenceSession(PRODUCT, settings(precision), providers=CUDA[:1]).run(None, {"x": x, "w": np.ones((70, 8), np.float32)})
            assert np.isnan(y[0]).all() and (y[1] == np.inf).all(), (precision, y)
    """)


def test_wrong_precision(model):
    options = sdx.SessionOptions()
    options.precision = "half"
    with pytest.raises(sdx.InvalidArgument, match="precision must be 'f32', 'tf32', 'f16', 'bf16', 'bf16x3', got 'half'"):
        sdx.InferenceSession(model("m (float[3] x) => (float[3] y) { y = Abs(x) }").SerializeToString(), options)
