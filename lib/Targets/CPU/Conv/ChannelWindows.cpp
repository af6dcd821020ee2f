//===- ChannelWindows.cpp - Loops over windows of single channels
//------------===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Threads share lines of outputs. The last channels that fill no vector are
// those of a vector that ends with them, where there are as many.
//
//===----------------------------------------------------------------------===//

#include "Conv/ChannelWindows.h"

using namespace mlir;
using namespace sardonyx;
using namespace sardonyx::cpu;

ChannelWindowKernel::ChannelWindowKernel(DestinationStyleOpInterface op,
                                         KernelBody &body,
                                         ChannelWindowPlanAttr plan,
                                         ArrayRef<int64_t> kernel,
                                         ArrayRef<int64_t> strides,
                                         ArrayRef<int64_t> padsBegin)
    : op(op), body(body), lanes(plan.getLanes()),
      positions(plan.getPositions()), kernel(kernel), strides(strides),
      windows(strides, padsBegin),
      evaluator(body, op->getResult(0), /*rowDim=*/0, kernel.size() + 1) {}

LogicalResult ChannelWindowKernel::verify() {
  for (OpOperand *input : op.getDpsInputOperands())
    if (!KernelBody::hasBuffer(input->get()))
      return op->emitOpError("has an operand that is computed in its own "
                             "kernel");
  return evaluator.verify(op.getDpsInits()[0]);
}

void ChannelWindowKernel::emit(ImplicitLocOpBuilder &b) {
  IndexMath math(b);
  Value input = body.getBuffer(op.getDpsInputs()[0]);
  evaluator.prepare(b, op.getDpsInits()[0]);
  flatInput = emitCollapse(b, input, 0);
  const int64_t last = windows.rank();
  SmallVector<Value> sizes;
  Value lines = math.constant(1);
  for (int64_t dim = 0; dim <= last; ++dim) {
    sizes.push_back(evaluator.getSize(dim));
    if (dim < last)
      lines = math.mul(lines, sizes.back());
  }
  channels = evaluator.getSize(last + 1);
  windows.prepare(b, input, sizes);
  prepare(b);
  emitParallel(b, lines, [&](ValueRange ivs) { emitLine(b, ivs[0]); });
}

/// The outputs of a line, all channels.
void ChannelWindowKernel::emitLine(ImplicitLocOpBuilder &b, Value line) {
  IndexMath math(b);
  const int64_t last = windows.rank();
  Value width = evaluator.getSize(last);
  SmallVector<Value> at = windows.split(b, math.mul(line, width));
  std::optional<int64_t> known = IndexMath::known(width);
  // Pieces at the end overlap those before, where a line has that many.
  const bool overlaps = known && *known >= positions;
  auto emitChannels = [&](Value channel, Value mask) {
    emitFor(b, math.constant(0), width, positions, [&](Value first) {
      if (overlaps && *known % positions)
        first = math.min(first, math.constant(*known - positions));
      emitPiece(b, line, at, channel, mask, first, overlaps ? Value() : width);
    });
  };
  std::optional<int64_t> count = IndexMath::known(channels);
  emitFor(b, math.constant(0), channels, lanes, [&](Value channel) {
    if (count && *count >= lanes)
      return emitChannels(*count % lanes
                              ? math.min(channel, math.constant(*count - lanes))
                              : channel,
                          nullptr);
    emitChannels(channel, emitTailMask(b, math.sub(channels, channel), lanes));
  });
}

/// The outputs at `positions` positions from `first` on; with `limit` those
/// from there on do not exist.
void ChannelWindowKernel::emitPiece(ImplicitLocOpBuilder &b, Value line,
                                    ValueRange at, Value channel, Value mask,
                                    Value first, Value limit) {
  IndexMath math(b);
  const int64_t last = windows.rank();
  Value begin = math.mul(line, evaluator.getSize(last));
  Tile tile;
  tile.index = {math.add(begin, first)};
  tile.position = channel;
  tile.width = lanes;
  tile.mask = mask;
  if (limit)
    tile.rowLimit = math.add(begin, limit);
  Piece piece;
  for (int64_t dim = 0; dim + 1 < last; ++dim)
    piece.starts.push_back(windows.getStart(b, dim, at[1 + dim]));
  piece.image = at[0];
  piece.first = windows.getStart(b, last - 1, first);
  piece.channel = channel;
  piece.count = positions;
  piece.mask = mask;
  SmallVector<Value> inits =
      evaluator.emitInit(b, op.getDpsInits()[0], tile, positions);
  evaluator.emitStores(b, tile, emitResults(b, piece, std::move(inits)));
}

Value ChannelWindowKernel::emitPixel(ImplicitLocOpBuilder &b,
                                     const Piece &piece, Value pixel) {
  IndexMath math(b);
  Value at = math.add(math.mul(pixel, channels), piece.channel);
  return emitLoad(b, flatInput, {at}, lanes, piece.mask);
}
