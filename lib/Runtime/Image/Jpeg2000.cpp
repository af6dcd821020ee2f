//===- Jpeg2000.cpp - Decoding of JPEG 2000 -------------------------------===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "lib/Runtime/Image/Image.h"
#include <algorithm>
#include <cstring>
#include <openjpeg.h>
#include <string>

using namespace sardonyx::runtime;

//===----------------------------------------------------------------------===//
// The stream and what is said about it
//===----------------------------------------------------------------------===//

namespace {

struct Source {
  ImageBytes bytes;
  size_t at = 0;
  std::string message;
};

} // namespace

static OPJ_SIZE_T read(void *to, OPJ_SIZE_T count, void *data) {
  auto *source = static_cast<Source *>(data);
  size_t left = source->bytes.size - source->at;
  if (left == 0)
    return static_cast<OPJ_SIZE_T>(-1);
  count = std::min<size_t>(count, left);
  memcpy(to, source->bytes.data + source->at, count);
  source->at += count;
  return count;
}

static OPJ_OFF_T skip(OPJ_OFF_T count, void *data) {
  auto *source = static_cast<Source *>(data);
  OPJ_OFF_T left = source->bytes.size - source->at;
  count = std::clamp<OPJ_OFF_T>(count, -OPJ_OFF_T(source->at), left);
  source->at += count;
  return count;
}

static OPJ_BOOL seek(OPJ_OFF_T to, void *data) {
  auto *source = static_cast<Source *>(data);
  if (to < 0 || size_t(to) > source->bytes.size)
    return OPJ_FALSE;
  source->at = to;
  return OPJ_TRUE;
}

static void onError(const char *text, void *data) {
  auto *source = static_cast<Source *>(data);
  if (!source->message.empty())
    return;
  source->message = text;
  while (!source->message.empty() && source->message.back() <= ' ')
    source->message.pop_back();
}

static uint32_t big(ImageBytes bytes, size_t at, unsigned count) {
  uint32_t value = 0;
  if (at <= bytes.size && bytes.size - at >= count)
    for (unsigned i = 0; i < count; ++i)
      value = value << 8 | bytes.data[at + i];
  return value;
}

/// Where the code stream begins in a file of boxes; the end where there is
/// none.
static size_t findStream(ImageBytes bytes) {
  constexpr uint32_t kStream = 0x6a703263; // jp2c
  size_t at = 0;
  while (bytes.size - at >= 8) {
    uint64_t length = big(bytes, at, 4);
    uint64_t header = 8;
    if (length == 1) {
      length = uint64_t(big(bytes, at + 8, 4)) << 32 | big(bytes, at + 12, 4);
      header = 16;
    }
    if (big(bytes, at + 4, 4) == kStream)
      return std::min<uint64_t>(at + header, bytes.size);
    if (length < header || length > bytes.size - at)
      break;
    at += length;
  }
  return bytes.size;
}

/// What OpenJPEG keeps for each tile and component, which it makes as soon as
/// it reads how many there are.
static int64_t bytesForTiles(ImageBytes bytes, bool isFile) {
  // SOC, SIZ: marker, length, capabilities, 8 sizes, number of components.
  size_t siz = (isFile ? findStream(bytes) : 0) + 2 + 2 + 2 + 2;
  auto field = [&](unsigned i) { return int64_t(big(bytes, siz + 4 * i, 4)); };
  int64_t width = field(0), height = field(1);
  int64_t tileWidth = field(4), tileHeight = field(5);
  int64_t components = big(bytes, siz + 32, 2);
  if (tileWidth == 0 || tileHeight == 0)
    return 0; // it will be refused
  int64_t tiles =
      std::min<int64_t>(65535, ((width + tileWidth - 1) / tileWidth) *
                                   ((height + tileHeight - 1) / tileHeight));
  constexpr int64_t kTile = 8192, kComponent = 1280;
  return tiles * (kTile + components * kComponent);
}

//===----------------------------------------------------------------------===//
// Samples
//===----------------------------------------------------------------------===//

namespace {

/// A component read as bytes at the image's positions.
struct Plane {
  const opj_image_comp_t *component;
  int64_t width, height; // of the image
  bool clips = false;    // to 255, from 16 bits, instead of scaling

  uint8_t at(int64_t x, int64_t y) const {
    const opj_image_comp_t &c = *component;
    int64_t column = std::min<int64_t>(x * c.w / width, c.w - 1);
    int64_t row = std::min<int64_t>(y * c.h / height, c.h - 1);
    int64_t value = c.data[row * c.w + column];
    int shift = (clips ? 16 : 8) - int(c.prec);
    if (c.sgnd)
      value += int64_t(1) << (c.prec - 1);
    if (shift < 0)
      value = (value + (int64_t(1) << (-shift - 1))) >> -shift;
    else
      value <<= shift;
    return static_cast<uint8_t>(std::clamp<int64_t>(value, 0, 255));
  }
};

} // namespace

