//===- Tiff.cpp - Decoding of TIFF ----------------------------------------===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The first page of a file. All samples are read into memory, a byte each, and
// then taken for what the file says they are.
//
//===----------------------------------------------------------------------===//

#include "lib/Runtime/Image/Image.h"
#include <algorithm>
#include <cstdarg>
#include <cstring>
#include <tiffio.h>

using namespace sardonyx::runtime;

//===----------------------------------------------------------------------===//
// The file in memory
//===----------------------------------------------------------------------===//

namespace {

struct Source {
  ImageBytes bytes;
  size_t at = 0;
  std::string message;
};

} // namespace

static tmsize_t read(thandle_t handle, void *to, tmsize_t count) {
  auto *source = static_cast<Source *>(handle);
  if (source->at >= source->bytes.size || count <= 0)
    return 0;
  count = std::min<tmsize_t>(count, source->bytes.size - source->at);
  memcpy(to, source->bytes.data + source->at, count);
  source->at += count;
  return count;
}

static tmsize_t write(thandle_t, void *, tmsize_t) { return 0; }

static toff_t seek(thandle_t handle, toff_t to, int whence) {
  auto *source = static_cast<Source *>(handle);
  if (whence == SEEK_CUR)
    to += source->at;
  else if (whence == SEEK_END)
    to += source->bytes.size;
  return source->at = to;
}

static int close(thandle_t) { return 0; }

static toff_t sizeOf(thandle_t handle) {
  return static_cast<Source *>(handle)->bytes.size;
}

static int onError(TIFF *, void *data, const char *, const char *format,
                   va_list values) {
  auto *source = static_cast<Source *>(data);
  char text[256];
  vsnprintf(text, sizeof(text), format, values);
  if (source->message.empty())
    source->message = text;
  return 1;
}

static int onWarning(TIFF *, void *, const char *, const char *, va_list) {
  return 1;
}

//===----------------------------------------------------------------------===//
// Samples
//===----------------------------------------------------------------------===//

namespace {

/// What the tags of a page say.
struct Page {
  uint32_t width = 0, height = 0;
  uint16_t samples = 1, bits = 1, photometric = 0;
  uint16_t planes = PLANARCONFIG_CONTIG, compression = COMPRESSION_NONE;
  uint16_t format = SAMPLEFORMAT_UINT;
};

class TiffReader {
public:
  TiffReader(TIFF *tiff, ImageSink &sink) : tiff(tiff), sink(sink) {}

  /// False when libtiff or the sink has failed.
  bool decode();

private:
  bool readTags();
  bool readBlocks();
  bool readStrips(uint8_t *buffer, uint16_t plane);
  bool readTiles(uint8_t *buffer, uint16_t plane);
  void unpack(const uint8_t *from, int64_t count, uint8_t *to,
              int64_t step) const;
  bool putRows();
  bool putPalette();
  bool putOther();
  bool isOther() const {
    return page.photometric > PHOTOMETRIC_SEPARATED ||
           page.photometric == PHOTOMETRIC_MASK;
  }
  bool isSeparate() const { return page.planes == PLANARCONFIG_SEPARATE; }
  bool isGray() const { return page.photometric <= PHOTOMETRIC_MINISBLACK; }

  TIFF *tiff;
  ImageSink &sink;
  Page page;
  std::shared_ptr<uint8_t> samples; // [height, width, samples]
};

} // namespace

bool TiffReader::readTags() {
  auto tag = [&](uint32_t name, uint16_t &value) {
    TIFFGetFieldDefaulted(tiff, name, &value);
  };
  if (!TIFFGetField(tiff, TIFFTAG_IMAGEWIDTH, &page.width) ||
      !TIFFGetField(tiff, TIFFTAG_IMAGELENGTH, &page.height))
    return sink.fail("the TIFF does not say how large it is");
  tag(TIFFTAG_SAMPLESPERPIXEL, page.samples);
  tag(TIFFTAG_BITSPERSAMPLE, page.bits);
  tag(TIFFTAG_PLANARCONFIG, page.planes);
  tag(TIFFTAG_COMPRESSION, page.compression);
  tag(TIFFTAG_SAMPLEFORMAT, page.format);
  if (!TIFFGetField(tiff, TIFFTAG_PHOTOMETRIC, &page.photometric))
    page.photometric =
        page.samples >= 3 ? PHOTOMETRIC_RGB : PHOTOMETRIC_MINISBLACK;
  // The library converts what JPEG stores as luma and chroma.
  if (page.compression == COMPRESSION_JPEG &&
      page.photometric == PHOTOMETRIC_YCBCR && !isSeparate()) {
    TIFFSetField(tiff, TIFFTAG_JPEGCOLORMODE, JPEGCOLORMODE_RGB);
    page.photometric = PHOTOMETRIC_RGB;
  }
  auto refuse = [&](const char *what, unsigned value) {
    return sink.fail("a TIFF of " + std::string(what) + " " +
                     std::to_string(value) + " is not supported");
  };
  if (page.format != SAMPLEFORMAT_UINT && page.format != SAMPLEFORMAT_VOID)
    return refuse("sample format", page.format);
  bool known = page.bits == 1 || page.bits == 2 || page.bits == 4 ||
               page.bits == 8 || page.bits == 16;
  unsigned needed = 1;
  switch (page.photometric) {
  case PHOTOMETRIC_MINISWHITE:
  case PHOTOMETRIC_MINISBLACK:
    break;
  case PHOTOMETRIC_PALETTE:
    known &= page.bits <= 8;
    break;
  case PHOTOMETRIC_RGB:
    needed = 3;
    known &= page.bits >= 8;
    break;
  case PHOTOMETRIC_SEPARATED:
    needed = 4;
    known &= page.bits >= 8;
    break;
  default: // libtiff's matter
    return true;
  }
  if (!known)
    return refuse("bits a sample:", page.bits);
  if (page.samples < needed)
    return refuse("samples a pixel:", page.samples);
  return true;
}

