#!/usr/bin/env python3
"""Which digit is in a picture.

    read_digit.py examples/digits/seven.png examples/digits/digits.onnx

The network takes float[N, 1, 8, 8], white as 1 and black as -1, and gives a score for each digit.
"""

import argparse

import numpy as np
from PIL import Image

import sardonyx


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("picture")
    parser.add_argument("model")
    arguments = parser.parse_args()
    with Image.open(arguments.picture) as picture:
        pixels = np.asarray(picture.convert("L").resize((8, 8), Image.BOX), np.float32)
    session = sardonyx.InferenceSession(arguments.model)
    (source,) = session.get_inputs()
    (scores,) = session.run(None, {source.name: pixels[None, None] / 127.5 - 1})
    powers = np.exp(scores[0] - scores[0].max())
    print(f"{powers.argmax()}, with a probability of {powers.max() / powers.sum():.3f}")


if __name__ == "__main__":
    main()
