//===- GraphBuilder.h - Nodes to ops ----------------------------*- C++ -*-===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef SARDONYX_LIB_IMPORTER_GRAPHBUILDER_H
#define SARDONYX_LIB_IMPORTER_GRAPHBUILDER_H

#include "dialects/ONNX/ONNX.h"
#include "lib/Importer/Tensors.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
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
  /// What marks in graphs refer to; their bodies become functions of `module`.
  void setCalls(llvm::ArrayRef<FunctionCall> calls, mlir::ModuleOp module) {
    this->calls = calls;
    this->module = module;
  }
  /// Makes `value` known by `name` in the innermost graph.
  void define(llvm::StringRef name, mlir::Value value);
  /// Adds the graph's constants and nodes. Its inputs are defined already.
  void addGraph(const ::onnx::GraphProto &graph);
  /// Value of one of the graph's outputs.
  mlir::Value output(const std::string &name);

  mlir::Location location(llvm::StringRef name);

private:
  /// A function whose body is being built.
  struct Function {
    const FunctionCall &call;
    mlir::func::FuncOp func;
    /// By the names that the caller gives the outputs, those of the function.
    llvm::StringMap<llvm::StringRef> formals;
    /// What the call has to pass, in the order of the arguments, which have
    /// names where they are inputs of the function.
    llvm::SmallVector<mlir::Value> operands;
    llvm::SmallVector<llvm::StringRef> names;

    mlir::Value addArgument(mlir::Value operand, llvm::StringRef name,
                            mlir::Location loc);
  };
  struct Scope {
    /// Set where the scope is the outermost of a function.
    Function *function = nullptr;
    llvm::StringMap<mlir::Value> values;
    llvm::StringMap<const ::onnx::TypeProto *> types;
    /// Names that nodes of the graph will define.
    llvm::StringSet<> pending;
  };

  /// Adds what begins with the graph's node at `index`; the index after it.
  int addNext(const ::onnx::GraphProto &graph, int index);
  int addCall(const ::onnx::GraphProto &graph, int index);
  void addArguments(Function &function, llvm::ArrayRef<mlir::Value> operands);
  void addReturn(Function &function);
  mlir::func::FuncOp share(mlir::func::FuncOp func, const std::string &name);
  void createCall(const Function &function, mlir::func::FuncOp callee);
  /// The innermost function that is being built, if any.
  const Function *function() const;
  /// How a value or node is called in the IR: in functions without what sets
  /// the names of one instance apart from another's; empty where nothing is
  /// left.
  llvm::StringRef shown(llvm::StringRef name) const;
  void nameResults(mlir::Operation *op, llvm::ArrayRef<llvm::StringRef> names);
  void addInitializers(const ::onnx::GraphProto &graph);
  void addNode(const ::onnx::NodeProto &node);
  void addSchemaNode(const ::onnx::NodeProto &node,
                     const onnx::OpSchema &schema);
  void addConstant(const ::onnx::NodeProto &node);
  void addCustomNode(const ::onnx::NodeProto &node);
  void finishNode(const ::onnx::NodeProto &node, mlir::Operation *op);
  mlir::Operation *createConstant(mlir::Location loc, TensorValue value);
  void addRegion(mlir::Region &region, const ::onnx::GraphProto &graph);

  mlir::Value find(llvm::StringRef name);
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
  llvm::ArrayRef<FunctionCall> calls;
  mlir::ModuleOp module;
  /// Functions that were made, by a hash of what is in them.
  llvm::DenseMap<size_t, llvm::SmallVector<mlir::func::FuncOp, 1>> instances;
  llvm::StringSet<> symbols;
  llvm::StringMap<unsigned> suffixes;
};

} // namespace sardonyx::importer

#endif // SARDONYX_LIB_IMPORTER_GRAPHBUILDER_H
