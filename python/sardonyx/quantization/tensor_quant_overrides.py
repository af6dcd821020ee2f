"""TensorQuantOverrides: {tensor: [{quant_type, scale and zero_point or symmetric, rmin, rmax, axis, convert, ...}]}.

One dictionary is for a whole tensor; several, or one with an `axis`, are for the channels of a weight.
"""

from __future__ import annotations

import json
from collections.abc import MutableMapping
from dataclasses import dataclass

from .quant_types import QuantType


@dataclass(eq=False)
class QuantTypeInfo:
    """A type with the choices that belong to it; None stands for the default."""

    quant_type: QuantType
    symmetric: bool | None = None
    reduce_range: bool | None = None
    axis: int | None = None

    def __eq__(self, other):
        if not isinstance(other, QuantTypeInfo):
            return NotImplemented
        flags = ((self.symmetric, other.symmetric), (self.reduce_range, other.reduce_range))
        same = all(mine is None or theirs is None or mine == theirs for mine, theirs in flags)
        return same and self.quant_type == other.quant_type and self.axis == other.axis

    __hash__ = None  # type: ignore[assignment]

    @staticmethod
    def load_from_dict(raw_dict, default_qtype=None, default_symmetric=None, default_reduce_range=None):
        return QuantTypeInfo(
            raw_dict.get("quant_type", default_qtype),
            raw_dict.get("symmetric", default_symmetric),
            raw_dict.get("reduce_range", default_reduce_range),
            raw_dict.get("axis"),
        )

    def save_to_dict(self, raw_dict):
        raw_dict["quant_type"] = self.quant_type
        for name in ("symmetric", "reduce_range", "axis"):
            if getattr(self, name) is not None:
                raw_dict[name] = getattr(self, name)


class _Invalid(ValueError):
    pass


