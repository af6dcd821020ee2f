"""Models of operators in forms that the conformance suite has no case of, with what they give, by numpy."""

import numpy as np
import onnx

from versions import IR_OF_OPSET, Case

# Versions that no case can pass yet, and why.
EXCEPTIONS = {}

RNG = np.random.default_rng(2024)
ML = "ai.onnx.ml"


def floats(*shape):
    return RNG.standard_normal(shape).astype(np.float32)


def case(opset, text, feeds, *expected, ml=None, **more):
    """The graph `text`, its imports being ONNX's opset, and `ml` of ai.onnx.ml."""
    imports = f'"" : {opset}' + (f', "{ML}" : {ml}' if ml else "")
    ir = IR_OF_OPSET[max(v for v in IR_OF_OPSET if v <= opset)]
    model = onnx.parser.parse_model(f"<ir_version: {ir}, opset_import: [{imports}]> g {text}")
    name = text.split("=>")[1].split("=", 1)[1].split("(")[0].strip()
    return Case(f"models.py, {name}", model, feeds, list(expected) or None, **more)


def movement():
    x = floats(2, 3, 4)
    d = floats(1, 8, 2, 3)
    split = np.ones((1, 2, 2, 2, 2, 3), np.float32) * d.reshape(1, 2, 2, 2, 2, 3)
    yield case(1, "(float[1,8,2,3] x) => (float[1,2,4,6] y) { y = DepthToSpace <blocksize = 2> (x) }", {"x": d},
               split.transpose(0, 3, 4, 1, 5, 2).reshape(1, 2, 4, 6))  # fmt: skip
    yield case(1, "(float[2,3,4] x) => (float[4,6] y) { y = Reshape <shape = [4, -1], consumed_inputs = [0]> (x) }", {"x": x}, x.reshape(4, 6))
    yield case(1, "(float[2,3,4] x) => (int64[3] y) { y = Shape (x) }", {"x": x}, np.array([2, 3, 4]))
    yield case(1, "(float[2,3,4] x) => (int64 y) { y = Size (x) }", {"x": x}, np.array(24))
    yield case(1, "(float[2,3,4] x, int64[2] s) => (float[2,1,4] a, float[2,2,4] b) { a, b = Split <axis = 1> (x, s) }",
               {"x": x, "s": np.array([1, 2])}, x[:, :1], x[:, 1:])  # fmt: skip
    yield case(1, "(float[2,3,4] x, int64 n, int64 a) => (float[2,9,4] y) { y = Tile (x, n, a) }",
               {"x": x, "n": np.array(3), "a": np.array(1)}, np.tile(x, (1, 3, 1)))  # fmt: skip
    p = np.pad(x, ((0, 0), (1, 0), (0, 2)), constant_values=0.5)
    yield case(1, "(float[2,3,4] x) => (float[2,4,6] y) { y = Pad <paddings = [0, 1, 0, 0, 0, 2], value = 0.5> (x) }", {"x": x}, p)
    i, u = np.array([[1, 0, 2, 1]]), floats(1, 4)
    s = x[0].copy()
    np.put_along_axis(s, i, u, 0)
    yield case(11, "(float[3,4] x, int64[1,4] i, float[1,4] u) => (float[3,4] y) { y = Scatter <axis = 0> (x, i, u) }",
               {"x": x[0], "i": i, "u": u}, s)  # fmt: skip


def casts():
    x = np.array([-1.7, 0, 2.9], np.float32)
    yield case(1, '(float[3] x) => (int32[3] y) { y = Cast <to = "INT32"> (x) }', {"x": x}, x.astype(np.int32))
    yield case(6, "(float[3] x) => (int64[3] y) { y = Cast <to = 7> (x) }", {"x": x}, x.astype(np.int64))


def elementwise():
    x = floats(3, 4)
    yield case(1, "(float[3,4] x) => (float[3,4] y) { y = Clip <min = -0.5, max = 0.25, consumed_inputs = [0]> (x) }", {"x": x}, x.clip(-0.5, 0.25))
    a, b = np.array([-7, 7, 5, -5]), np.array([3, -3, 3, -3])
    yield case(10, "(int64[4] a, int64[4] b) => (int64[4] y) { y = Mod (a, b) }", {"a": a, "b": b}, np.mod(a, b))
    for opset in (1, 6):
        more = ", consumed_inputs = [0]" if opset == 1 else ""
        yield case(opset, f"(float[3,4] x) => (float[3,4] y) {{ y = Dropout <is_test = 1, ratio = 0.5{more}> (x) }}", {"x": x}, x)
    c = floats(4)
    yield case(1, "(float[3,4] x, float[4] c) => (float[3,4] y) { y = Add <broadcast = 1, axis = 1> (x, c) }", {"x": x, "c": c}, x + c)
    r = floats(3)
    yield case(6, "(float[3,4] x, float[3] r) => (float[3,4] y) { y = Mul <broadcast = 1, axis = 0> (x, r) }", {"x": x, "r": r}, x * r[:, None])


