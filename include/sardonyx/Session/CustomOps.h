//===- CustomOps.h - Operators that callers bring along ---------*- C++ -*-===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// docs/howto/CustomOps.md tells the four ways to bring one. A model never names
// a library or a function: only SessionOptions do.
//
//===----------------------------------------------------------------------===//

#ifndef SARDONYX_SESSION_CUSTOMOPS_H
#define SARDONYX_SESSION_CUSTOMOPS_H

#include "sardonyx/Model/CustomNode.h"
#include "sardonyx/Model/Error.h"
#include "sardonyx/Model/Export.h"
#include "sardonyx/Model/Types.h"
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace sardonyx {

//===----------------------------------------------------------------------===//
// What an operator sees of a node
//===----------------------------------------------------------------------===//

/// One call of an operator in a run.
class SARDONYX_API CustomRun {
public:
  /// The elements of an input that is there; StringSpans for strings.
  virtual const void *inputData(size_t index) const = 0;
  virtual const std::vector<int64_t> &inputShape(size_t index) const = 0;
  /// Memory for a result; null where it must not be so, or memory is out: the
  /// call has failed then.
  virtual void *output(size_t index, ElementType type,
                       const std::vector<int64_t> &shape) = 0;
  /// An element of a result of strings. False: there is none such.
  virtual bool setString(size_t index, int64_t element,
                         std::string_view text) = 0;
  /// Memory until the call is over; null: the call has failed.
  virtual void *scratch(int64_t bytes) = 0;

protected:
  ~CustomRun() = default;
};

/// Why a call failed, or nothing.
using CustomFailure = std::optional<std::string>;

//===----------------------------------------------------------------------===//
// Operators
//===----------------------------------------------------------------------===//

/// One thread at a time.
class SARDONYX_API CustomOpLock {
public:
  void lock();
  void unlock() { mutex.unlock(); }

private:
  std::mutex mutex;
  int process = 0;
};

/// An operator that is called in runs. Any thread calls its functions.
class SARDONYX_API CustomOp {
public:
  virtual ~CustomOp() = default;

  std::string domain, name;
  int64_t sinceVersion = 1;
  /// How many a node may have; -1 as the most is any number.
  int64_t minInputs = 0, maxInputs = -1, minOutputs = 1, maxOutputs = -1;
  /// The same inputs may give other results, or the call does something else.
  bool isStateful = false;
  /// compute() must not run twice at a time.
  bool isOneThread = false;
  mutable CustomOpLock oneThread;

  /// Writes what can be told of the node's outputs that are there.
  virtual CustomFailure infer(CustomNode &node) const = 0;
  /// Makes what compute() of a node keeps.
  virtual CustomFailure create(const CustomNode &node,
                               std::shared_ptr<void> &state) const {
    (void)node, (void)state;
    return std::nullopt;
  }
  virtual CustomFailure compute(const CustomNode &node, void *state,
                                CustomRun &run) const = 0;
};

/// A set of operators. What it holds does not change: copies share it.
class SARDONYX_API CustomOps {
public:
  /// An operator in C++. A later one of the same name and version counts.
  MaybeError add(std::shared_ptr<const CustomOp> op);
  /// The operators of a shared library (sardonyx-c/CustomOps.h), which stays
  /// loaded as long as anything uses one of them.
  MaybeError addLibrary(const std::string &path);
  /// Operators as functions of others: an ONNX file with functions of its own
  /// or a single function, binary or text.
  MaybeError addFunctionsFile(const std::string &path);
  MaybeError addFunctions(std::string_view bytes);
  /// Operators as func.func of MLIR on tensors, which become part of the
  /// model's code: in a file, or as text.
  MaybeError addMlirFile(const std::string &path);
  MaybeError addMlir(std::string_view text);
  /// All of another set's.
  void addAll(const CustomOps &others);

  /// The newest operator of this name that is not newer than `version`.
  const CustomOp *find(std::string_view domain, std::string_view name,
                       int64_t version) const;
  /// The same, to keep.
  std::shared_ptr<const CustomOp>
  take(std::string_view domain, std::string_view name, int64_t version) const;
  /// Serialised functions, those that count first.
  const std::vector<std::string> &functions() const { return functionProtos; }
  /// Modules, in the order in which they came.
  const std::vector<std::string> &mlir() const { return modules; }
  bool empty() const {
    return ops.empty() && functionProtos.empty() && modules.empty();
  }

  /// All that the code of a model depends on, besides what is called in runs.
  std::string fingerprint() const;

private:
  std::vector<std::shared_ptr<const CustomOp>> ops;
  std::vector<std::string> functionProtos, modules;
};

} // namespace sardonyx

#endif // SARDONYX_SESSION_CUSTOMOPS_H
