//===- KernelGroup.cpp - Which operations can share a kernel ----*- C++ -*-===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "KernelGroup.h"

#include "Observed.h"
#include "Utils.h"

#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

using namespace mlir;
using namespace sardonyx;

namespace {

/// What an operation is to a group.
enum class Role { Root, Elementwise, Pick, RowReduction, Other };

} // namespace

/// (d0, ..., d{n-1}, ...) -> (d0, ..., d{n-1})
static bool isPrefix(AffineMap map, unsigned count) {
  if (map.getNumResults() != count || map.getNumDims() < count)
    return false;
  for (unsigned i = 0; i < count; ++i) {
    auto dim = dyn_cast<AffineDimExpr>(map.getResult(i));
    if (!dim || dim.getPosition() != i)
      return false;
  }
  return true;
}

/// Reductions over the trailing loops, with at least one row.
static bool isRowReduction(linalg::GenericOp op) {
  unsigned loops = op.getNumLoops(), rows = op.getNumParallelLoops();
  if (rows == 0 || rows == loops || !op.hasPureTensorSemantics())
    return false;
  for (auto [i, kind] : llvm::enumerate(op.getIteratorTypesArray()))
    if ((kind == utils::IteratorType::parallel) != (i < rows))
      return false;
  for (OpOperand &operand : op->getOpOperands()) {
    AffineMap map = op.getMatchingIndexingMap(&operand);
    if (op.isDpsInit(&operand) ? !isPrefix(map, rows)
                               : !isOrderedProjection(map))
      return false;
  }
  return llvm::none_of(capturedValues(op), [](Value value) {
    return isa<ShapedType>(value.getType());
  });
}

/// An operation on elements whose body reads tensors where it wants to.
static bool picksElements(linalg::GenericOp op) {
  return op.hasPureTensorSemantics() &&
         op.getNumParallelLoops() == op.getNumLoops() &&
         llvm::all_of(op.getIndexingMapsArray(), isOrderedProjection) &&
         llvm::all_of(op.getBody()->getOperations(),
                      [](Operation &inner) { return isPure(&inner); });
}

/// Whether kernels run on a device, where starting one takes as long as much of
/// what it computes.
static bool startsSlowly(Operation *op) {
  sdx::TargetAttrInterface target = sdx::getTarget(op);
  return target && target.getMemorySpace();
}

static Role roleOf(Operation *op) {
  auto dense = dyn_cast<sdx::DenseOpInterface>(op);
  if (dense && dense.isRoot())
    return Role::Root;
  auto generic = dyn_cast<linalg::GenericOp>(op);
  if (!generic)
    return Role::Other;
  if (isRowReduction(generic))
    return Role::RowReduction;
  const bool isPick = !isElementwiseGeneric(op);
  if (isPick && !picksElements(generic))
    return Role::Other;
  for (OpOperand &init : generic.getDpsInitsMutable())
    if (!generic.getMatchingIndexingMap(&init).isIdentity() ||
        generic.payloadUsesValueFromOperand(&init))
      return Role::Other;
  return isPick ? Role::Pick : Role::Elementwise;
}

/// Calls `check(operand)` for each operand of `op` that a member of the group
/// makes; false if one fails or is an init.
static bool checkReads(linalg::GenericOp op, const DenseSet<Value> &made,
                       llvm::function_ref<bool(OpOperand *, AffineMap)> check) {
  for (OpOperand &operand : op->getOpOperands()) {
    if (!made.contains(operand.get()))
      continue;
    if (op.isDpsInit(&operand) ||
        !check(&operand, op.getMatchingIndexingMap(&operand)))
      return false;
  }
  return true;
}

/// All of one domain, each value read where it was written.
static bool isPointwise(ArrayRef<Operation *> ops, unsigned loops,
                        DenseSet<Value> made) {
  for (Operation *op : ops) {
    auto generic = cast<linalg::GenericOp>(op);
    if (generic.getNumLoops() != loops ||
        !checkReads(
            generic, made,
            [](OpOperand *, AffineMap map) { return map.isIdentity(); }) ||
        llvm::any_of(capturedValues(op),
                     [&](Value value) { return made.contains(value); }))
      return false;
    made.insert(op->result_begin(), op->result_end());
  }
  return true;
}

namespace {

/// Knows the values that span the domain of a row group, to tell whether
/// another operation's domain is the same.
class RowDomain {
public:
  RowDomain(unsigned loops) : loops(loops) {}

