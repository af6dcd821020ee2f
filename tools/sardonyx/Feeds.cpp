//===- Feeds.cpp - Inputs from files, or random ones ----------------------===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Commands.h"
#include "Progress.h"
#include "sardonyx/DimNames.h"
#include "sardonyx/Model/LoadArtifact.h"
#include "sardonyx/Model/Names.h"
#include "sardonyx/Session/Devices.h"
#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <iterator>
#include <optional>
#include <random>
#include <set>
#include <stdexcept>
#include <sys/resource.h>

using namespace sardonyx;

std::map<std::string, int64_t> parseDims(const std::string &option,
                                         const std::vector<std::string> &dims) {
  std::map<std::string, int64_t> sizes;
  for (const std::string &dim : dims) {
    size_t equals = dim.find('=');
    char *end = nullptr;
    errno = 0;
    long long size = equals == std::string::npos
                         ? -1
                         : strtoll(dim.c_str() + equals + 1, &end, 10);
    if (size < 0 || errno || *end || end == dim.c_str() + equals + 1)
      throw std::runtime_error(option + " takes NAME=SIZE, got '" + dim + "'");
    std::string name = dim.substr(0, equals);
    auto [it, isNew] = sizes.try_emplace(name, size);
    if (!isNew && it->second != size)
      throw std::runtime_error(option + " gives dimension '" + name +
                               "' two sizes");
  }
  return sizes;
}

std::vector<std::string> splitLists(const std::vector<std::string> &lists) {
  std::vector<std::string> items;
  for (const std::string &list : lists)
    for (size_t begin = 0; begin <= list.size();) {
      size_t end = std::min(list.find(',', begin), list.size());
      items.push_back(list.substr(begin, end - begin));
      begin = end + 1;
    }
  return items;
}

//===----------------------------------------------------------------------===//
// Random inputs
//===----------------------------------------------------------------------===//

namespace {
/// Sizes of named dimensions, and what was decided without being asked for.
struct Sizes {
  std::map<std::string, int64_t> known;
  std::vector<std::string> chosen;

  int64_t of(const ValueInfo &info, size_t index) {
    if (info.dims[index].isStatic())
      return info.dims[index].size;
    if (const int64_t *size = sizeGivenFor(info, index, known))
      return *size;
    chosen.push_back(nameOfOpenDim(info, index));
    known.emplace(chosen.back(), 1);
    return 1;
  }
};
} // namespace

/// A float as the bits of a half or bfloat16, cut off.
static uint16_t shortBits(float value, ElementType type) {
  uint32_t bits;
  memcpy(&bits, &value, 4);
  if (type == ElementType::Bfloat16)
    return bits >> 16;
  _Float16 half = static_cast<_Float16>(value);
  uint16_t result;
  memcpy(&result, &half, 2);
  return result;
}

static Feed randomTensor(const ValueInfo &info, Sizes &sizes,
                         std::mt19937 &random) {
  Feed array;
  array.type = info.elementType;
  const int64_t bytes = byteSizeOf(array.type);
  int64_t all = bytes;
  bool isTooLarge = false;
  for (size_t d = 0; d < info.dims.size(); ++d) {
    array.shape.push_back(sizes.of(info, d));
    isTooLarge |= __builtin_mul_overflow(all, array.shape[d], &all);
  }
  if (isTooLarge || static_cast<uint64_t>(all) > array.bytes.max_size())
    throw std::runtime_error("input '" + info.name + "' of the shape " +
                             describeShape(array.shape) +
                             " is larger than any memory");
  const int64_t count = bytes ? all / bytes : 0;
  array.bytes.assign(all, 0);
  std::normal_distribution<float> normal;
  // Small numbers: many integer inputs are indices or masks.
  std::uniform_int_distribution<int> small(0, 1);
  for (int64_t i = 0; i < count; ++i) {
    char *at = &array.bytes[i * bytes];
    auto put = [&](auto value) { memcpy(at, &value, sizeof(value)); };
    switch (array.type) {
    case ElementType::Float:
      put(normal(random));
      break;
    case ElementType::Double:
      put(static_cast<double>(normal(random)));
      break;
    case ElementType::Float16:
    case ElementType::Bfloat16:
      put(shortBits(normal(random), array.type));
      break;
    case ElementType::String: // empty ones
      break;
    default:
      *at = static_cast<char>(small(random)); // little-endian
    }
  }
  return array;
}

