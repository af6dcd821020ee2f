//===- DecomposeAttention.cpp - Attention as loops ------------------------===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "DecomposeAttention.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Dialect/Tensor/Utils/Utils.h"
#include "mlir/IR/IRMapping.h"

using namespace mlir;
using namespace sardonyx;
using namespace sardonyx;

namespace {

/// Builds operations whose loops are those of an operation of attention.
class Decomposition {
public:
  Decomposition(OpBuilder &builder, sdx::AttentionOp op)
      : b(op.getLoc(), builder), op(op), outer(op.getNumOuterLoops()),
        sizes(op.getNumLoops()) {
    for (auto [i, operand] : llvm::enumerate(op->getOperands()))
      for (auto [dim, expr] : llvm::enumerate(op.getMap(i).getResults()))
        if (auto loop = dyn_cast<AffineDimExpr>(expr))
          sizes[loop.getPosition()] =
              tensor::getMixedSize(b, b.getLoc(), operand, dim);
  }

  Value build() {
    SmallVector<unsigned> rows = llvm::to_vector(llvm::seq(outer));
    SmallVector<unsigned> scores = rows, sums = rows;
    scores.push_back(op.getKeyLoop());
    sums.push_back(op.getColumnLoop());
    Value products = sumUp(
        {op.getQuery(), op.getKey()}, {op.getMap(0), op.getMap(1)}, scores,
        op.getDepthLoop(), 0, [&](ImplicitLocOpBuilder &n, ValueRange args) {
          Value product =
              arith::MulFOp::create(n, widen(n, args[0]), widen(n, args[1]));
          return arith::AddFOp::create(n, args[2], product).getResult();
        });
    Value modified = modify(products, scores);
    AffineMap ofScore = mapOf(scores), ofRow = mapOf(rows);
    Value largest = sumUp(
        {modified}, {ofScore}, rows, op.getKeyLoop(),
        -std::numeric_limits<float>::infinity(),
        [](ImplicitLocOpBuilder &n, ValueRange args) {
          return arith::MaxNumFOp::create(n, args[1], args[0]).getResult();
        });
    Value terms =
        map({modified, largest}, {ofScore, ofRow}, scores, b.getF32Type(),
            [](ImplicitLocOpBuilder &n, ValueRange args) {
              return math::ExpOp::create(
                         n, arith::SubFOp::create(n, args[0], args[1]))
                  .getResult();
            });
    Value total =
        sumUp({terms}, {ofScore}, rows, op.getKeyLoop(), 0,
              [](ImplicitLocOpBuilder &n, ValueRange args) {
                return arith::AddFOp::create(n, args[1], args[0]).getResult();
              });
    Value probabilities =
        map({terms, total}, {ofScore, ofRow}, scores, b.getF32Type(),
            [](ImplicitLocOpBuilder &n, ValueRange args) {
              return arith::DivFOp::create(n, args[0], args[1]).getResult();
            });
    Value result = sumUp(
        {probabilities, op.getValue()}, {ofScore, op.getMap(2)}, sums,
        op.getKeyLoop(), 0, [&](ImplicitLocOpBuilder &n, ValueRange args) {
          Value product = arith::MulFOp::create(n, args[0], widen(n, args[1]));
          return arith::AddFOp::create(n, args[2], product).getResult();
        });
    return store(result, sums);
  }

private:
  using Body = llvm::function_ref<Value(ImplicitLocOpBuilder &, ValueRange)>;

  static Value widen(ImplicitLocOpBuilder &n, Value x) {
    if (x.getType().isInteger())
      return arith::SIToFPOp::create(n, n.getF32Type(), x);
    return x.getType().isF32()
               ? x
               : arith::ExtFOp::create(n, n.getF32Type(), x).getResult();
  }

  AffineMap mapOf(ArrayRef<unsigned> loops) {
    SmallVector<AffineExpr> exprs;
    for (unsigned loop : loops)
      exprs.push_back(b.getAffineDimExpr(loop));
    return AffineMap::get(op.getNumLoops(), 0, exprs, b.getContext());
  }

