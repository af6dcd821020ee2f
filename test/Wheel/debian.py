"""Pythons of Debian that are not this machine's: for another one, or of a later release. Nothing is installed."""

import subprocess
import sys
from pathlib import Path

import pytest

# Of Python and of what numpy needs, less the version of each; names that a release does not have are left out.
PACKAGES = (
    "python{0} python{0}-minimal libpython{0}-minimal libpython{0}-stdlib libc6 libgcc-s1 libstdc++6 zlib1g libexpat1 libffi8"
    " libssl3 libssl3t64 libbz2-1.0 liblzma5 libcrypt1 libuuid1 libzstd1"
)


def python(folder, release, architecture, version):
    """A folder with the files of Debian's Python, which is skipped where they can't be had."""
    for part in ("lists/partial", "cache/archives/partial", "files"):
        (folder / part).mkdir(parents=True)
    key = f"[arch={architecture} signed-by=/usr/share/keyrings/debian-archive-keyring.gpg]"
    (folder / "sources.list").write_text(f"deb {key} http://deb.debian.org/debian {release} main\n")
    settings = {
        "APT::Architecture": architecture, "APT::Architectures": architecture, "APT::Sandbox::User": "", "Dir::Etc::sourceparts": "/dev/null",
        "Dir::Etc::sourcelist": folder / "sources.list", "Dir::State::lists": folder / "lists", "Dir::State::status": "/dev/null",
        "Dir::Cache": folder / "cache",
    }  # fmt: skip
    options = [f"-o{name}={value}" for name, value in settings.items()]

    def apt(*command):
        done = subprocess.run([*command[:1], *options, *command[1:]], cwd=folder, capture_output=True, text=True, timeout=300)
        if done.returncode:
            pytest.skip(f"Debian's {release} for {architecture} can't be had: {(done.stderr.strip().splitlines() or ['no word'])[-1]}")
        return done.stdout

    apt("apt-get", "-qq", "update")
    known = set(apt("apt-cache", "pkgnames").split())
    if f"python{version}" not in known:
        pytest.skip(f"Debian's {release} has no Python {version}")
    apt("apt-get", "-qq", "download", *(name for name in PACKAGES.format(version).split() if name in known))
    for package in folder.glob("*.deb"):
        subprocess.run(["dpkg", "-x", package, folder / "files"], check=True)
    return folder / "files"


def install(site, machine, version, wheels, *packages):
    """Puts packages, with what they need, where such a Python finds them by PYTHONPATH."""
    platforms = [f"--platform=manylinux_2_{minor}_{machine}" for minor in (28, 27, 26, 17)]
    pip = [sys.executable, "-m", "pip", "install", "-q", "--disable-pip-version-check", "--target", site, "--only-binary=:all:"]
    subprocess.run([*pip, *platforms, f"--python-version={version}", "--find-links", wheels, *packages], check=True)


def loader(files):
    """The system's loader among these files, which runs their programs with their libraries."""
    (found, *_) = [path for path in files.rglob("ld-linux-*.so.*") if not path.is_symlink()] or files.rglob("ld-linux-*.so.*")
    return Path(found)
