#!/usr/bin/env python3
"""Makes wheels of what is built: `utils/dev wheel` runs it.

    wheels.py BUILD DIST

DIST gets, for each Python from 3.10 on that is here with its headers, sardonyx, with LLVM inside, and sardonyx-runtime, without a compiler, the
latter for aarch64, too; from Python 3.12 on one of each is for all. sardonyx-as-onnxruntime is the same for all. Pythons are looked for along PATH
and among those of pyenv. It ends with a sentence where a wheel needs more of a system than one with glibc `GLIBC` has.
"""

import os
import re
import shutil
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
GLIBC = (2, 28)  # the C library that wheels need at least
PLATFORM = f"manylinux_{GLIBC[0]}_{GLIBC[1]}"
READELF = "/usr/lib/llvm-22/bin/llvm-readelf"
# What every system with such a C library has.
LIBRARIES = {"libc.so.6", "libm.so.6", "libpthread.so.0", "libdl.so.2", "libgcc_s.so.1", "ld-linux-x86-64.so.2", "ld-linux-aarch64.so.1"}
MACHINE, OTHER = os.uname().machine, "aarch64"
OLDEST, STABLE, NEWEST = 10, 12, 14  # of Python 3; from STABLE on extensions are for all later ones, too
SOURCES = ["protobuf", "re2"]  # Debian's packages of sources, of the versions that are installed
ASK = "import os, sys, sysconfig; print(sys.version_info[1], os.path.exists(sysconfig.get_path('include') + '/Python.h'))"


def run(*command, **options):
    subprocess.run([str(part) for part in command], check=True, **options)


def ask(interpreter):
    """The minor version of an interpreter and whether its headers are there; None where it doesn't run."""
    done = subprocess.run([interpreter, "-c", ASK], capture_output=True, text=True)
    return None if done.returncode else (int(done.stdout.split()[0]), done.stdout.split()[1] == "True")


def interpreters():
    """{minor version: interpreter of Python 3} of those that are here."""
    found = {}
    for minor in range(OLDEST, NEWEST + 1):
        pyenv = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv")) / "versions"
        places = [shutil.which(f"python3.{minor}"), *sorted(pyenv.glob(f"3.{minor}.*/bin/python3.{minor}"), reverse=True)]
        if sys.version_info[1] == minor:
            places.insert(0, sys.executable)
        for place in filter(None, places):
            if (ask(place) or (0,))[0] == minor:
                found.setdefault(minor, str(place))
    return found


def builders():
    """Of these, the interpreters that wheels are made for."""
    here = {minor: place for minor, place in interpreters().items() if ask(place)[1]}
    stable = [minor for minor in here if minor >= STABLE][:1]
    for minor in [m for m in range(OLDEST, STABLE) if m not in here] + ([] if stable else [STABLE]):
        later = " and later ones" if minor == STABLE else ""
        print(f"no wheels for Python 3.{minor}{later}: it is not here, or its headers are not", flush=True)
    return {minor: here[minor] for minor in here if minor < STABLE or minor in stable}


def sources(folder):
    """Debian's sources of what extensions hold, under their names: fetched once, and checked by apt."""
    if all((folder / name).exists() for name in SOURCES):
        return folder
    shutil.rmtree(folder, ignore_errors=True)
    for part in ("lists/partial", "cache/archives/partial"):
        (folder / part).mkdir(parents=True)
    key = "[signed-by=/usr/share/keyrings/debian-archive-keyring.gpg]"
    release = re.search(r"^VERSION_CODENAME=(\w+)$", Path("/etc/os-release").read_text(), re.M)[1]
    (folder / "sources.list").write_text(f"deb-src {key} http://deb.debian.org/debian {release} main\n")
    places = {"Dir::Etc::sourcelist": "sources.list", "Dir::State::lists": "lists", "Dir::Cache": "cache"}
    options = [f"-o{name}={folder / place}" for name, place in places.items()]
    apt = ["apt-get", "-qq", *options, "-oDir::Etc::sourceparts=/dev/null", "-oAPT::Sandbox::User="]
    run(*apt, "update")
    run(*apt, "source", *SOURCES, cwd=folder, stdout=subprocess.DEVNULL)
    for name in SOURCES:
        (unpacked,) = [path for path in folder.glob(f"{name}-*") if path.is_dir()]
        unpacked.rename(folder / name)
    return folder


def too_new(extension):
    """What an extension needs of a system and a system with glibc `GLIBC` may lack: libraries, and versions of symbols."""
    listed = subprocess.run([READELF, "-W", "-dV", extension], capture_output=True, text=True, check=True).stdout
    found = {needed for needed in re.findall(r"NEEDED.*\[(.*)\]", listed) if needed not in LIBRARIES}
    for version in set(re.findall(r"Name: (\S+)", listed)):
        kind, _, number = version.partition("_")
        # libgcc's of the compilers of 2018; C++'s library is inside, and an extension gives no versions of its own.
        most = {"GLIBC": GLIBC, "GCC": (7, 0, 0)}.get(kind, (0,))
        if not re.fullmatch(r"[\d.]+", number) or tuple(map(int, number.split("."))) > most:
            found.add(version)
    return sorted(found)


