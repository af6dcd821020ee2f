"""Makes the wheel, by the interface of PEP 517. No tool for packages writes the metadata of a second distribution.

A wheel has one folder of metadata at its top, of the distribution that it is. The other one, of onnxruntime, lies in its data
for site-packages. It has no RECORD, so that pip removes its files with this package only, and says so when it is asked to remove or
replace onnxruntime alone.
"""

import base64
import hashlib
import re
import zipfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
# Of onnxruntime, whose names Sardonyx has.
API_VERSION = "1.31.1"
WHEEL = "Wheel-Version: 1.0\nGenerator: sardonyx\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
ONNXRUNTIME = f"""Metadata-Version: 2.1
Name: onnxruntime
Version: {API_VERSION}
Summary: The names of onnxruntime, by Sardonyx
Requires-Dist: sardonyx-as-onnxruntime
"""
DATE = (2020, 1, 1, 0, 0, 0)  # of all files: the same sources make the same wheel


def setting(name):
    """A text, or texts, of pyproject.toml, which older Pythons cannot read by themselves."""
    (value,) = re.findall(rf'^{name} = (.*)$', (HERE / "pyproject.toml").read_text(), re.M)
    return re.findall(r'"([^"]*)"', value)


def files():
    """(name in the wheel, content), RECORD but."""
    (name,), (version,), (python,) = setting("name"), setting("version"), setting("requires-python")
    stem = f"{name.replace('-', '_')}-{version}"
    metadata = f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\nSummary: {setting('description')[0]}\n"
    metadata += f"License-Expression: {setting('license')[0]}\nRequires-Python: {python}\n"
    metadata += "".join(f"Requires-Dist: {needed}\n" for needed in setting("dependencies"))
    metadata += "Description-Content-Type: text/markdown\n\n" + (HERE / "README.md").read_text()
    for source in sorted((HERE / "onnxruntime").glob("*.py*")):
        if source.suffix in (".py", ".pyi"):
            yield f"onnxruntime/{source.name}", source.read_text()
    yield "onnxruntime/py.typed", ""
    second = f"{stem}.data/purelib/onnxruntime-{API_VERSION}.dist-info"
    yield f"{second}/METADATA", ONNXRUNTIME
    yield f"{second}/INSTALLER", f"{name}\n"
    yield f"{stem}.dist-info/METADATA", metadata
    yield f"{stem}.dist-info/WHEEL", WHEEL


def build_wheel(wheel_directory, config_settings=None, metadata_directory=None):
    (name,), (version,) = setting("name"), setting("version")
    stem = f"{name.replace('-', '_')}-{version}"
    record = []
    with zipfile.ZipFile(Path(wheel_directory) / f"{stem}-py3-none-any.whl", "w", zipfile.ZIP_DEFLATED) as wheel:

        def write(path, text):
            info = zipfile.ZipInfo(path, DATE)
            info.external_attr = 0o644 << 16
            wheel.writestr(info, text)

        for path, text in files():
            digest = base64.urlsafe_b64encode(hashlib.sha256(text.encode()).digest()).rstrip(b"=").decode()
            record.append(f"{path},sha256={digest},{len(text.encode())}")
            write(path, text)
        record.append(f"{stem}.dist-info/RECORD,,")
        write(f"{stem}.dist-info/RECORD", "\n".join(record) + "\n")
    return f"{stem}-py3-none-any.whl"