/// A byte for each sample: of 16 bits the higher one, or, of grey levels, as
/// much as fits.
void TiffReader::unpack(const uint8_t *from, int64_t count, uint8_t *to,
                        int64_t step) const {
  bool clips = isGray() && page.samples == 1;
  for (int64_t i = 0; i < count; ++i, to += step) {
    if (page.bits == 16) {
      uint16_t value; // in the machine's order
      memcpy(&value, from + 2 * i, 2);
      *to = clips ? grayOf16(value) : value >> 8;
    } else if (page.bits == 8) {
      *to = from[i];
    } else {
      unsigned perByte = 8 / page.bits;
      unsigned shift = 8 - page.bits * (i % perByte + 1);
      *to = (from[i / perByte] >> shift) & ((1u << page.bits) - 1);
    }
  }
}

/// Rows one by one, of all samples or of one plane.
bool TiffReader::readStrips(uint8_t *buffer, uint16_t plane) {
  int64_t width = page.width, all = page.samples;
  for (uint32_t y = 0; y < page.height; ++y) {
    if (TIFFReadScanline(tiff, buffer, y, plane) != 1)
      return false;
    uint8_t *to = samples.get() + y * width * all + plane;
    if (isSeparate())
      unpack(buffer, width, to, all);
    else
      unpack(buffer, width * all, to, 1);
    if (!sink.goesOn())
      return false;
  }
  return true;
}

bool TiffReader::readTiles(uint8_t *buffer, uint16_t plane) {
  uint32_t wide = 0, high = 0;
  TIFFGetField(tiff, TIFFTAG_TILEWIDTH, &wide);
  TIFFGetField(tiff, TIFFTAG_TILELENGTH, &high);
  int64_t row = TIFFTileRowSize(tiff);
  int64_t width = page.width, all = page.samples;
  int64_t ofTile = isSeparate() ? 1 : all;
  // A row of a tile holds so many samples; the tags may not agree.
  if (wide == 0 || high == 0 || row > TIFFTileSize(tiff) / int64_t(high) ||
      row < (int64_t(wide) * ofTile * page.bits + 7) / 8)
    return sink.fail("the TIFF's tiles have impossible sizes");
  for (int64_t top = 0; top < page.height; top += high)
    for (int64_t left = 0; left < width; left += wide) {
      if (TIFFReadTile(tiff, buffer, left, top, 0, plane) < 0)
        return false;
      int64_t columns = std::min<int64_t>(wide, width - left);
      int64_t rows = std::min<int64_t>(high, page.height - top);
      for (int64_t y = 0; y < rows; ++y)
        unpack(buffer + y * row, columns * ofTile,
               samples.get() + ((top + y) * width + left) * all + plane,
               isSeparate() ? all : 1);
      if (!sink.goesOn())
        return false;
    }
  return true;
}

bool TiffReader::readBlocks() {
  int64_t count;
  if (__builtin_mul_overflow(int64_t(page.width) * page.height,
                             int64_t(page.samples), &count))
    return sink.fail("the image has too many samples");
  samples = sink.scratch(count);
  if (!samples)
    return false;
  bool isTiled = TIFFIsTiled(tiff);
  int64_t bytes = isTiled ? TIFFTileSize(tiff) : TIFFScanlineSize(tiff);
  int64_t least =
      (int64_t(page.width) * (isSeparate() ? 1 : page.samples) * page.bits +
       7) /
      8;
  if (bytes <= 0 || (!isTiled && bytes < least))
    return false;
  auto buffer = sink.scratch(bytes);
  if (!buffer)
    return false;
  for (uint16_t plane = 0; plane < (isSeparate() ? page.samples : 1); ++plane)
    if (!(isTiled ? readTiles(buffer.get(), plane)
                  : readStrips(buffer.get(), plane)))
      return false;
  return true;
}

//===----------------------------------------------------------------------===//
// Pixels
//===----------------------------------------------------------------------===//

