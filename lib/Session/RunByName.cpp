//===- RunByName.cpp - Runs on inputs by name -----------------------------===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "sardonyx/Model/Names.h"
#include "sardonyx/Session/TypedValues.h"
#include <algorithm>

using namespace sardonyx;

static Error refuse(const std::string &text) {
  return Error(ErrorKind::InvalidArgument, text);
}

MaybeError sardonyx::checkView(const Tensor &tensor, ElementType type) {
  if (tensor.kind != ValueKind::Tensor)
    return refuse("the result is no tensor");
  if (tensor.type != type)
    return refuse(std::string("the result has elements of type ") +
                  nameOf(tensor.type) + ", not " + nameOf(type));
  if (tensor.device != kHost)
    return refuse("the result lies on a CUDA device");
  return std::nullopt;
}

/// The place of a name, or the number of values where there is none.
static size_t indexOf(const std::vector<ValueInfo> &values,
                      const std::string &name) {
  auto found =
      std::find_if(values.begin(), values.end(),
                   [&](const ValueInfo &value) { return value.name == name; });
  return static_cast<size_t>(found - values.begin());
}

Expected<std::map<std::string, Tensor>>
sardonyx::runByName(Runner &model, const std::vector<NamedInput> &inputs,
                    const std::vector<std::string> &outputs,
                    const RunOptions &options) {
  const std::vector<ValueInfo> &infos = model.inputs();
  std::vector<TensorRef> refs(infos.size());
  std::vector<bool> isGiven(infos.size());
  for (const NamedInput &input : inputs) {
    const size_t index = indexOf(infos, input.name);
    if (index == infos.size())
      return refuse(unknownName("input", input.name, namesOf(infos)));
    if (isGiven[index])
      return refuse("input '" + input.name + "' is given twice");
    isGiven[index] = true;
    refs[index] = input.value;
  }
  for (size_t i = 0; i < infos.size(); ++i) {
    if (isGiven[i])
      continue;
    if (!infos[i].isOptional)
      return refuse("input '" + infos[i].name + "' is missing");
    refs[i].kind = ValueKind::Nothing;
  }
  std::vector<size_t> wanted;
  for (const std::string &name : outputs) {
    wanted.push_back(indexOf(model.outputs(), name));
    if (wanted.back() == model.outputs().size())
      return refuse(unknownName("output", name, namesOf(model.outputs())));
  }
  auto results = model.run(refs, {}, options);
  if (!results)
    return results.error();
  std::map<std::string, Tensor> named;
  for (size_t i = 0; i < results->size(); ++i)
    if (outputs.empty() ||
        std::find(wanted.begin(), wanted.end(), i) != wanted.end())
      named[model.outputs()[i].name] = std::move((*results)[i]);
  return named;
}
