//===- UnpackOperands.cpp - Packed operands as they were ------------------===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Common/IndexMath.h"
#include "Loops/PlainOperands.h"
#include "lib/Dispatch/Utils.h"

#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

#include <cmath>

using namespace mlir;
using namespace sardonyx;
using namespace sardonyx::cpu;

Value cpu::emitElements(ImplicitLocOpBuilder &b, Value init, EmitElement emit) {
  const int64_t rank = cast<RankedTensorType>(init.getType()).getRank();
  SmallVector<utils::IteratorType> loops(rank, utils::IteratorType::parallel);
  return linalg::GenericOp::create(
             b, TypeRange(init.getType()), ValueRange(), init,
             b.getMultiDimIdentityMap(rank), loops,
             [&](OpBuilder &body, Location loc, ValueRange) {
               ImplicitLocOpBuilder inner(loc, body);
               SmallVector<Value> at;
               for (int64_t d = 0; d < rank; ++d)
                 at.push_back(linalg::IndexOp::create(inner, d));
               linalg::YieldOp::create(inner, emit(inner, at));
             })
      .getResult(0);
}

Value cpu::emitElement(ImplicitLocOpBuilder &b, Value tensor,
                       ValueRange indices) {
  return tensor::ExtractOp::create(b, tensor, indices);
}

Value cpu::emitChoice(ImplicitLocOpBuilder &b, ArrayRef<double> values,
                      Value index) {
  IndexMath math(b);
  Value result = arith::ConstantOp::create(b, b.getF64FloatAttr(values.back()));
  for (auto [i, value] : llvm::enumerate(values.drop_back())) {
    Value isThis = arith::CmpIOp::create(b, arith::CmpIPredicate::eq, index,
                                         math.constant(i));
    Value constant = arith::ConstantOp::create(b, b.getF64FloatAttr(value));
    result = arith::SelectOp::create(b, isThis, constant, result);
  }
  return result;
}

static Value constantF32(ImplicitLocOpBuilder &b, float value) {
  return arith::ConstantOp::create(b, b.getF32FloatAttr(value));
}

//===----------------------------------------------------------------------===//
// Right-hand sides
//===----------------------------------------------------------------------===//

namespace {

/// An element of a right-hand side by its place in a panel.
class PackedNumber {
public:
  PackedNumber(ImplicitLocOpBuilder &b, PackedMatmulOp op, ArrayRef<Value> lead,
               Value n, Value k)
      : b(b), math(b), op(op), panel(math.div(n, op.getPanelWidth())),
        column(math.rem(n, math.constant(op.getPanelWidth()))), k(k),
        place(lead) {
    place.push_back(panel);
  }

  Value emit() {
    switch (op.getPacking().getElement()) {
    case PackedElement::F32:
    case PackedElement::BF16:
    case PackedElement::I8:
    case PackedElement::I16:
      return emitPlain();
    case PackedElement::F16:
      return arith::ExtFOp::create(b, b.getF32Type(), emitPlain());
    case PackedElement::U2:
    case PackedElement::U4:
    case PackedElement::U8:
    case PackedElement::F4:
    case PackedElement::F8E4M3:
    case PackedElement::F8E5M2:
      return emitQuantized();
    case PackedElement::W24:
      return emitW24();
    case PackedElement::W21:
      return emitW21();
    }
    llvm_unreachable("all elements are handled");
  }

private:
  Value load(Value row, Value column) {
    SmallVector<Value> indices(place);
    indices.append({row, column});
    return emitElement(b, op.getRhs(), indices);
  }
  Value scale(Value block, int64_t which) {
    return convertToF32(
        b, emitElement(b, op.getScales(),
                       {panel, block, math.constant(which), column}));
  }
  Value constant(int64_t value, unsigned bits) {
    return arith::ConstantIntOp::create(b, value, bits);
  }
  Value asI32(Value index) {
    return arith::IndexCastOp::create(b, b.getI32Type(), index);
  }

