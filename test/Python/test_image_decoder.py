"""Images: Pillow writes them, and what its convert() makes of them is the reference."""

import io
import struct
import zlib

import numpy as np
import pytest
from graphs import load, make, run
from onnx import parser
from PIL import Image

import sardonyx as sdx

LAYOUTS = {"RGB": 3, "BGR": 3, "Grayscale": 1}


def graph(layout):
    return f'(uint8[n] x) => (uint8[h, w, c] y) {{ y = ImageDecoder<pixel_format = "{layout}">(x) }}'


@pytest.fixture(scope="module")
def decode():
    sessions = {layout: load(graph(layout)) for layout in LAYOUTS}
    return lambda data, layout="RGB": run(sessions[layout], np.frombuffer(data, np.uint8))[0]


def pixels(seed, height, width, channels):
    """Noise on slopes: compressible in part."""
    rng = np.random.default_rng(seed)
    y, x = np.mgrid[:height, :width]
    slopes = (x * 3 + y * 5)[..., None] + 40 * np.arange(channels)
    noise = rng.integers(0, 256, (height, width, channels))
    return np.where(rng.random((height, width, 1)) < 0.2, noise, slopes % 256).astype(np.uint8)


def picture(mode, height, width, seed=0):
    if mode == "P":
        image = Image.fromarray(pixels(seed, height, width, 1)[..., 0] % 200, "L")
        image.putpalette(np.random.default_rng(seed).integers(0, 256, 768).astype(np.uint8).tobytes())
        return image
    if mode == "1":
        return Image.fromarray(pixels(seed, height, width, 1)[..., 0] > 99)
    if mode == "I;16":
        return Image.fromarray(pixels(seed, height, width, 1)[..., 0].astype(np.uint16) * 3)
    channels = pixels(seed, height, width, len(Image.new(mode, (1, 1)).getbands()))
    return Image.merge(mode, [Image.fromarray(channels[..., i]) for i in range(channels.shape[2])])


def encoded(image, form, **options):
    out = io.BytesIO()
    image.save(out, form, **options)
    return out.getvalue()


def wanted(data, layout):
    image = Image.open(io.BytesIO(data))
    if layout == "Grayscale":
        return np.array(image.convert("L"))[..., None]
    rgb = np.array(image.convert("RGB"))
    return rgb if layout == "RGB" else rgb[..., ::-1]


def agrees(decode, data, tolerance=0):
    for layout, channels in LAYOUTS.items():
        got, want = decode(data, layout), wanted(data, layout)
        assert got.dtype == np.uint8 and got.shape == want.shape and got.shape[2] == channels
        worst = np.abs(got.astype(int) - want).max()
        assert worst <= tolerance, (layout, worst)


SIZES = [(1, 1), (1, 7), (9, 1), (8, 8), (17, 33), (64, 50)]
# format, options, modes, tolerance
FORMS = {
    "bmp": ("BMP", {}, ["1", "L", "P", "RGB", "RGBA"], 0),
    "png": ("PNG", {}, ["1", "L", "LA", "P", "RGB", "RGBA", "I;16"], 0),
    "png-transparent": ("PNG", {"transparency": 3}, ["L", "P"], 0),
    "jpeg": ("JPEG", {"quality": 90}, ["L", "RGB", "CMYK"], 0),
    "jpeg-fine": ("JPEG", {"subsampling": 0}, ["RGB"], 0),
    "jpeg-wide": ("JPEG", {"subsampling": 1}, ["RGB"], 0),
    "jpeg-progressive": ("JPEG", {"progressive": True, "quality": 60}, ["L", "RGB"], 0),
    "jpeg2000": ("JPEG2000", {}, ["L", "LA", "RGB", "RGBA", "I;16"], 0),
    "jpeg2000-lossy": ("JPEG2000", {"irreversible": True, "quality_layers": [20]}, ["RGB"], 1),
    "jpeg2000-tiles": ("JPEG2000", {"tile_size": (16, 16), "num_resolutions": 2}, ["RGB", "L"], 0),
    "jpeg2000-stream": ("JPEG2000", {"no_jp2": True}, ["RGB", "L"], 0),
    "pnm": ("PPM", {}, ["1", "L", "RGB", "I;16"], 0),
    "tiff": ("TIFF", {}, ["1", "L", "LA", "P", "RGB", "RGBA", "CMYK", "I;16"], 0),
    "tiff-lzw": ("TIFF", {"compression": "tiff_lzw"}, ["L", "P", "RGB", "RGBA"], 0),
    "tiff-deflate": ("TIFF", {"compression": "tiff_adobe_deflate"}, ["RGB"], 0),
    "tiff-fax": ("TIFF", {"compression": "group4"}, ["1"], 0),
    "tiff-jpeg": ("TIFF", {"compression": "jpeg"}, ["L", "RGB"], 0),
    "tiff-big": ("TIFF", {"big_tiff": True}, ["RGB"], 0),
    "webp": ("WEBP", {"quality": 80}, ["RGB", "RGBA"], 0),
    "webp-lossless": ("WEBP", {"lossless": True, "exact": True}, ["RGB", "RGBA"], 0),
}