bool TiffReader::putPalette() {
  uint16_t *red, *green, *blue;
  if (!TIFFGetField(tiff, TIFFTAG_COLORMAP, &red, &green, &blue))
    return sink.fail("the TIFF has no palette");
  std::vector<uint8_t> row(size_t(page.width) * 3);
  for (int64_t y = 0; y < page.height; ++y) {
    const uint8_t *from = samples.get() + y * page.width * page.samples;
    for (int64_t x = 0; x < page.width; ++x, from += page.samples) {
      row[3 * x] = red[*from] >> 8;
      row[3 * x + 1] = green[*from] >> 8;
      row[3 * x + 2] = blue[*from] >> 8;
    }
    if (!sink.putRgb(y, row.data(), 3))
      return false;
  }
  return true;
}

bool TiffReader::putRows() {
  if (page.photometric == PHOTOMETRIC_PALETTE)
    return putPalette();
  int64_t rowSamples = int64_t(page.width) * page.samples;
  // Levels of fewer bits are spread over a byte.
  unsigned scale = page.bits < 8 ? 255 / ((1u << page.bits) - 1) : 1;
  for (int64_t y = 0; y < page.height; ++y) {
    uint8_t *row = samples.get() + y * rowSamples;
    bool goesOn;
    if (isGray()) {
      uint8_t flip = page.photometric == PHOTOMETRIC_MINISWHITE ? 255 : 0;
      for (int64_t i = 0; i < rowSamples; ++i)
        row[i] = (row[i] * scale) ^ flip;
      goesOn = sink.putGray(y, row, page.samples);
    } else if (page.photometric == PHOTOMETRIC_SEPARATED) {
      goesOn = sink.putCmyk(y, row, page.samples);
    } else {
      goesOn = sink.putRgb(y, row, page.samples);
    }
    if (!goesOn)
      return false;
  }
  return true;
}

/// Other colour spaces, luma with coarser chroma above all, as libtiff converts
/// them.
bool TiffReader::putOther() {
  char why[1024];
  if (!TIFFRGBAImageOK(tiff, why))
    return sink.fail(std::string("the TIFF is not supported: ") + why);
  auto raster = sink.scratch(int64_t(page.width) * page.height * 4);
  if (!raster ||
      !TIFFReadRGBAImageOriented(tiff, page.width, page.height,
                                 reinterpret_cast<uint32_t *>(raster.get()),
                                 ORIENTATION_TOPLEFT, /*stop on error*/ 1))
    return false;
  std::vector<uint8_t> row(size_t(page.width) * 3);
  for (int64_t y = 0; y < page.height; ++y) {
    for (int64_t x = 0; x < page.width; ++x) {
      uint32_t pixel;
      memcpy(&pixel, raster.get() + (y * page.width + x) * 4, 4);
      row[3 * x] = TIFFGetR(pixel);
      row[3 * x + 1] = TIFFGetG(pixel);
      row[3 * x + 2] = TIFFGetB(pixel);
    }
    if (!sink.putRgb(y, row.data(), 3))
      return false;
  }
  return true;
}

bool TiffReader::decode() {
  if (!readTags() || !sink.begin(page.width, page.height))
    return false;
  // A block as it is stored and as libtiff unpacks it.
  int64_t block = TIFFIsTiled(tiff) ? TIFFTileSize(tiff) : TIFFStripSize(tiff);
  if (!sink.reserve(2 * std::clamp<int64_t>(block, 0, INT64_MAX / 4)))
    return false;
  return isOther() ? putOther() : readBlocks() && putRows();
}

void sardonyx::runtime::decodeTiff(ImageBytes bytes, ImageSink &sink) {
  Source source{bytes};
  std::unique_ptr<TIFFOpenOptions, decltype(&TIFFOpenOptionsFree)> options(
      TIFFOpenOptionsAlloc(), TIFFOpenOptionsFree);
  if (!options) {
    sink.fail("out of memory for decoding an image");
    return;
  }
  // Beyond the tables that the file holds, libtiff asks for blocks of them.
  constexpr int64_t kMax = int64_t(256) << 20;
  TIFFOpenOptionsSetMaxSingleMemAlloc(options.get(), kMax + 8 * bytes.size);
  TIFFOpenOptionsSetErrorHandlerExtR(options.get(), onError, &source);
  TIFFOpenOptionsSetWarningHandlerExtR(options.get(), onWarning, nullptr);
  std::unique_ptr<TIFF, decltype(&TIFFClose)> tiff(
      TIFFClientOpenExt("image", "rm", &source, read, write, seek, close,
                        sizeOf, nullptr, nullptr, options.get()),
      TIFFClose);
  bool done = tiff && TiffReader(tiff.get(), sink).decode();
  if (!done && !sink.failed())
    sink.fail("the TIFF cannot be decoded: " + (source.message.empty()
                                                    ? "its data are damaged"
                                                    : source.message));
}
