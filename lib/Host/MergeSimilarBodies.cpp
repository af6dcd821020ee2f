//===- MergeSimilarBodies.cpp - Loops that differ in sizes only -----------===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A network has the same layer many times, with other numbers of channels or
// windows. The loops of such layers are the same instructions but for integers:
// bounds, and strides outside of the innermost loops. One function that takes
// these integers serves all, and LLVM compiles one.
//
//===----------------------------------------------------------------------===//

#include "HostLowering.h"
#include "sardonyx/Host/Passes.h"

#include "mlir/Analysis/CFGLoopInfo.h"
#include "mlir/IR/Matchers.h"
#include "mlir/IR/SymbolTable.h"
#include "llvm/ADT/MapVector.h"

namespace sardonyx {
#define GEN_PASS_DEF_SDXMERGESIMILARBODIES
#include "sardonyx/Host/Passes.h.inc"
} // namespace sardonyx

using namespace mlir;
using namespace sardonyx;

namespace {

/// The most integers that a merged function takes.
constexpr size_t kMaxParameters = 16;
/// What a division by an integer that is not known takes, in operations that
/// are as fast as with a constant or nearly so.
constexpr unsigned kDivision = 20;
/// Each operation of so many of an innermost loop may be a slower one.
constexpr unsigned kShareOfLoop = 10;

/// A place of a function that holds an integer: an operand of the `op`-th
/// operation, or the offset of an address (operand -1).
struct Place {
  unsigned op;
  int operand;
  bool operator<(const Place &other) const {
    return std::tie(op, operand) < std::tie(other.op, other.operand);
  }
};

using Integers = std::map<Place, int64_t>;

bool isConstant(Operation *op) {
  return isa<LLVM::ConstantOp, LLVM::ZeroOp, LLVM::PoisonOp, LLVM::UndefOp,
             LLVM::AddressOfOp>(op);
}

std::optional<int64_t> getInteger(Value value) {
  IntegerAttr attr;
  if (value.getType().isInteger(64) && matchPattern(value, m_Constant(&attr)))
    return attr.getInt();
  return std::nullopt;
}

/// The constant by which an address is moved, where that is all that moves it.
std::optional<int64_t> getOffset(Operation *op) {
  auto gep = dyn_cast<LLVM::GEPOp>(op);
  if (!gep || gep.getRawConstantIndices().size() != 1 ||
      gep.getRawConstantIndices()[0] == LLVM::GEPOp::kDynamicIndex)
    return std::nullopt;
  return gep.getRawConstantIndices()[0];
}

/// A function's operations in order, but for constants: these are looked at
/// where they are used.
SmallVector<Operation *> listOps(LLVM::LLVMFuncOp func) {
  SmallVector<Operation *> ops;
  for (Block &block : func.getBody())
    for (Operation &op : block)
      if (!isConstant(&op))
        ops.push_back(&op);
  return ops;
}

bool haveEqualAttributes(Operation *a, Operation *b, StringRef except) {
  NamedAttrList x(a->getAttrDictionary()), y(b->getAttrDictionary());
  if (!except.empty()) {
    x.erase(except);
    y.erase(except);
  }
  return x == y;
}

/// A function, and those that are like it but for integers.
class Similar {
public:
  explicit Similar(LLVM::LLVMFuncOp func)
      : members({func}), ops(listOps(func)) {
    findChanging();
  }

  /// Whether `func` may share the code; if so, it is a member from then on.
  bool add(LLVM::LLVMFuncOp func) {
    Integers different;
    if (!compare(func, different))
      return false;
    // The first function's integer, and those of the others.
    std::map<Place, SmallVector<int64_t>> all = integers;
    for (auto [place, value] : different)
      if (!all.count(place))
        all[place].assign(members.size(), getFirst(place));
    for (auto &[place, values] : all) {
      auto it = different.find(place);
      values.push_back(it == different.end() ? values.front() : it->second);
    }
    if (countParameters(all) > kMaxParameters || !mayVary(all))
      return false;
    integers = std::move(all);
    members.push_back(func);
    return true;
  }

  ArrayRef<LLVM::LLVMFuncOp> getMembers() const { return members; }

