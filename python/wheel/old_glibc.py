"""Libraries to link with in the place of this machine's C library, so that what is linked runs with an older one, too.

    old_glibc.py 2.28 FOLDER --compiler clang-22 --readelf llvm-readelf-22 [--target aarch64-linux-gnu]

glibc keeps the older versions of each of its functions beside today's. FOLDER gets a libc.so and a libm.so without code: they have the names of
the system's libraries and each function and variable in its newest version that glibc 2.28 has. Names that 2.28 has none of are left out:
a link ends at them, or takes them from OldGlibc.cpp. Threads and dlopen were in libraries of their own before 2.34, which what is linked
therefore names: libpthread.so and libdl.so are empty.
"""

import argparse
import re
import subprocess
from pathlib import Path

# What lies where, by the name that linkers look for; what has no symbols here is named as needed only.
LIBRARIES = {"c": "libc.so.6", "m": "libm.so.6", "pthread": "libpthread.so.0", "dl": "libdl.so.2"}


def symbols(readelf, library, newest):
    """{name: (version, whether it is a function)} of what `library` has in versions up to `newest`."""
    listed = subprocess.run([readelf, "-W", "--dyn-syms", library], capture_output=True, text=True, check=True).stdout
    found = {}
    for kind, section, name, version in re.findall(r"(\w+) +(?:GLOBAL|WEAK) +DEFAULT +(\w+) (\w+)@@?GLIBC_([\d.]+)$", listed, re.M):
        number = tuple(map(int, version.split(".")))
        if section != "UND" and number <= newest and number > found.get(name, ((0,), False))[0]:
            found[name] = (number, kind in ("FUNC", "IFUNC"))
    return found


def stub(arguments, name, soname, found):
    """A library of these names."""
    assembly, versions = [], {}
    for symbol, (version, is_function) in sorted(found.items()):
        kind = "function" if is_function else "object"
        place = ".text" if is_function else ".data"
        assembly.append(f"{place}\n.globl {symbol}\n.type {symbol}, %{kind}\n{symbol}: .8byte 0\n.size {symbol}, 8\n")
        versions.setdefault(version, []).append(symbol)
    source, script = arguments.folder / f"{name}.s", arguments.folder / f"{name}.map"
    source.write_text("".join(assembly))
    nodes = [f"GLIBC_{'.'.join(map(str, version))} {{ {'; '.join(names)}; }};\n" for version, names in sorted(versions.items())]
    script.write_text("".join(nodes))
    library = arguments.folder / (soname if name == "c" else f"lib{name}.so")
    flags = [f"--target={arguments.target}"] if arguments.target else []
    flags += [f"-Wl,-soname,{soname}", *([f"-Wl,--version-script,{script}"] if nodes else [])]
    subprocess.run([arguments.compiler, "-shared", "-nostdlib", "-fuse-ld=lld", *flags, source, "-o", library], check=True)


def file_of(arguments, name):
    """Where the compiler finds a file of the system's."""
    target = [f"--target={arguments.target}"] if arguments.target else []
    command = [arguments.compiler, *target, f"-print-file-name={name}"]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("version")
    parser.add_argument("folder", type=Path)
    parser.add_argument("--compiler", required=True)
    parser.add_argument("--readelf", required=True)
    parser.add_argument("--target", default="")
    arguments = parser.parse_args()
    arguments.folder = arguments.folder.resolve()
    arguments.folder.mkdir(parents=True, exist_ok=True)
    newest = tuple(map(int, arguments.version.split(".")))
    for name, soname in LIBRARIES.items():
        found = symbols(arguments.readelf, file_of(arguments, soname), newest) if name in "cm" else {}
        stub(arguments, name, soname, found)
    # As the system's own libc.so: with the few functions that are in no shared library, and thread-local variables.
    loaders = re.findall(r"AS_NEEDED \( (\S+) \)", Path(file_of(arguments, "libc.so")).read_text())
    group = f"{arguments.folder / LIBRARIES['c']} {file_of(arguments, 'libc_nonshared.a')} AS_NEEDED ( {' '.join(loaders)} )"
    (arguments.folder / "libc.so").write_text(f"GROUP ( {group} )\n")


if __name__ == "__main__":
    main()
