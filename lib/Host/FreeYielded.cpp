//===- FreeYielded.cpp - Loops and branches own what they yield -----------===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A buffer that an iteration makes and yields replaces the one that the
// iteration before made. Nobody could free that one as long as it may also be
// the initial value, which belongs to somebody else: therefore, the loop
// begins with a copy of its own. The same for a branch: either both sides
// yield a buffer that they made, or neither does, or what one side made is
// freed where that side was taken.
//
//===----------------------------------------------------------------------===//

#include "Buffers.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Interfaces/ViewLikeInterface.h"

using namespace mlir;
using namespace sardonyx;

namespace {

class Ownership {
public:
  void run(func::FuncOp func) {
    func.walk([&](memref::AllocOp alloc) { owned.insert(alloc.getResult()); });
    // Inner ones first: what they yield is then their parents'.
    func.walk([&](Operation *op) {
      if (auto loop = dyn_cast<scf::ForOp>(op))
        own(op, loop.getInitArgsMutable(), loop.getRegionIterArgs(),
            loop.getBody()->getTerminator());
      else if (auto loop = dyn_cast<scf::WhileOp>(op)) {
        own(op, loop.getInitsMutable(), loop.getAfterArguments(),
            loop.getYieldOp());
      } else if (auto branch = dyn_cast<scf::IfOp>(op)) {
        own(branch);
      }
    });
    for (Value value : made)
      freeAfterLastUse(value);
    for (auto [branch, result, isThen] : madeBySide)
      freeAfterLastUse(branch->getResult(result), [&](OpBuilder &b) {
        Value taken = branch.getCondition();
        if (!isThen)
          taken = arith::XOrIOp::create(
              b, branch.getLoc(), taken,
              arith::ConstantIntOp::create(b, branch.getLoc(), 1, 1));
        auto free = scf::IfOp::create(b, branch.getLoc(), taken,
                                      /*withElseRegion=*/false);
        b.setInsertionPointToStart(free.thenBlock());
      });
  }

private:
  /// The values that may be the same memory as `value`, as far as its region
  /// and those in it tell. False if it leaves them other than by terminators
  /// of its own block, which go to `ends`.
  bool follow(Value value, llvm::SmallSetVector<Value, 8> &aliases,
              SmallVectorImpl<OpOperand *> &ends) {
    Block *block = value.getParentBlock();
    aliases.insert(value);
    for (unsigned i = 0; i < aliases.size(); ++i)
      for (OpOperand &use : aliases[i].getUses()) {
        Operation *user = use.getOwner();
        if (isa<ViewLikeOpInterface>(user)) {
          aliases.insert(user->result_begin(), user->result_end());
        } else if (user->hasTrait<OpTrait::IsTerminator>()) {
          if (user->getBlock() != block)
            return false;
          ends.push_back(&use);
        } else if (auto loop = dyn_cast<LoopLikeOpInterface>(user)) {
          BlockArgument argument = loop.getTiedLoopRegionIterArg(&use);
          if (argument && !converted.contains(argument))
            return false;
        }
      }
    return true;
  }

  /// `yielded` was made in the block and has no other way out of it.
  bool isFresh(OpOperand &yielded) {
    Value value = yielded.get();
    if (!owned.contains(value) ||
        value.getParentBlock() != yielded.getOwner()->getBlock())
      return false;
    llvm::SmallSetVector<Value, 8> aliases;
    SmallVector<OpOperand *> ends;
    return follow(value, aliases, ends) && ends.size() == 1;
  }

  /// The next iteration may still need `argument`.
  bool isHandedOn(BlockArgument argument) {
    llvm::SmallSetVector<Value, 8> aliases;
    SmallVector<OpOperand *> ends;
    return !follow(argument, aliases, ends) || !ends.empty();
  }

  /// Which of the values that leave a loop's condition is the one that enters
  /// it as the `i`-th, or a copy of it: canonicalization drops known ones.
  static std::optional<unsigned> findPassed(scf::WhileOp loop, unsigned i) {
    BlockArgument argument = loop.getBeforeArguments()[i];
    for (OpOperand &passed : loop.getConditionOp().getArgsMutable()) {
      Value value = passed.get();
      auto isCopy = [&](Operation *user) {
        auto copy = dyn_cast<memref::CopyOp>(user);
        return copy && copy.getTarget() == value &&
               copy.getSource() == argument;
      };
      // The condition itself is the first operand.
      if (value == argument || llvm::any_of(value.getUsers(), isCopy))
        return passed.getOperandNumber() - 1;
    }
    return std::nullopt;
  }

  /// The buffer that enters a loop's condition leaves it, and no copy of it,
  /// which bufferization makes. False if it does something else.
  static bool passOn(scf::WhileOp loop, unsigned i, unsigned place) {
    BlockArgument argument = loop.getBeforeArguments()[i];
    OpOperand &passed = loop.getConditionOp().getArgsMutable()[place];
    if (passed.get() == argument)
      return true;
    auto alloc = passed.get().getDefiningOp<memref::AllocOp>();
    if (!alloc || alloc->getBlock() != argument.getOwner() ||
        alloc.getType() != argument.getType())
      return false;
    memref::CopyOp copy;
    for (OpOperand &use : alloc->getUses()) {
      if (&use == &passed)
        continue;
      auto user = dyn_cast<memref::CopyOp>(use.getOwner());
      if (copy || !user || user.getTarget() != alloc.getResult() ||
          user.getSource() != argument)
        return false;
      copy = user;
    }
    if (!copy)
      return false;
    passed.set(argument);
    copy.erase();
    alloc.erase();
    return true;
  }

