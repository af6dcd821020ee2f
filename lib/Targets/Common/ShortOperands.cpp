//===- ShortOperands.cpp - Numbers of 16 bits in f32 ----------------------===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Common/ShortOperands.h"

#include "lib/Dispatch/Utils.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Dialect/Tensor/Utils/Utils.h"
#include "mlir/IR/IRMapping.h"

using namespace mlir;
using namespace sardonyx;

Value sardonyx::findWidenedSource(Value tensor) {
  auto op = tensor.getDefiningOp<linalg::GenericOp>();
  if (!op || !isElementwiseGeneric(op) || op.getNumDpsInputs() != 1 ||
      op->getNumResults() != 1 ||
      !llvm::all_of(op.getIndexingMapsArray(),
                    [](AffineMap map) { return map.isIdentity(); }))
    return nullptr;
  Block *body = op.getBody();
  auto extend = dyn_cast<arith::ExtFOp>(body->front());
  if (!extend || body->getOperations().size() != 2 ||
      extend.getIn() != body->getArgument(0) ||
      body->getTerminator()->getOperand(0) != extend.getOut())
    return nullptr;
  Type type = extend.getIn().getType();
  return (type.isF16() || type.isBF16()) && extend.getOut().getType().isF32()
             ? op.getDpsInputs()[0]
             : nullptr;
}

bool sardonyx::isMovement(Operation *op) {
  return isa_and_nonnull<tensor::CollapseShapeOp, tensor::ExpandShapeOp,
                         linalg::TransposeOp>(op);
}

static RankedTensorType withElement(Value tensor, Type element) {
  auto type = cast<RankedTensorType>(tensor.getType());
  return RankedTensorType::get(type.getShape(), element);
}

/// The tensor of which `tensor` is the same numbers in f32, maybe in another
/// shape or order; null if there is none. With `b` it is built in that shape
/// and order.
static Value findShort(Value tensor, OpBuilder *b) {
  Operation *op = tensor.getDefiningOp();
  if (!isMovement(op))
    return findWidenedSource(tensor);
  Value source = findShort(op->getOperand(0), b);
  if (!source || !b)
    return source;
  Location loc = op->getLoc();
  Type element = getElementTypeOrSelf(source);
  if (auto collapse = dyn_cast<tensor::CollapseShapeOp>(op))
    return tensor::CollapseShapeOp::create(*b, loc,
                                           withElement(tensor, element), source,
                                           collapse.getReassociationIndices());
  if (auto expand = dyn_cast<tensor::ExpandShapeOp>(op))
    return tensor::ExpandShapeOp::create(
        *b, loc, withElement(tensor, element), source,
        expand.getReassociationIndices(), expand.getMixedOutputShape());
  return createTranspose(*b, loc, source,
                         cast<linalg::TransposeOp>(op).getPermutation());
}

bool sardonyx::narrowOperands(Operation *op, OpOperand &lhs, OpOperand &rhs,
                              Type element) {
  Value shortLhs = findShort(lhs.get(), nullptr);
  Value shortRhs = findShort(rhs.get(), nullptr);
  if (!shortLhs || !shortRhs ||
      getElementTypeOrSelf(shortLhs) != getElementTypeOrSelf(shortRhs) ||
      (element && getElementTypeOrSelf(shortLhs) != element))
    return false;
  return narrowOperand(op, lhs) && narrowOperand(op, rhs);
}

bool sardonyx::narrowOperand(Operation *op, OpOperand &operand) {
  if (!findShort(operand.get(), nullptr))
    return false;
  OpBuilder b(op);
  operand.set(findShort(operand.get(), &b));
  return true;
}

/// `tensor` with its elements converted to `element` by `Conversion`.
template <typename Conversion>
static Value convert(OpBuilder &b, Location loc, Value tensor, Type element) {
  SmallVector<OpFoldResult> sizes = tensor::getMixedSizes(b, loc, tensor);
  Value empty = tensor::EmptyOp::create(b, loc, sizes, element);
  AffineMap map = b.getMultiDimIdentityMap(sizes.size());
  SmallVector<utils::IteratorType> loops(sizes.size(),
                                         utils::IteratorType::parallel);
  return linalg::GenericOp::create(
             b, loc, empty.getType(), tensor, empty, {map, map}, loops,
             [&](OpBuilder &inner, Location at, ValueRange args) {
               linalg::YieldOp::create(
                   inner, at,
                   Conversion::create(inner, at, element, args[0]).getResult());
             })
      .getResult(0);
}

/// Whether all who take the value can take it rounded: none of them hands it to
/// the model's caller, who has its memory in f32 anyway.
static bool isOnlyComputedWith(Value value) {
  return value.getDefiningOp() &&
         llvm::none_of(value.getUsers(), [](Operation *user) {
           return user->hasTrait<OpTrait::IsTerminator>();
         });
}

/// The value in 16 bits, in f32 again.
Value OperandRounder::makeRounded(Value value) {
  Value &known = rounded[value];
  if (known)
    return known;
  OpBuilder b(value.getContext());
  b.setInsertionPointAfterValue(value);
  Location loc = value.getLoc();
  Value narrow = convert<arith::TruncFOp>(b, loc, value, element);
  // What becomes subnormal may become zero, as products take it.
  narrow.getDefiningOp<linalg::GenericOp>().walk(
      [](arith::TruncFOp op) { op.setFastmath(arith::FastMathFlags::afn); });
  return known = convert<arith::ExtFOp>(b, loc, narrow,
                                        getElementTypeOrSelf(value));
}

/// What is there before anything is moved.
static Value findRoot(Value tensor) {
  while (isMovement(tensor.getDefiningOp()))
    tensor = tensor.getDefiningOp()->getOperand(0);
  return tensor;
}

bool OperandRounder::isMadeHere(Value tensor) {
  Value root = findRoot(tensor);
  return findWidenedSource(root) || isOnlyComputedWith(root);
}

/// `tensor`, in which `root` is moved, with `other` in the place of that.
static Value moveLikewise(Value tensor, Value root, Value other) {
  SmallVector<Operation *> chain;
  for (Value at = tensor; at != root; at = at.getDefiningOp()->getOperand(0))
    chain.push_back(at.getDefiningOp());
  IRMapping mapping;
  mapping.map(root, other);
  for (Operation *op : llvm::reverse(chain))
    OpBuilder(op).clone(*op, mapping);
  return mapping.lookup(tensor);
}

void OperandRounder::round(OpOperand &operand) {
  Value root = findRoot(operand.get());
  if (findWidenedSource(root))
    return;
  // Where it is made it goes into the kernel that makes it.
  if (!isOnlyComputedWith(root) && root.getDefiningOp()) {
    operand.set(moveLikewise(operand.get(), root, makeRounded(root)));
    return;
  }
  if (!isOnlyComputedWith(root)) {
    operand.set(makeRounded(operand.get()));
    return;
  }
  Value wide = makeRounded(root);
  Operation *narrowing = findWidenedSource(wide).getDefiningOp();
  root.replaceUsesWithIf(wide, [&](OpOperand &use) {
    Operation *user = use.getOwner();
    return user != narrowing && !isa<tensor::DimOp>(user);
  });
}
