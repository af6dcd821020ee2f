//===- SDXAttention.cpp - Attention as one operation
//-----------------------===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "dialects/SDX/SDXDps.h"

#include "mlir/IR/AffineExpr.h"

using namespace mlir;
using namespace sardonyx;
using namespace sardonyx::sdx;

/// A terminator that nobody wrote yields nothing, which the verifier refuses.
void YieldOp::build(OpBuilder &, OperationState &) {}

bool AttentionOp::isRoot() { return true; }
bool AttentionOp::isContraction() { return true; }

SmallVector<int64_t> AttentionOp::getLoopSizes() {
  SmallVector<int64_t> sizes(getNumLoops(), ShapedType::kDynamic);
  for (auto [i, operand] : llvm::enumerate(getOperands()))
    for (auto [size, expr] :
         llvm::zip_equal(cast<RankedTensorType>(operand.getType()).getShape(),
                         getMap(i).getResults()))
      if (auto loop = dyn_cast<AffineDimExpr>(expr);
          loop && !ShapedType::isDynamic(size))
        sizes[loop.getPosition()] = size;
  return sizes;
}

DenseWork AttentionOp::countFlops() {
  DenseWork work;
  const int64_t depth = getQuery().getType().getShape().back();
  const int64_t columns = getValue().getType().getShape().back();
  if (ShapedType::isDynamic(depth) || ShapedType::isDynamic(columns))
    return work;
  work.factor = 2 * (depth + columns);
  for (int64_t dim = 0, e = getInit().getType().getRank() - 1; dim < e; ++dim)
    work.sizes.emplace_back(getInit(), dim);
  for (auto [dim, expr] : llvm::enumerate(getMap(1).getResults()))
    if (expr == getAffineDimExpr(getKeyLoop(), getContext()))
      work.sizes.emplace_back(getKey(), dim);
  return work;
}

LogicalResult
AttentionOp::reifyResultShapes(OpBuilder &b,
                               ReifiedRankedShapedTypeDims &shapes) {
  return reifyFromInits(cast<DestinationStyleOpInterface>(getOperation()), b,
                        shapes);
}

/// Distinct loops, none of `never`, or zeros; the last one is `last`.
static LogicalResult verifyMap(AttentionOp op, unsigned operand,
                               ArrayRef<unsigned> never,
                               std::optional<unsigned> last) {
  AffineMap map = op.getMap(operand);
  auto type = cast<RankedTensorType>(op->getOperand(operand).getType());
  if (map.getNumDims() != op.getNumLoops() || map.getNumSymbols() != 0 ||
      map.getNumResults() != type.getRank())
    return op.emitOpError("has a map for operand ")
           << operand << " that does not fit its rank or the loops";
  llvm::SmallBitVector seen(map.getNumDims());
  for (AffineExpr expr : map.getResults()) {
    if (expr == getAffineConstantExpr(0, op.getContext()))
      continue;
    auto dim = dyn_cast<AffineDimExpr>(expr);
    if (!dim || seen.test(dim.getPosition()) ||
        llvm::is_contained(never, dim.getPosition()))
      return op.emitOpError("has a map for operand ")
             << operand << " that is not of loops that it can have";
    seen.set(dim.getPosition());
  }
  if (last &&
      (map.getNumResults() == 0 ||
       map.getResults().back() != getAffineDimExpr(*last, op.getContext())))
    return op.emitOpError("operand ")
           << operand << " does not end in its depth or its columns";
  return success();
}

LogicalResult AttentionOp::verify() {
  const unsigned extras = getExtras().size();
  if (getIndexingMaps().size() != getNumOperands())
    return emitOpError("has a map for each operand; got ")
           << getIndexingMaps().size() << " maps";
  if (getInitMap().getNumDims() < 3)
    return emitOpError("has loops over keys, depth and columns");
  const unsigned n = getKeyLoop(), d = getDepthLoop(), e = getColumnLoop();
  if (failed(verifyMap(*this, 0, {n, e}, d)) ||
      failed(verifyMap(*this, 1, {e}, d)) ||
      failed(verifyMap(*this, 2, {d}, e)) ||
      failed(verifyMap(*this, 3 + extras, {n, d}, e)))
    return failure();
  for (unsigned i = 0; i < extras; ++i)
    if (failed(verifyMap(*this, 3 + i, {d, e}, std::nullopt)))
      return failure();
  Type element = getQuery().getType().getElementType();
  Type keys = getKey().getType().getElementType();
  if (getValue().getType().getElementType() != keys ||
      !(keys == element || (keys.isInteger(8) && element.isF32())))
    return emitOpError(
        "query, keys and values are of one element type, or keys "
        "and values are bytes and the query is of f32");
  if (getResult().getType() != getInit().getType())
    return emitOpError("the result has the type of the init");
  return success();
}

LogicalResult AttentionOp::verifyRegions() {
  Block &block = getBody().front();
  SmallVector<Type> expected = {Float32Type::get(getContext())};
  for (Value extra : getExtras())
    expected.push_back(
        cast<RankedTensorType>(extra.getType()).getElementType());
  expected.append(getNumOuterLoops() + 1, IndexType::get(getContext()));
  if (!llvm::equal(block.getArgumentTypes(), expected))
    return emitOpError("the body takes the score, elements and indices");
  Operation *yield = block.getTerminator();
  if (yield->getNumOperands() != 1 || !yield->getOperand(0).getType().isF32())
    return emitOpError("the body yields a score of f32");
  return success();
}
