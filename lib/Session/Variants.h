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
// of these.
//
//===----------------------------------------------------------------------===//

#ifndef SARDONYX_LIB_SESSION_VARIANTS_H
#define SARDONYX_LIB_SESSION_VARIANTS_H

#include "FileMap.h"
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

class Variants {
public:
  using Shapes = std::map<std::string, std::vector<int64_t>>;
  /// Loads the model with these shapes of inputs.
  using Load = std::function<Expected<std::shared_ptr<Session>>(
      std::shared_ptr<FileMap> model, const ModelSource &source,
      const Shapes &shapes)>;

  /// Keeps the model: a file as its name, bytes as a copy.
  Variants(const FileMap &model, const ModelSource &source,
           std::vector<ValueInfo> inputs);

  /// The session for inputs of these shapes, one for each of the model's; null
  /// if there is none yet.
  std::shared_ptr<Session> find(const std::vector<TensorRef> &inputs);
  /// The same; makes it if there is none yet. Where the compiler cannot do it
  /// for these ranks and lengths, all sizes are fixed.
  Expected<std::shared_ptr<Session>>
  findOrLoad(const std::vector<TensorRef> &inputs, const Load &load);

  void forEach(const std::function<void(Session &)> &body);

private:
  struct Entry {
    Shapes shapes;
    std::shared_ptr<Session> session;
  };

  Shapes shapesOf(const std::vector<TensorRef> &inputs, bool all) const;
  std::shared_ptr<Session> lookUp(const Shapes &shapes);
  Expected<std::shared_ptr<Session>> loadWith(const Shapes &shapes,
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
  bool fixesAll;
};

} // namespace sardonyx

#endif // SARDONYX_LIB_SESSION_VARIANTS_H
