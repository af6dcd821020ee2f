//===- GraphBuilder.h - Nodes to ops ----------------------------*- C++ -*-===//

#ifndef SARDONYX_LIB_IMPORTER_GRAPHBUILDER_H
#define SARDONYX_LIB_IMPORTER_GRAPHBUILDER_H

#include "dialects/ONNX/ONNX.h"
#include "lib/Importer/Tensors.h"

#include "mlir/IR/Builders.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/ADT/StringSet.h"

#include <onnx/onnx_pb.h>

namespace sardonyx::importer {

/// Builds ops from nodes that are in their operators' latest form. Types come
/// from the graphs' value_info, where inference has put them.
class GraphBuilder {
public:
  /// Ops go where `builder` stands; `fileLoc` is what node names are put on.
  GraphBuilder(mlir::OpBuilder &builder, TensorReader &tensors,
               mlir::Location fileLoc, bool keepMetadata = false,
               bool keepNames = true)
      : builder(builder), tensors(tensors), fileLoc(fileLoc),
        keepMetadata(keepMetadata), keepNames(keepNames) {
    scopes.emplace_back();
  }

  /// Version of the operators of unknown domains.
  void setVersion(llvm::StringRef domain, int64_t version) {
    versions[domain] = version;
  }
  /// Makes `value` known by `name` in the innermost graph.
  void define(llvm::StringRef name, mlir::Value value);
  /// Adds the graph's constants and nodes. Its inputs are defined already.
  void addGraph(const ::onnx::GraphProto &graph);
  /// Value of one of the graph's outputs.
  mlir::Value output(const std::string &name);

  mlir::Location location(llvm::StringRef name);

private:
  struct Scope {
    llvm::StringMap<mlir::Value> values;
    llvm::StringMap<const ::onnx::TypeProto *> types;
    /// Names that nodes of the graph will define.
    llvm::StringSet<> pending;
  };

  void addInitializers(const ::onnx::GraphProto &graph);
  void addNode(const ::onnx::NodeProto &node);
  void addSchemaNode(const ::onnx::NodeProto &node,
                     const onnx::OpSchema &schema);
  void addConstant(const ::onnx::NodeProto &node);
  void addCustomNode(const ::onnx::NodeProto &node);
  void finishNode(const ::onnx::NodeProto &node, mlir::Operation *op);
  mlir::Operation *createConstant(mlir::Location loc, TensorValue value);
  void addRegion(mlir::Region &region, const ::onnx::GraphProto &graph);

  mlir::Value lookup(const std::string &name, const ::onnx::NodeProto *user);
  llvm::SmallVector<mlir::Value> inputs(const ::onnx::NodeProto &node);
  const ::onnx::TypeProto *typeOf(llvm::StringRef name) const;
  mlir::Type resultType(const ::onnx::NodeProto &node, int index,
                        const onnx::OpSchema *schema,
                        llvm::ArrayRef<mlir::Value> inputs);
  mlir::Attribute attribute(const ::onnx::NodeProto &node,
                            const ::onnx::AttributeProto &attribute);
  mlir::DictionaryAttr metadata(
      const google::protobuf::RepeatedPtrField<::onnx::StringStringEntryProto>
          &entries);

  mlir::OpBuilder &builder;
  TensorReader &tensors;
  mlir::Location fileLoc;
  bool keepMetadata;
  bool keepNames;
  llvm::StringMap<int64_t> versions;
  llvm::SmallVector<Scope, 4> scopes;
};

} // namespace sardonyx::importer

#endif // SARDONYX_LIB_IMPORTER_GRAPHBUILDER_H
