//===- HeadEpilogue.cpp - What follows a product, by heads ----------------===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Matmul/HeadEpilogue.h"

#include "Kernel/Block.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Bufferization/IR/Bufferization.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/IRMapping.h"

using namespace mlir;
using namespace sardonyx;
using namespace sardonyx::nv;

/// The most elements of a head.
static constexpr int64_t kMostDepth = 1024;
/// Bytes that a thread reads and writes at a time of what only moves.
static constexpr int64_t kBytes = 16;

static ArrayRef<int64_t> shapeOf(Value tensor) {
  return cast<RankedTensorType>(tensor.getType()).getShape();
}

static bool isStatic(Value tensor) {
  auto type = dyn_cast<RankedTensorType>(tensor.getType());
  return type && type.hasStaticShape() && type.getNumElements() != 0;
}

static bool isReshape(Operation *op) {
  return isa<tensor::CastOp, tensor::CollapseShapeOp, tensor::ExpandShapeOp>(
      op);
}

/// Elements from one to the next along each dimension.
static SmallVector<int64_t> stridesOf(ArrayRef<int64_t> shape) {
  SmallVector<int64_t> strides(shape.size(), 1);
  for (size_t dim = shape.size(); dim-- > 1;)
    strides[dim - 1] = strides[dim] * shape[dim];
  return strides;
}

//===----------------------------------------------------------------------===//
// Columns of blocks
//===----------------------------------------------------------------------===//

bool BlockColumns::fits(int64_t neighbours) const {
  const int64_t both = 2 * distance;
  return both == 0 || count % both == 0 ||
         (both % count == 0 && count / 2 % neighbours == 0);
}

Value BlockColumns::first(ImplicitLocOpBuilder &b, Value block) const {
  Indices i(b);
  if (!hasTwoRuns())
    return i.mul(block, count);
  const int64_t blocksOfBoth = 2 * distance / count;
  return i.add(i.mul(i.div(block, blocksOfBoth), 2 * distance),
               i.mul(i.rem(block, blocksOfBoth), count / 2));
}

Value BlockColumns::column(ImplicitLocOpBuilder &b, Value first,
                           Value number) const {
  Indices i(b);
  Value column = i.add(first, number);
  if (!hasTwoRuns())
    return column;
  const int64_t run = count / 2;
  return i.add(column, i.mul(i.div(number, run), distance - run));
}

Value BlockColumns::number(ImplicitLocOpBuilder &b, Value first,
                           Value column) const {
  Indices i(b);
  Value number = b.createOrFold<arith::SubIOp>(column, first);
  if (hasTwoRuns())
    number = b.createOrFold<arith::SelectOp>(
        i.less(number, i.constant(distance)), number,
        i.add(number, count / 2 - distance));
  // Others are read for nothing.
  return b.createOrFold<arith::MinUIOp>(number, i.constant(count - 1));
}

//===----------------------------------------------------------------------===//
// What hangs on which columns
//===----------------------------------------------------------------------===//

HeadEpilogue::HeadEpilogue(Value product, KernelBody &body)
    : product(product), body(body) {}

/// Whether an operation reads one of `tensors`, its branches included.
static bool readsAny(Operation *op, const SetVector<Value> &tensors) {
  return op
      ->walk([&](Operation *inner) {
        return llvm::any_of(
                   inner->getOperands(),
                   [&](Value value) { return tensors.contains(value); })
                   ? WalkResult::interrupt()
                   : WalkResult::advance();
      })
      .wasInterrupted();
}

bool HeadEpilogue::isNeeded(Value product) {
  SetVector<Value> derived;
  derived.insert(product);
  for (Operation &other : *product.getParentBlock()) {
    if (!readsAny(&other, derived))
      continue;
    if (isReshape(&other) && !isa<tensor::CastOp>(other))
      return true;
    if (other
            .walk([&](tensor::ExtractOp extract) {
              return derived.contains(extract.getTensor())
                         ? WalkResult::interrupt()
                         : WalkResult::advance();
            })
            .wasInterrupted())
      return true;
    derived.insert_range(other.getResults());
  }
  return false;
}