@pytest.mark.parametrize("name", FORMS)
def test_format(decode, name):
    form, options, modes, tolerance = FORMS[name]
    for mode in modes:
        for seed, (height, width) in enumerate(SIZES):
            agrees(decode, encoded(picture(mode, height, width, seed), form, **options), tolerance)


def test_colours_of_16_bits_keep_the_high_byte(decode):
    height, width = 5, 6
    rng = np.random.default_rng(1)
    levels = rng.integers(0, 65536, (height, width, 3)).astype(">u2")
    ppm = b"P6 6 5 65535\n" + levels.tobytes()
    agrees(decode, ppm)
    data = b"".join(b"\0" + row.tobytes() for row in levels)
    np.testing.assert_array_equal(decode(png(width, height, 16, 2, data)), (levels >> 8).astype(np.uint8))
    # Grey with alpha too.
    pairs = rng.integers(0, 65536, (height, width, 2)).astype(">u2")
    data = b"".join(b"\0" + row.tobytes() for row in pairs)
    agrees(decode, png(width, height, 16, 4, data))


def png(width, height, depth, colour, rows, interlaced=0, extra=b""):
    def chunk(kind, data):
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    head = struct.pack(">IIBBBBB", width, height, depth, colour, 0, 0, interlaced)
    return (
        b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + extra + chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b"")
    )


@pytest.mark.parametrize("channels, colour", [(1, 0), (3, 2), (4, 6)])
def test_interlaced_png(decode, channels, colour):
    want = pixels(7, 13, 11, channels)
    rows = b""
    for y, x, dy, dx in [(0, 0, 8, 8), (0, 4, 8, 8), (4, 0, 8, 4), (0, 2, 4, 4), (2, 0, 4, 2), (0, 1, 2, 2), (1, 0, 2, 1)]:
        part = want[y::dy, x::dx]
        if part.size:
            rows += b"".join(b"\0" + row.tobytes() for row in part)
    got = decode(png(11, 13, 8, colour, rows, interlaced=1))
    np.testing.assert_array_equal(got, np.broadcast_to(want[..., :3] if channels > 1 else want, got.shape))


