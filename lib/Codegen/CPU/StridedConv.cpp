//===- StridedConv.cpp - Convolutions that skip positions -----------------===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Neighbouring outputs of a convolution of stride 2 read every second input,
// which takes a gather for each tap. If even and odd rows and columns are put
// into planes of their own first, each tap reads neighbours in one plane: input
// 2 * o + t of an output o is element o + floor(t / 2) of plane t mod 2. A
// single tap reads one of these planes only, and only that one is made.
//
//===----------------------------------------------------------------------===//

#include "ConvEmitter.h"
#include "IndexMath.h"

using namespace mlir;
using namespace sardonyx;
using namespace sardonyx::cpu;

bool ConvEmitter::canSplitPhases() {
  if (spatial != 2 || stride(0) != 2 || stride(1) != 2)
    return false;
  if (hasChannelLanes() || (countTaps() == 1 && countPhases() != 1))
    return false;
  std::optional<int64_t> height = IndexMath::known(inSizes[0]);
  std::optional<int64_t> width = IndexMath::known(inSizes[1]);
  std::optional<int64_t> columns = IndexMath::known(outSize(1));
  std::optional<int64_t> channels = IndexMath::known(groupChannels);
  // Outputs and the elements of a plane must have rows of one length.
  return height && width && columns && channels && *height > 0 &&
         *width == 2 * *columns && *columns > 0;
}

/// Planes of a channel that taps read.
int64_t ConvEmitter::countPhases() {
  return countTaps() == 1 && !isPadded(0) && !isPadded(1) ? 1 : 4;
}

/// Makes the planes of all images and channels: [image, channel, plane, row,
/// column], the last two as one.
void ConvEmitter::emitPhases(ImplicitLocOpBuilder &b) {
  IndexMath math(b);
  int64_t height = *IndexMath::known(inSizes[0]);
  int64_t columns = *IndexMath::known(outSize(1));
  int64_t channels = *IndexMath::known(groupChannels) * group;
  Value images = evaluator.getSize(0);
  SmallVector<Value> dynamic;
  int64_t known = IndexMath::known(images).value_or(ShapedType::kDynamic);
  if (ShapedType::isDynamic(known))
    dynamic.push_back(images);
  int64_t planes = countPhases(), side = planes == 1 ? 1 : 2;
  auto type = MemRefType::get(
      {known, channels, planes, (height + 1) / 2 * columns}, b.getF32Type());
  phases = emitBuffer(b, type, dynamic);

  int64_t width = shape.width;
  auto emitRun = [&](Value image, Value channel, Value row, Value column,
                     int64_t left) {
    Value count = math.constant(std::min(left, width));
    Value mask = emitTailMask(b, math.mul(count, 2), 2 * width);
    Value from = math.add(math.mul(row, 2 * columns), math.mul(column, 2));
    Value both =
        emitLoad(b, flatInput, {image, channel, from}, 2 * width, mask);
    Value half = math.div(row, 2);
    Value plane = planes == 1 ? math.constant(0)
                              : math.mul(math.sub(row, math.mul(half, 2)), 2);
    Value to = math.add(math.mul(half, columns), column);
    for (int64_t parity = 0; parity < side; ++parity) {
      SmallVector<int64_t> picked;
      for (int64_t i = 0; i < width; ++i)
        picked.push_back(2 * i + parity);
      emitStore(b, vector::ShuffleOp::create(b, both, both, picked), phases,
                {image, channel, math.add(plane, parity), to},
                emitTailMask(b, count, width));
    }
  };
  emitParallel(b, {images, math.constant(channels)}, [&](ValueRange ivs) {
    emitFor(
        b, math.constant(0), math.constant(height), 3 - side, [&](Value row) {
          int64_t tail = columns % width;
          if (columns >= width)
            emitFor(b, math.constant(0), math.constant(columns - tail), width,
                    [&](Value column) {
                      emitRun(ivs[0], ivs[1], row, column, width);
                    });
          if (tail)
            emitRun(ivs[0], ivs[1], row, math.constant(columns - tail), tail);
        });
  });
}

/// How far in its plane the input of tap `distance` of dimension `d` lies from
/// the output, and which of the two planes of that dimension it is in.
std::pair<Value, Value> ConvEmitter::findPhase(ImplicitLocOpBuilder &b,
                                               Value distance, int64_t d) {
  IndexMath math(b);
  int64_t ahead = (pad(d) + 1) / 2;
  Value shifted = math.add(distance, 2 * ahead - pad(d)); // never negative
  Value half = math.div(shifted, 2);
  return {math.sub(half, math.constant(ahead)),
          math.sub(shifted, math.mul(half, 2))};
}