def contractions():
    a, b, c = floats(3, 4), floats(5, 4), floats(5)
    yield case(1, "(float[3,4] a, float[5,4] b, float[5] c) => (float[3,5] y) { y = Gemm <transB = 1, alpha = 0.5, broadcast = 1> (a, b, c) }",
               {"a": a, "b": b, "c": c}, 0.5 * a @ b.T + c)  # fmt: skip
    x, w, r = floats(3, 2, 4), floats(1, 5, 4), floats(1, 5, 5)
    h, states = np.zeros((2, 5), np.float32), []
    for step in x:
        h = np.tanh(step @ w[0].T + h @ r[0].T)
        states.append(h)
    yield case(1, "(float[3,2,4] x, float[1,5,4] w, float[1,5,5] r) => (float[3,1,2,5] y, float[1,2,5] h) "
               "{ y, h = RNN <hidden_size = 5, output_sequence = 1> (x, w, r) }",
               {"x": x, "w": w, "r": r}, np.stack(states)[:, None], h[None])  # fmt: skip


def normalizations():
    x = floats(2, 3, 4)
    scale, bias, mean, var = floats(3), floats(3), floats(3), abs(floats(3)) + 0.5
    at = (None, slice(None), None)
    normal = (x - mean[at]) / np.sqrt(var[at] + 1e-5) * scale[at] + bias[at]
    feeds = {"x": x, "s": scale, "b": bias, "m": mean, "v": var}
    for opset, more in ((1, "is_test = 1, consumed_inputs = [0, 0, 0, 1, 1], epsilon = 0.00001"), (9, "epsilon = 0.00001")):
        yield case(opset, "(float[2,3,4] x, float[3] s, float[3] b, float[3] m, float[3] v) => (float[2,3,4] y) "
                   f"{{ y = BatchNormalization <{more}> (x, s, b, m, v) }}", feeds, normal)  # fmt: skip
    g = floats(2, 4, 3)
    scale, bias = floats(2), floats(2)
    groups = g.reshape(2, 2, 6)
    groups = (groups - groups.mean(2, keepdims=True)) / np.sqrt(groups.var(2, keepdims=True) + 1e-5)
    yield case(18, "(float[2,4,3] x, float[2] s, float[2] b) => (float[2,4,3] y) { y = GroupNormalization <num_groups = 2> (x, s, b) }",
               {"x": g, "s": scale, "b": bias}, (groups * scale[:, None] + bias[:, None]).reshape(2, 4, 3))  # fmt: skip


def windows():
    x = floats(1, 2, 4, 4)
    p = (abs(x) ** 3).sum((2, 3), keepdims=True) ** (1 / 3)
    for opset in (1, 2, 22):
        power = "3.0" if opset == 1 else "3"
        yield case(opset, f"(float[1,2,4,4] x) => (float[1,2,1,1] y) {{ y = GlobalLpPool <p = {power}> (x) }}", {"x": x}, p)
    blocks = abs(x).reshape(1, 2, 2, 2, 2, 2)
    yield case(1, "(float[1,2,4,4] x) => (float[1,2,2,2] y) { y = LpPool <p = 2.0, kernel_shape = [2, 2], strides = [2, 2]> (x) }",
               {"x": x}, np.sqrt((blocks**2).sum((3, 5))))  # fmt: skip
    rois = np.array([[0, 0, 0, 3, 3], [0, 0, 0, 1, 1]], np.float32)
    pooled = np.stack([x[0].reshape(2, 2, 2, 2, 2).max((2, 4)), x[0, :, :2, :2]])
    for opset in (1, 22):
        yield case(opset, "(float[1,2,4,4] x, float[2,5] r) => (float[2,2,2,2] y) "
                   "{ y = MaxRoiPool <pooled_shape = [2, 2], spatial_scale = 1.0> (x, r) }", {"x": x, "r": rois}, pooled)  # fmt: skip
    twice = x.repeat(2, 2).repeat(3, 3)
    yield case(1, "(float[1,2,4,4] x) => (float[1,2,8,12] y) { y = Upsample <height_scale = 2.0, width_scale = 3.0> (x) }", {"x": x}, twice)
    scales = np.array([1, 1, 2, 3], np.float32)
    for op in ("Upsample", "Resize"):
        yield case(10, f"(float[1,2,4,4] x, float[4] s) => (float[1,2,A,B] y) {{ y = {op} (x, s) }}", {"x": x, "s": scales}, twice)
    yield case(11, "(float[1,2,4,4] x, float[0] r, float[4] s) => (float[1,2,8,12] y) "
               '{ y = Resize <coordinate_transformation_mode = "asymmetric", nearest_mode = "floor"> (x, r, s) }',
               {"x": x, "r": np.zeros(0, np.float32), "s": scales}, twice)  # fmt: skip
    # One sample in the middle of each cell of a box of 2 by 2.
    one = np.array([[1.0, 1.0, 3.0, 3.0]], np.float32)
    middles = np.stack([[x[0, c, y : y + 2, z : z + 2].mean() for y in (1, 2) for z in (1, 2)] for c in range(2)]).reshape(1, 2, 2, 2)
    yield case(10, "(float[1,2,4,4] x, float[1,4] r, int64[1] b) => (float[1,2,2,2] y) "
               "{ y = RoiAlign <output_height = 2, output_width = 2, sampling_ratio = 1> (x, r, b) }",
               {"x": x, "r": one, "b": np.zeros(1, np.int64)}, middles)  # fmt: skip


