//===- NodeName.h - The node that something is for --------------*- C++ -*-===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef SARDONYX_NODENAME_H
#define SARDONYX_NODENAME_H

#include "mlir/IR/Location.h"
#include <string>

namespace sardonyx {

/// The model's node in a location, which is its innermost name, and the first
/// one where several nodes were fused; empty where it has none.
inline std::string nodeName(mlir::Location location) {
  std::string name;
  location->walk([&](mlir::Location part) {
    auto named = mlir::dyn_cast<mlir::NameLoc>(part);
    if (!named)
      return mlir::WalkResult::advance();
    name = named.getName().str();
    return mlir::WalkResult::interrupt();
  });
  return name;
}

/// "node 'conv1'", for messages; empty where the location has no name.
inline std::string describeNode(mlir::Location location) {
  std::string name = nodeName(location);
  return name.empty() ? "" : "node '" + name + "'";
}

} // namespace sardonyx

#endif // SARDONYX_NODENAME_H
