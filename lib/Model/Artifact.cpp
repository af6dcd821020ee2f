//===- Artifact.cpp - A compiled model as data ----------------------------===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "sardonyx/Model/Artifact.h"
#include <cstring>
#include <type_traits>

#define XXH_INLINE_ALL
#include <xxhash.h>

using namespace sardonyx;

/// First bytes, the same in all versions.
static constexpr char kMagic[16] = "sardonyx packed";
/// Goes up with the format of what follows.
static constexpr uint64_t kVersion = 9;

namespace {
struct Header {
  char magic[16];
  uint64_t version;
  /// Of all that follows.
  uint64_t checksumLow, checksumHigh;
};

/// Appends values to a string: numbers as they lie in memory (the cache is this
/// machine's own), strings and lists with their length first.
class Writer {
public:
  template <typename T> void add(T value) {
    static_assert(std::is_arithmetic_v<T> || std::is_enum_v<T>);
    char bytes[sizeof(T)];
    memcpy(bytes, &value, sizeof(T));
    out.append(bytes, sizeof(T));
  }
  void add(const std::string &text) {
    add<uint64_t>(text.size());
    out += text;
  }
  void add(const Dim &dim) {
    add(dim.size);
    add(dim.symbol);
  }
  void add(const ValueInfo &info) {
    add(info.name);
    add(info.type);
    add(info.elementType);
    add(info.hasRank);
    add(info.dims);
    add(info.items);
    add(info.isSequence);
    add(info.isOptional);
    add(info.isMap);
  }
  void add(const SourceFile &file) {
    add(file.path);
    add(file.size);
    add(file.modified);
  }
  void add(const Argument &arg) {
    add(arg.kind);
    add(arg.index);
    add(arg.offset);
    add(arg.length);
    add(arg.shape);
    add(arg.onDevice);
  }
  void add(const ProfileSite &site) {
    add(site.kernel);
    add(site.form);
    add(site.nodes);
  }
  void add(const CustomType &type) {
    add(type.isPresent);
    add(type.type);
    add(type.hasRank);
    add(type.shape);
  }
  void add(const CustomAttribute &attribute) {
    add(attribute.name);
    add(attribute.kind);
    add(attribute.ints);
    add(attribute.floats);
    add(attribute.strings);
    add(attribute.type);
    add(attribute.data);
  }
  void add(const CustomCall &call) {
    add(call.node.name);
    add(call.node.domain);
    add(call.node.opType);
    add(call.node.version);
    add(call.node.attributes);
    add(call.node.inputs);
    add(call.node.outputs);
    add(call.results);
    add(call.isStateful);
  }
  void add(const Message &message) {
    add(message.text);
    add(message.kind);
  }
  void add(const DeviceKernel &kernel) {
    add(kernel.name);
    add(kernel.node);
    add(kernel.arguments);
    add(kernel.sharedBytes);
  }
  void add(const Image &image) {
    add(image.target);
    add(image.bytes);
    add(image.kernels);
    add(image.messages);
    add(image.kind);
    add(image.architecture);
  }
  void add(const std::pair<std::string, std::string> &pair) {
    add(pair.first);
    add(pair.second);
  }
  template <typename T> void add(const std::vector<T> &list) {
    add<uint64_t>(list.size());
    for (const T &item : list)
      add(item);
  }

  std::string out;
};

/// Reads what Writer writes; `ok` turns false at the first thing that does not
/// fit and everything read from then on is empty.
class Reader {
public:
  explicit Reader(std::string_view bytes) : rest(bytes) {}

