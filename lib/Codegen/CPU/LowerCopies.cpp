//===- LowerCopies.cpp - Copies of the host program to runtime calls ------===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "dialects/SDX/SDX.h"
#include "sardonyx/Codegen/CPU/Passes.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Arith/Utils/Utils.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/MemRef/Utils/MemRefUtils.h"

namespace sardonyx {
#define GEN_PASS_DEF_LOWERCOPIESPASS
#include "sardonyx/Codegen/CPU/Passes.h.inc"
} // namespace sardonyx

using namespace mlir;
using namespace sardonyx;

namespace {

/// MLIR makes a call of memcpy of these.
bool isContiguous(Value memref) {
  auto type = cast<MemRefType>(memref.getType());
  return type.getLayout().isIdentity() ||
         memref::isStaticShapeAndContiguousRowMajor(type);
}

class CopyLowering {
public:
  explicit CopyLowering(func::FuncOp func)
      : pointer(LLVM::LLVMPointerType::get(func.getContext())),
        i64(IntegerType::get(func.getContext(), 64)) {
    func.walk([&](memref::CopyOp copy) {
      if (isContiguous(copy.getSource()) && isContiguous(copy.getTarget()))
        return;
      copies.push_back(copy);
      rank = std::max(rank,
                      cast<MemRefType>(copy.getSource().getType()).getRank());
    });
    // One description for all copies: each is read before the next is written.
    if (!copies.empty()) {
      auto entry = OpBuilder::atBlockBegin(&func.getBody().front());
      Value count =
          LLVM::ConstantOp::create(entry, func.getLoc(), i64, 3 * rank);
      layout =
          LLVM::AllocaOp::create(entry, func.getLoc(), pointer, i64, count);
    }
  }

  bool isNeeded() const { return !copies.empty(); }

  void run(LLVM::LLVMFuncOp runtime) {
    for (memref::CopyOp copy : copies)
      lower(copy, runtime);
  }

private:
  void lower(memref::CopyOp copy, LLVM::LLVMFuncOp runtime) {
    OpBuilder b(copy);
    Location loc = copy.getLoc();
    auto type = cast<MemRefType>(copy.getSource().getType());
    int64_t bytes = (type.getElementTypeBitWidth() + 7) / 8;
    auto source =
        memref::ExtractStridedMetadataOp::create(b, loc, copy.getSource());
    auto target =
        memref::ExtractStridedMetadataOp::create(b, loc, copy.getTarget());
    SmallVector<OpFoldResult> values = source.getConstifiedMixedSizes();
    llvm::append_range(values, source.getConstifiedMixedStrides());
    llvm::append_range(values, target.getConstifiedMixedStrides());
    for (auto [slot, value] : llvm::enumerate(values))
      store(b, loc, value, slot);
    auto constant = [&](int64_t value) -> Value {
      return LLVM::ConstantOp::create(b, loc, i64, value);
    };
    LLVM::CallOp::create(
        b, loc, runtime,
        ValueRange{constant(bytes), constant(type.getRank()),
                   address(b, loc, copy.getSource(), source, bytes),
                   address(b, loc, copy.getTarget(), target, bytes), layout});
    copy.erase();
  }

  void store(OpBuilder &b, Location loc, OpFoldResult value, int32_t slot) {
    Value index = getValueOrCreateConstantIndexOp(b, loc, value);
    Value integer = arith::IndexCastOp::create(b, loc, i64, index);
    Value place = LLVM::GEPOp::create(b, loc, pointer, i64, layout,
                                      ArrayRef<LLVM::GEPArg>{slot});
    LLVM::StoreOp::create(b, loc, integer, place);
  }

  /// Of the first element of `memref`.
  Value address(OpBuilder &b, Location loc, Value memref,
                memref::ExtractStridedMetadataOp metadata, int64_t bytes) {
    Value base = memref::ExtractAlignedPointerAsIndexOp::create(b, loc, memref);
    Value offset = getValueOrCreateConstantIndexOp(
        b, loc, metadata.getConstifiedMixedOffset());
    Value size = arith::ConstantIndexOp::create(b, loc, bytes);
    Value place = arith::AddIOp::create(
        b, loc, base, arith::MulIOp::create(b, loc, offset, size));
    Value integer = arith::IndexCastOp::create(b, loc, i64, place);
    return LLVM::IntToPtrOp::create(b, loc, pointer, integer);
  }

  Type pointer, i64;
  SmallVector<memref::CopyOp> copies;
  int64_t rank = 0;
  Value layout;
};

struct LowerCopiesPass : sardonyx::impl::LowerCopiesPassBase<LowerCopiesPass> {
  void runOnOperation() override {
    ModuleOp module = getOperation();
    LLVM::LLVMFuncOp runtime;
    for (auto func : llvm::to_vector(module.getOps<func::FuncOp>())) {
      if (func.isExternal())
        continue;
      CopyLowering lowering(func);
      if (!lowering.isNeeded())
        continue;
      if (func->hasAttr(sdx::kKernelAttr)) {
        func.emitOpError("copies between strided buffers; a kernel has loops");
        return signalPassFailure();
      }
      if (!runtime)
        runtime = declareRuntime(module);
      lowering.run(runtime);
    }
  }

private:
  static LLVM::LLVMFuncOp declareRuntime(ModuleOp module) {
    auto b = OpBuilder::atBlockBegin(module.getBody());
    Type i64 = b.getI64Type();
    Type pointer = LLVM::LLVMPointerType::get(b.getContext());
    return LLVM::LLVMFuncOp::create(
        b, module.getLoc(), "sdx_rt_copy",
        LLVM::LLVMFunctionType::get(LLVM::LLVMVoidType::get(b.getContext()),
                                    {i64, i64, pointer, pointer, pointer}));
  }
};

} // namespace
