"""The names of onnxruntime's extension, by the module through which its package has them."""

from typing import TYPE_CHECKING

from sardonyx.capi import onnxruntime_pybind11_state as _state

if TYPE_CHECKING:
    from sardonyx.capi.onnxruntime_pybind11_state import *  # noqa: F403

__all__ = _state.__all__


if not TYPE_CHECKING:

    def __getattr__(name):
        return getattr(_state, name)


def __dir__():
    return __all__
