"""Reads the inner loops that a model's kernels become, for many processors.

    hot_loops.py MODEL --fma 512:N 256:M [--mixed] [--prefetch P]      with `sardonyx` on PATH
    hot_loops.py MODEL --bytes tiles:T quads:Q 512:N 256:M [--prefetch P]
    hot_loops.py MODEL --bf16 tiles:T pairs:Q 512:N 256:M [--prefetch P]

For each processor MODEL is compiled to assembly. There must be an innermost loop of exactly N (at 256 bits M) fused
multiply-adds that stores no vector on the stack and, without --mixed, neither reads one from there nor has other
arithmetic on vectors; one of them has P instructions that prefetch (none by default; Q at 256 bits with --prefetch P:Q). In no innermost loop may the product of a
multiplication be added to something by another instruction. With --bytes the instructions counted are those that
multiply 8-bit integers: T of tdpbusd where the processor has it, Q of vpdpbusd where it has that for its widest vectors,
else vpmaddwd, beside which there is nothing on vectors but vpaddd and loads. With --bf16 they are those of bf16: T of
tdpbf16ps, Q of vdpbf16ps, else multiply-adds of f32. Loops of tiles prefetch twice. Prints `ok PROCESSOR` for each processor; anything else is an error with the reason.
"""

import argparse
import re
import subprocess
import sys

PROCESSORS = {
    "haswell": 256,
    "znver2": 256,
    "znver3": 256,
    "skylake-avx512": 512,
    "cascadelake": 512,
    "icelake-server": 512,
    "sapphirerapids": 512,
    "znver4": 512,
    "znver5": 512,
}
FUSED = re.compile(r"vfn?m(add|sub)\d+ps")
TILES = {"sapphirerapids"}
QUADS = {"cascadelake", "icelake-server", "znver4", "znver5"}
PAIRS = {"znver4", "znver5"}


def innermost_loops(assembly):
    """The bodies of loops without another loop inside, as lists of (mnemonic, operands)."""
    labels, body, backward = {}, [], []
    for line in assembly.splitlines():
        line = line.split("#")[0].strip()
        label = re.match(r"([.\w]+):$", line)
        if label:
            labels[label.group(1)] = len(body)
        elif line and not line.startswith("."):
            mnemonic, _, operands = line.partition("\t")
            body.append((mnemonic, operands))
            jump = re.match(r"j\w+$", mnemonic)
            if jump and labels.get(operands.strip(), len(body)) < len(body):
                backward.append((labels[operands.strip()], len(body)))
    return [
        body[begin:end]
        for begin, end in backward
        if not any((b, e) != (begin, end) and begin <= b and e <= end for b, e in backward)
    ]


def separate_adds(loop):
    """Additions one of whose operands is the product that the loop computed before."""
    products, found = set(), []
    for mnemonic, operands in loop:
        registers = re.findall(r"%[xyz]mm\d+", operands)
        if not registers:
            continue
        if mnemonic in ("vaddps", "vsubps") and products & set(registers[:-1]):
            found.append(f"{mnemonic} {operands}")
        products.discard(registers[-1])
        if mnemonic == "vmulps":
            products.add(registers[-1])
    return found


def spills(loop, mixed, packing):
    """Whether a vector goes to the stack, or (not mixed) comes from there. A constant that does is no slower there.
    Where `packing`, one of the registers of a loop that stores what it reads may, and of 16 that are products of pairs."""
    place = r"\((%rsp|%rbp)\)"
    register = r"%[xyzt]mm\d+"
    slots = {operands.split()[-1] for _, operands in loop if re.search(rf"{register}, -?\d*{place}$", operands)}
    packs = packing and any(re.search(rf"^%ymm\d+, .*\((?!%rsp|%rbp)", operands) for _, operands in loop)
    packs |= any(mnemonic == "vpmaddwd" and "%ymm" in operands for mnemonic, operands in loop)
    if packs and len(slots) == 1:
        return False
    spill = rf"{register}, -?\d*{place}$" if mixed else rf"{register}.*{place}|{place}.*{register}"
    return any(re.search(spill, operands) for _, operands in loop)


def check(model, processor, wanted, mixed, prefetches, instruction=FUSED, packing=False):
    assembly = subprocess.run(
        ["sardonyx", "compile", model, "--to", "asm", "--no-split-floats", "--cpu", processor],
        check=True, capture_output=True, text=True,
    ).stdout  # fmt: skip
    loops = innermost_loops(assembly)
    for loop in loops:
        if pairs := separate_adds(loop):
            return f"a product is added by an instruction of its own: {pairs[0]}"
    counts, fetched = [], []
    for loop in loops:
        mnemonics = [mnemonic for mnemonic, _ in loop]
        fused = sum(bool(instruction.match(m)) for m in mnemonics)
        counts.append(fused)
        if fused != wanted or not mixed and {"vmulps", "vaddps"} & set(mnemonics):
            continue
        if wanted and fused == mnemonics.count("vpmaddwd"):
            others = {m for m in mnemonics if m.startswith("vp")} - {"vpmaddwd", "vpaddd", "vpbroadcastd"}
            if others or mnemonics.count("vpaddd") != fused or "vpbroadcastd" not in mnemonics:
                return f"beside vpmaddwd its loop has {sorted(others) or 'other sums or no broadcasts'}"
        if spills(loop, mixed, packing):
            return "its loop spills:\n" + "\n".join(" ".join(line) for line in loop)
        fetched.append(sum(m.startswith("prefetch") for m in mnemonics))
    if prefetches in fetched:
        return None
    if fetched:
        return f"its loops prefetch {fetched} times"
    return f"no loop of {wanted} {instruction.pattern}; the loops have {sorted(counts, reverse=True)[:12]}"


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("model")
    kinds = parser.add_mutually_exclusive_group(required=True)
    kinds.add_argument("--fma", nargs="+", help="BITS:COUNT")
    kinds.add_argument("--bytes", nargs="+", help="tiles:COUNT, quads:COUNT or BITS:COUNT")
    kinds.add_argument("--bf16", nargs="+", help="tiles:COUNT, pairs:COUNT or BITS:COUNT")
    parser.add_argument("--mixed", action="store_true")
    parser.add_argument("--packing", action="store_true")
    parser.add_argument("--prefetch", default="0")
    args = parser.parse_args()
    counts = args.fma or args.bytes or args.bf16
    wanted = {key: int(count) for key, _, count in (pair.partition(":") for pair in counts)}
    wide, _, narrow = args.prefetch.partition(":")
    failures = 0
    for processor, bits in PROCESSORS.items():
        kind, instruction, prefetches = str(bits), FUSED, int(narrow if narrow and bits < 512 else wide)
        if args.bytes and processor in TILES:
            kind, instruction, prefetches = "tiles", re.compile("tdpbusd"), 2
        elif args.bytes and processor in QUADS:
            kind, instruction = "quads", re.compile("vpdpbusd")
        elif args.bf16 and processor in TILES:
            kind, instruction, prefetches = "tiles", re.compile("tdpbf16ps"), 2
        elif args.bf16 and processor in PAIRS:
            kind, instruction = "pairs", re.compile("vdpbf16ps")
        elif args.bytes:
            instruction = re.compile("vpmaddwd")
        problem = check(args.model, processor, wanted[kind], args.mixed, prefetches, instruction, args.packing)
        failures += problem is not None
        print(f"{processor}: {problem}" if problem else f"ok {processor}", flush=True)
    sys.exit(failures != 0)


if __name__ == "__main__":
    main()