/// A sequence of one item, a map of one key.
static Feed randomFeed(const ValueInfo &info, Sizes &sizes,
                       std::mt19937 &random) {
  if (info.items.empty())
    return randomTensor(info, sizes, random);
  if (info.isOptional && !info.isSequence)
    return randomTensor(info.items[0], sizes, random);
  Feed feed;
  feed.kind = info.isMap ? ValueKind::Map : ValueKind::Sequence;
  for (const ValueInfo &item : info.items) {
    feed.items.push_back(randomFeed(item, sizes, random));
    if (info.isMap)
      feed.items.back().shape = {1};
  }
  return feed;
}

//===----------------------------------------------------------------------===//
// Inputs from files
//===----------------------------------------------------------------------===//

namespace {
/// Arrays of files by the names that they were given, and which of them became
/// part of an input.
struct Files {
  std::map<std::string, Array> arrays;
  std::set<std::string> used;

  void add(const std::string &name, Array array) {
    if (!arrays.try_emplace(name, std::move(array)).second)
      throw std::runtime_error("input '" + name + "' is given twice");
  }
  const Array *find(const std::string &name) {
    auto it = arrays.find(name);
    if (it == arrays.end())
      return nullptr;
    used.insert(name);
    return &it->second;
  }
};
} // namespace

static Files readFiles(const std::vector<std::string> &files) {
  Files all;
  for (const std::string &file : files) {
    size_t equals = file.find('=');
    if (equals != std::string::npos) {
      all.add(file.substr(0, equals), readNpy(file.substr(equals + 1)));
      continue;
    }
    if (file.size() < 4 || file.substr(file.size() - 4) != ".npz")
      throw std::runtime_error(
          "--input takes NAME=FILE.npy or FILE.npz, got '" + file + "'");
    for (auto &[name, array] : readNpz(file))
      all.add(name, std::move(array));
  }
  return all;
}

static Feed tensorOf(const Array &file, const ValueInfo &info) {
  Feed feed;
  static_cast<Array &>(feed) = file;
  // What numpy has no type for lies in files as unsigned integers.
  if (byteSizeOf(feed.type) == byteSizeOf(info.elementType) &&
      (feed.type == ElementType::Uint8 || feed.type == ElementType::Uint16) &&
      info.elementType >= ElementType::Bfloat16)
    feed.type = info.elementType;
  return feed;
}

/// What files hold for an input called `name`, if they do.
static std::optional<Feed> feedOfFiles(Files &files, const std::string &name,
                                       const ValueInfo &info) {
  bool isOptional = info.isOptional && !info.isSequence;
  if (info.items.empty() || isOptional) {
    const Array *file = files.find(name);
    if (!file)
      return std::nullopt;
    return tensorOf(*file, isOptional ? info.items[0] : info);
  }
  Feed feed;
  feed.kind = info.isMap ? ValueKind::Map : ValueKind::Sequence;
  auto add = [&](const char *part, const ValueInfo &item) {
    auto found = feedOfFiles(files, name + "." + part, item);
    if (found)
      feed.items.push_back(std::move(*found));
    return found.has_value();
  };
  if (info.isMap) {
    bool hasKeys = add("keys", info.items[0]);
    if (hasKeys != add("values", info.items[1]))
      throw std::runtime_error("the map '" + name +
                               "' takes files for its keys and its values");
  } else {
    while (add(std::to_string(feed.items.size()).c_str(), info.items[0]))
      ;
  }
  if (feed.items.empty())
    return std::nullopt;
  return feed;
}

/// "x float [1, 3]".
static std::string describeFeed(const ValueInfo &info, const Feed &feed) {
  return info.name + " " +
         (feed.kind == ValueKind::Tensor
              ? nameOf(feed.type) + (" " + describeShape(feed.shape))
              : info.type);
}

