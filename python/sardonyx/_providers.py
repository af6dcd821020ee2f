"""Execution providers by name: there is the CPU's, and CUDA's where there are a driver and a device. Others that onnxruntime
can be built with are known, and passed over."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence

from ._suggest import close_to
from .errors import Fail

CPU_PROVIDER, CUDA_PROVIDER = "CPUExecutionProvider", "CUDAExecutionProvider"
PROVIDERS = [CPU_PROVIDER]  # that are here whatever the machine
# In onnxruntime's order of precedence.
ALL_PROVIDERS = [
    "NvTensorRTRTXExecutionProvider", "TensorrtExecutionProvider", "CUDAExecutionProvider", "MIGraphXExecutionProvider",
    "OpenVINOExecutionProvider", "DnnlExecutionProvider", "VitisAIExecutionProvider", "QNNExecutionProvider",
    "NnapiExecutionProvider", "VSINPUExecutionProvider", "JsExecutionProvider", "CoreMLExecutionProvider",
    "ACLExecutionProvider", "DmlExecutionProvider", "RknpuExecutionProvider", "WebNNExecutionProvider",
    "WebGpuExecutionProvider", "XnnpackExecutionProvider", "CANNExecutionProvider", "AzureExecutionProvider",
    "CPUExecutionProvider",
]  # fmt: skip
# Of earlier releases, which programs still name.
_FORMER = {
    "ArmNNExecutionProvider", "HailoExecutionProvider", "MLCExecutionProvider", "NGRAPHExecutionProvider",
    "NupharExecutionProvider", "NvTensorRtRtxExecutionProvider", "ROCMExecutionProvider", "SNPEExecutionProvider", "TvmExecutionProvider",
}  # fmt: skip


def available_providers() -> list[str]:
    """The providers that can be had on this machine."""
    from . import _cuda

    return PROVIDERS if _cuda.problem() else [CUDA_PROVIDER, *PROVIDERS]


def check_provider(name: str) -> None:
    """Raises `Fail` for a name that no release of onnxruntime has had."""
    if name in ALL_PROVIDERS or name in _FORMER:
        return
    like = close_to(name, ALL_PROVIDERS)
    hint = f" (did you mean {like}?)" if like else ""
    raise Fail(f"Unknown Provider Type: {name}{hint}; there is {PROVIDERS[0]}")


def check_and_normalize_provider_args(
    providers: Sequence[str | tuple[str, dict]] | None,
    provider_options: Sequence[dict] | None,
    available_provider_names: Sequence[str],
) -> tuple[list[str], list[dict[str, str]]]:
    """The names and the options, as text, of what `InferenceSession` was given as `providers` and `provider_options`.

    A name that `available_provider_names` lacks, or that comes twice, is told by a warning. Raises `ValueError` for
    what has another form than names, or pairs of a name and a dict, with as many dicts beside as there are names.
    """
    if providers is None:
        return [], []
    if not isinstance(providers, Sequence):
        raise ValueError("'providers' should be a sequence.")
    if provider_options is not None:
        if not isinstance(provider_options, Sequence):
            raise ValueError("'provider_options' should be a sequence.")
        if len(providers) != len(provider_options):
            raise ValueError("'providers' and 'provider_options' should be the same length if both are given.")
        if not all(isinstance(provider, str) for provider in providers):
            raise ValueError("Only string values for 'providers' are supported if 'provider_options' is given.")
        if not all(isinstance(options, Mapping) for options in provider_options):
            raise ValueError("'provider_options' values must be dicts.")
        pairs: list = list(zip(providers, provider_options))
    else:
        pairs = [(provider, {}) if isinstance(provider, str) else provider for provider in providers]
    found: dict[str, dict[str, str]] = {}
    for pair in pairs:
        if not (
            isinstance(pair, (tuple, list)) and len(pair) == 2 and isinstance(pair[0], str) and isinstance(pair[1], Mapping)
        ):
            raise ValueError("'providers' values must be either strings or (string, dict) tuples.")
        name, options = pair
        if name not in available_provider_names:
            there = ", ".join(available_provider_names)
            warnings.warn(f"Specified provider '{name}' is not in available provider names: '{there}'", stacklevel=2)
        if name in found:
            warnings.warn(f"Duplicate provider '{name}' encountered, ignoring.", stacklevel=2)
            continue
        found[name] = {str(key): str(value) for key, value in options.items()}
    return list(found), list(found.values())


def choose(providers, provider_options=None) -> tuple[dict[str, str], bool] | None:
    """Checks what a caller names as providers. Gives the checked options of CUDA's, and whether the CPU's may stand in for it,
    where the caller wants CUDA's before the CPU's and it is there; else the CPU's runs the model, and a warning says so where
    the caller does not name it."""
    if isinstance(providers, str):
        providers = [providers]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        names, options = check_and_normalize_provider_args(
            providers or None, provider_options if providers else None, PROVIDERS
        )
    for name in names:
        check_provider(name)
    problem = ""
    if CUDA_PROVIDER in names:
        from . import _cuda

        cuda = _cuda.check_options(options[names.index(CUDA_PROVIDER)])
        may_use_cpu = CPU_PROVIDER in names
        is_first = not may_use_cpu or names.index(CUDA_PROVIDER) < names.index(CPU_PROVIDER)
        problem = _cuda.problem()
        if is_first and not problem:
            return cuda, may_use_cpu
    if names and not set(names) & set(PROVIDERS):
        why = f" ({problem})" if problem else ""
        warnings.warn(f"none of the providers {names} is there; the model runs on the CPU{why}", stacklevel=3)
    return None