  /// Groups of values of k lie together.
  Value emitPlain() {
    const int64_t group = op.getDepthGroup();
    return load(
        math.div(k, group),
        math.add(math.mul(column, group), math.rem(k, math.constant(group))));
  }

  /// The columns of a byte lie as far apart as a group of values of k has 32
  /// bits.
  Value emitQuantized() {
    const int64_t bits = op.getPacking().getBits();
    const int64_t words = op.getPacking().getRowSize() / kQuantizedGroup;
    Type i32 = b.getI32Type();
    Value place = math.add(
        math.mul(math.rem(column, math.constant(words)), kQuantizedGroup),
        math.rem(k, math.constant(kQuantizedGroup)));
    Value byte = arith::ExtUIOp::create(
        b, i32, load(math.div(k, kQuantizedGroup), place));
    Value shift = asI32(math.mul(math.div(column, words), bits));
    Value number =
        arith::AndIOp::create(b, arith::ShRUIOp::create(b, byte, shift),
                              constant((1 << bits) - 1, 32));
    Value block = math.div(k, *op.getBlock());
    if (FloatType type = op.getPacking().getSmallFloat())
      return arith::MulFOp::create(b, decodeSmallFloat(b, number, type),
                                   scale(block, 0));
    Value zero = op.hasZeroPoints()
                     ? scale(block, 1)
                     : constantF32(b, std::ldexp(1.0f, bits - 1));
    Value difference = arith::SubFOp::create(
        b, arith::UIToFPOp::create(b, b.getF32Type(), number), zero);
    return arith::MulFOp::create(b, difference, scale(block, 0));
  }

  /// Three bytes, from the lowest on.
  Value emitW24() {
    Type i32 = b.getI32Type();
    Value number;
    for (int64_t byte = 0; byte < 3; ++byte) {
      Value loaded = load(k, math.add(math.mul(column, 3), byte));
      Value bits = byte < 2 ? Value(arith::ExtUIOp::create(b, i32, loaded))
                            : Value(arith::ExtSIOp::create(b, i32, loaded));
      bits = arith::ShLIOp::create(b, bits, constant(8 * byte, 32));
      number = number ? Value(arith::OrIOp::create(b, number, bits)) : bits;
    }
    Value integer = arith::SIToFPOp::create(b, b.getF32Type(), number);
    return arith::MulFOp::create(b, integer, scale(math.constant(0), 0));
  }

  /// The upper 32 bits of eight bytes, once the number is at their top; what
  /// of them is below the number belongs to it.
  Value emitW21() {
    // Shifts for the numbers u, w and v of cpu.pack_rhs, and what its position
    // in 32 bits multiplies an integer by.
    constexpr int64_t kShiftOfU = 43, kShiftOfW = 21, kShift = 11;
    const int64_t width = op.getPanelWidth(), quarter = width / 4;
    Value triple = math.div(k, kW21Group);
    Value row = math.rem(k, math.constant(kW21Group));
    Value half = math.div(column, 2 * quarter);
    Value inHalf = math.rem(column, math.constant(2 * quarter));
    Value odd = math.rem(column, math.constant(2));
    auto equals = [&](Value index, int64_t value) -> Value {
      return arith::CmpIOp::create(b, arith::CmpIPredicate::eq, index,
                                   math.constant(value));
    };
    Value isLast = equals(row, 2), isOdd = equals(odd, 1);
    Value block =
        arith::SelectOp::create(b, isLast, math.add(math.mul(half, 2), odd),
                                math.add(math.mul(row, 2), half));
    Value bits =
        load(triple, math.add(math.mul(block, quarter), math.div(inHalf, 2)));
    Value shift = arith::SelectOp::create(b, isOdd, constant(0, 64),
                                          constant(kShiftOfU, 64));
    shift = arith::SelectOp::create(b, isLast, constant(kShiftOfW, 64), shift);
    Value top = arith::ShRSIOp::create(b, arith::ShLIOp::create(b, bits, shift),
                                       constant(32, 64));
    Value number = arith::SIToFPOp::create(
        b, b.getF32Type(), arith::TruncIOp::create(b, b.getI32Type(), top));
    number = arith::MulFOp::create(b, number,
                                   constantF32(b, std::ldexp(1.0f, -kShift)));
    return arith::MulFOp::create(b, number, scale(math.constant(0), 0));
  }

