#!/usr/bin/env python3
"""Trains the networks of test/Quantization/Networks again: the same bytes with the same releases.

    train_networks.py FOLDER [NAME ...]

NAME is digits_cnn, text_lm or image_unet (test/Quantization/networks.py tells of them); each takes less than a minute of
one core. It is to be run by a Python that has numpy 2.4.6, onnx 1.23.2, torch 2.15.0 and scikit-learn 1.9.1.
"""

import importlib
import inspect
import io
import pkgutil
import sys
import time
from pathlib import Path

import numpy as np
import onnx
import sklearn
import torch
import torch.nn.functional as F
from sklearn.datasets import load_digits, load_sample_images
from torch import nn

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "test" / "Quantization"))
import networks  # noqa: E402


class Digits(nn.Module):
    def __init__(self):
        super().__init__()

        def block(i, o, stride):
            return nn.Sequential(
                nn.Conv2d(i, i, 3, stride, 1, groups=i, bias=False), nn.BatchNorm2d(i), nn.ReLU(),
                nn.Conv2d(i, o, 1, bias=False), nn.BatchNorm2d(o), nn.ReLU(),
            )  # fmt: skip

        self.stem = nn.Sequential(nn.Conv2d(1, 24, 3, 1, 1, bias=False), nn.BatchNorm2d(24), nn.ReLU())
        self.b1, self.b2, self.b3, self.b4 = block(24, 48, 1), block(48, 48, 1), block(48, 96, 2), block(96, 128, 2)
        self.fc1, self.fc2 = nn.Linear(128, 64), nn.Linear(64, 10)

    def forward(self, x):
        x = self.b1(self.stem(x))
        x = x + self.b2(x)
        x = self.b4(self.b3(x)).mean((2, 3))
        return self.fc2(F.relu(self.fc1(x)))


def train_digits(steps=1500):
    """Images are turned, scaled and moved at random; half of them are held out."""
    data = load_digits()
    images, y = data.images.astype(np.uint8), data.target
    order = np.random.default_rng(0).permutation(len(y))
    train, test = order[:899], order[899:]
    net = Digits()
    optimiser = torch.optim.AdamW(net.parameters(), 3e-3, weight_decay=0.02)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimiser, 6e-3, steps)
    x, t = torch.tensor(networks.inputs("digits", images[train])), torch.tensor(y[train])
    for _ in range(steps):
        i = torch.randint(len(t), (64,))
        batch = x[i]
        angle = (torch.rand(64) - 0.5) * 0.5
        size = 1 + (torch.rand(64) - 0.5) * 0.3
        shift = (torch.rand(64, 2) - 0.5) * 0.4
        rows = [
            torch.stack([angle.cos() * size, -angle.sin() * size, shift[:, 0]], 1),
            torch.stack([angle.sin() * size, angle.cos() * size, shift[:, 1]], 1),
        ]
        grid = F.affine_grid(torch.stack(rows, 1), batch.shape, align_corners=False)
        batch = F.grid_sample(batch + 1, grid, align_corners=False) - 1
        loss = F.cross_entropy(net(batch), t[i], label_smoothing=0.05)
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
        schedule.step()
    data = {"cal": images[train[:256]], "x": images[test], "y": y[test].astype(np.uint8)}
    return net, data, ("x", "logits"), {0: "N"}


def corpus():
    """scikit-learn's docstrings, in the order of its modules' names; ASCII only."""
    texts, seen = [], set()
    left_out = ("_", "conftest", "experimental")
    for module in sorted(i.name for i in pkgutil.iter_modules(sklearn.__path__) if not i.name.startswith(left_out)):
        try:
            loaded = importlib.import_module("sklearn." + module)
        except Exception:
            continue
        for name in sorted(getattr(loaded, "__all__", [])):
            try:
                text = inspect.getdoc(getattr(loaded, name)) or ""
            except (AttributeError, ImportError):
                continue
            if len(text) > 400 and text not in seen:
                seen.add(text)
                texts.append(text)
    return np.frombuffer("\n\n".join(texts).encode("ascii", "ignore"), np.uint8)


class Layer(nn.Module):
    def __init__(self, size, heads):
        super().__init__()
        self.heads = heads
        self.n1, self.n2 = nn.LayerNorm(size), nn.LayerNorm(size)
        self.q, self.k, self.v, self.o = (nn.Linear(size, size, bias=False) for _ in range(4))
        self.up, self.down = nn.Linear(size, 4 * size), nn.Linear(4 * size, size)

    def forward(self, x, mask):
        h = self.n1(x)
        n, t, _ = h.shape
        size = self.o.in_features
        each = size // self.heads
        q, k, v = (f(h).view(n, t, self.heads, each).transpose(1, 2) for f in (self.q, self.k, self.v))
        a = (q @ k.transpose(2, 3) * each**-0.5 + mask).softmax(-1) @ v
        x = x + self.o(a.transpose(1, 2).reshape(n, t, size))
        return x + self.down(F.gelu(self.up(self.n2(x))))


class Text(nn.Module):
    def __init__(self, size, layers, heads, length):
        super().__init__()
        self.tok, self.pos = nn.Embedding(128, size), nn.Parameter(torch.randn(length, size) * 0.02)
        self.layers = nn.ModuleList(Layer(size, heads) for _ in range(layers))
        self.norm = nn.LayerNorm(size)
        self.head = nn.Linear(size, 128, bias=False)
        self.register_buffer("mask", torch.triu(torch.full((length, length), -1e4), 1))

    def forward(self, ids):
        x = self.tok(ids) + self.pos
        for layer in self.layers:
            x = layer(x, self.mask)
        return self.head(self.norm(x))


