//===- SimilarCode.cpp - Code that differs in integers only ---------------===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "SimilarCode.h"

#include "mlir/IR/Matchers.h"
#include "llvm/ADT/SetVector.h"
#include <set>

using namespace mlir;
using namespace sardonyx;

/// The most integers that shared code takes.
static constexpr size_t kMaxParameters = 40;
/// The most operations that are computed anew before a loop.
static constexpr size_t kMaxPrologue = 96;
/// What a division by an integer that is not known takes, in operations that
/// are as fast as with a constant or nearly so.
static constexpr unsigned kDivision = 20;
/// Each operation of so many of an innermost loop may be a slower one.
static constexpr unsigned kShareOfLoop = 10;

bool sardonyx::isConstant(Operation *op) {
  return isa<LLVM::ConstantOp, LLVM::ZeroOp, LLVM::PoisonOp, LLVM::UndefOp,
             LLVM::AddressOfOp>(op);
}

static bool isDivision(Operation *op) {
  return isa<LLVM::UDivOp, LLVM::SDivOp, LLVM::URemOp, LLVM::SRemOp>(op);
}

/// What an operation takes more where an integer of it is not known.
static unsigned getCost(Operation *op) {
  if (isDivision(op))
    return kDivision;
  // A register takes the place of what is written in the instruction.
  return isa<LLVM::AddOp, LLVM::SubOp, LLVM::SelectOp>(op) ? 0 : 1;
}

static std::optional<int64_t> getInteger(Value value) {
  IntegerAttr attr;
  if (value.getType().isInteger(64) && matchPattern(value, m_Constant(&attr)))
    return attr.getInt();
  return std::nullopt;
}

/// The constant by which an address is moved, where that is all that moves it.
static std::optional<int64_t> getOffset(Operation *op) {
  auto gep = dyn_cast<LLVM::GEPOp>(op);
  if (!gep || gep.getRawConstantIndices().size() != 1 ||
      gep.getRawConstantIndices()[0] == LLVM::GEPOp::kDynamicIndex)
    return std::nullopt;
  return gep.getRawConstantIndices()[0];
}

/// Whether two operations of one name do the same on the same operands.
static bool haveEqualAttributes(Operation *a, Operation *b) {
  return a->getDiscardableAttrDictionary() ==
             b->getDiscardableAttrDictionary() &&
         a->getName().compareOpProperties(a->getPropertiesStorage(),
                                          b->getPropertiesStorage());
}

static bool haveEqualAttributes(Operation *a, Operation *b,
                                ArrayRef<StringRef> except) {
  NamedAttrList x(a->getAttrDictionary()), y(b->getAttrDictionary());
  for (StringRef name : except) {
    x.erase(name);
    y.erase(name);
  }
  return x == y;
}

//===----------------------------------------------------------------------===//
// Code
//===----------------------------------------------------------------------===//

Code Code::ofFunction(LLVM::LLVMFuncOp func) {
  Code code;
  code.func = func;
  for (Block &block : func.getBody())
    code.blocks.push_back(&block);
  llvm::append_range(code.inputs, func.getArguments());
  code.listOps();
  return code;
}

namespace {

/// Collects what a loop reads from elsewhere.
class Reads {
public:
  explicit Reads(Code &code) : code(code) {
    llvm::SmallPtrSet<Block *, 16> inside(code.blocks.begin(),
                                          code.blocks.end());
    for (Value value : code.initial)
      visit(value);
    for (Block *block : code.blocks)
      for (Operation &op : *block)
        for (Value operand : op.getOperands())
          if (!inside.contains(operand.getParentBlock()))
            visit(operand);
  }

private:
  void visit(Value value) {
    Operation *op = value.getDefiningOp();
    if (op && isConstant(op))
      return;
    if (!seen.insert(value).second)
      return;
    if (!op || op->getNumRegions() != 0 || op->getNumResults() != 1 ||
        !isMemoryEffectFree(op) || isDivision(op) ||
        code.prologue.size() >= kMaxPrologue) {
      code.inputs.push_back(value);
      return;
    }
    for (Value operand : op->getOperands())
      visit(operand);
    code.prologue.push_back(op);
  }

