"""Sardonyx in the place of onnxruntime, for packages that import that."""

from __future__ import annotations

import importlib
import importlib.abc
import importlib.machinery
import importlib.metadata
import importlib.util
import os
import sys
import types
import warnings

_NAME = "onnxruntime"
# Modules of onnxruntime's that Sardonyx has, by what follows the package's name.
_MODULES = {
    "backend", "backend.backend", "backend.backend_rep", "capi", "capi._pybind_state", "capi.build_and_package_info",
    "capi.onnxruntime_inference_collection", "capi.onnxruntime_pybind11_state", "capi.onnxruntime_validation",
    "transformers", "transformers.float16", "transformers.io_binding_helper",
}  # fmt: skip
# A package all of whose modules have onnxruntime's names.
_QUANTIZATION = "quantization"
# Packages that it has not, or not whole; to import what is missing raises an ImportError that says so.
_ABSENT = ("datasets", _QUANTIZATION, "tools", "transformers")
_METADATA = """Metadata-Version: 2.1
Name: onnxruntime
Version: {version}
Summary: The names of onnxruntime, by Sardonyx
"""


class _Loader(importlib.abc.Loader):
    """Gives Sardonyx's module of a name for onnxruntime's."""

    def create_module(self, spec):
        module = importlib.import_module(spec.name.replace(_NAME, __package__, 1))
        # The import puts its own spec into the module; `exec_module` puts back what was there.
        spec.loader_state = module.__spec__
        return module

    def exec_module(self, module):
        module.__spec__ = module.__spec__.loader_state


class _Refusal(importlib.abc.Loader):
    def create_module(self, spec):
        from ._absent import refuse

        refuse(spec.name)

    def exec_module(self, module):
        pass


class _Distribution(importlib.metadata.Distribution):
    """What `importlib.metadata` tells of onnxruntime: the release whose names Sardonyx has."""

    def read_text(self, filename):
        from ._running import API_VERSION

        return _METADATA.format(version=API_VERSION) if filename == "METADATA" else None

    def locate_file(self, path):
        from pathlib import Path

        return Path(__file__).parent.parent / path


class _Finder(importlib.metadata.DistributionFinder):
    """Finds onnxruntime's modules, and the package's metadata."""

    def find_spec(self, fullname, path=None, target=None):
        package, _, rest = fullname.partition(".")
        if package != _NAME or not rest:
            return None
        if rest in _MODULES:
            return importlib.machinery.ModuleSpec(fullname, _Loader(), is_package="." not in rest)
        if rest.split(".")[0] == _QUANTIZATION:
            try:
                spec = importlib.util.find_spec(f"{__package__}.{rest}")
            except ModuleNotFoundError:
                spec = None
            if spec is not None:
                is_package = spec.submodule_search_locations is not None
                return importlib.machinery.ModuleSpec(fullname, _Loader(), is_package=is_package)
        if rest.split(".")[0] in _ABSENT:
            return importlib.machinery.ModuleSpec(fullname, _Refusal())
        return None

    def find_distributions(self, context=importlib.metadata.DistributionFinder.Context()):
        if context.name is None or context.name.lower() == _NAME:
            yield _Distribution()


def _make_module() -> types.ModuleType:
    import sardonyx

    from ._running import API_VERSION

    module = types.ModuleType(_NAME, "The names of onnxruntime, by Sardonyx.")

    def find(name):
        if name == "capi":  # which onnxruntime's own module imports
            return importlib.import_module(f"{_NAME}.capi")
        if name.startswith("_"):
            raise AttributeError(f"module '{_NAME}' has no attribute {name!r}")
        try:
            return getattr(sardonyx, name)
        except AttributeError:
            raise AttributeError(f"module '{_NAME}' has no attribute {name!r}; Sardonyx stands in its place") from None

    vars(module).update(
        __file__=__file__,
        __path__=[os.path.join(os.path.dirname(__file__), _NAME)],  # no folder: what it has, the finder finds
        __spec__=importlib.machinery.ModuleSpec(_NAME, None, is_package=True),
        __version__=API_VERSION,
        __author__="Sardonyx",
        __all__=[name for name in sardonyx.__all__ if name != "__version__"],
        __dir__=lambda: sorted({*vars(module), *dir(sardonyx)}),
        __getattr__=find,
        get_version_string=lambda: API_VERSION,
    )
    return module


def install_as_onnxruntime() -> None:
    """Has `import onnxruntime`, from then on and in the whole process, give Sardonyx: the module with its `__version__`
    (of the release whose names Sardonyx has), `onnxruntime.capi`, `onnxruntime.backend`, `onnxruntime.quantization`
    and `onnxruntime.transformers.io_binding_helper`, and what `importlib.metadata` tells of it.

    It may be called before or after somebody has imported onnxruntime itself, and any number of times. Modules
    that hold onnxruntime's own objects by then keep them, of which a warning tells: call it first. To import a
    part of onnxruntime that Sardonyx has not (`onnxruntime.tools`) raises an ImportError that says so.
    The package `sardonyx-as-onnxruntime` does the same for all programs of an environment.
    """
    known = sys.modules.get(_NAME)
    if getattr(known, "__getattr__", None) and getattr(known, "__author__", "") == "Sardonyx":
        return
    if known is not None and hasattr(known, "InferenceSession"):
        warnings.warn(
            "onnxruntime was imported before sardonyx.install_as_onnxruntime(): modules that hold its objects keep them",
            RuntimeWarning,
            stacklevel=2,
        )
    for name in [name for name in sys.modules if name == _NAME or name.startswith(f"{_NAME}.")]:
        del sys.modules[name]
    if not any(isinstance(finder, _Finder) for finder in sys.meta_path):
        sys.meta_path.insert(0, _Finder())
    sys.modules[_NAME] = _make_module()
