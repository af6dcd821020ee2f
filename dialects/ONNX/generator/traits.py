"""Which ops have more in C++ than the schema tells, written by hand. What is true of
the operators themselves is in facts.py.

Keys are MLIR mnemonics without the dialect's prefix (`Conv`, `ml.Scaler`).
"""

# Ops that hold graphs: their effects are those of the ops inside.
REGION_TRAITS = {
    "If": ["RecursiveMemoryEffects", "RecursivelySpeculatable"],
    "Loop": ["RecursiveMemoryEffects"],
    "Scan": ["RecursiveMemoryEffects"],
    "SequenceMap": ["RecursiveMemoryEffects"],
    "ms.BeamSearch": ["RecursiveMemoryEffects"],
    "ms.GreedySearch": ["RecursiveMemoryEffects"],
    "ms.Sampling": ["RecursiveMemoryEffects"],
    "ms.WhisperBeamSearch": ["RecursiveMemoryEffects"],
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

TABLES = {
    "REGION_TRAITS": REGION_TRAITS,
    "EXTRA_TRAITS": EXTRA_TRAITS,
    "FOLDERS": FOLDERS,
    "CANONICALIZERS": CANONICALIZERS,
    "VERIFIERS": VERIFIERS,
}
