//===- Image.h - Decoding images --------------------------------*- C++ -*-===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A decoder reads an encoded image and gives its rows to an ImageSink, which
// makes of them what the caller asked for. What no specification settles is
// what Pillow's convert("RGB") does: alpha is dropped, palettes are looked up,
// colours of 16 bits keep their high byte, grey levels of more than 8 bits end
// at 255, and the orientation that Exif data tell is left alone.
//
//===----------------------------------------------------------------------===//

#ifndef SARDONYX_LIB_RUNTIME_IMAGE_IMAGE_H
#define SARDONYX_LIB_RUNTIME_IMAGE_IMAGE_H

#include "lib/Runtime/RuntimeCall.h"
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

namespace sardonyx {
namespace runtime {

/// The numbers are those that compiled code passes.
enum class PixelFormat { RGB = 0, BGR = 1, Grayscale = 2 };

/// The bytes of an encoded image.
struct ImageBytes {
  const uint8_t *data;
  size_t size;

  bool startsWith(const char *magic, size_t length) const;
  /// Numbers in the order of their bytes; 0 where the bytes end before.
  uint32_t little(size_t at, unsigned bytes) const;
};

/// The image that a decoder makes. All of its functions that return a boolean
/// return false once the call has failed; the decoder stops then.
class ImageSink {
public:
  ImageSink(RuntimeCall &call, PixelFormat format)
      : call(call), format(format) {}
  ~ImageSink();
  ImageSink(const ImageSink &) = delete;
  ImageSink &operator=(const ImageSink &) = delete;

  /// Makes room for the image, once its sizes are known.
  bool begin(int64_t width, int64_t height);
  /// Counts what a library will allocate against the memory limit until the
  /// image is done.
  bool reserve(int64_t bytes);
  /// Memory for a decoder's own use, zeroed.
  std::shared_ptr<uint8_t> scratch(int64_t bytes);

  /// Row `y` from pixels that lie `step` bytes apart: red, green and blue in
  /// this order at their beginning; one grey level; or cyan, magenta, yellow
  /// and black.
  bool putRgb(int64_t y, const uint8_t *pixels, int64_t step);
  bool putGray(int64_t y, const uint8_t *pixels, int64_t step);
  bool putCmyk(int64_t y, const uint8_t *pixels, int64_t step);

  /// Whether the run goes on: it may have been ended.
  bool goesOn();
  bool fail(const std::string &what);
  bool failed() const { return call.failed(); }

  int64_t width() const { return columns; }
  int64_t height() const { return rows; }
  int64_t channels() const { return format == PixelFormat::Grayscale ? 1 : 3; }
  /// The image, once it is done.
  ListItem item() const { return {pixels, {rows, columns, channels()}}; }

private:
  void put(uint8_t *to, uint8_t red, uint8_t green, uint8_t blue) const;
  uint8_t *row(int64_t y);

  RuntimeCall &call;
  PixelFormat format;
  int64_t columns = 0, rows = 0;
  int64_t reserved = 0;
  std::shared_ptr<void> pixels;
};

/// A grey level of 16 bits as one of 8.
inline uint8_t grayOf16(uint32_t level) {
  return static_cast<uint8_t>(level > 255 ? 255 : level);
}

// One function for each format; each fails the call where it cannot decode.
void decodeBmp(ImageBytes bytes, ImageSink &sink);
void decodeJpeg(ImageBytes bytes, ImageSink &sink);
/// `isFile`: the code stream is wrapped in boxes.
void decodeJpeg2000(ImageBytes bytes, ImageSink &sink, bool isFile);
void decodePng(ImageBytes bytes, ImageSink &sink);
void decodePnm(ImageBytes bytes, ImageSink &sink);
void decodeTiff(ImageBytes bytes, ImageSink &sink);
void decodeWebp(ImageBytes bytes, ImageSink &sink);

} // namespace runtime
} // namespace sardonyx

#endif // SARDONYX_LIB_RUNTIME_IMAGE_IMAGE_H
