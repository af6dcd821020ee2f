#!/usr/bin/env python3
"""README's table of figures and its picture, from the tables of docs/performance/Results.md.

    readme_figures.py            writes both
    readme_figures.py --check    fails where one is not current
"""

import math
import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
RESULTS = ROOT / "docs" / "performance" / "Results.md"
README = ROOT / "README.md"
PICTURE = ROOT / "docs" / "images" / "speed.svg"
BEGIN, END = "<!-- figures -->\n", "<!-- end of figures -->"
MODELS = ["resnet50", "mobilenet_v2", "bert_base", "vit_b16", "llama_decode"]
SHOWN = "Zen 5"  # the machine of the picture
COLUMNS = "| model | Sardonyx, 1 thread | onnxruntime | OpenVINO | to the best | 2 threads |"


def machines():
    """{machine: {model: [Sardonyx's, onnxruntime's and OpenVINO's milliseconds of one thread]}}"""
    found = {}
    for section in RESULTS.read_text().split("\n### ")[1:]:
        name, _, text = section.partition("\n")
        if COLUMNS not in text:
            continue
        rows = re.findall(r"^\| (\w+) \| ([\d.]+) \| ([\d.]+) \| ([\d.]+) \|", text, re.M)
        found[name.strip()] = {model: [float(value) for value in values] for model, *values in rows}
    return found


def mean_ratio(rows, peer):
    return math.exp(sum(math.log(times[peer] / times[0]) for times in rows.values()) / len(rows))


def table(found):
    lines = [f"| | {' | '.join(MODELS)} | mean of {max(map(len, found.values()))} models |", "|---" * (len(MODELS) + 2) + "|"]
    for machine, rows in found.items():
        for peer, name in ((1, "onnxruntime"), (2, "OpenVINO")):
            cells = [f"{rows[m][peer] / rows[m][0]:.2f}" if m in rows else "" for m in MODELS]
            lines.append(f"| {machine}, beside {name} | {' | '.join(cells)} | {mean_ratio(rows, peer):.2f} |")
    return "\n".join(lines) + "\n"


def picture(rows):
    """Bars of speed, Sardonyx's being 1 and higher better."""
    left, width, step, bar = 110, 455, 46, 12
    colours = ["#b5482f", "#6a7f94", "#a9b6c2"]
    names = ["Sardonyx", "onnxruntime", "OpenVINO"]
    height = 74 + step * len(rows)
    out = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 640 {height}" font-family="system-ui, sans-serif" font-size="13">',
        f"<title>Speed on one thread of a {SHOWN}, the fastest of each model being 1</title>",
        f'<rect width="640" height="{height}" fill="#fff"/>',
    ]
    for i, name in enumerate(names):
        x = left + 130 * i
        out.append(f'<rect x="{x}" y="12" width="12" height="12" fill="{colours[i]}"/><text x="{x + 18}" y="23" fill="#222">{name}</text>')
    for i, (model, times) in enumerate(rows.items()):
        y = 42 + step * i
        out.append(f'<text x="{left - 10}" y="{y + 23}" text-anchor="end" fill="#222">{model}</text>')
        for j, time in enumerate(times):
            length = width * min(times) / time
            out.append(f'<rect x="{left}" y="{y + j * (bar + 1)}" width="{length:.1f}" height="{bar}" fill="{colours[j]}"/>')
            out.append(f'<text x="{left + length + 5:.1f}" y="{y + j * (bar + 1) + 10}" font-size="10" fill="#555">{time:.2f} ms</text>')
    note = f"Speed on one thread of a {SHOWN}, the fastest of each model being 1: longer is better"
    out.append(f'<text x="{left}" y="{height - 12}" font-size="12" fill="#555">{note}</text>')
    return "\n".join([*out, "</svg>"]) + "\n"


def main():
    found = machines()
    text = README.read_text()
    before, _, rest = text.partition(BEGIN)
    _, _, after = rest.partition(END)
    made = {README: before + BEGIN + "\n" + table(found) + "\n" + END + after, PICTURE: picture(found[SHOWN])}
    for path, new in made.items():
        if sys.argv[1:] == ["--check"] and path.read_text() != new:
            sys.exit(f"{path.relative_to(ROOT)} is not what the tables say; utils/readme_figures.py writes it again")
        path.write_text(new)


if __name__ == "__main__":
    main()
