//===- Webp.cpp - Decoding of WebP ----------------------------------------===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "lib/Runtime/Image/Image.h"
#include <webp/decode.h>
#include <webp/demux.h>

using namespace sardonyx::runtime;

static const char *textOf(VP8StatusCode status) {
  switch (status) {
  case VP8_STATUS_OUT_OF_MEMORY:
    return "out of memory";
  case VP8_STATUS_UNSUPPORTED_FEATURE:
    return "it uses a feature that is not supported";
  case VP8_STATUS_NOT_ENOUGH_DATA:
    return "its data end too early";
  default:
    return "its data are damaged";
  }
}

static void fail(ImageSink &sink, VP8StatusCode status) {
  sink.fail(std::string("the WebP cannot be decoded: ") + textOf(status));
}

/// The colours of one image, which lie at (left, top) of the sink's; the rest
/// is black.
static void decodeFrame(ImageBytes bytes, int64_t left, int64_t top,
                        ImageSink &sink) {
  WebPDecoderConfig config;
  if (!WebPInitDecoderConfig(&config))
    return fail(sink, VP8_STATUS_INVALID_PARAM);
  VP8StatusCode status = WebPGetFeatures(bytes.data, bytes.size, &config.input);
  if (status != VP8_STATUS_OK)
    return fail(sink, status);
  int64_t width = config.input.width, height = config.input.height;
  if (left < 0 || top < 0 || left + width > sink.width() ||
      top + height > sink.height())
    return fail(sink, VP8_STATUS_BITSTREAM_ERROR);
  // At most a lossless image's pixels and an alpha plane, and some rows.
  if (!sink.reserve(width * height * 5 + width * 64))
    return;
  int64_t stride = sink.width() * 3;
  auto pixels = sink.scratch(stride * sink.height());
  if (!pixels)
    return;
  config.output.colorspace = MODE_RGB;
  config.output.is_external_memory = 1;
  config.output.u.RGBA.rgba = pixels.get() + top * stride + left * 3;
  config.output.u.RGBA.stride = static_cast<int>(stride);
  config.output.u.RGBA.size = (height - 1) * stride + width * 3;
  status = WebPDecode(bytes.data, bytes.size, &config);
  WebPFreeDecBuffer(&config.output);
  if (status != VP8_STATUS_OK)
    return fail(sink, status);
  for (int64_t y = 0; y < sink.height(); ++y)
    if (!sink.putRgb(y, pixels.get() + y * stride, 3))
      return;
}

/// The first picture of an animation.
static void decodeAnimation(ImageBytes bytes, ImageSink &sink) {
  WebPData data{bytes.data, bytes.size};
  std::unique_ptr<WebPDemuxer, decltype(&WebPDemuxDelete)> demuxer(
      WebPDemux(&data), WebPDemuxDelete);
  WebPIterator frame{};
  if (!demuxer || !WebPDemuxGetFrame(demuxer.get(), 1, &frame))
    return fail(sink, VP8_STATUS_NOT_ENOUGH_DATA);
  std::unique_ptr<WebPIterator, decltype(&WebPDemuxReleaseIterator)> held(
      &frame, WebPDemuxReleaseIterator);
  // Neither is larger than 2^24.
  if (sink.begin(WebPDemuxGetI(demuxer.get(), WEBP_FF_CANVAS_WIDTH),
                 WebPDemuxGetI(demuxer.get(), WEBP_FF_CANVAS_HEIGHT)))
    decodeFrame({frame.fragment.bytes, frame.fragment.size}, frame.x_offset,
                frame.y_offset, sink);
}

void sardonyx::runtime::decodeWebp(ImageBytes bytes, ImageSink &sink) {
  WebPBitstreamFeatures features;
  VP8StatusCode status = WebPGetFeatures(bytes.data, bytes.size, &features);
  if (status != VP8_STATUS_OK)
    return fail(sink, status);
  if (features.has_animation)
    return decodeAnimation(bytes, sink);
  if (sink.begin(features.width, features.height))
    decodeFrame(bytes, 0, 0, sink);
}
