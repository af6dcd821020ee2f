//===- MergeSimilarLoops.cpp - Loops that several bodies have -------------===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Bodies of parallel loops that are not the same have loops that are: products
// by one algorithm with other functions of their results, or with other rests
// of rows. Such a loop becomes a function that all call. The outermost are
// looked at first, then those inside of what is alone.
//
//===----------------------------------------------------------------------===//

#include "HostLowering.h"
#include "SimilarCode.h"
#include "sardonyx/Host/Passes.h"

#include "mlir/IR/IRMapping.h"
#include "mlir/IR/SymbolTable.h"
#include "llvm/ADT/MapVector.h"

namespace sardonyx {
#define GEN_PASS_DEF_SDXMERGESIMILARLOOPS
#include "sardonyx/Host/Passes.h.inc"
} // namespace sardonyx

using namespace mlir;
using namespace sardonyx;

namespace {

/// The most values that go with a call, beside the integers.
constexpr size_t kMaxInputs = 32;

/// A loop that may become a function, and the loops in it.
struct Candidate {
  LLVM::LLVMFuncOp func;
  CFGLoop *loop;
};

struct MergeSimilarLoopsPass
    : sardonyx::impl::SDXMergeSimilarLoopsBase<MergeSimilarLoopsPass> {
  using Base::Base;

  void runOnOperation() override {
    SymbolTable symbols(getOperation());
    SmallVector<std::unique_ptr<CFGLoopInfo>> infos;
    SmallVector<Candidate> candidates;
    for (auto starter : getOperation().getOps<LLVM::LLVMFuncOp>()) {
      StringRef name = starter.getName();
      if (!name.consume_front(kStarterPrefix))
        continue;
      auto body = symbols.lookup<LLVM::LLVMFuncOp>(name);
      if (!body || body.isExternal() || body.getBody().hasOneBlock())
        continue;
      DominanceInfo dominance(body);
      infos.push_back(
          std::make_unique<CFGLoopInfo>(dominance.getDomTree(&body.getBody())));
      for (CFGLoop *loop : *infos.back())
        candidates.push_back({body, loop});
    }
    while (!candidates.empty())
      candidates = mergeAlike(symbols, candidates);
  }

private:
  /// Has those of the candidates that are alike share code; gives the loops
  /// inside of those that stay, and of one of each that do not.
  SmallVector<Candidate> mergeAlike(SymbolTable &symbols,
                                    ArrayRef<Candidate> candidates) const {
    struct Group {
      SimilarCode code;
      Candidate first;
    };
    llvm::MapVector<size_t, SmallVector<Group, 1>> groups;
    SmallVector<Candidate> inner;
    auto descend = [&](const Candidate &candidate, LLVM::LLVMFuncOp func) {
      for (CFGLoop *loop : candidate.loop->getSubLoops())
        inner.push_back({func, loop});
    };
    for (const Candidate &candidate : candidates) {
      // An innermost loop is short, and its sums stay in registers.
      if (candidate.loop->getSubLoops().empty())
        continue;
      std::optional<Code> code = Code::ofLoop(candidate.func, *candidate.loop);
      if (!code || code->inputs.size() > kMaxInputs) {
        descend(candidate, candidate.func);
        continue;
      }
      if (code->ops.size() < minOps)
        continue;
      auto &alike = groups[SimilarCode::hash(*code)];
      if (llvm::none_of(alike,
                        [&](Group &group) { return group.code.add(*code); }))
        alike.push_back({SimilarCode(std::move(*code)), candidate});
    }
    for (auto &[hash, alike] : groups)
      for (Group &group : alike)
        descend(group.first, group.code.getMembers().size() > 1
                                 ? merge(symbols, group.code)
                                 : group.first.func);
    return inner;
  }

  /// Makes a function of loops that are alike.
  static LLVM::LLVMFuncOp merge(SymbolTable &symbols,
                                const SimilarCode &similar) {
    const Code &first = similar.getMembers().front();
    LLVM::LLVMFuncOp from = first.func;
    Location loc = first.blocks.front()->front().getLoc();
    OpBuilder b(from);
    SmallVector<SmallVector<int64_t>> parameters = similar.getParameters();
    SmallVector<Type> types(TypeRange(ValueRange(first.inputs)));
    types.append(parameters.size(), b.getI64Type());
    auto func = LLVM::LLVMFuncOp::create(
        b, loc, (from.getName() + "_loop").str(),
        LLVM::LLVMFunctionType::get(LLVM::LLVMVoidType::get(b.getContext()),
                                    types));
    for (NamedAttribute attr : from->getDiscardableAttrs())
      func->setAttr(attr.getName(), attr.getValue());
    func.setPassthroughAttr(from.getPassthroughAttr());
    func.setNoInline(true);
    symbols.insert(func);

    for (size_t i = 0; i < similar.getMembers().size(); ++i)
      call(similar.getMembers()[i], func,
           llvm::map_to_vector(parameters,
                               [&](auto &values) { return values[i]; }));
    moveLoop(first, similar, func);
    for (const Code &code : similar.getMembers().drop_front())
      erase(code);
    return func;
  }

  /// Calls `func` in the place of a loop, which nothing branches to then.
  static void call(const Code &code, LLVM::LLVMFuncOp func,
                   ArrayRef<int64_t> integers) {
    Block *block = new Block();
    block->insertBefore(code.blocks.front());
    Location loc = func.getLoc();
    auto b = OpBuilder::atBlockEnd(block);
    SmallVector<Value> operands = code.inputs;
    for (int64_t value : integers)
      operands.push_back(
          LLVM::ConstantOp::create(b, loc, b.getI64Type(), value));
    LLVM::CallOp::create(b, loc, func, operands);
    LLVM::BrOp::create(b, loc, code.exit);
    auto branch = cast<BranchOpInterface>(code.entry->getOwner());
    unsigned number = code.entry->getOperandNumber();
    SuccessorOperands initial = branch.getSuccessorOperands(number);
    if (initial.size() != 0)
      initial.erase(0, initial.size());
    branch->setSuccessor(block, number);
  }

  /// Makes a loop the body of `func`, which takes its inputs and the integers
  /// that others have in the place of its own.
  static void moveLoop(const Code &code, const SimilarCode &similar,
                       LLVM::LLVMFuncOp func) {
    OpBuilder b(func.getContext());
    Location loc = func.getLoc();
    Block *entry = func.addEntryBlock(b);
    b.setInsertionPointToEnd(entry);
    ValueRange arguments = entry->getArguments();
    IRMapping map;
    map.map(code.inputs, arguments.take_front(code.inputs.size()));
    auto get = [&](Value value) {
      Operation *op = value.getDefiningOp();
      if (!map.contains(value) && op && isConstant(op))
        map.map(value, b.clone(*op)->getResult(0));
      return map.lookupOrDefault(value);
    };
    SmallVector<Operation *> ops(similar.getOps());
    for (auto [i, op] : llvm::enumerate(code.prologue)) {
      for (Value operand : op->getOperands())
        get(operand);
      ops[i] = b.clone(*op, map);
    }
    SmallVector<Value> initial = llvm::map_to_vector(code.initial, get);
    llvm::SmallPtrSet<Block *, 16> inside(code.blocks.begin(),
                                          code.blocks.end());
    for (Block *block : code.blocks)
      for (Operation &op : *block)
        for (OpOperand &operand : op.getOpOperands())
          if (!inside.contains(operand.get().getParentBlock()))
            operand.set(get(operand.get()));
    auto start = LLVM::BrOp::create(b, loc, initial, code.blocks.front());

    Region &region = func.getBody();
    for (Block *block : code.blocks) {
      block->getParent()->getBlocks().remove(block);
      region.push_back(block);
    }
    auto *end = new Block();
    region.push_back(end);
    b.setInsertionPointToEnd(end);
    LLVM::ReturnOp::create(b, loc, ValueRange());
    for (Block *block : code.blocks) {
      Operation *last = block->getTerminator();
      for (BlockOperand &next : last->getBlockOperands())
        if (next.get() == code.exit)
          next.set(end);
    }
    similar.replaceIntegers(
        ops, start, llvm::to_vector(arguments.drop_front(code.inputs.size())));
  }

  static void erase(const Code &code) {
    for (Block *block : code.blocks)
      block->dropAllReferences();
    for (Block *block : code.blocks)
      block->erase();
  }
};

} // namespace
