//===- ImageFunctions.cpp - What compiled code does with images -----------===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "lib/Runtime/Image/Image.h"
#include <cstring>

using namespace sardonyx::runtime;

bool ImageBytes::startsWith(const char *magic, size_t length) const {
  return size >= length && memcmp(data, magic, length) == 0;
}

uint32_t ImageBytes::little(size_t at, unsigned bytes) const {
  uint32_t value = 0;
  if (at <= size && size - at >= bytes)
    for (unsigned i = 0; i < bytes; ++i)
      value |= uint32_t(data[at + i]) << (8 * i);
  return value;
}

//===----------------------------------------------------------------------===//
// ImageSink
//===----------------------------------------------------------------------===//

ImageSink::~ImageSink() { call.unreserve(reserved); }

bool ImageSink::begin(int64_t width, int64_t height) {
  // No format has larger ones; the product of two fits with what follows.
  constexpr int64_t kMax = INT32_MAX;
  if (width < 1 || height < 1 || width > kMax || height > kMax)
    return fail("an image of " + std::to_string(width) + " x " +
                std::to_string(height) + " pixels cannot be decoded");
  int64_t bytes;
  if (__builtin_mul_overflow(width * height, channels(), &bytes))
    return fail("the image has too many pixels");
  pixels = call.allocate(bytes, "an image");
  columns = width;
  rows = height;
  return pixels != nullptr;
}

bool ImageSink::reserve(int64_t bytes) {
  if (!call.reserve(bytes, "decoding an image"))
    return false;
  reserved += bytes;
  return true;
}

std::shared_ptr<uint8_t> ImageSink::scratch(int64_t bytes) {
  auto memory = call.allocate(bytes, "decoding an image");
  if (memory)
    memset(memory.get(), 0, bytes);
  return std::static_pointer_cast<uint8_t>(memory);
}

bool ImageSink::goesOn() { return call.goesOn(); }

bool ImageSink::fail(const std::string &what) {
  call.fail(what);
  return false;
}

uint8_t *ImageSink::row(int64_t y) {
  return static_cast<uint8_t *>(pixels.get()) + y * columns * channels();
}

void ImageSink::put(uint8_t *to, uint8_t red, uint8_t green,
                    uint8_t blue) const {
  switch (format) {
  case PixelFormat::RGB:
    to[0] = red, to[1] = green, to[2] = blue;
    return;
  case PixelFormat::BGR:
    to[0] = blue, to[1] = green, to[2] = red;
    return;
  case PixelFormat::Grayscale:
    // The luma of ITU-R 601-2 in units of 1/65536.
    *to = (red * 19595u + green * 38470u + blue * 7471u + 32768u) >> 16;
  }
}

bool ImageSink::putRgb(int64_t y, const uint8_t *from, int64_t step) {
  uint8_t *to = row(y);
  for (int64_t x = 0; x < columns; ++x, from += step, to += channels())
    put(to, from[0], from[1], from[2]);
  return goesOn();
}

bool ImageSink::putGray(int64_t y, const uint8_t *from, int64_t step) {
  uint8_t *to = row(y);
  for (int64_t x = 0; x < columns; ++x, from += step, to += channels())
    put(to, *from, *from, *from);
  return goesOn();
}

bool ImageSink::putCmyk(int64_t y, const uint8_t *from, int64_t step) {
  uint8_t *to = row(y);
  for (int64_t x = 0; x < columns; ++x, from += step, to += channels()) {
    int light = 255 - from[3];
    // light * (255 - ink) / 255, rounded, and in whole steps of the ink's part.
    auto under = [&](int ink) {
      int product = ink * light + 128;
      return static_cast<uint8_t>(light - ((product + (product >> 8)) >> 8));
    };
    put(to, under(from[0]), under(from[1]), under(from[2]));
  }
  return goesOn();
}

//===----------------------------------------------------------------------===//
// ImageDecoder
//===----------------------------------------------------------------------===//

static bool isPnm(ImageBytes bytes) {
  return bytes.size >= 3 && bytes.data[0] == 'P' && bytes.data[1] >= '1' &&
         bytes.data[1] <= '6' &&
         (bytes.data[2] == '#' || bytes.data[2] == ' ' ||
          (bytes.data[2] >= '\t' && bytes.data[2] <= '\r'));
}

static void decodeAny(ImageBytes bytes, ImageSink &sink) {
  auto is = [&](const char *magic, size_t length) {
    return bytes.startsWith(magic, length);
  };
  if (is("\x89PNG\r\n\x1a\n", 8))
    return decodePng(bytes, sink);
  if (is("\xff\xd8\xff", 3))
    return decodeJpeg(bytes, sink);
  if (is("\0\0\0\x0cjP  \r\n\x87\n", 12))
    return decodeJpeg2000(bytes, sink, /*isFile=*/true);
  if (is("\xff\x4f\xff\x51", 4))
    return decodeJpeg2000(bytes, sink, /*isFile=*/false);
  if (is("II*\0", 4) || is("MM\0*", 4) || is("II+\0", 4) || is("MM\0+", 4))
    return decodeTiff(bytes, sink);
  if (is("RIFF", 4) && bytes.size >= 12 && !memcmp(bytes.data + 8, "WEBP", 4))
    return decodeWebp(bytes, sink);
  if (is("BM", 2))
    return decodeBmp(bytes, sink);
  if (isPnm(bytes))
    return decodePnm(bytes, sink);
  sink.fail("the " + std::to_string(bytes.size) +
            " bytes are no image of a format that is known (BMP, JPEG, JPEG "
            "2000, PNG, PNM, TIFF, WebP)");
}

/// encoded bytes, pixel format -> a list of the one image.
static void decodeImage(RuntimeCall &call) {
  auto encoded = call.tensor<const uint8_t>();
  auto format = static_cast<PixelFormat>(call.number());
  ImageSink sink(call, format);
  decodeAny({encoded.data, static_cast<size_t>(encoded.count())}, sink);
  if (!call.failed())
    *call.tensor<int64_t>().data =
        call.lists().add(List(std::vector<ListItem>{sink.item()}));
}

SARDONYX_RUNTIME_FUNCTION(sdx_rt_image_decode, decodeImage)
