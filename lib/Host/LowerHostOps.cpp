//===- LowerHostOps.cpp - Calls, checks and memory of the host program ----===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "HostLowering.h"
#include "TextConstant.h"
#include "dialects/SDX/SDX.h"
#include "sardonyx/Host/Passes.h"
#include "sardonyx/NodeName.h"

#include "mlir/Conversion/LLVMCommon/MemRefBuilder.h"
#include "mlir/Conversion/LLVMCommon/TypeConverter.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/TypeSwitch.h"

namespace sardonyx {
#define GEN_PASS_DEF_SDXLOWERHOSTOPS
#include "sardonyx/Host/Passes.h.inc"
} // namespace sardonyx

using namespace mlir;
using namespace sardonyx;

namespace {

struct LowerHostOpsPass
    : sardonyx::impl::SDXLowerHostOpsBase<LowerHostOpsPass> {
  void runOnOperation() override {
    ModuleOp module = getOperation();
    SymbolTable table(module);
    symbols = &table;
    wordMemory.clear();
    LLVMTypeConverter converter(&getContext());
    types = &converter;
    for (StringRef name : {"main", "init"})
      if (auto func = table.lookup<func::FuncOp>(name))
        if (failed(lowerArguments(func)))
          return signalPassFailure();
    SmallVector<Operation *> ops;
    module.walk([&](Operation *op) {
      // The runtime aligns to 64 bytes by itself.
      if (auto alloc = dyn_cast<memref::AllocOp>(op)) {
        alloc.removeAlignmentAttr();
        if (sdx::CheckOp check = guardAllocation(alloc))
          ops.push_back(check);
      }
      if (isa<sdx::CallOp, sdx::RuntimeCallOp, sdx::CheckOp,
              sdx::OutputBufferOp, sdx::ArenaOp, sdx::ClockOp, sdx::RecordOp,
              sdx::ObserveOp>(op))
        ops.push_back(op);
    });
    for (Operation *op : ops) {
      OpBuilder b(op);
      LogicalResult lowered =
          llvm::TypeSwitch<Operation *, LogicalResult>(op)
              .Case([&](sdx::CallOp call) { return lowerCall(b, call); })
              .Case([&](sdx::RuntimeCallOp call) {
                return lowerRuntimeCall(b, call);
              })
              .Case([&](sdx::CheckOp check) { return lowerCheck(b, check); })
              .Case([&](sdx::ArenaOp arena) { return lowerArena(b, arena); })
              .Case([&](sdx::ClockOp clock) { return lowerClock(b, clock); })
              .Case([&](sdx::RecordOp rec) { return lowerRecord(b, rec); })
              .Case([&](sdx::ObserveOp see) { return lowerObserve(b, see); })
              .Case(
                  [&](sdx::OutputBufferOp out) { return lowerOutput(b, out); });
      if (failed(lowered))
        return signalPassFailure();
      op->erase();
    }
  }

private:
  /// An entry point takes one pointer to the records {data, sizes...} of its
  /// arguments. What reads one loads it there and then: a large model has
  /// thousands, far more than registers.
  LogicalResult lowerArguments(func::FuncOp func) {
    Block &entry = func.getBody().front();
    unsigned count = func.getNumArguments();
    for (auto [i, type] : llvm::enumerate(func.getArgumentTypes())) {
      auto buffer = dyn_cast<MemRefType>(type);
      if (!buffer || !buffer.getLayout().isIdentity())
        return func.emitOpError("has argument ")
               << i << " of type " << type
               << "; an entry point takes buffers of identity layout only";
    }
    auto pointer = LLVM::LLVMPointerType::get(&getContext());
    Value records = entry.insertArgument(0u, pointer, func.getLoc());
    for (unsigned i = 0; i < count; ++i) {
      Value argument = entry.getArgument(i + 1);
      // One load for all that is inside of the same operation.
      llvm::MapVector<Operation *, SmallVector<OpOperand *>> users;
      for (OpOperand &use : argument.getUses())
        users[entry.findAncestorOpInBlock(*use.getOwner())].push_back(&use);
      for (auto &[user, uses] : users) {
        OpBuilder b(user);
        Value loaded = loadArgument(b, func.getLoc(), records, i,
                                    cast<MemRefType>(argument.getType()));
        for (OpOperand *use : uses)
          use->set(loaded);
      }
    }
    entry.eraseArguments(1, count);
    // Attributes of arguments may hold gigabytes of weights; nothing below
    // reads them.
    func.setAllArgAttrs(
        SmallVector<DictionaryAttr>(count, DictionaryAttr::get(&getContext())));
    func.setFunctionType(FunctionType::get(&getContext(), {pointer}, {}));
    return success();
  }

  Value loadArgument(OpBuilder &b, Location loc, Value records, int64_t index,
                     MemRefType type) {
    auto pointer = LLVM::LLVMPointerType::get(b.getContext());
    Type i64 = b.getI64Type();
    auto load = [&](Type type, Value base, Type slots, int64_t i) -> Value {
      Value slot =
          LLVM::GEPOp::create(b, loc, pointer, slots, base,
                              ArrayRef<LLVM::GEPArg>{static_cast<int32_t>(i)});
      return LLVM::LoadOp::create(b, loc, type, slot);
    };
    // A record is of words, whatever the size of a pointer.
    Value record = load(pointer, records, pointer, index);
    Value data = load(pointer, record, i64, 0);
    SmallVector<Value> sizes;
    for (auto [i, dim] : llvm::enumerate(type.getShape()))
      sizes.push_back(ShapedType::isDynamic(dim)
                          ? load(i64, record, i64, i + 1)
                          : LLVM::ConstantOp::create(b, loc, i64, dim));
    return makeBuffer(b, loc, *types, type, data, sizes);
  }

  LLVM::LLVMFuncOp declare(StringRef name, Type result, ArrayRef<Type> args) {
    return declareRuntime(*symbols, name, result, args);
  }

  LogicalResult lowerCall(OpBuilder &b, sdx::CallOp call) {
    auto callee = symbols->lookup<func::FuncOp>(call.getCallee());
    if (!callee)
      return call.emitOpError("calls '")
             << call.getCallee() << "', which is no function";
    SmallVector<Value> args(call.getIns());
    llvm::append_range(args, call.getOuts());
    if (args.size() != callee.getNumArguments())
      return call.emitOpError("passes ")
             << args.size() << " arguments to '" << call.getCallee()
             << "', which takes " << callee.getNumArguments();
    for (auto [arg, type] : llvm::zip(args, callee.getArgumentTypes())) {
      if (arg.getType() == type)
        continue;
      auto from = dyn_cast<MemRefType>(arg.getType());
      auto to = dyn_cast<MemRefType>(type);
      if (from && to && to.getLayout().isIdentity() &&
          !from.getLayout().isIdentity() && sdx::isContiguous(from) &&
          from.getShape() == to.getShape()) {
        arg = createPiece(b, call.getLoc(), arg, to);
        continue;
      }
      // A kernel assumes offset 0, so a view with an offset can't be cast.
      if (!from || !to || !from.getLayout().isIdentity() ||
          !memref::CastOp::areCastCompatible(from, to))
        return call.emitOpError("passes a value of type ")
               << arg.getType() << " where '" << call.getCallee() << "' takes "
               << type;
      arg = memref::CastOp::create(b, call.getLoc(), to, arg);
    }
    func::CallOp::create(b, call.getLoc(), callee, args);
    return success();
  }

  /// A contiguous piece of a buffer, of known sizes, as a buffer of `type`.
  Value createPiece(OpBuilder &b, Location loc, Value piece, MemRefType type) {
    auto from = cast<MemRefType>(piece.getType());
    Value words = UnrealizedConversionCastOp::create(
                      b, loc, types->convertType(from), piece)
                      .getResult(0);
    Value address = MemRefDescriptor(words).bufferPtr(b, loc, *types, from);
    SmallVector<Value> sizes;
    for (int64_t size : type.getShape())
      sizes.push_back(LLVM::ConstantOp::create(b, loc, b.getI64Type(), size));
    return makeBuffer(b, loc, *types, type, address, sizes);
  }

  /// Calls a function of the runtime on words in memory, see RuntimeABI.h.
  LogicalResult lowerRuntimeCall(OpBuilder &b, sdx::RuntimeCallOp call) {
    Location loc = call.getLoc();
    Type i64 = b.getI64Type();
    auto pointer = LLVM::LLVMPointerType::get(b.getContext());
    SmallVector<Value> words;
    auto addWord = [&](Value index) {
      words.push_back(arith::IndexCastOp::create(b, loc, i64, index));
    };
    std::string origin = sdx::describeOrigin(loc);
    auto text = createText(getOperation(), loc,
                           "sdx_origin_" + Twine(numMessages++), origin);
    words.push_back(LLVM::PtrToIntOp::create(
        b, loc, i64, LLVM::AddressOfOp::create(b, loc, text)));
    for (Value operand : call->getOperands()) {
      auto type = dyn_cast<MemRefType>(operand.getType());
      if (!type) {
        if (operand.getType().isIndex())
          addWord(operand);
        else
          words.push_back(operand);
        continue;
      }
      if (!type.getLayout().isIdentity())
        return call.emitOpError("passes a value of type ") << type;
      addWord(memref::ExtractAlignedPointerAsIndexOp::create(b, loc, operand));
      words.push_back(LLVM::ConstantOp::create(b, loc, i64, type.getRank()));
      for (int64_t dim = 0; dim < type.getRank(); ++dim)
        addWord(memref::DimOp::create(b, loc, operand, dim));
    }
    auto func = call->getParentOfType<func::FuncOp>();
    Value place = wordsOf(func, words.size());
    for (auto [slot, word] : llvm::enumerate(words))
      LLVM::StoreOp::create(
          b, loc, word,
          LLVM::GEPOp::create(
              b, loc, pointer, i64, place,
              ArrayRef<LLVM::GEPArg>{static_cast<int32_t>(slot)}));
    LLVM::CallOp::create(b, loc,
                         declare(call.getCallee(),
                                 LLVM::LLVMVoidType::get(b.getContext()),
                                 {pointer}),
                         place);
    return success();
  }

  /// Memory in the frame of `func` for the words of one call at a time.
  Value wordsOf(func::FuncOp func, int64_t count) {
    auto [entry, isNew] = wordMemory.try_emplace(func);
    auto b = OpBuilder::atBlockBegin(&func.getBody().front());
    if (isNew) {
      Location loc = func.getLoc();
      Value size = LLVM::ConstantOp::create(b, loc, b.getI64Type(), count);
      entry->second = LLVM::AllocaOp::create(
          b, loc, LLVM::LLVMPointerType::get(b.getContext()), b.getI64Type(),
          size);
      return entry->second;
    }
    auto size = entry->second.getDefiningOp<LLVM::AllocaOp>()
                    .getArraySize()
                    .getDefiningOp<LLVM::ConstantOp>();
    int64_t most = std::max(count, cast<IntegerAttr>(size.getValue()).getInt());
    size.setValueAttr(b.getI64IntegerAttr(most));
    return entry->second;
  }

  /// A check of the host program is a call: a branch would cut its block in
  /// two, and there may be thousands. In a kernel, where each access may have
  /// one, and in loops, which make them as often as they turn, only those that
  /// fail call.
  LogicalResult lowerCheck(OpBuilder &b, sdx::CheckOp check) {
    Location loc = check.getLoc();
    Value ok = check.getCondition();
    bool inKernel =
        check->getParentOfType<func::FuncOp>()->hasAttr(sdx::kKernelAttr);
    bool branches = inKernel || check->getParentOfType<LoopLikeOpInterface>();
    if (branches) {
      Value no = arith::XOrIOp::create(
          b, loc, ok, arith::ConstantIntOp::create(b, loc, 1, 1));
      auto ifOp = scf::IfOp::create(b, loc, no, /*withElseRegion=*/false);
      b.setInsertionPoint(ifOp.thenYield());
    }
    auto pointer = LLVM::LLVMPointerType::get(b.getContext());
    auto global =
        createText(getOperation(), loc, "sdx_message_" + Twine(numMessages++),
                   check.getMessage());
    Type i64 = b.getI64Type();
    SmallVector<Value> args;
    if (!branches)
      args.push_back(arith::ExtUIOp::create(b, loc, i64, ok));
    args.push_back(LLVM::AddressOfOp::create(b, loc, global));
    args.push_back(LLVM::ConstantOp::create(
        b, loc, i64, static_cast<int64_t>(check.getKind())));
    for (Value value : check.getValues())
      args.push_back(arith::IndexCastOp::create(b, loc, i64, value));
    unsigned missing = sdx::CheckOp::kMaxValues - check.getValues().size();
    for (unsigned i = 0; i < missing; ++i)
      args.push_back(LLVM::ConstantOp::create(b, loc, i64, 0));
    SmallVector<Type> types(args.size(), i64);
    types[branches ? 0 : 1] = pointer;
    auto callee = declare(branches ? "sdx_rt_check_failed" : "sdx_rt_check",
                          LLVM::LLVMVoidType::get(b.getContext()), types);
    LLVM::CallOp::create(b, loc, callee, args);
    return success();
  }

  LogicalResult lowerArena(OpBuilder &b, sdx::ArenaOp arena) {
    Location loc = arena.getLoc();
    auto type = cast<MemRefType>(arena.getMemory().getType());
    auto pointer = LLVM::LLVMPointerType::get(b.getContext());
    if (!type.getLayout().isIdentity() || !type.hasStaticShape())
      return arena.emitOpError("must have a static shape and no layout");
    int64_t bytes =
        type.getNumElements() * ((type.getElementTypeBitWidth() + 7) / 8);
    Value size = LLVM::ConstantOp::create(b, loc, b.getI64Type(), bytes);
    auto call = LLVM::CallOp::create(b, loc,
                                     declare(arena->hasAttr(kOnDeviceAttr)
                                                 ? "sdx_rt_device_arena"
                                                 : "sdx_rt_arena",
                                             pointer, {b.getI64Type()}),
                                     size);
    SmallVector<Value> sizes;
    for (int64_t dim : type.getShape())
      sizes.push_back(LLVM::ConstantOp::create(b, loc, b.getI64Type(), dim));
    arena.getMemory().replaceAllUsesWith(
        makeBuffer(b, loc, *types, type, call.getResult(), sizes));
    return success();
  }

  LogicalResult lowerOutput(OpBuilder &b, sdx::OutputBufferOp out) {
    Location loc = out.getLoc();
    auto type = cast<MemRefType>(out.getMemory().getType());
    if (!type.getLayout().isIdentity())
      return out.emitOpError("must have no layout");
    auto pointer = LLVM::LLVMPointerType::get(b.getContext());
    Type i64 = b.getI64Type();
    auto func = out->getParentOfType<func::FuncOp>();
    auto entry = OpBuilder::atBlockBegin(&func.getBody().front());
    Value count = LLVM::ConstantOp::create(
        entry, loc, i64, std::max<int64_t>(type.getRank(), 1));
    Value slots = LLVM::AllocaOp::create(entry, loc, pointer, i64, count);
    SmallVector<Value> sizes;
    auto dynamic = out.getSizes().begin();
    for (auto [i, dim] : llvm::enumerate(type.getShape())) {
      Value size;
      if (ShapedType::isDynamic(dim))
        size = arith::IndexCastOp::create(b, loc, i64, *dynamic++);
      else
        size = LLVM::ConstantOp::create(b, loc, i64, dim);
      sizes.push_back(size);
      Value slot =
          LLVM::GEPOp::create(b, loc, pointer, i64, slots,
                              ArrayRef<LLVM::GEPArg>{static_cast<int32_t>(i)});
      LLVM::StoreOp::create(b, loc, size, slot);
    }
    Value index = LLVM::ConstantOp::create(b, loc, i64, out.getIndex());
    Value rank = LLVM::ConstantOp::create(b, loc, i64, type.getRank());
    auto call = LLVM::CallOp::create(b, loc,
                                     declare(out->hasAttr(kOnDeviceAttr)
                                                 ? "sdx_rt_device_output"
                                                 : "sdx_rt_output",
                                             pointer, {i64, i64, pointer}),
                                     ValueRange{index, rank, slots});
    out.getMemory().replaceAllUsesWith(
        makeBuffer(b, loc, *types, type, call.getResult(), sizes));
    return success();
  }

  LogicalResult lowerClock(OpBuilder &b, sdx::ClockOp clock) {
    auto call = LLVM::CallOp::create(
        b, clock.getLoc(), declare("sdx_rt_clock", b.getI64Type(), {}),
        ValueRange());
    clock.getTime().replaceAllUsesWith(call.getResult());
    return success();
  }

  LogicalResult lowerRecord(OpBuilder &b, sdx::RecordOp record) {
    Location loc = record.getLoc();
    Type i64 = b.getI64Type();
    Value site = LLVM::ConstantOp::create(b, loc, i64, record.getSite());
    LLVM::CallOp::create(b, loc,
                         declare("sdx_rt_record",
                                 LLVM::LLVMVoidType::get(b.getContext()),
                                 {i64, i64, i64, i64}),
                         ValueRange{site, record.getBegin(), record.getFlops(),
                                    record.getBytes()});
    return success();
  }

  /// A tile, or the whole of a buffer as one row.
  LogicalResult lowerObserve(OpBuilder &b, sdx::ObserveOp observe) {
    Location loc = observe.getLoc();
    Type i64 = b.getI64Type();
    auto pointer = LLVM::LLVMPointerType::get(b.getContext());
    auto type = dyn_cast<MemRefType>(observe.getValue().getType());
    const int64_t number =
        type ? sdx::getObservedType(type.getElementType()) : -1;
    if (number < 0 || !type.getLayout().isIdentity() || !observe.isUnordered())
      return observe.emitOpError("cannot see a value of type ")
             << observe.getValue().getType();
    auto constant = [&](int64_t value) -> Value {
      return LLVM::ConstantOp::create(b, loc, i64, value);
    };
    auto word = [&](Value index) -> Value {
      return arith::IndexCastOp::create(b, loc, i64, index);
    };
    Value address = LLVM::IntToPtrOp::create(
        b, loc, pointer,
        word(memref::ExtractAlignedPointerAsIndexOp::create(
            b, loc, observe.getValue())));
    constexpr int64_t kTypeBits = 8;
    SmallVector<Value> args = {
        constant(observe.getSite()),
        constant(static_cast<int64_t>(observe.getKinds()) | number
                                                                << kTypeBits),
        address};
    if (observe.getExtent().empty()) {
      Value count = constant(1);
      for (int64_t dim = 0; dim < type.getRank(); ++dim)
        count = arith::MulIOp::create(
            b, loc, count,
            word(memref::DimOp::create(b, loc, observe.getValue(), dim)));
      args.append({constant(1), constant(0), count});
    } else {
      args.append({word(observe.getExtent()[0]),
                   word(memref::DimOp::create(b, loc, observe.getValue(), 1)),
                   word(observe.getExtent()[1])});
    }
    LLVM::CallOp::create(b, loc,
                         declare("sdx_rt_observe",
                                 LLVM::LLVMVoidType::get(b.getContext()),
                                 {i64, i64, pointer, i64, i64, i64}),
                         args);
    return success();
  }

  SymbolTable *symbols = nullptr;
  LLVMTypeConverter *types = nullptr;
  unsigned numMessages = 0;
  DenseMap<Operation *, Value> wordMemory;
};

} // namespace
