//===- ExternalFunctions.cpp - Functions from outside of the model --------===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Users may give functions that any model can call. A model's own function of
// the same name counts; what is in the dialect already cannot be replaced.
//
//===----------------------------------------------------------------------===//

#include "dialects/ONNX/ONNXSchema.h"
#include "lib/Contrib/Contrib.h"
#include "lib/Importer/Error.h"
#include "lib/Importer/Model.h"
#include "sardonyx/Importer/Importer.h"

#include "llvm/ADT/StringSet.h"
#include "llvm/ADT/Twine.h"

#include <google/protobuf/io/coded_stream.h>
#include <onnx/defs/parser.h>

using namespace llvm;

namespace sardonyx::importer {
namespace {

using ::onnx::FunctionProto;
using ::onnx::ModelProto;

std::string identifier(const FunctionProto &function) {
  StringRef domain = function.domain();
  return (Twine(domain == "ai.onnx" ? "" : domain) + ":" + function.name() +
          ":" + function.overload())
      .str();
}

/// A model's text, else that of functions, one after the other.
void parseText(const std::string &text, ModelProto &model) {
  ::onnx::OnnxParser asModel(text);
  // A function without attributes reads like a graph.
  if (asModel.Parse(model).IsOK() && asModel.EndOfInput() &&
      model.functions_size() > 0)
    return;
  model.Clear();
  ::onnx::OnnxParser parser(text);
  while (!parser.EndOfInput()) {
    auto status = parser.Parse(*model.add_functions());
    if (!status.IsOK())
      fail("the text is neither a model nor functions: " +
           status.ErrorMessage());
  }
}

template <typename Proto> bool parseBinary(StringRef bytes, Proto &proto) {
  google::protobuf::io::CodedInputStream input(
      reinterpret_cast<const uint8_t *>(bytes.data()),
      static_cast<int>(bytes.size()));
  return proto.ParseFromCodedStream(&input) && input.ConsumedEntireMessage();
}

/// A model, whose first field is a number, or a function, whose first is text.
void parse(StringRef bytes, ModelProto &model) {
  if (bytes.size() > INT32_MAX)
    fail("it is too large");
  if (isText(bytes))
    return parseText(bytes.str(), model);
  if (parseBinary(bytes, model) && model.functions_size() > 0)
    return;
  model.Clear();
  FunctionProto &function = *model.add_functions();
  if (!parseBinary(bytes, function) || function.name().empty() ||
      function.node_size() == 0)
    fail("it is neither an ONNX model with functions nor a function");
}

void check(const FunctionProto &function) {
  if (function.name().empty())
    fail("a function has no name");
  if (onnx::lookupSchema(function.domain(), function.name()))
    fail("'" + function.name() + "' of domain '" + function.domain() +
         "' is an operator that Sardonyx has itself");
}

} // namespace

void addFunctions(ModelProto &model,
                  const std::vector<std::string> &functions) {
  StringSet<> known;
  for (const FunctionProto &function : model.functions())
    known.insert(identifier(function));
  for (const std::string &bytes : functions) {
    FunctionProto function;
    if (!parseBinary(bytes, function))
      fail("a function that was given cannot be read");
    if (known.insert(identifier(function)).second)
      *model.add_functions() = std::move(function);
  }
}

} // namespace sardonyx::importer

std::string sardonyx::parseOnnxFunctions(llvm::StringRef bytes,
                                         std::vector<std::string> &functions) {
  try {
    ::onnx::ModelProto model;
    importer::parse(bytes, model);
    if (model.functions_size() == 0)
      importer::fail("it has no functions");
    llvm::StringSet<> names;
    for (const auto &function : model.functions()) {
      importer::check(function);
      if (!names.insert(importer::identifier(function)).second)
        importer::fail("it has the function '" + function.name() + "' twice");
      functions.push_back(function.SerializeAsString());
    }
    return "";
  } catch (const std::exception &exception) {
    return exception.what();
  }
}
