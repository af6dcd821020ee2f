//===- WebModule.cpp - Interfaces of models in JavaScript -----------------===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "WebModule.h"
#include "llvm/Support/JSON.h"
#include "llvm/Support/raw_ostream.h"

using namespace sardonyx;
namespace json = llvm::json;

/// Web/Module.mjs.
static const char kModule[] =
#include "WebModule.inc"
    ;
/// Web/Module.d.mts.
static const char kTypes[] =
#include "WebTypes.inc"
    ;

/// A string as a literal of JavaScript.
static std::string quote(const std::string &text) {
  std::string literal;
  llvm::raw_string_ostream(literal) << json::Value(json::fixUTF8(text));
  return literal;
}

/// Text that may stand in a comment.
static std::string commentText(llvm::StringRef text) {
  std::string safe;
  for (char c : text)
    safe += c == '*' || (c >= 0 && c < ' ') ? ' ' : c;
  return json::fixUTF8(safe);
}

static std::string heading(const std::string &name, const Artifact &model) {
  const ModelMetadata &metadata = model.metadata;
  std::string text = "// The model '" + commentText(name) + "'";
  if (!metadata.producerName.empty())
    text += " (" + commentText(metadata.producerName) + ")";
  text += ", built by Sardonyx; do not edit.\n";
  if (!metadata.description.empty())
    text += "// " + commentText(metadata.description) + "\n";
  return text + "\n";
}

//===----------------------------------------------------------------------===//
// JavaScript
//===----------------------------------------------------------------------===//

/// What the module knows of a value: `type` is ONNX's number of the elements'.
static json::Object describe(const ValueInfo &info) {
  json::Value dims = nullptr;
  if (info.hasRank) {
    json::Array sizes;
    for (const Dim &dim : info.dims)
      sizes.push_back(dim.isStatic() ? json::Value(dim.size)
                      : !dim.symbol.empty()
                          ? json::Value(json::fixUTF8(dim.symbol))
                          : json::Value(nullptr));
    dims = std::move(sizes);
  }
  json::Array items;
  for (const ValueInfo &item : info.items)
    items.push_back(describe(item));
  return json::Object{{"name", json::fixUTF8(info.name)},
                      {"type", static_cast<int>(info.elementType)},
                      {"typeName", info.type},
                      {"dims", std::move(dims)},
                      {"items", std::move(items)},
                      {"isSequence", info.isSequence},
                      {"isOptional", info.isOptional},
                      {"isMap", info.isMap}};
}

static json::Array describe(const std::vector<ValueInfo> &infos) {
  json::Array all;
  for (const ValueInfo &info : infos)
    all.push_back(describe(info));
  return all;
}

std::string sardonyx::webModuleOf(const std::string &name,
                                  const std::string &file,
                                  const Artifact &description) {
  std::string text = heading(name, description);
  llvm::raw_string_ostream stream(text);
  stream << "const wasmFile = new URL(" << quote("./" + file)
         << ", import.meta.url);\n"
         << "const description = "
         << json::Value(
                json::Object{{"name", name},
                             {"inputs", describe(description.inputs)},
                             {"outputs", describe(description.outputs)}})
         << ";\n\n"
         << kModule;
  return text;
}

//===----------------------------------------------------------------------===//
// TypeScript
//===----------------------------------------------------------------------===//

static const char *arrayOf(ElementType type) {
  switch (type) {
  case ElementType::Float:
  case ElementType::Complex64:
    return "Float32Array";
  case ElementType::Double:
  case ElementType::Complex128:
    return "Float64Array";
  case ElementType::Int8:
  case ElementType::Int4:
  case ElementType::Int2:
    return "Int8Array";
  case ElementType::Int16:
    return "Int16Array";
  case ElementType::Int32:
    return "Int32Array";
  case ElementType::Int64:
    return "BigInt64Array";
  case ElementType::Uint16:
  case ElementType::Float16:
  case ElementType::Bfloat16:
    return "Uint16Array";
  case ElementType::Uint32:
    return "Uint32Array";
  case ElementType::Uint64:
    return "BigUint64Array";
  case ElementType::String:
    return "string[]";
  default:
    return "Uint8Array";
  }
}

/// An element of a tensor, as a key or value of a Map.
static const char *elementOf(ElementType type) {
  switch (type) {
  case ElementType::String:
    return "string";
  case ElementType::Int64:
  case ElementType::Uint64:
    return "bigint";
  default:
    return "number";
  }
}

static std::string typeOf(const ValueInfo &info, bool isInput) {
  if (info.isMap)
    return std::string("Map<") + elementOf(info.items[0].elementType) + ", " +
           elementOf(info.items[1].elementType) + ">";
  std::string type;
  if (info.isSequence)
    type = "Array<" + typeOf(info.items[0], isInput) + ">";
  else if (!info.items.empty())
    type = typeOf(info.items[0], isInput);
  else
    type = std::string(isInput ? "Feed<" : "Tensor<") +
           arrayOf(info.elementType) + ">";
  return info.isOptional ? type + " | null" : type;
}

static std::string declare(const char *interface,
                           const std::vector<ValueInfo> &infos, bool isInput) {
  std::string text = std::string("export interface ") + interface + " {\n";
  for (const ValueInfo &info : infos) {
    std::string about = info.type;
    if (info.hasRank)
      about += " " + describeShape(info.dims);
    text += "  /** " + commentText(about) + " */\n  " + quote(info.name) +
            ": " + typeOf(info, isInput) + ";\n";
  }
  return text + "}\n\n";
}

std::string sardonyx::webTypesOf(const std::string &name,
                                 const Artifact &description) {
  return heading(name, description) +
         declare("Inputs", description.inputs, /*isInput=*/true) +
         declare("Outputs", description.outputs, /*isInput=*/false) + kTypes;
}