  ImplicitLocOpBuilder &b;
  IndexMath math;
  PackedMatmulOp op;
  Value panel, column, k;
  /// The indices of the panel.
  SmallVector<Value> place;
};

} // namespace

Value cpu::unpackRhs(ImplicitLocOpBuilder &b, PackedMatmulOp op) {
  Location loc = op.getLoc();
  const PackingAttr packing = op.getPacking();
  SmallVector<OpFoldResult> sizes;
  if (op.isRhsBatched())
    sizes.push_back(tensor::getMixedSize(b, loc, op.getRhs(), 0));
  for (Value tensor : {op.getInit(), op.getLhs()})
    sizes.push_back(tensor::getMixedSize(
        b, loc, tensor, cast<ShapedType>(tensor.getType()).getRank() - 1));
  Type type = packing.isQuantized() || packing.isCompressed() ||
                      packing.getElement() == PackedElement::F16
                  ? Type(b.getF32Type())
                  : packing.getStoredType();
  Value empty = tensor::EmptyOp::create(b, sizes, type);
  return emitElements(
      b, empty, [&](ImplicitLocOpBuilder &inner, ArrayRef<Value> at) {
        ArrayRef<Value> lead = at.drop_back(2);
        return PackedNumber(inner, op, lead, at[lead.size()], at.back()).emit();
      });
}

//===----------------------------------------------------------------------===//
// Filters
//===----------------------------------------------------------------------===//

/// The inverse of the transform of filters, inverse(G^T G) G^T: 3 x numbers(),
/// row by row. It is exact since G, numbers() x 3, has rank 3.
static SmallVector<double> invertTransform(const Winograd &algorithm) {
  constexpr int64_t kSide = 3;
  const int64_t numbers = algorithm.numbers();
  auto g = [&](int64_t r, int64_t c) {
    return algorithm.filter[r * kSide + c];
  };
  double square[kSide][kSide] = {};
  for (int64_t i = 0; i < kSide; ++i)
    for (int64_t j = 0; j < kSide; ++j)
      for (int64_t r = 0; r < numbers; ++r)
        square[i][j] += g(r, i) * g(r, j);
  // Of a matrix of 3x3 the cofactor of (i, j) is the determinant of the rows
  // and columns that follow i and j, cyclically.
  auto cofactor = [&](int64_t i, int64_t j) {
    int64_t p = (i + 1) % kSide, q = (i + 2) % kSide;
    int64_t s = (j + 1) % kSide, t = (j + 2) % kSide;
    return square[p][s] * square[q][t] - square[p][t] * square[q][s];
  };
  double determinant = 0;
  for (int64_t j = 0; j < kSide; ++j)
    determinant += square[0][j] * cofactor(0, j);
  SmallVector<double> result;
  for (int64_t i = 0; i < kSide; ++i)
    for (int64_t r = 0; r < numbers; ++r) {
      double sum = 0;
      for (int64_t j = 0; j < kSide; ++j)
        sum += cofactor(j, i) * g(r, j);
      result.push_back(sum / determinant);
    }
  return result;
}

namespace {

/// An element of packed filters by the filter's and the channel's numbers.
class PackedFilter {
public:
  PackedFilter(ImplicitLocOpBuilder &b, ConvOp op, Value groupFilters,
               Value channels, ArrayRef<Value> at)
      : b(b), math(b), op(op), channels(channels), channel(at[1]),
        tap(at.drop_front(2)) {
    group = math.div(at[0], groupFilters);
    Value filter = math.rem(at[0], groupFilters);
    block = math.div(filter, op.getBlockRows());
    row = math.rem(filter, math.constant(op.getBlockRows()));
  }

