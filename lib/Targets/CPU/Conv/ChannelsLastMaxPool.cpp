//===- ChannelsLastMaxPool.cpp - Maximum poolings, channels last
//------------------------===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A tap outside of the input reads what is nearest to it inside, which its
// window sees as well.
//
//===----------------------------------------------------------------------===//

#include "Conv/ChannelWindows.h"
#include "Kernel/Vectorize.h"

using namespace mlir;
using namespace sardonyx;
using namespace sardonyx::cpu;

ChannelsLastMaxPoolKernel::ChannelsLastMaxPoolKernel(ChannelsLastMaxPoolOp op,
                                                     ChannelWindowPlanAttr plan,
                                                     KernelBody &body)
    : ChannelWindowKernel(cast<DestinationStyleOpInterface>(op.getOperation()),
                          body, plan, op.getKernelShape(), op.getStrides(),
                          op.getPadsBegin()),
      pool(op) {}

SmallVector<Value> ChannelsLastMaxPoolKernel::emitResults(
    ImplicitLocOpBuilder &b, const Piece &piece, SmallVector<Value> inits) {
  IndexMath math(b);
  for (auto [i, largest] : llvm::enumerate(inits)) {
    Value position = math.add(piece.first, int64_t(i) * strides.back());
    largest = emitTaps(b, piece, 0, piece.image, position, largest);
  }
  return inits;
}

/// `largest` and the taps from dimension `dim` on of the window that begins at
/// `position` of the last one. `line` is the number of the image, or of its
/// line so far.
Value ChannelsLastMaxPoolKernel::emitTaps(ImplicitLocOpBuilder &b,
                                          const Piece &piece, int64_t dim,
                                          Value line, Value position,
                                          Value largest) {
  IndexMath math(b);
  const bool isLast = dim == windows.rank() - 1;
  Value end = math.sub(windows.getSize(dim), math.constant(1));
  for (int64_t k = 0; k < kernel[dim]; ++k) {
    Value at = math.add(isLast ? position : piece.starts[dim], k);
    at = math.max(math.min(at, end), math.constant(0));
    Value place = windows.append(b, line, dim, at);
    if (!isLast) {
      largest = emitTaps(b, piece, dim + 1, place, position, largest);
      continue;
    }
    Value pixel = emitPixel(b, piece, place);
    if (isa<FloatType>(getElementTypeOrSelf(pixel)))
      largest = emitMaximum(b, largest, pixel);
    else if (pool.getIsUnsigned())
      largest = arith::MaxUIOp::create(b, largest, pixel);
    else
      largest = arith::MaxSIOp::create(b, largest, pixel);
  }
  return largest;
}
