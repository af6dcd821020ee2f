"""Samples with or without labels, and their split into those that find ranges and those that judge."""

from __future__ import annotations

import hashlib

import numpy as np

from ..calibrate import samples_of


class Samples:
    """Feeds, and a label for each or none at all. A sample may be a batch."""

    def __init__(self, feeds, labels=None):
        self.feeds, self.labels = list(feeds), None if labels is None else list(labels)
        if self.labels is not None and len(self.labels) != len(self.feeds):
            raise ValueError(f"there are {len(self.feeds)} samples and {len(self.labels)} labels")

    def __len__(self):
        return len(self.feeds)

    def of(self, places) -> Samples:
        labels = None if self.labels is None else [self.labels[place] for place in places]
        return Samples([self.feeds[place] for place in places], labels)

    def digest(self) -> str:
        """A number that other samples don't have."""
        return hashlib.sha256("".join(_digest(feeds) for feeds in self.feeds).encode()).hexdigest()[:16]


def read_samples(data) -> Samples:
    """Samples of a pair (feeds, labels), or of whatever `samples_of` reads."""
    if isinstance(data, Samples):
        return data
    if isinstance(data, tuple) and len(data) == 2 and not isinstance(data[0], dict):
        return Samples(samples_of(data[0]), data[1])
    return Samples(samples_of(data))


def with_labels(feeds, labels) -> Samples:
    """Samples with labels of one array: one for each sample, or one for each row of all samples together."""
    feeds = list(feeds)
    rows = [len(next(iter(sample.values()))) if np.ndim(next(iter(sample.values()))) else 1 for sample in feeds]
    if len(labels) == sum(rows):
        ends = np.cumsum(rows)
        return Samples(feeds, [labels[end - count : end] for end, count in zip(ends, rows)])
    if len(labels) == len(feeds):
        return Samples(feeds, labels)
    raise ValueError(f"there are {len(labels)} labels for {len(feeds)} samples of {sum(rows)} rows")


def _digest(feeds: dict) -> str:
    state = hashlib.sha256()
    for name in sorted(feeds):
        values = np.ascontiguousarray(feeds[name])
        state.update(f"{name} {values.dtype} {values.shape} ".encode())
        state.update(values.tobytes() if values.dtype != object else repr(values.tolist()).encode())
    return state.hexdigest()


def split(samples: Samples, holdout, seed: int = 0):
    """(samples for ranges, samples to judge by), which have no feeds in common.

    :param holdout: the share that judges, chosen by `seed`, where equal feeds go to one side; or samples of their own.
    """
    digests = [_digest(feeds) for feeds in samples.feeds]
    if not isinstance(holdout, (int, float)):
        judges = read_samples(holdout)
        known = set(digests)
        for place, feeds in enumerate(judges.feeds):
            if _digest(feeds) in known:
                raise ValueError(f"sample {place} of the holdout is also among those that find ranges")
        if not len(samples) or not len(judges):
            raise ValueError("there must be samples to find ranges by, and others to judge by")
        return samples, judges
    if not 0 < holdout < 1:
        raise ValueError(f"holdout is a share between 0 and 1, or samples of their own, not {holdout}")
    distinct = list(dict.fromkeys(digests))
    if len(distinct) < 2:
        raise ValueError(f"{len(distinct)} distinct samples can't both find ranges and judge: give more")
    order = np.random.default_rng(seed).permutation(len(distinct))
    count = min(max(1, round(holdout * len(distinct))), len(distinct) - 1)
    chosen = {distinct[place] for place in order[:count]}
    judging = [place for place, digest in enumerate(digests) if digest in chosen]
    finding = [place for place, digest in enumerate(digests) if digest not in chosen]
    return samples.of(finding), samples.of(judging)
