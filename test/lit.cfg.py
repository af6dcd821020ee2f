"""lit configuration: RUN lines find our tools in the build folder and LLVM's in its own."""

import os

import lit.formats

config.name = "Sardonyx"
config.test_format = lit.formats.ShTest(execute_external=False)
config.suffixes = [".mlir", ".onnxtxt", ".test"]
config.excludes = ["Inputs", "Fuzz"]
config.test_source_root = os.path.dirname(__file__)

build = lit_config.params.get("build", os.environ.get("SARDONYX_BUILD", ""))
if not build:
    build = os.path.join(config.test_source_root, "..", "build", "release")
build = os.path.abspath(build)
config.test_exec_root = os.path.join(build, "test-lit")
os.makedirs(config.test_exec_root, exist_ok=True)

llvm = lit_config.params.get("llvm", "/usr/lib/llvm-22")
python = lit_config.params.get(
    "python", os.path.join(config.test_source_root, "..", ".venv", "bin", "python")
)
config.environment["PATH"] = os.pathsep.join(
    [os.path.join(build, "bin"), os.path.join(llvm, "bin"), os.environ["PATH"]]
)
# The address sanitizer's build has a libLLVM beside it that it didn't build.
config.environment["ASAN_OPTIONS"] = "detect_leaks=0:detect_container_overflow=0:allow_user_poisoning=0"
# A tree without a target is a compiler for the others.
targets = os.path.join(config.test_source_root, "..", "lib", "Targets")
for target in ("CPU", "NVPTX"):
    if os.path.isdir(os.path.join(targets, target)):
        config.available_features.add(target.lower())
config.substitutions.append(("%python", os.path.abspath(python)))
config.substitutions.append(("%build", build))
