"""What the fuzzers count and tell while they run."""

import collections
import time


class Counts:
    """How many models ended how. `save` is called with those that are faults."""

    def __init__(self):
        self.counts, self.kinds = collections.Counter(), collections.Counter()
        self.started = self.told = time.monotonic()

    def take(self, seed, result):
        status = result["status"]
        if status == "dead" and not result["stage"]:
            status = "reference died"
        self.counts["fault" if status == "dead" else status] += 1
        if status == "broken":
            print(f"seed {seed}: the fuzzer itself failed:\n{result['text']}", flush=True)
        if status in ("fault", "dead"):
            self.save(seed, result)
        if time.monotonic() > self.told + 60:
            self.told = time.monotonic()
            print(f"[{self.told - self.started:5.0f} s] {dict(self.counts)}", flush=True)
