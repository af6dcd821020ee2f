//===- FormAttention.cpp - Make one operation of attention ----------------===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "../Utils.h"
#include "AttentionMatch.h"
#include "dialects/SDX/RoundedType.h"
#include "dialects/SDX/SoftmaxTerm.h"
#include "sardonyx/Dispatch/Passes.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Dialect/Tensor/Utils/Utils.h"
#include "mlir/IR/IRMapping.h"

namespace sardonyx {
#define GEN_PASS_DEF_SDXFORMATTENTION
#include "sardonyx/Dispatch/Passes.h.inc"
} // namespace sardonyx

using namespace mlir;
using namespace sardonyx;
using namespace sardonyx::attention;

void AttentionMatch::orderAxes() {
  order = axes.resolve(batch);
  order.append(axes.resolve(rows));
  order.append({axes.resolve(keys).front(), axes.resolve(depth).front(),
                axes.resolve(columns).front()});
}

AffineMap AttentionMatch::mapOf(const Dims &dims) {
  MLIRContext *context = second.getContext();
  SmallVector<AffineExpr> exprs;
  for (const Axes::List &list : axes.resolve(dims)) {
    if (list.empty())
      exprs.push_back(getAffineConstantExpr(0, context));
    for (Axes::Axis axis : list)
      exprs.push_back(
          getAffineDimExpr(llvm::find(order, axis) - order.begin(), context));
  }
  return AffineMap::get(order.size(), 0, exprs, context);
}

/// The size of an axis that is open, of a tensor that has it.
Value AttentionMatch::sizeOf(OpBuilder &b, Axes::Axis axis) {
  for (auto &[tensor, dims] : separated) {
    int64_t dim = 0;
    for (const Axes::List &list : axes.resolve(dims)) {
      for (Axes::Axis other : list) {
        if (other == axis)
          return tensor::DimOp::create(b, tensor.getLoc(), tensor, dim);
        ++dim;
      }
      dim += list.empty();
    }
  }
  return Value();
}

sdx::AttentionOp AttentionMatch::build(OpBuilder &b, Value init,
                                       const Dims &resultDims) {
  // Keys that are several axes (of which all but one may turn out to be 1) are
  // none of an attention's.
  auto hasAll = [&](const Dims &dims) {
    return llvm::all_of(axes.resolve(dims), [&](const Axes::List &list) {
      return llvm::all_of(list, [&](Axes::Axis axis) {
        return llvm::is_contained(order, axis);
      });
    });
  };
  if (!hasAll(resultDims) || !llvm::all_of(separated, [&](auto &operand) {
        return hasAll(operand.second);
      }))
    return sdx::AttentionOp();
  Location loc = b.getFusedLoc({first.getLoc(), second.getLoc()});
  SmallVector<Value> inputs;
  for (auto &[tensor, dims] : separated)
    inputs.push_back(tensor);
  SmallVector<Attribute> maps;
  for (auto &[tensor, dims] : separated)
    maps.push_back(AffineMapAttr::get(mapOf(dims)));
  maps.push_back(AffineMapAttr::get(mapOf(resultDims)));
  auto op = sdx::AttentionOp::create(
      b, loc, init.getType(), inputs[0], inputs[1], inputs[2],
      ArrayRef(inputs).drop_front(3), init, b.getArrayAttr(maps));
  if (Type rounded = findRoundedType())
    op->setAttr(sdx::kRoundedAttr, TypeAttr::get(rounded));
  Block &block = op.getBody().emplaceBlock();
  block.addArgument(b.getF32Type(), loc);
  for (Value extra : ArrayRef(inputs).drop_front(3))
    block.addArgument(getElementTypeOrSelf(extra), loc);
  DenseMap<Axes::Axis, Value> indices;
  for (Axes::Axis axis : ArrayRef(order).drop_back(2))
    indices[axis] = block.addArgument(b.getIndexType(), loc);
  OpBuilder inner = OpBuilder::atBlockEnd(&block);
  Value score = block.getArgument(0);
  const double factor = query.factor * key.factor;
  if (factor != 1)
    score = arith::MulFOp::create(
        inner, loc, score,
        arith::ConstantOp::create(inner, loc, b.getF32FloatAttr(factor)));
  score = body.build(inner, score, op.getElements(), indices);
  if (score)
    sdx::YieldOp::create(inner, loc, score);
  else
    op.erase();
  return score ? op : sdx::AttentionOp();
}