/// Refuses arrays that are nobody's.
static void checkUsed(const Files &files,
                      const std::vector<ValueInfo> &inputs) {
  for (const auto &[name, array] : files.arrays) {
    if (files.used.count(name))
      continue;
    for (const ValueInfo &input : inputs)
      if (!input.items.empty() && name.rfind(input.name + ".", 0) == 0)
        throw std::runtime_error(
            "'" + name + "' is no part of the input '" + input.name +
            "': items of a sequence are NAME.0, NAME.1 and so on, a map is "
            "NAME.keys and NAME.values");
    throw std::runtime_error(unknownName("input", name, namesOf(inputs)));
  }
}

/// Takes the sizes of named dimensions that are not given from those of a file.
static void learnSizes(const ValueInfo &info, const Feed &feed,
                       const std::map<std::string, int64_t> &given,
                       Sizes &sizes) {
  if (feed.shape.size() != info.dims.size())
    return; // the run will tell
  for (size_t d = 0; d < info.dims.size(); ++d) {
    if (info.dims[d].isStatic())
      continue;
    const int64_t *size = sizeGivenFor(info, d, given);
    if (size && *size != feed.shape[d])
      throw std::runtime_error(
          "--dim says " + nameOfOpenDim(info, d) + "=" + std::to_string(*size) +
          ", but the array for input '" + info.name + "' has the shape " +
          describeShape(feed.shape) + " for " + describeShape(info.dims));
    if (isNameOfSize(info.dims[d].symbol))
      sizes.known.try_emplace(info.dims[d].symbol, feed.shape[d]);
  }
}

std::vector<Feed> makeFeeds(const Runner &session, const FeedOptions &options) {
  const std::vector<ValueInfo> &inputs = session.inputs();
  const std::map<std::string, int64_t> given = parseDims("--dim", options.dims);
  const std::vector<std::string> open = openDimsOf(inputs);
  for (const auto &[name, size] : given)
    if (std::find(open.begin(), open.end(), name) == open.end())
      throw std::runtime_error(unknownName("open dimension", name, open));
  Files files = readFiles(options.files);
  Sizes sizes{given, {}};
  std::vector<std::optional<Feed>> fromFiles;
  for (const ValueInfo &info : inputs) {
    fromFiles.push_back(feedOfFiles(files, info.name, info));
    if (fromFiles.back())
      learnSizes(info, *fromFiles.back(), given, sizes);
  }
  checkUsed(files, inputs);
  std::mt19937 random(options.seed);
  std::vector<Feed> feeds;
  std::vector<std::string> madeUp;
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (fromFiles[i]) {
      feeds.push_back(std::move(*fromFiles[i]));
      continue;
    }
    feeds.push_back(randomFeed(inputs[i], sizes, random));
    madeUp.push_back(describeFeed(inputs[i], feeds.back()));
  }
  if (!madeUp.empty())
    fprintf(stderr, "sardonyx: made up at random: %s\n",
            listOf(madeUp).c_str());
  if (!sizes.chosen.empty())
    fprintf(stderr, "sardonyx: sizes chosen to be 1 (see --dim): %s\n",
            listOf(sizes.chosen).c_str());
  return feeds;
}

std::vector<TensorRef> refsOf(const std::vector<Feed> &feeds) {
  std::vector<TensorRef> refs;
  for (const Feed &feed : feeds)
    refs.push_back({feed.type, feed.bytes.data(), feed.shape, feed.kind,
                    refsOf(feed.items)});
  return refs;
}

/// The operators in the files that were named; null where none was.
static std::shared_ptr<const CustomOps> customOps(const CommonOptions &common) {
  auto ops = std::make_shared<CustomOps>();
  auto add = [&](const std::vector<std::string> &paths,
                 MaybeError (CustomOps::*read)(const std::string &)) {
    for (const std::string &path : paths)
      if (MaybeError error = ((*ops).*read)(path))
        throw std::runtime_error(error->message());
  };
  add(common.libraries, &CustomOps::addLibrary);
  add(common.functions, &CustomOps::addFunctionsFile);
  add(common.mlir, &CustomOps::addMlirFile);
  return ops->empty() ? nullptr : ops;
}

