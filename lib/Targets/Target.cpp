//===- Target.cpp - What makes code for a machine -------------------------===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "sardonyx/Targets/Target.h"

using namespace mlir;
using namespace sardonyx;

const TargetInterface *TargetInterface::find(Operation *op) {
  sdx::TargetAttrInterface target = sdx::getTarget(op);
  if (!target) {
    op->emitError("no 'sdx.target' says which machine to compile for");
    return nullptr;
  }
  const auto *result =
      target.getDialect().getRegisteredInterface<TargetInterface>();
  if (!result)
    op->emitError("no code can be made for the target '")
        << target.getDialect().getNamespace() << "': it is not registered";
  return result;
}

sdx::TargetAttrInterface
sardonyx::limitMachine(sdx::TargetAttrInterface machine,
                       const MachineLimits &limits) {
  const auto *target =
      machine.getDialect().getRegisteredInterface<TargetInterface>();
  return target ? target->limit(machine, limits) : machine;
}

void sardonyx::registerLinkedTargets(DialectRegistry &registry) {
  for (const TargetInfo &target : getLinkedTargets())
    target.registerTarget(registry);
}
