#!/usr/bin/env python3
"""Pictures of what a user sees, for the pages of docs.

    screens.py            makes all, in docs/images
    screens.py --check    fails where one of help is not what the command prints today

Help is text of 80 columns as SVG, light or dark as the reader's system is. The page of `sardonyx profile --html` is photographed by Chromium at
widths of 800 and 1280 pixels, light and dark; its times are those of the machine that this runs on. SARDONYX_BUILD is the folder of the build.
"""

import html
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
BUILD = Path(os.environ.get("SARDONYX_BUILD", ROOT / "build" / "release"))
IMAGES = ROOT / "docs" / "images"
TOOL = BUILD / "bin" / "sardonyx"
COLUMNS = 80
HELP = {"help": ["--help"], "help-run": ["run", "--help"]}
WIDTHS = [800, 1280]
SCHEMES = {"light": 1, "dark": 0}  # as Blink numbers them
COLOURS = 48  # of a photograph
STYLE = """text { font: 13px ui-monospace, Menlo, Consolas, "DejaVu Sans Mono", monospace; fill: #1f2328; white-space: pre }
rect { fill: #f6f8fa; stroke: #d0d7de } .prompt { font-weight: bold }
@media (prefers-color-scheme: dark) { text { fill: #e6edf3 } rect { fill: #0d1117; stroke: #30363d } }"""


def printed(arguments):
    return subprocess.run([TOOL, *arguments], capture_output=True, text=True, check=True).stdout


def drawing(arguments, text):
    """A terminal with a command and what it printed, which must fit into its columns."""
    lines = [f"$ sardonyx {' '.join(arguments)}", *text.rstrip("\n").split("\n")]
    long = [line for line in lines if len(line) > COLUMNS]
    if long:
        sys.exit(f"'sardonyx {' '.join(arguments)}' prints a line of more than {COLUMNS} columns: {long[0]}")
    cell, step, margin = 7.83, 18, 14
    width, height = round(COLUMNS * cell + 2 * margin), step * len(lines) + 2 * margin
    out = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" viewBox="0 0 {width} {height}">',
        f"<title>{html.escape(lines[0])}</title>\n<style>{STYLE}</style>",
        f'<rect x="0.5" y="0.5" width="{width - 1}" height="{height - 1}" rx="6"/>',
    ]
    for i, line in enumerate(lines):
        if not line:
            continue
        kind = ' class="prompt"' if i == 0 else ""
        # As wide as its letters are many, whatever font there is.
        indent = len(line) - len(line.lstrip())
        place = f'x="{margin + indent * cell:.1f}" y="{margin + step * i + 13}" textLength="{(len(line) - indent) * cell:.1f}"'
        out.append(f"<text{kind} {place}>{html.escape(line.strip(), quote=False)}</text>")
    return "\n".join([*out, "</svg>"]) + "\n"


def photograph(page, width, scheme, target):
    """A page as PNG of few colours."""
    from PIL import Image

    with tempfile.TemporaryDirectory() as folder:
        shot = Path(folder) / "shot.png"
        flags = ["--headless=new", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", f"--user-data-dir={folder}/profile"]
        size = [f"--window-size={width},900", f"--blink-settings=preferredColorScheme={SCHEMES[scheme]}"]
        command = [shutil.which("chromium"), *flags, *size, f"--screenshot={shot}", page.as_uri()]
        subprocess.run(command, capture_output=True, check=True, timeout=120)
        with Image.open(shot) as image:
            image.convert("RGB").quantize(COLOURS).save(target, optimize=True)


def main():
    check = sys.argv[1:] == ["--check"]
    for name, arguments in HELP.items():
        path, text = IMAGES / f"{name}.svg", drawing(arguments, printed(arguments))
        if check and (not path.exists() or path.read_text() != text):
            sys.exit(f"{path.relative_to(ROOT)} is not what the command prints; utils/screens.py makes it again")
        path.write_text(text)
    if check:
        return
    with tempfile.TemporaryDirectory() as folder:
        page = Path(folder) / "profile.html"
        printed(["profile", str(ROOT / "examples/digits/digits.onnx"), "--dim", "N=64", "--seconds", "1", "--html", str(page)])
        text = page.read_text().replace(f"{ROOT}/", "")
        page.write_text(text)
        for width in WIDTHS:
            for scheme in SCHEMES:
                photograph(page, width, scheme, IMAGES / f"profile-{width}-{scheme}.png")


if __name__ == "__main__":
    main()
