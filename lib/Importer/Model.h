//===- Model.h - A model file as the importer holds it ----------*- C++ -*-===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef SARDONYX_LIB_IMPORTER_MODEL_H
#define SARDONYX_LIB_IMPORTER_MODEL_H

#include "lib/Importer/MappedFile.h"
#include "lib/Importer/Subgraphs.h"
#include "lib/Importer/WireCut.h"
#include "sardonyx/Importer/GivenInitializer.h"

#include <onnx/onnx_pb.h>

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace sardonyx::importer {

/// A call of one of the model's functions. The body that it stands for lies in
/// the graph, with all bound that the call decides, between two marks.
struct FunctionCall {
  /// The call as it would stand in its caller, with its attributes that are
  /// numbers and text.
  ::onnx::NodeProto node;
  /// The function's own names of its inputs and outputs.
  std::vector<std::string> inputs, outputs;
  /// What the names of the body's values and nodes begin with.
  std::string prefix;
};

/// A parsed model whose large raw_data fields stayed in their file.
struct Model {
  ::onnx::ModelProto proto;
  /// What `cuts` refers to. `file` is null for a model in memory.
  std::shared_ptr<MappedFile> file;
  llvm::StringRef bytes;
  std::vector<ByteRange> cuts;
  /// Where external data may lie; empty: nowhere.
  std::string dataDir;
  /// The folder of the file that the model's path is a link to, where links to
  /// external data may lead, too; empty: there is none.
  std::string linkedDataDir;
  /// For locations and messages.
  std::string name;
  /// What the marks in the graph refer to by their number.
  std::vector<FunctionCall> calls;
};

/// The domain of the nodes that mark where a call's body begins and ends.
inline constexpr const char *kCallDomain = "sardonyx.call";
/// The number of the call that begins with this node.
std::optional<size_t> callBegin(const ::onnx::NodeProto &node);
bool isCallEnd(const ::onnx::NodeProto &node);
/// Lets the bodies be part of the graph.
void dropCalls(Model &model);

/// Whether bytes are a model's text, or a function's; checks how deep it nests.
bool isText(llvm::StringRef bytes);

/// Parses `model.bytes`, textual or binary, into `model.proto`.
void parseModel(Model &model);

/// Newest IR version that is understood.
inline constexpr int64_t kMaxIRVersion = 14;

/// Puts "" for "ai.onnx" everywhere, drops graph inputs that have an
/// initializer, and checks versions. Returns the IR version of the file.
int64_t normalizeModel(::onnx::ModelProto &model);
/// The same for a function on its own.
void normalizeFunction(::onnx::FunctionProto &function);

/// Imports the newest version of the domains that everybody knows and the nodes
/// use without an import, as onnxruntime does: com.microsoft and ONNX's other
/// domains than its main one.
void addImpliedImports(::onnx::ModelProto &model);
void addImpliedImports(::onnx::FunctionProto &function);

/// Of initializers and Constant nodes of one name the last one counts, as it
/// does for onnxruntime; the others are taken away.
void keepLastConstants(::onnx::GraphProto &graph);

/// Declares these shapes for the graph inputs of these names; -1 leaves a
/// dimension open. Throws for a name that no tensor among the inputs has.
void setInputShapes(::onnx::ModelProto &model,
                    const std::map<std::string, std::vector<int64_t>> &shapes);

/// Gives the open dimensions of graph inputs that have these denotations their
/// sizes, and with them all others that have the same name.
void setDenotedDims(::onnx::ModelProto &model,
                    const std::map<std::string, int64_t> &sizes);

/// Puts these tensors in the place of the graph's initializers. Throws where
/// one does not fit.
void setInitializers(::onnx::ModelProto &model,
                     const GivenInitializers &initializers);

/// Makes these values of the graph its outputs, in this order. Throws where one
/// does not exist. No names: the outputs stay.
void setOutputs(::onnx::ModelProto &model,
                const std::vector<std::string> &names);

/// Lets the model call these serialised functions, besides its own, which count
/// first.
void addFunctions(::onnx::ModelProto &model,
                  const std::vector<std::string> &functions);

/// Replaces calls of the model's own functions by their bodies. Operators of
/// bodies that import another version than the model does are marked "Op@7".
/// With `allowCapture`, names that a body does not define are the caller's.
/// With `calls`, each body lies between marks.
void inlineFunctions(::onnx::ModelProto &model, uint64_t maxNodes,
                     bool allowCapture = false,
                     std::vector<FunctionCall> *calls = nullptr);

/// Whether the graph, or a graph in it, has a Gradient node.
bool usesGradient(const ::onnx::GraphProto &graph);
/// Replaces all Gradient nodes of the model, whose nodes are in their latest
/// form. `maxNodes` bounds how many nodes that makes.
void expandGradients(::onnx::ModelProto &model, uint64_t maxNodes);

/// The body that ONNX has for the node's operator, whose attributes it may
/// refer to: those at their defaults are added to the node. False when there is
/// none for inputs of these types.
bool makeFunctionBody(::onnx::NodeProto &node,
                      const std::vector<::onnx::TypeProto> &inputTypes,
                      ::onnx::FunctionProto &function);

/// libonnx's inference over the whole model: writes types into value_info.
/// What cannot be inferred is left out; errors of single nodes are ignored.
void inferTypes(::onnx::ModelProto &model);
/// The same for a model of which nothing has been inferred yet: the shapes that
/// values have by now are declared, and count where none are inferred.
void inferDeclaredTypes(::onnx::ModelProto &model);

} // namespace sardonyx::importer

#endif // SARDONYX_LIB_IMPORTER_MODEL_H
