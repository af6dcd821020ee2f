//===- LowerHostCopies.cpp - Copies of the host program to runtime calls --===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "HostLowering.h"
#include "dialects/SDX/SDX.h"
#include "sardonyx-c/RuntimeABI.h"
#include "sardonyx/Host/Passes.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Arith/Utils/Utils.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/MemRef/Utils/MemRefUtils.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

namespace sardonyx {
#define GEN_PASS_DEF_SDXLOWERHOSTCOPIES
#include "sardonyx/Host/Passes.h.inc"
} // namespace sardonyx

using namespace mlir;
using namespace sardonyx;

namespace {

/// `inKernel`, a row of any size is as well.
bool isContiguous(Value memref, bool inKernel) {
  auto type = cast<MemRefType>(memref.getType());
  return type.getLayout().isIdentity() ||
         memref::isStaticShapeAndContiguousRowMajor(type) ||
         (inKernel && type.getRank() == 1 && type.areTrailingDimsContiguous(1));
}

/// Which way a copy goes, as sdx_rt_device_copy takes it; 0: within the host's
/// memory.
int64_t directionOf(memref::CopyOp copy) {
  auto isElsewhere = [](Value memref) {
    return bool(cast<MemRefType>(memref.getType()).getMemorySpace());
  };
  bool from = isElsewhere(copy.getSource()), to = isElsewhere(copy.getTarget());
  return from && to ? SDX_RT_ON_DEVICE
         : from     ? SDX_RT_TO_HOST
         : to       ? SDX_RT_TO_DEVICE
                    : 0;
}

/// The same of copies in a row that bring bytes to the host, but for what makes
/// memory: the last one waits for all of them.
int64_t directionInRow(memref::CopyOp copy) {
  const int64_t direction = directionOf(copy);
  if (direction != SDX_RT_TO_HOST)
    return direction;
  Operation *next = copy->getNextNode();
  while (next && (isMemoryEffectFree(next) || isa<memref::AllocOp>(next)))
    next = next->getNextNode();
  auto other = dyn_cast_or_null<memref::CopyOp>(next);
  return other && directionOf(other) == SDX_RT_TO_HOST ? SDX_RT_TO_HOST_LATER
                                                       : direction;
}

/// The copies of one function.
class CopyLowering {
public:
  CopyLowering(func::FuncOp func, SymbolTable &symbols)
      : func(func), symbols(symbols),
        pointer(LLVM::LLVMPointerType::get(func.getContext())),
        i64(IntegerType::get(func.getContext(), 64)) {}

  LogicalResult run() {
    SmallVector<memref::CopyOp> copies, strided;
    bool inKernel = func->hasAttr(sdx::kKernelAttr);
    func.walk([&](memref::CopyOp copy) {
      bool whole = isContiguous(copy.getSource(), inKernel) &&
                   isContiguous(copy.getTarget(), inKernel);
      (whole ? copies : strided).push_back(copy);
    });
    SmallVector<int64_t> directions =
        llvm::map_to_vector(copies, directionInRow);
    for (auto [copy, direction] : llvm::zip_equal(copies, directions))
      copyWhole(copy, direction);
    if (strided.empty())
      return success();
    for (memref::CopyOp copy : strided)
      if (directionOf(copy))
        return copy.emitOpError("to or from a device is not of neighbouring "
                                "elements");
    // One description for all: each is read before the next is written.
    int64_t rank = 0;
    for (memref::CopyOp copy : strided)
      rank = std::max(rank,
                      cast<MemRefType>(copy.getSource().getType()).getRank());
    auto entry = OpBuilder::atBlockBegin(&func.getBody().front());
    Value count = LLVM::ConstantOp::create(entry, func.getLoc(), i64, 3 * rank);
    layout = LLVM::AllocaOp::create(entry, func.getLoc(), pointer, i64, count);
    for (memref::CopyOp copy : strided)
      copyStrided(copy);
    return success();
  }

private:
  LLVM::LLVMFuncOp declare(StringRef name, ArrayRef<Type> args) {
    return declareRuntime(symbols, name,
                          LLVM::LLVMVoidType::get(func.getContext()), args);
  }

