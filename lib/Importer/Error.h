//===- Error.h - How the importer gives up ----------------------*- C++ -*-===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Inside the importer, the exporter and the bridge a broken model ends in an
// exception, as it does inside libonnx; their entry points turn it into a
// diagnostic. It must never be thrown through a frame of MLIR's.
//
//===----------------------------------------------------------------------===//

#ifndef SARDONYX_LIB_IMPORTER_ERROR_H
#define SARDONYX_LIB_IMPORTER_ERROR_H

#include "mlir/IR/Location.h"
#include "llvm/ADT/STLFunctionalExtras.h"
#include "llvm/ADT/Twine.h"

#include <stdexcept>
#include <string>

namespace onnx {
class NodeProto;
} // namespace onnx

namespace sardonyx::importer {

class ImportError : public std::runtime_error {
public:
  ImportError(const llvm::Twine &message, llvm::StringRef node)
      : std::runtime_error(message.str()), node(node.str()) {}
  /// Name of the node at fault, for the location; may be empty.
  const std::string node;
};

[[noreturn]] void fail(const llvm::Twine &message);
/// Prefixes the message with the node's name and operator.
[[noreturn]] void failAt(const ::onnx::NodeProto &node,
                         const llvm::Twine &message);

/// "node 'n' (Conv)", or by its first output where the node has no name.
std::string describe(const ::onnx::NodeProto &node);

/// What the node is called in locations: its name, else its first output.
std::string displayName(const ::onnx::NodeProto &node);

/// Runs `body`; reports whatever it throws as an error at `loc` (or at a
/// NameLoc of the node at fault inside it). Returns failure if it threw.
mlir::LogicalResult reportErrors(mlir::Location loc,
                                 llvm::function_ref<void()> body);

} // namespace sardonyx::importer

#endif // SARDONYX_LIB_IMPORTER_ERROR_H