/// Collects what is computed of the product, where that is operations on
/// elements and other shapes of the same.
bool HeadEpilogue::findDerived() {
  derived.insert(product);
  for (Operation &other : *product.getParentBlock()) {
    if (!readsAny(&other, derived) ||
        isa<bufferization::MaterializeInDestinationOp>(other))
      continue;
    if (!llvm::all_of(other.getResults(), isStatic))
      return false;
    auto generic = dyn_cast<linalg::GenericOp>(other);
    const bool isOnElements =
        generic && generic.hasPureTensorSemantics() &&
        generic.getNumLoops() == generic.getNumParallelLoops() &&
        generic.getNumLoops() != 0 &&
        llvm::all_of(generic.getDpsInitsMutable(), [&](OpOperand &init) {
          return generic.getMatchingIndexingMap(&init).isIdentity() &&
                 !generic.payloadUsesValueFromOperand(&init);
        });
    if (!isOnElements && !isReshape(&other))
      return false;
    derived.insert_range(other.getResults());
    if (generic && !isWhole(generic.getResult(0)))
      larger.push_back(generic);
  }
  return llvm::all_of(body.getOutputs(), [&](const KernelBody::Output &out) {
    return derived.contains(out.tensor);
  });
}

/// Whether a tensor has as many elements as the product.
bool HeadEpilogue::isWhole(Value tensor) const {
  return cast<RankedTensorType>(tensor.getType()).getNumElements() ==
         cast<RankedTensorType>(product.getType()).getNumElements();
}

ArrayRef<int64_t> HeadEpilogue::shapeOfOthers() const {
  linalg::GenericOp first = larger.front();
  return shapeOf(first.getResult(0));
}

/// Finds the places where an operation with a larger result reads the product.
bool HeadEpilogue::findBox(linalg::GenericOp op) {
  ArrayRef<int64_t> shape = shapeOf(op.getResult(0));
  for (int64_t last = 0; last < shape.back(); ++last) {
    const BodyReads body(op, last);
    for (const BodyReads::Read &read : body.getReads()) {
      if (!derived.contains(read.tensor))
        continue;
      Box found{SmallVector<int64_t>(shape.size(), 0),
                SmallVector<int64_t>(shape)};
      for (const BodyReads::Range &range : read.ranges) {
        int64_t &begin = found.from[range.loop],
                &size = found.sizes[range.loop];
        const int64_t end = std::min(begin + size, range.to);
        begin = std::max(begin, range.from);
        size = end - begin;
      }
      if (!isWhole(read.tensor)) {
        // The same elements of a tensor that is as large.
        for (auto [loop, index] : llvm::enumerate(read.index)) {
          const bool isLast = loop + 1 == shape.size();
          const BodyReads::Index same =
              isLast ? BodyReads::Index{std::nullopt, last}
                     : BodyReads::Index{unsigned(loop), 0};
          if (!index || !(*index == same))
            return false;
        }
        if (shapeOf(read.tensor) != shape || !read.ranges.empty())
          return false;
      } else if (box.sizes.empty()) {
        box = found;
      } else if (box.from != found.from || box.sizes != found.sizes) {
        return false;
      }
    }
  }
  return true;
}

/// Finds where the elements lie that do not hang on the product: before it or
/// behind it along one dimension.
bool HeadEpilogue::findOthers() {
  if (larger.empty())
    return true;
  ArrayRef<int64_t> shape = shapeOfOthers();
  for (linalg::GenericOp generic : larger)
    if (shapeOf(generic.getResult(0)) != shape || !findBox(generic))
      return false;
  if (box.sizes.empty())
    return false;
  int64_t parts = 0, elements = 1;
  for (auto [dim, size] : llvm::enumerate(shape)) {
    if (box.sizes[dim] <= 0)
      return false;
    elements *= box.sizes[dim];
    if (box.sizes[dim] == size)
      continue;
    ++parts;
    along = dim;
    const int64_t end = box.from[dim] + box.sizes[dim];
    from = box.from[dim] == 0 ? end : 0;
    to = box.from[dim] == 0 ? size : box.from[dim];
    if (box.from[dim] != 0 && end != size)
      return false;
  }
  if (parts != 1 ||
      elements != cast<RankedTensorType>(product.getType()).getNumElements())
    return false;
  // Of them no condition lets the product be read.
  return llvm::all_of(larger, [&](linalg::GenericOp generic) {
    const BodyReads reads(generic);
    return llvm::all_of(reads.getReads(), [&](const BodyReads::Read &read) {
      return !derived.contains(read.tensor) || !isWhole(read.tensor) ||
             llvm::any_of(read.ranges, [&](const BodyReads::Range &range) {
               return range.loop == along &&
                      (range.to <= from || range.from >= to);
             });
    });
  });
}

