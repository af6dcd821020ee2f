//===- Names.cpp - Unique names for values --------------------------------===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "lib/Exporter/Names.h"

using namespace mlir;

namespace sardonyx::exporter {

static StringRef nameAttribute(DictionaryAttr attributes) {
  if (!attributes)
    return "";
  auto name = attributes.getAs<StringAttr>("onnx.name");
  return name ? name.getValue() : "";
}

Names::Names(func::FuncOp func) {
  // The names that callers know come first.
  for (unsigned i = 0; i < func.getNumArguments(); ++i)
    assign(func.getArgument(i), nameAttribute(func.getArgAttrDict(i)));
  auto ret = func.getBody().front().getTerminator();
  for (unsigned i = 0; i < func.getNumResults(); ++i) {
    results.push_back(unique(nameAttribute(func.getResultAttrDict(i))));
    Value value = ret->getOperand(i);
    // A constant is an initializer, and stays one under its own name.
    bool constant = value.getDefiningOp() &&
                    value.getDefiningOp()->hasTrait<OpTrait::ConstantLike>();
    if (value.getDefiningOp() && !constant)
      names.try_emplace(value, results.back());
  }
  func.walk([&](Operation *op) {
    auto wishes = op->getAttrOfType<ArrayAttr>("onnx.names");
    for (OpResult result : op->getResults()) {
      unsigned i = result.getResultNumber();
      auto wish = wishes && i < wishes.size() ? dyn_cast<StringAttr>(wishes[i])
                                              : StringAttr();
      assign(result, wish ? wish.getValue() : "");
    }
    for (Region &region : op->getRegions())
      for (BlockArgument argument : region.getArguments()) {
        auto wish = dyn_cast<NameLoc>(argument.getLoc());
        assign(argument, wish ? wish.getName().getValue() : "");
      }
  });
}

std::string Names::unique(StringRef wish) {
  if (!wish.empty() && taken.insert(wish).second)
    return wish.str();
  return fresh();
}

std::string Names::fresh() {
  std::string name;
  do
    name = "v" + std::to_string(counter++);
  while (!taken.insert(name).second);
  return name;
}

void Names::assign(Value value, StringRef wish) {
  if (!names.count(value))
    names[value] = unique(wish);
}

std::string Names::of(Value value) {
  auto it = names.find(value);
  return it != names.end() ? it->second : names[value] = fresh();
}

} // namespace sardonyx::exporter
