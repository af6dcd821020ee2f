//===- CountOps.cpp - An example of a pass plugin -------------------------===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A pass that lives outside the compiler. Copy this file and its few lines of
// CMake to try an idea on real models:
//
//   onnx-opt model.mlir --load-pass-plugin=CountOps.so --count-ops
//
//===----------------------------------------------------------------------===//

#include "dialects/ONNX/ONNX.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Pass/Pass.h"
#include "mlir/Tools/Plugins/PassPlugin.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/Config/llvm-config.h"

#include <map>

using namespace mlir;

namespace {
/// Remarks on each function how often it holds each op of the onnx dialect.
struct CountOpsPass
    : public PassWrapper<CountOpsPass, OperationPass<func::FuncOp>> {
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(CountOpsPass)

  StringRef getArgument() const override { return "count-ops"; }
  StringRef getDescription() const override {
    return "Count the onnx ops of each function";
  }

  void runOnOperation() override {
    std::map<std::string, int64_t> counts; // sorted, so that the text is stable
    getOperation().walk([&](Operation *op) {
      if (op->getName().getDialectNamespace() == "onnx")
        ++counts[op->getName().getStringRef().str()];
    });
    for (auto &[name, count] : counts)
      getOperation().emitRemark() << count << " x " << name;
  }
};
} // namespace

extern "C" __attribute__((visibility("default"), weak)) PassPluginLibraryInfo
mlirGetPassPluginInfo() {
  return {MLIR_PLUGIN_API_VERSION, "CountOps", LLVM_VERSION_STRING,
          [] { PassRegistration<CountOpsPass>(); }};
}
