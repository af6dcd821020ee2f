//===- ListFunctions.cpp - What compiled code does with lists -------------===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A list is passed as its handle (ListTable.h). What it does not say is how
// many bytes an element of its tensors has: that comes with the call.
//
//===----------------------------------------------------------------------===//

#include "RuntimeCall.h"
#include <algorithm>
#include <cstring>
#include <optional>

using namespace sardonyx::runtime;

static const List *findList(RuntimeCall &call, int64_t handle) {
  const List *list = call.lists().find(handle);
  if (!list)
    call.fail("the optional holds no value");
  return list;
}

/// A copy that a list can hold; nothing when there is no memory for it.
static std::optional<ListItem>
keep(RuntimeCall &call, const TensorWords<char> &tensor, int64_t elementBytes) {
  int64_t bytes = tensor.count() * elementBytes;
  ListItem item{call.allocate(bytes),
                {tensor.sizes, tensor.sizes + tensor.rank}};
  if (!item.data)
    return std::nullopt;
  memcpy(item.data.get(), tensor.data, bytes);
  return item;
}

/// A position that counts from the end where it is negative, up to `most`.
static std::optional<size_t> place(RuntimeCall &call, int64_t position,
                                   const List &list, int64_t most) {
  int64_t size = list.size();
  if (position >= -size && position <= most)
    return position < 0 ? position + size : position;
  call.fail("position " + std::to_string(position) +
            " is not in a sequence of " + std::to_string(size));
  return std::nullopt;
}

//===----------------------------------------------------------------------===//
// Making lists
//===----------------------------------------------------------------------===//

/// how many, element bytes, so many tensors -> a list of them.
static void make(RuntimeCall &call) {
  int64_t count = call.number(), elementBytes = call.number();
  std::vector<ListItem> items;
  for (int64_t i = 0; i < count; ++i) {
    auto item = keep(call, call.tensor<char>(), elementBytes);
    if (!item)
      return;
    items.push_back(std::move(*item));
  }
  *call.tensor<int64_t>().data = call.lists().add(List(std::move(items)));
}

/// list, tensor, element bytes, position, whether that counts -> the list with
/// the tensor before that position, or at the end.
static void insert(RuntimeCall &call) {
  const List *list = findList(call, *call.tensor<int64_t>().data);
  auto tensor = call.tensor<char>();
  int64_t elementBytes = call.number();
  int64_t position = *call.tensor<int64_t>().data;
  bool given = call.number() != 0;
  if (!list)
    return;
  int64_t size = list->size();
  auto at = place(call, given ? position : size, *list, size);
  if (!at)
    return;
  if (auto item = keep(call, tensor, elementBytes))
    *call.tensor<int64_t>().data =
        call.lists().add(list->insert(*at, std::move(*item)));
}

/// list, position, whether that counts -> the list without that item, or
/// without the last.
static void erase(RuntimeCall &call) {
  const List *list = findList(call, *call.tensor<int64_t>().data);
  int64_t position = *call.tensor<int64_t>().data;
  bool given = call.number() != 0;
  if (!list)
    return;
  int64_t last = int64_t(list->size()) - 1;
  if (auto at = place(call, given ? position : -1, *list, last))
    *call.tensor<int64_t>().data = call.lists().add(list->erase(*at));
}

/// The sizes of the parts that `split` asks for along a dimension: one for all
/// when it is a scalar; the last part may be smaller then.
static std::optional<std::vector<int64_t>>
partSizes(RuntimeCall &call, TensorWords<int64_t> split, int64_t size) {
  std::vector<int64_t> parts;
  if (split.rank > 0) {
    parts.assign(split.begin(), split.end());
    int64_t sum = 0;
    for (int64_t part : parts)
      if (part < 0 || __builtin_add_overflow(sum, part, &sum))
        sum = -1;
    if (sum == size)
      return parts;
    call.fail("the sizes in 'split' do not make the " + std::to_string(size) +
              " of the input");
    return std::nullopt;
  }
  int64_t step = *split.data;
  if (step < 1) {
    call.fail("'split' must be positive, got " + std::to_string(step));
    return std::nullopt;
  }
  for (int64_t begin = 0; begin < size; begin += std::min(step, size - begin))
    parts.push_back(std::min(step, size - begin));
  return parts;
}