  /// Makes the first function take what the members differ in, after its other
  /// arguments. Gives the arguments' values, of each for all members.
  SmallVector<SmallVector<int64_t>> parameterize() {
    std::map<SmallVector<int64_t>, Value> arguments;
    SmallVector<SmallVector<int64_t>> parameters;
    Block &entry = members.front().getBody().front();
    Type i64 = IntegerType::get(members.front().getContext(), 64);
    for (auto &[place, values] : integers) {
      Value &argument = arguments[values];
      if (!argument) {
        argument = entry.addArgument(i64, members.front().getLoc());
        parameters.push_back(values);
      }
      Operation *op = ops[place.op];
      if (place.operand >= 0) {
        op->setOperand(place.operand, argument);
        continue;
      }
      auto gep = cast<LLVM::GEPOp>(op);
      gep.setRawConstantIndices({LLVM::GEPOp::kDynamicIndex});
      gep.getDynamicIndicesMutable().append(argument);
    }
    return parameters;
  }

private:
  int64_t getFirst(Place place) const {
    Operation *op = ops[place.op];
    return place.operand < 0 ? *getOffset(op)
                             : *getInteger(op->getOperand(place.operand));
  }

  static size_t
  countParameters(const std::map<Place, SmallVector<int64_t>> &all) {
    std::set<SmallVector<int64_t>> distinct;
    for (auto &[place, values] : all)
      distinct.insert(values);
    return distinct.size();
  }

