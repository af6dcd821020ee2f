//===- CustomNodes.h - The custom operators of a loaded model ---*- C++ -*-===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef SARDONYX_LIB_SESSION_CUSTOM_CUSTOMNODES_H
#define SARDONYX_LIB_SESSION_CUSTOM_CUSTOMNODES_H

#include "sardonyx/Model/Artifact.h"
#include "sardonyx/Model/Error.h"
#include "sardonyx/Runtime/RunContext.h"
#include "sardonyx/Session/CustomOps.h"

namespace sardonyx {

/// "node 'x' (Foo)", or the operator alone where the node has no name.
std::string describe(const CustomNode &node);

/// Asks the operator for the types of `node`'s results, which are taken as not
/// known before, and checks all that it says.
CustomFailure inferChecked(const CustomOp &op, CustomNode &node);

/// The nodes that the code of a model calls, each with the operator that was
/// found for it.
class CustomNodes : public runtime::CustomNodes {
public:
  /// An error where an operator is missing; null where one has changed so that
  /// the code does not hold any more.
  static Expected<std::shared_ptr<CustomNodes>>
  resolve(const std::vector<CustomCall> &calls, const CustomOps *ops);

  void compute(int64_t node, runtime::RuntimeCall &call) override;

private:
  struct Entry {
    CustomCall call;
    std::shared_ptr<const CustomOp> op;
    /// Destroyed before the operator.
    std::shared_ptr<void> state;
  };
  std::vector<Entry> entries;
};

} // namespace sardonyx

#endif // SARDONYX_LIB_SESSION_CUSTOM_CUSTOMNODES_H