  Code &code;
  llvm::DenseSet<Value> seen;
};

} // namespace

std::optional<Code> Code::ofLoop(LLVM::LLVMFuncOp func, const CFGLoop &loop) {
  Code code;
  code.func = func;
  Block *head = loop.getHeader();
  code.blocks.push_back(head);
  for (Block &block : func.getBody())
    if (&block != head && loop.contains(&block))
      code.blocks.push_back(&block);

  for (BlockOperand &use : head->getUses()) {
    if (loop.contains(use.getOwner()->getBlock()))
      continue;
    if (code.entry)
      return std::nullopt;
    code.entry = &use;
  }
  if (!code.entry)
    return std::nullopt;
  auto branch = dyn_cast<BranchOpInterface>(code.entry->getOwner());
  if (!branch)
    return std::nullopt;
  SuccessorOperands initial =
      branch.getSuccessorOperands(code.entry->getOperandNumber());
  if (initial.getProducedOperandCount() != 0)
    return std::nullopt;
  llvm::append_range(code.initial, initial.getForwardedOperands());

  for (Block *block : code.blocks) {
    for (Operation &op : *block) {
      if (isa<LLVM::AllocaOp, LLVM::StackSaveOp, LLVM::InvokeOp>(op) ||
          op.getNumRegions() != 0)
        return std::nullopt;
      for (Value result : op.getResults())
        for (Operation *user : result.getUsers())
          if (!loop.contains(user->getBlock()))
            return std::nullopt;
    }
    for (BlockArgument argument : block->getArguments())
      for (Operation *user : argument.getUsers())
        if (!loop.contains(user->getBlock()))
          return std::nullopt;
    for (Block *next : block->getSuccessors()) {
      if (loop.contains(next))
        continue;
      if (code.exit || next->getNumArguments() != 0)
        return std::nullopt;
      code.exit = next;
    }
  }
  if (!code.exit)
    return std::nullopt;
  Reads collect(code);
  code.listOps();
  return code;
}

void Code::listOps() {
  ops = prologue;
  for (Block *block : blocks)
    for (Operation &op : *block)
      if (!isConstant(&op))
        ops.push_back(&op);
}

//===----------------------------------------------------------------------===//
// What is alike
//===----------------------------------------------------------------------===//

size_t SimilarCode::hash(const Code &code) {
  llvm::hash_code hash = llvm::hash_combine(
      code.blocks.size(), code.inputs.size(), code.prologue.size());
  for (Value input : code.inputs)
    hash = llvm::hash_combine(hash, input.getType());
  for (Operation *op : code.ops)
    hash = llvm::hash_combine(hash, op->getName().getAsOpaquePointer(),
                              op->getNumOperands(), op->getNumSuccessors());
  return hash;
}

bool SimilarCode::add(const Code &code) {
  Integers different;
  if (!compare(code, different))
    return false;
  Differences all = integers;
  for (auto [place, value] : different)
    if (!all.count(place))
      all[place].assign(members.size(), getFirst(place));
  for (auto &[place, values] : all) {
    auto it = different.find(place);
    values.push_back(it == different.end() ? values.front() : it->second);
  }
  if (listParameters(all).size() > kMaxParameters || !mayVary(all))
    return false;
  integers = std::move(all);
  members.push_back(code);
  return true;
}

int64_t SimilarCode::getFirst(Place place) const {
  ArrayRef<Operation *> ops = getOps();
  if (place.op == ops.size())
    return *getInteger(members.front().initial[place.operand]);
  Operation *op = ops[place.op];
  return place.operand < 0 ? *getOffset(op)
                           : *getInteger(op->getOperand(place.operand));
}