def random_numbers():
    for opset in (1, 22):
        for op in ("RandomNormal", "RandomUniform"):
            yield case(opset, f"() => (float[3,4] y) {{ y = {op} <shape = [3, 4]> () }}", {}, np.zeros((3, 4)))
            yield case(opset, f"(float[2,5] x) => (float[2,5] y) {{ y = {op}Like (x) }}", {"x": floats(2, 5)}, np.zeros((2, 5)))
    for opset in (7, 22):
        yield case(opset, "(float[2,3] x) => (int32[2,6] y) { y = Multinomial <sample_size = 6> (x) }", {"x": floats(2, 3)}, np.zeros((2, 6)))


def control_flow():
    x = floats(3)
    for opset in (1, 11, 13, 16, 19, 21, 23, 24, 25):
        yield case(opset, "(bool c, float[3] x) => (float[3] y) { y = If (c) <then_branch = t () => (float[3] p) { p = Neg (x) }, "
                   "else_branch = e () => (float[3] q) { q = Abs (x) }> }", {"c": np.array(False), "x": x}, abs(x))  # fmt: skip
        yield case(opset, "(int64 n, bool c, float[3] x) => (float[3] y, float[A,3] z) { y, z = Loop (n, c, x) <body = b (int64 i, bool d, float[3] v) "
                   "=> (bool e, float[3] w, float[3] s) { e = Identity (d) w = Add (v, v) s = Neg (v) }> }",
                   {"n": np.array(3), "c": np.array(True), "x": x}, 8 * x, -np.stack([x, 2 * x, 4 * x]))  # fmt: skip
    yield case(28, "(float[3] x) => (float[3] y) { o = Optional (x) y = OptionalGetElement (o) }", {"x": x}, x)


TREES = ("nodes_treeids = [0, 0, 0], nodes_nodeids = [0, 1, 2], nodes_featureids = [1, 0, 0], nodes_values = [0.1, 0.0, 0.0], "
         'nodes_modes = ["BRANCH_LEQ", "LEAF", "LEAF"], nodes_truenodeids = [1, 0, 0], nodes_falsenodeids = [2, 0, 0]')  # fmt: skip