/// `result`, which has a dimension for each axis of `dims`, with the rows 0
/// that were set to 0 in the probabilities.
Value AttentionMatch::applyRowSelects(OpBuilder &b, Value result,
                                      const Dims &dims) {
  Axes::List axesOfResult;
  for (const Axes::List &list : axes.resolve(dims))
    axesOfResult.append(list);
  auto type = cast<RankedTensorType>(result.getType());
  for (auto &[op, loops] : llvm::reverse(rowSelects)) {
    SmallVector<Value> inputs = {result};
    SmallVector<AffineMap> maps = {b.getMultiDimIdentityMap(type.getRank())};
    SmallVector<unsigned> arguments;
    for (OpOperand *operand : op.getDpsInputOperands()) {
      Dims of = *attention::findOperand(op, *operand, loops);
      bool isKept = llvm::any_of(axes.resolve(of), [&](const Axes::List &list) {
        return llvm::is_contained(list, axes.resolve(keys).front());
      });
      arguments.push_back(isKept ? 0 : inputs.size());
      if (isKept)
        continue;
      SmallVector<AffineExpr> exprs;
      for (const Axes::List &list : axes.resolve(of)) {
        if (list.empty())
          exprs.push_back(b.getAffineConstantExpr(0));
        for (Axes::Axis axis : list)
          exprs.push_back(b.getAffineDimExpr(llvm::find(axesOfResult, axis) -
                                             axesOfResult.begin()));
      }
      inputs.push_back(op.isScalar(operand)
                           ? operand->get()
                           : axes.separate(b, operand->get(), of));
      maps.push_back(AffineMap::get(type.getRank(), 0, exprs, b.getContext()));
    }
    maps.push_back(maps.front());
    Value empty = tensor::EmptyOp::create(
        b, op.getLoc(), tensor::getMixedSizes(b, op.getLoc(), result),
        type.getElementType());
    SmallVector<utils::IteratorType> kinds(type.getRank(),
                                           utils::IteratorType::parallel);
    linalg::GenericOp from = op;
    result = linalg::GenericOp::create(
                 b, op.getLoc(), TypeRange(type), inputs, empty, maps, kinds,
                 [&](OpBuilder &n, Location loc, ValueRange args) {
                   auto convert = [&](Value x, Type to) -> Value {
                     const unsigned a = x.getType().getIntOrFloatBitWidth();
                     const unsigned z = to.getIntOrFloatBitWidth();
                     if (a < z)
                       return arith::ExtFOp::create(n, loc, to, x);
                     return a > z ? arith::TruncFOp::create(n, loc, to, x) : x;
                   };
                   IRMapping mapping;
                   for (auto [i, argument] : llvm::enumerate(arguments)) {
                     Value of = from.getBody()->getArgument(i);
                     Value x = args[argument];
                     mapping.map(of, argument ? x : convert(x, of.getType()));
                   }
                   for (Operation &inner : from.getBody()->without_terminator())
                     n.clone(inner, mapping);
                   Value y = mapping.lookupOrDefault(
                       from.getBody()->getTerminator()->getOperand(0));
                   linalg::YieldOp::create(n, loc,
                                           convert(y, type.getElementType()));
                 })
                 .getResult(0);
  }
  return result;
}

/// Whether all that the scores and results are changed by can be read by axes.
bool AttentionMatch::canSeparate() {
  for (auto &[op, loops] : rowSelects)
    for (OpOperand *operand : op.getDpsInputOperands())
      if (!axes.areSeparable(*attention::findOperand(op, *operand, loops)))
        return false;
  return llvm::all_of(body.getExtras(), [&](const Position &extra) {
    return axes.areSeparable(extra.dims);
  });
}

bool AttentionMatch::replace() {
  if (!canSeparate())
    return false;
  Position result = findResult();
  OpBuilder b(second);
  orderAxes();
  separated.push_back({query.position.tensor, query.position.dims});
  separated.push_back({key.position.tensor, key.position.dims});
  separated.push_back({value.position.tensor, value.position.dims});
  for (const Position &extra : body.getExtras())
    separated.push_back({extra.tensor, extra.dims});
  for (auto &[tensor, dims] : separated)
    tensor = axes.separate(b, tensor, dims);
  auto type = cast<RankedTensorType>(result.tensor.getType());
  SmallVector<OpFoldResult> sizes;
  Dims flat;
  for (const Axes::List &list : axes.resolve(result.dims))
    for (Axes::Axis axis : list) {
      flat.push_back({axis});
      if (!ShapedType::isDynamic(axes.sizeOf(axis))) {
        sizes.push_back(b.getIndexAttr(axes.sizeOf(axis)));
        continue;
      }
      Value size = sizeOf(b, axis);
      if (!size)
        return false;
      sizes.push_back(size);
    }
  Value init =
      tensor::EmptyOp::create(b, second.getLoc(), sizes, type.getElementType());
  sdx::AttentionOp op = build(b, init, flat);
  if (!op)
    return false;
  Value made = applyRowSelects(b, op.getResult(), flat);
  Value united = axes.unite(b, made, result.dims, type);
  if (united.getType() != type)
    united = tensor::CastOp::create(b, second.getLoc(), type, united);
  result.tensor.replaceAllUsesWith(united);
  return true;
}

void AttentionMatch::flushTerms() {
  if (!findProbabilities() || !isUsedHereOnly())
    return;
  for (Operation *op : passed)
    op->walk([](math::ExpOp exp) { sdx::markSoftmaxTerm(exp); });
}

namespace {

struct FormAttentionPass
    : sardonyx::impl::SDXFormAttentionBase<FormAttentionPass> {
  void runOnOperation() override {
    eraseDead();
    SmallVector<sdx::MatmulOp> products;
    getOperation().walk([&](sdx::MatmulOp op) { products.push_back(op); });
    for (sdx::MatmulOp product : products) {
      AttentionMatch attention(product);
      if (!attention.match() || !attention.replace())
        AttentionMatch(product).flushTerms();
    }
    eraseDead();
  }

private:
  /// What nothing needs any more would count as another use.
  void eraseDead() {
    getOperation().walk([](Block *block) {
      for (Operation &op : llvm::make_early_inc_range(llvm::reverse(*block)))
        if (isOpTriviallyDead(&op))
          op.erase();
    });
  }
};

} // namespace