/// tensor, element bytes, split, axis, whether parts keep that dimension -> the
/// list of parts.
static void splitTensor(RuntimeCall &call) {
  auto tensor = call.tensor<char>();
  int64_t elementBytes = call.number();
  auto split = call.tensor<int64_t>();
  int64_t axis = call.number();
  bool keepsDim = call.number() != 0;
  auto parts = partSizes(call, split, tensor.sizes[axis]);
  if (!parts)
    return;
  int64_t outer = 1, inner = elementBytes;
  for (int64_t i = 0; i < axis; ++i)
    outer *= tensor.sizes[i];
  for (int64_t i = axis + 1; i < tensor.rank; ++i)
    inner *= tensor.sizes[i];
  std::vector<ListItem> items;
  int64_t begin = 0;
  for (int64_t part : *parts) {
    ListItem item{call.allocate(outer * part * inner),
                  {tensor.sizes, tensor.sizes + tensor.rank}};
    if (!item.data)
      return;
    auto *to = static_cast<char *>(item.data.get());
    for (int64_t o = 0; o < outer; ++o)
      memcpy(to + o * part * inner,
             tensor.data + (o * tensor.sizes[axis] + begin) * inner,
             part * inner);
    item.shape[axis] = part;
    if (!keepsDim)
      item.shape.erase(item.shape.begin() + axis);
    items.push_back(std::move(item));
    begin += part;
  }
  *call.tensor<int64_t>().data = call.lists().add(List(std::move(items)));
}

//===----------------------------------------------------------------------===//
// Reading lists
//===----------------------------------------------------------------------===//

/// list -> how many items it has.
static void length(RuntimeCall &call) {
  if (const List *list = findList(call, *call.tensor<int64_t>().data))
    *call.tensor<int64_t>().data = list->size();
}

/// Reads list and position.
static const ListItem *findItem(RuntimeCall &call) {
  const List *list = findList(call, *call.tensor<int64_t>().data);
  int64_t position = *call.tensor<int64_t>().data;
  if (!list)
    return nullptr;
  auto at = place(call, position, *list, int64_t(list->size()) - 1);
  return at ? &(*list)[*at] : nullptr;
}

/// list, position -> the sizes of that item, whose rank is the length of the
/// result.
static void sizes(RuntimeCall &call) {
  const ListItem *item = findItem(call);
  auto out = call.tensor<int64_t>();
  if (!item)
    return;
  if (static_cast<int64_t>(item->shape.size()) != out.count())
    return call.fail("the tensor in the sequence is of rank " +
                     std::to_string(item->shape.size()) +
                     " where the model says " + std::to_string(out.count()));
  std::copy(item->shape.begin(), item->shape.end(), out.data);
}

/// list, position, element bytes -> that item.
static void get(RuntimeCall &call) {
  const ListItem *item = findItem(call);
  int64_t elementBytes = call.number();
  auto out = call.tensor<char>();
  if (item && item->count() == out.count())
    memcpy(out.data, item->data.get(), item->count() * elementBytes);
  else if (item)
    call.fail("the tensor in the sequence is of another size");
}

