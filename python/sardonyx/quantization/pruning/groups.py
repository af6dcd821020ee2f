"""What can be removed from a graph: units of places that go together, and groups of such units."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from ..graph_index import GraphIndex
from ..model_files import get_opset_version
from .rules import Rules
from .sizes import Sizes, constants_of


@dataclass
class Group:
    """Units of which any may go, as long as one is left. All lie on the same axes.

    `units` are labels of places; `parts` tell for each axis the unit of every place of it, -1 where it is none of these.
    """

    units: np.ndarray
    parts: dict[tuple, np.ndarray] = field(default_factory=dict)

    def text(self) -> str:
        return next(value for value, _ in self.parts)


class Analysis:
    """The groups of a model, and the products that sum over their places.

    :param model: one that `sizes.prepared` made.
    :param sample: inputs of a run, whose sizes count where a model leaves them open.
    :param keep: names of nodes whose weights keep their sizes.
    """

    def __init__(self, model, sample, keep=()):
        self.model = model
        self.index = GraphIndex(model.graph)
        self.sizes = Sizes(model, sample)
        self.constants = constants_of(model)
        version = get_opset_version(model)
        given = (self.index, self.sizes, self.constants, version)
        rules = Rules(*given)
        rules = Rules(*given, choices=self._choices(rules))
        for node in model.graph.node:
            for name in node.input if node.name in keep else ():
                if name in self.index.initializers:
                    rules.links.keep(name)
        self.links = rules.links
        self.labels, self.staying = rules.links.solve()
        self.groups = self._groups()
        grouped = {part for group in self.groups for part in group.parts}
        self.products = rules.consumers
        self.consumers = [each for each in self.products if (each.value, each.axis) in grouped]

    def _choices(self, rules) -> dict:
        """For each merge or split the outermost axis whose places may go; none where a size differs from run to run."""
        labels, staying = rules.links.solve()
        opened = np.zeros(len(labels), bool)
        names = set()  # of open sizes
        for name in self.index.inputs:
            for axis, size in enumerate(self.index.dims(name) or []):
                if (name, axis) in rules.links.starts and not isinstance(size, int):
                    opened[labels[rules.links.places(name, axis)]] = True
                    names.add(size)
        opened = opened[labels]
        choices: dict = {}
        for key, value, axes in rules.blocks:
            places = [rules.links.places(value, axis) for axis in axes]
            known = self.sizes.always.get(value)
            open_axes = [
                axis for axis, each in zip(axes, places)
                if (each < len(opened)).all() and opened[each].any() or known is not None and known[axis] in names - {None}
            ]  # fmt: skip
            free = [
                place for place, each in enumerate(places)
                if not (each < len(staying)).all() or not staying[each].all()
            ]  # fmt: skip
            choices[key] = free[0] if free and not open_axes else None
        return choices

    def _groups(self) -> list[Group]:
        """Groups with weights among their places; their order is that of the graph."""
        axes: dict[int, list] = {}
        for part in self.links.starts:
            for label in np.unique(self.labels[self.links.places(*part)]):
                if not self.staying[label]:
                    axes.setdefault(int(label), []).append(part)
        by_axes: dict[tuple, list] = {}
        for label, keys in axes.items():
            if any(name in self.index.initializers for name, _ in keys):
                by_axes.setdefault(tuple(keys), []).append(label)
        groups = []
        for parts, labels in by_axes.items():
            if len(labels) < 2:
                continue
            group = Group(np.array(sorted(labels)))
            for part in parts:
                here = self.labels[self.links.places(*part)]
                group.parts[part] = np.where(np.isin(here, group.units), here, -1)
            groups.append(group)
        return groups

    def places(self, value, axis):
        """Labels of the places of an axis; None for an axis of which nothing is known."""
        return self.labels[self.links.places(value, axis)] if (value, axis) in self.links.starts else None
