//===- OpenSizes.cpp - Whether sizes are what is missing ------------------===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "OpenSizes.h"
#include "dialects/ONNX/ONNX.h"
#include "mlir/IR/BuiltinTypes.h"
#include "mlir/Interfaces/FunctionInterfaces.h"
#include "sardonyx/Bridge/Bridge.h"
#include "sardonyx/Conversion/ONNXToLinalg.h"

using namespace sardonyx;
using namespace mlir;

static bool isUnranked(Type type) { return isa<UnrankedTensorType>(type); }

static bool isOpen(Type type) {
  auto tensor = dyn_cast<RankedTensorType>(type);
  return isUnranked(type) || (tensor && !tensor.hasStaticShape());
}

bool sardonyx::maySizesHelp(ModuleOp refused) {
  // Of the model's inputs and outputs. Where one has no rank, no operator has
  // been tried.
  bool hasAllTypes = true, isOneUnranked = false;
  refused.walk([&](FunctionOpInterface func) {
    for (ArrayRef<Type> types :
         {func.getArgumentTypes(), func.getResultTypes()}) {
      hasAllTypes &= llvm::all_of(types, hasLinalgType);
      isOneUnranked |= llvm::any_of(types, isUnranked);
    }
  });
  if (!hasAllTypes)
    return false;
  WalkResult result = refused.walk([&](Operation *op) {
    if (!isa_and_nonnull<onnx::ONNXDialect>(op->getDialect()) ||
        op->hasTrait<OpTrait::IsTerminator>())
      return WalkResult::advance();
    if (!hasLinalgLowering(op->getName().getStringRef(),
                           /*ofSpecialCases=*/true) &&
        !hasOnnxFunctionBody(op))
      return WalkResult::interrupt();
    // What is left around others is left because of these.
    bool mayHelp = isOneUnranked || op->getNumRegions() != 0 ||
                   llvm::any_of(op->getOperandTypes(), isOpen) ||
                   llvm::any_of(op->getResultTypes(), isOpen);
    return mayHelp ? WalkResult::advance() : WalkResult::interrupt();
  });
  return !result.wasInterrupted();
}
