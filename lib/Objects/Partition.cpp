//===- Partition.cpp - Parts of a module to compile apart -----------------===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Partition.h"

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/SymbolTable.h"
#include "llvm/ADT/EquivalenceClasses.h"
#include "llvm/ADT/SetVector.h"

using namespace mlir;

namespace {

/// Calls `visit` with each symbol that `op` and what is inside refer to.
void forEachReference(Operation *op,
                      llvm::function_ref<void(StringAttr)> visit) {
  auto visitAll = [&](auto &&attributes) {
    for (NamedAttribute attr : attributes)
      attr.getValue().walk(
          [&](FlatSymbolRefAttr ref) { visit(ref.getAttr()); });
  };
  visitAll(op->getAttrs());
  op->walk([&](Operation *inner) {
    // A dictionary with the properties of each operation would be made anew.
    visitAll(inner->getDiscardableAttrs());
    // Calls and addresses keep their symbol in properties.
    if (auto call = dyn_cast<LLVM::CallOp>(inner)) {
      if (auto callee = call.getCalleeAttr())
        visit(callee.getAttr());
    } else if (auto address = dyn_cast<LLVM::AddressOfOp>(inner)) {
      visit(address.getGlobalNameAttr().getAttr());
    }
  });
}

bool isDefinition(LLVM::LLVMFuncOp func) { return !func.isExternal(); }

/// What a module defines and declares, by name.
using SymbolMap = llvm::DenseMap<StringAttr, Operation *>;

SymbolMap symbolsOf(ModuleOp module) {
  SymbolMap symbols;
  for (Operation &op : *module.getBody())
    if (auto name =
            op.getAttrOfType<StringAttr>(SymbolTable::getSymbolAttrName()))
      symbols[name] = &op;
  return symbols;
}

OwningOpRef<ModuleOp> beginPart(ModuleOp module) {
  OwningOpRef<ModuleOp> part = ModuleOp::create(module.getLoc());
  (*part)->setAttrs(module->getAttrDictionary());
  return part;
}

/// Makes declarations of functions and copies of constants that `definitions`
/// refer to, and that are none of them.
void copyReferred(const SymbolMap &symbols, ArrayRef<Operation *> definitions,
                  OpBuilder &b) {
  llvm::SmallSetVector<Operation *, 16> referred;
  llvm::SmallPtrSet<Operation *, 16> defined(definitions.begin(),
                                             definitions.end());
  auto note = [&](StringAttr name) {
    auto it = symbols.find(name);
    if (it != symbols.end() && !defined.contains(it->second))
      referred.insert(it->second);
  };
  for (Operation *op : definitions)
    forEachReference(op, note);
  for (unsigned i = 0; i < referred.size(); ++i) {
    Operation *op = referred[i];
    if (auto func = dyn_cast<LLVM::LLVMFuncOp>(op)) {
      auto declaration =
          cast<LLVM::LLVMFuncOp>(b.insert(func->cloneWithoutRegions()));
      declaration.setLinkage(LLVM::Linkage::External);
      // A hidden declaration lets the linker bind it without a PLT entry.
      declaration->removeAttr("sdx.kernel");
      continue;
    }
    // Globals are internal constants: each part has its own copy.
    forEachReference(op, note);
    b.clone(*op);
  }
}

size_t countOps(Operation *op) {
  size_t count = 0;
  op->walk([&](Operation *) { ++count; });
  return count;
}

} // namespace

namespace sardonyx {

SmallVector<SmallVector<Operation *>> partitionModule(ModuleOp module,
                                                      unsigned maxParts) {
  SymbolTable symbols(module);
  llvm::EquivalenceClasses<Operation *> groups;
  SmallVector<LLVM::LLVMFuncOp> funcs;
  LLVM::LLVMFuncOp host;
  for (auto func : module.getOps<LLVM::LLVMFuncOp>()) {
    if (!isDefinition(func))
      continue;
    funcs.push_back(func);
    groups.insert(func);
    if (func->hasAttr(kHostAttr)) {
      if (host)
        groups.unionSets(host, func);
      host = func;
    }
  }
  for (LLVM::LLVMFuncOp func : funcs)
    forEachReference(func, [&](StringAttr name) {
      auto callee = symbols.lookup<LLVM::LLVMFuncOp>(name);
      if (callee && isDefinition(callee) &&
          callee.getLinkage() == LLVM::Linkage::Internal)
        groups.unionSets(func, callee);
    });

  struct Group {
    SmallVector<Operation *> members;
    size_t cost = 0;
    bool isHost = false;
  };
  llvm::MapVector<Operation *, Group> byLeader;
  for (LLVM::LLVMFuncOp func : funcs) {
    Group &group = byLeader[groups.getLeaderValue(func)];
    group.members.push_back(func);
    group.cost += countOps(func);
    group.isHost |= func->hasAttr(kHostAttr);
  }
  SmallVector<Group> all;
  for (auto &entry : byLeader)
    all.push_back(std::move(entry.second));
  // Largest first, each to the part that has least so far.
  llvm::stable_sort(
      all, [](const Group &a, const Group &b) { return a.cost > b.cost; });
  SmallVector<SmallVector<Operation *>> parts(std::max(1u, maxParts));
  SmallVector<size_t> load(parts.size());
  SmallVector<Operation *> hostPart;
  for (Group &group : all) {
    if (group.isHost) {
      llvm::append_range(hostPart, group.members);
      continue;
    }
    size_t least = std::min_element(load.begin(), load.end()) - load.begin();
    llvm::append_range(parts[least], group.members);
    load[least] += group.cost;
  }
  llvm::erase_if(parts, [](auto &part) { return part.empty(); });
  if (!hostPart.empty())
    parts.insert(parts.begin(), std::move(hostPart));
  return parts;
}

OwningOpRef<ModuleOp> extractPart(ModuleOp module,
                                  ArrayRef<Operation *> definitions) {
  OwningOpRef<ModuleOp> part = beginPart(module);
  auto b = OpBuilder::atBlockEnd(part->getBody());
  for (Operation *op : definitions)
    b.clone(*op);
  copyReferred(symbolsOf(module), definitions, b);
  return part;
}

SmallVector<OwningOpRef<ModuleOp>>
moveParts(ModuleOp module, ArrayRef<SmallVector<Operation *>> parts) {
  const SymbolMap symbols = symbolsOf(module);
  SmallVector<OwningOpRef<ModuleOp>> moved;
  for (ArrayRef<Operation *> definitions : parts) {
    OwningOpRef<ModuleOp> &part = moved.emplace_back(beginPart(module));
    auto b = OpBuilder::atBlockEnd(part->getBody());
    for (Operation *op : definitions)
      op->moveBefore(part->getBody(), part->getBody()->end());
    copyReferred(symbols, definitions, b);
  }
  return moved;
}

} // namespace sardonyx
