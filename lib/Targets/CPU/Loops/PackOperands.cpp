//===- PackOperands.cpp - Packing an element at a time --------------------===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Common/IndexMath.h"
#include "Loops/PlainOperands.h"

#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

#include <cmath>

using namespace mlir;
using namespace sardonyx;
using namespace sardonyx::cpu;

static Value emitConstantF32(ImplicitLocOpBuilder &b, float value) {
  return arith::ConstantOp::create(b, b.getF32FloatAttr(value));
}

static Value emitConstant(ImplicitLocOpBuilder &b, int64_t value,
                          unsigned bits) {
  return arith::ConstantIntOp::create(b, value, bits);
}

/// The element of `source` at `indices` where `isInside`, and zero elsewhere;
/// `bounded` of the indices may be too large there.
static Value emitInside(ImplicitLocOpBuilder &b, Value source,
                        SmallVector<Value> indices, ArrayRef<int64_t> bounded,
                        Value isInside) {
  IndexMath math(b);
  for (int64_t dim : bounded)
    indices[dim] =
        arith::SelectOp::create(b, isInside, indices[dim], math.constant(0));
  Value element = emitElement(b, source, indices);
  Value zero = arith::ConstantOp::create(b, b.getZeroAttr(element.getType()));
  return arith::SelectOp::create(b, isInside, element, zero);
}

//===----------------------------------------------------------------------===//
// Right-hand sides
//===----------------------------------------------------------------------===//

namespace {

/// The elements of one panel of a packed right-hand side.
class RhsPacker {
public:
  RhsPacker(ImplicitLocOpBuilder &b, PackRhsOp op, ArrayRef<Value> sizes,
            ArrayRef<Value> place)
      : b(b), math(b), op(op), sizes(sizes), place(place) {}

  /// A signed byte of a group of values of k.
  Value emitOfGroup(Value group, Value at) {
    const int64_t size = op.getPacking().getDepthGroup();
    Value k =
        math.add(math.mul(group, size), math.rem(at, math.constant(size)));
    Value byte = emitNumber(k, math.div(at, size));
    Type type = op.getPacking().getStoredType();
    return byte.getType() == type
               ? byte
               : Value(arith::ExtSIOp::create(b, type, byte));
  }

  /// The number of column `column` of the panel at `k`; zero past the end.
  Value emitNumber(Value k, Value column) {
    Value n = math.add(math.mul(place.back(), op.getPanelWidth()), column);
    SmallVector<Value> indices(sizes.size());
    indices[op.getColumnDim()] = n;
    indices[op.getDepthDim()] = k;
    if (op.isInterleaved()) {
      indices[0] = math.div(place[0], sizes[2]);
      indices[2] = math.rem(place[0], sizes[2]);
    } else if (indices.size() == 3) {
      indices[0] = place[0];
    }
    Value isInside =
        arith::AndIOp::create(b, math.less(n, sizes[op.getColumnDim()]),
                              math.less(k, sizes[op.getDepthDim()]));
    return emitInside(b, op.getSource(), indices,
                      {op.getColumnDim(), op.getDepthDim()}, isInside);
  }

  /// emitNumber() over the column's scale.
  Value emitScaled(Value k, Value column) {
    Value zero = math.constant(0);
    Value scale =
        emitElement(b, op.getScales(), {place.back(), zero, zero, column});
    Value inverse = arith::DivFOp::create(b, emitConstantF32(b, 1), scale);
    return arith::MulFOp::create(b, emitNumber(k, column), inverse);
  }

  /// One of the three bytes of an integer of 24 bits.
  Value emitW24Byte(Value k, Value at) {
    Value byte = math.rem(at, math.constant(3));
    Value integer = emitNearest(emitScaled(k, math.div(at, 3)), 24);
    Value shift = arith::IndexCastOp::create(b, b.getI32Type(),
                                             math.mul(byte, int64_t(8)));
    return arith::TruncIOp::create(b, b.getI8Type(),
                                   arith::ShRUIOp::create(b, integer, shift));
  }

