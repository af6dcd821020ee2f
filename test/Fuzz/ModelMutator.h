//===- ModelMutator.h - Changes models as messages, not bytes ---*- C++ -*-===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Bytes changed at random seldom make a model that gets past protobuf's parser
// or the checks of the first node. These changes know what a model is.
//
//===----------------------------------------------------------------------===//

#ifndef SARDONYX_TEST_FUZZ_MODELMUTATOR_H
#define SARDONYX_TEST_FUZZ_MODELMUTATOR_H

#include "onnx/onnx-ml.pb.h"
#include <random>

namespace sardonyx::fuzz {

class ModelMutator {
public:
  explicit ModelMutator(unsigned seed) : engine(seed) {}

  /// Changes one thing, or a few.
  void mutate(onnx::ModelProto &model);
  /// Takes nodes and tensors of another model over.
  void mix(onnx::ModelProto &model, const onnx::ModelProto &other);

private:
  size_t below(size_t end) { return end ? engine() % end : 0; }
  bool oneIn(size_t n) { return below(n) == 0; }
  int64_t someInteger();
  std::string someName(const onnx::GraphProto &graph);
  onnx::GraphProto *someGraph(onnx::ModelProto &model);
  onnx::AttributeProto *someAttribute(onnx::NodeProto &node);

  void change(onnx::ModelProto &model);
  void changeNode(onnx::ModelProto &model, onnx::GraphProto &graph);
  void changeAttribute(onnx::NodeProto &node, onnx::GraphProto &graph);
  void changeTensor(onnx::TensorProto &tensor);
  void changeType(onnx::TypeProto &type);
  void changeList(onnx::GraphProto &graph);
  /// A few bytes, of which a message can still be made. (The classes of ONNX
  /// have no reflection.)
  void changeAnything(google::protobuf::MessageLite &message);

  std::mt19937 engine;
};

} // namespace sardonyx::fuzz

#endif // SARDONYX_TEST_FUZZ_MODELMUTATOR_H