SmallVector<SmallVector<int64_t>>
SimilarCode::listParameters(const Differences &all) {
  SmallVector<SmallVector<int64_t>> parameters;
  std::set<SmallVector<int64_t>> known;
  for (auto &[place, values] : all)
    if (known.insert(values).second)
      parameters.push_back(values);
  return parameters;
}

void SimilarCode::replaceIntegers(ArrayRef<Operation *> ops, Operation *start,
                                  ArrayRef<Value> arguments) const {
  std::map<SmallVector<int64_t>, Value> byValues;
  for (auto [values, argument] : llvm::zip_equal(getParameters(), arguments))
    byValues[values] = argument;
  for (auto &[place, values] : integers) {
    Value argument = byValues[values];
    if (place.op == ops.size()) {
      start->setOperand(place.operand, argument);
    } else if (place.operand >= 0) {
      ops[place.op]->setOperand(place.operand, argument);
    } else {
      auto gep = cast<LLVM::GEPOp>(ops[place.op]);
      gep.setRawConstantIndices({LLVM::GEPOp::kDynamicIndex});
      gep.getDynamicIndicesMutable().append(argument);
    }
  }
}

/// Finds what each step of an innermost loop computes anew. Where an operand
/// stands further down in the list of blocks, it counts as changing.
void SimilarCode::findChanging() {
  knowsChanging = true;
  LLVM::LLVMFuncOp func = members.front().func;
  Region &region = func.getBody();
  if (region.hasOneBlock())
    return;
  DominanceInfo dominance(func);
  CFGLoopInfo loops(dominance.getDomTree(&region));
  llvm::SmallPtrSet<Operation *, 32> still;
  for (Block *block : members.front().blocks) {
    CFGLoop *loop = loops.getLoopFor(block);
    if (!loop || !loop->getSubLoops().empty())
      continue;
    for (Operation &op : *block) {
      bool isStill = isMemoryEffectFree(&op) &&
                     llvm::all_of(op.getOperands(), [&](Value operand) {
                       return !loop->contains(operand.getParentBlock()) ||
                              (operand.getDefiningOp() &&
                               still.contains(operand.getDefiningOp()));
                     });
      if (isStill) {
        still.insert(&op);
        continue;
      }
      changing[&op] = loop->getHeader();
      ++lengths[loop->getHeader()];
    }
  }
}

/// Whether the integers at these places may come from registers: outside of the
/// innermost loops, where these leave the result alone, and as the bound of one
/// at no cost, elsewhere at a small one.
bool SimilarCode::mayVary(const Differences &places) {
  if (!places.empty() && !knowsChanging)
    findChanging();
  ArrayRef<Operation *> ops = getOps();
  DenseMap<Block *, unsigned> costs;
  for (auto &[place, values] : places) {
    if (place.op == ops.size())
      continue;
    Operation *op = ops[place.op];
    // Memory of a size that is not known lies in no fixed place of the stack.
    if (isa<LLVM::AllocaOp>(op))
      return false;
    auto it = changing.find(op);
    if (it == changing.end() || isa<LLVM::ICmpOp>(op))
      continue;
    // What a loop's counter grows by tells LLVM which addresses follow.
    if (llvm::any_of(op->getUsers(), llvm::IsaPred<BranchOpInterface>))
      return false;
    costs[it->second] += getCost(op);
  }
  return llvm::all_of(costs, [&](auto &cost) {
    return cost.second <=
           std::max(1u, lengths.lookup(cost.first) / kShareOfLoop);
  });
}

/// What of the first member stands for what of another.
struct SimilarCode::Pairs {
  DenseMap<Block *, Block *> blocks;
  DenseMap<Value, Value> values;
};

