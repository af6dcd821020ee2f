//===- AttachTarget.cpp - Say which machine a module is for ---------------===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "sardonyx/Objects/Passes.h"

#include "sardonyx/Objects/Facts.h"

namespace sardonyx {
#define GEN_PASS_DEF_SDXATTACHTARGET
#include "sardonyx/Objects/Passes.h.inc"
} // namespace sardonyx

using namespace mlir;
using namespace sardonyx;

namespace {

struct SDXAttachTargetPass
    : sardonyx::impl::SDXAttachTargetBase<SDXAttachTargetPass> {
  using Base::Base;

  void runOnOperation() override {
    if (byDefault) {
      if (!sdx::getTarget(getOperation()))
        sdx::setTarget(getOperation(),
                       cpu::TargetAttr::getDefault(&getContext()));
      return;
    }
    TargetOptions options;
    options.cpu = cpu;
    options.triple = triple;
    options.features = features;
    // Tells what LLVM does not know.
    if (auto required = requiredFeatures(options); !required) {
      getOperation().emitError(llvm::toString(required.takeError()));
      return signalPassFailure();
    }
    sdx::setTarget(getOperation(), getTargetAttr(&getContext(), options));
  }
};

} // namespace
