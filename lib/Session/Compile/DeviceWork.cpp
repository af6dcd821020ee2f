//===- DeviceWork.cpp - What a device does of a model ---------------------===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "lib/Session/Compile/DeviceWork.h"

#include "dialects/SDX/SDX.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "llvm/ADT/StringSet.h"

using namespace mlir;
using namespace sardonyx;

static bool isOnDevice(Value memory) {
  return bool(cast<MemRefType>(memory.getType()).getMemorySpace());
}

DeviceReport sardonyx::findDeviceWork(ModuleOp module) {
  DeviceReport report;
  llvm::StringSet<> seen;
  for (auto func : module.getOps<func::FuncOp>()) {
    if (func->hasAttr(sdx::kKernelAttr))
      continue;
    func.walk([&](Operation *op) {
      if (isa<sdx::CallOp>(op))
        ++report.kernels;
      if (isa<sdx::RuntimeCallOp>(op)) {
        std::string node = sdx::describeOrigin(op->getLoc());
        if (node.empty())
          node = "a node without a name";
        if (seen.insert(node).second)
          report.onProcessor.push_back(node);
      }
      auto copy = dyn_cast<memref::CopyOp>(op);
      if (!copy || isOnDevice(copy.getSource()) == isOnDevice(copy.getTarget()))
        return;
      ++(isOnDevice(copy.getTarget()) ? report.copiesToDevice
                                      : report.copiesToHost);
    });
  }
  return report;
}

MaybeError sardonyx::refuseHostWork(const DeviceReport &report) {
  const size_t count = report.onProcessor.size();
  if (count == 0)
    return std::nullopt;
  std::string text =
      "the CUDA provider has no kernels for " +
      (count == 1 ? std::string("a node") : std::to_string(count) + " nodes") +
      " of the model, and the CPU's may not be used: ";
  for (size_t i = 0; i < count; ++i)
    text += (i ? ", " : "") + report.onProcessor[i];
  return Error(ErrorKind::Unsupported, text);
}
