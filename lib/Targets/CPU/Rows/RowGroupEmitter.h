//===- RowGroupEmitter.h - The loops of one group ---------------*- C++ -*-===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef SARDONYX_LIB_TARGETS_CPU_ROWGROUPEMITTER_H
#define SARDONYX_LIB_TARGETS_CPU_ROWGROUPEMITTER_H

#include "Rows/ByteTable.h"
#include "Rows/RowMemory.h"

#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/STLFunctionalExtras.h"

#include <utility>

namespace sardonyx::cpu {

/// Emits the loops of one group.
class RowGroupEmitter : RowMemory {
public:
  using RowMemory::RowMemory;

  void run();

private:
  /// Values known at some depth of the loop nest.
  struct Scope {
    explicit Scope(const Scope *parent = nullptr) : parent(parent) {}

    const Scope *parent;
    llvm::DenseMap<unsigned, llvm::SmallVector<Copies>> results;
    llvm::DenseMap<std::pair<unsigned, unsigned>, Copies> loads;

    const llvm::SmallVector<Copies> *findResults(unsigned stage) const {
      auto it = results.find(stage);
      if (it != results.end())
        return &it->second;
      return parent ? parent->findResults(stage) : nullptr;
    }
    const Copies *findLoad(unsigned stage, unsigned arg) const {
      auto it = loads.find({stage, arg});
      if (it != loads.end())
        return &it->second;
      return parent ? parent->findLoad(stage, arg) : nullptr;
    }
  };

  /// Called with the lane dimension's part of the point filled in.
  using LaneBody = llvm::function_ref<llvm::SmallVector<mlir::Value>(
      const Point &point, mlir::ValueRange accs)>;

  bool isInnerDim(unsigned d) {
    return group.reduced[d] || static_cast<int64_t>(d) == plan.lane ||
           static_cast<int64_t>(d) == plan.transposed ||
           llvm::is_contained(plan.repeated, d);
  }

  /// Loads the tables of bytes that bodies pick from, once a task.
  void loadTables();
  void emitTask(Point point, mlir::OpFoldResult begin, mlir::OpFoldResult end);
  mlir::Value getRowsOfTask();
  void emitRows(Point point, unsigned d, mlir::Value first, mlir::Value count);
  void emitTransposedTask(Point point, mlir::Value firstRow);
  void emitInterleavedTask(Point point, mlir::OpFoldResult begin,
                           mlir::OpFoldResult end);
  void preload(const Point &point, Scope &scope, bool onlyInnerStages,
               llvm::function_ref<bool(unsigned)> varies);

  // RowMoves.cpp
  /// What a group does that computes nothing: copies rows, or fills them with a
  /// byte.
  struct Move {
    RowAccess to, from;
    std::optional<uint8_t> byte;
  };
  std::optional<Move> findMove();
  void emitMove(const Move &move, const Point &point, mlir::Value bytes);
  /// The loop along the lanes from `begin` to `end`, or where that is long and
  /// only moves, a call that does so.
  void emitLoopOrMove(Point point, mlir::OpFoldResult begin,
                      mlir::OpFoldResult end,
                      llvm::function_ref<void()> emitLoop);

  // RowPasses.cpp
  bool unrollsRow();
  void emitPasses(Point point, Scope &scope);
  void emitPass(const Point &point, Scope &scope, int level,
                llvm::ArrayRef<unsigned> stages);
  llvm::SmallVector<mlir::Value> emitRowLoops(const Point &point, Scope &scope,
                                              llvm::ArrayRef<unsigned> loops,
                                              llvm::ArrayRef<unsigned> stages,
                                              mlir::ValueRange accs);
  llvm::SmallVector<mlir::Value> emitPoint(const Point &point, Scope &scope,
                                           llvm::ArrayRef<unsigned> stages,
                                           mlir::ValueRange accs);
  llvm::SmallVector<mlir::Value>
  emitLaneLoop(const Point &outer, mlir::OpFoldResult begin,
               mlir::OpFoldResult end, mlir::ValueRange accs, LaneBody body);
  void emitOverlapped(const Point &outer, mlir::OpFoldResult begin,
                      mlir::Value middle, mlir::OpFoldResult end, LaneBody body,
                      llvm::function_ref<void()> emitRest);
  void emitRun(const Point &outer, mlir::OpFoldResult begin,
               mlir::OpFoldResult end, LaneBody body);
  void finishReductions(const Point &point, Scope &scope,
                        llvm::ArrayRef<unsigned> stages, mlir::ValueRange accs);

  // RowValues.cpp
  mlir::Value emitSpecial(mlir::Operation *op,
                          llvm::ArrayRef<mlir::Value> operands, RowStage &stage,
                          const Point &point, unsigned copy);
  Copies getArg(unsigned stage, unsigned arg, const Point &point, Scope &scope);
  llvm::SmallVector<Copies> compute(unsigned stage, const Point &point,
                                    Scope &scope,
                                    llvm::ArrayRef<Copies> accs = {});
  const llvm::SmallVector<Copies> &evaluate(unsigned stage, const Point &point,
                                            Scope &scope);
  void storeResults(unsigned stage, const Point &point, Scope &scope);

  /// Tables of bytes in registers, by their memory.
  llvm::DenseMap<mlir::Value, ByteTable> tables;
};

} // namespace sardonyx::cpu

#endif // SARDONYX_LIB_TARGETS_CPU_ROWGROUPEMITTER_H
