//===- PointEvaluator.cpp - Tensors of a kernel at one position -----------===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Kernel/PointEvaluator.h"

#include "Kernel/Block.h"

#include "mlir/Dialect/Affine/Utils.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/IRMapping.h"

using namespace mlir;
using namespace sardonyx;
using namespace sardonyx::nv;

/// The one number that a constant tensor consists of, or null.
static TypedAttr findSplat(Value tensor) {
  auto constant = tensor.getDefiningOp<arith::ConstantOp>();
  if (!constant)
    return nullptr;
  auto splat = dyn_cast<SplatElementsAttr>(constant.getValue());
  return splat ? splat.getSplatValue<TypedAttr>() : nullptr;
}

/// Whether an operation's result is its loops, all of them, in some order.
static bool isPermutation(AffineMap map) {
  return map.isPermutation() || (map.getNumDims() == 0 && map.isEmpty());
}

/// Whether `op` is a tensor of known sizes in another shape.
static bool isReshape(Operation *op) {
  return isa_and_nonnull<tensor::CollapseShapeOp, tensor::ExpandShapeOp>(op) &&
         cast<RankedTensorType>(op->getOperand(0).getType()).hasStaticShape() &&
         cast<RankedTensorType>(op->getResult(0).getType()).hasStaticShape();
}

bool PointEvaluator::canReadElsewhere(Value tensor) {
  tensor = skipCasts(tensor);
  if (KernelBody::hasBuffer(tensor))
    return true;
  // What is known without being computed is known at one place.
  if (!mayReadElsewhere || known.contains(tensor))
    return mayReadElsewhere && computed.contains(tensor);
  Operation *op = tensor.getDefiningOp();
  if (findSplat(tensor) || isa_and_nonnull<linalg::FillOp>(op))
    return true;
  if (isReshape(op))
    return canReadElsewhere(op->getOperand(0));
  auto generic = dyn_cast_or_null<linalg::GenericOp>(op);
  return generic &&
         llvm::all_of(generic.getDpsInputs(),
                      [&](Value input) {
                        return !isa<ShapedType>(input.getType()) ||
                               canReadElsewhere(input);
                      }) &&
         !findObstacle(tensor);
}

Operation *PointEvaluator::findObstacle(Value tensor) {
  tensor = skipCasts(tensor);
  if (known.contains(tensor) || KernelBody::hasBuffer(tensor) ||
      findSplat(tensor) || !checked.insert(tensor).second)
    return nullptr;
  Operation *op = tensor.getDefiningOp();
  if (isa_and_nonnull<linalg::FillOp>(op))
    return nullptr;
  if (isReshape(op) && canReadElsewhere(tensor))
    return nullptr;
  auto generic = dyn_cast_or_null<linalg::GenericOp>(op);
  Operation *obstacle = op;
  if (generic && generic.getNumReductionLoops() == 0 &&
      llvm::all_of(generic.getDpsInitsMutable(), [&](OpOperand &init) {
        return isPermutation(generic.getMatchingIndexingMap(&init));
      }))
    obstacle = findObstacleIn(generic, /*sumsUp=*/false);
  if (obstacle)
    checked.erase(tensor);
  return obstacle;
}

Operation *PointEvaluator::findObstacleIn(linalg::GenericOp op, bool sumsUp) {
  for (OpOperand &operand : op->getOpOperands()) {
    if (!op.payloadUsesValueFromOperand(&operand) ||
        !isa<ShapedType>(operand.get().getType()) ||
        (sumsUp && op.isDpsInit(&operand)))
      continue;
    if (Operation *obstacle = findObstacle(operand.get()))
      return obstacle;
  }
  // Tensors that the body reads itself lie in memory, mostly.
  WalkResult result = op.getBody()->walk([&](Operation *inner) {
    if (auto extract = dyn_cast<tensor::ExtractOp>(inner))
      return canReadElsewhere(extract.getTensor()) ? WalkResult::advance()
                                                   : WalkResult::interrupt();
    bool usesTensor =
        llvm::any_of(inner->getOperandTypes(), llvm::IsaPred<TensorType>) ||
        llvm::any_of(inner->getResultTypes(), llvm::IsaPred<TensorType>);
    return usesTensor && !isa<tensor::DimOp>(inner) ? WalkResult::interrupt()
                                                    : WalkResult::advance();
  });
  return result.wasInterrupted() ? op : nullptr;
}

bool PointEvaluator::canEvaluateBody(linalg::GenericOp op) {
  return !findObstacleIn(op, op.getNumReductionLoops() != 0);
}

Value PointEvaluator::evaluate(ImplicitLocOpBuilder &b, Value tensor,
                               ValueRange index, Point &point) {
  tensor = skipCasts(tensor);
  for (auto &[other, position, value] : llvm::reverse(point.values))
    if (other == tensor && llvm::equal(position, index))
      return value;
  Value value;
  if (auto found = computed.find(tensor); found != computed.end()) {
    value = found->second(b, index);
  } else if (KernelBody::hasBuffer(tensor)) {
    value = memref::LoadOp::create(b, body.getBuffer(tensor), index);
  } else if (TypedAttr splat = findSplat(tensor)) {
    value = arith::ConstantOp::create(b, splat);
  } else if (auto fill = tensor.getDefiningOp<linalg::FillOp>()) {
    value = fill.getInputs()[0];
  } else if (isReshape(tensor.getDefiningOp())) {
    value = evaluateReshape(b, tensor, index, point);
  } else {
    auto result = cast<OpResult>(tensor);
    value = evaluateGeneric(b, cast<linalg::GenericOp>(result.getOwner()),
                            result.getResultNumber(), index, point);
  }
  point.add(tensor, index, value);
  return value;
}

