//===- CustomOps.cpp - Operators that callers bring along -----------------===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "sardonyx/Session/CustomOps.h"
#include "dialects/ONNX/ONNXSchema.h"
#include "lib/Session/Custom/CustomInference.h"
#include "sardonyx/Importer/Importer.h"
#include "sardonyx/Model/FileMap.h"

using namespace sardonyx;

static Error refuse(const std::string &text) {
  return Error(ErrorKind::InvalidArgument, text);
}

/// A domain's name in one spelling.
static std::string_view plain(std::string_view domain) {
  return domain == "ai.onnx" ? std::string_view() : domain;
}

MaybeError CustomOps::add(std::shared_ptr<const CustomOp> op) {
  if (op->name.empty())
    return refuse("a custom operator needs a name");
  if (onnx::lookupSchema(op->domain, op->name))
    return refuse("'" + op->name + "' of domain '" + op->domain +
                  "' is an operator that Sardonyx has itself");
  if (op->sinceVersion < 1)
    return refuse("'" + op->name + "' is registered for version " +
                  std::to_string(op->sinceVersion) + "; the first is 1");
  if (op->minInputs < 0 || op->minOutputs < 1 ||
      (op->maxInputs >= 0 && op->maxInputs < op->minInputs) ||
      (op->maxOutputs >= 0 && op->maxOutputs < op->minOutputs))
    return refuse("'" + op->name +
                  "' is registered with impossible numbers of inputs or "
                  "outputs");
  ops.push_back(std::move(op));
  return std::nullopt;
}

/// Has `add` take the bytes of a file.
template <typename F>
static MaybeError addFile(const std::string &path, F add) {
  auto file = FileMap::open(path);
  if (!file)
    return file.error();
  if (MaybeError error = add((*file)->bytes()))
    return Error(error->kind(), "'" + path + "': " + error->message());
  return std::nullopt;
}

MaybeError CustomOps::addFunctionsFile(const std::string &path) {
  return addFile(path,
                 [&](std::string_view bytes) { return addFunctions(bytes); });
}

MaybeError CustomOps::addFunctions(std::string_view bytes) {
  std::vector<std::string> parsed;
  std::string error =
      parseOnnxFunctions(llvm::StringRef(bytes.data(), bytes.size()), parsed);
  if (!error.empty())
    return refuse(error);
  // Those that came last count first.
  functionProtos.insert(functionProtos.begin(), parsed.begin(), parsed.end());
  return std::nullopt;
}

MaybeError CustomOps::addMlirFile(const std::string &path) {
  return addFile(path, [&](std::string_view bytes) { return addMlir(bytes); });
}

MaybeError CustomOps::addMlir(std::string_view text) {
  std::string module(text);
  if (std::string error = checkCustomMlir(module); !error.empty())
    return refuse(error);
  modules.push_back(std::move(module));
  return std::nullopt;
}

void CustomOps::addAll(const CustomOps &others) {
  ops.insert(ops.end(), others.ops.begin(), others.ops.end());
  functionProtos.insert(functionProtos.begin(), others.functionProtos.begin(),
                        others.functionProtos.end());
  modules.insert(modules.end(), others.modules.begin(), others.modules.end());
}

std::shared_ptr<const CustomOp> CustomOps::take(std::string_view domain,
                                                std::string_view name,
                                                int64_t version) const {
  std::shared_ptr<const CustomOp> best;
  for (const auto &op : ops)
    if (op->name == name && plain(op->domain) == plain(domain) &&
        op->sinceVersion <= version &&
        (!best || op->sinceVersion >= best->sinceVersion))
      best = op;
  return best;
}

const CustomOp *CustomOps::find(std::string_view domain, std::string_view name,
                                int64_t version) const {
  return take(domain, name, version).get();
}

std::string CustomOps::fingerprint() const {
  std::string text;
  if (functionProtos.empty() && modules.empty())
    return text;
  for (const auto *list : {&functionProtos, &modules}) {
    text += std::to_string(list->size()) + ';';
    for (const std::string &item : *list)
      text += std::to_string(item.size()) + ':' + item;
  }
  return text;
}
