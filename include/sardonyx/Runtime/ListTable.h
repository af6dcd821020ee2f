//===- ListTable.h - The lists that handles stand for -----------*- C++ -*-===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Compiled code passes sequences and optionals on as 64-bit handles. 0 is an
// optional that holds nothing. An optional of a tensor is a list of one, an
// optional of a sequence is the sequence. A map is a list of its keys, in
// ascending order, and its values; a sequence of maps is the lists of its maps
// one after the other. A list never changes once it is made.
//
//===----------------------------------------------------------------------===//

#ifndef SARDONYX_RUNTIME_LISTTABLE_H
#define SARDONYX_RUNTIME_LISTTABLE_H

#include <cstdint>
#include <memory>
#include <vector>

namespace sardonyx {
namespace runtime {

/// A tensor that a list holds: contiguous, row by row. Lists share it.
struct ListItem {
  std::shared_ptr<void> data;
  std::vector<int64_t> shape;

  int64_t count() const {
    int64_t elements = 1;
    for (int64_t size : shape)
      elements *= size;
    return elements;
  }
};

/// A list is the first `size` items of what it may share with longer ones, so
/// that a list that grows in a loop is not copied each time.
class List {
public:
  List() : items(std::make_shared<std::vector<ListItem>>()) {}
  explicit List(std::vector<ListItem> given)
      : items(std::make_shared<std::vector<ListItem>>(std::move(given))),
        length(items->size()) {}

  size_t size() const { return length; }
  const ListItem &operator[](size_t i) const { return (*items)[i]; }
  const ListItem *begin() const { return items->data(); }
  const ListItem *end() const { return items->data() + length; }

  List insert(size_t position, ListItem item) const;
  List erase(size_t position) const;

private:
  std::shared_ptr<std::vector<ListItem>> items;
  size_t length = 0;
};

/// The lists of one run, on the thread that runs it.
class ListTable {
public:
  int64_t add(List list) {
    lists.push_back(std::move(list));
    return static_cast<int64_t>(lists.size());
  }
  /// Null for a handle that stands for none.
  const List *find(int64_t handle) const {
    if (handle < 1 || handle > static_cast<int64_t>(lists.size()))
      return nullptr;
    return &lists[handle - 1];
  }
  /// Empties a list that nobody will read any more.
  void drop(int64_t handle) {
    if (find(handle))
      lists[handle - 1] = List();
  }
  void clear() { lists.clear(); }

private:
  std::vector<List> lists;
};

} // namespace runtime
} // namespace sardonyx

#endif // SARDONYX_RUNTIME_LISTTABLE_H
