//===- Inference.h - Types of all values of a graph -------------*- C++ -*-===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef SARDONYX_LIB_TRANSFORMS_INFERENCE_H
#define SARDONYX_LIB_TRANSFORMS_INFERENCE_H

#include "OpenRanks.h"
#include "ShapeValues.h"

#include "llvm/ADT/DenseSet.h"

#include <optional>
#include <string>
#include <utility>

namespace sardonyx {

/// Makes the types of the values in blocks precise, op by op.
class Inference {
public:
  /// While the body of a loop is inferred with types that may not be those of
  /// all iterations, `isGuess`, nothing but types may change.
  explicit Inference(unsigned retries = 0, bool isGuess = false)
      : retries(retries), isGuess(isGuess) {}
  ~Inference() {
    for (mlir::Operation *op : dead)
      op->dropAllReferences();
    for (mlir::Operation *op : dead)
      op->destroy();
  }
  llvm::LogicalResult run(mlir::Block &block) {
    return run(block, block.begin());
  }
  llvm::LogicalResult boxResults(mlir::Operation *terminator,
                                 llvm::SmallVectorImpl<int64_t> &boxed);

private:
  llvm::LogicalResult run(mlir::Block &block, mlir::Block::iterator begin);
  llvm::LogicalResult runOp(mlir::Operation *op);
  void foldKnown(mlir::Operation *op);

  // InferGraphs.cpp
  llvm::LogicalResult runGraphs(mlir::Operation *op);
  bool enterLoop(onnx::LoopOp op);
  void enterScan(onnx::ScanOp op);
  llvm::LogicalResult runBranches(onnx::IfOp op);
  bool runBranch(mlir::Block &branch, mlir::Block::iterator begin,
                 std::optional<std::pair<mlir::Location, std::string>> &error);
  llvm::LogicalResult
  settleBranches(onnx::IfOp op,
                 llvm::ArrayRef<std::pair<mlir::Location, std::string>> errors);
  mlir::FailureOr<bool> pullIntoBranches(mlir::Operation *op);
  bool takeBranch(onnx::IfOp op);
  mlir::Operation *openLoop(onnx::LoopOp op);
  mlir::Type inferYielded(mlir::Operation *op, unsigned index);
  llvm::LogicalResult inferFromGraphs(mlir::Operation *op,
                                      llvm::SmallVectorImpl<mlir::Type> &types);

  // InferBeyondSchemas.cpp
  mlir::Type inferMore(mlir::Operation *op, unsigned index);
  mlir::Type inferFromShape(mlir::Value shape, mlir::Type element);
  mlir::Type inferReshape(onnx::ReshapeOp op);
  mlir::Type inferExpand(onnx::ExpandOp op);
  mlir::Type inferSlice(onnx::SliceOp op);
  mlir::Type inferReduction(mlir::Operation *op);
  bool isEmptySequence(mlir::Value value);
  mlir::Type inferInserted(onnx::SequenceInsertOp op);

  // A body that changes the types of what it carries is gone through several
  // times, and so are those in it each time: but for so many, bodies are gone
  // through once.
  static constexpr unsigned maxRetries = 3;

  ShapeEvaluator evaluator;
  unsigned retries; // of the bodies around this one
  const bool isGuess;
  OpenRanks openRanks;
  // Operations that were replaced: what the evaluator remembers is keyed by
  // their values.
  llvm::SmallVector<mlir::Operation *> dead;
  // Branches that a guess cannot be sure of.
  llvm::DenseSet<mlir::Block *> skipped;
  // Sequences that nothing has been put into yet.
  llvm::DenseSet<mlir::Value> empty;
};

} // namespace sardonyx

#endif // SARDONYX_LIB_TRANSFORMS_INFERENCE_H
