//===- Variants.cpp - Code for the shapes that arrive ---------------------===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "lib/Session/Variants/Variants.h"
#include "lib/Session/Variants/KnownValues.h"
#include "sardonyx/DimNames.h"

#include <algorithm>
#include <mutex>
#include <set>

using namespace sardonyx;
using Lock = std::lock_guard<runtime::ForkSafeMutex>;

/// So many are kept for each session.
static constexpr size_t kMaxVariants = 16;
/// A longer list gives no tensor its rank.
static constexpr int64_t kLongestList = 32;

static bool isOpenList(const ValueInfo &info) {
  return info.hasRank && info.dims.size() == 1 && !info.dims[0].isStatic() &&
         (info.elementType == ElementType::Int64 ||
          info.elementType == ElementType::Int32);
}

static bool isOfAnyRank(const ValueInfo &info) {
  return !info.hasRank && info.elementType != ElementType::Undefined;
}

/// Whether the rank of the tensors in a sequence or an optional is open.
static bool holdsAnyRank(const ValueInfo &info) {
  return info.items.size() == 1 && isOfAnyRank(info.items[0]);
}

/// The rank of the tensors in a value, if they have one in common.
static std::optional<size_t> rankOfItems(const TensorRef &value) {
  if (value.kind == ValueKind::Tensor)
    return value.shape.size();
  if (value.items.empty())
    return std::nullopt;
  size_t rank = value.items[0].shape.size();
  for (const TensorRef &item : value.items)
    if (item.shape.size() != rank)
      return std::nullopt;
  return rank;
}

bool sardonyx::leavesRanksOpen(const std::vector<ValueInfo> &inputs) {
  return std::any_of(inputs.begin(), inputs.end(), [](const ValueInfo &info) {
    return isOfAnyRank(info) || holdsAnyRank(info) || isOpenList(info);
  });
}

bool sardonyx::leavesShapesOpen(const std::vector<ValueInfo> &inputs) {
  return std::any_of(inputs.begin(), inputs.end(), [](const ValueInfo &info) {
    return isOfAnyRank(info) || holdsAnyRank(info) ||
           std::any_of(info.dims.begin(), info.dims.end(),
                       [](const Dim &dim) { return !dim.isStatic(); });
  });
}

bool sardonyx::shareDimNames(const std::vector<ValueInfo> &inputs) {
  std::set<std::string> names;
  for (const ValueInfo &info : inputs)
    for (const Dim &dim : info.dims)
      if (!dim.isStatic() && isNameOfSize(dim.symbol) &&
          !names.insert(dim.symbol).second)
        return true;
  return false;
}

Variants::Level Variants::firstLevel(const Artifact &whole) {
  if (leavesRanksOpen(whole.inputs) && (whole.deferred || whole.assumesRank))
    return Ranks;
  return whole.deferred ? Sizes : Nothing;
}

Variants::Variants(const FileMap &model, const ModelSource &source,
                   const Artifact &whole)
    : inputs(whole.inputs), path(source.path), size(model.bytes().size()),
      modified(model.modified()), needed(firstLevel(whole)) {
  if (source.bytes)
    bytes = source.owner
                ? FileMap::borrow(source.bytes, source.size, source.owner)
                : FileMap::copy(source.bytes, source.size);
}

Variants::Known Variants::knownOf(const std::vector<TensorRef> &given,
                                  bool namesDiffer, Level level) const {
  Known known;
  known.distinctDims = namesDiffer;
  if (level == Nothing)
    return known;
  for (size_t i = 0; i < inputs.size(); ++i) {
    const ValueInfo &info = inputs[i];
    const std::vector<int64_t> &shape = given[i].shape;
    if (info.elementType == ElementType::Undefined) { // a list
      if (auto rank = holdsAnyRank(info) ? rankOfItems(given[i]) : std::nullopt)
        known.shapes[info.name] = std::vector<int64_t>(*rank, -1);
      continue;
    }
    if (level >= Sizes || (isOpenList(info) && shape[0] <= kLongestList))
      known.shapes[info.name] = shape;
    else if (isOfAnyRank(info))
      // What may be a list is one: its length is known, too.
      known.shapes[info.name] = shape.size() == 1 && shape[0] <= kLongestList
                                    ? shape
                                    : std::vector<int64_t>(shape.size(), -1);
    if (level == Values)
      if (auto values = valuesOf(given[i]))
        known.values[info.name] = std::move(*values);
  }
  return known;
}

std::shared_ptr<Session> Variants::lookUp(const Known &known) {
  auto entry =
      std::find_if(entries.begin(), entries.end(),
                   [&](const Entry &entry) { return entry.known == known; });
  if (entry == entries.end())
    return nullptr;
  entries.splice(entries.begin(), entries, entry);
  return entry->session;
}

std::shared_ptr<Session> Variants::find(const std::vector<TensorRef> &given,
                                        bool namesDiffer) {
  Lock lock(mutex);
  if (entries.empty())
    return nullptr;
  // Also those that were made before more had to be fixed: the same inputs get
  // the same code.
  for (int level = Nothing; level <= needed; ++level)
    if (auto found =
            lookUp(knownOf(given, namesDiffer, static_cast<Level>(level))))
      return found;
  return nullptr;
}

Expected<std::shared_ptr<Session>> Variants::loadWith(const Known &known,
                                                      const Load &load) const {
  ModelSource source;
  source.path = path;
  std::shared_ptr<FileMap> model = bytes;
  if (bytes) {
    source.bytes = bytes->bytes().data();
    source.size = bytes->bytes().size();
  } else {
    auto opened = FileMap::open(path);
    if (!opened)
      return opened.error();
    model = *opened;
    if (model->bytes().size() != size || model->modified() != modified)
      return Error(ErrorKind::Failed,
                   "'" + path +
                       "' changed after it was loaded; the model cannot be "
                       "compiled for these inputs");
  }
  return load(model, source, known);
}

Expected<std::shared_ptr<Session>>
Variants::findOrLoad(const std::vector<TensorRef> &given, bool namesDiffer,
                     const Load &load) {
  Lock one(loading);
  if (std::shared_ptr<Session> session = find(given, namesDiffer))
    return session;
  // `needed` is changed by nobody else who does not hold `loading`.
  Level level = needed;
  Known known = knownOf(given, namesDiffer, level);
  auto loaded = loadWith(known, load);
  for (int next = level + 1; next <= Values; ++next) {
    if (loaded || loaded.error().kind() != ErrorKind::Unsupported)
      break;
    Known more = knownOf(given, namesDiffer, static_cast<Level>(next));
    if (more == known)
      continue;
    auto again = loadWith(more, load);
    // What is known may also tell what is wrong.
    if (again || again.error().kind() != ErrorKind::Unsupported)
      loaded = std::move(again);
    level = static_cast<Level>(next);
    known = std::move(more);
  }
  if (!loaded)
    return loaded.error();
  std::list<Entry> old; // destroyed without the lock
  Lock lock(mutex);
  needed = level;
  entries.push_front({std::move(known), *loaded});
  if (entries.size() > kMaxVariants)
    old.splice(old.begin(), entries, std::prev(entries.end()));
  return entries.front().session;
}

void Variants::forEach(const std::function<void(Session &)> &body) {
  std::list<Entry> all;
  {
    Lock lock(mutex);
    all = entries;
  }
  for (Entry &entry : all)
    body(*entry.session);
}
