//===- NamedLoop.h - Loops over tasks that say what they compute -*- C++
//-*-===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef SARDONYX_LIB_TARGETS_NVPTX_ORDERING_NAMEDLOOP_H
#define SARDONYX_LIB_TARGETS_NVPTX_ORDERING_NAMEDLOOP_H

#include "Common/KernelBody.h"

#include "mlir/Dialect/SCF/IR/SCF.h"

#include <optional>

namespace sardonyx::nv {

/// A kernel that is one loop over tasks, whose attribute says what it computes
/// (dialects/SDX/TaskLoops.h).
struct NamedLoop {
  mlir::scf::ForallOp op;
  /// The tensor that it reads elements of.
  mlir::Value source;
  /// Where its results go; null for one that nobody wants.
  llvm::SmallVector<mlir::Value> targets;
  llvm::SmallVector<llvm::StringRef> words;

  bool says(llvm::StringRef word) const {
    return llvm::is_contained(words, word);
  }
  mlir::RankedTensorType sourceType() const {
    return mlir::cast<mlir::RankedTensorType>(source.getType());
  }
  mlir::RankedTensorType resultType(unsigned number) const {
    return mlir::cast<mlir::RankedTensorType>(op->getResult(number).getType());
  }

  /// The loop of a kernel that has this attribute.
  static std::optional<NamedLoop> find(mlir::func::FuncOp func,
                                       const KernelBody &body,
                                       llvm::StringRef attribute);
};

} // namespace sardonyx::nv

#endif // SARDONYX_LIB_TARGETS_NVPTX_ORDERING_NAMEDLOOP_H