/// How far behind the place of a result's element that of `read` is, in the
/// order of the product's elements. `shape` is the result's; its last index is
/// `last`, if that is given.
std::optional<int64_t> HeadEpilogue::distanceOf(const BodyReads::Read &read,
                                                ArrayRef<int64_t> shape,
                                                std::optional<int64_t> last) {
  const bool isPart = !larger.empty() && shape == shapeOfOthers();
  ArrayRef<int64_t> sizes = isPart ? ArrayRef(box.sizes) : shape;
  SmallVector<int64_t> steps(shape.size(), 0);
  int64_t result = last ? -*last : 0;
  for (auto [index, stride] :
       llvm::zip_equal(read.index, stridesOf(shapeOf(read.tensor)))) {
    if (!index)
      return std::nullopt;
    result += index->offset * stride;
    if (!index->isNumber())
      steps[*index->loop] += stride;
  }
  for (auto [dim, stride] : llvm::enumerate(stridesOf(sizes))) {
    if (last && dim + 1 == shape.size())
      continue;
    if (isPart)
      result += steps[dim] * box.from[dim];
    if (sizes[dim] != 1 && steps[dim] != stride)
      return std::nullopt;
  }
  return result;
}

/// Adds how far apart those elements of the product are that `tensor` hangs on,
/// for an element whose place is `at` modulo `period`.
bool HeadEpilogue::addDistances(Value tensor, int64_t at, int64_t period,
                                Distances &found) {
  if (tensor == product) {
    found.insert(0);
    return true;
  }
  Operation *maker = tensor.getDefiningOp();
  if (isReshape(maker))
    return addDistances(maker->getOperand(0), at, period, found);
  auto generic = cast<linalg::GenericOp>(maker);
  ArrayRef<int64_t> shape = shapeOf(tensor);
  std::optional<int64_t> last;
  if (period % shape.back() == 0)
    last = at % shape.back();
  const BodyReads reads(generic, last);
  for (const BodyReads::Read &read : reads.getReads()) {
    if (!derived.contains(read.tensor))
      continue;
    std::optional<int64_t> step =
        isWhole(read.tensor) ? distanceOf(read, shape, last) : 0;
    if (!step || at + *step < 0 || at + *step >= period)
      return false;
    Distances before;
    if (!addDistances(read.tensor, at + *step, period, before))
      return false;
    for (int64_t further : before)
      found.insert(*step + further);
  }
  return true;
}

bool HeadEpilogue::findDistance() {
  int64_t period = 1;
  for (const KernelBody::Output &output : body.getOutputs())
    period = std::max(period, shapeOf(output.tensor).back());
  if (period > kMostDepth)
    return false;
  for (int64_t at = 0; at < period; ++at) {
    Distances found;
    for (const KernelBody::Output &output : body.getOutputs())
      if (!addDistances(output.tensor, at, period, found))
        return false;
    for (int64_t step : found) {
      if (step == 0)
        continue;
      if (distance == 0)
        distance = std::abs(step);
      const bool isFirst = at % (2 * distance) < distance;
      if (step != (isFirst ? distance : -distance))
        return false;
    }
  }
  return distance == 0 || (period % (2 * distance) == 0 &&
                           shapeOf(product).back() % (2 * distance) == 0);
}

bool HeadEpilogue::isPossible() {
  return isStatic(product) && shapeOf(product).size() == 2 && findDerived() &&
         findOthers() && findDistance();
}

/// Where the product's element `flat` lies in `result`.
SmallVector<Value> HeadEpilogue::placeOf(ImplicitLocOpBuilder &b, Value result,
                                         Value flat) {
  Indices i(b);
  const bool isPart = !isWhole(result);
  ArrayRef<int64_t> all = isPart ? ArrayRef(box.sizes) : shapeOf(result);
  SmallVector<Value> sizes;
  for (int64_t size : all)
    sizes.push_back(i.constant(size));
  SmallVector<Value> index = i.unflatten(flat, sizes);
  for (auto [dim, size] : llvm::enumerate(all)) {
    if (size == 1)
      index[dim] = i.constant(0);
    if (isPart)
      index[dim] = i.add(index[dim], box.from[dim]);
  }
  return index;
}

