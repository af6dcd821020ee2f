//===- ListTable.cpp - The lists that handles stand for -------------------===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "sardonyx/Runtime/ListTable.h"

using namespace sardonyx::runtime;

List List::insert(size_t position, ListItem item) const {
  if (position == length && length == items->size()) {
    List longer = *this;
    longer.items->push_back(std::move(item));
    ++longer.length;
    return longer;
  }
  std::vector<ListItem> copy(begin(), end());
  copy.insert(copy.begin() + position, std::move(item));
  return List(std::move(copy));
}

List List::erase(size_t position) const {
  std::vector<ListItem> copy(begin(), end());
  copy.erase(copy.begin() + position);
  return List(std::move(copy));
}