  bool admit(linalg::GenericOp op) {
    SmallVector<int64_t> shape = op.getStaticLoopRanges();
    bool same = values.empty() ||
                (shape == domain && !ShapedType::isDynamicShape(shape));
    SmallVector<Value> spanning(op->result_begin(), op->result_end());
    for (OpOperand *operand : op.getDpsInputOperands())
      if (op.getMatchingIndexingMap(operand).isIdentity() &&
          !op.isScalar(operand))
        spanning.push_back(operand->get());
    for (Value value : spanning)
      same |= values.contains(value);
    if (!same)
      return false;
    if (values.empty())
      domain = shape;
    for (Value value : spanning)
      if (cast<ShapedType>(value.getType()).getRank() == int64_t(loops))
        values.insert(value);
    return true;
  }

private:
  unsigned loops;
  SmallVector<int64_t> domain;
  DenseSet<Value> values;
};

} // namespace

static bool isRowGroup(ArrayRef<Operation *> ops) {
  unsigned loops = 0, rows = 0;
  for (Operation *op : ops) {
    if (roleOf(op) != Role::RowReduction)
      continue;
    auto generic = cast<linalg::GenericOp>(op);
    if (loops && (loops != generic.getNumLoops() ||
                  rows != generic.getNumParallelLoops()))
      return false;
    loops = generic.getNumLoops();
    rows = generic.getNumParallelLoops();
  }
  DenseSet<Value> full, perRow;
  RowDomain domain(loops);
  for (Operation *op : ops) {
    auto generic = cast<linalg::GenericOp>(op);
    bool isReduction = generic.getNumReductionLoops() != 0;
    bool isFull = generic.getNumLoops() == loops;
    if (!isFull && generic.getNumLoops() != rows)
      return false;
    DenseSet<Value> made = full;
    made.insert(perRow.begin(), perRow.end());
    bool readsRow = false;
    bool legal = checkReads(generic, made, [&](OpOperand *in, AffineMap map) {
      if (full.contains(in->get()))
        return isFull && map.isIdentity();
      readsRow = true;
      return isPrefix(map, rows);
    });
    if (!legal || (isFull ? !domain.admit(generic) : !readsRow))
      return false;
    auto &into = isFull && !isReduction ? full : perRow;
    into.insert(op->result_begin(), op->result_end());
  }
  return true;
}

static bool hasLongerBody(ArrayRef<Operation *> ops, size_t most) {
  size_t count = 0;
  for (Operation *op : ops)
    if (auto generic = dyn_cast<linalg::GenericOp>(op);
        generic && !isObservation(op))
      count += generic.getBody()->getOperations().size();
  return count > most;
}

static bool hasMoreOperands(ArrayRef<Operation *> ops, size_t most) {
  DenseSet<Value> made, read;
  for (Operation *op : ops) {
    if (isObservation(op))
      continue;
    for (Value operand : op->getOperands())
      if (isa<ShapedType>(operand.getType()) && !made.contains(operand) &&
          !operand.getDefiningOp<tensor::EmptyOp>())
        read.insert(operand);
    made.insert(op->result_begin(), op->result_end());
  }
  return read.size() > most;
}

std::optional<GroupKind>
sardonyx::classifyGroup(ArrayRef<Operation *> ops,
                        const sdx::FusionLimits &limits) {
  const size_t count =
      llvm::count_if(ops, [](Operation *op) { return !isObservation(op); });
  if (count > limits.operations ||
      (ops.size() > 1 && (hasMoreOperands(ops, limits.operands) ||
                          hasLongerBody(ops, limits.bodyOperations))))
    return std::nullopt;
  unsigned roots = 0, reductions = 0, picks = 0;
  for (Operation *op : ops) {
    switch (roleOf(op)) {
    case Role::Root:
      ++roots;
      break;
    case Role::RowReduction:
      ++reductions;
      break;
    case Role::Elementwise:
      break;
    case Role::Pick:
      ++picks;
      if (ops.size() > 1 && startsSlowly(op))
        break;
      [[fallthrough]];
    case Role::Other:
      if (ops.size() == 1)
        return GroupKind::Single;
      return std::nullopt;
    }
  }
  if (picks && (roots || reductions))
    return std::nullopt;
  if (roots) {
    Operation *root = ops.front();
    if (roots > 1 || reductions || roleOf(root) != Role::Root)
      return std::nullopt;
    DenseSet<Value> made = {root->getResult(0)};
    unsigned rank =
        cast<RankedTensorType>(root->getResult(0).getType()).getRank();
    ArrayRef<Operation *> epilogue = ops.drop_front();
    for (Operation *op : epilogue)
      if (cast<linalg::GenericOp>(op).hasIndexSemantics())
        return std::nullopt;
    if (!isPointwise(epilogue, rank, made))
      return std::nullopt;
    return GroupKind::Product;
  }
  if (reductions) {
    // How rows are computed hangs on all that is.
    if (count != ops.size() || !isRowGroup(ops))
      return std::nullopt;
    return GroupKind::Rows;
  }
  unsigned loops = cast<linalg::GenericOp>(ops.front()).getNumLoops();
  if (!isPointwise(ops, loops, {}))
    return std::nullopt;
  return GroupKind::Elementwise;
}
