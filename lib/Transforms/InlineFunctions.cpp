//===- InlineFunctions.cpp - Functions of the model into their callers ----===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Calls are taken in the order of the program, those of a body right after the
// call that it came from. So the numbers in the names of nodes are the same
// whichever calls share a function.
//
//===----------------------------------------------------------------------===//

#include "sardonyx/Transforms/Passes.h"

#include "mlir/Dialect/Func/Extensions/InlinerExtension.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Transforms/InliningUtils.h"
#include "llvm/ADT/DenseSet.h"
#include "llvm/ADT/STLExtras.h"

namespace sardonyx {
#define GEN_PASS_DEF_ONNXINLINEFUNCTIONS
#include "sardonyx/Transforms/Passes.h.inc"
} // namespace sardonyx

using namespace mlir;
using namespace sardonyx;

namespace {

/// Names of results: those that the call gives, or the body's own.
ArrayRef<Attribute> namesOf(Operation *op) {
  auto names = op->getAttrOfType<ArrayAttr>("onnx.names");
  return names ? names.getValue() : ArrayRef<Attribute>();
}

/// Gives what is inlined the names that it has in the caller.
class Renaming {
public:
  Renaming(onnx::CallOp call, func::FuncOp callee, uint64_t number)
      : call(call) {
    std::string base = callee.getName().str();
    if (auto name = callee->getAttrOfType<StringAttr>("onnx.function"))
      base = name.getValue();
    // A node without a name is located by its first output.
    if (auto name = dyn_cast<NameLoc>(call.getLoc());
        name && !call->hasAttr("onnx.unnamed"))
      base = name.getName().getValue();
    prefix = base + "/" + std::to_string(number) + "/";
  }

  void apply(Block &body) {
    Operation *ret = body.getTerminator();
    for (auto [i, value] : llvm::enumerate(ret->getOperands()))
      returned.try_emplace(value, i);
    body.walk([&](Operation *op) {
      if (op != ret)
        rename(op);
    });
  }

private:
  StringAttr prefixed(StringAttr name) {
    if (name.empty())
      return name;
    return StringAttr::get(name.getContext(), prefix + name.getValue());
  }

  Location prefixed(Location loc) {
    if (auto name = dyn_cast<NameLoc>(loc))
      return NameLoc::get(prefixed(name.getName()), name.getChildLoc());
    return loc;
  }

  void rename(Operation *op) {
    for (Region &region : op->getRegions())
      for (BlockArgument argument : region.getArguments())
        argument.setLoc(prefixed(argument.getLoc()));
    if (isa<onnx::YieldOp>(op))
      return;
    SmallVector<Attribute> names = newNames(op);
    auto loc = dyn_cast<NameLoc>(op->getLoc());
    ArrayRef<Attribute> old = namesOf(op);
    // The location of a node without a name is its first result's.
    if (loc && !old.empty() && loc.getName() == old[0])
      op->setLoc(NameLoc::get(cast<StringAttr>(names[0]), loc.getChildLoc()));
    else
      op->setLoc(prefixed(op->getLoc()));
    if (llvm::any_of(names, [](Attribute name) {
          return !cast<StringAttr>(name).empty();
        }))
      op->setAttr("onnx.names", ArrayAttr::get(op->getContext(), names));
    nameDims(op);
  }

  SmallVector<Attribute> newNames(Operation *op) {
    ArrayRef<Attribute> old = namesOf(op), given = namesOf(call);
    SmallVector<Attribute> names;
    for (OpResult result : op->getResults()) {
      unsigned i = result.getResultNumber();
      auto name = i < old.size() ? dyn_cast<StringAttr>(old[i]) : StringAttr();
      auto at = returned.find(result);
      auto wish = at != returned.end() && at->second < given.size()
                      ? dyn_cast<StringAttr>(given[at->second])
                      : StringAttr();
      names.push_back(wish   ? wish
                      : name ? prefixed(name)
                             : StringAttr::get(op->getContext()));
    }
    return names;
  }

  /// Sizes have names in the caller only.
  void nameDims(Operation *op) {
    auto dims = call->getAttrOfType<ArrayAttr>("sdx.dims");
    if (!dims)
      return;
    SmallVector<Attribute> row(op->getNumResults(),
                               ArrayAttr::get(op->getContext(), {}));
    bool any = false;
    for (OpResult result : op->getResults()) {
      auto at = returned.find(result);
      if (at == returned.end() || at->second >= dims.size())
        continue;
      row[result.getResultNumber()] = dims[at->second];
      any = true;
    }
    if (any)
      op->setAttr("sdx.dims", ArrayAttr::get(op->getContext(), row));
  }

