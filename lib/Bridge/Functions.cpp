//===- Functions.cpp - Function bodies of operators -----------------------===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "sardonyx/Bridge/Bridge.h"
#include "sardonyx/RefusedAttrs.h"

#include "dialects/ONNX/ONNX.h"
#include "lib/Bridge/OpToNode.h"
#include "lib/Contrib/Contrib.h"
#include "lib/Importer/Error.h"
#include "lib/Importer/GraphBuilder.h"
#include "lib/Importer/Model.h"
#include "lib/Importer/Types.h"
#include "lib/Importer/Upgrade.h"

#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/SetVector.h"

#include <onnx/defs/function.h>
#include <onnx/defs/schema.h>

using namespace mlir;

namespace sardonyx {
namespace bridge {
namespace {

using ::onnx::FunctionProto;
using ::onnx::ModelProto;
using ::onnx::NodeProto;
using ::onnx::OpSchemaRegistry;

/// No body that ONNX defines comes near this.
constexpr uint64_t kMaxBodyNodes = 20000;

const ::onnx::OpSchema *schemaOf(Operation *op) {
  contrib::registerSchemas();
  const onnx::OpSchema *schema = onnx::lookupSchema(op);
  return schema ? OpSchemaRegistry::Schema(schema->opType.str(),
                                           schema->domain.str())
                : nullptr;
}

const std::unordered_map<std::string, std::pair<int, int>> &latestVersions() {
  return OpSchemaRegistry::DomainToVersionRange::Instance().Map();
}

/// Function builders copy nodes out of graphs that the op brings along; these
/// are in the latest form, whatever version the body is written in.
void markLatest(::onnx::GraphProto &graph) {
  for (NodeProto &node : *graph.mutable_node()) {
    auto it = latestVersions().find(node.domain());
    if (it != latestVersions().end() && node.op_type() != "Constant")
      node.set_op_type(node.op_type() + "@" +
                       std::to_string(it->second.second));
    importer::forEachSubgraph(
        node, [](::onnx::GraphProto &inner) { markLatest(inner); });
  }
}

/// A model of one node that calls a function of its own: the op and its body.
class Expansion {
public:
  explicit Expansion(Operation *op) : op(op) {
    toNode.nameOf = [this](Value value) {
      return "v" + std::to_string(
                       values.try_emplace(value, values.size()).first->second);
    };
    toNode.writeTensor = [](ElementsAttr value, Operation *,
                            ::onnx::TensorProto &tensor) {
      writeWholeTensor(value, tensor);
    };
  }

  /// Builds the body before the op; returns its results.
  SmallVector<Value> build(RewriterBase &rewriter) {
    ModelProto &proto = model.proto;
    proto.set_ir_version(importer::kMaxIRVersion);
    ::onnx::GraphProto &graph = *proto.mutable_graph();
    NodeProto &call = *graph.add_node();
    toNode.node(op, call);
    importer::forEachSubgraph(
        call, [](::onnx::GraphProto &graph) { markLatest(graph); });
    addFunction(call);
    addInputs(graph);
    for (Value result : op->getResults())
      toNode.declare(result, *graph.add_output());

    importer::inlineFunctions(proto, kMaxBodyNodes, /*allowCapture=*/true);
    if (importer::upgradeNeedsTypes(proto))
      importer::inferTypes(proto);
    importer::upgradeModel(proto);
    importer::inferTypes(proto);

    // The operands' data served inference only.
    graph.clear_initializer();
    importer::TensorReader tensors(op->getContext(), model, 64);
    importer::GraphBuilder nodes(rewriter, tensors, op->getLoc(),
                                 /*keepMetadata=*/false, /*keepNames=*/false);
    llvm::SmallPtrSet<Value, 4> results(op->result_begin(), op->result_end());
    for (auto &[value, number] : values)
      if (!results.contains(value) && !isInside(value))
        nodes.define("v" + std::to_string(number), value);
    nodes.addGraph(graph);
    SmallVector<Value> built;
    for (const auto &output : graph.output())
      built.push_back(nodes.output(output.name()));
    return built;
  }

private:
  bool isInside(Value value) {
    Operation *parent = value.getParentBlock()->getParentOp();
    return parent && op->isAncestor(parent);
  }

