//===- CompileAhead.h - Models as code and weights --------------*- C++ -*-===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef SARDONYX_SESSION_COMPILEAHEAD_H
#define SARDONYX_SESSION_COMPILEAHEAD_H

#include "sardonyx/Model/Artifact.h"
#include "sardonyx/Session/Compile.h"
#include "sardonyx/Session/Session.h"
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace sardonyx {

/// The weights of a model for one or more kinds of processors, those that are
/// equal once. Each begins at a multiple of 64.
class WeightPool {
public:
  /// Gives the place of `bytes`, which `owner` keeps alive.
  uint64_t add(std::string_view bytes, std::shared_ptr<const void> owner);

  /// The blocks in order, each with the zeros before it.
  struct Block {
    uint64_t padding;
    std::string_view bytes;
  };
  const std::vector<Block> &blocks() const { return all; }
  uint64_t size() const { return end; }

private:
  std::vector<Block> all;
  std::vector<uint64_t> places;
  std::unordered_multimap<uint64_t, size_t> byHash;
  std::vector<std::shared_ptr<const void>> owners;
  uint64_t end = 0;
};

/// A model compiled for one kind of processor, and maybe a kind of device.
struct AheadCode {
  /// As asked for, "x86-64-v3", and the features that the code needs.
  std::string processor, features;
  /// Inputs, outputs, metadata and images; the arguments of the code are inputs
  /// and places in the weights, with a device also what `sdx_init` makes when
  /// the model is opened.
  Artifact description;
  /// The files that hold parts of the model beside its own.
  std::vector<std::string> files;
  /// ELF objects; each name that others see begins with the prefix.
  std::vector<std::string> objects;
  /// Whether `sdx_init` is among them.
  bool hasInit = false;
  /// Whether kernels run on a device.
  bool isForDevice = false;
};

/// Compiles a model for `options.cpu`, which need not be this machine's, and
/// packs its weights as that code reads them; with `options.device.cuda` for
/// the device of that architecture, whose kernels pack them where the model is
/// opened. What only runs can tell (the ranks of inputs) or only this process
/// has (custom operators that it calls) is refused.
Expected<AheadCode> compileAhead(const ModelSource &model,
                                 const SessionOptions &options,
                                 const std::string &prefix, WeightPool &weights,
                                 std::vector<Timing> &timings);

/// Puts machine code in the place of images of PTX, where this machine has the
/// assembler, or `tool` names one; "none" is none. With `keepsText` the PTX
/// stays behind it. What the assembler refuses is an error.
MaybeError assembleImages(std::vector<Image> &images, const std::string &tool,
                          bool keepsText);

} // namespace sardonyx

#endif // SARDONYX_SESSION_COMPILEAHEAD_H
