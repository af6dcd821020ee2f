"""What comes of the contract: a model with its report, or a refusal."""

from __future__ import annotations

import json
import math
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import onnx

from ..plan import Plan
from .layers import histograms_of, layers_of
from .page import page_of


class Refused(ValueError):
    """No plan holds the bounds, or it can't be told; nothing was written. `report` holds what was tried."""

    def __init__(self, sentence, report=None):
        super().__init__(sentence)
        self.report = report or {}


@dataclass
class Result:
    model: onnx.ModelProto
    plan: Plan | None
    report: dict = field(default_factory=dict)
    original: onnx.ModelProto | None = None
    samples: list = field(default_factory=list)  # a few, for what the page tells
    threads: int | None = None

    def table(self) -> str:
        """The summary, and a line for each node that stays float."""
        summary = self.report["summary"]
        bound = f" of at most {summary['max_error']:.4g}" if math.isfinite(summary["max_error"]) else ""
        lines = [
            f"{summary['metric']}: before {summary['before_text']}, after {summary['after_text']}, "
            f"loss {summary['loss']:.4g}{bound} ({summary['loss_low']:.2g}…{summary['loss_high']:.2g})",
            f"bytes: {summary['bytes_before']:,} → {summary['bytes_after']:,}",
        ]
        speed = self.report.get("speed")
        if speed:
            lines.append(
                f"time: {speed['before_ms']:.3f} ms → {speed['after_ms']:.3f} ms "
                f"({speed['ratio']:.2f}×, {speed['low']:.2f}…{speed['high']:.2f})"
            )
        for name, each in self.report.get("pruning", {}).get("groups", {}).items():
            if each["left"] < each["of"]:
                lines.append(f"  {name}: {each['left']} of {each['of']}")
        rows = list(self.report.get("float", {}).items())
        width = max((len(name) for name, _ in rows), default=0)
        return "\n".join(lines + [f"  float: {name:{width}}  {reason}" for name, reason in rows])

    def layers(self) -> list[dict]:
        """A row for each layer: precision, error, µs before and after, bytes, and why. Both models are run for it."""
        if "layers" not in self.report:
            self.report["layers"] = layers_of(self)
        return self.report["layers"]

    def to_html(self, path) -> None:
        """Writes the report as a page of one file."""
        Path(path).write_text(page_of(self, self.layers(), histograms_of(self)), encoding="utf-8")

    def save_report(self, path) -> None:
        with open(path, "w") as file:
            file.write(as_json(self.report))


def as_json(report) -> str:
    """A report as JSON, which has neither infinity nor NaN: they are null."""
    return json.dumps(_plain(report), indent=1, allow_nan=False)


def _plain(value):
    if isinstance(value, dict):
        return {str(key): _plain(each) for key, each in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(each) for each in value]
    if isinstance(value, (np.bool_, np.integer)):
        return value.item()
    if isinstance(value, (float, np.floating)):
        return float(value) if math.isfinite(value) else None
    return value
