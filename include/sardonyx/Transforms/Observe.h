//===- Observe.h - Tensors to be observed -----------------------*- C++ -*-===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef SARDONYX_TRANSFORMS_OBSERVE_H
#define SARDONYX_TRANSFORMS_OBSERVE_H

#include "dialects/SDX/SDX.h"
#include "mlir/IR/BuiltinOps.h"

#include <string>
#include <vector>

namespace sardonyx {

/// A tensor of the main graph, by its name, and what is to be kept of it.
struct ObservedName {
  std::string name;
  sdx::ObservationKinds kinds;
  /// Of the channels; negative ones count from the end.
  int64_t axis = 1;
};

/// Observes tensors of a module of the onnx dialect, whose functions are
/// inlined; the site of each is its place in `tensors`, behind those that the
/// module has. The sentence of what is wrong with a name or a type, or nothing.
std::string observeTensors(mlir::ModuleOp module,
                           llvm::ArrayRef<ObservedName> tensors);

/// The inputs of the main graph and the results of its nodes that are floats.
std::vector<std::string> listFloatTensors(mlir::ModuleOp module);

} // namespace sardonyx

#endif // SARDONYX_TRANSFORMS_OBSERVE_H
