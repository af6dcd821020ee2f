#!/usr/bin/env python3
"""What is in a picture.

    classify_image.py PICTURE MODEL.onnx [--labels labels.txt] [--top 5]

For models that take float[N, 3, H, W] of ImageNet's mean and deviation and give a score for each class, as torchvision's
and the ONNX model zoo's do. `labels.txt` has a line for each class.
"""

import argparse

import numpy as np
from PIL import Image

import sardonyx

MEAN, DEVIATION = np.array([0.485, 0.456, 0.406]), np.array([0.229, 0.224, 0.225])


def read_picture(path, height, width):
    """The middle of a picture, as [1, 3, height, width]."""
    with Image.open(path) as picture:
        picture = picture.convert("RGB")
        scale = max(height / picture.height, width / picture.width) * 256 / 224
        picture = picture.resize((round(picture.width * scale), round(picture.height * scale)), Image.BILINEAR)
        left, top = (picture.width - width) // 2, (picture.height - height) // 2
        pixels = np.asarray(picture.crop((left, top, left + width, top + height)))
    pixels = (pixels / 255 - MEAN) / DEVIATION
    return np.ascontiguousarray(pixels.transpose(2, 0, 1)[None], dtype=np.float32)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("picture")
    parser.add_argument("model")
    parser.add_argument("--labels")
    parser.add_argument("--top", type=int, default=5)
    arguments = parser.parse_args()
    session = sardonyx.InferenceSession(arguments.model)
    (source,) = session.get_inputs()
    height, width = (size if isinstance(size, int) else 224 for size in source.shape[2:])
    scores = session.run(None, {source.name: read_picture(arguments.picture, height, width)})[0].reshape(-1)
    if scores.min() < 0 or not np.isclose(scores.sum(), 1, atol=1e-3):  # no probabilities yet
        scores = np.exp(scores - scores.max())
        scores /= scores.sum()
    labels = None
    if arguments.labels:
        with open(arguments.labels, encoding="utf-8") as file:
            labels = file.read().splitlines()
    for best in np.argsort(-scores)[: arguments.top]:
        print(f"{scores[best]:.4f}  {labels[best] if labels else best}")


if __name__ == "__main__":
    main()
