//===- Verify.cpp - What kernels must keep to -----------------------------===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "dialects/NV/NV.h"
#include "sardonyx/Targets/NVPTX/Passes.h"

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Interfaces/DataLayoutInterfaces.h"

namespace sardonyx {
#define GEN_PASS_DEF_NVVERIFY
#include "sardonyx/Targets/NVPTX/Passes.h.inc"
} // namespace sardonyx

using namespace mlir;
using namespace sardonyx;

namespace {

/// Bytes of the parameters of a kernel, by CUDA's rules for all devices.
constexpr uint64_t kParameterBytes = 4096;
/// Bytes that a thread has of its own.
constexpr uint64_t kLocalBytes = 4096;
/// Bytes of shared memory that a kernel can declare; more is asked for when it
/// is started.
constexpr uint64_t kStaticSharedBytes = 48 * 1024;
constexpr unsigned kSharedSpace = 3;

struct VerifyPass : sardonyx::impl::NVVerifyBase<VerifyPass> {
  using Base::Base;

  void runOnOperation() override {
    DataLayout layout(getOperation());
    bool ok = true;
    uint64_t shared = 0;
    for (auto global : getOperation().getOps<LLVM::GlobalOp>())
      if (global.getAddrSpace() == kSharedSpace)
        shared += layout.getTypeSize(global.getType());
    if (shared > kStaticSharedBytes)
      ok = refuse(getOperation(), "declares more shared memory than there is");
    for (auto func : getOperation().getOps<LLVM::LLVMFuncOp>())
      if (!func.isExternal())
        ok &= verify(func, layout);
    if (!ok)
      signalPassFailure();
  }

private:
  static bool refuse(Operation *op, const Twine &what) {
    op->emitOpError(what);
    return false;
  }

  static bool verify(LLVM::LLVMFuncOp func, const DataLayout &layout) {
    bool ok = true;
    uint64_t parameters = 0, local = 0;
    for (auto [i, type] : llvm::enumerate(func.getArgumentTypes())) {
      auto inPlace = func.getArgAttrOfType<TypeAttr>(
          i, LLVM::LLVMDialect::getByValAttrName());
      Type held = inPlace ? inPlace.getValue() : type;
      parameters += llvm::alignTo(layout.getTypeSize(held).getFixedValue(), 8);
    }
    if (parameters > kParameterBytes)
      ok = refuse(func, "has more parameters than a kernel can");
    func.walk([&](Operation *op) {
      auto call = dyn_cast<LLVM::CallOp>(op);
      if (call)
        ok = refuse(op, "is a function that no instruction computes");
      auto variable = dyn_cast<LLVM::AllocaOp>(op);
      if (!variable)
        return;
      IntegerAttr count;
      if (!matchPattern(variable.getArraySize(), m_Constant(&count)))
        ok = refuse(op, "is memory of a thread whose size is not known");
      else
        local += count.getInt() *
                 layout.getTypeSize(variable.getElemType()).getFixedValue();
    });
    if (local > kLocalBytes)
      ok = refuse(func, "has more memory for each thread than it may");
    return ok;
  }
};

} // namespace
