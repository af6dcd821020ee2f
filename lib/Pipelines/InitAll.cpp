//===- InitAll.cpp - Register everything ----------------------------------===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "sardonyx/InitAll.h"

#include "sardonyx/Bridge/Passes.h"
#include "sardonyx/Conversion/Passes.h"
#include "sardonyx/Dispatch/Passes.h"
#include "sardonyx/Host/Passes.h"
#include "sardonyx/Objects/Passes.h"
#include "sardonyx/Pipelines/Pipelines.h"
#include "sardonyx/Targets/Common/Passes.h"
#include "sardonyx/Targets/Passes.h"
#include "sardonyx/Transforms/Passes.h"

#include "mlir/InitAllDialects.h"
#include "mlir/InitAllExtensions.h"

#include "mlir/InitAllPasses.h"

void sardonyx::registerAllDialects(mlir::DialectRegistry &registry) {
  mlir::registerAllDialects(registry);
  mlir::registerAllExtensions(registry);
  registerCompilerDialects(registry);
  registerLinkedTargets(registry);
}

void sardonyx::registerAllPasses() {
  mlir::registerAllPasses();
  registerSardonyxTransformsPasses();
  registerSardonyxBridgePasses();
  registerSardonyxConversionPasses();
  registerSardonyxDispatchPasses();
  registerSardonyxTargetsPasses();
  registerSardonyxTargetsCommonPasses();
  registerSardonyxHostPasses();
  registerSardonyxObjectsPasses();
  for (const TargetInfo &target : getLinkedTargets())
    target.registerPasses();
  registerPipelines();
}
