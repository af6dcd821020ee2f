//===- PackDequantMatmuls.cpp - Products by packed weights of a few bits --===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The integers of sdx.dequant_matmul, and their scales and zero points, come in
// panels of columns. Weights are never numbers in memory. Those that are one of
// a batch of constants, at a place that a run tells, are a part of the packed
// batch.
//
//===----------------------------------------------------------------------===//

#include "Layout/ChosenSlice.h"
#include "Layout/Layout.h"
#include "dialects/SDX/RoundedType.h"
#include "sardonyx/Targets/CPU/Passes.h"

#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"

namespace sardonyx {
#define GEN_PASS_DEF_CPUPACKDEQUANTMATMULS
#include "sardonyx/Targets/CPU/Passes.h.inc"
} // namespace sardonyx

using namespace mlir;
using namespace sardonyx;
using namespace sardonyx::cpu;

namespace {

/// The weights of a product, or those of a batch, which have a dimension in
/// front.
struct Weights {
  Value integers, scales, zeroPoints;
  /// Number of them; 0: no batch.
  int64_t count = 0;
};

/// Builds the bodies of what packs the weights [n, k] of a product.
class Packing {
public:
  Packing(ImplicitLocOpBuilder &b, sdx::DequantMatmulOp op,
          const Weights &weights)
      : b(b), weights(weights), n(op.getColumns()), k(op.getDepth()),
        bits(op.getBits()), block(op.getBlock()),
        panels(llvm::divideCeil(n, kPanelWidth)) {}

  /// The integers [No,ceil(K/4),4*Nt/P] of cpu.packed_matmul. Past K are those
  /// of the last value again.
  Value packIntegers() {
    int64_t perByte = 8 / bits, width = kPanelWidth / perByte;
    int64_t groups = llvm::divideCeil(k, kQuantizedGroup);
    Type i8 = b.getI8Type(), i32 = b.getI32Type();
    return elementwise({panels, groups, width * kQuantizedGroup}, i8, [&] {
      Value group = constant(kQuantizedGroup), size = constant(block);
      Value first = arith::AddIOp::create(
          b, arith::MulIOp::create(b, index(0), constant(kPanelWidth)),
          arith::DivUIOp::create(b, index(2), group));
      Value depth =
          arith::AddIOp::create(b, arith::MulIOp::create(b, index(1), group),
                                arith::RemUIOp::create(b, index(2), group));
      if (k % kQuantizedGroup)
        depth = arith::MinUIOp::create(b, depth, constant(k - 1));
      Value at = arith::DivUIOp::create(b, depth, size);
      Value inBlock = arith::RemUIOp::create(b, depth, size);
      Value byte = arith::ConstantIntOp::create(b, 0, 32);
      for (int64_t j = 0; j < perByte; ++j) {
        Value number = whereColumn(
            arith::AddIOp::create(b, first, constant(j * width)),
            [&](Value column) {
              return extractBits(b, weights.integers, ofBatch({column, at}),
                                 inBlock, bits);
            });
        Value shift = arith::ConstantIntOp::create(b, i32, j * bits);
        byte = arith::OrIOp::create(b, byte,
                                    arith::ShLIOp::create(b, number, shift));
      }
      return arith::TruncIOp::create(b, i8, byte).getResult();
    });
  }

  /// Scales and, where they are given, zero points [No,blocks,1 or 2,Nt].
  /// Integers as zero points are exact in 16 bits.
  Value packScales() {
    Value zeros = weights.zeroPoints;
    int64_t blocks = llvm::divideCeil(k, block);
    Type type = getElementTypeOrSelf(weights.scales);
    if (!(type.isF16() || type.isBF16()) ||
        (zeros && isa<FloatType>(getElementTypeOrSelf(zeros))))
      type = b.getF32Type();
    auto convert = [&](Value number) -> Value {
      if (number.getType() == type)
        return number;
      number = convertToF32(b, number);
      return type.isF32() ? number : arith::TruncFOp::create(b, type, number);
    };
    return elementwise({panels, blocks, zeros ? 2 : 1, kPanelWidth}, type, [&] {
      Value at = index(1);
      Value isScale = arith::CmpIOp::create(b, arith::CmpIPredicate::eq,
                                            index(2), constant(0));
      Value column = arith::AddIOp::create(
          b, arith::MulIOp::create(b, index(0), constant(kPanelWidth)),
          index(3));
      return whereColumn(column, [&](Value column) -> Value {
        Value scale = convert(extract(weights.scales, {column, at}));
        if (!zeros)
          return scale;
        return arith::SelectOp::create(b, isScale, scale,
                                       convert(zeroPoint(column, at)));
      });
    });
  }

private:
  Value constant(int64_t value) {
    return arith::ConstantIndexOp::create(b, value);
  }
  /// Of one product's packed weights.
  Value index(int64_t dim) {
    return linalg::IndexOp::create(b, dim + (weights.count ? 1 : 0));
  }
  SmallVector<Value> ofBatch(SmallVector<Value> indices) {
    if (weights.count)
      indices.insert(indices.begin(), linalg::IndexOp::create(b, 0));
    return indices;
  }
  Value extract(Value tensor, SmallVector<Value> indices) {
    return tensor::ExtractOp::create(b, tensor, ofBatch(std::move(indices)));
  }

