//===- ConstantOnly.cpp - What follows from constants ---------------------===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "sardonyx/Transforms/ConstantOnly.h"

#include "dialects/ONNX/ONNX.h"

#include "mlir/IR/Matchers.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

using namespace mlir;
using namespace sardonyx;

bool sardonyx::isRepeatable(Operation *op) {
  return isMemoryEffectFree(op) && !op->getNumRegions() &&
         !op->hasTrait<onnx::DrawsNumbers>();
}

bool sardonyx::collectConstantMakers(Value value,
                                     SetVector<Operation *> &makers,
                                     function_ref<bool(Operation *)> allowed,
                                     size_t limit) {
  const size_t before = makers.size();
  auto add = [&](Value made) {
    Operation *op = made.getDefiningOp();
    if (op)
      makers.insert(op);
    return op != nullptr;
  };
  if (!add(value))
    return false;
  for (size_t i = before; i < makers.size(); ++i) {
    Operation *op = makers[i];
    if (op->hasTrait<OpTrait::ConstantLike>())
      continue;
    if (!allowed(op) || !llvm::all_of(op->getOperands(), add) ||
        makers.size() - before > limit)
      return false;
  }
  return true;
}

bool sardonyx::isConstantOnly(Value value) {
  SetVector<Operation *> makers;
  return collectConstantMakers(value, makers);
}
