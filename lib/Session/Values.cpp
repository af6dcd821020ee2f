//===- Values.cpp - Values that are no tensors of numbers -----------------===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Values.h"
#include <cstring>

using namespace sardonyx;
using runtime::List;
using runtime::ListItem;
using runtime::RunContext;

static Error wrong(const ValueInfo &info, const std::string &what) {
  return Error(ErrorKind::InvalidArgument, "input '" + info.name + "' " + what);
}

//===----------------------------------------------------------------------===//
// Checking
//===----------------------------------------------------------------------===//

/// Where a tensor inside of `info` does not fit.
static MaybeError checkItem(const ValueInfo &info, const TensorRef &tensor,
                            const std::string &place) {
  const ValueInfo &item = info.items.front();
  if (tensor.kind != ValueKind::Tensor)
    return wrong(info, place + " holds what is no tensor");
  if (tensor.type != item.elementType)
    return wrong(info, place + " holds a tensor of " +
                           std::string(nameOf(item.elementType)) + ", got " +
                           nameOf(tensor.type));
  bool fits = !item.hasRank || tensor.shape.size() == item.dims.size();
  bool empty = false;
  for (size_t i = 0; i < tensor.shape.size(); ++i) {
    fits &= tensor.shape[i] >= 0;
    empty |= tensor.shape[i] == 0;
    if (fits && item.hasRank && item.dims[i].isStatic())
      fits = item.dims[i].size == tensor.shape[i];
  }
  if (!fits)
    return wrong(info, place + " holds a tensor of the shape " +
                           (item.hasRank ? describeShape(item.dims) : "[...]") +
                           ", got " + describeShape(tensor.shape));
  if (!tensor.data && !empty)
    return wrong(info, place + " holds a tensor that was given no data");
  return std::nullopt;
}

MaybeError sardonyx::checkList(const ValueInfo &info, const TensorRef &value) {
  if (value.kind == ValueKind::Nothing) {
    if (info.isOptional)
      return std::nullopt;
    return wrong(info, "has the type " + info.type + ", got nothing");
  }
  if (!info.isSequence)
    return checkItem(info, value, "is optional and");
  if (value.kind != ValueKind::Sequence)
    return wrong(info, "has the type " + info.type + ", got a tensor");
  for (size_t i = 0; i < value.items.size(); ++i)
    if (MaybeError error =
            checkItem(info, value.items[i], "at position " + std::to_string(i)))
      return error;
  return std::nullopt;
}

//===----------------------------------------------------------------------===//
// In
//===----------------------------------------------------------------------===//

static int64_t countOf(const std::vector<int64_t> &shape) {
  int64_t count = 1;
  for (int64_t size : shape)
    count *= size;
  return count;
}

static std::vector<int64_t> encodeStrings(const TensorRef &tensor,
                                          RunContext &run) {
  auto *strings = static_cast<const StringSpan *>(tensor.data);
  std::vector<int64_t> handles(countOf(tensor.shape));
  for (size_t i = 0; i < handles.size(); ++i)
    handles[i] = run.strings().handleOf(strings[i].text());
  return handles;
}

static Expected<ListItem> encodeItem(const TensorRef &tensor, RunContext &run) {
  std::vector<int64_t> handles;
  const void *data = tensor.data;
  if (tensor.type == ElementType::String) {
    handles = encodeStrings(tensor, run);
    data = handles.data();
  }
  int64_t bytes = countOf(tensor.shape) * storedBytesOf(tensor.type);
  ListItem item{run.allocateShared(bytes, nullptr), tensor.shape};
  if (!item.data)
    return Error(ErrorKind::Failed, run.failure());
  if (bytes)
    memcpy(item.data.get(), data, bytes);
  return item;
}

Expected<std::vector<int64_t>> sardonyx::encode(const TensorRef &value,
                                                const ValueInfo &info,
                                                RunContext &run) {
  if (info.items.empty())
    return encodeStrings(value, run);
  if (value.kind == ValueKind::Nothing)
    return std::vector<int64_t>{0};
  std::vector<ListItem> items;
  auto add = [&](const TensorRef &tensor) -> MaybeError {
    auto item = encodeItem(tensor, run);
    if (!item)
      return item.error();
    items.push_back(std::move(*item));
    return std::nullopt;
  };
  if (value.kind == ValueKind::Tensor) {
    if (MaybeError error = add(value))
      return *error;
  } else {
    for (const TensorRef &tensor : value.items)
      if (MaybeError error = add(tensor))
        return *error;
  }
  return std::vector<int64_t>{run.lists().add(List(std::move(items)))};
}

//===----------------------------------------------------------------------===//
// Out
//===----------------------------------------------------------------------===//

/// Spans and behind them the bytes that they are of, in one block.
static Expected<Tensor> decodeStrings(const int64_t *handles,
                                      std::vector<int64_t> shape,
                                      RunContext &run) {
  int64_t count = countOf(shape), spans = count * sizeof(StringSpan);
  int64_t bytes = spans;
  for (int64_t i = 0; i < count; ++i)
    bytes += run.strings().textOf(handles[i]).size();
  Tensor tensor;
  tensor.type = ElementType::String;
  tensor.shape = std::move(shape);
  tensor.owner = run.allocateShared(bytes, nullptr);
  if (!tensor.owner)
    return Error(ErrorKind::Failed, run.failure());
  tensor.data = tensor.owner.get();
  auto *span = static_cast<StringSpan *>(tensor.data);
  char *to = static_cast<char *>(tensor.data) + spans;
  for (int64_t i = 0; i < count; ++i) {
    std::string_view text = run.strings().textOf(handles[i]);
    span[i] = {to, text.size()};
    to = std::copy(text.begin(), text.end(), to);
  }
  return tensor;
}

static Expected<Tensor> decodeItem(const ListItem &item, ElementType type,
                                   RunContext &run) {
  if (type == ElementType::String)
    return decodeStrings(static_cast<const int64_t *>(item.data.get()),
                         item.shape, run);
  Tensor tensor;
  tensor.type = type;
  tensor.shape = item.shape;
  tensor.owner = item.data;
  tensor.data = item.data.get();
  return tensor;
}

Expected<Tensor> sardonyx::decode(const int64_t *handles,
                                  std::vector<int64_t> shape,
                                  const ValueInfo &info, RunContext &run) {
  if (info.items.empty())
    return decodeStrings(handles, std::move(shape), run);
  ElementType type = info.items.front().elementType;
  Tensor value;
  const List *list = run.lists().find(*handles);
  if (!list) {
    value.kind = ValueKind::Nothing;
    return value;
  }
  if (!info.isSequence)
    return decodeItem((*list)[0], type, run);
  value.kind = ValueKind::Sequence;
  for (const ListItem &item : *list) {
    auto tensor = decodeItem(item, type, run);
    if (!tensor)
      return tensor.error();
    value.items.push_back(std::move(*tensor));
  }
  return value;
}
