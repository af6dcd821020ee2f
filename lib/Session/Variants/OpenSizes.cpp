//===- OpenSizes.cpp - Whether inputs are what is missing -----------------===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "lib/Session/Variants/OpenSizes.h"
#include "dialects/ONNX/ONNX.h"
#include "lib/Session/Variants/KnownValues.h"
#include "lib/Session/Variants/Variants.h"
#include "mlir/IR/BuiltinTypes.h"
#include "mlir/Interfaces/FunctionInterfaces.h"
#include "sardonyx/Bridge/Bridge.h"
#include "sardonyx/Conversion/ONNXToLinalg.h"
#include "sardonyx/RefusedAttrs.h"

using namespace sardonyx;
using namespace mlir;

static bool isUnranked(Type type) { return isa<UnrankedTensorType>(type); }

/// Of the tensors in a sequence or an optional, if it is one.
static Type itemOf(Type type) {
  if (auto optional = dyn_cast<onnx::OptType>(type))
    type = optional.getElementType();
  if (auto sequence = dyn_cast<onnx::SeqType>(type))
    type = sequence.getElementType();
  return type;
}

static bool isOpen(Type type) {
  type = itemOf(type);
  auto tensor = dyn_cast<RankedTensorType>(type);
  return isUnranked(type) || (tensor && !tensor.hasStaticShape());
}

/// Of an operator that nobody knows, or whose shape function tells no ranks:
/// it is asked again where a rank of an operand may be known then.
static bool mayRanksHelp(Operation *custom) {
  onnx::CustomImplementation found = onnx::findCustomImplementation(custom);
  if (!found.isRegistered)
    return false;
  bool isAtFault =
      found.kind == onnx::CustomImplementation::Unknown ||
      !llvm::all_of(custom->getResultTypes(), llvm::IsaPred<RankedTensorType>);
  return !isAtFault || llvm::any_of(custom->getOperandTypes(), isUnranked);
}

/// Whether all values that go in and come out have types that can be compiled;
/// `isOneUnranked` tells whether one of them has no rank.
static bool hasAllTypes(ModuleOp refused, bool &isOneUnranked) {
  bool all = true;
  refused.walk([&](FunctionOpInterface func) {
    for (ArrayRef<Type> types :
         {func.getArgumentTypes(), func.getResultTypes()}) {
      all &= llvm::all_of(types, hasLinalgType);
      isOneUnranked |= llvm::any_of(types, isUnranked);
    }
  });
  return all;
}

/// The operators whose results, or whose being computed at all, hang on the
/// values of short lists among the inputs.
static DenseSet<Operation *>
usersOfLists(ModuleOp module, const std::vector<ValueInfo> &inputs) {
  DenseSet<Operation *> users;
  SmallVector<Operation *> work;
  auto add = [&](Operation *op) {
    if (!isa<FunctionOpInterface, ModuleOp>(op) && users.insert(op).second)
      work.push_back(op);
  };
  module.walk([&](FunctionOpInterface func) {
    if (func.isExternal() || func.getNumArguments() != inputs.size())
      return;
    for (auto [info, arg] : llvm::zip(inputs, func.getArguments()))
      if (isShortList(info, /*mayBeOpen=*/true))
        llvm::for_each(arg.getUsers(), add);
  });
  while (!work.empty()) {
    Operation *op = work.pop_back_val();
    llvm::for_each(op->getUsers(), add);
    // What is inside, and what it yields.
    for (Region &region : op->getRegions())
      for (Operation &inner : region.getOps())
        add(&inner);
    if (op->hasTrait<OpTrait::IsTerminator>())
      add(op->getParentOp());
  }
  return users;
}

static bool isLowered(Operation *op) {
  return hasLinalgLowering(op->getName().getStringRef(),
                           /*ofSpecialCases=*/true);
}

/// Whether an operator's function body was refused. Then no operator has been
/// tried, and those without such a refusal tell nothing.
static bool isBodyRefused(Operation *op) {
  return op->hasAttr(kRefusedAttr) && !isLowered(op);
}

bool sardonyx::mayInputsHelp(ModuleOp refused,
                             const std::vector<ValueInfo> &inputs) {
  bool isOneUnranked = false;
  if (!hasAllTypes(refused, isOneUnranked))
    return false;
  const bool sizesAreOpen = leavesShapesOpen(inputs);
  const DenseSet<Operation *> ofLists = usersOfLists(refused, inputs);
  bool isAnyBodyRefused = false;
  refused.walk([&](Operation *op) { isAnyBodyRefused |= isBodyRefused(op); });
  // An input of no rank that is handed on is left with no operator at all.
  bool mayHelp = isOneUnranked && sizesAreOpen;
  WalkResult result = refused.walk([&](Operation *op) {
    if (!isa_and_nonnull<onnx::ONNXDialect>(op->getDialect()) ||
        op->hasTrait<OpTrait::IsTerminator>())
      return WalkResult::advance();
    bool mayBeLowered = isLowered(op) || hasOnnxFunctionBody(op);
    if (!mayBeLowered || computesOnComplex(op) ||
        op->hasAttr(kRefusedForGoodAttr) ||
        (isa<onnx::CustomOp>(op) && !mayRanksHelp(op)))
      return WalkResult::interrupt();
    if (isAnyBodyRefused && !isBodyRefused(op))
      return WalkResult::advance();
    // What is left around others is left because of these. Where an input has
    // no rank, no operator has been tried.
    bool isOpenHere = isOneUnranked || op->getNumRegions() != 0 ||
                      llvm::any_of(op->getOperandTypes(), isOpen) ||
                      llvm::any_of(op->getResultTypes(), isOpen);
    bool hangsOnList = ofLists.contains(op) && !isBodyRefused(op);
    if (!(sizesAreOpen && isOpenHere) && !hangsOnList)
      return WalkResult::interrupt();
    mayHelp |= isOpenHere;
    return WalkResult::advance();
  });
  return mayHelp && !result.wasInterrupted();
}
