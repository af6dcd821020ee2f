#!/usr/bin/env python3
"""Continues a list of tokens, each time with the keys and values of those before.

    generate_tokens.py MODEL.onnx TOKEN TOKEN ... [--count 20] [--stop TOKEN]

For decoders as optimum exports them: inputs input_ids, attention_mask, perhaps position_ids, and for each layer
past_key_values.N.key and .value of [batch, heads, past, size]; outputs logits and present.N.key and .value. Prints the
likeliest tokens, and how long one took.
"""

import argparse
import time

import numpy as np

import sardonyx

DTYPES = {"tensor(float)": np.float32, "tensor(float16)": np.float16}


class Decoder:
    def __init__(self, path):
        self.session = sardonyx.InferenceSession(path)
        self.inputs = {value.name: value for value in self.session.get_inputs()}
        self.outputs = [value.name for value in self.session.get_outputs()]
        self.past = {
            name: np.zeros((1, value.shape[1], 0, value.shape[3]), DTYPES[value.type])
            for name, value in self.inputs.items()
            if name.startswith("past_key_values.")
        }
        self.length = 0

    def step(self, tokens):
        """Takes some tokens and gives the scores of the one after them."""
        ids = np.array([tokens], np.int64)
        end = self.length + len(tokens)
        feeds = {"input_ids": ids, "attention_mask": np.ones((1, end), np.int64)}
        if "position_ids" in self.inputs:
            feeds["position_ids"] = np.arange(self.length, end)[None]
        results = dict(zip(self.outputs, self.session.run(None, {**feeds, **self.past})))
        # What comes out as present goes in again as past, without a copy.
        self.past = {name: results[name.replace("past_key_values", "present")] for name in self.past}
        self.length = end
        return results["logits"][0, -1]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model")
    parser.add_argument("tokens", type=int, nargs="+")
    parser.add_argument("--count", type=int, default=20)
    parser.add_argument("--stop", type=int)
    arguments = parser.parse_args()
    decoder = Decoder(arguments.model)
    token, made, seconds = int(decoder.step(arguments.tokens).argmax()), [], []
    while len(made) < arguments.count and token != arguments.stop:
        made.append(token)
        start = time.perf_counter()
        token = int(decoder.step([token]).argmax())
        seconds.append(time.perf_counter() - start)
    print(*made)
    if seconds:
        print(f"{1e3 * np.median(seconds):.2f} ms a token")


if __name__ == "__main__":
    main()