def learned():
    x = floats(4, 3)
    right = x[:, 1] > np.float32(0.1)
    for ml in (1, 3, 5):
        yield case(17, f"(float[4,3] x) => (float[4,1] y) {{ y = ai.onnx.ml.TreeEnsembleRegressor <{TREES}, n_targets = 1, target_treeids = [0, 0], "
                   "target_nodeids = [1, 2], target_ids = [0, 0], target_weights = [-1.5, 2.5]> (x) }",
                   {"x": x}, np.where(right, 2.5, -1.5)[:, None], ml=ml)  # fmt: skip
        yield case(17, f"(float[4,3] x) => (int64[4] l, float[4,3] s) {{ l, s = ai.onnx.ml.TreeEnsembleClassifier <{TREES}, classlabels_int64s = [4, 5, 6], "
                   "class_treeids = [0, 0], class_nodeids = [1, 2], class_ids = [0, 2], class_weights = [1.0, 1.0]> (x) }",
                   {"x": x}, np.where(right, 6, 4), np.stack([~right, 0 * right, right], 1).astype(np.float32), ml=ml)  # fmt: skip
    words = np.array(["b", "a", "?"], dtype=object)
    for op in ("CategoryMapper", "LabelEncoder"):
        names = 'cats_strings = ["a", "b"], cats_int64s = [0, 1]' if op == "CategoryMapper" else 'classes_strings = ["a", "b"]'
        yield case(17, f"(string[3] x) => (int64[3] y) {{ y = ai.onnx.ml.{op} <{names}, default_int64 = -1> (x) }}", {"x": words}, np.array([1, 0, -1]), ml=1)
    yield case(17, "(float[4,3] x, float[4,3] z) => (float[4,6] y) { y = ai.onnx.ml.FeatureVectorizer <inputdimensions = [3, 3]> (x, z) }",
               {"x": x, "z": -x}, np.hstack([x, -x]), ml=1)  # fmt: skip
    holes = x.copy()
    holes[1, 2] = 0
    yield case(17, "(float[4,3] x) => (float[4,3] y) { y = ai.onnx.ml.Imputer <imputed_value_floats = [0.5]> (x) }",
               {"x": holes}, np.where(holes == 0, np.float32(0.5), holes), ml=1)  # fmt: skip
    yield case(17, "(float[4,3] x) => (float[4,3] y) { y = ai.onnx.ml.Scaler <offset = [1.0, 0.0, 0.5], scale = [2.0, 1.0, 0.5]> (x) }",
               {"x": x}, (x - np.float32([1, 0, 0.5])) * np.float32([2, 1, 0.5]), ml=1)  # fmt: skip
    yield case(17, '(float[4,3] x) => (float[4,3] y) { y = ai.onnx.ml.Normalizer <norm = "L1"> (x) }', {"x": x}, x / abs(x).sum(1, keepdims=True), ml=1)
    yield case(17, "(int64[3] x) => (float[3,2] y) { y = ai.onnx.ml.OneHotEncoder <cats_int64s = [7, 8]> (x) }",
               {"x": np.array([8, 7, 9])}, np.array([[0, 1], [1, 0], [0, 0]], np.float32), ml=1)  # fmt: skip
    w = np.float32([[1, 0, -1], [0.5, 1, 0]])
    scores = x @ w.T + np.float32([0.25, -0.25])
    yield case(17, "(float[4,3] x) => (float[4,2] y) { y = ai.onnx.ml.LinearRegressor <coefficients = [1.0, 0.0, -1.0, 0.5, 1.0, 0.0], "
               "intercepts = [0.25, -0.25], targets = 2> (x) }", {"x": x}, scores, ml=1)  # fmt: skip
    yield case(17, "(float[4,3] x) => (int64[4] l, float[4,2] s) { l, s = ai.onnx.ml.LinearClassifier <coefficients = [1.0, 0.0, -1.0, 0.5, 1.0, 0.0], "
               "intercepts = [0.25, -0.25], classlabels_ints = [3, 9], multi_class = 1> (x) }",
               {"x": x}, np.array([3, 9])[scores.argmax(1)], scores, ml=1)  # fmt: skip
    # Two support vectors, each a dot product.
    vectors, weights = np.float32([[1, 0, 1], [0, 1, -1]]), np.float32([0.5, -1])
    yield case(17, "(float[4,3] x) => (float[4,1] y) { y = ai.onnx.ml.SVMRegressor <kernel_type = \"LINEAR\", support_vectors = [1.0, 0.0, 1.0, 0.0, 1.0, -1.0], "
               "coefficients = [0.5, -1.0], rho = [0.125], n_supports = 2> (x) }", {"x": x}, (x @ vectors.T @ weights + 0.125)[:, None], ml=1)  # fmt: skip
    decision = x @ vectors.T @ np.float32([1, -1]) + np.float32(0.125)
    yield case(17, "(float[4,3] x) => (int64[4] l, float[4,2] s) { l, s = ai.onnx.ml.SVMClassifier <kernel_type = \"LINEAR\", "
               "support_vectors = [1.0, 0.0, 1.0, 0.0, 1.0, -1.0], vectors_per_class = [1, 1], coefficients = [1.0, -1.0], rho = [0.125], "
               "classlabels_ints = [0, 1]> (x) }", {"x": x}, np.where(decision > 0, 0, 1), ml=1)  # fmt: skip
    labelled = "(float[2,2] x) => (seq(map(int64, float)) y) { y = ai.onnx.ml.ZipMap <classlabels_int64s = [4, 6]> (x) }"
    yield case(17, labelled, {"x": np.float32([[1, 2], [3, 4]])}, [{4: 1.0, 6: 2.0}, {4: 3.0, 6: 4.0}], ml=1)
    yield case(17, "(map(int64, float) x) => (float[1,3] y) { y = ai.onnx.ml.CastMap <map_form = \"SPARSE\", max_map = 3> (x) }",
               {"x": {0: 1.5, 2: 2.5}}, np.float32([[1.5, 0, 2.5]]), ml=1)  # fmt: skip
    yield case(17, '(map(string, float) x) => (float[1,2] y) { y = ai.onnx.ml.DictVectorizer <string_vocabulary = ["a", "b"]> (x) }',
               {"x": {"b": 2.5}}, np.float32([[0, 2.5]]), ml=1)  # fmt: skip


def all_cases():
    for family in (movement, casts, elementwise, contractions, normalizations, windows, random_numbers, control_flow, learned):
        yield from family()