  /// Finds what each step of an innermost loop computes anew. Where an operand
  /// stands further down in the list of blocks, it counts as changing.
  void findChanging() {
    Region &region = members.front().getBody();
    if (region.hasOneBlock())
      return;
    DominanceInfo dominance(members.front());
    CFGLoopInfo loops(dominance.getDomTree(&region));
    llvm::SmallPtrSet<Operation *, 32> still;
    for (Block &block : region) {
      CFGLoop *loop = loops.getLoopFor(&block);
      if (!loop || !loop->getSubLoops().empty())
        continue;
      for (Operation &op : block) {
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

  /// Whether the integers at these places may come from registers: outside of
  /// the innermost loops, where these leave the result alone, and as the bound
  /// of one at no cost, elsewhere at a small one.
  bool mayVary(const std::map<Place, SmallVector<int64_t>> &places) const {
    DenseMap<Block *, unsigned> costs;
    for (auto &[place, values] : places) {
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
      costs[it->second] +=
          isa<LLVM::UDivOp, LLVM::SDivOp, LLVM::URemOp, LLVM::SRemOp>(op)
              ? kDivision
              : 1;
    }
    return llvm::all_of(costs, [&](auto &cost) {
      return cost.second <=
             std::max(1u, lengths.lookup(cost.first) / kShareOfLoop);
    });
  }

  /// Whether `func` has the same operations on the same values; collects its
  /// integers where the first function has others.
  bool compare(LLVM::LLVMFuncOp func, Integers &different) const {
    LLVM::LLVMFuncOp first = members.front();
    SmallVector<Operation *> others = listOps(func);
    if (others.size() != ops.size() ||
        first.getFunctionType() != func.getFunctionType() ||
        !haveEqualAttributes(first, func, first.getSymNameAttrName()))
      return false;
    DenseMap<Block *, Block *> blocks;
    DenseMap<Value, Value> values;
    if (first.getBody().getBlocks().size() != func.getBody().getBlocks().size())
      return false;
    for (auto [a, b] : llvm::zip(first.getBody(), func.getBody())) {
      if (a.getArgumentTypes() != b.getArgumentTypes())
        return false;
      blocks[&a] = &b;
      for (auto [x, y] : llvm::zip(a.getArguments(), b.getArguments()))
        values[x] = y;
    }
    // A block may read what a later one in the list makes.
    for (auto [a, b] : llvm::zip(ops, others)) {
      if (a->getName() != b->getName() ||
          a->getResultTypes() != b->getResultTypes() ||
          blocks.lookup(a->getBlock()) != b->getBlock())
        return false;
      for (auto [x, y] : llvm::zip(a->getResults(), b->getResults()))
        values[x] = y;
    }
    for (unsigned i = 0, e = ops.size(); i < e; ++i)
      if (!compare(i, others[i], blocks, values, different))
        return false;
    return true;
  }

  bool compare(unsigned number, Operation *other,
               const DenseMap<Block *, Block *> &blocks,
               const DenseMap<Value, Value> &values,
               Integers &different) const {
    Operation *op = ops[number];
    if (op->getNumOperands() != other->getNumOperands() ||
        op->getNumRegions() != 0 ||
        op->getNumSuccessors() != other->getNumSuccessors())
      return false;
    for (auto [x, y] : llvm::zip(op->getSuccessors(), other->getSuccessors()))
      if (blocks.lookup(x) != y)
        return false;
    auto offset = getOffset(op), otherOffset = getOffset(other);
    bool moves = offset && otherOffset && *offset != *otherOffset;
    if (moves)
      different[{number, -1}] = *otherOffset;
    if (!haveEqualAttributes(op, other, moves ? "rawConstantIndices" : ""))
      return false;
    for (unsigned i = 0, e = op->getNumOperands(); i < e; ++i) {
      Value x = op->getOperand(i), y = other->getOperand(i);
      auto p = getInteger(x), q = getInteger(y);
      if (p && q) {
        if (*p != *q)
          different[{number, static_cast<int>(i)}] = *q;
        continue;
      }
      Operation *xOp = x.getDefiningOp(), *yOp = y.getDefiningOp();
      if (xOp && yOp && isConstant(xOp) && isConstant(yOp)) {
        if (x.getType() != y.getType() || xOp->getName() != yOp->getName() ||
            !haveEqualAttributes(xOp, yOp, ""))
          return false;
        continue;
      }
      if (values.lookup(x) != y)
        return false;
    }
    return true;
  }

  SmallVector<LLVM::LLVMFuncOp> members;
  SmallVector<Operation *> ops;
  /// The head of the innermost loop that computes an operation in each step,
  /// and how many operations it has of these.
  DenseMap<Operation *, Block *> changing;
  DenseMap<Block *, unsigned> lengths;
  /// For each place that differs, the integer of each member.
  std::map<Place, SmallVector<int64_t>> integers;
};

struct MergeSimilarBodiesPass
    : sardonyx::impl::SDXMergeSimilarBodiesBase<MergeSimilarBodiesPass> {
  void runOnOperation() override {
    SymbolTable symbols(getOperation());
    // The body of each parallel loop; its starter declares what it takes.
    llvm::MapVector<size_t, SmallVector<Similar, 1>> similar;
    for (auto starter : getOperation().getOps<LLVM::LLVMFuncOp>()) {
      StringRef name = starter.getName();
      if (!name.consume_front(kStarterPrefix))
        continue;
      auto body = symbols.lookup<LLVM::LLVMFuncOp>(name);
      if (!body || body.isExternal())
        continue;
      auto &candidates = similar[hash(body)];
      if (llvm::none_of(candidates,
                        [&](Similar &one) { return one.add(body); }))
        candidates.emplace_back(body);
    }
    llvm::StringMap<Starter> starters;
    SmallVector<LLVM::LLVMFuncOp> merged;
    for (auto &[key, candidates] : similar)
      for (Similar &one : candidates)
        if (one.getMembers().size() > 1)
          merge(symbols, one, starters, merged);
    getOperation().walk([&](LLVM::CallOp call) {
      if (auto callee = call.getCallee())
        if (auto it = starters.find(*callee); it != starters.end())
          callShared(call, it->second);
    });
    for (LLVM::LLVMFuncOp func : merged)
      symbols.erase(func);
  }

private:
  /// What to call in the place of a starter, and what to give it beside.
  struct Starter {
    LLVM::LLVMFuncOp func;
    SmallVector<int64_t> integers;
  };

  static LLVM::LLVMFuncOp getStarter(SymbolTable &symbols,
                                     LLVM::LLVMFuncOp body) {
    return symbols.lookup<LLVM::LLVMFuncOp>(
        (kStarterPrefix + body.getName()).str());
  }

  static size_t hash(LLVM::LLVMFuncOp func) {
    llvm::hash_code hash = hash_value(Type(func.getFunctionType()));
    for (Operation *op : listOps(func))
      hash = llvm::hash_combine(hash, op->getName().getAsOpaquePointer(),
                                op->getNumOperands(), op->getNumSuccessors());
    return hash;
  }

  static void merge(SymbolTable &symbols, Similar &similar,
                    llvm::StringMap<Starter> &starters,
                    SmallVector<LLVM::LLVMFuncOp> &merged) {
    SmallVector<SmallVector<int64_t>> parameters = similar.parameterize();
    LLVM::LLVMFuncOp body = similar.getMembers().front();
    LLVM::LLVMFuncOp starter = getStarter(symbols, body);
    auto type = LLVM::LLVMFunctionType::get(
        body.getFunctionType().getReturnType(),
        llvm::to_vector(body.getBody().getArgumentTypes()));
    body.setFunctionType(type);
    starter.setFunctionType(type);
    for (auto [i, member] : llvm::enumerate(similar.getMembers())) {
      LLVM::LLVMFuncOp old = getStarter(symbols, member);
      Starter &entry = starters[old.getName()];
      entry.func = starter;
      for (ArrayRef<int64_t> values : parameters)
        entry.integers.push_back(values[i]);
      if (i > 0)
        llvm::append_values(merged, member, old);
    }
  }

  static void callShared(LLVM::CallOp call, const Starter &starter) {
    OpBuilder b(call);
    SmallVector<Value> operands(call.getArgOperands());
    for (int64_t value : starter.integers)
      operands.push_back(
          LLVM::ConstantOp::create(b, call.getLoc(), b.getI64Type(), value));
    LLVM::CallOp::create(b, call.getLoc(), starter.func, operands);
    call.erase();
  }
};

} // namespace
