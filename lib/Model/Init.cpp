//===- Init.cpp - What a model computes once ------------------------------===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "sardonyx/Model/Init.h"

using namespace sardonyx;
using runtime::OutputSlot;

MaybeError sardonyx::runInit(runtime::RunContext &context, sdx_entry_point init,
                             ArgumentTable &arguments,
                             const std::vector<uint32_t> &elementBytes,
                             const std::vector<bool> &onDevice,
                             const runtime::RunLimits &limits) {
  for (size_t i = 0; i < elementBytes.size(); ++i) {
    OutputSlot slot;
    slot.name = "persistent " + std::to_string(i);
    slot.elementBytes = elementBytes[i];
    slot.wantedOnDevice = i < onDevice.size() && onDevice[i];
    context.outputs().push_back(std::move(slot));
  }
  if (!context.run(init, arguments.pointers(), limits))
    return Error(ErrorKind::Failed,
                 "preparing the weights failed: " + context.failure());
  for (const OutputSlot &slot : context.outputs())
    if (!slot.given)
      return Error(ErrorKind::Failed,
                   "internal error: sdx_init gave no " + slot.name);
  return std::nullopt;
}
