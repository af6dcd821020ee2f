"""Reads the inner loops that a model's kernels become on NEON.

    neon_loops.py MODEL N      with `sardonyx` on PATH

Compiled for each processor below, there must be an innermost loop of exactly N multiply-adds (fmla) into at least 16
registers, which has no separate additions and leaves no vector on the stack. Prints `ok PROCESSOR`.
"""

import re
import subprocess
import sys

PROCESSORS = ["generic", "cortex-a72", "cortex-a76", "neoverse-n1", "neoverse-v1", "neoverse-n2", "neoverse-v2", "apple-m1", "ampere1"]

# Vectors that a loop may move to the stack or back: LLVM orders instructions for these as if there were more registers.
MOST_ON_STACK = {"cortex-a72": 12, "cortex-a76": 12}


def innermost_loops(assembly):
    lines = [line.split("//")[0].strip() for line in assembly.splitlines()]
    labels = {line[:-1]: i for i, line in enumerate(lines) if line.endswith(":")}
    found = []
    for i, line in enumerate(lines):
        jump = re.match(r"(?:b|b\.\w+|cbn?z \w+,|tbn?z \w+, #\d+,)\s+(\.?\w+)$", re.sub(r"\s+", " ", line))
        if jump and labels.get(jump[1], i) < i:
            found.append((labels[jump[1]], i))
    inner = [a for a in found if not any(b != a and a[0] <= b[0] and b[1] <= a[1] for b in found)]
    return [lines[first:last] for first, last in inner]


def check(processor, model, count):
    command = ["sardonyx", "compile", model, "--to", "asm", "--target", "aarch64-linux-gnu", "--cpu", processor]
    assembly = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    counts = []
    for body in innermost_loops(assembly):
        fused = [line for line in body if line.startswith("fmla")]
        if not fused:
            continue
        counts.append(len(fused))
        if len(fused) != count:
            continue
        registers = {line.split()[1].split(".")[0] for line in fused}
        if len(registers) < 16:
            sys.exit(f"{processor}: the tile has {len(registers)} accumulators")
        wrong = [line for line in body if re.match(r"fadd|fmul", line)]
        stack = [line for line in body if re.match(r"(st|ld)\w+\s+q\d+,.*\[sp", line)]
        if wrong or len(stack) > MOST_ON_STACK.get(processor, 0):
            sys.exit(f"{processor}: the loop of {count} has {(wrong + stack)[0]!r}")
    if count not in counts:
        sys.exit(f"{processor}: no innermost loop has {count} fmla, but {counts}")
    print("ok", processor)


for name in PROCESSORS:
    check(name, sys.argv[1], int(sys.argv[2]))
