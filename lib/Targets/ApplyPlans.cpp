//===- ApplyPlans.cpp - Give kernels their plans --------------------------===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "sardonyx/Targets/Passes.h"
#include "sardonyx/Targets/Plans.h"

namespace sardonyx {
#define GEN_PASS_DEF_SDXAPPLYPLANS
#include "sardonyx/Targets/Passes.h.inc"
} // namespace sardonyx

using namespace sardonyx;

namespace {

struct ApplyPlansPass : sardonyx::impl::SDXApplyPlansBase<ApplyPlansPass> {
  using Base::Base;

  void runOnOperation() override { applyPlans(getOperation(), plan); }
};

} // namespace