/// Whether `code` has the same operations on the same values; collects its
/// integers where the first member has others.
bool SimilarCode::compare(const Code &code, Integers &different) const {
  const Code &first = members.front();
  ArrayRef<Operation *> ops = first.ops, others = code.ops;
  LLVM::LLVMFuncOp func = first.func, other = code.func;
  const bool areLoops = first.entry && code.entry;
  SmallVector<StringRef> except{func.getSymNameAttrName()};
  if (areLoops) // They become functions of other types.
    llvm::append_values(except, func.getFunctionTypeAttrName().strref(),
                        func.getArgAttrsAttrName().strref());
  if (others.size() != ops.size() || !first.entry != !code.entry ||
      first.blocks.size() != code.blocks.size() ||
      first.prologue.size() != code.prologue.size() ||
      TypeRange(ValueRange(first.inputs)) !=
          TypeRange(ValueRange(code.inputs)) ||
      TypeRange(ValueRange(first.initial)) !=
          TypeRange(ValueRange(code.initial)) ||
      !haveEqualAttributes(func, other, except))
    return false;
  Pairs pairs;
  for (auto [x, y] : llvm::zip(first.inputs, code.inputs))
    pairs.values[x] = y;
  for (auto [a, b] : llvm::zip(first.blocks, code.blocks)) {
    if (a->getArgumentTypes() != b->getArgumentTypes())
      return false;
    pairs.blocks[a] = b;
    for (auto [x, y] : llvm::zip(a->getArguments(), b->getArguments()))
      pairs.values[x] = y;
  }
  if (areLoops)
    pairs.blocks[first.exit] = code.exit;
  // A block may read what a later one in the list makes.
  for (auto [number, a, b] : llvm::enumerate(ops, others)) {
    if (a->getName() != b->getName() ||
        a->getResultTypes() != b->getResultTypes() ||
        (number >= first.prologue.size() &&
         pairs.blocks.lookup(a->getBlock()) != b->getBlock()))
      return false;
    for (auto [x, y] : llvm::zip(a->getResults(), b->getResults()))
      pairs.values[x] = y;
  }
  for (unsigned i = 0, e = ops.size(); i < e; ++i)
    if (!compareOp(i, others[i], pairs, different))
      return false;
  return compareOperands(ops.size(), first.initial, code.initial, pairs,
                         different);
}

bool SimilarCode::compareOp(unsigned number, Operation *other,
                            const Pairs &pairs, Integers &different) const {
  Operation *op = getOps()[number];
  if (op->getNumOperands() != other->getNumOperands() ||
      op->getNumRegions() != 0 ||
      op->getNumSuccessors() != other->getNumSuccessors())
    return false;
  for (auto [x, y] : llvm::zip(op->getSuccessors(), other->getSuccessors()))
    if (pairs.blocks.lookup(x) != y)
      return false;
  auto offset = getOffset(op), otherOffset = getOffset(other);
  bool moves = offset && otherOffset && *offset != *otherOffset;
  if (moves)
    different[{number, -1}] = *otherOffset;
  bool areEqual = moves ? haveEqualAttributes(op, other, {"rawConstantIndices"})
                        : haveEqualAttributes(op, other);
  return areEqual && compareOperands(number, op->getOperands(),
                                     other->getOperands(), pairs, different);
}

bool SimilarCode::compareOperands(unsigned number, ValueRange operands,
                                  ValueRange others, const Pairs &pairs,
                                  Integers &different) {
  for (auto [i, x, y] : llvm::enumerate(operands, others)) {
    auto p = getInteger(x), q = getInteger(y);
    if (p && q) {
      if (*p != *q)
        different[{number, static_cast<int>(i)}] = *q;
      continue;
    }
    Operation *xOp = x.getDefiningOp(), *yOp = y.getDefiningOp();
    if (xOp && yOp && isConstant(xOp) && isConstant(yOp)) {
      if (x.getType() != y.getType() || xOp->getName() != yOp->getName() ||
          !haveEqualAttributes(xOp, yOp))
        return false;
      continue;
    }
    if (pairs.values.lookup(x) != y)
      return false;
  }
  return true;
}