  static int64_t elementBytes(memref::CopyOp copy) {
    auto type = cast<MemRefType>(copy.getSource().getType());
    return (type.getElementTypeBitWidth() + 7) / 8;
  }

  void copyWhole(memref::CopyOp copy, int64_t direction) {
    OpBuilder b(copy);
    Location loc = copy.getLoc();
    auto source = describe(b, loc, copy.getSource());
    auto target = describe(b, loc, copy.getTarget());
    Value bytes = LLVM::ConstantOp::create(b, loc, i64, elementBytes(copy));
    for (OpFoldResult size : source.getConstifiedMixedSizes())
      bytes = LLVM::MulOp::create(b, loc, bytes, asInteger(b, loc, size));
    Value to = address(copy, copy.getTarget(), target);
    Value from = address(copy, copy.getSource(), source);
    if (direction) {
      Value kind = LLVM::ConstantOp::create(b, loc, i64, direction);
      LLVM::CallOp::create(
          b, loc, declare("sdx_rt_device_copy", {i64, pointer, pointer, i64}),
          ValueRange{kind, to, from, bytes});
    } else {
      LLVM::MemcpyOp::create(b, loc, to, from, bytes, /*isVolatile=*/false);
    }
    copy.erase();
  }

  void copyStrided(memref::CopyOp copy) {
    OpBuilder b(copy);
    Location loc = copy.getLoc();
    auto source = describe(b, loc, copy.getSource());
    auto target = describe(b, loc, copy.getTarget());
    SmallVector<OpFoldResult> values = source.getConstifiedMixedSizes();
    llvm::append_range(values, source.getConstifiedMixedStrides());
    llvm::append_range(values, target.getConstifiedMixedStrides());
    for (auto [slot, value] : llvm::enumerate(values)) {
      Value place = LLVM::GEPOp::create(
          b, loc, pointer, i64, layout,
          ArrayRef<LLVM::GEPArg>{static_cast<int32_t>(slot)});
      LLVM::StoreOp::create(b, loc, asInteger(b, loc, value), place);
    }
    auto type = cast<MemRefType>(copy.getSource().getType());
    Value bytes = LLVM::ConstantOp::create(b, loc, i64, elementBytes(copy));
    Value rank = LLVM::ConstantOp::create(b, loc, i64, type.getRank());
    LLVM::CallOp::create(
        b, loc, declare("sdx_rt_copy", {i64, i64, pointer, pointer, pointer}),
        ValueRange{bytes, rank, address(copy, copy.getSource(), source),
                   address(copy, copy.getTarget(), target), layout});
    copy.erase();
  }

  static memref::ExtractStridedMetadataOp describe(OpBuilder &b, Location loc,
                                                   Value memref) {
    return memref::ExtractStridedMetadataOp::create(b, loc, memref);
  }

  Value asInteger(OpBuilder &b, Location loc, OpFoldResult value) {
    Value index = getValueOrCreateConstantIndexOp(b, loc, value);
    return arith::IndexCastOp::create(b, loc, i64, index);
  }

  /// Of the first element of `memref`.
  Value address(memref::CopyOp copy, Value memref,
                memref::ExtractStridedMetadataOp metadata) {
    OpBuilder b(copy);
    Location loc = copy.getLoc();
    Value base = memref::ExtractAlignedPointerAsIndexOp::create(b, loc, memref);
    Value offset = getValueOrCreateConstantIndexOp(
        b, loc, metadata.getConstifiedMixedOffset());
    Value size = arith::ConstantIndexOp::create(b, loc, elementBytes(copy));
    Value place = arith::AddIOp::create(
        b, loc, base, arith::MulIOp::create(b, loc, offset, size));
    return LLVM::IntToPtrOp::create(b, loc, pointer, asInteger(b, loc, place));
  }

  func::FuncOp func;
  SymbolTable &symbols;
  Type pointer, i64;
  Value layout;
};

struct LowerCopiesPass
    : sardonyx::impl::SDXLowerHostCopiesBase<LowerCopiesPass> {
  void runOnOperation() override {
    ModuleOp module = getOperation();
    SymbolTable symbols(module);
    for (auto func : llvm::to_vector(module.getOps<func::FuncOp>()))
      if (!func.isExternal() && failed(CopyLowering(func, symbols).run()))
        return signalPassFailure();
  }
};

} // namespace
