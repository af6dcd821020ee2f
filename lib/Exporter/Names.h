//===- Names.h - Unique names for values ------------------------*- C++ -*-===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef SARDONYX_LIB_EXPORTER_NAMES_H
#define SARDONYX_LIB_EXPORTER_NAMES_H

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/StringSet.h"

namespace sardonyx::exporter {

/// Names all values of a function: as the model it came from called them where
/// that is unique, by numbers otherwise.
class Names {
public:
  explicit Names(mlir::func::FuncOp func);
  std::string of(mlir::Value value);
  std::string fresh();
  /// Name of a function result, whatever the returned value is called.
  const std::string &result(unsigned index) const { return results[index]; }

private:
  void assign(mlir::Value value, llvm::StringRef wish);
  std::string unique(llvm::StringRef wish);

  llvm::DenseMap<mlir::Value, std::string> names;
  llvm::StringSet<> taken;
  llvm::SmallVector<std::string> results;
  unsigned counter = 0;
};

} // namespace sardonyx::exporter

#endif // SARDONYX_LIB_EXPORTER_NAMES_H