  onnx::CallOp call;
  std::string prefix;
  llvm::DenseMap<Value, size_t> returned;
};

/// Tells what is inlined before its terminator goes.
struct NamingInliner : InlinerInterface {
  using InlinerInterface::InlinerInterface;
  void processInlinedBlocks(iterator_range<Region::iterator> blocks) override {
    process(*blocks.begin());
  }
  std::function<void(Block &)> process;
};

class CallInliner {
public:
  CallInliner(ModuleOp module, uint64_t maxOps)
      : module(module), symbols(module), interface(module.getContext()),
        maxOps(maxOps) {}

  LogicalResult inlineInto(func::FuncOp func) {
    frames.assign(1, {func, -1});
    push(func.getBody(), 0);
    while (!stack.empty()) {
      auto [call, parent] = stack.pop_back_val();
      if (failed(inlineOne(call, parent)))
        return failure();
    }
    return success();
  }

private:
  struct Pending {
    onnx::CallOp call;
    int parent;
  };
  /// A function whose body stands in the one that `parent` tells.
  struct Frame {
    Operation *callee;
    int parent;
  };

  template <typename Range> void push(Range &range, int parent) {
    size_t before = stack.size();
    // With a walk in the order of the program, the first call ends on top.
    range.walk([&](onnx::CallOp call) { stack.push_back({call, parent}); });
    std::reverse(stack.begin() + before, stack.end());
  }

  LogicalResult inlineOne(onnx::CallOp call, int parent) {
    auto callee = symbols.lookup<func::FuncOp>(call.getCallee());
    if (!callee)
      return call.emitOpError("calls '")
             << call.getCallee() << "', which is no function.";
    for (int i = parent; i >= 0; i = frames[i].parent)
      if (frames[i].callee == callee)
        return call.emitOpError("calls function '")
               << call.getCallee()
               << "', which calls itself, directly or through others.";
    if (!llvm::hasSingleElement(callee.getBody()))
      return call.emitOpError("calls function '")
             << call.getCallee() << "', which is not a single block.";
    auto [size, isNew] = sizes.try_emplace(callee, 0);
    if (isNew)
      callee.walk([&count = size->second](Operation *) { ++count; });
    made += size->second;
    if (made > maxOps)
      return call.emitOpError("cannot be inlined: the functions of the model "
                              "make more than ")
             << maxOps << " operations.";
    frames.push_back({callee, parent});
    Renaming renaming(call, callee, number++);
    interface.process = [&](Block &body) {
      renaming.apply(body);
      push(body, frames.size() - 1);
    };
    IRMapping mapping;
    mapping.map(callee.getArguments(), call.getInputs());
    if (failed(inlineRegion(interface, cloneBody, &callee.getBody(), call,
                            mapping, call.getResults(), call.getResultTypes())))
      return call.emitOpError("cannot be inlined.");
    call.erase();
    return success();
  }

  static void cloneBody(OpBuilder &, Region *src, Block *inlineBlock,
                        Block *postInsertBlock, IRMapping &mapper, bool) {
    src->cloneInto(inlineBlock->getParent(), postInsertBlock->getIterator(),
                   mapper);
  }

  ModuleOp module;
  SymbolTable symbols;
  NamingInliner interface;
  uint64_t maxOps, made = 0, number = 0;
  SmallVector<Pending> stack;
  SmallVector<Frame> frames;
  llvm::DenseMap<Operation *, uint64_t> sizes;
};

struct OnnxInlineFunctionsPass
    : sardonyx::impl::OnnxInlineFunctionsBase<OnnxInlineFunctionsPass> {
  using OnnxInlineFunctionsBase::OnnxInlineFunctionsBase;

  void getDependentDialects(DialectRegistry &registry) const override {
    OnnxInlineFunctionsBase::getDependentDialects(registry);
    func::registerInlinerExtension(registry);
  }

  void runOnOperation() override {
    ModuleOp module = getOperation();
    llvm::DenseSet<StringAttr> called, needed;
    if (auto uses = SymbolTable::getSymbolUses(&module.getBodyRegion()))
      for (SymbolTable::SymbolUse use : *uses)
        (isa<onnx::CallOp>(use.getUser()) ? called : needed)
            .insert(use.getSymbolRef().getRootReference());
    if (called.empty())
      return;
    CallInliner inliner(module, maxOps);
    SmallVector<func::FuncOp> dead;
    for (auto func : module.getOps<func::FuncOp>()) {
      if (func.isPrivate() && called.contains(func.getSymNameAttr()) &&
          !needed.contains(func.getSymNameAttr()))
        dead.push_back(func);
      else if (failed(inliner.inlineInto(func)))
        return signalPassFailure();
    }
    // Functions that only call each other are called by nobody.
    for (func::FuncOp func : dead)
      func.erase();
  }
};

} // namespace
