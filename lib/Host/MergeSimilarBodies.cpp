//===- MergeSimilarBodies.cpp - Loops that differ in sizes only -----------===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A network has the same layer many times, with other numbers of channels or
// windows. The loops of such layers are the same instructions but for integers:
// bounds, and strides outside of the innermost loops. One function that takes
// these integers serves all, and LLVM compiles one.
//
//===----------------------------------------------------------------------===//

#include "HostLowering.h"
#include "SimilarCode.h"
#include "sardonyx/Host/Passes.h"

#include "mlir/IR/SymbolTable.h"
#include "llvm/ADT/MapVector.h"

namespace sardonyx {
#define GEN_PASS_DEF_SDXMERGESIMILARBODIES
#include "sardonyx/Host/Passes.h.inc"
} // namespace sardonyx

using namespace mlir;
using namespace sardonyx;

namespace {

struct MergeSimilarBodiesPass
    : sardonyx::impl::SDXMergeSimilarBodiesBase<MergeSimilarBodiesPass> {
  void runOnOperation() override {
    SymbolTable symbols(getOperation());
    // The body of each parallel loop; its starter declares what it takes.
    llvm::MapVector<size_t, SmallVector<SimilarCode, 1>> similar;
    for (auto starter : getOperation().getOps<LLVM::LLVMFuncOp>()) {
      StringRef name = starter.getName();
      if (!name.consume_front(kStarterPrefix))
        continue;
      auto body = symbols.lookup<LLVM::LLVMFuncOp>(name);
      if (!body || body.isExternal())
        continue;
      Code code = Code::ofFunction(body);
      auto &candidates = similar[SimilarCode::hash(code)];
      if (llvm::none_of(candidates,
                        [&](SimilarCode &one) { return one.add(code); }))
        candidates.emplace_back(std::move(code));
    }
    llvm::StringMap<Starter> starters;
    SmallVector<LLVM::LLVMFuncOp> merged;
    for (auto &[key, candidates] : similar)
      for (SimilarCode &one : candidates)
        if (one.getMembers().size() > 1)
          merge(symbols, one, starters, merged);
    getOperation().walk([&](LLVM::CallOp call) {
      if (auto callee = call.getCallee())
        if (auto it = starters.find(*callee); it != starters.end())
          callShared(call, it->second);
    });
    for (LLVM::LLVMFuncOp func : merged)
      symbols.erase(func);
  }

private:
  /// What to call in the place of a starter, and what to give it beside.
  struct Starter {
    LLVM::LLVMFuncOp func;
    SmallVector<int64_t> integers;
  };

  static LLVM::LLVMFuncOp getStarter(SymbolTable &symbols,
                                     LLVM::LLVMFuncOp body) {
    return symbols.lookup<LLVM::LLVMFuncOp>(
        (kStarterPrefix + body.getName()).str());
  }

  static void merge(SymbolTable &symbols, SimilarCode &similar,
                    llvm::StringMap<Starter> &starters,
                    SmallVector<LLVM::LLVMFuncOp> &merged) {
    SmallVector<SmallVector<int64_t>> parameters = similar.getParameters();
    LLVM::LLVMFuncOp body = similar.getMembers().front().func;
    SmallVector<Value> arguments;
    Type i64 = IntegerType::get(body.getContext(), 64);
    for (size_t i = 0; i < parameters.size(); ++i)
      arguments.push_back(
          body.getBody().front().addArgument(i64, body.getLoc()));
    similar.replaceIntegers(similar.getOps(), nullptr, arguments);
    LLVM::LLVMFuncOp starter = getStarter(symbols, body);
    auto type = LLVM::LLVMFunctionType::get(
        body.getFunctionType().getReturnType(),
        llvm::to_vector(body.getBody().getArgumentTypes()));
    body.setFunctionType(type);
    starter.setFunctionType(type);
    for (auto [i, member] : llvm::enumerate(similar.getMembers())) {
      LLVM::LLVMFuncOp old = getStarter(symbols, member.func);
      Starter &entry = starters[old.getName()];
      entry.func = starter;
      for (ArrayRef<int64_t> values : parameters)
        entry.integers.push_back(values[i]);
      if (i > 0)
        llvm::append_values(merged, member.func, old);
    }
  }

  static void callShared(LLVM::CallOp call, const Starter &starter) {
    OpBuilder b(call);
    SmallVector<Value> operands(call.getArgOperands());
    for (int64_t value : starter.integers)
      operands.push_back(
          LLVM::ConstantOp::create(b, call.getLoc(), b.getI64Type(), value));
    LLVM::CallOp::create(b, call.getLoc(), starter.func, operands);
    call.erase();
  }
};

} // namespace