  template <typename T> void get(T &value) {
    static_assert(std::is_arithmetic_v<T> || std::is_enum_v<T>);
    if (rest.size() < sizeof(T)) {
      ok = false;
      return;
    }
    memcpy(&value, rest.data(), sizeof(T));
    rest.remove_prefix(sizeof(T));
  }
  void get(bool &value) {
    uint8_t byte = 0;
    get(byte);
    ok &= byte <= 1;
    value = byte == 1;
  }
  void get(std::string &text) {
    uint64_t size = getSize(1);
    text.assign(rest.data(), size);
    rest.remove_prefix(size);
  }
  void get(Dim &dim) {
    get(dim.size);
    get(dim.symbol);
  }
  void get(ValueInfo &info) {
    get(info.name);
    get(info.type);
    get(info.elementType);
    get(info.hasRank);
    get(info.dims);
    // A sequence of maps of tensors is the deepest there is.
    if (depth == 2) {
      ok &= getSize(1) == 0;
    } else {
      ++depth;
      get(info.items);
      --depth;
    }
    get(info.isSequence);
    get(info.isOptional);
    get(info.isMap);
    ok &= !info.isMap || info.items.size() == 2;
  }
  void get(SourceFile &file) {
    get(file.path);
    get(file.size);
    get(file.modified);
  }
  void get(Argument &arg) {
    get(arg.kind);
    get(arg.index);
    get(arg.offset);
    get(arg.length);
    get(arg.shape);
    get(arg.onDevice);
  }
  void get(ProfileSite &site) {
    get(site.kernel);
    get(site.form);
    get(site.nodes);
  }
  void get(CustomType &type) {
    get(type.isPresent);
    get(type.type);
    get(type.hasRank);
    get(type.shape);
  }
  void get(CustomAttribute &attribute) {
    get(attribute.name);
    get(attribute.kind);
    get(attribute.ints);
    get(attribute.floats);
    get(attribute.strings);
    get(attribute.type);
    get(attribute.data);
  }
  void get(CustomCall &call) {
    get(call.node.name);
    get(call.node.domain);
    get(call.node.opType);
    get(call.node.version);
    get(call.node.attributes);
    get(call.node.inputs);
    get(call.node.outputs);
    get(call.results);
    get(call.isStateful);
  }
  void get(Message &message) {
    get(message.text);
    get(message.kind);
  }
  void get(DeviceKernel &kernel) {
    get(kernel.name);
    get(kernel.node);
    get(kernel.arguments);
    get(kernel.sharedBytes);
  }
  void get(Image &image) {
    get(image.target);
    get(image.bytes);
    get(image.kernels);
    get(image.messages);
    get(image.kind);
    get(image.architecture);
    ok &= image.kind <= ImageKind::Cubin;
  }
  void get(std::pair<std::string, std::string> &pair) {
    get(pair.first);
    get(pair.second);
  }
  template <typename T> void get(std::vector<T> &list) {
    uint64_t size = getSize(sizeof(T) < 8 ? sizeof(T) : 8);
    list.resize(size);
    for (T &item : list)
      get(item);
  }

  bool ok = true;
  std::string_view rest;

private:
  int depth = 0; // of the items of a value

  /// A count of things that take at least `bytes` each.
  uint64_t getSize(uint64_t bytes) {
    uint64_t size = 0;
    get(size);
    if (ok && size > rest.size() / bytes)
      ok = false;
    return ok ? size : 0;
  }
};

/// Both directions visit the same fields in the same order.
template <typename Visitor, typename A> void visit(Visitor &&v, A &a) {
  v(a.inputs), v(a.outputs);
  v(a.metadata.producerName), v(a.metadata.producerVersion);
  v(a.metadata.graphName), v(a.metadata.domain), v(a.metadata.description);
  v(a.metadata.modelVersion), v(a.metadata.irVersion), v(a.metadata.custom);
  v(a.deferred), v(a.assumesRank), v(a.warnings), v(a.files), v(a.initArgs),
      v(a.mainArgs), v(a.persistentElementBytes), v(a.profileSites);
  v(a.strings), v(a.customCalls), v(a.data), v(a.weightsBytes), v(a.objects),
      v(a.images);
}

} // namespace

static Header headerOf(std::string_view contents) {
  XXH128_hash_t hash = XXH3_128bits(contents.data(), contents.size());
  Header header;
  memcpy(header.magic, kMagic, sizeof(kMagic));
  header.version = kVersion;
  header.checksumLow = hash.low64;
  header.checksumHigh = hash.high64;
  return header;
}

