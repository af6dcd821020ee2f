//===- DiagnosticLog.h - What a compilation says went wrong -----*- C++ -*-===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef SARDONYX_LIB_SESSION_COMPILE_DIAGNOSTICLOG_H
#define SARDONYX_LIB_SESSION_COMPILE_DIAGNOSTICLOG_H

#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/Diagnostics.h"
#include "sardonyx/Model/Error.h"
#include "llvm/ADT/StringMap.h"

#include <string>
#include <vector>

namespace sardonyx {

/// The errors of one compilation, told in ONNX's terms. What the importer and
/// the onnx dialect find is the model's fault, and what has no lowering is not
/// supported. Everything else is a fault of the compiler's own: the user reads
/// that the operator is not supported in this form, and the original text is
/// the error's detail.
class DiagnosticLog {
public:
  void add(mlir::Diagnostic &diagnostic);
  /// Keeps what the importer warns of; what later passes do is not the user's.
  void addWarning(mlir::Diagnostic &diagnostic);

  /// Remembers the operator of each node, as later only its name is left.
  void nameOperators(mlir::ModuleOp module);
  /// From here on errors are no longer the importer's; and then no longer those
  /// of a module in the onnx dialect.
  void enterGraph() { stage = Stage::Graph; }
  void enterBackend() { stage = Stage::Backend; }

  /// "node 'fc' (Gemm)", of which something was made that has this location;
  /// empty where it tells no node.
  std::string describeNode(mlir::Location location) const;

  /// The worst of the errors; `otherwise` tells what failed if there is none.
  Error toError(const std::string &otherwise) const;
  /// All errors, one sentence each.
  std::vector<std::string> sentences() const;
  const std::vector<std::string> &warnings() const { return allWarnings; }

private:
  enum class Stage { Import, Graph, Backend };
  struct Entry {
    ErrorKind kind;
    std::string sentence;
    std::string detail; // of a fault of the compiler, else empty
  };

  Stage stage = Stage::Import;
  std::vector<Entry> entries;
  std::vector<std::string> allWarnings;
  llvm::StringMap<std::string> operators; // by the node's name
};

} // namespace sardonyx

#endif // SARDONYX_LIB_SESSION_COMPILE_DIAGNOSTICLOG_H
