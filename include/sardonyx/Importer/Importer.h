//===- Importer.h - From an ONNX file to the onnx dialect -------*- C++ -*-===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The only way into the compiler for a model file. No protobuf type and no
// exception crosses this header.
//
//===----------------------------------------------------------------------===//

#ifndef SARDONYX_IMPORTER_IMPORTER_H
#define SARDONYX_IMPORTER_IMPORTER_H

#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/OwningOpRef.h"
#include "sardonyx/Importer/GivenInitializer.h"
#include "llvm/ADT/StringRef.h"

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

namespace mlir {
class DialectRegistry;
class MLIRContext;
} // namespace mlir

namespace sardonyx {

struct ImportOptions {
  /// Folder that external data must lie in; empty: the model file's folder.
  /// For models given as bytes an empty folder means that they may have none.
  std::string externalDataDir;
  /// Keep doc strings and metadata_props of nodes (exporters put stack traces
  /// there); those of the model are always kept.
  bool keepNodeMetadata = false;
  /// Shapes of graph inputs, by name, in place of what the file declares; -1
  /// stands for an open dimension. They win over declarations of values that
  /// depend on them.
  std::map<std::string, std::vector<int64_t>> inputShapes;
  /// Sizes of the open dimensions of graph inputs that have such a denotation.
  std::map<std::string, int64_t> denotedDims;
  /// Tensors in the place of the graph's initializers of these names; names of
  /// none are passed over, unless they have to be of external ones.
  std::shared_ptr<const GivenInitializers> initializers;
  /// Values of the graph, by name, that are its outputs in the place of those
  /// that the file declares; empty: those.
  std::vector<std::string> outputs;
  /// Functions that the model may call besides its own, as parseOnnxFunctions
  /// gives them. The model's own count first, then the first of a name.
  std::vector<std::string> functions;
  /// Infer the types of values that the file does not declare.
  bool inferTypes = true;
  /// Tensors of at most this many bytes become `dense<>` attributes, so that
  /// folders see them; larger ones become `dense_resource<>`.
  uint64_t denseLimit = 64;
  /// Bound on the nodes that inlining model-local functions may create.
  uint64_t maxExpandedNodes = 250000;
};

/// The functions in an ONNX file's bytes, binary or text: those of a model, or
/// one alone. Each is serialised on its own. The text of an error, or nothing.
std::string parseOnnxFunctions(llvm::StringRef bytes,
                               std::vector<std::string> &functions);

/// Loads the dialects that an imported module consists of.
void registerImporterDialects(mlir::DialectRegistry &registry);

/// Imports a binary or textual ONNX file. Weights stay in the mapped file,
/// which the module's context keeps alive. Returns null after an error, which
/// was reported to the context's diagnostic handler.
mlir::OwningOpRef<mlir::ModuleOp>
importOnnxFile(llvm::StringRef path, mlir::MLIRContext &context,
               const ImportOptions &options = {});

/// The same for a model in memory, where weights stay: it must outlive the
/// module's context. `name` stands for the file in locations.
mlir::OwningOpRef<mlir::ModuleOp>
importOnnxBytes(llvm::StringRef bytes, mlir::MLIRContext &context,
                const ImportOptions &options = {},
                llvm::StringRef name = "<memory>");

} // namespace sardonyx

#endif // SARDONYX_IMPORTER_IMPORTER_H
