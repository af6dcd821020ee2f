//===- SDXDialect.cpp - The sdx dialect -------------------------*- C++ -*-===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "dialects/SDX/SDX.h"

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