  /// The initial value is a buffer that was made for this loop.
  static bool isOnlyFor(OpOperand &init) {
    auto alloc = init.get().getDefiningOp<memref::AllocOp>();
    if (!alloc || alloc->getBlock() != init.getOwner()->getBlock())
      return false;
    return llvm::all_of(alloc->getUses(), [&](OpOperand &use) {
      if (&use == &init)
        return true;
      auto copy = dyn_cast<memref::CopyOp>(use.getOwner());
      return copy && copy.getTarget() == alloc.getResult() &&
             copy->getBlock() == alloc->getBlock() &&
             copy->isBeforeInBlock(init.getOwner());
    });
  }

  static Value copyOf(OpBuilder &b, Location loc, Value value) {
    Value copy = allocateLike(b, loc, value);
    memref::CopyOp::create(b, loc, value, copy);
    return copy;
  }

  static bool hasIdentityLayout(Value value) {
    auto type = dyn_cast<MemRefType>(value.getType());
    return type && type.getLayout().isIdentity();
  }

  void own(Operation *loop, MutableOperandRange inits,
           Block::BlockArgListType arguments, Operation *yield) {
    auto whileOp = dyn_cast<scf::WhileOp>(loop);
    for (unsigned i = 0, e = inits.size(); i < e; ++i) {
      std::optional<unsigned> place = whileOp ? findPassed(whileOp, i) : i;
      if (!place || !hasIdentityLayout(arguments[*place]))
        continue;
      BlockArgument argument = arguments[*place];
      if (yield->getOperand(i) == argument) {
        if (whileOp)
          passOn(whileOp, i, *place);
        continue;
      }
      if (!isFresh(yield->getOpOperand(i)) || isHandedOn(argument) ||
          (whileOp && !passOn(whileOp, i, *place)))
        continue;
      OpBuilder before(loop), after(yield);
      if (!isOnlyFor(inits[i]))
        inits[i].set(copyOf(before, loop->getLoc(), inits[i].get()));
      memref::DeallocOp::create(after, yield->getLoc(), argument);
      converted.insert(argument);
      if (whileOp)
        converted.insert(whileOp.getBeforeArguments()[i]);
      owned.insert(loop->getResult(*place));
      made.push_back(loop->getResult(*place));
    }
  }

  /// Nobody frees the memory of `value` before the function ends or all are
  /// done with it.
  bool isLasting(Value value) {
    while (auto view = value.getDefiningOp<ViewLikeOpInterface>())
      value = view.getViewSource();
    if (auto argument = dyn_cast<BlockArgument>(value))
      return isa<func::FuncOp>(argument.getOwner()->getParentOp());
    return isa<memref::AllocOp, memref::GetGlobalOp>(value.getDefiningOp());
  }

  /// Only readers in the branch's own block see its result.
  bool staysInBlock(Value result) {
    llvm::SmallSetVector<Value, 8> aliases;
    SmallVector<OpOperand *> ends;
    return follow(result, aliases, ends) && ends.empty();
  }

  void own(scf::IfOp branch) {
    if (branch->getNumResults() == 0)
      return;
    for (unsigned i = 0, e = branch->getNumResults(); i < e; ++i) {
      OpOperand *sides[] = {&branch.thenYield()->getOpOperand(i),
                            &branch.elseYield()->getOpOperand(i)};
      if (!hasIdentityLayout(branch->getResult(i)) ||
          !(isFresh(*sides[0]) || isFresh(*sides[1])))
        continue;
      const bool isThen = isFresh(*sides[0]);
      OpOperand &other = *sides[isThen];
      if (!isFresh(other) && isLasting(other.get()) &&
          !cast<MemRefType>(other.get().getType()).getMemorySpace() &&
          staysInBlock(branch->getResult(i))) {
        madeBySide.emplace_back(branch, i, isThen);
        continue;
      }
      for (OpOperand *side : sides)
        if (!isFresh(*side)) {
          OpBuilder b(side->getOwner());
          Value copy = copyOf(b, branch.getLoc(), side->get());
          side->set(copy);
          owned.insert(copy);
        }
      owned.insert(branch->getResult(i));
      made.push_back(branch->getResult(i));
    }
  }

  void freeAfterLastUse(
      Value value,
      llvm::function_ref<void(OpBuilder &)> before = [](auto &) {}) {
    llvm::SmallSetVector<Value, 8> aliases;
    SmallVector<OpOperand *> ends;
    if (!follow(value, aliases, ends) || !ends.empty())
      return;
    Block *block = value.getParentBlock();
    Operation *last = value.getDefiningOp();
    for (Value alias : aliases)
      for (Operation *user : alias.getUsers()) {
        Operation *here = block->findAncestorOpInBlock(*user);
        if (last->isBeforeInBlock(here))
          last = here;
      }
    OpBuilder b(value.getContext());
    b.setInsertionPointAfter(last);
    before(b);
    memref::DeallocOp::create(b, value.getLoc(), value);
  }

  DenseSet<Value> owned;     // buffers, each with one owner: its block
  DenseSet<Value> converted; // arguments of loops that own their values
  SmallVector<Value> made;   // owned results of loops and branches
  // Results of branches of which one side has made its memory, the first one
  // if true.
  SmallVector<std::tuple<scf::IfOp, unsigned, bool>> madeBySide;
};

} // namespace

void sardonyx::freeYielded(func::FuncOp func) { Ownership().run(func); }
