//===- Inference.cpp - Result types from schemas --------------------------===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "sardonyx/Bridge/Bridge.h"

#include "dialects/ONNX/ONNX.h"
#include "lib/Bridge/OpToNode.h"
#include "lib/Contrib/Contrib.h"
#include "lib/Importer/GuardedSchemas.h"
#include "lib/Importer/Types.h"

#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/SetVector.h"

#include <onnx/shape_inference/implementation.h>

#include <unordered_map>

using namespace mlir;

namespace sardonyx::bridge {
namespace {

using ::onnx::NodeProto;
using ::onnx::OpSchemaRegistry;
using ::onnx::TensorProto;
using ::onnx::TypeProto;
using ::onnx::shape_inference::DataValueMap;

/// Everything that inference may know of an op's surroundings: types of all
/// values it uses, also inside of its graphs, and small constants.
class Surroundings {
public:
  explicit Surroundings(Operation *op) : op(op) {
    toNode.nameOf = [this](Value value) { return name(value); };
    toNode.writeTensor = writeSmallTensor;
    toNode.node(op, node);
    op->walk([&](Operation *inner) {
      for (Value operand : inner->getOperands())
        add(operand);
    });
    for (Value operand : op->getOperands())
      propagate(operand, kPropagationDepth);
  }

  Operation *op;
  NodeProto node;
  std::unordered_map<std::string, TypeProto *> types;
  std::unordered_map<std::string, const TensorProto *> data;
  DataValueMap values;

private:
  /// Ops behind an operand that sizes are traced through.
  static constexpr unsigned kPropagationDepth = 12;

  std::string name(Value value) {
    auto [it, added] = names.try_emplace(value, names.size());
    return "v" + std::to_string(it->second);
  }

  void add(Value value) {
    if (!seen.insert(value))
      return;
    // A value defined inside of the op's own graphs is declared there.
    if (Operation *parent = value.getParentBlock()->getParentOp())
      if (op->isAncestor(parent))
        return;
    std::string key = name(value);
    auto type = std::make_unique<TypeProto>();
    if (importer::convertType(value.getType(), *type)) {
      types[key] = type.get();
      ownedTypes.push_back(std::move(type));
    }
    auto constant = value.getDefiningOp<onnx::ConstantOp>();
    auto elements =
        constant ? dyn_cast_or_null<ElementsAttr>(constant->getAttr("value"))
                 : ElementsAttr();
    if (!elements)
      return;
    auto tensor = std::make_unique<TensorProto>();
    writeSmallTensor(elements, constant, *tensor);
    // A single number may come as a list of one, as long as it isn't constant:
    // what folding finds out must not make the model wrong.
    if (isa<onnx::RangeOp>(op) && elements.getNumElements() == 1)
      tensor->clear_dims();
    // Without its bytes a tensor would be taken for damaged.
    if (tensor->has_raw_data()) {
      data[key] = tensor.get();
      ownedTensors.push_back(std::move(tensor));
    }
  }

  /// Partial values of small integer tensors (shapes under construction).
  void propagate(Value value, unsigned depth) {
    Operation *producer = value.getDefiningOp();
    auto type = dyn_cast<RankedTensorType>(value.getType());
    if (!producer || depth == 0 || !type || type.getRank() > 1 ||
        !type.getElementType().isSignlessInteger() ||
        isa<onnx::ConstantOp>(producer) || producer->getNumResults() != 1 ||
        !visited.insert(producer).second)
      return;
    const onnx::OpSchema *schema = onnx::lookupSchema(producer);
    const ::onnx::OpSchema *rules =
        schema ? OpSchemaRegistry::Schema(schema->opType.str(),
                                          schema->domain.str())
               : nullptr;
    if (!rules || !rules->has_data_propagation_function())
      return;
    for (Value operand : producer->getOperands()) {
      propagate(operand, depth - 1);
      add(operand);
    }
    NodeProto step;
    toNode.node(producer, step);
    ::onnx::shape_inference::DataPropagationContextImpl context(step, types,
                                                                data, values);
    importer::propagateGuarded(*rules, context);
  }

  OpToNode toNode;
  llvm::DenseMap<Value, unsigned> names;
  llvm::SetVector<Value> seen;
  llvm::SmallPtrSet<Operation *, 8> visited;
  std::vector<std::unique_ptr<TypeProto>> ownedTypes;
  std::vector<std::unique_ptr<TensorProto>> ownedTensors;
};

std::unordered_map<std::string, int> latestVersions() {
  std::unordered_map<std::string, int> versions;
  for (const auto &entry :
       OpSchemaRegistry::DomainToVersionRange::Instance().Map())
    versions[entry.first] = entry.second.second;
  return versions;
}

class Inference : public onnx::OnnxInferenceDialectInterface {
public:
  using OnnxInferenceDialectInterface::OnnxInferenceDialectInterface;

  LogicalResult inferResultTypes(Operation *op, SmallVectorImpl<Type> &types,
                                 std::string &error) const override {
    types.assign(op->result_type_begin(), op->result_type_end());
    const onnx::OpSchema *schema = onnx::lookupSchema(op);
    if (!schema)
      return success();
    try {
      infer(op, *schema, types);
      return success();
    } catch (const std::exception &exception) {
      types.assign(op->result_type_begin(), op->result_type_end());
      // Rules cannot be checked where types are missing.
      if (llvm::any_of(op->getOperandTypes(), isUnknown))
        return success();
      error = importer::inferenceErrorText(exception);
      return failure();
    }
  }

private:
  static bool isUnknown(Type type) { return isa<onnx::UnknownType>(type); }

  static void infer(Operation *op, const onnx::OpSchema &schema,
                    SmallVectorImpl<Type> &types) {
    const ::onnx::OpSchema *rules =
        OpSchemaRegistry::Schema(schema.opType.str(), schema.domain.str());
    if (!rules)
      return;
    Surroundings around(op);
    static const std::unordered_map<std::string, int> versions =
        latestVersions();
    ::onnx::ShapeInferenceOptions options(false, 0, true);
    ::onnx::shape_inference::SymbolTableImpl symbols;
    importer::GuardedSchemas schemas;
    ::onnx::shape_inference::GraphInferenceContext graphs(
        around.types, versions, &symbols, {}, &schemas, &around.values);
    ::onnx::shape_inference::InferenceContextImpl context(
        around.node, around.types, around.data, {}, options, &around.values,
        &graphs);
    importer::inferGuarded(*rules, context);
    if (!rules->has_type_and_shape_inference_function() && rules->HasFunction())
      ::onnx::shape_inference::InferShapeForFunctionNode(
          *rules->GetFunction(), &schemas, context, options, {}, &symbols,
          &around.values);
    unsigned present = 0;
    for (auto [i, result] : llvm::enumerate(onnx::getPositionalOutputs(op))) {
      if (!result)
        continue;
      if (Type type = importer::convertType(op->getContext(),
                                            context.allOutputTypes_[i]))
        types[present] = type;
      ++present;
    }
  }
};

} // namespace
} // namespace sardonyx::bridge

void sardonyx::registerOnnxBridge(DialectRegistry &registry) {
  contrib::registerSchemas();
  registry.addExtension(+[](MLIRContext *, onnx::ONNXDialect *dialect) {
    dialect->addInterfaces<bridge::Inference>();
  });
}
