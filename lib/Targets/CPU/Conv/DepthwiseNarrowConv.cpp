//===- DepthwiseNarrowConv.cpp - Convolutions of single channels
//-----------===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Instructions sum up the products of four bytes, or of two integers of 16
// bits: the pixels that four lines of the kernel, or two, read below each other
// are interleaved channel by channel, once for all outputs that read that
// column. Pixels of bf16 are widened and multiplied by multiply-adds.
//
//===----------------------------------------------------------------------===//

#include "Conv/ChannelWindows.h"

#include <map>

using namespace mlir;
using namespace sardonyx;
using namespace sardonyx::cpu;

DepthwiseNarrowConvKernel::DepthwiseNarrowConvKernel(DepthwiseNarrowConvOp op,
                                                     TargetAttr target,
                                                     ChannelWindowPlanAttr plan,
                                                     KernelBody &body)
    : ChannelWindowKernel(cast<DestinationStyleOpInterface>(op.getOperation()),
                          body, plan, op.getKernelShape(), op.getStrides(),
                          op.getPadsBegin()),
      conv(op), target(target), size(op.getLineGroup()),
      micro(*selectMicroKernel(!op.isOfBytes() ? PackedElement::F32
                               : size == 2     ? PackedElement::I16
                                               : PackedElement::I8,
                               target, MicroKernel::Unit::Vectors)) {}

void DepthwiseNarrowConvKernel::prepare(ImplicitLocOpBuilder &) {
  weights = body.getBuffer(conv.getWeights());
}

/// A line of the input that a line of the kernel reads, and whether it is in
/// there.
struct DepthwiseNarrowConvKernel::Line {
  Value number, inside;
};

DepthwiseNarrowConvKernel::Line
DepthwiseNarrowConvKernel::emitLineStart(ImplicitLocOpBuilder &b,
                                         const Piece &piece, int64_t number) {
  IndexMath math(b);
  const int64_t leading = windows.rank() - 1;
  SmallVector<int64_t> taps(leading);
  for (int64_t dim = leading - 1; dim >= 0; --dim) {
    taps[dim] = number % kernel[dim];
    number /= kernel[dim];
  }
  Line line{piece.image,
            arith::ConstantOp::create(b, b.getBoolAttr(true)).getResult()};
  for (int64_t dim = 0; dim < leading; ++dim) {
    Value at =
        math.add(piece.starts[dim], taps[dim] * conv.getDilations()[dim]);
    line.number = windows.append(b, line.number, dim, at);
    line.inside = b.createOrFold<arith::AndIOp>(line.inside,
                                                windows.isInside(b, dim, at));
  }
  return line;
}

/// Lines of a group at a time: as they are where all that they read is inside,
/// pixel by pixel where not.
SmallVector<Value> DepthwiseNarrowConvKernel::emitResults(
    ImplicitLocOpBuilder &b, const Piece &piece, SmallVector<Value> inits) {
  IndexMath math(b);
  const int64_t last = windows.rank() - 1;
  const int64_t reach = (piece.count - 1) * strides[last] +
                        (kernel[last] - 1) * conv.getDilations()[last];
  Value isInner = b.createOrFold<arith::AndIOp>(
      windows.isInside(b, last, piece.first),
      windows.isInside(b, last, math.add(piece.first, reach)));
  for (int64_t first = 0; first < conv.countLines(); first += size) {
    SmallVector<Line> lines;
    Value areInner = isInner;
    for (int64_t i = 0; i < size && first + i < conv.countLines(); ++i) {
      lines.push_back(emitLineStart(b, piece, first + i));
      areInner = b.createOrFold<arith::AndIOp>(areInner, lines.back().inside);
    }
    auto branch = scf::IfOp::create(b, TypeRange(ValueRange(inits)), areInner,
                                    /*addThenBlock=*/true,
                                    /*addElseBlock=*/true);
    for (bool inner : {true, false}) {
      OpBuilder::InsertionGuard guard(b);
      b.setInsertionPointToStart(inner ? branch.thenBlock()
                                       : branch.elseBlock());
      scf::YieldOp::create(
          b, emitLines(b, piece, first / size, lines, inner, inits));
    }
    inits.assign(branch.result_begin(), branch.result_end());
  }
  return inits;
}

