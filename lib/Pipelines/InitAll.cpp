//===- InitAll.cpp - Register everything ----------------------------------===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "sardonyx/InitAll.h"

#include "sardonyx/Bridge/Passes.h"
#include "sardonyx/Codegen/CPU/Passes.h"
#include "sardonyx/Conversion/Passes.h"
#include "sardonyx/Dispatch/Passes.h"
#include "sardonyx/Host/Passes.h"
#include "sardonyx/Pipelines/Pipelines.h"
#include "sardonyx/Transforms/Passes.h"

#include "mlir/InitAllDialects.h"
#include "mlir/InitAllExtensions.h"
#include "sardonyx/Target/Passes.h"

#include "mlir/InitAllPasses.h"

void sardonyx::registerAllDialects(mlir::DialectRegistry &registry) {
  mlir::registerAllDialects(registry);
  mlir::registerAllExtensions(registry);
  registerCompilerDialects(registry);
}

void sardonyx::registerAllPasses() {
  mlir::registerAllPasses();
  registerSardonyxTransformsPasses();
  registerSardonyxBridgePasses();
  registerSardonyxConversionPasses();
  registerSardonyxDispatchPasses();
  registerSardonyxCodegenCPUPasses();
  registerSardonyxHostPasses();
  registerSardonyxTargetPasses();
  registerPipelines();
}
