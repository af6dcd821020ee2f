"""Makes a faulty trial as small as it gets while its fault stays."""

import copy

import workers
from graphs import Value
from references import Refused
from trial import Settings, Trial, attempt


def serve(trial, stage):
    return attempt(trial, stage)


def outcome(trial, seconds):
    """The kind of fault of a trial, or None, and its text."""
    result = workers.alone(serve, trial, seconds)
    if result["status"] == "fault":
        return result["kind"], result
    if result["status"] == "dead":
        return result["kind"] if result["stage"] else None, result
    return None, result


def with_outputs(graph, outputs):
    """The graph with these outputs and only what they need."""
    new = copy.copy(graph)
    new.outputs, needed, steps = list(outputs), set(outputs), []
    for step in reversed(graph.steps):
        if needed & set(step.outputs):
            steps.append(step)
            needed |= set(step.inputs)
    new.steps = steps[::-1]
    new.inputs = [n for n in graph.inputs if n in needed]
    new.consts = [n for n in graph.consts if n in needed]
    return new


def without(graph, step, arrays):
    """The graph with the results of a step as inputs."""
    new = copy.copy(graph)
    new.values, new.dims = dict(graph.values), dict(graph.dims)
    new.steps = [s for s in graph.steps if s is not step]
    new.inputs = list(graph.inputs)
    for name in step.outputs:
        new.values[name] = Value(name, arrays[name], "input", keep=True)
        new.dims[name] = [f"{name}_{i}" if graph.open_sizes else s for i, s in enumerate(arrays[name].shape)]
        new.inputs.append(name)
    kept = [o for o in graph.outputs if o not in step.outputs]
    return with_outputs(new, kept) if kept else None


def closed(graph):
    new = copy.copy(graph)
    new.dims = {n: list(graph.values[n].array.shape) for n in graph.inputs}
    new.open_sizes = False
    return new


def changed(trial, graph, runs=None, **more):
    """With this graph, these runs and these settings."""
    runs = trial.runs if runs is None else runs
    return Trial(graph, [{n: r[n] for n in graph.inputs} for r in runs], trial.settings._replace(**more))


def minimise(trial, seconds=30):
    """(smaller trial, its result)."""
    kind, result = outcome(trial, seconds)
    if kind is None:
        return trial, None
    best = [trial, result]

    def better(candidate):
        if candidate is None:
            return False
        found, result = outcome(candidate, seconds)
        if found == kind:
            best[:] = [candidate, result]
            return True
        return False

    graph = trial.graph
    if kind != "not deterministic":
        for run in trial.runs:
            if better(changed(trial, graph, [run])):
                break
    # The shortest beginning that fails, then the shortest end.
    for step in graph.steps:
        if len(graph.steps) > 1 and better(changed(best[0], with_outputs(graph, step.outputs))):
            break
    for name in best[0].graph.outputs:
        if len(best[0].graph.outputs) > 1 and better(changed(best[0], with_outputs(best[0].graph, [name]))):
            break
    for step in list(best[0].graph.steps)[:-1]:
        now = best[0]
        if step not in now.graph.steps:
            continue
        try:
            each = [now.graph.step_through(feeds) for feeds in now.runs]
        except Refused:
            break
        graph = without(now.graph, step, each[0])
        if graph is not None:
            runs = [{n: values[n] for n in graph.inputs} for values in each]
            better(Trial(graph, runs, now.settings))
    now = best[0]
    if len(now.runs) == 1:
        graph = copy.copy(now.graph)
        graph.values = dict(graph.values)
        for name, array in now.runs[0].items():
            graph.values[name] = Value(name, array, "input", True)
        better(Trial(closed(graph), now.runs, now.settings))
    for name, value in Settings()._asdict().items():
        if getattr(best[0].settings, name) != value:
            better(changed(best[0], best[0].graph, **{name: value}))
    return best[0], best[1]
