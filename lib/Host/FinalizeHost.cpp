//===- FinalizeHost.cpp - Entry points and parallel loops -----------------===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "HostLowering.h"
#include "TextConstant.h"
#include "sardonyx/Host/Passes.h"
#include "sardonyx/NodeName.h"

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/IR/SymbolTable.h"
#include <map>

namespace sardonyx {
#define GEN_PASS_DEF_SDXFINALIZEHOST
#include "sardonyx/Host/Passes.h.inc"
} // namespace sardonyx

using namespace mlir;

namespace {

struct FinalizeLLVMPass
    : sardonyx::impl::SDXFinalizeHostBase<FinalizeLLVMPass> {
  void runOnOperation() override {
    ModuleOp module = getOperation();
    SymbolTable symbols(module);
    nodeNames.clear();
    SmallVector<LLVM::LLVMFuncOp> funcs(module.getOps<LLVM::LLVMFuncOp>());
    for (LLVM::LLVMFuncOp func : funcs) {
      if (func.isExternal() &&
          func.getName().starts_with(sardonyx::kStarterPrefix) &&
          failed(buildStarter(symbols, func)))
        return signalPassFailure();
    }
    // Objects of one model see each other's kernels; nobody else does.
    for (auto func : module.getOps<LLVM::LLVMFuncOp>())
      if (!func.isExternal() && func.getLinkage() == LLVM::Linkage::External)
        func.setVisibility_(LLVM::Visibility::Hidden);
    for (StringRef name : {"main", "init"})
      if (auto func = symbols.lookup<LLVM::LLVMFuncOp>(name))
        if (failed(nameEntryPoint(symbols, func, name)))
          return signalPassFailure();
    // Allocations come from the run's pool, those of kernels from their
    // thread's scratch memory. One walk does all: a module has some hundred
    // thousand operations.
    LLVM::LLVMFuncOp allocate = findExternal(symbols, "malloc"),
                     release = findExternal(symbols, "free");
    WalkResult left = module.walk([&](Operation *op) {
      if (auto call = dyn_cast<LLVM::CallOp>(op)) {
        std::optional<StringRef> callee = call.getCallee();
        if (callee && allocate && *callee == "malloc")
          lowerAllocation(symbols, call);
        else if (callee && release && *callee == "free")
          call.setCalleeAttr(FlatSymbolRefAttr::get(
              declare(symbols, "sdx_rt_free", release.getFunctionType())));
      } else if (isa<UnrealizedConversionCastOp>(op)) {
        op->emitOpError("is left: a value could not be converted to the llvm "
                        "dialect");
        return WalkResult::interrupt();
      }
      return WalkResult::advance();
    });
    if (left.wasInterrupted())
      return signalPassFailure();
    for (LLVM::LLVMFuncOp func : {allocate, release})
      if (func)
        symbols.erase(func);
  }

private:
  /// The declaration of a function that is somebody else's, or null.
  static LLVM::LLVMFuncOp findExternal(SymbolTable &symbols, StringRef name) {
    auto func = symbols.lookup<LLVM::LLVMFuncOp>(name);
    return func && func.isExternal() ? func : nullptr;
  }

  /// The runtime gives kernels scratch memory, and the host program what lives
  /// longer, for a node that it is told where it is known.
  void lowerAllocation(SymbolTable &symbols, LLVM::CallOp call) {
    auto func = call->getParentOfType<LLVM::LLVMFuncOp>();
    const bool isHost = func && func->hasAttr("sdx.host");
    std::string text =
        isHost ? sardonyx::describeNode(call.getLoc()) : std::string();
    Location loc = call.getLoc();
    OpBuilder b(call);
    auto pointer = LLVM::LLVMPointerType::get(&getContext());
    if (text.empty()) {
      call.setCalleeAttr(FlatSymbolRefAttr::get(
          declare(symbols, isHost ? "sdx_rt_alloc" : "sdx_rt_scratch",
                  LLVM::LLVMFunctionType::get(pointer, b.getI64Type()))));
      return;
    }
    LLVM::GlobalOp &global = nodeNames[text];
    if (!global)
      global = sardonyx::createText(
          getOperation(), loc, "sdx_node_" + Twine(nodeNames.size()), text);
    auto allocate = declare(
        symbols, "sdx_rt_alloc_for",
        LLVM::LLVMFunctionType::get(pointer, {b.getI64Type(), pointer}));
    Value name = LLVM::AddressOfOp::create(b, loc, global);
    auto named = LLVM::CallOp::create(
        b, loc, allocate, ValueRange{call.getArgOperands().front(), name});
    call.getResult().replaceAllUsesWith(named.getResult());
    call.erase();
  }

  std::map<std::string, LLVM::GlobalOp> nodeNames;

  LLVM::LLVMFuncOp declare(SymbolTable &symbols, StringRef name,
                           LLVM::LLVMFunctionType type) {
    if (auto func = symbols.lookup<LLVM::LLVMFuncOp>(name))
      return func;
    OpBuilder b(&getContext());
    auto func =
        LLVM::LLVMFuncOp::create(b, getOperation().getLoc(), name, type);
    symbols.insert(func);
    return func;
  }

  /// `starter` (n, grain, captures...): the captures that the body reads go to
  /// a structure on the stack, whose address is the environment of
  /// `sdx_rt_parallel_for`.
  LogicalResult buildStarter(SymbolTable &symbols, LLVM::LLVMFuncOp starter) {
    Location loc = starter.getLoc();
    StringRef name =
        starter.getName().drop_front(sardonyx::kStarterPrefix.size());
    auto body = symbols.lookup<LLVM::LLVMFuncOp>(name);
    if (!body || body.isExternal())
      return starter.emitOpError("has no function '") << name << "' to run";
    OpBuilder b(&getContext());
    auto pointer = LLVM::LLVMPointerType::get(&getContext());
    Type i64 = b.getI64Type();
    auto none = LLVM::LLVMVoidType::get(&getContext());

    SmallVector<Type> fields;
    SmallVector<int64_t> fieldOfArg(body.getNumArguments(), -1);
    for (unsigned i = 2, e = body.getNumArguments(); i < e; ++i)
      if (!body.getArgument(i).use_empty()) {
        fieldOfArg[i] = fields.size();
        fields.push_back(body.getArgument(i).getType());
      }
    auto record = LLVM::LLVMStructType::getLiteral(&getContext(), fields);
    auto getField = [&](OpBuilder &b, Value env, int64_t field) {
      return LLVM::GEPOp::create(
          b, loc, pointer, record, env,
          ArrayRef<LLVM::GEPArg>{0, static_cast<int32_t>(field)});
    };

    // The body itself reads the captures: LLVM would copy it into a function
    // that reads them and calls it.
    auto task = LLVM::LLVMFuncOp::create(
        b, loc, (name + "_env").str(),
        LLVM::LLVMFunctionType::get(none, {i64, i64, pointer}));
    symbols.insert(task);
    task.setLinkage(LLVM::Linkage::Internal);
    task.getBody().takeBody(body.getBody());
    Block &entry = task.getBody().front();
    Value given = entry.addArgument(pointer, loc);
    b.setInsertionPointToStart(&entry);
    for (auto [i, field] : llvm::enumerate(fieldOfArg))
      if (field >= 0)
        entry.getArgument(i).replaceAllUsesWith(LLVM::LoadOp::create(
            b, loc, entry.getArgument(i).getType(), getField(b, given, field)));
    entry.eraseArguments(2, fieldOfArg.size() - 2);
    symbols.erase(body);

    auto run = declare(
        symbols, "sdx_rt_parallel_for",
        LLVM::LLVMFunctionType::get(none, {i64, i64, pointer, pointer}));
    b.setInsertionPointToStart(starter.addEntryBlock(b));
    Value one = LLVM::ConstantOp::create(b, loc, i64, 1);
    Value env = LLVM::AllocaOp::create(b, loc, pointer, record, one);
    for (auto [i, field] : llvm::enumerate(fieldOfArg))
      if (field >= 0)
        LLVM::StoreOp::create(b, loc, starter.getArgument(i),
                              getField(b, env, field));
    Value address = LLVM::AddressOfOp::create(b, loc, pointer, task.getName());
    LLVM::CallOp::create(b, loc, run,
                         ValueRange{starter.getArgument(0),
                                    starter.getArgument(1), address, env});
    LLVM::ReturnOp::create(b, loc, ValueRange{});
    starter.setLinkage(LLVM::Linkage::Internal);
    return success();
  }

  /// `sdx_NAME(args)`: args[i] points to the data pointer and the sizes of the
  /// i-th argument.
  LogicalResult nameEntryPoint(SymbolTable &symbols, LLVM::LLVMFuncOp func,
                               StringRef name) {
    if (func.getNumArguments() != 1 ||
        !isa<LLVM::LLVMPointerType>(func.getArgument(0).getType()))
      return func.emitOpError("must take the pointer that "
                              "sdx-lower-host-ops makes of its arguments");
    symbols.remove(func);
    func.setSymName(("sdx_" + name).str());
    symbols.insert(func);
    func.setVisibility_(LLVM::Visibility::Default);
    func->setAttr("sdx.host", UnitAttr::get(&getContext()));
    return success();
  }
};

} // namespace
