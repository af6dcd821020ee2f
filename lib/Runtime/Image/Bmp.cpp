//===- Bmp.cpp - Decoding of BMP ------------------------------------------===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Windows bitmaps of every version, and those of OS/2 whose headers begin as
// Windows's do. A file is a header of 14 bytes, a header of the bitmap, masks
// or a palette, and the rows, mostly from the bottom up.
//
//===----------------------------------------------------------------------===//

#include "lib/Runtime/Image/Image.h"
#include <array>

using namespace sardonyx::runtime;

namespace {

enum Compression : uint32_t {
  kNone = 0,
  kRuns8 = 1,
  kRuns4 = 2,
  kMasks = 3,
  kAlphaMasks = 6
};

struct Bitmap {
  ImageBytes bytes;
  int64_t width = 0, height = 0;
  bool topDown = false;
  unsigned bits = 0;
  uint32_t compression = kNone;
  size_t pixels = 0; // where they begin
  std::array<uint32_t, 3> masks{};
  std::vector<std::array<uint8_t, 3>> palette; // red, green, blue
};

constexpr size_t kFileHeader = 14;
constexpr uint32_t kCoreHeader = 12, kInfoHeader = 40;

} // namespace

static bool readHeader(Bitmap &map, ImageSink &sink, uint32_t &headerSize,
                       uint32_t &colours) {
  ImageBytes in = map.bytes;
  headerSize = in.little(kFileHeader, 4);
  size_t header = kFileHeader;
  bool isCore = headerSize == kCoreHeader;
  if ((!isCore && headerSize < 16) || in.size < header + headerSize)
    return sink.fail("the BMP's header is damaged or cut off");
  map.pixels = in.little(10, 4);
  if (isCore) {
    map.width = in.little(header + 4, 2);
    map.height = in.little(header + 6, 2);
    map.bits = in.little(header + 10, 2);
  } else {
    map.width = static_cast<int32_t>(in.little(header + 4, 4));
    map.height = static_cast<int32_t>(in.little(header + 8, 4));
    map.bits = in.little(header + 14, 2);
  }
  auto field = [&](size_t at) {
    return headerSize >= at + 4 && !isCore ? in.little(header + at, 4) : 0;
  };
  map.compression = field(16);
  colours = field(32);
  map.topDown = map.height < 0;
  map.height = map.topDown ? -map.height : map.height;
  bool known = map.bits == 1 || map.bits == 2 || map.bits == 4 ||
               map.bits == 8 || map.bits == 16 || map.bits == 24 ||
               map.bits == 32;
  if (!known)
    return sink.fail("a BMP of " + std::to_string(map.bits) +
                     " bits a pixel is not supported");
  bool fits = map.compression == kNone ||
              (map.compression == kRuns8 && map.bits == 8) ||
              (map.compression == kRuns4 && map.bits == 4) ||
              ((map.compression == kMasks || map.compression == kAlphaMasks) &&
               (map.bits == 16 || map.bits == 32));
  if (!fits)
    return sink.fail("a BMP of compression " + std::to_string(map.compression) +
                     " with " + std::to_string(map.bits) +
                     " bits a pixel is not supported");
  return true;
}

/// The masks of red, green and blue, which lie in the header or right after it.
static void readMasks(Bitmap &map) {
  if (map.compression == kNone) {
    if (map.bits == 16)
      map.masks = {0x7c00, 0x3e0, 0x1f};
    else
      map.masks = {0xff0000, 0xff00, 0xff};
    return;
  }
  for (unsigned i = 0; i < 3; ++i)
    map.masks[i] = map.bytes.little(kFileHeader + kInfoHeader + 4 * i, 4);
}

static bool readPalette(Bitmap &map, ImageSink &sink, uint32_t headerSize,
                        uint32_t colours) {
  unsigned entry = headerSize == kCoreHeader ? 3 : 4;
  uint32_t most = 1u << map.bits;
  if (colours == 0 || colours > most)
    colours = most;
  size_t at = kFileHeader + headerSize;
  // Indices past the palette are black.
  map.palette.assign(most, {0, 0, 0});
  for (uint32_t i = 0; i < colours; ++i, at += entry) {
    if (at + 3 > map.bytes.size)
      return sink.fail("the BMP's palette is cut off");
    if (map.pixels > kFileHeader && at + 3 > map.pixels)
      break; // a core header does not tell how many there are
    const uint8_t *from = map.bytes.data + at;
    map.palette[i] = {from[2], from[1], from[0]};
  }
  return true;
}

//===----------------------------------------------------------------------===//
// Pixels
//===----------------------------------------------------------------------===//

/// The bits of `mask` in `pixel`, scaled to a byte.
static uint8_t masked(uint32_t pixel, uint32_t mask) {
  if (mask == 0)
    return 0;
  unsigned shift = __builtin_ctz(mask);
  uint64_t most = mask >> shift, value = (pixel & mask) >> shift;
  return static_cast<uint8_t>(value * 255 / most);
}