Value PointEvaluator::evaluateReshape(ImplicitLocOpBuilder &b, Value tensor,
                                      ValueRange index, Point &point) {
  Indices i(b);
  auto shapeOf = [](Value of) {
    return cast<RankedTensorType>(of.getType()).getShape();
  };
  Value flat = i.constant(0);
  for (auto [at, size] : llvm::zip_equal(index, shapeOf(tensor)))
    flat = i.add(i.mul(flat, size), at);
  Value source = tensor.getDefiningOp()->getOperand(0);
  SmallVector<Value> sizes;
  for (int64_t size : shapeOf(source))
    sizes.push_back(i.constant(size));
  return evaluate(b, source, i.unflatten(flat, sizes), point);
}

/// The values of the dimensions of `map` where its results are `index`.
static SmallVector<Value> invert(AffineMap map, ValueRange index) {
  SmallVector<Value> dims(map.getNumDims());
  for (auto [i, expr] : llvm::enumerate(map.getResults()))
    dims[cast<AffineDimExpr>(expr).getPosition()] = index[i];
  return dims;
}

SmallVector<Value> PointEvaluator::evaluateBody(ImplicitLocOpBuilder &b,
                                                linalg::GenericOp op,
                                                ValueRange loops,
                                                ValueRange sums, Point &point) {
  IRMapping mapping;
  for (OpOperand &operand : op->getOpOperands()) {
    if (!op.payloadUsesValueFromOperand(&operand))
      continue;
    BlockArgument argument = op.getMatchingBlockArgument(&operand);
    if (op.isScalar(&operand)) {
      mapping.map(argument, operand.get());
      continue;
    }
    if (op.isDpsInit(&operand) && !sums.empty()) {
      mapping.map(argument,
                  sums[operand.getOperandNumber() - op.getNumDpsInputs()]);
      continue;
    }
    SmallVector<Value> at;
    for (AffineExpr expr : op.getMatchingIndexingMap(&operand).getResults())
      at.push_back(
          affine::expandAffineExpr(b, b.getLoc(), expr, loops, ValueRange()));
    mapping.map(argument, evaluate(b, operand.get(), at, point));
  }
  for (Operation &inner : op.getBody()->without_terminator())
    cloneInto(b, inner, loops, mapping, point);
  SmallVector<Value> yielded;
  for (Value value : op.getBody()->getTerminator()->getOperands())
    yielded.push_back(mapping.lookupOrDefault(value));
  return yielded;
}

void PointEvaluator::cloneInto(ImplicitLocOpBuilder &b, Operation &inner,
                               ValueRange loops, IRMapping &mapping,
                               const Point &point) {
  if (auto at = dyn_cast<linalg::IndexOp>(inner)) {
    mapping.map(at.getResult(), loops[at.getDim()]);
    return;
  }
  Operation *made = b.clone(inner, mapping);
  // What is inside of branches, too.
  made->walk([&](Operation *nested) {
    OpBuilder at(nested);
    if (auto position = dyn_cast<linalg::IndexOp>(nested)) {
      position.replaceAllUsesWith(loops[position.getDim()]);
      position.erase();
    } else if (auto extract = dyn_cast<tensor::ExtractOp>(nested)) {
      ImplicitLocOpBuilder inside(nested->getLoc(), nested);
      Point further = point; // what is computed in a branch stays there
      Value loaded =
          evaluate(inside, extract.getTensor(), extract.getIndices(), further);
      if (nested == made)
        mapping.map(inner.getResult(0), loaded);
      extract.replaceAllUsesWith(loaded);
      extract.erase();
    }
  });
}

Value PointEvaluator::evaluateGeneric(ImplicitLocOpBuilder &b,
                                      linalg::GenericOp op, unsigned result,
                                      ValueRange index, Point &point) {
  AffineMap map = op.getMatchingIndexingMap(op.getDpsInitOperand(result));
  SmallVector<Value> values =
      evaluateBody(b, op, invert(map, index), ValueRange(), point);
  // All results are there at once.
  for (unsigned i = 0, e = op.getNumResults(); i < e; ++i)
    if (i != result &&
        op.getMatchingIndexingMap(op.getDpsInitOperand(i)) == map)
      point.add(op.getResult(i), index, values[i]);
  return values[result];
}

void PointEvaluator::store(ImplicitLocOpBuilder &b,
                           ArrayRef<KernelBody::Output> outputs,
                           ArrayRef<SmallVector<Value>> indices,
                           MutableArrayRef<Point> points) {
  SmallVector<SmallVector<Value>> values(outputs.size());
  for (auto [index, point] : llvm::zip_equal(indices, points))
    for (auto [output, of] : llvm::zip_equal(outputs, values))
      of.push_back(evaluate(b, output.tensor, index, point));
  for (auto [output, of] : llvm::zip_equal(outputs, values))
    for (auto [index, value] : llvm::zip_equal(indices, of))
      memref::StoreOp::create(b, value, output.memref, index);
}