/// What the items of a list make along `axis`, which is a new dimension where
/// `isNew`; fails the run where they do not fit together.
static std::optional<std::vector<int64_t>>
concatShape(RuntimeCall &call, const List &list, int64_t axis, bool isNew) {
  if (list.size() == 0) {
    call.fail("the sequence is empty");
    return std::nullopt;
  }
  std::vector<int64_t> shape = list[0].shape;
  int64_t rank = static_cast<int64_t>(shape.size()) + isNew;
  if (axis < -rank || axis >= rank) {
    call.fail("axis " + std::to_string(axis) + " is none of a tensor of rank " +
              std::to_string(rank));
    return std::nullopt;
  }
  axis += axis < 0 ? rank : 0;
  int64_t sum = 0;
  for (const ListItem &item : list) {
    std::vector<int64_t> other = item.shape;
    if (!isNew && other.size() == shape.size()) {
      sum += other[axis];
      other[axis] = shape[axis];
    }
    if (other != shape) {
      call.fail("the tensors in the sequence have shapes that do not fit "
                "together");
      return std::nullopt;
    }
  }
  if (isNew)
    shape.insert(shape.begin() + axis, static_cast<int64_t>(list.size()));
  else
    shape[axis] = sum;
  return shape;
}

/// list, axis, whether that is a new one -> the sizes of all items together. 2
/// for a new one says that there may be none at all; -1 then stands for the
/// sizes that an item would have.
static void concatSizes(RuntimeCall &call) {
  const List *list = findList(call, *call.tensor<int64_t>().data);
  int64_t axis = call.number();
  int64_t kind = call.number();
  bool isNew = kind != 0;
  auto out = call.tensor<int64_t>();
  if (list && list->size() == 0 && kind == 2 && axis < out.count()) {
    std::fill(out.begin(), out.end(), -1);
    out.data[axis] = 0;
    return;
  }
  auto shape = list ? concatShape(call, *list, axis, isNew) : std::nullopt;
  if (!shape)
    return;
  if (static_cast<int64_t>(shape->size()) != out.count())
    return call.fail("the tensors in the sequence make one of rank " +
                     std::to_string(shape->size()) + " where the model says " +
                     std::to_string(out.count()));
  std::copy(shape->begin(), shape->end(), out.data);
}

/// list, axis, whether that is a new one, element bytes -> all items together.
static void concatList(RuntimeCall &call) {
  const List *list = findList(call, *call.tensor<int64_t>().data);
  int64_t axis = call.number();
  bool isNew = call.number() != 0;
  int64_t elementBytes = call.number();
  auto out = call.tensor<char>();
  if (list && list->size() == 0 && out.count() == 0)
    return;
  auto shape = list ? concatShape(call, *list, axis, isNew) : std::nullopt;
  if (!shape)
    return;
  if (!std::equal(shape->begin(), shape->end(), out.sizes,
                  out.sizes + out.rank))
    return call.fail("the tensors in the sequence have other sizes than the "
                     "model says");
  axis += axis < 0 ? out.rank : 0;
  int64_t outer = 1, inner = elementBytes, begin = 0;
  for (int64_t i = 0; i < axis; ++i)
    outer *= out.sizes[i];
  for (int64_t i = axis + 1; i < out.rank; ++i)
    inner *= out.sizes[i];
  int64_t row = out.sizes[axis] * inner;
  for (const ListItem &item : *list) {
    int64_t bytes = (isNew ? 1 : item.shape[axis]) * inner;
    auto *from = static_cast<const char *>(item.data.get());
    for (int64_t o = 0; o < outer; ++o)
      memcpy(out.data + o * row + begin, from + o * bytes, bytes);
    begin += bytes;
  }
}

SARDONYX_RUNTIME_FUNCTION(sdx_rt_list_make, make)
SARDONYX_RUNTIME_FUNCTION(sdx_rt_list_insert, insert)
SARDONYX_RUNTIME_FUNCTION(sdx_rt_list_erase, erase)
SARDONYX_RUNTIME_FUNCTION(sdx_rt_list_split, splitTensor)
SARDONYX_RUNTIME_FUNCTION(sdx_rt_list_length, length)
SARDONYX_RUNTIME_FUNCTION(sdx_rt_list_sizes, sizes)
SARDONYX_RUNTIME_FUNCTION(sdx_rt_list_get, get)
SARDONYX_RUNTIME_FUNCTION(sdx_rt_list_concat_sizes, concatSizes)
SARDONYX_RUNTIME_FUNCTION(sdx_rt_list_concat, concatList)
