//===- Artifact.h - A compiled model as data --------------------*- C++ -*-===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// All that is left of a model when the compiler is done: what goes into the
// cache and what a session is made of.
//
//===----------------------------------------------------------------------===//

#ifndef SARDONYX_MODEL_ARTIFACT_H
#define SARDONYX_MODEL_ARTIFACT_H

#include "sardonyx/Model/CustomNode.h"
#include "sardonyx/Model/Error.h"
#include "sardonyx/Model/Image.h"
#include "sardonyx/Model/Profile.h"
#include "sardonyx/Model/Types.h"
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace sardonyx {

/// A file that constants are read from.
struct SourceFile {
  /// Empty: the model itself, file or bytes.
  std::string path;
  uint64_t size = 0;
  int64_t modified = 0; // nanoseconds
};

/// Where an argument of `sdx_main` or `sdx_init` comes from.
struct Argument {
  enum Kind : uint8_t { Input, Constant, Persistent };
  Kind kind = Input;
  /// Input and Persistent: which. Constant: the index of its file,
  /// `inlineData` or `weights`.
  uint32_t index = 0;
  uint64_t offset = 0, length = 0; // of a constant's bytes
  std::vector<int64_t> shape;      // of a constant
  /// The code takes it in device memory.
  bool onDevice = false;

  static constexpr uint32_t inlineData = UINT32_MAX;
  /// In the weights of an artifact that was built ahead of time.
  static constexpr uint32_t weights = UINT32_MAX - 1;
};

/// A node of an operator that runs call.
struct CustomCall {
  /// Its outputs are what the operator's shape function says of them.
  CustomNode node;
  /// What the code takes them for, with all that the model says.
  std::vector<CustomType> results;
  bool isStateful = false;
};

struct Artifact {
  std::vector<ValueInfo> inputs, outputs;
  ModelMetadata metadata;
  /// There is no code: it can be made when a run tells the ranks of inputs.
  bool deferred = false;
  /// The code assumes a rank that what a run gives may contradict.
  bool assumesRank = false;
  /// What the model has wrong that keeps nothing from running, a sentence each.
  std::vector<std::string> warnings;
  std::vector<SourceFile> files;
  std::vector<Argument> initArgs, mainArgs;
  /// Element size of each result of `sdx_init`.
  std::vector<uint32_t> persistentElementBytes;
  /// Of code compiled for profiling: what its records are of.
  std::vector<ProfileSite> profileSites;
  /// The strings that handles stand for, from 1 on.
  std::vector<std::string> strings;
  /// By the numbers that the code has for them.
  std::vector<CustomCall> customCalls;
  /// Constants that lie in no file, each at a multiple of 64.
  std::string data;
  /// Bytes of the weights of an artifact that was built ahead of time, which
  /// lie beside it.
  uint64_t weightsBytes = 0;
  /// ELF objects.
  std::vector<std::string> objects;
  /// Code for kernels that the objects call.
  std::vector<Image> images;
};

std::string serialize(const Artifact &artifact);

/// None where the bytes are not what serialize() writes. Checks every index
/// and length, so that a damaged file is refused here and not met later.
std::optional<Artifact> deserialize(std::string_view bytes);

/// The bytes that a cache's file and an artifact hold: a magic number, the
/// format's version, a checksum, `key` and all of `artifact`. The key says what
/// it is of.
std::string pack(const Artifact &artifact, std::string_view key);

/// What pack() has made of this key. Bytes that it has not made, or of another
/// version or key, are refused with the reason, and so are damaged ones.
Expected<Artifact> unpack(std::string_view bytes, std::string_view key);

} // namespace sardonyx

#endif // SARDONYX_MODEL_ARTIFACT_H
