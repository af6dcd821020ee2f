//===- ImageDecoder.cpp - Decoding of images ------------------------------===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The runtime decodes the image into a list of one, since only the bytes tell
// how large it is.
//
//===----------------------------------------------------------------------===//

#include "StringsAndSequences/Sequences.h"
#include "Support/Checks.h"
#include "Support/Lowering.h"
#include "Support/Patterns.h"
#include "Support/RuntimeCalls.h"
#include "dialects/ONNX/ONNX.h"

using namespace mlir;

namespace sardonyx {

/// The runtime's number for a pixel format; nothing where there is no such.
static std::optional<int64_t> numberOf(StringRef format) {
  return llvm::StringSwitch<std::optional<int64_t>>(format)
      .Case("RGB", 0)
      .Case("BGR", 1)
      .Case("Grayscale", 2)
      .Default(std::nullopt);
}

static LogicalResult lowerImageDecoder(Lowering<onnx::ImageDecoderOp> &b) {
  Value encoded = b.in.getEncodedStream();
  if (b.rank(encoded) != 1)
    return b.refuse("the encoded image must be a list of bytes");
  StringRef format = b.op.getPixelFormat();
  std::optional<int64_t> number = numberOf(format);
  if (!number)
    return b.refuseAlways("there is no pixel_format '" + format + "'");
  Value list =
      callRuntime(b, "sdx_rt_image_decode", {encoded, asNumber(b, *number)},
                  ArrayRef<OpFoldResult>(), b.getI64Type());
  int64_t open = ShapedType::kDynamic, channels = *number == 2 ? 1 : 3;
  auto type = RankedTensorType::get({open, open, channels}, b.getI8Type());
  if (RankedTensorType declared = b.declared();
      declared && declared.getRank() != 3)
    return b.refuse("the image has three dimensions");
  return b.replace(getListItem(b, list, {}, type));
}

void populateImageDecoderPatterns(const TypeConverter &converter,
                                  RewritePatternSet &patterns) {
  addLowering<onnx::ImageDecoderOp, lowerImageDecoder>(patterns, converter);
}

} // namespace sardonyx
