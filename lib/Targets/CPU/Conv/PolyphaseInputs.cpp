//===- PolyphaseInputs.cpp - Convolutions that skip positions -------------===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Neighbouring outputs of a convolution of stride 2 read every second input,
// which takes a gather for each tap. So the inputs are put into planes first,
// whose rows are as long as the output's, and each tap reads neighbours in one
// plane.
//
// Rows: those of the padded input that a tap reads are a stride apart, so row q
// of plane p is row stride * q + p, and the tap of row y reads from plane
// y mod stride on, floor(y / stride) rows further.
//
// Columns: where the input is twice as wide as the output, or with open sizes
// not wider by its padding, planes of even and of odd columns do, tap x being
// floor((x - pad) / 2) columns further. Otherwise these would need longer rows;
// each column of the kernel has a plane of its own then, padding included.
//
//===----------------------------------------------------------------------===//

#include "Common/IndexMath.h"
#include "Conv/ConvEmitter.h"

using namespace mlir;
using namespace sardonyx;
using namespace sardonyx::cpu;

/// For each plane of columns the input that its column 0 holds. Column o holds
/// the one 2 * o further.
SmallVector<int64_t> ConvEmitter::listColumnPhases() {
  SmallVector<int64_t> firsts;
  if (facts.hasTapPhases())
    for (int64_t x = 0; x < kernel(1); ++x)
      firsts.push_back(x * dilation(1) - pad(1));
  else if (kernel(1) == 1 && !isPadded(1))
    firsts = {0};
  else
    firsts = {0, 1};
  return firsts;
}

/// Planes of rows: as many as the kernel's rows meet remainders.
int64_t ConvEmitter::countRowPhases() {
  return kernel(0) == 1 || dilation(0) % stride(0) == 0 ? 1 : stride(0);
}

/// Planes of a channel.
int64_t ConvEmitter::countPhases() {
  return countRowPhases() * listColumnPhases().size();
}

/// Makes the planes of all images and channels: [image, channel, plane, row and
/// column].
Value ConvEmitter::emitPolyphase(ImplicitLocOpBuilder &b) {
  IndexMath math(b);
  Value columns = outSize(1);
  int64_t channels = *IndexMath::known(groupChannels) * group;
  Value rows = math.add(outSize(0), (kernel(0) - 1) * dilation(0) / stride(0));
  SmallVector<int64_t> firsts = listColumnPhases();
  Value images = evaluator.getSize(0), area = math.mul(rows, columns);
  SmallVector<Value> dynamic;
  auto sizeOf = [&](Value size) {
    std::optional<int64_t> known = IndexMath::known(size);
    if (!known)
      dynamic.push_back(size);
    return known.value_or(ShapedType::kDynamic);
  };
  const int64_t numImages = sizeOf(images), numElements = sizeOf(area);
  auto type = MemRefType::get({numImages, channels, countPhases(), numElements},
                              b.getF32Type());
  Value planes = emitBuffer(b, type, dynamic);

  int64_t width = shape.width;
  // Columns [column, column + count) of row `row` of the planes from `plane`
  // on, from row `source` of the input.
  auto emitRun = [&](ValueRange at, int64_t plane, Value source, Value row,
                     Value column, Value count) {
    Value to = math.add(math.mul(row, columns), column);
    Value both;
    for (size_t i = 0; i < firsts.size(); ++i) {
      // The inputs that follow on those of the plane before came with them.
      bool isOdd = both && firsts[i] == firsts[i - 1] + 1;
      if (!isOdd) {
        Value first = math.add(math.mul(column, 2), math.constant(firsts[i]));
        Value mask = emitRowMask(b, emitInside(b, first, 2 * width, inSizes[1]),
                                 source, inSizes[0]);
        Value from = math.add(math.mul(source, inSizes[1]), first);
        both = emitLoad(b, flatInput, {at[0], at[1], from}, 2 * width, mask);
      }
      emitStore(b, emitPick(b, both, both, isOdd, 2, width), planes,
                {at[0], at[1], math.constant(plane + i), to},
                emitTailMask(b, count, width));
      if (isOdd)
        both = nullptr;
    }
  };
  Value whole = math.roundDown(columns, width);
  Value tail = math.sub(columns, whole);
  std::optional<int64_t> knownTail = IndexMath::known(tail);
  emitParallel(b, {images, math.constant(channels)}, [&](ValueRange at) {
    for (int64_t p = 0; p < countRowPhases(); ++p)
      emitFor(b, math.constant(0), rows, 1, [&](Value row) {
        Value source = math.sub(math.add(math.mul(row, stride(0)), p),
                                math.constant(pad(0)));
        int64_t plane = p * firsts.size();
        if (IndexMath::known(whole) != 0)
          emitFor(b, math.constant(0), whole, width, [&](Value column) {
            emitRun(at, plane, source, row, column, math.constant(width));
          });
        auto emitTail = [&] { emitRun(at, plane, source, row, whole, tail); };
        if (!knownTail)
          emitIf(b, math.less(math.constant(0), tail), emitTail);
        else if (*knownTail > 0)
          emitTail();
      });
  });
  return planes;
}

/// How much further in its planes the input of tap number `k` of dimension `d`
/// lies than the output, and which of the planes of that dimension it is in.
std::pair<Value, Value> ConvEmitter::findPhase(ImplicitLocOpBuilder &b, Value k,
                                               int64_t d) {
  IndexMath math(b);
  Value distance = math.mul(k, dilation(d));
  if (d == 0) {
    Value rows = math.div(distance, stride(0));
    return {math.mul(rows, outSize(1)),
            math.sub(distance, math.mul(rows, stride(0)))};
  }
  if (facts.hasTapPhases())
    return {math.constant(0), k};
  int64_t ahead = (pad(d) + 1) / 2;
  Value shifted = math.add(distance, 2 * ahead - pad(d)); // never negative
  Value half = math.div(shifted, 2);
  return {math.sub(half, math.constant(ahead)),
          math.sub(shifted, math.mul(half, 2))};
}
