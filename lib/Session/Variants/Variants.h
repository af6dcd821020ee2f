//===- Variants.h - Code for the shapes that arrive -------------*- C++ -*-===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Compiled code knows the rank of every tensor. Where a model leaves the rank
// of an input open, or the length of a list of integers from which a tensor
// inside may have its rank, a session compiles the model once more for what a
// run is given, once for each such set of ranks and lengths. Where the compiler
// needs all sizes (say, those of a filter that is an input), once for each set
// of these; and where it needs the values of short lists (from which a shape is
// made, say, whose sizes of 1 are dropped), once for each set of those.
//
// Code also counts on dimensions of one name being equal. Where they are not,
// it is compiled once more without.
//
//===----------------------------------------------------------------------===//

#ifndef SARDONYX_LIB_SESSION_VARIANTS_VARIANTS_H
#define SARDONYX_LIB_SESSION_VARIANTS_VARIANTS_H

#include "sardonyx/Model/Artifact.h"
#include "sardonyx/Model/FileMap.h"
#include "sardonyx/Runtime/ForkSafeMutex.h"
#include "sardonyx/Session/Compile.h"
#include "sardonyx/Session/Session.h"

#include <functional>
#include <list>
#include <map>
#include <memory>
#include <string>
#include <vector>

namespace sardonyx {

/// Whether a rank may hang on what a run gives for these inputs: one has no
/// rank, or is a list of integers of any length.
bool leavesRanksOpen(const std::vector<ValueInfo> &inputs);
/// Whether any of their shapes is not known.
bool leavesShapesOpen(const std::vector<ValueInfo> &inputs);
/// Whether two open dimensions of these inputs have the name of one size.
bool shareDimNames(const std::vector<ValueInfo> &inputs);

class Variants {
public:
  /// What code is made for: shapes and values of inputs, by their names.
  struct Known {
    std::map<std::string, std::vector<int64_t>> shapes, values;
    /// Whether dimensions of one name count as different.
    bool distinctDims = false;
    bool operator==(const Known &other) const {
      return shapes == other.shapes && values == other.values &&
             distinctDims == other.distinctDims;
    }
  };
  /// Loads the model for what is known of its inputs.
  using Load = std::function<Expected<std::shared_ptr<Session>>(
      std::shared_ptr<FileMap> model, const ModelSource &source,
      const Known &known)>;

  /// Keeps the model: a file as its name, bytes by their owner or as a copy.
  /// `whole`: what it was compiled to first.
  Variants(const FileMap &model, const ModelSource &source,
           const Artifact &whole);

  /// The session for inputs of these shapes, one for each of the model's; null
  /// if there is none yet. `namesDiffer`: dimensions of one name have different
  /// sizes.
  std::shared_ptr<Session> find(const std::vector<TensorRef> &inputs,
                                bool namesDiffer);
  /// The same; makes it if there is none yet. Where the compiler cannot do it
  /// for these ranks and lengths, all sizes are fixed, then values.
  Expected<std::shared_ptr<Session>>
  findOrLoad(const std::vector<TensorRef> &inputs, bool namesDiffer,
             const Load &load);

  void forEach(const std::function<void(Session &)> &body);

private:
  /// How much of the inputs is fixed; each fixes what those before it fix.
  enum Level { Nothing, Ranks, Sizes, Values };
  struct Entry {
    Known known;
    std::shared_ptr<Session> session;
  };

  static Level firstLevel(const Artifact &whole);
  Known knownOf(const std::vector<TensorRef> &inputs, bool namesDiffer,
                Level level) const;
  std::shared_ptr<Session> lookUp(const Known &known);
  Expected<std::shared_ptr<Session>> loadWith(const Known &known,
                                              const Load &load) const;

  std::vector<ValueInfo> inputs;
  std::string path;
  std::shared_ptr<FileMap> bytes; // null where the model is a file
  size_t size;
  int64_t modified;

  /// Held while a model is compiled; `mutex` never is.
  runtime::ForkSafeMutex loading;
  runtime::ForkSafeMutex mutex;
  std::list<Entry> entries; // the one that was used last in front
  Level needed;             // by what was made so far
};

} // namespace sardonyx

#endif // SARDONYX_LIB_SESSION_VARIANTS_VARIANTS_H
