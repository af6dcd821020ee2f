//===- ChosenSlice.cpp - One of a batch of weights, chosen in a run -------===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Layout/ChosenSlice.h"

#include "lib/Dispatch/Utils.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

using namespace mlir;
using namespace sardonyx;
using namespace sardonyx::cpu;

/// Whether all that `value` is computed from, by few operations, is constant.
static bool isMadeOfConstants(Value value, int64_t depth = 16) {
  Operation *op = value.getDefiningOp();
  if (!op || depth == 0 || !isMemoryEffectFree(op))
    return false;
  auto isConstant = [&](Value operand) {
    Operation *maker = operand.getDefiningOp();
    return (maker && op->isAncestor(maker)) ||
           isMadeOfConstants(operand, depth - 1);
  };
  return llvm::all_of(op->getOperands(), isConstant) &&
         llvm::all_of(capturedValues(op), isConstant);
}

/// The dimension of the source that `slice` takes one of at a place known in a
/// run, where what it takes lies in one piece.
static std::optional<int64_t> findChosenDim(tensor::ExtractSliceOp slice) {
  RankedTensorType source = slice.getSourceType();
  if (!source.hasStaticShape() || slice->getNumOperands() != 2 ||
      slice.getOffsets().size() != 1 || !slice.hasUnitStride())
    return std::nullopt;
  std::optional<int64_t> chosen;
  for (int64_t dim = 0; dim < source.getRank(); ++dim) {
    const int64_t size = slice.getStaticSizes()[dim];
    if (ShapedType::isDynamic(slice.getStaticOffsets()[dim])) {
      if (size != 1)
        return std::nullopt;
      chosen = dim;
    } else if (size != source.getDimSize(dim) || (!chosen && size != 1)) {
      return std::nullopt;
    }
  }
  return chosen;
}

std::optional<ChosenSlice> cpu::findChosenSlice(Value tensor) {
  auto type = cast<RankedTensorType>(tensor.getType());
  Operation *op = tensor.getDefiningOp();
  while (isa_and_nonnull<tensor::CollapseShapeOp, tensor::ExpandShapeOp,
                         tensor::CastOp>(op))
    op = op->getOperand(0).getDefiningOp();
  auto slice = dyn_cast_or_null<tensor::ExtractSliceOp>(op);
  std::optional<int64_t> dim = slice ? findChosenDim(slice) : std::nullopt;
  if (!dim || !type.hasStaticShape() || !isMadeOfConstants(slice.getSource()))
    return std::nullopt;
  return ChosenSlice{slice.getSource(), slice.getOffsets().front(),
                     slice.getSourceType().getDimSize(*dim)};
}

Value ChosenSlice::getBatch(OpBuilder &b, Location loc,
                            ArrayRef<int64_t> shape) const {
  auto type = cast<RankedTensorType>(source.getType());
  const auto whole = [](int64_t rank) {
    SmallVector<ReassociationIndices> groups(1);
    llvm::append_range(groups.front(), llvm::seq<int64_t>(0, rank));
    return groups;
  };
  Value flat = source;
  if (type.getRank() > 1)
    flat = tensor::CollapseShapeOp::create(b, loc, flat, whole(type.getRank()));
  SmallVector<int64_t> batch = {count};
  llvm::append_range(batch, shape);
  return tensor::ExpandShapeOp::create(
      b, loc, RankedTensorType::get(batch, type.getElementType()), flat,
      whole(batch.size()));
}

Value ChosenSlice::takeFrom(OpBuilder &b, Location loc, Value batch) const {
  auto type = cast<RankedTensorType>(batch.getType());
  SmallVector<OpFoldResult> offsets(type.getRank(), b.getIndexAttr(0)), sizes,
      strides(type.getRank(), b.getIndexAttr(1));
  offsets.front() = place;
  sizes.push_back(b.getIndexAttr(1));
  for (int64_t size : type.getShape().drop_front())
    sizes.push_back(b.getIndexAttr(size));
  Value one =
      tensor::ExtractSliceOp::create(b, loc, batch, offsets, sizes, strides);
  SmallVector<ReassociationIndices> groups = {{0, 1}};
  for (int64_t dim = 2; dim < type.getRank(); ++dim)
    groups.push_back({dim});
  return tensor::CollapseShapeOp::create(b, loc, one, groups);
}
