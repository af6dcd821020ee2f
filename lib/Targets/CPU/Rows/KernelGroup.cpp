//===- KernelGroup.cpp - The group of a kernel on tensors -----------------===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Finds the common iteration space of a kernel's operations: two loops are one
// dimension when they index the same dimension of a tensor between them.
//
//===----------------------------------------------------------------------===//

#include "Loops/TileProducts.h"
#include "Rows/ReductionGroup.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Bufferization/IR/Bufferization.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

using namespace mlir;
using namespace sardonyx;
using namespace sardonyx::cpu;

namespace {

/// What a tensor value of the kernel stands for.
struct Source {
  enum Kind { Leaf, Fill, Empty, Result };
  Kind kind = Empty;
  /// Leaf: the memref. Fill: the scalar.
  Value value;
  /// Result: of which stage.
  unsigned stage = 0, result = 0;
  /// Result: for each dimension of the value that of the stage's result, or
  /// -1 for one of size 1 that a reshape has added.
  SmallVector<int64_t> dims;
};

class KernelGroupBuilder {
public:
  KernelGroupBuilder(OpBuilder &b, func::FuncOp kernel, std::string &reason)
      : b(b), kernel(kernel), reason(reason),
        group{kernel.getLoc(), {}, {}, {}} {}

  FailureOr<ReductionGroup> run();

private:
  LogicalResult fail(const Twine &text) {
    reason = text.str();
    return failure();
  }

  LogicalResult scan();
  FailureOr<Source> resolve(Value value);
  FailureOr<Source> resolveReshape(Operation *op, Value from,
                                   ArrayRef<ReassociationIndices> groups,
                                   bool expands);
  LogicalResult addStage(linalg::LinalgOp op);
  LogicalResult addStore(bufferization::MaterializeInDestinationOp op);

  unsigned node(unsigned stage, unsigned loop) {
    return firstNode[stage] + loop;
  }
  unsigned find(unsigned node);
  bool unite(unsigned a, unsigned b);
  LogicalResult unify();
  LogicalResult numberDims();
  LogicalResult check();
  AffineMap translate(AffineMap map, unsigned stage);
  LogicalResult computeSizes();

  struct Use {
    unsigned stage, arg;
    Source source;
    AffineMap map;
  };
  struct Store {
    unsigned stage, result;
    Value memref;
  };

