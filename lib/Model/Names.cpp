//===- Names.cpp - Names that a model has ---------------------------------===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "sardonyx/Model/Names.h"

#include <algorithm>

using namespace sardonyx;

std::vector<std::string>
sardonyx::namesOf(const std::vector<ValueInfo> &values) {
  std::vector<std::string> names;
  for (const ValueInfo &value : values)
    names.push_back(value.name);
  return names;
}

std::vector<std::string>
sardonyx::openDimsOf(const std::vector<ValueInfo> &values) {
  std::vector<std::string> names;
  for (const ValueInfo &value : values)
    for (const Dim &dim : value.dims)
      if (!dim.isStatic() && !dim.symbol.empty() &&
          std::find(names.begin(), names.end(), dim.symbol) == names.end())
        names.push_back(dim.symbol);
  return names;
}
