//===- Names.cpp - Names that a model has ---------------------------------===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "sardonyx/Model/Names.h"
#include "sardonyx/DimNames.h"

#include <algorithm>

using namespace sardonyx;

std::vector<std::string>
sardonyx::namesOf(const std::vector<ValueInfo> &values) {
  std::vector<std::string> names;
  for (const ValueInfo &value : values)
    names.push_back(value.name);
  return names;
}

/// "X[0]".
static std::string placeOf(const ValueInfo &value, size_t index) {
  return value.name + "[" + std::to_string(index) + "]";
}

std::vector<std::string>
sardonyx::openDimsOf(const std::vector<ValueInfo> &values) {
  std::vector<std::string> names;
  auto add = [&](const std::string &name) {
    if (!name.empty() &&
        std::find(names.begin(), names.end(), name) == names.end())
      names.push_back(name);
  };
  for (const ValueInfo &value : values)
    for (size_t i = 0; i < value.dims.size(); ++i) {
      const Dim &dim = value.dims[i];
      if (dim.isStatic())
        continue;
      add(dim.symbol);
      if (!isNameOfSize(dim.symbol))
        add(placeOf(value, i));
    }
  return names;
}

const int64_t *
sardonyx::sizeGivenFor(const ValueInfo &value, size_t index,
                       const std::map<std::string, int64_t> &sizes) {
  const Dim &dim = value.dims[index];
  if (dim.isStatic())
    return nullptr;
  auto it = isNameOfSize(dim.symbol) ? sizes.end()
                                     : sizes.find(placeOf(value, index));
  if (it == sizes.end())
    it = sizes.find(dim.symbol);
  return it == sizes.end() ? nullptr : &it->second;
}

std::string sardonyx::nameOfOpenDim(const ValueInfo &value, size_t index) {
  const std::string &symbol = value.dims[index].symbol;
  return symbol.empty() ? placeOf(value, index) : symbol;
}
