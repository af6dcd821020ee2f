"""Processes that may crash or hang."""

import ctypes
import multiprocessing
import os
import signal
import tempfile
import time
import traceback
from multiprocessing.connection import wait

CONTEXT = multiprocessing.get_context("fork")
TICKS = os.sysconf("SC_CLK_TCK")
PATIENCE = 10  # wall time allowed for each second of the limit: a starved process is no hang


def cpu_seconds(pid):
    """What a process and its threads have computed so far; 0 if it is gone."""
    try:
        with open(f"/proc/{pid}/stat") as stat:
            fields = stat.read().rpartition(")")[2].split()
    except OSError:
        return 0.0
    return (int(fields[11]) + int(fields[12])) / TICKS


class Worker:
    """Answers tasks, one after the other, by calling `serve(task, stage)`."""

    def __init__(self, serve):
        self.pipe, child = CONTEXT.Pipe()
        self.log = tempfile.TemporaryFile()
        self.process = CONTEXT.Process(target=self.main, args=(child, serve))
        self.process.start()
        child.close()
        self.task, self.stage, self.deadline, self.cpu_limit = None, "", 0.0, 0.0

    def main(self, pipe, serve):
        os.setpgid(0, 0)
        ctypes.CDLL(None).prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG: go when the parent goes
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        for stream in (1, 2):
            os.dup2(self.log.fileno(), stream)
        while (task := pipe.recv()) is not None:
            try:
                result = serve(task, lambda text: pipe.send(("stage", text)))
            except BaseException:
                result = {"status": "broken", "text": traceback.format_exc()[-1500:]}
            pipe.send(("result", result))

    def give(self, task, seconds):
        """A task that may compute for so many seconds."""
        self.task, self.stage = task, ""
        self.deadline = time.monotonic() + PATIENCE * seconds
        self.cpu_limit = cpu_seconds(self.process.pid) + seconds
        self.pipe.send(task)

    def poll(self):
        """A result when there is one; a crash and an overrun are results too."""
        try:
            while self.pipe.poll():
                kind, value = self.pipe.recv()
                if kind == "result":
                    return value
                self.stage = value
        except (EOFError, ConnectionResetError):
            self.process.join(5)
            code = self.process.exitcode
            name = signal.Signals(-code).name if code and code < 0 else f"exit status {code}"
            self.log.seek(0)
            said = " ".join(self.log.read().decode(errors="replace").split())[-300:]
            return {"status": "dead", "kind": "crash", "stage": self.stage, "text": f"{name} {said}".strip()}
        if cpu_seconds(self.process.pid) > self.cpu_limit or time.monotonic() > self.deadline:
            self.kill()
            return {"status": "dead", "kind": "hang", "stage": self.stage, "text": "over the time limit"}
        return None

    def kill(self):
        for how in (lambda: os.killpg(self.process.pid, signal.SIGKILL), self.process.kill):
            try:
                how()
            except ProcessLookupError:
                pass
        self.process.join()
        self.pipe.close()


def alone(serve, task, seconds):
    """The result of one task in a process of its own; the task need not be fit for a pipe."""
    worker = Worker(lambda _, stage: serve(task, stage))
    worker.give("go", seconds)
    try:
        while (result := worker.poll()) is None:
            wait([worker.pipe], 0.5)
        return result
    finally:
        worker.kill() if worker.process.is_alive() else None


def serve_all(serve, tasks, jobs, seconds, finished, lifetime=400):
    """Gives every task to a worker and every result to finished(task, result). A worker that
    died or has had `lifetime` tasks is replaced. Stops when `finished` says True."""
    tasks, workers, stop = iter(tasks), [], False
    try:
        while not stop:
            while len(workers) < jobs and (task := next(tasks, None)) is not None:
                workers.append(Worker(serve))
                workers[-1].give(task, seconds)
                workers[-1].served = 1
            if not workers:
                return
            wait([w.pipe for w in workers], 0.5)
            for worker in list(workers):
                result = worker.poll()
                if result is None:
                    continue
                stop |= bool(finished(worker.task, result))
                task = None if result["status"] == "dead" or worker.served >= lifetime else next(tasks, None)
                if task is None:
                    worker.kill() if worker.process.is_alive() else None
                    workers.remove(worker)
                else:
                    worker.give(task, seconds)
                    worker.served += 1
    finally:
        for worker in workers:
            worker.kill()
