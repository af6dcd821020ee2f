#!/usr/bin/env python3
"""How alike sentences are.

    embed_text.py MODEL.onnx VOCABULARY.txt SENTENCE SENTENCE ...

For encoders of the BERT family with their vocab.txt, such as all-MiniLM-L6-v2: inputs input_ids, attention_mask and
perhaps token_type_ids, a first output of a vector for each token. The sentence's vector is their mean. Prints the cosine
of the first sentence's vector with each other one's.
"""

import argparse
import unicodedata

import numpy as np

import sardonyx


class Tokenizer:
    """WordPiece without case, as BERT has it."""

    def __init__(self, path):
        with open(path, encoding="utf-8") as file:
            self.ids = {token.rstrip("\n"): i for i, token in enumerate(file)}

    def words(self, text):
        text = unicodedata.normalize("NFD", text.lower())
        word = ""
        for char in text:
            kind = unicodedata.category(char)
            if kind == "Mn":
                continue
            if char.isspace() or kind[0] in "PS" or 0x4E00 <= ord(char) <= 0x9FFF:
                if word:
                    yield word
                word = ""
                if not char.isspace():
                    yield char
            else:
                word += char
        if word:
            yield word

    def pieces(self, word):
        """The longest piece first, each after the first with ## in front."""
        start, pieces = 0, []
        while start < len(word):
            for end in range(len(word), start, -1):
                piece = self.ids.get(("##" if start else "") + word[start:end])
                if piece is not None:
                    break
            else:
                return [self.ids["[UNK]"]]
            pieces.append(piece)
            start = end
        return pieces

    def __call__(self, text):
        inside = [piece for word in self.words(text) for piece in self.pieces(word)]
        return [self.ids["[CLS]"], *inside, self.ids["[SEP]"]]


def embed(session, tokenizer, sentences):
    """A vector of length 1 for each sentence: [sentences, size]."""
    lists = [tokenizer(sentence) for sentence in sentences]
    length = max(map(len, lists))
    ids = np.array([tokens + [0] * (length - len(tokens)) for tokens in lists], np.int64)
    mask = np.array([[1] * len(tokens) + [0] * (length - len(tokens)) for tokens in lists], np.int64)
    feeds = {"input_ids": ids, "attention_mask": mask, "token_type_ids": np.zeros_like(ids)}
    names = {value.name for value in session.get_inputs()}
    tokens = session.run(None, {name: feed for name, feed in feeds.items() if name in names})[0]
    vectors = (tokens * mask[..., None]).sum(1) / mask.sum(1, keepdims=True)
    return vectors / np.linalg.norm(vectors, axis=1, keepdims=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model")
    parser.add_argument("vocabulary")
    parser.add_argument("sentences", nargs="+")
    arguments = parser.parse_args()
    session = sardonyx.InferenceSession(arguments.model)
    vectors = embed(session, Tokenizer(arguments.vocabulary), arguments.sentences)
    for vector, sentence in zip(vectors[1:], arguments.sentences[1:]):
        print(f"{vector @ vectors[0]:.4f}  {sentence}")


if __name__ == "__main__":
    main()
