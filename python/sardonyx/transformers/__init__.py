"""Of onnxruntime.transformers: `float16` and `io_binding_helper`. To import another part raises an ImportError."""


def __getattr__(name):
    if name.startswith("_") or name in ("float16", "io_binding_helper"):
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from sardonyx._absent import refuse

    refuse(f"{__name__}.{name}")
