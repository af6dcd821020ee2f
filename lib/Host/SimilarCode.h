//===- SimilarCode.h - Code that differs in integers only -------*- C++ -*-===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef SARDONYX_LIB_HOST_SIMILARCODE_H
#define SARDONYX_LIB_HOST_SIMILARCODE_H

#include "mlir/Analysis/CFGLoopInfo.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include <map>
#include <vector>

namespace sardonyx {

/// A function of the llvm dialect, or a loop of one.
struct Code {
  mlir::LLVM::LLVMFuncOp func;
  /// The first is the function's, or the head of the loop.
  llvm::SmallVector<mlir::Block *> blocks;
  /// What the code reads from elsewhere, but for constants, in the order in
  /// which it does.
  llvm::SmallVector<mlir::Value> inputs;
  /// The operations in order, but for constants: these are looked at where they
  /// are used. Those of the prologue come first.
  llvm::SmallVector<mlir::Operation *> ops;

  // Of a loop.

  /// Operations before it, without effects on memory, that it reads the results
  /// of: they are computed anew where the loop goes.
  llvm::SmallVector<mlir::Operation *> prologue;
  /// The only branch to the head from outside, and what it gives it.
  mlir::BlockOperand *entry = nullptr;
  llvm::SmallVector<mlir::Value> initial;
  /// Where the only branch out of the loop goes to.
  mlir::Block *exit = nullptr;

  static Code ofFunction(mlir::LLVM::LLVMFuncOp func);
  /// None where the loop is entered or left in more than one way, or gives
  /// values to what follows.
  static std::optional<Code> ofLoop(mlir::LLVM::LLVMFuncOp func,
                                    const mlir::CFGLoop &loop);

private:
  void listOps();
};

/// A constant, or the address of a global.
bool isConstant(mlir::Operation *op);

/// Code, and others that are like it but for integers that may as well come
/// from registers: bounds of loops, and what stands outside of the innermost
/// loops.
class SimilarCode {
public:
  explicit SimilarCode(Code code) : members({std::move(code)}) {}

  /// The same for all codes that are like each other.
  static size_t hash(const Code &code);

  /// Whether `code` may be shared with the others; if so, it is a member from
  /// then on.
  bool add(const Code &code);

  llvm::ArrayRef<Code> getMembers() const { return members; }
  /// The first member's operations.
  llvm::ArrayRef<mlir::Operation *> getOps() const {
    return members.front().ops;
  }

  /// What the members differ in: of each integer, all members'.
  llvm::SmallVector<llvm::SmallVector<int64_t>> getParameters() const {
    return listParameters(integers);
  }

  /// Puts `arguments`, one for each of getParameters(), in the place of these
  /// integers: in `ops`, copies or the first member's own of getOps(), and in
  /// `start`, a branch with what a loop begins with.
  void replaceIntegers(llvm::ArrayRef<mlir::Operation *> ops,
                       mlir::Operation *start,
                       llvm::ArrayRef<mlir::Value> arguments) const;

private:
  /// A place that holds an integer: an operand of the `op`-th operation, or the
  /// offset of an address (operand -1). What a loop begins with belongs to the
  /// operation behind the last.
  struct Place {
    unsigned op;
    int operand;
    bool operator<(const Place &other) const {
      return std::tie(op, operand) < std::tie(other.op, other.operand);
    }
  };
  using Integers = std::map<Place, int64_t>;
  /// For each place that differs, the integer of each member.
  using Differences = std::map<Place, llvm::SmallVector<int64_t>>;
  struct Pairs;

  int64_t getFirst(Place place) const;
  static llvm::SmallVector<llvm::SmallVector<int64_t>>
  listParameters(const Differences &all);
  void findChanging();
  bool mayVary(const Differences &places);
  bool compare(const Code &code, Integers &different) const;
  bool compareOp(unsigned number, mlir::Operation *other, const Pairs &pairs,
                 Integers &different) const;
  static bool compareOperands(unsigned number, mlir::ValueRange operands,
                              mlir::ValueRange others, const Pairs &pairs,
                              Integers &different);

  std::vector<Code> members;
  /// The head of the innermost loop that computes an operation in each step,
  /// and how many operations it has of these; once they are needed.
  bool knowsChanging = false;
  llvm::DenseMap<mlir::Operation *, mlir::Block *> changing;
  llvm::DenseMap<mlir::Block *, unsigned> lengths;
  Differences integers;
};

} // namespace sardonyx

#endif // SARDONYX_LIB_HOST_SIMILARCODE_H