def train_text(steps=900, length=64):
    """The last tenth of the text is held out."""
    data = corpus()
    cut = len(data) * 9 // 10
    train, held = data[:cut], data[cut:]
    net = Text(128, 2, 4, length)
    optimiser = torch.optim.AdamW(net.parameters(), 2e-3, betas=(0.9, 0.95), weight_decay=0.05)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimiser, 4e-3, steps, pct_start=0.15)
    t = torch.tensor(train.astype(np.int64))
    for _ in range(steps):
        i = torch.randint(len(t) - length - 1, (24, 1)) + torch.arange(length)
        loss = F.cross_entropy(net(t[i]).flatten(0, 1), t[i + 1].flatten())
        optimiser.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(net.parameters(), 1.0)
        optimiser.step()
        schedule.step()
    test, calibration = held[: 256 * length + 1], train[len(train) // 3 :][: 64 * length + 1]
    rows = {"cal": calibration[:-1], "x": test[:-1], "y": test[1:]}
    return net, {name: part.reshape(-1, length) for name, part in rows.items()}, ("ids", "logits"), {0: "N"}


class Image(nn.Module):
    def __init__(self):
        super().__init__()

        def pair(i, o, stride=1):
            return nn.Sequential(nn.Conv2d(i, o, 3, stride, 1), nn.ReLU())

        self.a = nn.Sequential(pair(3, 16), pair(16, 16))
        self.b = nn.Sequential(pair(16, 32, 2), pair(32, 32))
        self.c = nn.Sequential(pair(32, 64, 2), pair(64, 64))
        self.u1, self.d = nn.ConvTranspose2d(64, 32, 2, 2), pair(64, 32)
        self.u2, self.e = nn.ConvTranspose2d(32, 16, 2, 2), pair(32, 16)
        self.out = nn.Conv2d(16, 3, 3, 1, 1)

    def forward(self, x):
        a = self.a(x)
        b = self.b(a)
        c = self.c(b)
        d = self.d(torch.cat([self.u1(c), b], 1))
        e = self.e(torch.cat([self.u2(d), a], 1))
        return x - self.out(e)


def train_image(steps=800):
    """Part of the second image is held out."""
    china, flower = (np.ascontiguousarray(image.transpose(2, 0, 1)) for image in load_sample_images().images)
    left, test = flower[:, :, :320], flower[:, 117:309, 384:576]
    net = Image()
    optimiser = torch.optim.AdamW(net.parameters(), 1e-3)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimiser, 3e-3, steps)
    images = [torch.tensor(image).float() / 255 for image in (china, left)]
    for _ in range(steps):
        batch = []
        for _ in range(16):
            image = images[int(torch.rand(()) < 0.4)]
            top = int(torch.randint(image.shape[1] - 40, ()))
            start = int(torch.randint(image.shape[2] - 40, ()))
            part = image[:, top : top + 40, start : start + 40]
            batch.append(part.flip(2) if torch.rand(()) < 0.5 else part)
        batch = torch.stack(batch)
        loss = F.mse_loss(net(batch + torch.randn_like(batch) * (25 / 255)), batch)
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
        schedule.step()
    calibration = np.stack([china[:, i : i + 48, j : j + 48] for i in range(64, 320, 96) for j in range(0, 576, 144)])
    return net, {"cal": calibration, "x": test[None]}, ("noisy", "clean"), {0: "N", 2: "H", 3: "W"}


TRAINING = {"digits_cnn": train_digits, "text_lm": train_text, "image_unet": train_image}


def round_weights(model):
    """Rounds to f16 what the export has folded, so that f16 holds it exactly."""
    for tensor in model.graph.initializer:
        if tensor.data_type == onnx.TensorProto.FLOAT:
            values = onnx.numpy_helper.to_array(tensor).astype(np.float16).astype(np.float32)
            tensor.CopyFrom(onnx.numpy_helper.from_array(values, tensor.name))


def main():
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    folder = Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    torch.set_num_threads(1)
    for name in sys.argv[2:] or TRAINING:
        torch.manual_seed(0)
        start = time.process_time()
        net, data, (source, result), axes = TRAINING[name]()
        seconds = time.process_time() - start
        net.eval()
        with torch.no_grad():
            for parameter in net.parameters():
                parameter.copy_(parameter.half().float())
        made = io.BytesIO()
        open_axes = {source: axes, result: axes if name == "image_unet" else {0: "N"}}
        torch.onnx.export(
            net, (torch.tensor(networks.inputs(name, data["x"][:2])),), made, input_names=[source],
            output_names=[result], dynamo=False, opset_version=20, dynamic_axes=open_axes,
        )  # fmt: skip
        model = onnx.load_from_string(made.getvalue())
        round_weights(model)
        onnx.checker.check_model(model)
        onnx.save(networks.pack(model), folder / f"{name}.onnx")
        np.savez_compressed(folder / f"{name}.npz", **data)
        print(f"{name}: {sum(each.numel() for each in net.parameters())} parameters, {seconds:.0f} s", flush=True)


if __name__ == "__main__":
    main()