  void addFunction(NodeProto &call) {
    std::vector<::onnx::TypeProto> types;
    for (Value input : onnx::getPositionalInputs(op)) {
      types.emplace_back();
      if (input && !importer::convertType(input.getType(), types.back()) &&
          !schemaOf(op)->HasFunction())
        importer::fail("the type of an operand is not known");
    }
    FunctionProto &function = *model.proto.add_functions();
    if (!importer::makeFunctionBody(call, types, function))
      importer::fail("ONNX has no function body for these types and "
                     "attributes");
    // A name of its own, lest a use of the operator in a graph that the op
    // brings along be taken for a call of the function.
    call.set_op_type("body");
    call.set_domain("sdx");
    function.set_name(call.op_type());
    function.set_domain(call.domain());
    importer::normalizeFunction(function);
    // The body marks what it wants otherwise.
    for (const auto &entry : latestVersions()) {
      auto *import = model.proto.add_opset_import();
      import->set_domain(entry.first);
      import->set_version(entry.second.second);
    }
  }

  void addInputs(::onnx::GraphProto &graph) {
    llvm::SetVector<Value> used;
    op->walk([&](Operation *inner) {
      for (Value operand : inner->getOperands())
        if (!isInside(operand))
          used.insert(operand);
    });
    for (Value value : used) {
      toNode.declare(value, *graph.add_input());
      auto constant = value.getDefiningOp<onnx::ConstantOp>();
      auto elements =
          constant ? dyn_cast_or_null<ElementsAttr>(constant->getAttr("value"))
                   : ElementsAttr();
      if (!elements)
        continue;
      ::onnx::TensorProto tensor;
      writeSmallTensor(elements, constant, tensor);
      tensor.set_name(toNode.nameOf(value));
      if (tensor.has_raw_data())
        *graph.add_initializer() = std::move(tensor);
    }
  }

  Operation *op;
  OpToNode toNode;
  importer::Model model;
  llvm::MapVector<Value, unsigned> values;
};

/// Takes constants out of the op's graphs, so that their data need not go
/// through the nodes of the body.
void hoistConstants(Operation *op, RewriterBase &rewriter) {
  SmallVector<Operation *> constants;
  for (Region &region : op->getRegions())
    region.walk([&](onnx::ConstantOp inner) { constants.push_back(inner); });
  for (Operation *constant : constants)
    rewriter.moveOpBefore(constant, op);
}

} // namespace
} // namespace bridge

bool hasOnnxFunctionBody(Operation *op) {
  const ::onnx::OpSchema *schema = bridge::schemaOf(op);
  return schema &&
         (schema->HasFunction() || schema->HasContextDependentFunction());
}

LogicalResult expandOnnxFunction(Operation *op, RewriterBase &rewriter) {
  if (!hasOnnxFunctionBody(op))
    return rewriter.notifyMatchFailure(op, "ONNX defines no function body");
  OpBuilder::InsertionGuard guard(rewriter);
  bridge::hoistConstants(op, rewriter);
  rewriter.setInsertionPoint(op);
  Operation *before = op->getPrevNode();
  SmallVector<Value> results;
  std::string error;
  bool isForGood = false;
  try {
    results = bridge::Expansion(op).build(rewriter);
  } catch (const contrib::Refusal &refusal) {
    error = refusal.what();
    isForGood = refusal.isForGood;
  } catch (const std::exception &exception) {
    error = exception.what();
  }
  if (!error.empty()) {
    // Take back what was built before the error.
    while (op->getPrevNode() != before)
      rewriter.eraseOp(op->getPrevNode());
    // No lowering will say more of these.
    if (contrib::isContrib(*bridge::schemaOf(op)))
      op->setAttr(kRefusedAttr, rewriter.getStringAttr(error));
    if (isForGood)
      op->setAttr(kRefusedForGoodAttr, rewriter.getUnitAttr());
    else
      op->removeAttr(kRefusedForGoodAttr);
    return rewriter.notifyMatchFailure(op, error);
  }
  // Users rely on the types that they were checked with.
  for (auto [result, value] : llvm::zip_equal(op->getResults(), results))
    if (Operation *maker = value.getDefiningOp();
        maker && value.getType() != result.getType())
      rewriter.modifyOpInPlace(
          maker, [&, value = value, type = result.getType()]() mutable {
            value.setType(type);
          });
  rewriter.replaceOp(op, results);
  return success();
}

} // namespace sardonyx
