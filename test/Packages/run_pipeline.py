"""Runs a package's own code with one engine as its onnxruntime, in the package's environment.

    run_pipeline.py ENGINE PIPELINE RESULT

ENGINE is `onnxruntime` or `sardonyx`, PIPELINE a function of pipelines.py, RESULT the file that gets its results
(pickled) and how often the engine ran. A package that found another engine fails here.
"""

import importlib
import pickle
import sys

engine, name, result = sys.argv[1:]
if engine == "sardonyx":
    import sardonyx

    sardonyx.install_as_onnxruntime()
import onnxruntime  # noqa: E402

runs = 0
Session = importlib.import_module(engine).InferenceSession
assert onnxruntime.InferenceSession is Session, "the package has another engine"
plain = Session.run


def run(self, *arguments, **options):
    global runs
    runs += 1
    return plain(self, *arguments, **options)


Session.run = run

import pipelines  # noqa: E402

values = getattr(pipelines, name)()
with open(result, "wb") as file:
    pickle.dump({"runs": runs, "values": values}, file)
