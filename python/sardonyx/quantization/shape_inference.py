"""What a model should go through before it is quantised: types and shapes, constants, normalisations."""

from __future__ import annotations

import logging
import os

import onnx

from .folding import fold_batch_norms, fold_constants, remove_identities, replace_upsample
from .model_files import (
    MODEL_SIZE_THRESHOLD,
    add_pre_process_metadata,
    get_opset_version,
    infer_types,
    load_model,
    size_of,
)

logger = logging.getLogger("sardonyx")


def quant_pre_process(
    input_model=None, output_model_path=None, skip_optimization=False, skip_onnx_shape=False,
    skip_symbolic_shape=False, auto_merge=False, int_max=2**31 - 1, guess_output_rank=False, verbose=0,
    save_as_external_data=False, all_tensors_to_one_file=False, external_data_location=None,
    external_data_size_threshold=1024, **deprecated_kwargs,
):  # fmt: skip
    """Gets a model ready to be quantised, and writes it; with `output_model_path` None it is given as a ModelProto.

    Types and shapes are inferred (unless both `skip_onnx_shape` and `skip_symbolic_shape`); a shape that can't be told
    is no error. Nodes of constants are computed, BatchNormalizations join the convolutions before them, and Identities
    vanish (unless `skip_optimization`). A model of opset 10 or less is converted to 11. Names of what stays are kept.

    `auto_merge`, `int_max`, `guess_output_rank` and `verbose` steer onnxruntime's symbolic inference, and do nothing.
    """
    source = deprecated_kwargs.pop("input_model_path", None) if input_model is None else input_model
    if source is None:
        raise ValueError("quant_pre_process needs a model: a path or a ModelProto as 'input_model'")
    if deprecated_kwargs:
        raise TypeError(f"quant_pre_process has no argument '{next(iter(deprecated_kwargs))}'")
    model = load_model(source)
    if get_opset_version(model) <= 10:
        replace_upsample(model)
        model = onnx.version_converter.convert_version(model, 11)
    infer = not (skip_onnx_shape and skip_symbolic_shape)
    if infer:
        infer_types(model)
    if not skip_optimization:
        counts = remove_identities(model), fold_constants(model), fold_batch_norms(model)
        logger.info("%d Identity, %d constant and %d BatchNormalization nodes are gone", *counts)
        if infer:
            infer_types(model)
    add_pre_process_metadata(model)
    if output_model_path is None:
        return model
    if save_as_external_data or size_of(model) >= MODEL_SIZE_THRESHOLD:
        onnx.save_model(
            model, os.fspath(output_model_path), save_as_external_data=True,
            all_tensors_to_one_file=all_tensors_to_one_file or external_data_location is not None,
            location=external_data_location, size_threshold=external_data_size_threshold, convert_attribute=False,
        )  # fmt: skip
    else:
        onnx.save_model(model, os.fspath(output_model_path))
    return None