  /// Three integers of 21 bits, u, w and v as cpu.pack_rhs says.
  Value emitW21(Value triple, Value at) {
    const int64_t quarter = op.getPanelWidth() / 4;
    Value block = math.div(at, quarter);
    Value upper = math.div(block, 2), lower = math.rem(block, math.constant(2));
    Value pair = math.mul(math.rem(at, math.constant(quarter)), int64_t(2));
    Value first = math.mul(triple, kW21Group);
    auto half = [&](Value which) {
      return math.add(math.mul(which, 2 * quarter), pair);
    };
    Value u = emitBits(emitScaled(math.add(first, upper), half(lower)));
    Value w = emitScaled(math.add(first, 2), math.add(half(upper), lower));
    w = emitBits(arith::SubFOp::create(b, w, emitBelow(u, 11)));
    Value v = emitScaled(math.add(first, upper), math.add(half(lower), 1));
    v = emitBits(arith::SubFOp::create(b, v, emitBelow(w, 10)));
    Value all = emitShifted(u, 0);
    all = arith::OrIOp::create(b, all, emitShifted(w, 22));
    return arith::OrIOp::create(b, all, emitShifted(v, 43));
  }

private:
  /// The integer of `bits` bits nearest to `number`, and not larger.
  Value emitNearest(Value number, int64_t bits) {
    Value nearest = arith::MinimumFOp::create(
        b, math::RoundEvenOp::create(b, number),
        emitConstantF32(b, std::ldexp(1.0f, bits - 1) - 1));
    return arith::FPToSIOp::create(b, b.getI32Type(), nearest);
  }
  Value emitBits(Value number) {
    return arith::AndIOp::create(b, emitNearest(number, 21),
                                 emitConstant(b, (1 << 21) - 1, 32));
  }
  /// What the bits from `low` on count where they lie below another number.
  Value emitBelow(Value bits, int64_t low) {
    Value upper = arith::ShRUIOp::create(b, bits, emitConstant(b, low, 32));
    return arith::MulFOp::create(
        b, arith::UIToFPOp::create(b, b.getF32Type(), upper),
        emitConstantF32(b, std::ldexp(1.0f, -11)));
  }
  Value emitShifted(Value bits, int64_t by) {
    return arith::ShLIOp::create(
        b, arith::ExtUIOp::create(b, b.getI64Type(), bits),
        emitConstant(b, by, 64));
  }

  ImplicitLocOpBuilder &b;
  IndexMath math;
  PackRhsOp op;
  /// The source's sizes, and the indices of the panel.
  ArrayRef<Value> sizes, place;
};

} // namespace

static SmallVector<Value> getSizes(ImplicitLocOpBuilder &b, Value tensor) {
  SmallVector<Value> sizes;
  for (OpFoldResult size : tensor::getMixedSizes(b, b.getLoc(), tensor))
    sizes.push_back(getValueOrCreateConstantIndexOp(b, b.getLoc(), size));
  return sizes;
}

Value cpu::packRhs(ImplicitLocOpBuilder &b, PackRhsOp op) {
  SmallVector<Value> sizes = getSizes(b, op.getSource());
  return emitElements(
      b, op.getInit(),
      [&](ImplicitLocOpBuilder &inner, ArrayRef<Value> at) -> Value {
        Value k = at[at.size() - 2], last = at.back();
        RhsPacker packer(inner, op, sizes, at.drop_back(2));
        if (op.makesW21())
          return packer.emitW21(k, last);
        if (op.getPacking().isCompressed())
          return packer.emitW24Byte(k, last);
        if (op.isOfBytes())
          return packer.emitOfGroup(k, last);
        return packer.emitNumber(k, last);
      });
}

//===----------------------------------------------------------------------===//
// Filters
//===----------------------------------------------------------------------===//

namespace {

/// The elements of packed filters, of a source [OC,C/G,taps].
class FilterPacker {
public:
  FilterPacker(ImplicitLocOpBuilder &b, PackConvWeightsOp op, Value source,
               ArrayRef<Value> sizes, Value groups)
      : b(b), math(b), op(op), source(source), sizes(sizes),
        filters(math.div(sizes[0], groups)) {}

