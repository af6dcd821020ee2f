//===- Png.cpp - Decoding of PNG ------------------------------------------===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "lib/Runtime/Image/Image.h"
#include <csetjmp>
#include <cstring>
#include <png.h>

using namespace sardonyx::runtime;

namespace {

struct Png {
  png_structp head = nullptr;
  png_infop info = nullptr;
  ImageBytes left{}; // to read
  ImageSink *sink = nullptr;
  char message[128] = "";
  std::shared_ptr<uint8_t> rows; // all of an interlaced image, else one

  ~Png() { png_destroy_read_struct(&head, &info, nullptr); }
};

} // namespace

[[noreturn]] static void onError(png_structp head, png_const_charp text) {
  auto *png = static_cast<Png *>(png_get_error_ptr(head));
  snprintf(png->message, sizeof(png->message), "%s", text);
  png_longjmp(head, 1);
}

static void onWarning(png_structp, png_const_charp) {}

static void read(png_structp head, png_bytep to, size_t count) {
  auto *png = static_cast<Png *>(png_get_io_ptr(head));
  if (count > png->left.size)
    png_error(head, "its data end too early");
  memcpy(to, png->left.data, count);
  png->left.data += count;
  png->left.size -= count;
}

/// Grey levels of 16 bits, which libpng would cut to their high byte.
static void narrowGray(uint8_t *row, int64_t width) {
  for (int64_t x = 0; x < width; ++x)
    row[x] = grayOf16(row[2 * x] * 256u + row[2 * x + 1]);
}

/// Errors leave this by a jump: it has nothing to destroy.
static void decode(Png &png) {
  png_structp head = png.head;
  png_read_info(head, png.info);
  int64_t width = png_get_image_width(head, png.info);
  int64_t height = png_get_image_height(head, png.info);
  int colour = png_get_color_type(head, png.info);
  int depth = png_get_bit_depth(head, png.info);
  bool isGray = !(colour & PNG_COLOR_MASK_COLOR);
  bool isWideGray = depth == 16 && colour == PNG_COLOR_TYPE_GRAY;
  if (colour == PNG_COLOR_TYPE_PALETTE)
    png_set_palette_to_rgb(head);
  else if (depth < 8)
    png_set_expand_gray_1_2_4_to_8(head);
  if (depth == 16 && !isWideGray)
    png_set_strip_16(head);
  png_set_strip_alpha(head);
  int passes = png_set_interlace_handling(head);
  // Rows before and after they are unfiltered and expanded.
  if (!png.sink->begin(width, height) || !png.sink->reserve(width * 32))
    return;
  png_read_update_info(head, png.info);
  int64_t stride = png_get_rowbytes(head, png.info);
  int64_t step = isGray ? (isWideGray ? 2 : 1) : 3;
  if (stride < width * step)
    png_error(head, "its rows are too short");
  bool isWhole = passes > 1;
  png.rows = png.sink->scratch(stride * (isWhole ? height : 1));
  if (!png.rows)
    return;
  bool goesOn = true;
  // The last pass of several leaves each row complete.
  for (int pass = 0; pass < passes && goesOn; ++pass)
    for (int64_t y = 0; y < height && goesOn; ++y) {
      uint8_t *row = png.rows.get() + (isWhole ? y * stride : 0);
      png_read_row(head, row, nullptr);
      if (pass + 1 < passes) {
        goesOn = png.sink->goesOn();
        continue;
      }
      if (isWideGray)
        narrowGray(row, width);
      goesOn =
          isGray ? png.sink->putGray(y, row, 1) : png.sink->putRgb(y, row, 3);
    }
}

/// False when libpng has failed; `message` says why.
static bool tryDecode(Png &png) {
  if (setjmp(png_jmpbuf(png.head)))
    return false;
  png_set_read_fn(png.head, &png, read);
  // The memory limit decides how large an image may be. What is no part of the
  // image is not kept, and colour spaces are not applied.
  png_set_user_limits(png.head, PNG_UINT_31_MAX, PNG_UINT_31_MAX);
  png_set_keep_unknown_chunks(png.head, PNG_HANDLE_CHUNK_NEVER, nullptr, 0);
  png_set_crc_action(png.head, PNG_CRC_ERROR_QUIT, PNG_CRC_WARN_DISCARD);
  decode(png);
  return true;
}

void sardonyx::runtime::decodePng(ImageBytes bytes, ImageSink &sink) {
  Png png;
  png.left = bytes;
  png.sink = &sink;
  png.head =
      png_create_read_struct(PNG_LIBPNG_VER_STRING, &png, onError, onWarning);
  png.info = png.head ? png_create_info_struct(png.head) : nullptr;
  bool done = png.info && tryDecode(png);
  if (!done && !sink.failed())
    sink.fail(std::string("the PNG cannot be decoded: ") +
              (png.message[0] ? png.message : "out of memory"));
}
