"""A ptxas for tests: its cubins are PTX in the form that the fake driver runs (tools/fakecuda/Cubin.h).

With SARDONYX_FAKE_PTXAS=fail it refuses all, with =hang it never ends; SARDONYX_FAKE_PTXAS_LOG names a file that it adds its
arguments to, and SARDONYX_FAKE_PTXAS_RELEASE is the version that it says it is.
"""

import os
import re
import struct
import sys
import time


def main():
    mode = os.environ.get("SARDONYX_FAKE_PTXAS", "")
    if log := os.environ.get("SARDONYX_FAKE_PTXAS_LOG"):
        with open(log, "a") as file:
            print(*sys.argv[1:], file=file)
    if "--version" in sys.argv:
        release = os.environ.get("SARDONYX_FAKE_PTXAS_RELEASE", "12.0")
        print(f"Cuda compilation tools, release {release}, V{release}.1")
        return 0
    if mode == "fail":
        print("ptxas info: something\nptxas kernels.ptx, line 7; error   : Not to my taste", file=sys.stderr)
        return 255
    while mode == "hang":
        time.sleep(1)
    (found,) = (re.match(r"-arch=sm_(\d+)(a?)$", word) for word in sys.argv if word.startswith("-arch"))
    sm, own = int(found[1]), bool(found[2])
    with open(sys.argv[-1], "rb") as file:
        text = file.read() + b"\0"
    header = b"\x7fELF\x02\x01\x01" + bytes(9)
    header += struct.pack("<HHIQQQIHHHHHH", 2, 190, 1, 0, 0, 64, sm | own << 16, 64, 0, 0, 64, 1, 0)
    section = struct.pack("<IIQQQQIIQQ", 0, 0x7FAB0001, 0, 0, 128, len(text), 0, 0, 0, 0)
    with open(sys.argv[sys.argv.index("-o") + 1], "wb") as file:
        file.write(header + section + text)
    return 0


sys.exit(main())
