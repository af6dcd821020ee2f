//===- CustomMlir.h - Operators as functions of MLIR's ----------*- C++ -*-===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef SARDONYX_LIB_SESSION_CUSTOM_CUSTOMMLIR_H
#define SARDONYX_LIB_SESSION_CUSTOM_CUSTOMMLIR_H

#include "dialects/ONNX/ONNX.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/OwningOpRef.h"

#include <string>
#include <vector>

namespace sardonyx {

/// What is wrong with a module of functions for operators; empty if nothing.
std::string checkCustomMlir(const std::string &text);

/// The functions of such modules, in a compilation's context.
class CustomMlir {
public:
  /// The modules have been checked. Later ones count first.
  CustomMlir(mlir::MLIRContext *context,
             const std::vector<std::string> &modules);

  bool knows(onnx::CustomOp op) const;
  /// The function that takes the op's operands; null where there is none.
  mlir::func::FuncOp find(onnx::CustomOp op) const;
  /// The types of the op's results.
  static llvm::SmallVector<mlir::Type> resultTypes(mlir::func::FuncOp function,
                                                   onnx::CustomOp op);

private:
  struct Entry {
    std::string domain, name;
    int64_t version;
    mlir::func::FuncOp function;
  };
  llvm::SmallVector<const Entry *> candidates(onnx::CustomOp op) const;

  std::vector<mlir::OwningOpRef<mlir::ModuleOp>> modules;
  std::vector<Entry> entries;
};

} // namespace sardonyx

#endif // SARDONYX_LIB_SESSION_CUSTOM_CUSTOMMLIR_H
