//===- Exporter.h - From the onnx dialect to an ONNX file -------*- C++ -*-===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Neither protobuf types nor exceptions cross this header.
//
//===----------------------------------------------------------------------===//

#ifndef SARDONYX_EXPORTER_EXPORTER_H
#define SARDONYX_EXPORTER_EXPORTER_H

#include "mlir/IR/BuiltinOps.h"
#include "llvm/ADT/StringRef.h"

#include <cstdint>
#include <string>
#include <vector>

namespace sardonyx {

struct ExportOptions {
  /// Put tensors of at least `externalThreshold` bytes into a file beside the
  /// model. Happens by itself where the model would exceed protobuf's 2 GiB.
  bool externalData = false;
  uint64_t externalThreshold = 1024;
  /// The name of that file in the model's folder; empty: `<model>.data`.
  std::string externalFile;
  /// Operator sets to import, in version 1, whether or not the model has
  /// operators of them: for tools that add some to the file.
  std::vector<std::string> domains;
};

/// Writes `@main_graph` of an onnx-level module as a model whose operator sets
/// are the oldest ones that have all of its operators in their latest form.
/// Errors go to the context's diagnostic handler.
llvm::LogicalResult exportOnnxFile(mlir::ModuleOp module, llvm::StringRef path,
                                   const ExportOptions &options = {});

/// The same into memory; fails for models of more than 2 GiB.
llvm::LogicalResult exportOnnxBytes(mlir::ModuleOp module, std::string &bytes);

} // namespace sardonyx

#endif // SARDONYX_EXPORTER_EXPORTER_H
