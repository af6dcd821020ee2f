//===- OpToNode.h - Ops to nodes --------------------------------*- C++ -*-===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef SARDONYX_LIB_BRIDGE_OPTONODE_H
#define SARDONYX_LIB_BRIDGE_OPTONODE_H

#include "dialects/ONNX/ONNX.h"

#include "llvm/ADT/STLFunctionalExtras.h"

#include <onnx/onnx_pb.h>

#include <functional>
#include <string>

namespace sardonyx::bridge {

/// Writes ops of the onnx dialect as nodes. The two callbacks decide how values
/// are called and how much of a tensor's data is written.
struct OpToNode {
  std::function<std::string(mlir::Value)> nameOf;
  /// A name that no value has; needed where graphs get Identity nodes.
  std::function<std::string()> freshName;
  std::function<void(mlir::ElementsAttr value, mlir::Operation *owner,
                     ::onnx::TensorProto &tensor)>
      writeTensor;
  /// Called for each node of an ONNX operator with the types of its inputs and
  /// outputs (null for absent ones), if set.
  std::function<void(const ::onnx::NodeProto &node,
                     llvm::ArrayRef<mlir::Type> inputs,
                     llvm::ArrayRef<mlir::Type> outputs)>
      note;
  /// The domain and name of the function that a call is of; needed where there
  /// are calls.
  std::function<std::pair<std::string, std::string>(onnx::CallOp)> calleeOf;
  /// Constants become initializers of their graph instead of nodes.
  bool constantsAsInitializers = false;

  /// Throws ImportError for what ONNX cannot express.
  void node(mlir::Operation *op, ::onnx::NodeProto &node) const;
  /// The ops of a block up to its terminator, whose operands are the outputs.
  /// ONNX wants each output to be made by a node of the graph, once; with
  /// `identityOutputs` and `freshName` such nodes are added.
  void graph(mlir::Block &block, ::onnx::GraphProto &graph,
             bool identityOutputs = true) const;
  /// The body of a function of the model, whose arguments are its inputs. Its
  /// constants are nodes, as it has no initializers.
  void function(mlir::Block &block, llvm::ArrayRef<std::string> results,
                ::onnx::FunctionProto &function) const;
  void declare(mlir::Value value, ::onnx::ValueInfoProto &info) const;
  /// A node that gives `value` another name.
  void identity(mlir::Value value, const std::string &name,
                ::onnx::GraphProto &graph) const;

private:
  void attribute(mlir::Operation *op, llvm::StringRef name,
                 mlir::Attribute value, ::onnx::AttributeProto &proto) const;
  void customNode(mlir::Operation *op, ::onnx::NodeProto &node) const;
  void callNode(onnx::CallOp call, ::onnx::NodeProto &node) const;
};

/// The domain and operator of an op, also of onnx.Custom.
std::pair<std::string, std::string> operatorOf(mlir::Operation *op);

/// Dims and data type of a constant, without data.
void describeTensor(mlir::ElementsAttr value, ::onnx::TensorProto &tensor);
/// The same with the data in raw_data or string_data.
void writeWholeTensor(mlir::ElementsAttr value, ::onnx::TensorProto &tensor);
/// Data of at most this many bytes is of interest to inference.
inline constexpr int64_t kSmallTensorBytes = 1024;
/// Writes the data of small tensors only.
void writeSmallTensor(mlir::ElementsAttr value, mlir::Operation *owner,
                      ::onnx::TensorProto &tensor);

} // namespace sardonyx::bridge

#endif // SARDONYX_LIB_BRIDGE_OPTONODE_H
