//===- DecomposeNarrow.cpp - Narrow images as loop nests ------------------===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The same operations with channels first, between transposes.
//
//===----------------------------------------------------------------------===//

#include "Common/ChannelsLast.h"
#include "Common/IndexMath.h"
#include "Loops/PlainOperands.h"
#include "lib/Dispatch/Utils.h"

#include "mlir/Dialect/Tensor/IR/Tensor.h"

using namespace mlir;
using namespace sardonyx;
using namespace sardonyx::cpu;

static Value toFirst(ImplicitLocOpBuilder &b, Value image) {
  const int64_t rank = cast<ShapedType>(image.getType()).getRank();
  return createTranspose(b, b.getLoc(), image, orderFirst(rank));
}

static Value toLast(ImplicitLocOpBuilder &b, Value image) {
  const int64_t rank = cast<ShapedType>(image.getType()).getRank();
  return createTranspose(b, b.getLoc(), image, orderLast(rank));
}

/// The plain loops of `op`, which nothing reads, with channels last.
template <typename OpT>
static Value decomposeAndErase(ImplicitLocOpBuilder &b, OpT op) {
  Value result =
      decomposeToLinalg(b, cast<sdx::DenseOpInterface>(op.getOperation()));
  op.erase();
  return toLast(b, result);
}

/// The convolution `op` with channels first, by filters whose elements, at
/// [filter, channel, k...], `emit` computes.
template <typename OpT>
static Value decompose(ImplicitLocOpBuilder &b, OpT op, int64_t filters,
                       int64_t channels, int64_t group, EmitElement emit) {
  SmallVector<int64_t> shape = {filters, channels};
  llvm::append_range(shape, op.getKernelShape());
  Type element = op.getInput().getType().getElementType();
  Value empty = tensor::EmptyOp::create(
      b, shape, op.getWeights().getType().getElementType());
  Value weights = emitElements(b, empty, emit);
  auto conv = sdx::ConvOp::create(b, toFirst(b, op.getInput()), weights,
                                  toFirst(b, op.getInit()), op.getStrides(),
                                  op.getDilations(), op.getPadsBegin(),
                                  op.getPadsEnd(), group);
  conv.setInputUnsigned(element.isInteger(8));
  conv.setPadding(op.getPadding());
  return decomposeAndErase(b, conv);
}

/// The number of a tap of the kernel's first dimensions, whose indices are
/// `at`.
static Value numberTap(IndexMath &math, ArrayRef<int64_t> kernel,
                       ArrayRef<Value> at) {
  Value number = math.constant(0);
  for (auto [size, index] : llvm::zip(kernel, at))
    number = math.add(math.mul(number, size), index);
  return number;
}

Value cpu::decomposeNarrow(ImplicitLocOpBuilder &b, NarrowConvOp op) {
  const int64_t filters = op.getGroupFilters(),
                channels = op.getGroupChannels(), width = op.getPanelWidth(),
                size = op.getPacking().getDepthGroup();
  const int64_t panels = llvm::divideCeil(filters, width);
  return decompose(
      b, op, filters * int64_t(op.getGroup()), channels, op.getGroup(),
      [&](ImplicitLocOpBuilder &inner, ArrayRef<Value> at) {
        IndexMath math(inner);
        Value filter = math.rem(at[0], math.constant(filters));
        Value panel = math.add(math.mul(math.div(at[0], filters), panels),
                               math.div(filter, width));
        Value k = math.add(
            math.mul(numberTap(math, op.getKernelShape(), at.drop_front(2)),
                     channels),
            at[1]);
        Value column = math.rem(filter, math.constant(width));
        return emitElement(inner, op.getWeights(),
                           {panel, math.div(k, size),
                            math.add(math.mul(column, size),
                                     math.rem(k, math.constant(size)))});
      });
}

Value cpu::decomposeNarrow(ImplicitLocOpBuilder &b, DepthwiseNarrowConvOp op) {
  const int64_t channels = op.getInput().getType().getShape().back(),
                size = op.getLineGroup();
  return decompose(
      b, op, channels, 1, channels,
      [&](ImplicitLocOpBuilder &inner, ArrayRef<Value> at) {
        IndexMath math(inner);
        Value line = numberTap(math, op.getKernelShape().drop_back(),
                               at.drop_front(2).drop_back());
        Value row = math.add(math.mul(math.div(line, size), op.getLineTaps()),
                             at.back());
        return emitElement(
            inner, op.getWeights(),
            {row, math.add(math.mul(at[0], size),
                           math.rem(line, math.constant(size)))});
      });
}

Value cpu::decomposeNarrow(ImplicitLocOpBuilder &b, ChannelsLastMaxPoolOp op) {
  auto pool = sdx::MaxPoolOp::create(
      b, toFirst(b, op.getInput()), toFirst(b, op.getInit()),
      op.getKernelShape(), op.getStrides(), op.getPadsBegin());
  pool.setIsUnsigned(op.getIsUnsigned());
  return decomposeAndErase(b, pool);
}
