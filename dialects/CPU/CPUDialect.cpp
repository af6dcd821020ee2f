//===- CPUDialect.cpp - The cpu dialect -----------------------------------===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "dialects/CPU/CPU.h"
#include "dialects/SDX/SDXBufferization.h"

using namespace mlir;
using namespace sardonyx;
using namespace sardonyx::cpu;

#include "dialects/CPU/CPUDialect.cpp.inc"

void CPUDialect::initialize() {
  registerAttrs();
  addOperations<
#define GET_OP_LIST
#include "dialects/CPU/CPUOps.cpp.inc"
      >();
}

void sardonyx::registerCPUBufferization(DialectRegistry &registry) {
  registry.addExtension(+[](MLIRContext *context, CPUDialect *) {
    sdx::attachDpsModel<PackedMatmulOp, /*readsInit=*/true>(*context);
    sdx::attachDpsModel<ConvOp, /*readsInit=*/true>(*context);
    sdx::attachDpsModel<PackRhsOp, /*readsInit=*/false>(*context);
    sdx::attachDpsModel<PackConvWeightsOp, /*readsInit=*/false>(*context);
    sdx::attachDpsModel<NarrowConvOp, /*readsInit=*/true>(*context);
    sdx::attachDpsModel<DepthwiseNarrowConvOp, /*readsInit=*/true>(*context);
    sdx::attachDpsModel<ChannelsLastMaxPoolOp, /*readsInit=*/true>(*context);
  });
}