void HeadEpilogue::emit(ImplicitLocOpBuilder &b, PointEvaluator &points,
                        Value flat) {
  PointEvaluator::Point known;
  SmallVector<Value> values;
  SmallVector<SmallVector<Value>> places;
  Value last;
  for (const KernelBody::Output &output : body.getOutputs()) {
    // What is at the same place is computed once.
    const bool isLikeLast = last && shapeOf(last) == shapeOf(output.tensor);
    places.push_back(isLikeLast ? places.back()
                                : placeOf(b, output.tensor, flat));
    values.push_back(points.evaluate(b, output.tensor, places.back(), known));
    last = output.tensor;
  }
  for (auto [output, value, place] :
       llvm::zip_equal(body.getOutputs(), values, places))
    memref::StoreOp::create(b, value, output.memref, place);
}

//===----------------------------------------------------------------------===//
// What the product is no part of
//===----------------------------------------------------------------------===//

/// Neighbours that a thread has.
int64_t HeadEpilogue::countTogether() const {
  int64_t bits = 8;
  for (linalg::GenericOp generic : larger)
    for (Type type : generic->getResultTypes())
      bits = std::max<int64_t>(
          bits, cast<RankedTensorType>(type).getElementTypeBitWidth());
  int64_t together = kBytes * 8 / bits;
  const int64_t row =
      along + 1 == shapeOfOthers().size() ? to - from : shapeOfOthers().back();
  while (row % together)
    together /= 2;
  return together;
}

int64_t HeadEpilogue::countBlocks(int64_t threads) const {
  if (larger.empty())
    return 0;
  int64_t elements = to - from;
  for (auto [dim, size] : llvm::enumerate(shapeOfOthers()))
    if (dim != along)
      elements *= size;
  return llvm::divideCeil(elements / countTogether(), threads);
}

/// Puts the branch in the place of `op` that is always taken.
static void inlineBranch(scf::IfOp op, Block *taken) {
  if (taken) {
    SmallVector<Value> values(taken->getTerminator()->getOperands());
    taken->getTerminator()->erase();
    op->getBlock()->getOperations().splice(Block::iterator(op),
                                           taken->getOperations());
    op->replaceAllUsesWith(values);
  }
  op->erase();
}

/// The larger results, computed without the branches that are of the product.
SmallVector<KernelBody::Output> HeadEpilogue::makeOthers() {
  IRMapping mapping;
  for (linalg::GenericOp generic : larger) {
    OpBuilder at(generic->getContext());
    at.setInsertionPointAfter(generic);
    auto made = cast<linalg::GenericOp>(at.clone(*generic, mapping));
    const BodyReads reads(made);
    SmallVector<std::pair<scf::IfOp, bool>> decided;
    made.walk([&](scf::IfOp which) {
      auto range = reads.findRange(which.getCondition());
      if (!range || range->loop != along)
        return;
      if (range->from <= from && to <= range->to)
        decided.emplace_back(which, true);
      else if (range->to <= from || to <= range->from)
        decided.emplace_back(which, false);
    });
    for (auto [which, isTaken] : decided)
      inlineBranch(which, isTaken ? which.thenBlock() : which.elseBlock());
  }
  SmallVector<KernelBody::Output> others;
  for (const KernelBody::Output &output : body.getOutputs())
    if (!isWhole(output.tensor))
      others.push_back({mapping.lookup(output.tensor), output.memref});
  return others;
}

void HeadEpilogue::emitOthers(ImplicitLocOpBuilder &b, PointEvaluator &points,
                              Value block, Value thread, int64_t threads) {
  Indices i(b);
  const int64_t together = countTogether();
  SmallVector<Value> sizes;
  Value count = i.constant(1);
  for (auto [dim, size] : llvm::enumerate(shapeOfOthers())) {
    const int64_t all = dim == along ? to - from : size;
    const bool isLast = dim + 1 == shapeOfOthers().size();
    sizes.push_back(i.constant(isLast ? all / together : all));
    count = i.mul(count, sizes.back());
  }
  Value number = i.add(i.mul(block, threads), thread);
  auto some = scf::IfOp::create(b, i.less(number, count),
                                /*withElseRegion=*/false);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPoint(some.thenYield());
  SmallVector<Value> first = i.unflatten(number, sizes);
  first.back() = i.mul(first.back(), together);
  first[along] = i.add(first[along], from);
  SmallVector<SmallVector<Value>> indices;
  for (int64_t j = 0; j < together; ++j) {
    SmallVector<Value> &index = indices.emplace_back(first);
    index.back() = i.add(index.back(), j);
  }
  SmallVector<PointEvaluator::Point> known(together);
  points.store(b, makeOthers(), indices, known);
}
