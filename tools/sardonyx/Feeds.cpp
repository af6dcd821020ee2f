//===- Feeds.cpp - Inputs from files, or random ones ----------------------===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Commands.h"
#include "sardonyx/Model/LoadArtifact.h"
#include <cerrno>
#include <cstring>
#include <optional>
#include <random>
#include <stdexcept>
#include <sys/resource.h>

using namespace sardonyx;

std::map<std::string, int64_t> parseDims(const std::vector<std::string> &dims) {
  std::map<std::string, int64_t> sizes;
  for (const std::string &dim : dims) {
    size_t equals = dim.find('=');
    char *end = nullptr;
    errno = 0;
    long long size = equals == std::string::npos
                         ? -1
                         : strtoll(dim.c_str() + equals + 1, &end, 10);
    if (size < 0 || *end || end == dim.c_str() + equals + 1 || errno)
      throw std::runtime_error("--dim takes NAME=SIZE, got '" + dim + "'");
    sizes[dim.substr(0, equals)] = size;
  }
  return sizes;
}

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

static Feed randomTensor(const ValueInfo &info,
                         const std::map<std::string, int64_t> &dims,
                         std::mt19937 &random) {
  Feed array;
  array.type = info.elementType;
  int64_t count = 1;
  for (const Dim &dim : info.dims) {
    auto it = dims.find(dim.symbol);
    int64_t size = dim.isStatic()     ? dim.size
                   : it != dims.end() ? it->second
                                      : 1;
    array.shape.push_back(size);
  }
  int64_t bytes = byteSizeOf(array.type), all = bytes;
  for (int64_t size : array.shape)
    if (__builtin_mul_overflow(all, std::max<int64_t>(size, 1), &all))
      throw std::runtime_error("input '" + info.name + "' of the shape " +
                               describeShape(array.shape) +
                               " is larger than any memory");
  for (int64_t size : array.shape)
    count *= size;
  array.bytes.assign(count * bytes, 0);
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
static Feed randomFeed(const ValueInfo &info,
                       const std::map<std::string, int64_t> &dims,
                       std::mt19937 &random) {
  if (info.items.empty())
    return randomTensor(info, dims, random);
  if (info.isOptional && !info.isSequence)
    return randomTensor(info.items[0], dims, random);
  Feed feed;
  feed.kind = info.isMap ? ValueKind::Map : ValueKind::Sequence;
  for (const ValueInfo &item : info.items) {
    feed.items.push_back(randomFeed(item, dims, random));
    if (info.isMap)
      feed.items.back().shape = {1};
  }
  return feed;
}

/// Puts arrays of files to the inputs that they are named for.
static std::map<std::string, Array>
readFiles(const std::vector<std::string> &files) {
  std::map<std::string, Array> arrays;
  for (const std::string &file : files) {
    size_t equals = file.find('=');
    if (equals != std::string::npos) {
      arrays[file.substr(0, equals)] = readNpy(file.substr(equals + 1));
      continue;
    }
    if (file.size() < 4 || file.substr(file.size() - 4) != ".npz")
      throw std::runtime_error(
          "--input takes NAME=FILE.npy or FILE.npz, got '" + file + "'");
    for (auto &[name, array] : readNpz(file))
      arrays[name] = std::move(array);
  }
  return arrays;
}

using Files = std::map<std::string, Array>;

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
static std::optional<Feed> feedOfFiles(const Files &files,
                                       const std::string &name,
                                       const ValueInfo &info) {
  bool isOptional = info.isOptional && !info.isSequence;
  if (info.items.empty() || isOptional) {
    auto it = files.find(name);
    if (it == files.end())
      return std::nullopt;
    return tensorOf(it->second, isOptional ? info.items[0] : info);
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

std::vector<Feed> makeFeeds(const Runner &session, const FeedOptions &options) {
  Files files = readFiles(options.files);
  std::map<std::string, int64_t> dims = parseDims(options.dims);
  std::mt19937 random(options.seed);
  std::vector<Feed> feeds;
  for (const ValueInfo &info : session.inputs()) {
    auto given = feedOfFiles(files, info.name, info);
    feeds.push_back(given ? std::move(*given) : randomFeed(info, dims, random));
  }
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

SessionOptions sessionOptions(const CommonOptions &common) {
  SessionOptions options = common.session;
  options.cache = !common.noCache;
  options.dims = parseDims(common.fixed);
  options.customOps = customOps(common);
  return options;
}

std::shared_ptr<Session> loadSession(const CommonOptions &common) {
  auto session = Session::load(common.model, sessionOptions(common));
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
  ArtifactOptions options;
  options.threads = common.session.intraOpThreads;
  options.memoryLimit = common.session.memoryLimit;
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
  for (size_t i = 0; i < feeds.size(); ++i) {
    const ValueInfo &info = session.inputs()[i];
    texts.push_back(
        info.name + " " +
        (feeds[i].kind == ValueKind::Tensor
             ? nameOf(feeds[i].type) + (" " + describeShape(feeds[i].shape))
             : info.type));
  }
  return texts;
}