  OpBuilder &b;
  func::FuncOp kernel;
  std::string &reason;
  ReductionGroup group;
  SmallVector<linalg::LinalgOp> ops;
  llvm::DenseMap<Operation *, unsigned> stageOf;
  llvm::DenseMap<Value, Source> sources;
  SmallVector<Use> uses;
  SmallVector<Store> stores;
  SmallVector<unsigned> firstNode, parent;
  SmallVector<llvm::SmallBitVector> members;
  SmallVector<int64_t> dimOf, sizeOf;
};

//===----------------------------------------------------------------------===//
// Values
//===----------------------------------------------------------------------===//

FailureOr<Source>
KernelGroupBuilder::resolveReshape(Operation *op, Value from,
                                   ArrayRef<ReassociationIndices> groups,
                                   bool expands) {
  FailureOr<Source> source = resolve(from);
  if (failed(source) || source->kind == Source::Fill ||
      source->kind == Source::Empty)
    return source;
  auto type = cast<RankedTensorType>(op->getResult(0).getType());
  if (source->kind == Source::Leaf) {
    auto memref = MemRefType::get(type.getShape(), type.getElementType());
    if (auto expand = dyn_cast<tensor::ExpandShapeOp>(op))
      source->value =
          memref::ExpandShapeOp::create(b, op->getLoc(), memref, source->value,
                                        groups, expand.getMixedOutputShape());
    else
      source->value = memref::CollapseShapeOp::create(b, op->getLoc(),
                                                      source->value, groups);
    return source;
  }
  // Between stages only dimensions of size 1 may come and go.
  auto fromType = cast<RankedTensorType>(from.getType());
  ArrayRef<int64_t> wide = expands ? type.getShape() : fromType.getShape();
  SmallVector<int64_t> dims(type.getRank(), -1);
  for (auto [i, indices] : llvm::enumerate(groups)) {
    int64_t kept = -1;
    for (int64_t d : indices) {
      if (wide[d] == 1)
        continue;
      if (kept >= 0)
        return fail("a reshape between operations");
      kept = d;
    }
    if (kept < 0)
      continue;
    if (expands)
      dims[kept] = source->dims[i];
    else
      dims[i] = source->dims[kept];
  }
  source->dims = dims;
  return source;
}

FailureOr<Source> KernelGroupBuilder::resolve(Value value) {
  auto known = sources.find(value);
  if (known != sources.end())
    return known->second;
  Operation *op = value.getDefiningOp();
  if (!op)
    return fail("a tensor argument");
  FailureOr<Source> source = Source();
  DenseElementsAttr constant;
  if (auto toTensor = dyn_cast<bufferization::ToTensorOp>(op)) {
    source->kind = Source::Leaf;
    source->value = toTensor.getBuffer();
    auto type = dyn_cast<MemRefType>(source->value.getType());
    if (!type || !type.getLayout().isIdentity())
      return fail("a buffer with a layout");
  } else if (auto castOp = dyn_cast<tensor::CastOp>(op)) {
    source = resolve(castOp.getSource());
  } else if (auto expand = dyn_cast<tensor::ExpandShapeOp>(op)) {
    source = resolveReshape(op, expand.getSrc(),
                            expand.getReassociationIndices(), true);
  } else if (auto collapse = dyn_cast<tensor::CollapseShapeOp>(op)) {
    source = resolveReshape(op, collapse.getSrc(),
                            collapse.getReassociationIndices(), false);
  } else if (isa<tensor::EmptyOp>(op)) {
    source->kind = Source::Empty;
  } else if (matchPattern(value, m_Constant(&constant)) && constant.isSplat()) {
    source->kind = Source::Fill;
    source->value = arith::ConstantOp::create(
        b, op->getLoc(), constant.getSplatValue<TypedAttr>());
  } else if (auto it = stageOf.find(op); it != stageOf.end()) {
    source->kind = Source::Result;
    source->stage = it->second;
    source->result = cast<OpResult>(value).getResultNumber();
    source->dims = llvm::to_vector(llvm::seq<int64_t>(
        0, cast<RankedTensorType>(value.getType()).getRank()));
  } else if (auto fill = dyn_cast<linalg::FillOp>(op)) {
    source->kind = Source::Fill;
    source->value = fill.getInputs()[0];
  } else {
    return fail("operation '" + op->getName().getStringRef() + "'");
  }
  if (succeeded(source))
    sources[value] = *source;
  return source;
}

/// Whether `value`, or a reshape of it, is written to memory.
bool isStored(Value value) {
  return llvm::any_of(value.getUsers(), [](Operation *user) {
    return isa<bufferization::MaterializeInDestinationOp>(user) ||
           (isa<tensor::ExpandShapeOp, tensor::CollapseShapeOp, tensor::CastOp>(
                user) &&
            isStored(user->getResult(0)));
  });
}

LogicalResult KernelGroupBuilder::scan() {
  if (!kernel.getBody().hasOneBlock())
    return fail("control flow");
  SmallVector<Operation *> order;
  for (Operation &op : kernel.getBody().front().without_terminator())
    order.push_back(&op);
  for (Operation *op : order) {
    auto isShaped = [](Type type) { return isa<ShapedType>(type); };
    if (auto linalgOp = dyn_cast<linalg::LinalgOp>(op)) {
      if (!linalgOp.hasPureTensorSemantics())
        return fail("an operation on buffers");
      if (isa<linalg::FillOp>(op) && !isStored(op->getResult(0)))
        continue;
      if (failed(addStage(linalgOp)))
        return failure();
    } else if (auto write =
                   dyn_cast<bufferization::MaterializeInDestinationOp>(op)) {
      if (failed(addStore(write)))
        return failure();
    } else if (isa<bufferization::ToTensorOp, tensor::EmptyOp, tensor::DimOp,
                   tensor::ExpandShapeOp, tensor::CollapseShapeOp,
                   tensor::CastOp, memref::DimOp, arith::ConstantOp>(op)) {
      continue;
    } else if (llvm::any_of(op->getOperandTypes(), isShaped) ||
               llvm::any_of(op->getResultTypes(), isShaped) ||
               !isMemoryEffectFree(op)) {
      return fail("operation '" + op->getName().getStringRef() + "'");
    }
  }
  return group.stages.empty() ? fail("no operation") : success();
}

LogicalResult KernelGroupBuilder::addStage(linalg::LinalgOp op) {
  if (op->getNumRegions() != 1 || !op->getRegion(0).hasOneBlock())
    return fail("operation '" + op->getName().getStringRef() + "'");
  if (isTiledProduct(op))
    return fail("a product, whose sums are tiles in registers");
  RowStage stage;
  unsigned index = group.stages.size();
  stage.body = op.getBlock();
  stage.numInputs = op.getNumDpsInputs();
  stage.isReduction = op.getNumReductionLoops() > 0;
  for (OpOperand &operand : op->getOpOperands()) {
    RowAccess access;
    BlockArgument arg = op.getMatchingBlockArgument(&operand);
    AffineMap map = op.getMatchingIndexingMap(&operand);
    if (op.isDpsInit(&operand)) {
      if (!map.isProjectedPermutation())
        return fail("an output that is not indexed by loops");
      stage.stores.push_back(RowAccess());
      stage.resultTypes.push_back(arg.getType());
    }
    if (!arg.use_empty()) {
      if (!isa<TensorType>(operand.get().getType())) {
        access.kind = RowAccess::Scalar;
        access.value = operand.get();
      } else {
        FailureOr<Source> source = resolve(operand.get());
        if (failed(source))
          return failure();
        if (source->kind == Source::Empty)
          return fail("a read of undefined values");
        if (source->kind == Source::Fill) {
          access.kind = RowAccess::Scalar;
          access.value = source->value;
        } else {
          uses.push_back(
              {index, static_cast<unsigned>(stage.args.size()), *source, map});
        }
      }
    }
    stage.args.push_back(access);
  }
  // Tensors that the body captures may only be read element by element.
  WalkResult captures = op->walk([&](Operation *inner) {
    if (inner == op.getOperation() ||
        llvm::none_of(inner->getOperandTypes(), llvm::IsaPred<ShapedType>))
      return WalkResult::advance();
    auto extract = dyn_cast<tensor::ExtractOp>(inner);
    if (!extract || inner->getBlock() != stage.body)
      return WalkResult::interrupt();
    FailureOr<Source> source = resolve(extract.getTensor());
    if (failed(source) || source->kind != Source::Leaf)
      return WalkResult::interrupt();
    stage.extracts[inner] = source->value;
    return WalkResult::advance();
  });
  if (captures.wasInterrupted())
    return fail("a body that reads what another operation computes");
  firstNode.push_back(parent.size());
  for (int64_t size : op.getStaticLoopRanges()) {
    parent.push_back(parent.size());
    sizeOf.push_back(ShapedType::isDynamic(size) ? -1 : size);
    llvm::SmallBitVector self(64);
    if (index >= 64)
      return fail("too many operations");
    self.set(index);
    members.push_back(self);
  }
  stageOf[op] = index;
  ops.push_back(op);
  group.stages.push_back(std::move(stage));
  return success();
}

LogicalResult
KernelGroupBuilder::addStore(bufferization::MaterializeInDestinationOp op) {
  Value memref = op.getDest();
  auto type = dyn_cast<MemRefType>(memref.getType());
  if (!type || !type.getLayout().isIdentity())
    return fail("a destination with a layout");
  Value value = op.getSource();
  // Reshapes of the result are undone on the destination.
  while (Operation *def = value.getDefiningOp()) {
    if (auto expand = dyn_cast<tensor::ExpandShapeOp>(def)) {
      memref = memref::CollapseShapeOp::create(
          b, op.getLoc(), memref, expand.getReassociationIndices());
      value = expand.getSrc();
    } else if (auto collapse = dyn_cast<tensor::CollapseShapeOp>(def)) {
      auto source = collapse.getSrcType();
      for (const ReassociationIndices &indices :
           collapse.getReassociationIndices())
        if (llvm::count_if(
                indices, [&](int64_t d) { return source.isDynamicDim(d); }) > 1)
          return fail("a reshape of a result to dynamic sizes");
      memref = memref::ExpandShapeOp::create(
          b, op.getLoc(), source.getShape(), memref,
          collapse.getReassociationIndices());
      value = collapse.getSrc();
    } else if (auto castOp = dyn_cast<tensor::CastOp>(def)) {
      value = castOp.getSource();
    } else {
      break;
    }
  }
  FailureOr<Source> source = resolve(value);
  if (failed(source))
    return failure();
  if (source->kind != Source::Result)
    return fail("a result that no operation computes");
  stores.push_back({source->stage, source->result, memref});
  return success();
}

//===----------------------------------------------------------------------===//
// Dimensions
//===----------------------------------------------------------------------===//

unsigned KernelGroupBuilder::find(unsigned node) {
  while (parent[node] != node)
    node = parent[node] = parent[parent[node]];
  return node;
}

/// Makes two loops one dimension; fails if they are of one operation or of
/// different sizes.
bool KernelGroupBuilder::unite(unsigned a, unsigned b) {
  a = find(a);
  b = find(b);
  if (a == b)
    return true;
  if (members[a].anyCommon(members[b]))
    return false;
  if (sizeOf[a] >= 0 && sizeOf[b] >= 0 && sizeOf[a] != sizeOf[b])
    return false;
  parent[b] = a;
  members[a] |= members[b];
  if (sizeOf[a] < 0)
    sizeOf[a] = sizeOf[b];
  return true;
}

LogicalResult KernelGroupBuilder::unify() {
  // Through results of stages: these have to agree.
  for (Use &use : uses) {
    if (use.source.kind != Source::Result)
      continue;
    linalg::LinalgOp producer = ops[use.source.stage];
    AffineMap outMap = producer.getMatchingIndexingMap(
        producer.getDpsInitOperand(use.source.result));
    for (auto [i, expr] : llvm::enumerate(use.map.getResults())) {
      if (use.source.dims[i] < 0)
        continue;
      unsigned loop = outMap.getDimPosition(use.source.dims[i]);
      unsigned from = node(use.source.stage, loop);
      if (auto dim = dyn_cast<AffineDimExpr>(expr)) {
        if (!unite(from, node(use.stage, dim.getPosition())))
          return fail("operations on different iteration spaces");
      } else if (sizeOf[find(from)] != 1) {
        return fail("a result that is read at shifted positions");
      }
    }
  }
  // Through what they read in common: when that works.
  for (unsigned i = 0; i < uses.size(); ++i)
    for (unsigned j = i + 1; j < uses.size(); ++j) {
      if (uses[i].source.kind != Source::Leaf ||
          uses[j].source.kind != Source::Leaf ||
          uses[i].source.value != uses[j].source.value ||
          uses[i].stage == uses[j].stage)
        continue;
      for (auto [a, c] :
           llvm::zip(uses[i].map.getResults(), uses[j].map.getResults())) {
        auto da = dyn_cast<AffineDimExpr>(a), dc = dyn_cast<AffineDimExpr>(c);
        if (da && dc)
          (void)unite(node(uses[i].stage, da.getPosition()),
                      node(uses[j].stage, dc.getPosition()));
      }
    }
  // Reductions of one size over different things, and operations that have
  // nothing but their shape in common.
  for (unsigned s = 0; s < ops.size(); ++s)
    for (unsigned t = s + 1; t < ops.size(); ++t) {
      if (ops[s].getNumLoops() != ops[t].getNumLoops())
        continue;
      auto types = ops[s].getIteratorTypesArray();
      auto others = ops[t].getIteratorTypesArray();
      for (unsigned i = 0; i < types.size(); ++i) {
        int64_t size = sizeOf[find(node(s, i))];
        if (size > 1 && size == sizeOf[find(node(t, i))] &&
            types[i] == others[i])
          (void)unite(node(s, i), node(t, i));
      }
    }
  return success();
}

LogicalResult KernelGroupBuilder::numberDims() {
  dimOf.assign(parent.size(), -1);
  // The order of loops is that of the operation with most of them, the last
  // one if several: it usually writes the result.
  SmallVector<unsigned> order;
  for (unsigned s = 0; s < ops.size(); ++s)
    order.push_back(ops.size() - 1 - s);
  llvm::stable_sort(order, [&](unsigned a, unsigned c) {
    return ops[a].getNumLoops() > ops[c].getNumLoops();
  });
  unsigned numDims = 0;
  for (unsigned s : order)
    for (unsigned i = 0; i < ops[s].getNumLoops(); ++i) {
      unsigned root = find(node(s, i));
      if (sizeOf[root] != 1 && dimOf[root] < 0)
        dimOf[root] = numDims++;
    }
  group.reduced.resize(numDims);
  group.sizes.resize(numDims);
  for (unsigned s = 0; s < ops.size(); ++s) {
    RowStage &stage = group.stages[s];
    stage.domain.resize(numDims);
    for (auto [i, type] : llvm::enumerate(ops[s].getIteratorTypesArray())) {
      int64_t d = dimOf[find(node(s, i))];
      stage.dims.push_back(d);
      if (d < 0)
        continue;
      stage.domain.set(d);
      if (type != utils::IteratorType::parallel)
        group.reduced.set(d);
    }
  }
  return success();
}

AffineMap KernelGroupBuilder::translate(AffineMap map, unsigned stage) {
  SmallVector<AffineExpr> dims;
  for (int64_t d : group.stages[stage].dims)
    dims.push_back(d < 0 ? b.getAffineConstantExpr(0) : b.getAffineDimExpr(d));
  return map.replaceDimsAndSymbols(dims, {}, group.getNumDims(), 0);
}

/// Whether every stage fits into one nest: parallel loops outside, passes over
/// the row inside.
LogicalResult KernelGroupBuilder::check() {
  llvm::SmallBitVector parallel = group.reduced;
  parallel.flip();
  for (unsigned s = 0; s < ops.size(); ++s) {
    RowStage &stage = group.stages[s];
    bool stored = llvm::any_of(stores, [&](Store &x) { return x.stage == s; });
    bool allParallel = !parallel.test(stage.domain);
    bool allReduced = !group.reduced.test(stage.domain);
    if (stage.isReduction) {
      if (!allReduced || !allParallel)
        return fail("reductions over different dimensions");
      for (auto [i, type] : llvm::enumerate(ops[s].getIteratorTypesArray()))
        if (type == utils::IteratorType::parallel && stage.dims[i] >= 0 &&
            group.reduced[stage.dims[i]])
          return fail("a reduction of what another operation keeps");
    } else if (stored) {
      bool inner = stage.domain.anyCommon(group.reduced);
      if (!allParallel || (inner && !allReduced))
        return fail("a result over fewer dimensions than the others");
    }
  }
  return success();
}

LogicalResult KernelGroupBuilder::computeSizes() {
  for (unsigned n = 0; n < parent.size(); ++n)
    if (unsigned root = find(n); dimOf[root] >= 0 && sizeOf[root] >= 0)
      group.sizes[dimOf[root]] = b.getIndexAttr(sizeOf[root]);
  auto note = [&](RowAccess &access) {
    if (access.kind != RowAccess::Memory)
      return;
    for (auto [i, expr] : llvm::enumerate(access.map.getResults()))
      if (auto dim = dyn_cast<AffineDimExpr>(expr))
        if (access.whole[i] && !group.sizes[dim.getPosition()])
          group.sizes[dim.getPosition()] =
              memref::DimOp::create(b, group.loc, access.value, i).getResult();
  };
  for (RowStage &stage : group.stages) {
    llvm::for_each(stage.stores, note);
    llvm::for_each(stage.args, note);
  }
  for (OpFoldResult size : group.sizes)
    if (!size)
      return fail("a loop whose size no buffer tells");
  return success();
}

FailureOr<ReductionGroup> KernelGroupBuilder::run() {
  if (failed(scan()) || failed(unify()) || failed(numberDims()) ||
      failed(check()))
    return failure();
  for (Use &use : uses) {
    RowAccess &access = group.stages[use.stage].args[use.arg];
    if (use.source.kind == Source::Leaf) {
      access.kind = RowAccess::Memory;
      access.value = use.source.value;
      access.map = translate(use.map, use.stage);
      access.whole = getWholeResults(use.map);
    } else {
      access.kind = RowAccess::Stage;
      access.stage = use.source.stage;
      access.result = use.source.result;
    }
  }
  for (Store &store : stores) {
    RowAccess &access = group.stages[store.stage].stores[store.result];
    if (access.kind != RowAccess::None)
      return fail("a result that goes to two places");
    linalg::LinalgOp op = ops[store.stage];
    access.kind = RowAccess::Memory;
    access.value = store.memref;
    AffineMap map =
        op.getMatchingIndexingMap(op.getDpsInitOperand(store.result));
    access.map = translate(map, store.stage);
    access.whole = getWholeResults(map);
  }
  if (failed(computeSizes()))
    return failure();
  return std::move(group);
}

} // namespace

FailureOr<ReductionGroup> sardonyx::cpu::buildGroup(OpBuilder &b,
                                                    func::FuncOp kernel,
                                                    std::string &reason) {
  return KernelGroupBuilder(b, kernel, reason).run();
}
