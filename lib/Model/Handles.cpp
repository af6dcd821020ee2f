//===- Handles.cpp - Values that are no tensors of numbers ----------------===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Handles.h"
#include <algorithm>
#include <cstring>
#include <numeric>

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

/// Where a tensor inside of `info`, which `item` describes, does not fit.
static MaybeError checkItem(const ValueInfo &info, const ValueInfo &item,
                            const TensorRef &tensor, const std::string &place) {
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

/// Keys or values of a map.
static MaybeError checkColumn(const ValueInfo &info, const ValueInfo &item,
                              const TensorRef &column,
                              const std::string &what) {
  if (column.kind != ValueKind::Tensor || column.shape.size() != 1 ||
      column.shape[0] < 0)
    return wrong(info, "has " + what + " that are no list");
  if (column.type != item.elementType)
    return wrong(info, "has " + what + " of " +
                           std::string(nameOf(item.elementType)) + ", got " +
                           nameOf(column.type));
  if (!column.data && column.shape[0] > 0)
    return wrong(info, "has " + what + " that were given no data");
  return std::nullopt;
}

static MaybeError checkMap(const ValueInfo &info, const TensorRef &map,
                           const std::string &place) {
  if (map.kind != ValueKind::Map || map.items.size() != 2)
    return wrong(info, place + "a map, got something else");
  const std::vector<ValueInfo> &items = info.map()->items;
  if (MaybeError error = checkColumn(info, items[0], map.items[0], "keys"))
    return error;
  if (MaybeError error = checkColumn(info, items[1], map.items[1], "values"))
    return error;
  if (map.items[0].shape != map.items[1].shape)
    return wrong(info, "has as many values as keys, got other numbers");
  return std::nullopt;
}

MaybeError sardonyx::checkList(const ValueInfo &info, const TensorRef &value) {
  if (value.kind == ValueKind::Nothing) {
    if (info.isOptional)
      return std::nullopt;
    return wrong(info, "has the type " + info.type + ", got nothing");
  }
  if (info.isMap)
    return checkMap(info, value, "is ");
  if (!info.isSequence)
    return checkItem(info, info.items.front(), value, "is optional and");
  if (value.kind != ValueKind::Sequence)
    return wrong(info,
                 "has the type " + info.type + ", got " +
                     (value.kind == ValueKind::Map ? "a map" : "a tensor"));
  for (size_t i = 0; i < value.items.size(); ++i) {
    std::string place = "at position " + std::to_string(i);
    MaybeError error =
        info.map() ? checkMap(info, value.items[i], place + " holds ")
                   : checkItem(info, info.items.front(), value.items[i], place);
    if (error)
      return error;
  }
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
  ListItem item{run.allocateShared(bytes, nullptr, "an element of a sequence"),
                tensor.shape};
  if (!item.data)
    return Error(ErrorKind::Failed, run.failure());
  if (bytes)
    memcpy(item.data.get(), data, bytes);
  return item;
}

/// The elements of a list at `order`.
static Expected<ListItem> permute(const void *data, int64_t elementBytes,
                                  const std::vector<size_t> &order,
                                  RunContext &run) {
  int64_t count = static_cast<int64_t>(order.size());
  ListItem item{
      run.allocateShared(count * elementBytes, nullptr, "part of a map"),
      {count}};
  if (!item.data)
    return Error(ErrorKind::Failed, run.failure());
  auto *to = static_cast<char *>(item.data.get());
  for (size_t from : order) {
    memcpy(to, static_cast<const char *>(data) + from * elementBytes,
           elementBytes);
    to += elementBytes;
  }
  return item;
}

/// The places of keys in ascending order; fails where there is one twice.
template <typename T>
static Expected<std::vector<size_t>> sortKeys(const std::vector<T> &keys,
                                              const ValueInfo &info) {
  std::vector<size_t> order(keys.size());
  std::iota(order.begin(), order.end(), size_t(0));
  std::sort(order.begin(), order.end(),
            [&](size_t a, size_t b) { return keys[a] < keys[b]; });
  auto isSame = [&](size_t a, size_t b) { return keys[a] == keys[b]; };
  if (std::adjacent_find(order.begin(), order.end(), isSame) != order.end())
    return wrong(info, "has a key twice");
  return order;
}

/// Adds the keys, in ascending order, and the values of a map.
static MaybeError encodeMap(const TensorRef &map, const ValueInfo &info,
                            RunContext &run, std::vector<ListItem> &items) {
  const TensorRef &keys = map.items[0], &values = map.items[1];
  size_t count = keys.shape[0];
  auto sort = [&]() -> Expected<std::vector<size_t>> {
    if (keys.type == ElementType::String) {
      auto *spans = static_cast<const StringSpan *>(keys.data);
      std::vector<std::string_view> texts;
      for (size_t i = 0; i < count; ++i)
        texts.push_back(spans[i].text());
      return sortKeys(texts, info);
    }
    auto *numbers = static_cast<const int64_t *>(keys.data);
    return sortKeys(std::vector<int64_t>(numbers, numbers + count), info);
  };
  auto order = sort();
  if (!order)
    return order.error();
  for (const TensorRef *column : {&keys, &values}) {
    std::vector<int64_t> handles;
    const void *data = column->data;
    if (column->type == ElementType::String) {
      handles = encodeStrings(*column, run);
      data = handles.data();
    }
    auto item = permute(data, storedBytesOf(column->type), *order, run);
    if (!item)
      return item.error();
    items.push_back(std::move(*item));
  }
  return std::nullopt;
}

Expected<std::vector<int64_t>> sardonyx::encode(const TensorRef &value,
                                                const ValueInfo &info,
                                                RunContext &run) {
  if (info.items.empty())
    return encodeStrings(value, run);
  if (value.kind == ValueKind::Nothing)
    return std::vector<int64_t>{0};
  std::vector<ListItem> items;
  auto add = [&](const TensorRef &inner) -> MaybeError {
    if (inner.kind == ValueKind::Map)
      return encodeMap(inner, info, run, items);
    auto item = encodeItem(inner, run);
    if (!item)
      return item.error();
    items.push_back(std::move(*item));
    return std::nullopt;
  };
  if (value.kind != ValueKind::Sequence) {
    if (MaybeError error = add(value))
      return *error;
  } else {
    for (const TensorRef &inner : value.items)
      if (MaybeError error = add(inner))
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
  tensor.owner = run.allocateShared(bytes, nullptr, "a tensor of strings");
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

/// Reads the maps of a list, which often share their keys.
class MapReader {
public:
  MapReader(const ValueInfo &map, RunContext &run) : map(map), run(run) {}

  Expected<Tensor> read(const ListItem &keyItem, const ListItem &valueItem) {
    if (!lastKeys || keyItem.data.get() != lastKeys ||
        keyItem.shape != keys.shape) {
      auto read = decodeItem(keyItem, map.items[0].elementType, run);
      if (!read)
        return read.error();
      keys = std::move(*read);
      lastKeys = keyItem.data.get();
    }
    auto values = decodeItem(valueItem, map.items[1].elementType, run);
    if (!values)
      return values.error();
    Tensor result;
    result.kind = ValueKind::Map;
    result.items = {keys, std::move(*values)};
    return result;
  }

private:
  const ValueInfo &map;
  RunContext &run;
  Tensor keys;
  const void *lastKeys = nullptr;
};

Expected<Tensor> sardonyx::decode(const int64_t *handles,
                                  std::vector<int64_t> shape,
                                  const ValueInfo &info, RunContext &run) {
  if (info.items.empty())
    return decodeStrings(handles, std::move(shape), run);
  Tensor value;
  const List *list = run.lists().find(*handles);
  if (!list) {
    value.kind = ValueKind::Nothing;
    return value;
  }
  if (const ValueInfo *map = info.map()) {
    MapReader reader(*map, run);
    if (info.isMap)
      return reader.read((*list)[0], (*list)[1]);
    value.kind = ValueKind::Sequence;
    for (size_t i = 0; i + 1 < list->size(); i += 2) {
      auto item = reader.read((*list)[i], (*list)[i + 1]);
      if (!item)
        return item.error();
      value.items.push_back(std::move(*item));
    }
    return value;
  }
  ElementType type = info.items.front().elementType;
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
