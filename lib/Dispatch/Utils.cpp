//===- Utils.cpp - What the dispatch passes share ---------------*- C++ -*-===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Utils.h"

#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/Matchers.h"
#include "mlir/Interfaces/LoopLikeInterface.h"
#include "mlir/Transforms/GreedyPatternRewriteDriver.h"
#include "mlir/Transforms/RegionUtils.h"

using namespace mlir;
using namespace sardonyx;

bool sardonyx::isHostFunction(func::FuncOp func) {
  return !func.isExternal() && !func->hasAttr(sdx::kKernelAttr);
}

void sardonyx::dropMemorySpaces(Operation *root) {
  AttrTypeReplacer replacer;
  replacer.addReplacement([](MemRefType type) -> std::optional<Type> {
    if (!type.getMemorySpace())
      return std::nullopt;
    return MemRefType(MemRefType::Builder(type).setMemorySpace({}));
  });
  replacer.recursivelyReplaceElementsIn(root, /*replaceAttrs=*/true,
                                        /*replaceLocs=*/false,
                                        /*replaceTypes=*/true);
}

bool sardonyx::isComputeOp(Operation *op) {
  if (op->getNumResults() == 0 || isa<linalg::FillOp>(op))
    return false;
  if (isa<sdx::DenseOpInterface, scf::ForallOp>(op))
    return true;
  return isa<linalg::LinalgDialect>(op->getDialect()) &&
         isa<DestinationStyleOpInterface>(op);
}

bool sardonyx::isDestination(OpOperand &operand) {
  if (auto loop = dyn_cast<scf::ForallOp>(operand.getOwner()))
    return llvm::is_contained(loop.getOutputs(), operand.get());
  auto op = dyn_cast<DestinationStyleOpInterface>(operand.getOwner());
  return op && op.isDpsInit(&operand);
}

Value sardonyx::getDestination(OpResult result) {
  if (auto loop = dyn_cast<scf::ForallOp>(result.getOwner()))
    return loop.getOutputs()[result.getResultNumber()];
  auto op = cast<DestinationStyleOpInterface>(result.getOwner());
  return op.getTiedOpOperand(result)->get();
}

bool sardonyx::isZeroFilled(Value tensor) {
  if (auto fill = tensor.getDefiningOp<linalg::FillOp>())
    return matchPattern(fill.getInputs()[0], m_AnyZeroFloat()) ||
           matchPattern(fill.getInputs()[0], m_Zero());
  auto constant = tensor.getDefiningOp<arith::ConstantOp>();
  if (!constant)
    return false;
  auto splat = dyn_cast<SplatElementsAttr>(constant.getValue());
  if (!splat)
    return false;
  if (isa<FloatType>(splat.getElementType()))
    return splat.getSplatValue<APFloat>().isZero();
  if (isa<IntegerType>(splat.getElementType()))
    return splat.getSplatValue<APInt>().isZero();
  return false;
}

Value sardonyx::createTranspose(OpBuilder &b, Location loc, Value tensor,
                                ArrayRef<int64_t> permutation) {
  SmallVector<OpFoldResult> sizes = tensor::getMixedSizes(b, loc, tensor);
  SmallVector<OpFoldResult> permuted = llvm::map_to_vector(
      permutation, [&](int64_t from) { return sizes[from]; });
  Value empty =
      tensor::EmptyOp::create(b, loc, permuted, getElementTypeOrSelf(tensor));
  return linalg::TransposeOp::create(b, loc, tensor, empty, permutation)
      ->getResult(0);
}

Value sardonyx::createZeros(OpBuilder &b, Location loc,
                            ArrayRef<OpFoldResult> sizes, Type type) {
  Value empty = tensor::EmptyOp::create(b, loc, sizes, type);
  Value zero = arith::ConstantOp::create(b, loc, b.getZeroAttr(type));
  return linalg::FillOp::create(b, loc, zero, empty).getResult(0);
}

bool sardonyx::isReadOnce(Value value) {
  return llvm::count_if(value.getUsers(), [](Operation *user) {
           return !isa<tensor::DimOp>(user);
         }) == 1;
}

SmallVector<ReassociationIndices>
sardonyx::groupWithDropped(const llvm::SmallBitVector &dropped) {
  SmallVector<ReassociationIndices> groups;
  ReassociationIndices leading;
  for (int64_t dim = 0, rank = dropped.size(); dim < rank; ++dim) {
    if (!dropped.test(dim)) {
      groups.push_back(std::move(leading));
      leading.clear();
    }
    (groups.empty() ? leading : groups.back()).push_back(dim);
  }
  return groups;
}