  Value emit() {
    if (op.getAlgorithm())
      return emitWinograd(*op.getAlgorithm());
    const int64_t taps = ShapedType::getNumElements(op.getKernelShape());
    Value number = tap.front();
    for (auto [index, size] :
         llvm::zip(tap.drop_front(), op.getKernelShape().drop_front()))
      number = math.add(math.mul(number, size), index);
    if (op.hasSplitWeights())
      return emitSplit(number, taps);
    return load(math.add(math.mul(channel, taps), number), row);
  }

private:
  Value load(Value depth, Value last) {
    return emitElement(b, op.getWeights(), {group, block, depth, last});
  }

  /// The sum of two bf16.
  Value emitSplit(Value number, int64_t taps) {
    Value step =
        math.add(math.mul(math.div(channel, kBf16x2Block), taps), number);
    Value place = math.add(math.mul(row, kBf16x2Block),
                           math.rem(channel, math.constant(kBf16x2Block)));
    Value sum;
    for (int64_t term = 0; term < kBf16x2Terms; ++term) {
      Value part = arith::ExtFOp::create(
          b, b.getF32Type(),
          load(step, math.add(place, term * kBf16x2Block * kBf16x2Block)));
      sum = sum ? Value(arith::AddFOp::create(b, sum, part)) : part;
    }
    return sum;
  }

  /// The transform of cpu.pack_conv_weights undone, in f64: an element of
  /// L * values * transpose(L), where L is its inverse.
  Value emitWinograd(const Winograd &algorithm) {
    const int64_t numbers = algorithm.numbers();
    SmallVector<double> inverse = invertTransform(algorithm);
    Type f64 = b.getF64Type();
    auto coefficient = [&](Value position, int64_t number) {
      double column[] = {inverse[number], inverse[numbers + number],
                         inverse[2 * numbers + number]};
      return emitChoice(b, column, position);
    };
    SmallVector<Value> right;
    for (int64_t s = 0; s < numbers; ++s)
      right.push_back(coefficient(tap[1], s));
    Value sum = arith::ConstantOp::create(b, b.getF64FloatAttr(0));
    for (int64_t r = 0; r < numbers; ++r) {
      Value rowSum = arith::ConstantOp::create(b, b.getF64FloatAttr(0));
      for (int64_t s = 0; s < numbers; ++s) {
        Value depth = math.add(math.mul(channels, r * numbers + s), channel);
        Value value = arith::ExtFOp::create(b, f64, load(depth, row));
        rowSum = arith::AddFOp::create(
            b, rowSum, arith::MulFOp::create(b, value, right[s]));
      }
      sum = arith::AddFOp::create(
          b, sum, arith::MulFOp::create(b, coefficient(tap[0], r), rowSum));
    }
    return arith::TruncFOp::create(b, b.getF32Type(), sum);
  }

  ImplicitLocOpBuilder &b;
  IndexMath math;
  ConvOp op;
  /// Channels of a group, and this one of them.
  Value channels, channel;
  Value group, block, row;
  ArrayRef<Value> tap;
};

} // namespace

Value cpu::unpackFilters(ImplicitLocOpBuilder &b, ConvOp op) {
  Location loc = op.getLoc();
  auto divide = [&](OpFoldResult size) {
    return affine::makeComposedFoldedAffineApply(
        b, loc, b.getAffineDimExpr(0).floorDiv(op.getGroup()), {size});
  };
  OpFoldResult filters = tensor::getMixedSize(b, loc, op.getInit(), 1);
  OpFoldResult channels =
      divide(tensor::getMixedSize(b, loc, op.getInput(), 1));
  SmallVector<OpFoldResult> sizes = {filters, channels};
  for (int64_t size : op.getKernelShape())
    sizes.push_back(b.getIndexAttr(size));
  Value groupFilters = getValueOrCreateConstantIndexOp(b, loc, divide(filters));
  Value groupChannels = getValueOrCreateConstantIndexOp(b, loc, channels);
  Value empty = tensor::EmptyOp::create(b, sizes, b.getF32Type());
  return emitElements(
      b, empty, [&](ImplicitLocOpBuilder &inner, ArrayRef<Value> at) {
        return PackedFilter(inner, op, groupFilters, groupChannels, at).emit();
      });
}
