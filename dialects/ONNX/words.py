"""The words that string attributes know: schemas tell them in prose only.

An attribute that is listed takes one of these words, and a list of strings only
these; the verifier refuses any other. What isn't listed is free text (a pattern, a
label, an equation). Names are those of the operators' latest versions, for which the
importer has renamed what older versions called otherwise, and MLIR mnemonics without
the dialect's prefix (`Conv`, `ml.Scaler`).

Left out are RNN's, GRU's and LSTM's activations, which are compared without their
case, and those of com.microsoft's operators whose bodies refuse what they don't know.
"""

# Padding of windows. An empty word is the default's: exporters write it.
_AUTO_PAD = "NOTSET SAME_UPPER SAME_LOWER VALID"
_WINDOWS = "AveragePool Conv ConvInteger ConvTranspose LpPool MaxPool QLinearConv"
_MS_WINDOWS = "ms.FusedConv ms.QLinearAveragePool"

_DIRECTION = "forward reverse bidirectional"
_SCATTER = "none add mul max min"
_LOSS = "none sum mean"
_SCORES = "NONE SOFTMAX LOGISTIC SOFTMAX_ZERO PROBIT"
_KERNELS = "LINEAR POLY RBF SIGMOID"
_TREE_NODES = "BRANCH_LEQ BRANCH_LT BRANCH_GTE BRANCH_GT BRANCH_EQ BRANCH_NEQ LEAF"
_ROUNDING = "up down nearest"

_TABLE = {
    "BitShift": {"direction": "RIGHT LEFT"},
    "Cast": {"round_mode": _ROUNDING},
    "CastLike": {"round_mode": _ROUNDING},
    "CausalConvWithState": {"activation": "silu swish none"},
    "DepthToSpace": {"mode": "DCR CRD"},
    "GRU": {"direction": _DIRECTION},
    "Gelu": {"approximate": "none tanh"},
    "GridSample": {
        "mode": "linear nearest cubic",
        "padding_mode": "zeros border reflection",
    },
    "ImageDecoder": {"pixel_format": "RGB BGR Grayscale"},
    "LSTM": {"direction": _DIRECTION},
    "LinearAttention": {"update_rule": "linear gated delta gated_delta"},
    "NegativeLogLikelihoodLoss": {"reduction": _LOSS},
    "Pad": {"mode": "constant reflect edge wrap"},
    "RNN": {"direction": _DIRECTION},
    "Resize": {
        "mode": "nearest linear cubic",
        "coordinate_transformation_mode": "half_pixel half_pixel_symmetric"
        " pytorch_half_pixel align_corners asymmetric tf_crop_and_resize",
        "nearest_mode": "round_prefer_floor round_prefer_ceil floor ceil",
        "keep_aspect_ratio_policy": "stretch not_larger not_smaller",
    },
    "RoiAlign": {
        "mode": "avg max",
        "coordinate_transformation_mode": "half_pixel output_half_pixel",
    },
    "ScatterElements": {"reduction": _SCATTER},
    "ScatterND": {"reduction": _SCATTER},
    "SoftmaxCrossEntropyLoss": {"reduction": _LOSS},
    "SpaceToDepth": {"mode": "DCR CRD"},
    "StringNormalizer": {"case_change_action": "LOWER UPPER NONE"},
    "TensorScatter": {"mode": "linear circular"},
    "TfIdfVectorizer": {"mode": "TF IDF TFIDF"},
    "Upsample": {"mode": "nearest linear"},
    "ml.CastMap": {
        "cast_to": "TO_FLOAT TO_STRING TO_INT64",
        "map_form": "DENSE SPARSE",
    },
    "ml.LinearClassifier": {"post_transform": _SCORES},
    "ml.LinearRegressor": {"post_transform": _SCORES},
    "ml.Normalizer": {"norm": "MAX L1 L2"},
    "ml.SVMClassifier": {"kernel_type": _KERNELS, "post_transform": _SCORES},
    "ml.SVMRegressor": {"kernel_type": _KERNELS, "post_transform": _SCORES},
    "ml.TreeEnsembleClassifier": {
        "nodes_modes": _TREE_NODES,
        "post_transform": _SCORES,
    },
    "ml.TreeEnsembleRegressor": {
        "aggregate_function": "AVERAGE SUM MIN MAX",
        "nodes_modes": _TREE_NODES,
        "post_transform": _SCORES,
    },
    "ms.GroupQueryAttention": {
        "k_quant_type": "NONE PER_TENSOR PER_CHANNEL",
        "v_quant_type": "NONE PER_TENSOR PER_CHANNEL",
    },
    "training.Momentum": {"mode": "nesterov standard"},
}

# The words by mnemonic and attribute.
WORDS = {(op, name): words.split() for op, row in _TABLE.items() for name, words in row.items()} | {
    (op, "auto_pad"): _AUTO_PAD.split() + [""] for op in (_WINDOWS + " " + _MS_WINDOWS).split()
}