std::string sardonyx::serialize(const Artifact &artifact) {
  Writer writer;
  visit([&](const auto &field) { writer.add(field); }, artifact);
  return std::move(writer.out);
}

std::string sardonyx::pack(const Artifact &artifact, std::string_view key) {
  Writer writer;
  writer.out.resize(sizeof(Header));
  writer.add(std::string(key));
  writer.out += serialize(artifact);
  Header header = headerOf(std::string_view(writer.out).substr(sizeof(Header)));
  memcpy(writer.out.data(), &header, sizeof(header));
  return std::move(writer.out);
}

static bool isSound(const Artifact &artifact, const Argument &arg) {
  switch (arg.kind) {
  case Argument::Input:
    return arg.index < artifact.inputs.size();
  case Argument::Persistent:
    return arg.index < artifact.persistentElementBytes.size();
  case Argument::Constant: {
    uint64_t size = arg.index == Argument::inlineData ? artifact.data.size()
                    : arg.index == Argument::weights  ? artifact.weightsBytes
                    : arg.index < artifact.files.size()
                        ? artifact.files[arg.index].size
                        : 0;
    for (int64_t dim : arg.shape)
      if (dim < 0)
        return false;
    return arg.offset <= size && arg.length <= size - arg.offset;
  }
  }
  return false;
}

/// What the code's calls and the operators' functions take for granted.
static bool isSound(const CustomCall &call) {
  for (const CustomAttribute &attribute : call.node.attributes) {
    using Kind = CustomAttribute;
    bool isWhole =
        attribute.kind == Kind::Int      ? attribute.ints.size() == 1
        : attribute.kind == Kind::Float  ? attribute.floats.size() == 1
        : attribute.kind == Kind::String ? attribute.strings.size() == 1
                                         : attribute.kind <= Kind::Tensor;
    if (!isWhole)
      return false;
  }
  if (call.results.size() != call.node.outputs.size())
    return false;
  for (size_t i = 0; i < call.results.size(); ++i)
    if (call.results[i].isPresent != call.node.outputs[i].isPresent ||
        (call.results[i].isPresent && !call.results[i].hasRank))
      return false;
  return true;
}

std::optional<Artifact> sardonyx::deserialize(std::string_view bytes) {
  Reader reader(bytes);
  Artifact artifact;
  visit([&](auto &field) { reader.get(field); }, artifact);
  if (!reader.ok || !reader.rest.empty())
    return std::nullopt;
  for (const CustomCall &call : artifact.customCalls)
    if (!isSound(call))
      return std::nullopt;
  for (const auto *args : {&artifact.initArgs, &artifact.mainArgs})
    for (const Argument &arg : *args)
      if (!isSound(artifact, arg))
        return std::nullopt;
  return artifact;
}

Expected<Artifact> sardonyx::unpack(std::string_view bytes,
                                    std::string_view key) {
  auto refuse = [](const char *why) {
    return Error(ErrorKind::InvalidModel,
                 std::string("the compiled model ") + why);
  };
  Header header;
  if (bytes.size() < sizeof(header))
    return refuse("is cut off");
  memcpy(&header, bytes.data(), sizeof(header));
  if (memcmp(header.magic, kMagic, sizeof(kMagic)) != 0)
    return refuse("was not made by Sardonyx, or is damaged");
  if (header.version != kVersion)
    return refuse("was made by another version of Sardonyx");
  bytes.remove_prefix(sizeof(header));
  Header right = headerOf(bytes);
  if (memcmp(&header, &right, sizeof(header)) != 0)
    return refuse("is damaged");
  Reader reader(bytes);
  std::string packedKey;
  reader.get(packedKey);
  if (!reader.ok || packedKey != key)
    return refuse("is another one than was asked for");
  std::optional<Artifact> artifact = deserialize(reader.rest);
  if (!artifact)
    return refuse("is damaged");
  return std::move(*artifact);
}