class TensorQuantOverridesHelper(MutableMapping):
    """The overrides with questions to them and checks of their form."""

    def __init__(self, raw_overrides):
        self.overrides = raw_overrides
        self.quant_types = None
        self.keys_unsupported_with_scale_zp = {"symmetric", "reduce_range", "rmax", "rmin"}

    def _is_per_channel(self, tensor_name):
        entries = self.overrides.get(tensor_name)
        return ("axis" in entries[0]) if entries else None

    def has_per_tensor_overrides(self, tensor_name) -> bool:
        return self._is_per_channel(tensor_name) is False

    def has_per_channel_overrides(self, tensor_name) -> bool:
        return self._is_per_channel(tensor_name) is True

    def overrides_scale_zp(self, tensor_name) -> bool:
        entries = self.overrides.get(tensor_name)
        return bool(entries) and "scale" in entries[0] and "zero_point" in entries[0]

    def get_per_tensor_overrides(self, tensor_name, default_val=None):
        if self.has_per_channel_overrides(tensor_name):
            raise ValueError(f"tensor '{tensor_name}' has overrides of channels where one for the whole is needed")
        entries = self.overrides.get(tensor_name, [default_val] if default_val is not None else None)
        return entries[0] if entries else default_val if tensor_name in self.overrides else None

    def get_per_channel_overrides(self, tensor_name, default_val=None):
        entries = self.overrides.get(tensor_name, default_val)
        if not entries:
            return None
        if "axis" not in entries[0]:
            raise ValueError(f"the overrides of tensor '{tensor_name}' have no 'axis', which those of channels need")
        return entries

    def get_quant_types(self) -> set:
        """All types that overrides name."""
        if self.quant_types is None:
            self.quant_types = set()
            for entries in self.overrides.values():
                for entry in entries:
                    self.quant_types |= {entry.get("quant_type"), entry.get("convert", {}).get("quant_type")}
            self.quant_types.discard(None)
        return self.quant_types

    def is_valid(self, initializers, activation_names, default_activation_qtype):
        """(whether the overrides fit the model, a sentence why not)."""
        self.quant_types = None
        try:
            for name, entries in self.overrides.items():
                self._check(name, entries, initializers, activation_names, default_activation_qtype)
        except _Invalid as error:
            return False, str(error)
        return True, None

    def _check(self, name, entries, initializers, activation_names, default_type):
        if name not in initializers and name not in activation_names:
            raise _Invalid(f"Tensor '{name}' in TensorQuantOverrides is not present in the model")
        if not isinstance(entries, list):
            raise _Invalid(f"Tensor quantization overrides for '{name}' are not in a list")
        for index, entry in enumerate(entries):
            if not isinstance(entry, dict):
                raise _Invalid(f"Tensor quantization overrides at index {index} for '{name}' are not in a dict")
        if not entries or not entries[0]:
            return
        if len(entries) > 1 or entries[0].get("axis") is not None:
            self._check_channels(name, entries, initializers)
        else:
            self._check_tensor(name, entries[0], name in initializers, default_type)

    def _check_parameters(self, entry, where=""):
        if ("scale" in entry) != ("zero_point" in entry):
            raise _Invalid(f"Must provide both 'scale' and 'zero_point' if one of the overrides is provided{where}")
        excess = self.keys_unsupported_with_scale_zp & set(entry) if "scale" in entry else ()
        if excess:
            names = ", ".join(sorted(excess))
            raise _Invalid(f"Tensor override option(s) [{names}] are invalid with 'scale' and 'zero_point'{where}")

    def _check_tensor(self, name, entry, is_weight, default_type):
        where = f" (tensor '{name}')"
        self._check_parameters(entry)
        convert = entry.get("convert")
        for part in (entry, convert or {}):
            if "reduce_range" in part and not is_weight:
                raise _Invalid(f"Option 'reduce_range' is only supported for initializers, not for activation {name}")
        if convert is None:
            return
        if is_weight:
            raise _Invalid("Cannot use 'convert' override for initializers")
        if "quant_type" not in convert:
            raise _Invalid(f"'convert' options{where} must specify a 'quant_type'")
        if convert["quant_type"] == entry.get("quant_type", default_type):
            raise _Invalid(f"'convert' quant_type must differ from original quant_type{where}")
        self._check_parameters(convert, where)

    def _check_channels(self, name, entries, initializers):
        if name not in initializers:
            raise _Invalid(f"Tensor '{name}' has per-channel overrides, but is not an initializer")
        first, shape = entries[0], list(initializers[name].dims)
        if first.get("axis") is None:
            raise _Invalid(
                f"Per-channel overrides for tensor {name} is missing an 'axis' value in the first channel dictionary."
            )
        axis = first["axis"] + (len(shape) if first["axis"] < 0 else 0)
        if not 0 <= axis < len(shape):
            raise _Invalid(f"Axis override value is out-of-bounds for tensor {name} (rank {len(shape)})")
        if len(entries) > 1 and len(entries) != shape[axis]:
            raise _Invalid(
                f"Incorrect number of channel overrides for tensor {name} (axis {first['axis']}), "
                f"expected {shape[axis]}, but found {len(entries)}."
            )
        if ("rmin" in first) != ("rmax" in first):
            raise _Invalid("Must provide both 'rmin' and 'rmax' if one is provided")
        for index, entry in enumerate(entries):
            where = f" (tensor '{name}', index {index})" if index else ""
            self._check_parameters(entry, where)
            if "convert" in entry:
                raise _Invalid(f"Cannot use 'convert' override for initializers, such as {name}.")
            for key in ("quant_type", "symmetric", "reduce_range"):
                if key in entry and entry[key] != first.get(key):
                    raise _Invalid(f"'{key}' must be the same for all channels of tensor '{name}', unlike at {index}.")
            if entry.get("axis", axis) not in (axis, first["axis"]):
                raise _Invalid(f"'axis' must be the same for all channels of tensor '{name}', unlike at {index}.")
            for key in ("scale", "rmin", "rmax"):
                if key in first and key not in entry:
                    raise _Invalid(f"'{key}' must be given for all channels of tensor '{name}', unlike at {index}.")

    def update_tensor_overrides(self, tensor_name, new_vals, channels=None, overwrite=True) -> bool:
        """Adds values to the overrides of a tensor; without `overwrite` only where none of them is there yet."""
        if not new_vals:
            return False
        known = self.overrides.get(tensor_name)
        entries = [
            entry for channel, entry in enumerate(known or [{}]) if channels is None or channel in channels
        ]
        if not overwrite and known and any(set(new_vals) & set(entry) for entry in entries):
            return False
        if not known:
            self.overrides[tensor_name] = entries
        for entry in entries:
            entry.update(new_vals)
        return True

    def get_node_output_qtype_info(self, output_name, default_qtype, default_symmetric=None) -> QuantTypeInfo:
        entries = self.overrides.get(output_name)
        entry = entries[0] if entries else {}
        return QuantTypeInfo(entry.get("quant_type", default_qtype), entry.get("symmetric", default_symmetric))

    def get_node_input_qtype_info(
        self, input_name, node_name, default_qtype, default_symmetric=None, default_reduce_range=None
    ) -> QuantTypeInfo:
        """The type in which a node reads a tensor: where the tensor is converted for it, the converted one."""
        entries = self.overrides.get(input_name)
        if not entries:
            return QuantTypeInfo(default_qtype, default_symmetric, default_reduce_range)
        entry = entries[0]
        if "convert" not in entry:
            return QuantTypeInfo.load_from_dict(entry, default_qtype, default_symmetric, default_reduce_range)
        convert = entry["convert"]
        converted = "recv_nodes" not in convert or node_name in convert["recv_nodes"]
        kind = convert["quant_type"] if converted else entry.get("quant_type", default_qtype)
        return QuantTypeInfo(kind, convert.get("symmetric", default_symmetric))

    def pprint_str(self, indent=None) -> str:
        return json.dumps(self.overrides, default=str, indent=indent)

    def empty(self) -> bool:
        return not self.overrides

    def get_dict(self):
        return self.overrides

    def __setitem__(self, key, value):
        self.overrides[key] = value

    def __getitem__(self, key):
        return self.overrides[key]

    def __delitem__(self, key):
        del self.overrides[key]

    def __iter__(self):
        return iter(self.overrides)

    def __len__(self):
        return len(self.overrides)

    def __str__(self):
        return str(self.overrides)