std::vector<std::string> customFiles(const CommonOptions &common) {
  std::vector<std::string> files;
  for (const auto *paths : {&common.libraries, &common.functions, &common.mlir})
    files.insert(files.end(), paths->begin(), paths->end());
  return files;
}

std::vector<std::string> filesOf(const CommonOptions &common) {
  std::vector<std::string> files = customFiles(common);
  files.push_back(common.model);
  if (!common.plan.empty())
    files.push_back(common.plan);
  return files;
}

SessionOptions sessionOptions(const CommonOptions &common) {
  SessionOptions options = common.session;
  options.cache = !common.noCache;
  options.dims = parseDims("--fix", common.fixed);
  options.outputs = splitLists(common.outputs);
  options.customOps = customOps(common);
  if (common.remarks) {
    options.cache = false;
    options.remark = [](const std::string &sentence) {
      fprintf(stderr, "sardonyx: remark: %s\n", sentence.c_str());
    };
  }
  if (!common.plan.empty()) {
    std::ifstream file(common.plan, std::ios::binary);
    options.plan.assign(std::istreambuf_iterator<char>(file), {});
    if (!file)
      throw std::runtime_error("cannot read '" + common.plan +
                               "': " + strerror(errno));
  }
  return options;
}

SessionOptions compileOptions(const CommonOptions &common) {
  SessionOptions options = sessionOptions(common);
  if (options.device.cuda && options.device.architecture.empty())
    if (auto device = describeCudaDevice(options.device.deviceId))
      options.device.architecture = device->architecture;
  return options;
}

std::shared_ptr<Session> loadSession(const CommonOptions &common) {
  auto session = [&] {
    Progress progress("compiling " + common.model);
    return Session::load(common.model, sessionOptions(common));
  }();
  if (!session)
    throw std::runtime_error(session.error().message());
  const std::string &problem = (*session)->report().cacheProblem;
  if (!problem.empty())
    fprintf(stderr, "sardonyx: warning: %s\n", problem.c_str());
  tellWarnings(**session);
  return *session;
}

void tellWarnings(Runner &session) {
  for (const std::string &text : session.takeWarnings())
    fprintf(stderr, "sardonyx: warning: %s\n", text.c_str());
}

std::shared_ptr<Runner> loadRunner(const CommonOptions &common) {
  if (!isSharedLibrary(common.model))
    return loadSession(common);
  if (!common.fixed.empty() || customFiles(common).size() ||
      !common.outputs.empty())
    throw std::runtime_error(
        "--fix, --outputs and operators of one's own are for models that are "
        "compiled, and '" +
        common.model + "' is built");
  ArtifactOptions options;
  options.threads = common.session.intraOpThreads;
  options.memoryLimit = common.session.memoryLimit;
  if (const DeviceOptions &device = common.session.device; device.cuda) {
    options.device = device.deviceId;
    options.deviceMemoryLimit = device.memoryLimit;
  }
  auto artifact = loadArtifact(common.model, options);
  if (!artifact)
    throw std::runtime_error(artifact.error().message());
  return *artifact;
}

static std::string number(double value, const char *unit) {
  char text[64];
  snprintf(text, sizeof(text), value < 10 ? "%.2f %s" : "%.1f %s", value, unit);
  return text;
}

std::string describeBytes(double bytes) {
  for (const char *unit : {"B", "kB", "MB", "GB"}) {
    if (bytes < 1000)
      return number(bytes, unit);
    bytes /= 1000;
  }
  return number(bytes, "TB");
}

std::string describeSeconds(double seconds) {
  if (seconds < 1e-3)
    return number(seconds * 1e6, "us");
  if (seconds < 1)
    return number(seconds * 1e3, "ms");
  return number(seconds, "s");
}

double peakMemory() {
  rusage usage;
  getrusage(RUSAGE_SELF, &usage);
  return usage.ru_maxrss * 1024.0;
}

std::vector<std::string> describeFeeds(const Runner &session,
                                       const std::vector<Feed> &feeds) {
  std::vector<std::string> texts;
  for (size_t i = 0; i < feeds.size(); ++i)
    texts.push_back(describeFeed(session.inputs()[i], feeds[i]));
  return texts;
}