  /// A map of all loops as one of `loops`.
  AffineMap restrict(AffineMap map, ArrayRef<unsigned> loops) {
    SmallVector<AffineExpr> dims(map.getNumDims(), b.getAffineConstantExpr(0));
    for (auto [i, loop] : llvm::enumerate(loops))
      dims[loop] = b.getAffineDimExpr(i);
    return map.replaceDimsAndSymbols(dims, {}, loops.size(), 0);
  }

  Value empty(ArrayRef<unsigned> loops, Type type) {
    SmallVector<OpFoldResult> shape;
    for (unsigned loop : loops)
      shape.push_back(sizes[loop]);
    return tensor::EmptyOp::create(b, shape, type);
  }

  Value generic(ValueRange inputs, ArrayRef<AffineMap> maps, Value init,
                AffineMap initMap, ArrayRef<unsigned> loops,
                unsigned reductions, Body body) {
    SmallVector<AffineMap> restricted;
    for (AffineMap map : maps)
      restricted.push_back(restrict(map, loops));
    restricted.push_back(restrict(initMap, loops));
    SmallVector<utils::IteratorType> kinds(loops.size(),
                                           utils::IteratorType::parallel);
    for (unsigned i = 0; i < reductions; ++i)
      kinds[kinds.size() - 1 - i] = utils::IteratorType::reduction;
    return linalg::GenericOp::create(
               b, init.getType(), inputs, init, restricted, kinds,
               [&](OpBuilder &inner, Location loc, ValueRange args) {
                 ImplicitLocOpBuilder n(loc, inner);
                 linalg::YieldOp::create(n, body(n, args));
               })
        .getResult(0);
  }

  Value sumUp(ArrayRef<Value> inputs, ArrayRef<AffineMap> maps,
              SmallVector<unsigned> loops, unsigned along, float first,
              Body body) {
    Value zero = arith::ConstantOp::create(b, b.getF32FloatAttr(first));
    Value init = linalg::FillOp::create(b, zero, empty(loops, b.getF32Type()))
                     .getResult(0);
    AffineMap initMap = mapOf(loops);
    loops.push_back(along);
    return generic(inputs, maps, init, initMap, loops, 1, body);
  }

  Value map(ArrayRef<Value> inputs, ArrayRef<AffineMap> maps,
            ArrayRef<unsigned> loops, Type type, Body body) {
    return generic(inputs, maps, empty(loops, type), mapOf(loops), loops, 0,
                   body);
  }

  Value modify(Value products, ArrayRef<unsigned> loops) {
    SmallVector<Value> inputs = {products};
    SmallVector<AffineMap> maps = {mapOf(loops)};
    for (auto [i, extra] : llvm::enumerate(op.getExtras())) {
      inputs.push_back(extra);
      maps.push_back(op.getMap(3 + i));
    }
    return map(inputs, maps, loops, b.getF32Type(),
               [&](ImplicitLocOpBuilder &n, ValueRange args) {
                 IRMapping mapping;
                 mapping.map(op.getScore(), args[0]);
                 for (auto [i, element] : llvm::enumerate(op.getElements()))
                   mapping.map(element, args[1 + i]);
                 for (auto [i, index] : llvm::enumerate(op.getIndices()))
                   mapping.map(index, linalg::IndexOp::create(n, i));
                 for (Operation &inner :
                      op.getBody().front().without_terminator())
                   n.clone(inner, mapping);
                 return mapping.lookupOrDefault(op.getModified());
               });
  }

  /// The result in the order of the init's dimensions, in its type.
  Value store(Value result, ArrayRef<unsigned> loops) {
    Type type = op.getInit().getType().getElementType();
    return generic(result, mapOf(loops), op.getInit(), op.getInitMap(), loops,
                   0, [&](ImplicitLocOpBuilder &n, ValueRange args) -> Value {
                     if (type.isF32())
                       return args[0];
                     return arith::TruncFOp::create(n, type, args[0]);
                   });
  }

  ImplicitLocOpBuilder b;
  sdx::AttentionOp op;
  unsigned outer;
  SmallVector<OpFoldResult> sizes;
};

} // namespace

Value sardonyx::decomposeAttention(OpBuilder &b, sdx::AttentionOp op) {
  return Decomposition(b, op).build();
}
