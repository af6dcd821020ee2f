//===- Pnm.cpp - Decoding of PBM, PGM and PPM -----------------------------===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// P1 to P3 hold bits, grey levels and colours as text, P4 to P6 as bytes. In
// bits, 1 is black. The other levels go up to one that the header tells, and
// are two bytes where that is more than 255.
//
//===----------------------------------------------------------------------===//

#include "lib/Runtime/Image/Image.h"
#include <algorithm>
#include <cmath>

using namespace sardonyx::runtime;

namespace {

class PnmReader {
public:
  PnmReader(ImageBytes bytes, ImageSink &sink) : bytes(bytes), sink(sink) {}

  void decode();

private:
  bool readHeader();
  void makeLevels();
  bool readRow(uint8_t *levels);
  bool readBits(uint8_t *levels);

  /// The next number of the text; -1 where there is none.
  int64_t number();
  void skipSpace();
  bool atEnd() const { return at >= bytes.size; }
  bool cutOff() { return sink.fail("the PNM's pixels are cut off"); }

  ImageBytes bytes;
  ImageSink &sink;
  size_t at = 2;
  bool isText = false, isBits = false, isColour = false;
  int64_t width = 0, height = 0, most = 1;
  std::vector<uint8_t> byteOf; // of each level
};

} // namespace

static bool isSpace(uint8_t c) { return c == ' ' || (c >= '\t' && c <= '\r'); }

void PnmReader::skipSpace() {
  while (!atEnd()) {
    if (bytes.data[at] == '#') {
      while (!atEnd() && bytes.data[at] != '\n' && bytes.data[at] != '\r')
        ++at;
    } else if (isSpace(bytes.data[at])) {
      ++at;
    } else {
      return;
    }
  }
}

int64_t PnmReader::number() {
  skipSpace();
  constexpr int64_t kMax = INT32_MAX;
  int64_t value = -1;
  for (; !atEnd(); ++at) {
    unsigned digit = bytes.data[at] - unsigned('0');
    if (digit > 9)
      break;
    value = std::min((value < 0 ? 0 : value) * 10 + digit, kMax);
  }
  return value;
}

bool PnmReader::readHeader() {
  int kind = bytes.data[1] - '0';
  isText = kind <= 3;
  isBits = kind == 1 || kind == 4;
  isColour = kind == 3 || kind == 6;
  width = number();
  height = number();
  if (!isBits)
    most = number();
  if (width < 1 || height < 1 || most < 1 || most > 65535)
    return sink.fail("the PNM's header is damaged or cut off");
  // One white space ends the header.
  if (!isText) {
    if (atEnd())
      return cutOff();
    ++at;
  }
  return true;
}

/// What each level is as a byte.
void PnmReader::makeLevels() {
  byteOf.resize(most + 1);
  for (int64_t level = 0; level <= most; ++level) {
    double part = double(level) / double(most);
    if (isBits)
      byteOf[level] = level ? 0 : 255;
    else if (most > 255 && !isColour)
      byteOf[level] = grayOf16(std::nearbyint(part * 65535));
    else
      byteOf[level] = static_cast<uint8_t>(std::nearbyint(part * 255));
  }
}

/// A row of P4: eight pixels a byte.
bool PnmReader::readBits(uint8_t *levels) {
  size_t length = (size_t(width) + 7) / 8;
  if (bytes.size - at < length)
    return cutOff();
  for (int64_t x = 0; x < width; ++x)
    levels[x] = byteOf[(bytes.data[at + x / 8] >> (7 - x % 8)) & 1];
  at += length;
  return true;
}

bool PnmReader::readRow(uint8_t *levels) {
  if (isBits && !isText)
    return readBits(levels);
  int64_t count = width * (isColour ? 3 : 1);
  size_t step = most > 255 ? 2 : 1;
  for (int64_t i = 0; i < count; ++i) {
    int64_t level;
    if (isText && isBits) { // digits need no space between them
      skipSpace();
      level = atEnd() ? -1 : int64_t(bytes.data[at++]) - '0';
    } else if (isText) {
      level = number();
    } else {
      if (bytes.size - at < step)
        return cutOff();
      level = step == 1 ? bytes.data[at]
                        : bytes.data[at] * 256 + bytes.data[at + 1];
      at += step;
    }
    if (isText && level < 0 && atEnd())
      return cutOff();
    // Text says what is wrong; bytes above the highest level are that level.
    if (level < 0 || (isText && level > most))
      return sink.fail("the PNM has a level that is none of 0 to " +
                       std::to_string(most));
    levels[i] = byteOf[std::min(level, most)];
  }
  return true;
}

void PnmReader::decode() {
  if (!readHeader())
    return;
  makeLevels();
  // The least that the pixels can take, before there is memory for them.
  __int128 pixels = __int128(width) * height;
  __int128 least = isBits && !isText ? __int128((width + 7) / 8) * height
                                     : pixels * (isColour ? 3 : 1);
  if (!isText && most > 255)
    least *= 2;
  if (least > __int128(bytes.size - at)) {
    cutOff();
    return;
  }
  if (!sink.begin(width, height))
    return;
  std::vector<uint8_t> levels(size_t(width) * (isColour ? 3 : 1));
  for (int64_t y = 0; y < height; ++y) {
    if (!readRow(levels.data()))
      return;
    if (!(isColour ? sink.putRgb(y, levels.data(), 3)
                   : sink.putGray(y, levels.data(), 1)))
      return;
  }
}

void sardonyx::runtime::decodePnm(ImageBytes bytes, ImageSink &sink) {
  PnmReader(bytes, sink).decode();
}
