//===- Jpeg.cpp - Decoding of JPEG ----------------------------------------===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "lib/Runtime/Image/Image.h"
#include <csetjmp>
#include <cstdio>
#include <jpeglib.h>

#include <jerror.h>

using namespace sardonyx::runtime;

namespace {

/// A decoder, with where its errors leave to. `head` is what libjpeg knows of.
struct Jpeg {
  jpeg_error_mgr errors;
  jpeg_progress_mgr progress;
  jpeg_decompress_struct head;
  jmp_buf failure;
  char message[JMSG_LENGTH_MAX];
  ImageSink *sink;
  std::vector<uint8_t> row;

  ~Jpeg() { jpeg_destroy_decompress(&head); }
};

} // namespace

static Jpeg &of(j_common_ptr head) {
  return *static_cast<Jpeg *>(head->client_data);
}

[[noreturn]] static void onError(j_common_ptr head) {
  Jpeg &jpeg = of(head);
  jpeg.errors.format_message(head, jpeg.message);
  longjmp(jpeg.failure, 1);
}

/// Of warnings only that of a file that ends too early matters; after others
/// decoding goes on as well as it can.
static void onMessage(j_common_ptr head, int level) {
  if (level < 0 && of(head).errors.msg_code == JWRN_JPEG_EOF)
    onError(head);
}

/// Progressive files are read as a whole before the first row.
static void onProgress(j_common_ptr head) {
  Jpeg &jpeg = of(head);
  if (!jpeg.sink->goesOn())
    longjmp(jpeg.failure, 1);
}

/// What libjpeg allocates: the coefficients of all blocks where there are
/// several scans, and rows.
static int64_t bytesFor(const jpeg_decompress_struct &head) {
  int64_t width = head.image_width + 64, height = head.image_height + 64;
  int64_t perRow = width * head.num_components * 64;
  bool isWhole =
      head.progressive_mode || head.comps_in_scan < head.num_components;
  return perRow + (isWhole ? width * height * head.num_components *
                                 int64_t(sizeof(JCOEF))
                           : 0);
}

/// Errors leave this by a jump: it has nothing to destroy.
static void decode(Jpeg &jpeg, ImageBytes bytes) {
  jpeg_decompress_struct &head = jpeg.head;
  jpeg_mem_src(&head, bytes.data, bytes.size);
  jpeg_read_header(&head, TRUE);
  if (!jpeg.sink->reserve(bytesFor(head)))
    return;
  switch (head.jpeg_color_space) {
  case JCS_CMYK:
  case JCS_YCCK:
    head.out_color_space = JCS_CMYK;
    break;
  case JCS_GRAYSCALE:
    head.out_color_space = JCS_GRAYSCALE;
    break;
  default:
    head.out_color_space = JCS_RGB;
  }
  jpeg_start_decompress(&head);
  if (!jpeg.sink->begin(head.output_width, head.output_height))
    return;
  jpeg.row.resize(size_t(head.output_width) * head.output_components);
  uint8_t *row = jpeg.row.data();
  bool goesOn = true;
  while (goesOn && head.output_scanline < head.output_height) {
    int64_t y = head.output_scanline;
    jpeg_read_scanlines(&head, &row, 1);
    if (head.out_color_space == JCS_CMYK) {
      // Inks are stored inverted, as Adobe's programs write them.
      for (uint8_t &ink : jpeg.row)
        ink = 255 - ink;
      goesOn = jpeg.sink->putCmyk(y, row, 4);
    } else if (head.out_color_space == JCS_GRAYSCALE) {
      goesOn = jpeg.sink->putGray(y, row, 1);
    } else {
      goesOn = jpeg.sink->putRgb(y, row, 3);
    }
  }
}

/// False when libjpeg has failed; `message` says why.
static bool tryDecode(Jpeg &jpeg, ImageBytes bytes) {
  if (setjmp(jpeg.failure))
    return false;
  jpeg_create_decompress(&jpeg.head);
  jpeg.head.client_data = &jpeg;
  jpeg.head.progress = &jpeg.progress;
  decode(jpeg, bytes);
  return true;
}

void sardonyx::runtime::decodeJpeg(ImageBytes bytes, ImageSink &sink) {
  Jpeg jpeg{};
  jpeg.sink = &sink;
  jpeg.head.err = jpeg_std_error(&jpeg.errors);
  jpeg.head.client_data = &jpeg;
  jpeg.errors.error_exit = onError;
  jpeg.errors.emit_message = onMessage;
  jpeg.progress.progress_monitor = onProgress;
  bool done = tryDecode(jpeg, bytes);
  if (!done && !sink.failed())
    sink.fail(std::string("the JPEG cannot be decoded: ") + jpeg.message);
}
