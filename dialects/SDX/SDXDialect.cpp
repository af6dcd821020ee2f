//===- SDXDialect.cpp - The sdx dialect -------------------------*- C++ -*-===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "dialects/SDX/SDX.h"

#include "sardonyx-c/RuntimeABI.h"

using namespace mlir;
using namespace sardonyx;
using namespace sardonyx::sdx;

#include "dialects/SDX/SDXDialect.cpp.inc"

std::string sdx::describeOrigin(Location loc) {
  std::string result;
  loc->walk([&](Location part) {
    auto fused = dyn_cast<FusedLoc>(part);
    auto text = fused ? dyn_cast_or_null<StringAttr>(fused.getMetadata())
                      : StringAttr();
    if (!text)
      return WalkResult::advance();
    result = text.str();
    return WalkResult::interrupt();
  });
  return result;
}

bool sdx::hasOneReader(Value value) {
  return llvm::count_if(value.getUses(), [](OpOperand &use) {
           return !isObservation(use.getOwner());
         }) == 1;
}

int64_t sdx::getObservedType(Type type) {
  if (type.isF32())
    return SDX_RT_F32;
  if (type.isF16())
    return SDX_RT_F16;
  if (type.isBF16())
    return SDX_RT_BF16;
  return type.isF64() ? SDX_RT_F64 : -1;
}

TargetAttrInterface sdx::getTarget(Operation *op) {
  for (; op; op = op->getParentOp())
    if (auto target = op->getAttrOfType<TargetAttrInterface>(kTargetAttr))
      return target;
  return nullptr;
}

void sdx::setTarget(Operation *op, TargetAttrInterface target) {
  op->setAttr(kTargetAttr, target);
}

FusionLimits sdx::getFusionLimits(Operation *op) {
  TargetAttrInterface target = getTarget(op);
  return target ? target.getFusionLimits() : FusionLimits();
}

LogicalResult SDXDialect::verifyOperationAttribute(Operation *op,
                                                   NamedAttribute attr) {
  if (attr.getName() == kTargetAttr &&
      !isa<TargetAttrInterface>(attr.getValue()))
    return op->emitOpError("'sdx.target' must be a machine, as #cpu.target<>, "
                           "got ")
           << attr.getValue();
  return success();
}

void SDXDialect::initialize() {
  registerAttrs();
  addOperations<
#define GET_OP_LIST
#include "dialects/SDX/SDXOps.cpp.inc"
      >();
}