bool sardonyx::isOrderedProjection(AffineMap map) {
  int64_t last = -1;
  for (AffineExpr expr : map.getResults()) {
    if (auto constant = dyn_cast<AffineConstantExpr>(expr)) {
      if (constant.getValue() != 0)
        return false;
      continue;
    }
    auto dim = dyn_cast<AffineDimExpr>(expr);
    if (!dim || int64_t(dim.getPosition()) <= last)
      return false;
    last = dim.getPosition();
  }
  return true;
}

bool sardonyx::isReduced(Value value) {
  return llvm::any_of(value.getUsers(), [](Operation *user) {
    if (isa<tensor::ExpandShapeOp, tensor::CollapseShapeOp>(user))
      return isReduced(user->getResult(0));
    auto generic = dyn_cast<linalg::GenericOp>(user);
    return generic && generic.getNumReductionLoops() > 0;
  });
}

bool sardonyx::isElementwiseGeneric(Operation *op) {
  auto generic = dyn_cast<linalg::GenericOp>(op);
  if (!generic || !generic.hasPureTensorSemantics() ||
      generic.getNumParallelLoops() != generic.getNumLoops())
    return false;
  for (AffineMap map : generic.getIndexingMapsArray())
    if (!isOrderedProjection(map))
      return false;
  for (Value captured : capturedValues(op))
    if (isa<ShapedType>(captured.getType()))
      return false;
  return true;
}

SmallVector<OpOperand *> sardonyx::findWriters(Value tensor) {
  // What it is a view of may be written to as well.
  while (Operation *view = tensor.getDefiningOp()) {
    if (!isa<tensor::ExpandShapeOp, tensor::CollapseShapeOp, tensor::CastOp>(
            view))
      break;
    tensor = view->getOperand(0);
  }
  SmallVector<Value> aliases = {tensor};
  SmallVector<OpOperand *> writers;
  while (!aliases.empty())
    for (OpOperand &use : aliases.pop_back_val().getUses()) {
      Operation *user = use.getOwner();
      if (isa<tensor::ExpandShapeOp, tensor::CollapseShapeOp, tensor::CastOp,
              tensor::ExtractSliceOp>(user)) {
        aliases.push_back(user->getResult(0));
        continue;
      }
      auto op = dyn_cast<DestinationStyleOpInterface>(user);
      if (isa<LoopLikeOpInterface>(user) || (op && op.isDpsInit(&use)))
        writers.push_back(&use);
    }
  return writers;
}

void sardonyx::rewriteGreedily(Operation *op,
                               const FrozenRewritePatternSet &patterns) {
  GreedyRewriteConfig config;
  config.setMaxIterations(256);
  (void)applyPatternsGreedily(op, patterns, config);
}

void sardonyx::eraseDeadInBodies(Operation *root) {
  root->walk([](linalg::GenericOp op) {
    for (Operation &inner :
         llvm::make_early_inc_range(llvm::reverse(*op.getBody())))
      if (isOpTriviallyDead(&inner))
        inner.erase();
  });
}

llvm::SetVector<Value> sardonyx::capturedValues(Operation *op) {
  llvm::SetVector<Value> values;
  getUsedValuesDefinedAbove(op->getRegions(), values);
  return values;
}

/// Whether `op` makes other floats of its operand's and no more.
static bool convertsFloats(Operation *op) {
  if (!isElementwiseGeneric(op))
    return false;
  auto generic = cast<linalg::GenericOp>(op);
  Block *body = generic.getBody();
  return generic.getNumDpsInputs() == 1 && body->getOperations().size() == 2 &&
         isa<arith::TruncFOp, arith::ExtFOp>(body->front()) &&
         generic.getMatchingIndexingMap(generic.getDpsInputOperand(0))
             .isIdentity();
}

bool sardonyx::isWeight(Value tensor) {
  while (Operation *op = tensor.getDefiningOp()) {
    if (isa<arith::ConstantOp>(op))
      return true;
    // One direction of a recurrent layer's weights is a slice of them.
    auto slice = dyn_cast<tensor::ExtractSliceOp>(op);
    bool isFixedSlice = slice && slice->getNumOperands() == 1;
    if (!isFixedSlice && !convertsFloats(op) &&
        !isa<tensor::CollapseShapeOp, tensor::ExpandShapeOp, tensor::CastOp,
             linalg::TransposeOp>(op))
      return false;
    tensor = op->getOperand(0);
  }
  return false;
}
