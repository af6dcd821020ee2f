#!/usr/bin/env python3
"""Makes examples/digits again: the network of test/Quantization that reads digits, and one of its held-out pictures.

    digits_example.py [FOLDER]

The network is test/Quantization/Networks/digits_cnn with weights of f32. The picture is a held-out one of scikit-learn's
digits, 8 x 8 levels of 0 to 16, each pixel 16 x 16 large.
"""

import sys
from pathlib import Path

import numpy as np
import onnx
from PIL import Image

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "test" / "Quantization"))
import networks  # noqa: E402

DIGIT = 7


def main():
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else ROOT / "examples" / "digits"
    onnx.save(networks.load("digits_cnn"), folder / "digits.onnx")
    data = np.load(networks.FOLDER / "digits_cnn.npz")
    picture = data["x"][np.flatnonzero(data["y"] == DIGIT)[0]]
    pixels = np.kron(np.round(picture * (255 / 16)).astype(np.uint8), np.ones((16, 16), np.uint8))
    Image.fromarray(pixels).save(folder / "seven.png", optimize=True)


if __name__ == "__main__":
    main()