@pytest.mark.parametrize("depth", [1, 2, 4])
def test_png_of_few_bits(decode, depth):
    rng = np.random.default_rng(depth)
    rows = b"".join(b"\0" + rng.bytes((7 * depth + 7) // 8) for _ in range(5))
    agrees(decode, png(7, 5, depth, 0, rows))


def bmp(width, height, bits, data, compression=0, header=40, extra=b"", colours=0):
    """Extra: masks or palette."""
    if header == 12:
        info = struct.pack("<IHHHH", 12, width, height, 1, bits)
    else:
        info = struct.pack("<IiiHHIIiiII", header, width, height, 1, bits, compression, len(data), 0, 0, colours, 0)
        info += extra[: header - 40].ljust(header - 40, b"\0")
    rest = extra[max(header - 40, 0) :] if header > 12 else extra
    start = 14 + len(info) + len(rest)
    return b"BM" + struct.pack("<IHHI", start + len(data), 0, 0, start) + info + rest + data


def test_bmp_of_every_depth(decode):
    rng = np.random.default_rng(2)
    for bits in (1, 4, 8, 16, 24, 32):
        for height in (5, -5):
            stride = (7 * bits + 31) // 32 * 4
            data = bmp(7, height, bits, rng.bytes(5 * stride), extra=rng.bytes(4 << bits) if bits <= 8 else b"")
            agrees(decode, data)
    agrees(decode, bmp(7, 5, 4, rng.bytes(20), header=12, extra=rng.bytes(48)))
    masks = struct.pack("<III", 0xF800, 0x7E0, 0x1F)
    agrees(decode, bmp(7, 5, 16, rng.bytes(80), compression=3, extra=masks))
    agrees(decode, bmp(7, 5, 32, rng.bytes(140), 3, extra=struct.pack("<III", 0xFF000000, 0xFF0000, 0xFF00)))
    masks = struct.pack("<IIII", 0xFF0000, 0xFF00, 0xFF, 0xFF000000)
    agrees(decode, bmp(7, 5, 32, rng.bytes(140), 3, header=124, extra=masks))


def test_bmp_of_runs(decode):
    palette = np.random.default_rng(3).bytes(1024)
    # Runs, indices as they are, ends of rows, the end.
    data = bytes([3, 7, 0, 4, 1, 2, 3, 4, 0, 0, 7, 9, 0, 0, 0, 5, 5, 6, 7, 8, 9, 0, 2, 3, 0, 1])
    agrees(decode, bmp(7, 3, 8, data, compression=1, extra=palette))
    data = bytes([7, 0x5A, 0, 0, 0, 7, 0x12, 0x34, 0x56, 0x70, 0, 0, 7, 0x33, 0, 1])
    agrees(decode, bmp(7, 3, 4, data, compression=2, extra=palette[:64]))
    # A move leaves pixels out, which have index 0.
    got = decode(bmp(4, 2, 8, bytes([1, 1, 0, 2, 2, 1, 1, 2, 0, 1]), compression=1, extra=palette))
    colours = np.frombuffer(palette, np.uint8).reshape(256, 4)[:, 2::-1]
    np.testing.assert_array_equal(got, colours[[[0, 0, 0, 2], [1, 0, 0, 0]]])


@pytest.mark.parametrize("kind, most", [(1, 1), (2, 255), (2, 7), (3, 255), (3, 1000), (5, 100), (5, 1000), (6, 31)])
def test_pnm_of_text_and_levels(decode, kind, most):
    levels = np.random.default_rng(kind).integers(0, most + 1, 3 * 4 * (3 if kind in (3, 6) else 1))
    header = f"P{kind}\n# a comment\n4 3\n" + (f"{most}\n" if kind != 1 else "")
    body = levels.astype(">u2" if most > 255 else "u1").tobytes() if kind > 3 else " ".join(map(str, levels)).encode()
    agrees(decode, header.encode() + body)


def test_first_picture_of_an_animation(decode):
    frames = [picture("RGB", 20, 30, seed) for seed in range(3)]
    data = encoded(frames[0], "WEBP", save_all=True, append_images=frames[1:], lossless=True)
    agrees(decode, data)


def test_tiff_of_luma_and_chroma(decode):
    data = encoded(picture("YCbCr", 17, 9), "TIFF")
    assert np.abs(decode(data).astype(int) - wanted(data, "RGB")).max() <= 1


def test_tiff_of_tiles_and_planes(decode):
    """Tags by hand: no encoder at hand writes them."""
    image = pixels(5, 20, 24, 3)
    tiles = [image[y : y + 16, x : x + 16] for y in (0, 16) for x in (0, 16)]
    tiles = [np.pad(t, ((0, 16 - t.shape[0]), (0, 16 - t.shape[1]), (0, 0))).tobytes() for t in tiles]
    short, long = 3, 4

    def tiff(entries, blobs, offsets_tag, counts_tag):
        entries = entries + [(offsets_tag, long, [0] * len(blobs)), (counts_tag, long, [len(b) for b in blobs])]
        entries = [(258, short, [8, 8, 8])] + entries
        directory = 8 + 2 + 12 * len(entries) + 4
        start = directory + sum(4 * len(values) for _, _, values in entries)
        offsets = [start + sum(map(len, blobs[:i])) for i in range(len(blobs))]
        out, extra = b"", b""
        for tag, kind, values in sorted(entries):
            values = offsets if tag == offsets_tag else values
            packed = struct.pack("<" + ("H" if kind == short else "I") * len(values), *values)
            if len(packed) > 4:
                place, extra = directory + len(extra), extra + packed
                packed = struct.pack("<I", place)
            out += struct.pack("<HHI", tag, kind, len(values)) + packed.ljust(4, b"\0")
        head = b"II*\0" + struct.pack("<IH", 8, len(entries)) + out + b"\0" * 4 + extra
        return head.ljust(start, b"\0") + b"".join(blobs)

    common = [(256, short, [24]), (257, short, [20]), (259, short, [1]), (262, short, [2]), (277, short, [3])]
    data = tiff(common + [(322, short, [16]), (323, short, [16])], tiles, 324, 325)
    np.testing.assert_array_equal(decode(data), image)
    planes = [image[..., i].tobytes() for i in range(3)]
    data = tiff(common + [(278, short, [20]), (284, short, [2])], planes, 273, 279)
    np.testing.assert_array_equal(decode(data), image)


# What is no image

SAMPLES = {
    name: encoded(picture(mode, 40, 30), form, **options)
    for name, form, mode, options in [
        ("bmp", "BMP", "RGB", {}),
        ("png", "PNG", "RGB", {}),
        ("png-palette", "PNG", "P", {}),
        ("jpeg", "JPEG", "RGB", {}),
        ("jpeg-progressive", "JPEG", "RGB", {"progressive": True}),
        ("jpeg2000", "JPEG2000", "RGB", {}),
        ("jpeg2000-stream", "JPEG2000", "RGB", {"no_jp2": True}),
        ("pnm", "PPM", "RGB", {}),
        ("tiff", "TIFF", "RGB", {}),
        ("tiff-lzw", "TIFF", "RGB", {"compression": "tiff_lzw"}),
        ("tiff-jpeg", "TIFF", "RGB", {"compression": "jpeg"}),
        ("webp", "WEBP", "RGBA", {}),
        ("webp-lossless", "WEBP", "RGB", {"lossless": True}),
        ("webp-animation", "WEBP", "RGB", {"save_all": True, "append_images": [picture("RGB", 40, 30, 1)]}),
    ]
}
SAMPLES["pnm-text"] = b"P3 5 4 255\n" + b" ".join(b"%d" % i for i in range(60))
SAMPLES["bmp-runs"] = bmp(7, 2, 8, bytes([7, 7, 0, 0, 0, 4, 1, 2, 3, 4, 3, 9, 0, 1]), 1, extra=bytes(1024))


def strict(limit=None):
    model = parser.parse_model('<ir_version: 10, opset_import: ["" : 22]> m ' + graph("RGB"))
    model.graph.node[0].name = "eye"
    if limit is None:
        return make(model)
    options = sdx.SessionOptions()
    options.cache, options.memory_limit = False, limit
    return sdx.InferenceSession(model.SerializeToString(), options)


@pytest.fixture(scope="module")
def session():
    return strict(1 << 28)


def outcome(session, data):
    """The image, or the sentence of the failure."""
    try:
        return run(session, np.frombuffer(data, np.uint8))[0]
    except sdx.errors.Fail as error:
        text = str(error)
        assert "eye" in text and "\n" not in text, text
        return text


@pytest.mark.parametrize("name", SAMPLES)
def test_truncated(session, name):
    data = SAMPLES[name]
    assert outcome(session, data).shape[2] == 3
    for length in sorted({0, 1, 2, 3, *range(4, len(data) * 9 // 10, max(1, len(data) // 60))}):
        if name == "pnm-text" and length > len(data) - 4:
            continue
        assert isinstance(outcome(session, data[:length]), str), length


@pytest.mark.parametrize("name", SAMPLES)
def test_flipped_bytes(session, name):
    rng = np.random.default_rng(11)
    data = np.frombuffer(SAMPLES[name], np.uint8)
    failures = 0
    for trial in range(120):
        broken = data.copy()
        # Headers are where it matters.
        places = rng.integers(0, min(len(data), 100) if trial % 2 else len(data), rng.integers(1, 4))
        broken[places] = rng.integers(0, 256, len(places))
        failures += isinstance(outcome(session, broken.tobytes()), str)
    assert failures > 0
    assert outcome(session, SAMPLES[name]).shape[2] == 3


def test_bombs_meet_the_memory_limit(session):
    rows = b"\0" * 1000
    bombs = {
        "png": png(60000, 60000, 8, 2, rows),
        "png-interlaced": png(60000, 60000, 8, 2, rows, interlaced=1),
        "bmp-runs": bmp(60000, 60000, 8, b"\0\1", 1, extra=bytes(1024)),
        "webp": b"RIFF" + struct.pack("<I", 30) + b"WEBPVP8L" + struct.pack("<IBI", 13, 0x2F, 0x0FFFFFFF) + bytes(8),
    }
    jpeg = bytearray(SAMPLES["jpeg-progressive"])
    at = jpeg.index(b"\xff\xc2") + 5
    jpeg[at : at + 4] = b"\xff\x00\xff\x00"
    bombs["jpeg"] = bytes(jpeg)
    stream = bytearray(SAMPLES["jpeg2000-stream"])
    stream[8:16] = struct.pack(">II", 1 << 30, 1 << 30)
    bombs["jpeg2000"] = bytes(stream)
    for name, data in bombs.items():
        text = outcome(session, data)
        assert isinstance(text, str) and ("memory" in text or "too many" in text), (name, text)
    # A smaller limit refuses what is no bomb, and the next image still fits.
    small = strict(1 << 20)
    assert "memory limit" in outcome(small, encoded(Image.new("RGB", (1000, 1000)), "PNG"))
    assert outcome(small, SAMPLES["png"]).shape == (40, 30, 3)


def test_no_image(session):
    for data in (b"", b"GIF89a" + bytes(20), b"hello", b"RIFF1234WAVE"):
        assert f"the {len(data)} bytes are no image" in outcome(session, data)


def test_refuses_an_unknown_format():
    with pytest.raises(sdx.errors.InvalidGraph, match="attribute 'pixel_format' is 'HSV'"):
        load(graph("HSV").replace("uint8[n]", "uint8[5]"))