static uint8_t rounded(double value) {
  return static_cast<uint8_t>(std::clamp(value + 0.5, 0.0, 255.0));
}

static void toRgb(uint8_t *pixel) {
  double y = pixel[0], cb = pixel[1] - 128.0, cr = pixel[2] - 128.0;
  pixel[0] = rounded(y + 1.402 * cr);
  pixel[1] = rounded(y - 0.344136 * cb - 0.714136 * cr);
  pixel[2] = rounded(y + 1.772 * cb);
}

static void putRows(const opj_image_t &image, ImageSink &sink) {
  unsigned given = image.numcomps;
  OPJ_COLOR_SPACE space = image.color_space;
  bool isGray = given < 3;
  bool isCmyk = space == OPJ_CLRSPC_CMYK && given >= 4;
  // An encoder may leave it open; only chroma is ever coarser than the rest.
  bool isYcc = !isGray && (space == OPJ_CLRSPC_SYCC ||
                           (space != OPJ_CLRSPC_SRGB && !isCmyk &&
                            image.comps[1].dx > image.comps[0].dx));
  unsigned used = isGray ? 1 : isCmyk ? 4 : 3;
  std::vector<Plane> planes;
  for (unsigned i = 0; i < used; ++i) {
    const opj_image_comp_t &c = image.comps[i];
    if (!c.data || c.w == 0 || c.h == 0 || c.prec < 1 || c.prec > 31) {
      sink.fail("the JPEG 2000 has a component without samples");
      return;
    }
    planes.push_back({&c, sink.width(), sink.height()});
  }
  planes[0].clips = given == 1 && planes[0].component->prec > 8;
  std::vector<uint8_t> row(sink.width() * used);
  for (int64_t y = 0; y < sink.height(); ++y) {
    for (int64_t x = 0; x < sink.width(); ++x) {
      for (unsigned i = 0; i < used; ++i)
        row[x * used + i] = planes[i].at(x, y);
      if (isYcc)
        toRgb(&row[x * used]);
    }
    if (!(isGray   ? sink.putGray(y, row.data(), 1)
          : isCmyk ? sink.putCmyk(y, row.data(), 4)
                   : sink.putRgb(y, row.data(), 3)))
      return;
  }
}

//===----------------------------------------------------------------------===//
// Decoding
//===----------------------------------------------------------------------===//

/// Whether the image was decoded; `source` or the sink says why not.
static bool decode(opj_codec_t *codec, opj_stream_t *stream,
                   opj_image_t *&image, ImageSink &sink) {
  opj_dparameters_t parameters;
  opj_set_default_decoder_parameters(&parameters);
  if (!opj_setup_decoder(codec, &parameters) ||
      !opj_read_header(stream, codec, &image))
    return false;
  int64_t width = int64_t(image->x1) - image->x0;
  int64_t height = int64_t(image->y1) - image->y0;
  if (image->color_space == OPJ_CLRSPC_EYCC)
    return sink.fail("a JPEG 2000 in the colour space e-YCC is not supported");
  if (!sink.begin(width, height))
    return false;
  // 32 bits a sample, in the image, in a tile and in its code blocks.
  int64_t bytes;
  if (__builtin_mul_overflow(width * height, 12 * int64_t(image->numcomps),
                             &bytes))
    return sink.fail("the image has too many samples");
  return sink.reserve(bytes) && opj_decode(codec, stream, image);
}

void sardonyx::runtime::decodeJpeg2000(ImageBytes bytes, ImageSink &sink,
                                       bool isFile) {
  if (!sink.reserve(bytesForTiles(bytes, isFile)))
    return;
  Source source{bytes};
  std::unique_ptr<opj_codec_t, decltype(&opj_destroy_codec)> codec(
      opj_create_decompress(isFile ? OPJ_CODEC_JP2 : OPJ_CODEC_J2K),
      opj_destroy_codec);
  std::unique_ptr<opj_stream_t, decltype(&opj_stream_destroy)> stream(
      opj_stream_default_create(OPJ_TRUE), opj_stream_destroy);
  if (!codec || !stream) {
    sink.fail("out of memory for decoding an image");
    return;
  }
  opj_set_error_handler(codec.get(), onError, &source);
  opj_stream_set_user_data(stream.get(), &source, nullptr);
  opj_stream_set_user_data_length(stream.get(), bytes.size);
  opj_stream_set_read_function(stream.get(), read);
  opj_stream_set_skip_function(stream.get(), skip);
  opj_stream_set_seek_function(stream.get(), seek);
  opj_image_t *made = nullptr;
  bool done = decode(codec.get(), stream.get(), made, sink);
  std::unique_ptr<opj_image_t, decltype(&opj_image_destroy)> image(
      made, opj_image_destroy);
  if (done)
    putRows(*image, sink);
  else if (!sink.failed())
    sink.fail(
        "the JPEG 2000 cannot be decoded: " +
        (source.message.empty() ? "its data are damaged" : source.message));
}
