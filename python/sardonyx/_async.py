"""Runs that go on while their caller does something else."""

from __future__ import annotations

import os
import queue
import threading
from concurrent.futures import Future
from typing import Any


class RunFuture(Future):
    """What `run_async` gives: a `concurrent.futures.Future` that can be awaited, too.

    Cancelling it, or the task that awaits it, ends a run that has begun, unless its caller has options for it.
    """

    _options: Any = None  # the run's, where no caller has them

    def __await__(self):
        import asyncio  # takes longer than the whole package

        return asyncio.wrap_future(self).__await__()

    def cancel(self) -> bool:
        if super().cancel():
            return True
        if self._options is not None:
            self._options.terminate = True
        return False


class Runners:
    """Threads that take calls in order, at most one for each processor.

    A program that ends does not wait for them, and a forked child starts its own.
    """

    def __init__(self):
        self._most = len(os.sched_getaffinity(0))
        self._forget()
        os.register_at_fork(after_in_child=self._forget)

    def _forget(self):
        self._calls = queue.SimpleQueue()
        self._idle = threading.Semaphore(0)
        self._lock = threading.Lock()
        self._started = 0

    def submit(self, call, *arguments) -> RunFuture:
        future = RunFuture()
        self._calls.put((future, call, arguments))
        if not self._idle.acquire(blocking=False):
            with self._lock:
                if self._started < self._most:
                    self._started += 1
                    threading.Thread(target=self._work, name="sardonyx-run", daemon=True).start()
        return future

    def _work(self):
        while True:
            future, call, arguments = self._calls.get()
            if future.set_running_or_notify_cancel():
                try:
                    result = call(*arguments)
                except BaseException as error:
                    future.set_exception(error)
                else:
                    future.set_result(result)
                    del result
            # Nothing is kept for a call that may not come.
            del future, call, arguments
            self._idle.release()


runners = Runners()


def tell(callback, user_data):
    """What calls `callback(results, user_data, error)` when a future is done, as onnxruntime does."""

    def done(future: Future) -> None:
        if future.cancelled():
            callback([], user_data, "the run was cancelled")
        elif error := future.exception():
            callback([], user_data, str(error))
        else:
            callback(future.result(), user_data, "")

    return done