static void readRow(const Bitmap &map, const uint8_t *from, uint8_t *rgb) {
  for (int64_t x = 0; x < map.width; ++x, rgb += 3) {
    if (map.bits <= 8) {
      unsigned perByte = 8 / map.bits;
      unsigned shift = 8 - map.bits * (x % perByte + 1);
      unsigned index = (from[x / perByte] >> shift) & ((1u << map.bits) - 1);
      for (int c = 0; c < 3; ++c)
        rgb[c] = map.palette[index][c];
    } else if (map.bits == 24) {
      for (int c = 0; c < 3; ++c)
        rgb[c] = from[3 * x + 2 - c];
    } else {
      unsigned width = map.bits / 8;
      uint32_t pixel = 0;
      for (unsigned i = 0; i < width; ++i)
        pixel |= uint32_t(from[width * x + i]) << (8 * i);
      for (int c = 0; c < 3; ++c)
        rgb[c] = masked(pixel, map.masks[c]);
    }
  }
}

static void decodeRows(const Bitmap &map, ImageSink &sink) {
  // Rows begin at multiples of four bytes.
  size_t stride = (size_t(map.width) * map.bits + 31) / 32 * 4;
  size_t used = (size_t(map.width) * map.bits + 7) / 8;
  size_t left = map.bytes.size > map.pixels ? map.bytes.size - map.pixels : 0;
  // The padding of the last row may be missing. The height fits 32 bits and
  // the stride 34, so that this does not wrap around.
  __int128 needed = __int128(stride) * (map.height - 1) + used;
  if (needed > __int128(left)) {
    sink.fail("the BMP's pixels are cut off");
    return;
  }
  if (!sink.begin(map.width, map.height))
    return;
  std::vector<uint8_t> rgb(size_t(map.width) * 3);
  for (int64_t y = 0; y < map.height; ++y) {
    readRow(map, map.bytes.data + map.pixels + stride * y, rgb.data());
    if (!sink.putRgb(map.topDown ? y : map.height - 1 - y, rgb.data(), 3))
      return;
  }
}

namespace {

/// Reads runs of indices: pairs of a length and a value; length 0 begins an end
/// of row (0), the end (1), a move (2) or so many indices as they are.
class RunReader {
public:
  RunReader(const Bitmap &map, uint8_t *indices)
      : map(map), indices(indices), at(map.pixels) {}

  /// False when the bytes end before the image does.
  bool read() {
    while (y < map.height) {
      if (!has(2))
        return false;
      unsigned length = map.bytes.data[at], value = map.bytes.data[at + 1];
      at += 2;
      if (length > 0) {
        for (unsigned i = 0; i < length; ++i)
          put(isNibbles() ? (i % 2 ? value & 15 : value >> 4) : value);
      } else if (value == 0) {
        x = 0;
        ++y;
      } else if (value == 1) {
        return true;
      } else if (value == 2) {
        if (!has(2))
          return false;
        x += map.bytes.data[at];
        y += map.bytes.data[at + 1];
        at += 2;
      } else if (!readPlain(value)) {
        return false;
      }
    }
    return true;
  }

private:
  bool isNibbles() const { return map.compression == kRuns4; }
  bool has(size_t count) const {
    return at <= map.bytes.size && map.bytes.size - at >= count;
  }
  void put(uint8_t index) {
    if (x < map.width && y < map.height)
      indices[y * map.width + x] = index;
    ++x;
  }
  bool readPlain(unsigned count) {
    size_t length = isNibbles() ? (count + 1) / 2 : count;
    if (!has(length))
      return false;
    for (unsigned i = 0; i < count; ++i) {
      const uint8_t *from = map.bytes.data + at;
      put(isNibbles() ? (i % 2 ? from[i / 2] & 15 : from[i / 2] >> 4)
                      : from[i]);
    }
    at += length + length % 2; // words
    return true;
  }

  const Bitmap &map;
  uint8_t *indices;
  size_t at;
  int64_t x = 0, y = 0;
};

} // namespace

static void decodeRuns(const Bitmap &map, ImageSink &sink) {
  if (map.pixels >= map.bytes.size) {
    sink.fail("the BMP's pixels are cut off");
    return;
  }
  if (!sink.begin(map.width, map.height))
    return;
  // What no run reaches has index 0.
  auto indices = sink.scratch(map.width * map.height);
  if (!indices)
    return;
  if (!RunReader(map, indices.get()).read()) {
    sink.fail("the BMP's pixels are cut off");
    return;
  }
  std::vector<uint8_t> rgb(size_t(map.width) * 3);
  for (int64_t y = 0; y < map.height; ++y) {
    for (int64_t x = 0; x < map.width; ++x)
      for (int c = 0; c < 3; ++c)
        rgb[3 * x + c] = map.palette[indices.get()[y * map.width + x]][c];
    if (!sink.putRgb(map.topDown ? y : map.height - 1 - y, rgb.data(), 3))
      return;
  }
}

void sardonyx::runtime::decodeBmp(ImageBytes bytes, ImageSink &sink) {
  Bitmap map{bytes};
  uint32_t headerSize = 0, colours = 0;
  if (!readHeader(map, sink, headerSize, colours))
    return;
  if (map.width < 1 || map.height < 1) {
    sink.fail("the BMP says that it has no pixels");
    return;
  }
  if (map.bits <= 8) {
    if (!readPalette(map, sink, headerSize, colours))
      return;
  } else {
    readMasks(map);
  }
  if (map.compression == kRuns8 || map.compression == kRuns4)
    decodeRuns(map, sink);
  else
    decodeRows(map, sink);
}
