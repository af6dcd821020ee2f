//===- LowerDeviceOps.cpp - The host program's side of a device -----------===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "HostLowering.h"
#include "TextConstant.h"
#include "dialects/SDX/SDX.h"
#include "lib/Dispatch/Utils.h"
#include "sardonyx-c/RuntimeABI.h"
#include "sardonyx/Host/Passes.h"
#include "sardonyx/NodeName.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/ADT/TypeSwitch.h"

namespace sardonyx {
#define GEN_PASS_DEF_SDXLOWERDEVICEOPS
#include "sardonyx/Host/Passes.h.inc"
} // namespace sardonyx

using namespace mlir;
using namespace sardonyx;

namespace {

struct LowerDeviceOpsPass
    : sardonyx::impl::SDXLowerDeviceOpsBase<LowerDeviceOpsPass> {
  void runOnOperation() override {
    ModuleOp module = getOperation();
    SymbolTable table(module);
    symbols = &table;
    kernelIndices.clear();
    numNames = 0;
    LLVMTypeConverter converter(&getContext());
    types = &converter;
    if (failed(verifyMemory(module)))
      return signalPassFailure();
    SmallVector<Operation *> ops;
    module.walk([&](Operation *op) {
      if (isa<sdx::LaunchOp, sdx::FailureRecordOp>(op))
        ops.push_back(op);
      if (!isElsewhere(op))
        return;
      if (isa<memref::AllocOp, memref::DeallocOp>(op))
        ops.push_back(op);
      if (auto alloc = dyn_cast<memref::AllocOp>(op))
        guardAllocation(alloc);
      if (isa<sdx::ArenaOp, sdx::OutputBufferOp>(op))
        op->setAttr(kOnDeviceAttr, UnitAttr::get(&getContext()));
    });
    // An address is an address: from here on no type says where it is.
    for (auto func : module.getOps<func::FuncOp>())
      dropMemorySpaces(func);
    for (Operation *op : ops) {
      OpBuilder b(op);
      LogicalResult lowered =
          llvm::TypeSwitch<Operation *, LogicalResult>(op)
              .Case([&](sdx::LaunchOp op) { return lowerLaunch(b, op); })
              .Case([&](sdx::FailureRecordOp op) {
                return lowerFailureRecord(b, op);
              })
              .Case([&](memref::AllocOp op) { return lowerAlloc(b, op); })
              .Case([&](memref::DeallocOp op) { return lowerFree(b, op); });
      if (failed(lowered))
        return signalPassFailure();
      op->erase();
    }
  }

private:
  /// What the host does to memory of a device goes through the runtime, and it
  /// computes addresses there.
  static LogicalResult verifyMemory(ModuleOp module) {
    WalkResult result = module.walk([](Operation *op) {
      if (!isa<memref::LoadOp, memref::StoreOp, sdx::RuntimeCallOp>(op))
        return WalkResult::advance();
      for (Value value : op->getOperands())
        if (Attribute space = spaceOf(value)) {
          op->emitOpError("is in memory space ")
              << space << ", which the host has no access to";
          return WalkResult::interrupt();
        }
      return WalkResult::advance();
    });
    return failure(result.wasInterrupted());
  }

  static Attribute spaceOf(Value value) {
    auto type = dyn_cast<BaseMemRefType>(value.getType());
    return type ? type.getMemorySpace() : Attribute();
  }

  /// Whether the memory that `op` makes or gives back is a device's.
  static bool isElsewhere(Operation *op) {
    if (auto dealloc = dyn_cast<memref::DeallocOp>(op))
      return bool(spaceOf(dealloc.getMemref()));
    return op->getNumResults() == 1 && spaceOf(op->getResult(0));
  }

  LLVM::LLVMFuncOp declare(StringRef name, Type result, ArrayRef<Type> args) {
    return declareRuntime(*symbols, name, result, args);
  }

  /// `count` words in the frame of the function that `op` is in.
  Value allocateWords(Operation *op, int64_t count) {
    auto func = op->getParentOfType<func::FuncOp>();
    auto entry = OpBuilder::atBlockBegin(&func.getBody().front());
    auto pointer = LLVM::LLVMPointerType::get(op->getContext());
    Value size = LLVM::ConstantOp::create(entry, op->getLoc(),
                                          entry.getI64Type(), count);
    return LLVM::AllocaOp::create(entry, op->getLoc(), pointer,
                                  entry.getI64Type(), size);
  }

  void storeWord(OpBuilder &b, Location loc, Value word, Value words,
                 int64_t index) {
    Value slot = LLVM::GEPOp::create(
        b, loc, LLVM::LLVMPointerType::get(b.getContext()), b.getI64Type(),
        words, ArrayRef<LLVM::GEPArg>{static_cast<int32_t>(index)});
    LLVM::StoreOp::create(b, loc, word, slot);
  }

  /// The address of the first element of `memref`, an integer.
  Value addressOf(OpBuilder &b, Location loc, Value memref) {
    auto type = cast<MemRefType>(memref.getType());
    Value base = memref::ExtractAlignedPointerAsIndexOp::create(b, loc, memref);
    if (!type.getLayout().isIdentity()) {
      auto metadata = memref::ExtractStridedMetadataOp::create(b, loc, memref);
      Value bytes = arith::ConstantIndexOp::create(
          b, loc, (type.getElementTypeBitWidth() + 7) / 8);
      Value shift = arith::MulIOp::create(b, loc, metadata.getOffset(), bytes);
      base = arith::AddIOp::create(b, loc, base, shift);
    }
    return arith::IndexCastOp::create(b, loc, b.getI64Type(), base);
  }

  /// A parameter of a kernel in the low bytes of 64 bits, the others zero.
  Value wordOf(OpBuilder &b, Location loc, Value value) {
    Type i64 = b.getI64Type();
    if (isa<MemRefType>(value.getType()))
      return addressOf(b, loc, value);
    if (value.getType().isIndex())
      return arith::IndexCastOp::create(b, loc, i64, value);
    const unsigned width = value.getType().getIntOrFloatBitWidth();
    if (isa<FloatType>(value.getType()))
      value = arith::BitcastOp::create(b, loc, b.getIntegerType(width), value);
    return width == 64 ? value : arith::ExtUIOp::create(b, loc, i64, value);
  }

  /// The position of a kernel in the list that the images have.
  std::optional<int64_t> findKernel(StringRef name) {
    if (kernelIndices.empty())
      if (auto images =
              getOperation()->getAttrOfType<ArrayAttr>(sdx::kImagesAttr))
        for (auto image : images.getAsRange<DictionaryAttr>())
          if (auto kernels = image.getAs<ArrayAttr>("kernels"))
            for (auto [i, kernel] :
                 llvm::enumerate(kernels.getAsRange<DictionaryAttr>()))
              kernelIndices[kernel.getAs<StringAttr>("name")] = i;
    auto found = kernelIndices.find(name);
    return found == kernelIndices.end() ? std::nullopt
                                        : std::optional(found->second);
  }

  LogicalResult lowerLaunch(OpBuilder &b, sdx::LaunchOp launch) {
    Location loc = launch.getLoc();
    Type i64 = b.getI64Type();
    auto pointer = LLVM::LLVMPointerType::get(b.getContext());
    std::optional<int64_t> kernel = findKernel(launch.getKernel());
    if (!kernel)
      return launch.emitOpError("starts '")
             << launch.getKernel() << "', which no image has";
    auto constant = [&](int64_t value) -> Value {
      return LLVM::ConstantOp::create(b, loc, i64, value);
    };
    SmallVector<Value> sizes;
    for (Value blocks : launch.getBlocks())
      sizes.push_back(arith::IndexCastOp::create(b, loc, i64, blocks));
    for (int64_t threads : launch.getThreads())
      sizes.push_back(constant(threads));
    const int64_t maps = launch.countMaps();
    static_assert(sdx::LaunchOp::kMapWords == SDX_RT_MAP_WORDS);
    sizes.push_back(constant(launch.getShared()));
    sizes.push_back(constant(maps));
    Value size = allocateWords(launch, sizes.size());
    for (auto [i, value] : llvm::enumerate(sizes))
      storeWord(b, loc, value, size, i);
    const int64_t count =
        launch.getArgs().size() + maps * (SDX_RT_MAP_WORDS - 1);
    Value args = allocateWords(launch, std::max<int64_t>(count, 1));
    int64_t at = 0;
    for (Value arg : launch.getArgs()) {
      if (!isa<VectorType>(arg.getType())) {
        storeWord(b, loc, wordOf(b, loc, arg), args, at++);
        continue;
      }
      for (int64_t word = 0; word < SDX_RT_MAP_WORDS; ++word)
        storeWord(b, loc, b.createOrFold<vector::ExtractOp>(loc, arg, word),
                  args, at++);
    }
    LLVM::CallOp::create(
        b, loc,
        declare("sdx_rt_launch", LLVM::LLVMVoidType::get(b.getContext()),
                {i64, pointer, i64, pointer}),
        ValueRange{constant(*kernel), size, constant(count), args});
    return success();
  }

  LogicalResult lowerFailureRecord(OpBuilder &b, sdx::FailureRecordOp record) {
    Location loc = record.getLoc();
    auto pointer = LLVM::LLVMPointerType::get(b.getContext());
    auto call = LLVM::CallOp::create(
        b, loc, declare("sdx_rt_device_failure", pointer, {}), ValueRange());
    Value words = LLVM::ConstantOp::create(b, loc, b.getI64Type(),
                                           sdx::FailureRecordOp::kWords);
    record.getRecord().replaceAllUsesWith(makeBuffer(
        b, loc, *types, cast<MemRefType>(record.getRecord().getType()),
        call.getResult(), words));
    return success();
  }

  LogicalResult lowerAlloc(OpBuilder &b, memref::AllocOp alloc) {
    Location loc = alloc.getLoc();
    MemRefType type = alloc.getType();
    Type i64 = b.getI64Type();
    auto pointer = LLVM::LLVMPointerType::get(b.getContext());
    if (!type.getLayout().isIdentity())
      return alloc.emitOpError("must have no layout");
    Value bytes = LLVM::ConstantOp::create(
        b, loc, i64, (type.getElementTypeBitWidth() + 7) / 8);
    SmallVector<Value> sizes;
    auto dynamic = alloc.getDynamicSizes().begin();
    for (int64_t dim : type.getShape()) {
      sizes.push_back(
          ShapedType::isDynamic(dim)
              ? arith::IndexCastOp::create(b, loc, i64, *dynamic++).getResult()
              : LLVM::ConstantOp::create(b, loc, i64, dim).getResult());
      bytes = LLVM::MulOp::create(b, loc, bytes, sizes.back());
    }
    std::string node = describeNode(loc);
    Value name =
        node.empty()
            ? LLVM::ZeroOp::create(b, loc, pointer).getResult()
            : LLVM::AddressOfOp::create(
                  b, loc,
                  createText(getOperation(), loc,
                             "sdx_device_node_" + Twine(numNames++), node))
                  .getResult();
    auto call = LLVM::CallOp::create(
        b, loc, declare("sdx_rt_device_alloc", pointer, {i64, pointer}),
        ValueRange{bytes, name});
    alloc.getResult().replaceAllUsesWith(
        makeBuffer(b, loc, *types, type, call.getResult(), sizes));
    return success();
  }

  LogicalResult lowerFree(OpBuilder &b, memref::DeallocOp dealloc) {
    Location loc = dealloc.getLoc();
    auto pointer = LLVM::LLVMPointerType::get(b.getContext());
    Value address = memref::ExtractAlignedPointerAsIndexOp::create(
        b, loc, dealloc.getMemref());
    address = arith::IndexCastOp::create(b, loc, b.getI64Type(), address);
    LLVM::CallOp::create(
        b, loc,
        declare("sdx_rt_device_free", LLVM::LLVMVoidType::get(b.getContext()),
                {pointer}),
        LLVM::IntToPtrOp::create(b, loc, pointer, address).getResult());
    return success();
  }

  SymbolTable *symbols = nullptr;
  LLVMTypeConverter *types = nullptr;
  llvm::StringMap<int64_t> kernelIndices;
  unsigned numNames = 0;
};

} // namespace
