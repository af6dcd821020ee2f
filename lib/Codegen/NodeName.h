//===- NodeName.h - The node that code is for -------------------*- C++ -*-===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef SARDONYX_LIB_CODEGEN_NODENAME_H
#define SARDONYX_LIB_CODEGEN_NODENAME_H

#include "mlir/IR/Location.h"
#include <string>

namespace sardonyx {

/// "node 'conv1'" of the innermost name in a location, for messages; empty
/// where it has none.
inline std::string describeNode(mlir::Location location) {
  std::string text;
  location->walk([&](mlir::Location part) {
    auto named = mlir::dyn_cast<mlir::NameLoc>(part);
    if (!named)
      return mlir::WalkResult::advance();
    text = "node '" + named.getName().str() + "'";
    return mlir::WalkResult::interrupt();
  });
  return text;
}

} // namespace sardonyx

#endif // SARDONYX_LIB_CODEGEN_NODENAME_H
