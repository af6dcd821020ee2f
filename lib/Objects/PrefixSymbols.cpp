//===- PrefixSymbols.cpp - Names of their own for a model -----------------===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Several models, and one model for several processors, are linked into one
// program: what their objects share among themselves needs names of its own.
//
//===----------------------------------------------------------------------===//

#include "sardonyx/Objects/Objects.h"

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/IR/AttrTypeSubElements.h"

using namespace mlir;

void sardonyx::prefixSymbols(ModuleOp module, StringRef prefix) {
  llvm::DenseMap<StringAttr, StringAttr> names;
  for (auto func : module.getOps<LLVM::LLVMFuncOp>()) {
    if (func.isExternal() || func.getLinkage() != LLVM::Linkage::External)
      continue;
    auto name = StringAttr::get(module.getContext(), prefix + func.getName());
    names[func.getNameAttr()] = name;
    func.setSymNameAttr(name);
  }
  AttrTypeReplacer replacer;
  replacer.addReplacement(
      [&](FlatSymbolRefAttr reference)
          -> std::optional<std::pair<Attribute, WalkResult>> {
        auto it = names.find(reference.getAttr());
        if (it == names.end())
          return std::nullopt;
        return std::make_pair(FlatSymbolRefAttr::get(it->second),
                              WalkResult::skip());
      });
  for (auto func : module.getOps<LLVM::LLVMFuncOp>())
    replacer.recursivelyReplaceElementsIn(func);
}