/// The products of the lines of a group, the one of that number.
SmallVector<Value> DepthwiseNarrowConvKernel::emitLines(
    ImplicitLocOpBuilder &b, const Piece &piece, int64_t group,
    ArrayRef<Line> lines, bool isInner, SmallVector<Value> sums) {
  IndexMath math(b);
  const int64_t last = windows.rank() - 1;
  const int64_t taps = kernel[last], dilation = conv.getDilations()[last];
  SmallVector<Value> filter;
  for (int64_t k = 0; k < taps; ++k) {
    Value mask;
    if (piece.mask)
      mask = emitTailMask(
          b,
          math.mul(math.sub(math.constant(
                                conv.getInit().getType().getShape().back()),
                            piece.channel),
                   size),
          size * lanes);
    Value values = emitLoad(
        b, weights,
        {math.constant(group * taps + k), math.mul(piece.channel, size)},
        size * lanes, mask);
    filter.push_back(emitOperand(b, values));
  }
  // Which outputs read a column, and by which tap.
  std::map<int64_t, SmallVector<std::pair<int64_t, int64_t>>> readers;
  for (int64_t i = 0; i < piece.count; ++i)
    for (int64_t k = 0; k < taps; ++k)
      readers[i * strides[last] + k * dilation].emplace_back(i, k);
  for (auto &[column, uses] : readers) {
    Value values =
        emitGroup(b, piece, lines, math.add(piece.first, column), isInner);
    for (auto [output, tap] : uses)
      sums[output] =
          micro.emitStep(b, target, values, filter[tap], sums[output]);
  }
  return sums;
}

/// Pixels or taps, those of a channel together, as instructions multiply them.
Value DepthwiseNarrowConvKernel::emitOperand(ImplicitLocOpBuilder &b,
                                             Value values) {
  if (!conv.isOfBytes())
    return arith::ExtFOp::create(b, VectorType::get({lanes}, b.getF32Type()),
                                 values);
  return vector::BitCastOp::create(b, VectorType::get({lanes}, b.getI32Type()),
                                   values);
}

/// The pixels of `lines` in a column, those of a channel together.
Value DepthwiseNarrowConvKernel::emitGroup(ImplicitLocOpBuilder &b,
                                           const Piece &piece,
                                           ArrayRef<Line> lines, Value column,
                                           bool isInner) {
  const int64_t last = windows.rank() - 1;
  auto type =
      VectorType::get({lanes}, conv.getInput().getType().getElementType());
  SmallVector<Value> pixels;
  for (const Line &line : lines) {
    auto load = [&] {
      return emitPixel(b, piece, windows.append(b, line.number, last, column));
    };
    if (isInner) {
      pixels.push_back(load());
      continue;
    }
    Value inside = b.createOrFold<arith::AndIOp>(
        line.inside, windows.isInside(b, last, column));
    auto branch = emitIf(
        b, TypeRange(type), inside, [&] { return SmallVector<Value>{load()}; },
        [&] {
          return SmallVector<Value>{
              conv.isOfBytes()
                  ? emitSplat(b, type, conv.getPadding())
                  : arith::ConstantOp::create(b, b.getZeroAttr(type))};
        });
    pixels.push_back(branch.getResult(0));
  }
  // Filters are zero past the last line.
  while (int64_t(pixels.size()) < size)
    pixels.push_back(pixels.back());
  if (size == 1)
    return emitOperand(b, pixels.front());
  Value all;
  if (size == 2) {
    Value pairs = vector::InterleaveOp::create(b, pixels[0], pixels[1]);
    all = arith::ExtUIOp::create(
        b, VectorType::get({2 * lanes}, b.getI16Type()), pairs);
  } else {
    Value even = vector::InterleaveOp::create(b, pixels[0], pixels[2]);
    Value odd = vector::InterleaveOp::create(b, pixels[1], pixels[3]);
    all = vector::InterleaveOp::create(b, even, odd);
  }
  return emitOperand(b, all);
}