def check(wheel):
    """Ends the program where an extension of the wheel needs a newer system than its tag says."""
    with tempfile.TemporaryDirectory() as folder, zipfile.ZipFile(wheel) as file:
        extensions = [file.extract(name, folder) for name in file.namelist() if name.endswith(".so")]
        for extension in extensions:
            if found := too_new(extension):
                sys.exit(f"{wheel.name}: {Path(extension).name} needs {', '.join(found)}, which a system of {PLATFORM} may not have")
        if not extensions:
            sys.exit(f"{wheel.name} has no extension")


def pack(build, made, dist, tag, machine=MACHINE):
    """Puts the packages for a Python and a machine into `dist`; scikit-build-core names those that run it, and not these."""
    python, abi = tag.split("-") if "-" in tag else (tag, tag)
    folder = made / machine / tag
    pip = [sys.executable, "-m", "pip", "wheel", "-q", "--disable-pip-version-check", "--no-deps", "--no-build-isolation", "-w", folder]
    define = [f"SARDONYX_PREBUILT={build}", f"SARDONYX_TAG={tag}"]
    for package, source in (("sardonyx", ROOT), ("sardonyx_runtime", ROOT / "python" / "runtime")):
        if machine != MACHINE and package == "sardonyx":
            continue
        defines = [f"-Ccmake.define.{each}" for each in [*define, f"SARDONYX_PACKAGE={package}"]]
        run(*pip, f"-Ccmake.source-dir={ROOT / 'python' / 'prebuilt'}", "-Cbuild.targets=all", *defines, source)
        (wheel,) = folder.glob(f"{package}-*.whl")
        check(wheel)
        tags = ["--python-tag", python, "--abi-tag", abi, "--platform-tag", f"{PLATFORM}_{machine}"]
        run(sys.executable, "-m", "wheel", "tags", "--remove", *tags, wheel, stdout=subprocess.DEVNULL)
        (tagged,) = folder.glob(f"{package}-*.whl")
        shutil.move(tagged, dist)


def runtime_for(machine, folder, pythons):
    """The runtime's extensions for another machine, by clang and Debian's libraries for it; whether these are there."""
    target = f"{machine}-linux-gnu"
    asked = subprocess.run(["clang-22", f"--target={target}", "-print-file-name=libstdc++.a"], capture_output=True, text=True, check=True)
    if not Path(asked.stdout.strip()).is_absolute():
        print(f"no wheels for {machine}: g++-{machine}-linux-gnu is not here", flush=True)
        return False
    # Headers of no machine's, which lie among those of this one.
    (folder / "include").mkdir(parents=True, exist_ok=True)
    if not (folder / "include" / "xxhash.h").exists():
        (folder / "include" / "xxhash.h").symlink_to("/usr/include/xxhash.h")
    settings = {"CMAKE_BUILD_TYPE": "Release", "CMAKE_SYSTEM_NAME": "Linux", "CMAKE_SYSTEM_PROCESSOR": machine}
    settings |= {f"CMAKE_{language}_COMPILER_TARGET": target for language in ("C", "CXX", "ASM")}
    settings |= {f"CMAKE_{language}_FLAGS": f"-isystem {folder / 'include'}" for language in ("C", "CXX")}
    settings |= {"CMAKE_C_COMPILER": "clang-22", "CMAKE_CXX_COMPILER": "clang++-22", "SARDONYX_RUNTIME_ONLY": "ON"}
    here = subprocess.run([sys.executable, "-c", "import sysconfig; print(sysconfig.get_path('include'))"], capture_output=True, text=True)
    settings |= {"SARDONYX_PYTHON": sys.executable, "Python_INCLUDE_DIR": here.stdout.strip(), "SARDONYX_WHEEL_PYTHONS": ";".join(pythons)}
    defines = [f"-D{name}={value}" for name, value in settings.items()]
    run("cmake", "-G", "Ninja", "-S", ROOT, "-B", folder, *defines, stdout=subprocess.DEVNULL)
    run("ninja", "-C", folder, "wheels")
    return True


def main():
    build, dist = (Path(path).resolve() for path in sys.argv[1:])
    made = dist.parent / "made"
    for old in (made, dist):
        shutil.rmtree(old, ignore_errors=True)
    dist.mkdir(parents=True)
    pythons = builders()
    fetched = sources(dist.parent / "sources")
    defines = [f"-DSARDONYX_WHEEL_PYTHONS={';'.join(pythons.values())}", f"-DSARDONYX_WHEEL_SOURCES={fetched}"]
    run("cmake", build, *defines, stdout=subprocess.DEVNULL)
    run("ninja", "-C", build, "wheels")
    tags = [f"cp3{minor}" if minor < STABLE else f"cp3{STABLE}-abi3" for minor in pythons]
    for tag in tags:
        pack(build, made, dist, tag)
    if OTHER != MACHINE and runtime_for(OTHER, dist.parent / OTHER, pythons.values()):
        for tag in tags:
            pack(dist.parent / OTHER, made, dist, tag, OTHER)
    pip = [sys.executable, "-m", "pip", "wheel", "-q", "--disable-pip-version-check", "--no-deps", "--no-build-isolation"]
    run(*pip, "-w", dist, ROOT / "python" / "as_onnxruntime")  # no machine's code is in it
    for file in sorted(dist.glob("*.whl")):
        print(f"{file.name}: {file.stat().st_size / 1e6:.1f} MB", flush=True)


if __name__ == "__main__":
    main()
