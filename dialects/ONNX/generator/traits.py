"""What ONNX's schemas do not say about an op, written by hand.

Keys are MLIR mnemonics without the dialect's prefix (`Conv`, `ml.Scaler`).
"""

# Ops that draw random numbers: equal calls give different results, so they must
# be neither merged nor repeated. They have no `Pure` trait.
RANDOM = {
    "Bernoulli",
    "Dropout",
    "Multinomial",
    "RandomNormal",
    "RandomNormalLike",
    "RandomUniform",
    "RandomUniformLike",
}

# Ops that hold graphs: their effects are those of the ops inside.
REGION_TRAITS = {
    "If": ["RecursiveMemoryEffects", "RecursivelySpeculatable"],
    "Loop": ["RecursiveMemoryEffects"],
    "Scan": ["RecursiveMemoryEffects"],
    "SequenceMap": ["RecursiveMemoryEffects"],
}

# Further traits.
EXTRA_TRAITS = {
    "Constant": ["ConstantLike"],
}

FOLDERS = {
    "Cast",
    "Constant",
    "Identity",
    "Transpose",
}

CANONICALIZERS = {
    "Constant",
    "Dropout",
    "Reshape",
    "Transpose",
}

# Verifiers beyond what the schema tells.
VERIFIERS = {
    "Constant",
    "If",
    "Loop",
    "Scan",
    "SequenceMap",
}