  Value zeroPoint(Value column, Value at) {
    Value zeros = weights.zeroPoints;
    return isa<FloatType>(getElementTypeOrSelf(zeros))
               ? extract(zeros, {column, at})
               : extractBits(b, zeros, ofBatch({column}), at, bits);
  }

  /// `value` of column `column`, or zero past the last one.
  Value whereColumn(Value column, function_ref<Value(Value column)> value) {
    Value last = constant(n - 1);
    Value isThere =
        arith::CmpIOp::create(b, arith::CmpIPredicate::sle, column, last);
    Value inside = value(arith::MinSIOp::create(b, column, last));
    Value zero = arith::ConstantOp::create(b, b.getZeroAttr(inside.getType()));
    return arith::SelectOp::create(b, isThere, inside, zero);
  }

  /// `shape` is that of one product's.
  Value elementwise(SmallVector<int64_t> shape, Type type,
                    function_ref<Value()> body) {
    if (weights.count)
      shape.insert(shape.begin(), weights.count);
    Value empty = tensor::EmptyOp::create(b, shape, type);
    auto generic = linalg::GenericOp::create(
        b, TypeRange(empty.getType()), ValueRange(), empty,
        b.getMultiDimIdentityMap(shape.size()),
        SmallVector<utils::IteratorType>(shape.size(),
                                         utils::IteratorType::parallel),
        [&](OpBuilder &, Location loc, ValueRange) {});
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToEnd(generic.getBody());
    linalg::YieldOp::create(b, body());
    return generic.getResult(0);
  }

  ImplicitLocOpBuilder &b;
  Weights weights;
  int64_t n, k, bits, block, panels;
};

/// Packed integers and scales.
using Packed = std::pair<Value, Value>;

Packed packWeights(ImplicitLocOpBuilder &b, sdx::DequantMatmulOp op) {
  Packing packing(b, op, {op.getWeights(), op.getScales(), op.getZeroPoints()});
  Value integers = packing.packIntegers();
  return {integers, packing.packScales()};
}

/// A part of a packed batch; none where the weights are not of one. What is
/// constant leaves the loop later.
std::optional<Packed> packBatch(ImplicitLocOpBuilder &b,
                                sdx::DequantMatmulOp op) {
  const Value zeros = op.getZeroPoints();
  std::optional<ChosenSlice> integers = findChosenSlice(op.getWeights()),
                             scales = findChosenSlice(op.getScales()),
                             zeroPoints =
                                 zeros ? findChosenSlice(zeros) : scales;
  if (!integers || !scales || !zeroPoints ||
      zeroPoints->place != scales->place || integers->count != scales->count ||
      integers->count != zeroPoints->count)
    return std::nullopt;
  auto whole = [&](const ChosenSlice &slice, Value one) {
    return slice.getBatch(b, b.getLoc(),
                          cast<RankedTensorType>(one.getType()).getShape());
  };
  Packing packing(
      b, op,
      {whole(*integers, op.getWeights()), whole(*scales, op.getScales()),
       zeros ? whole(*zeroPoints, zeros) : Value(), integers->count});
  Value allIntegers = packing.packIntegers(), allScales = packing.packScales();
  return Packed{integers->takeFrom(b, b.getLoc(), allIntegers),
                scales->takeFrom(b, b.getLoc(), allScales)};
}

PackedElement getPackedElement(sdx::DequantMatmulOp op) {
  const Type type = op.getElement().value_or(Type());
  if (!type)
    return op.getBits() == 2   ? PackedElement::U2
           : op.getBits() == 4 ? PackedElement::U4
                               : PackedElement::U8;
  return isa<Float4E2M1FNType>(type)   ? PackedElement::F4
         : isa<Float8E4M3FNType>(type) ? PackedElement::F8E4M3
                                       : PackedElement::F8E5M2;
}

struct PackDequantMatmulsPass
    : sardonyx::impl::CPUPackDequantMatmulsBase<PackDequantMatmulsPass> {
  void runOnOperation() override {
    SmallVector<sdx::DequantMatmulOp> ops;
    getOperation().walk([&](sdx::DequantMatmulOp op) {
      if (op.hasPureTensorSemantics() &&
          op.getLhs().getType().getElementType().isF32())
        ops.push_back(op);
    });
    for (sdx::DequantMatmulOp op : ops) {
      ImplicitLocOpBuilder b(op.getLoc(), op);
      std::optional<Packed> packed = packBatch(b, op);
      if (!packed)
        packed = packWeights(b, op);
      auto [integers, scales] = *packed;
      const PackedElement element = getPackedElement(op);
      const Value zeros = op.getZeroPoints();
      const bool wholeZeros =
          !zeros || !isa<FloatType>(getElementTypeOrSelf(zeros));
      auto product = PackedMatmulOp::create(
          b, op.getLhs(), integers, scales, op.getBlock(), op.getInit(),
          PackingAttr::get(b.getContext(), element, kPanelWidth), wholeZeros);
      if (Type rounded = sdx::getRoundedType(op))
        product->setAttr(sdx::kRoundedAttr, TypeAttr::get(rounded));
      op.getResult().replaceAllUsesWith(product.getResult());
      op.erase();
    }
  }
};

} // namespace
