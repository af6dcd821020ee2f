//===- Calls.cpp - Functions of the model as functions of the module ------===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// ONNX's functions are templates: a call decides types, ranks, attributes, and
// which inputs there are, and the values of constants that it passes may decide
// on shapes. So there is one function of the module for each instance, and
// calls share one where everything in it is equal, names included; those are
// put without what the call gave them.
//
//===----------------------------------------------------------------------===//

#include "lib/Importer/Error.h"
#include "lib/Importer/GraphBuilder.h"

#include "mlir/IR/OperationSupport.h"
#include "llvm/ADT/Twine.h"

using namespace mlir;

namespace sardonyx::importer {

using ::onnx::AttributeProto;
using ::onnx::GraphProto;
using ::onnx::NodeProto;

//===----------------------------------------------------------------------===//
// Names
//===----------------------------------------------------------------------===//

const GraphBuilder::Function *GraphBuilder::function() const {
  for (const Scope &scope : llvm::reverse(scopes))
    if (scope.function)
      return scope.function;
  return nullptr;
}

StringRef GraphBuilder::shown(StringRef name) const {
  const Function *inner = function();
  if (!inner)
    return name;
  auto it = inner->formals.find(name);
  if (it != inner->formals.end())
    return it->second;
  // Others are of what upgrades made, or of graphs that the caller gives.
  return name.consume_front(inner->call.prefix) ? name : "";
}

void GraphBuilder::nameResults(Operation *op, ArrayRef<StringRef> names) {
  if (!keepNames)
    return;
  SmallVector<StringRef> all;
  for (StringRef name : names)
    all.push_back(shown(name));
  if (!llvm::all_of(all, [](StringRef name) { return name.empty(); }))
    op->setDiscardableAttr("onnx.names", builder.getStrArrayAttr(all));
}

static std::string symbolOf(const NodeProto &call) {
  std::string name = call.op_type();
  if (!call.domain().empty())
    name = call.domain() + "." + name;
  if (!call.overload().empty())
    name += "." + call.overload();
  return name;
}

//===----------------------------------------------------------------------===//
// Instances
//===----------------------------------------------------------------------===//

Value GraphBuilder::Function::addArgument(Value operand, StringRef name,
                                          Location loc) {
  operands.push_back(operand);
  names.push_back(name);
  return func.getBody().front().addArgument(operand.getType(), loc);
}

/// The inputs that the call gives. One that it gives twice is two arguments,
/// the second of which nothing uses.
void GraphBuilder::addArguments(Function &function, ArrayRef<Value> operands) {
  const FunctionCall &call = function.call;
  for (auto [i, operand] : llvm::enumerate(operands)) {
    if (!operand)
      continue;
    const std::string &formal = call.inputs[i];
    Location loc = NameLoc::get(builder.getStringAttr(formal), fileLoc);
    Value argument = function.addArgument(operand, formal, loc);
    scopes.back().values.try_emplace(call.node.input(i), argument);
  }
}

void GraphBuilder::addReturn(Function &function) {
  const FunctionCall &call = function.call;
  SmallVector<Value> results;
  SmallVector<StringRef> names;
  for (auto [i, name] : llvm::enumerate(call.node.output())) {
    if (name.empty())
      continue;
    Value result = find(name);
    if (!result)
      failAt(call.node, "output '" + call.outputs[i] + "' of function '" +
                            call.node.op_type() + "' is defined nowhere in it");
    results.push_back(result);
    names.push_back(call.outputs[i]);
  }
  func::ReturnOp::create(builder, fileLoc, results);
  func::FuncOp func = function.func;
  func.setType(builder.getFunctionType(func.getBody().getArgumentTypes(),
                                       TypeRange(results)));
  func->setAttr("onnx.function", builder.getStringAttr(call.node.op_type()));
  func->setAttr("onnx.domain", builder.getStringAttr(call.node.domain()));
  for (auto [i, name] : llvm::enumerate(function.names))
    if (!name.empty())
      func.setArgAttr(i, "onnx.name", builder.getStringAttr(name));
  for (auto [i, name] : llvm::enumerate(names))
    func.setResultAttr(i, "onnx.name", builder.getStringAttr(name));
}

static size_t hashOf(func::FuncOp func) {
  llvm::hash_code hash = hash_value(func.getFunctionType());
  func.getBody().walk([&](Operation *op) {
    hash =
        llvm::hash_combine(hash, OperationEquivalence::computeHash(
                                     op, OperationEquivalence::ignoreHashValue,
                                     OperationEquivalence::ignoreHashValue,
                                     OperationEquivalence::IgnoreLocations));
  });
  return hash;
}

static bool areEqual(func::FuncOp a, func::FuncOp b) {
  NamedAttrList first(a->getAttrDictionary()), second(b->getAttrDictionary());
  for (NamedAttrList *list : {&first, &second})
    list->erase(SymbolTable::getSymbolAttrName());
  return first == second &&
         OperationEquivalence::isRegionEquivalentTo(
             &a.getBody(), &b.getBody(), OperationEquivalence::IgnoreLocations);
}

/// The function that is equal to `func`: an earlier one, or itself under a
/// symbol of its own.
func::FuncOp GraphBuilder::share(func::FuncOp func, const std::string &name) {
  auto &candidates = instances[hashOf(func)];
  for (func::FuncOp known : candidates)
    if (areEqual(known, func)) {
      func.erase();
      return known;
    }
  std::string symbol = name;
  while (symbol == "main_graph" || !symbols.insert(symbol).second)
    symbol = name + "_" + std::to_string(++suffixes[name]);
  func.setSymName(symbol);
  candidates.push_back(func);
  return func;
}

//===----------------------------------------------------------------------===//
// Calls
//===----------------------------------------------------------------------===//

void GraphBuilder::createCall(const Function &function, func::FuncOp callee) {
  const NodeProto &node = function.call.node;
  OperationState state(location(displayName(node)),
                       onnx::CallOp::getOperationName());
  state.addOperands(function.operands);
  state.addTypes(callee.getResultTypes());
  state.addAttribute("callee", FlatSymbolRefAttr::get(callee));
  NamedAttrList attributes;
  for (const AttributeProto &proto : node.attribute())
    attributes.set(proto.name(), attribute(node, proto));
  if (!attributes.empty())
    state.addAttribute("node_attributes",
                       attributes.getDictionary(builder.getContext()));
  Operation *op = builder.create(state);
  // What its nodes are called after then is the function, not the result.
  if (node.name().empty())
    op->setDiscardableAttr("onnx.unnamed", builder.getUnitAttr());
  finishNode(node, op);
}

int GraphBuilder::addCall(const GraphProto &graph, int index) {
  const FunctionCall &call = calls[*callBegin(graph.node(index))];
  SmallVector<Value> operands = inputs(call.node);
  OpBuilder::InsertPoint here = builder.saveInsertionPoint();
  builder.setInsertionPointToEnd(module.getBody());
  Function function{call,
                    func::FuncOp::create(builder, fileLoc, "instance",
                                         builder.getFunctionType({}, {})),
                    {},
                    {},
                    {}};
  function.func.setPrivate();
  for (int i = 0; i < call.node.output_size(); ++i)
    function.formals[call.node.output(i)] = call.outputs[i];
  builder.setInsertionPointToEnd(function.func.addEntryBlock());
  scopes.emplace_back();
  scopes.back().function = &function;
  addArguments(function, operands);
  bool outer = tensors.setSharing(true);
  for (++index; !isCallEnd(graph.node(index));)
    index = addNext(graph, index);
  addReturn(function);
  tensors.setSharing(outer);
  scopes.pop_back();
  builder.restoreInsertionPoint(here);
  createCall(function, share(function.func, symbolOf(call.node)));
  return index + 1;
}

} // namespace sardonyx::importer
