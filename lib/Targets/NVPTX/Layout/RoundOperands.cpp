//===- RoundOperands.cpp - Operands of products in 16 bits ----------------===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Layout/ShortOperands.h"
#include "Matmul/MatmulPlan.h"

#include "dialects/NV/NV.h"
#include "sardonyx/Targets/NVPTX/Passes.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Dialect/Tensor/Utils/Utils.h"

namespace sardonyx {
#define GEN_PASS_DEF_NVROUNDOPERANDS
#include "sardonyx/Targets/NVPTX/Passes.h.inc"
} // namespace sardonyx

using namespace mlir;
using namespace sardonyx;

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

namespace {

struct RoundOperandsPass
    : sardonyx::impl::NVRoundOperandsBase<RoundOperandsPass> {
  using Base::Base;

  void runOnOperation() override {
    if (precision == Precision::F32)
      return;
    Builder b(&getContext());
    element = precision == Precision::F16 ? Type(b.getF16Type())
                                          : Type(b.getBF16Type());
    SmallVector<Operation *> products;
    getOperation().walk([&](Operation *op) {
      if (auto matmul = dyn_cast<sdx::MatmulOp>(op);
          matmul && nv::hasTiles(matmul))
        products.push_back(op);
      if (auto conv = dyn_cast<sdx::ConvOp>(op); conv && nv::hasTiles(conv))
        products.push_back(op);
    });
    for (Operation *op : products) {
      const bool isF32 = llvm::all_of(op->getOperands().take_front(2), isOfF32);
      if (isF32 && precision == Precision::TF32)
        op->setAttr(nv::kTF32Attr, b.getUnitAttr());
      else if (isF32)
        for (OpOperand &operand : op->getOpOperands().take_front(2))
          round(operand);
    }
  }

private:
  static bool isOfF32(Value value) {
    return getElementTypeOrSelf(value).isF32();
  }

  /// The value in 16 bits, in f32 again.
  Value makeRounded(Value value) {
    Value &known = rounded[value];
    if (known)
      return known;
    OpBuilder b(&getContext());
    b.setInsertionPointAfterValue(value);
    Location loc = value.getLoc();
    Value narrow = convert<arith::TruncFOp>(b, loc, value, element);
    return known = convert<arith::ExtFOp>(b, loc, narrow,
                                          getElementTypeOrSelf(value));
  }

  void round(OpOperand &operand) {
    // What is there before anything is moved.
    Value root = operand.get();
    while (nv::isMovement(root.getDefiningOp()))
      root = root.getDefiningOp()->getOperand(0);
    if (nv::findWidenedSource(root))
      return;
    if (!isOnlyComputedWith(root)) {
      operand.set(makeRounded(operand.get()));
      return;
    }
    Value wide = makeRounded(root);
    Operation *narrowing = nv::findWidenedSource(wide).getDefiningOp();
    root.replaceUsesWithIf(wide, [&](OpOperand &use) {
      Operation *user = use.getOwner();
      return user != narrowing && !isa<tensor::DimOp>(user);
    });
  }

  Type element;
  llvm::DenseMap<Value, Value> rounded;
};

} // namespace
