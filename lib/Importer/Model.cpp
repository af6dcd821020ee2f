//===- Model.cpp - Parsing and normalising a model file -------------------===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "lib/Importer/Model.h"
#include "lib/Importer/Error.h"
#include "lib/Importer/NodeOrder.h"
#include "sardonyx/UnknownName.h"

#include "llvm/ADT/StringMap.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/ADT/Twine.h"

#include <google/protobuf/io/coded_stream.h>
#include <onnx/defs/parser.h>
#include <onnx/defs/schema.h>

using namespace llvm;

namespace sardonyx::importer {

/// raw_data fields of at most this many bytes are parsed, so that type
/// inference sees the values of shapes, axes and the like.
constexpr uint64_t kKeepBytes = 1024;

/// No serialized ModelProto starts with '<' or '#' (end and start of a group).
static bool looksTextual(StringRef bytes) {
  bytes = bytes.ltrim(" \t\r\n");
  return bytes.starts_with("<") || bytes.starts_with("#");
}

/// The text parser descends once per nested graph, on the machine's stack.
static void checkTextNesting(StringRef text) {
  constexpr unsigned kMaxTextDepth = 1000;
  unsigned depth = 0;
  bool inString = false;
  for (size_t i = 0; i < text.size(); ++i) {
    char c = text[i];
    if (c == '"' && (i == 0 || text[i - 1] != '\\'))
      inString = !inString;
    if (inString)
      continue;
    if (StringRef("({[<").contains(c) && ++depth > kMaxTextDepth)
      fail("the model's text nests more than " + Twine(kMaxTextDepth) +
           " brackets deep");
    if (StringRef(")}]>").contains(c) && depth)
      --depth;
  }
}

bool isText(StringRef bytes) {
  if (!looksTextual(bytes))
    return false;
  checkTextNesting(bytes);
  return true;
}

void parseModel(Model &model) {
  if (model.bytes.empty())
    fail("the file is empty, an ONNX model was expected");
  if (isText(model.bytes)) {
    std::string text = model.bytes.str();
    ::onnx::OnnxParser parser(text);
    auto status = parser.Parse(model.proto);
    if (!status.IsOK())
      fail("the model's text does not parse: " + status.ErrorMessage());
    if (!parser.EndOfInput())
      fail("the model's text does not end where the model does");
    return;
  }
  std::string light = cutRawData(model.bytes, kKeepBytes, model.cuts);
  google::protobuf::io::CodedInputStream input(
      reinterpret_cast<const uint8_t *>(light.data()), light.size());
  if (!model.proto.ParseFromCodedStream(&input) ||
      !input.ConsumedEntireMessage())
    fail("not an ONNX model: protobuf cannot parse it, or it nests more than "
         "100 messages deep");
  if (!model.proto.has_graph())
    fail("the model has no graph; is this an ONNX file at all?");
}

static void canonicalDomain(std::string &domain) {
  if (domain == "ai.onnx")
    domain.clear();
}

/// Elements of a sequence may differ in shape; a declared shape of rank 0 is
/// what exporters write when they know none.
static void dropElementShapes(::onnx::TypeProto &type, bool inSequence) {
  if (type.has_sequence_type())
    dropElementShapes(*type.mutable_sequence_type()->mutable_elem_type(), true);
  else if (type.has_optional_type())
    dropElementShapes(*type.mutable_optional_type()->mutable_elem_type(),
                      inSequence);
  else if (inSequence && type.has_tensor_type() &&
           type.tensor_type().shape().dim_size() == 0)
    type.mutable_tensor_type()->clear_shape();
}

static void normalizeNode(::onnx::NodeProto &node);

static void normalizeGraph(::onnx::GraphProto &graph) {
  keepLastConstants(graph);
  sortNodes(*graph.mutable_node());
  // Before IR 4 every initializer also had to be an input. Later that meant a
  // default which a caller may override; here it is a constant either way.
  StringSet<> constants;
  for (const auto &tensor : graph.initializer())
    constants.insert(tensor.name());
  for (const auto &tensor : graph.sparse_initializer())
    constants.insert(tensor.values().name());
  if (!constants.empty()) {
    auto *inputs = graph.mutable_input();
    int kept = 0;
    for (int i = 0; i < inputs->size(); ++i)
      if (!constants.contains(inputs->Get(i).name()))
        inputs->SwapElements(kept++, i);
    inputs->DeleteSubrange(kept, inputs->size() - kept);
  }
  for (auto *values : {graph.mutable_input(), graph.mutable_output(),
                       graph.mutable_value_info()})
    for (auto &value : *values)
      if (value.has_type())
        dropElementShapes(*value.mutable_type(), /*inSequence=*/false);
  for (auto &node : *graph.mutable_node())
    normalizeNode(node);
}

static void normalizeNode(::onnx::NodeProto &node) {
  canonicalDomain(*node.mutable_domain());
  if (node.op_type().empty())
    failAt(node, "the node has no operator");
  forEachSubgraph(node, [](::onnx::GraphProto &g) { normalizeGraph(g); });
}

/// '@' is how versions are marked on operators of inlined functions.
static void refuseMarks(const ::onnx::GraphProto &graph);
static void refuseMarks(const ::onnx::NodeProto &node) {
  if (StringRef(node.op_type()).contains('@'))
    failAt(node, "an operator's name cannot contain '@'");
  if (node.domain() == kCallDomain)
    failAt(node, "the domain '" + Twine(kCallDomain) + "' is reserved");
  forEachSubgraph(node, [](const ::onnx::GraphProto &g) { refuseMarks(g); });
}

static void refuseMarks(const ::onnx::GraphProto &graph) {
  for (const auto &node : graph.node())
    refuseMarks(node);
}

/// Also merges the two spellings of the main domain.
template <typename T> static void normalizeImports(T &proto, bool main) {
  StringMap<int64_t> versions;
  for (auto &import : *proto.mutable_opset_import()) {
    canonicalDomain(*import.mutable_domain());
    const auto &known =
        ::onnx::OpSchemaRegistry::DomainToVersionRange::Instance().Map();
    auto range = known.find(import.domain());
    if (range != known.end() && import.version() > range->second.second)
      fail("the model imports version " + Twine(import.version()) +
           " of domain '" +
           (import.domain().empty() ? "ai.onnx" : import.domain()) +
           "'; the newest that is known is " + Twine(range->second.second));
    if (import.version() < 1)
      fail("the model imports version " + Twine(import.version()) +
           " of domain '" + import.domain() + "', which cannot be");
    int64_t &version = versions[import.domain()];
    version = std::max(version, import.version());
  }
  // IR versions 1 and 2 knew no imports.
  if (main && proto.opset_import_size() == 0)
    versions[""] = 1;
  proto.clear_opset_import();
  for (auto &entry : versions) {
    auto *import = proto.add_opset_import();
    import->set_domain(entry.getKey().str());
    import->set_version(entry.getValue());
  }
}

void normalizeFunction(::onnx::FunctionProto &function) {
  canonicalDomain(*function.mutable_domain());
  normalizeImports(function, /*main=*/false);
  addImpliedImports(function);
  sortNodes(*function.mutable_node());
  for (auto &node : *function.mutable_node())
    normalizeNode(node);
}

int64_t normalizeModel(::onnx::ModelProto &model) {
  int64_t version = model.ir_version();
  if (!model.has_ir_version())
    fail("the model has no IR version; is this an ONNX file at all?");
  if (version < 1 || version > kMaxIRVersion)
    fail("IR version " + Twine(version) + " is not supported; " +
         Twine(kMaxIRVersion) + " is the newest that is");
  normalizeImports(model, /*main=*/true);
  addImpliedImports(model);
  normalizeGraph(*model.mutable_graph());
  refuseMarks(model.graph());
  for (const auto &function : model.functions())
    for (const auto &node : function.node())
      refuseMarks(node);
  for (auto &function : *model.mutable_functions())
    normalizeFunction(function);
  // From here on the newest rules hold, whatever the file's version.
  model.set_ir_version(kMaxIRVersion);
  return version;
}

/// A tensor, or the one that says what is in a sequence or an optional; null in
/// other types.
static ::onnx::TypeProto::Tensor *tensorIn(::onnx::TypeProto &type) {
  if (type.has_optional_type())
    return tensorIn(*type.mutable_optional_type()->mutable_elem_type());
  if (type.has_sequence_type())
    return tensorIn(*type.mutable_sequence_type()->mutable_elem_type());
  return type.has_tensor_type() ? type.mutable_tensor_type() : nullptr;
}

void setInputShapes(::onnx::ModelProto &model,
                    const std::map<std::string, std::vector<int64_t>> &shapes) {
  for (const auto &[name, sizes] : shapes) {
    auto &inputs = *model.mutable_graph()->mutable_input();
    auto input = llvm::find_if(inputs, [&name = name](const auto &value) {
      return value.name() == name;
    });
    auto *tensor =
        input == inputs.end() ? nullptr : tensorIn(*input->mutable_type());
    if (!tensor) {
      std::vector<std::string> tensors;
      for (auto &value : inputs)
        if (tensorIn(*value.mutable_type()))
          tensors.push_back(value.name());
      fail("a shape was given for an input that is not there: " +
           unknownName("input", name, tensors));
    }
    auto &shape = *tensor->mutable_shape();
    // An open dimension of the same place keeps its name.
    if (shape.dim_size() != static_cast<int>(sizes.size()))
      shape.clear_dim();
    while (shape.dim_size() < static_cast<int>(sizes.size()))
      shape.add_dim();
    for (auto [dim, size] : llvm::zip_equal(*shape.mutable_dim(), sizes))
      if (size >= 0)
        dim.set_dim_value(size);
      else if (dim.has_dim_value())
        dim.clear_dim_value();
  }
}

} // namespace sardonyx::importer
