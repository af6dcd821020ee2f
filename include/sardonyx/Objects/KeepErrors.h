//===- KeepErrors.h - What LLVM has against code ----------------*- C++ -*-===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef SARDONYX_OBJECTS_KEEPERRORS_H
#define SARDONYX_OBJECTS_KEEPERRORS_H

#include "llvm/IR/DiagnosticHandler.h"
#include "llvm/IR/DiagnosticInfo.h"
#include "llvm/IR/DiagnosticPrinter.h"
#include "llvm/Support/raw_ostream.h"

#include <string>

namespace sardonyx {

/// Keeps what LLVM has against code. By itself it prints that, and ends the
/// process.
class KeepErrors : public llvm::DiagnosticHandler {
public:
  /// Adds lines to `errors`.
  explicit KeepErrors(std::string &errors) : errors(errors) {}

  bool handleDiagnostics(const llvm::DiagnosticInfo &info) override {
    if (info.getSeverity() != llvm::DS_Error)
      return true;
    llvm::raw_string_ostream stream(errors);
    if (!errors.empty())
      stream << "\n";
    llvm::DiagnosticPrinterRawOStream printer(stream);
    info.print(printer);
    return true;
  }

private:
  std::string &errors;
};

} // namespace sardonyx

#endif // SARDONYX_OBJECTS_KEEPERRORS_H
