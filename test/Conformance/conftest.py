from pathlib import Path

if not (Path(__file__).parents[2] / "lib/Targets/NVPTX").exists():
    collect_ignore = ["test_onnx_backend_cuda.py"]
