"""onnxruntime's names below its Python API, for programs that import them."""