  Value emit(ArrayRef<Value> at) {
    group = at[0];
    block = at[1];
    Value taps = sizes[2], depth = at[2];
    if (const Winograd *algorithm = op.getAlgorithm())
      return emitWinograd(*algorithm, depth, at[3]);
    if (op.splits())
      return emitPart(depth, at[3]);
    return emitNumber(at[3], math.div(depth, taps), math.rem(depth, taps));
  }

private:
  /// The number of filter `row` of the block; zero past the group's filters and
  /// past its channels.
  Value emitNumber(Value row, Value channel, Value tap) {
    Value inGroup = math.add(math.mul(block, op.getBlockRows()), row);
    Value isInside = arith::AndIOp::create(b, math.less(inGroup, filters),
                                           math.less(channel, sizes[1]));
    Value filter = math.add(math.mul(group, filters), inGroup);
    return emitInside(b, source, {filter, channel, tap}, {0, 1}, isInside);
  }

  /// An element of G * filter * transpose(G), in f64.
  Value emitWinograd(const Winograd &algorithm, Value depth, Value row) {
    constexpr int64_t kSide = 3;
    const int64_t numbers = algorithm.numbers();
    Value value = math.div(depth, sizes[1]),
          channel = math.rem(depth, sizes[1]);
    auto coefficient = [&](Value position, int64_t side) {
      SmallVector<double> column;
      for (int64_t r = 0; r < numbers; ++r)
        column.push_back(algorithm.filter[r * kSide + side]);
      return emitChoice(b, column, position);
    };
    Value left = math.div(value, numbers);
    Value right = math.rem(value, math.constant(numbers));
    Value sum = arith::ConstantOp::create(b, b.getF64FloatAttr(0));
    for (int64_t i = 0; i < kSide; ++i)
      for (int64_t j = 0; j < kSide; ++j) {
        Value factor = arith::MulFOp::create(b, coefficient(left, i),
                                             coefficient(right, j));
        Value number = arith::ExtFOp::create(
            b, b.getF64Type(),
            emitNumber(row, channel, math.constant(i * kSide + j)));
        sum = arith::AddFOp::create(b, sum,
                                    arith::MulFOp::create(b, factor, number));
      }
    return arith::TruncFOp::create(b, b.getF32Type(), sum);
  }

  /// One of the two bf16 whose sum a number is, nearly.
  Value emitPart(Value step, Value at) {
    constexpr int64_t kBlock = kBf16x2Block;
    Value part = math.div(at, kBlock * kBlock);
    Value row = math.rem(math.div(at, kBlock), math.constant(kBlock));
    Value channel = math.add(math.mul(math.div(step, sizes[2]), kBlock),
                             math.rem(at, math.constant(kBlock)));
    Value number = emitNumber(row, channel, math.rem(step, sizes[2]));
    Type bf16 = b.getBF16Type();
    Value nearest = arith::TruncFOp::create(b, bf16, number);
    Value rest = arith::SubFOp::create(
        b, number, arith::ExtFOp::create(b, b.getF32Type(), nearest));
    Value isFirst = arith::CmpIOp::create(b, arith::CmpIPredicate::eq, part,
                                          math.constant(0));
    return arith::SelectOp::create(b, isFirst, nearest,
                                   arith::TruncFOp::create(b, bf16, rest));
  }

  ImplicitLocOpBuilder &b;
  IndexMath math;
  PackConvWeightsOp op;
  Value source;
  ArrayRef<Value> sizes;
  /// Filters of a group.
  Value filters;
  Value group, block;
};

} // namespace

Value cpu::packFilters(ImplicitLocOpBuilder &b, PackConvWeightsOp op) {
  Value source = op.getSource();
  const int64_t rank = op.getSource().getType().getRank();
  if (rank > 3) {
    SmallVector<ReassociationIndices> together = {{0}, {1}, {}};
    for (int64_t d = 2; d < rank; ++d)
      together.back().push_back(d);
    source = tensor::CollapseShapeOp::create(b, source, together);
  }
  SmallVector<Value> sizes = getSizes(b, source);
  Value groups = getSizes(b, op.getInit()).front();
  return emitElements(
      b, op.getInit(), [&](ImplicitLocOpBuilder &inner, ArrayRef<Value> at) {
        return FilterPacker(inner, op, source, sizes, groups).emit(at);
      });
}
