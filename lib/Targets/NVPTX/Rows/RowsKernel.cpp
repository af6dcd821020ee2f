//===- RowsKernel.cpp - What reduces rows ---------------------------------===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Rows/RowsKernel.h"

#include "Kernel/Block.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Arith/Utils/Utils.h"
#include "mlir/Dialect/Bufferization/IR/Bufferization.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/TypeUtilities.h"

#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace sardonyx;
using namespace sardonyx::nv;

static constexpr int64_t kWarp = 32;
/// The longest row that one warp takes.
static constexpr int64_t kLongestOfWarp = 1024;
/// Elements of a row that one thread has for itself before another one shares
/// them.
static constexpr int64_t kFewest = 4;
/// So many elements of a row a thread keeps.
static constexpr int64_t kKept = 32;

bool RowsKernel::isPossible(ArrayRef<Value> results) {
  for (linalg::GenericOp op : ops) {
    if (op.getNumReductionLoops() == 0)
      continue;
    if (!first) {
      first = op;
      rowDims = op.getNumParallelLoops();
      dims = op.getNumLoops();
    }
    if (!isRowReduction(op) || !points.canEvaluateBody(op))
      return false;
    for (Value result : op.getResults())
      points.declare(result);
  }
  if (!first || !hasLength())
    return false;
  const SmallVector<int64_t> loops = first.getStaticLoopRanges();
  return llvm::all_of(results, [&](Value result) {
    auto type = cast<RankedTensorType>(result.getType());
    const int64_t rank = type.getRank();
    return (rank == rowDims || rank == dims) &&
           succeeded(verifyCompatibleShape(type.getShape(),
                                           ArrayRef(loops).take_front(rank))) &&
           points.canEvaluate(result);
  });
}

bool RowsKernel::reducesLast(Value result) {
  auto type = cast<RankedTensorType>(result.getType());
  return rowDims == dims - 1 && type.hasStaticShape() &&
         ArrayRef(first.getStaticLoopRanges()) == type.getShape();
}

LogicalResult RowsKernel::findSizes(ImplicitLocOpBuilder &b) {
  auto op = cast<linalg::LinalgOp>(first.getOperation());
  SmallVector<Value> found;
  for (Range range : op.createLoopRanges(b, op.getLoc()))
    found.push_back(
        getValueOrCreateConstantIndexOp(b, op.getLoc(), range.size));
  // Its operands follow when they are replaced.
  auto holder =
      UnrealizedConversionCastOp::create(b, TypeRange(b.getIndexType()), found);
  if (failed(body.replaceDims()))
    return failure();
  sizes.assign(holder.getInputs().begin(), holder.getInputs().end());
  holder.erase();
  return success();
}

void RowsKernel::useStaticSizes(ImplicitLocOpBuilder &b) {
  for (int64_t size : first.getStaticLoopRanges())
    sizes.push_back(Indices(b).constant(size));
}

/// The product of the sizes of a row.
int64_t RowsKernel::countColumns() const {
  int64_t length = 1;
  for (Value size : ArrayRef(sizes).drop_front(rowDims))
    length *= *getConstantIntValue(size);
  return length;
}

void RowsKernel::emit(ImplicitLocOpBuilder &b) {
  Indices i(b);
  Value rows = i.constant(1);
  cols = i.constant(1);
  for (auto [dim, size] : llvm::enumerate(sizes)) {
    Value &count = int64_t(dim) < rowDims ? rows : cols;
    count = i.mul(count, size);
  }
  std::optional<int64_t> length = getConstantIntValue(cols);
  width = chooseWidth();
  group = chooseGroup(length);
  chooseKept(length);
  outputs.assign(body.getOutputs().begin(), body.getOutputs().end());
  const int64_t rowsOfBlock = kThreads / group;
  OpBuilder::InsertionGuard guard(b);
  Value blocks = i.ceilDiv(rows, rowsOfBlock);
  scf::ParallelOp loop = startBlocks(b, blocks, kThreads, "rows");
  thread = gpu::ThreadIdOp::create(b, gpu::Dimension::x);
  lane = i.rem(thread, group);
  Value row = loop.getInductionVars()[0];
  if (rowsOfBlock > 1) {
    row = i.add(i.mul(row, rowsOfBlock), i.div(thread, group));
    Value exists = i.less(row, rows);
    if (group < kWarp) {
      // The others of the warp wait for these threads' sums.
      rowExists = exists;
      row = arith::SelectOp::create(b, exists, row, i.constant(0));
    } else {
      // The last warps have nothing to do, and nobody waits for them.
      auto some = scf::IfOp::create(b, exists, false);
      b.setInsertionPoint(some.thenYield());
    }
  }
  emitRow(b, row);
}

void RowsKernel::emitRows(ImplicitLocOpBuilder &b, Value ofBlock, int64_t rows,
                          ArrayRef<KernelBody::Output> of) {
  Indices i(b);
  outputs.assign(of.begin(), of.end());
  useStaticSizes(b);
  const int64_t length = countColumns();
  cols = i.constant(length);
  width = chooseWidth();
  group = kThreads;
  chooseKept(length);
  thread = lane = ofBlock;
  if (rows == 1)
    return emitRow(b, i.constant(0));
  auto loop =
      scf::ForOp::create(b, i.constant(0), i.constant(rows), i.constant(1));
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(loop.getBody());
  emitRow(b, loop.getInductionVar());
  // The next row's sums have the same memory.
  gpu::BarrierOp::create(b);
}

bool RowsKernel::readsOwnRows(Value tensor) {
  if (!reducesLast(tensor))
    return false;
  // What is made of it, element by element.
  SetVector<Value> made;
  made.insert(tensor);
  for (unsigned at = 0; at < made.size(); ++at)
    for (OpOperand &use : made[at].getUses()) {
      Operation *user = use.getOwner();
      if (isa<bufferization::MaterializeInDestinationOp>(user))
        continue;
      auto op = dyn_cast<linalg::GenericOp>(user);
      if (!op || !op.getMatchingIndexingMap(&use).isIdentity())
        return false;
      for (auto [number, result] : llvm::enumerate(op.getResults()))
        if (op.getMatchingIndexingMap(op.getDpsInitOperand(number))
                .isIdentity())
          made.insert(result);
        else if (op.getNumReductionLoops() == 0)
          return false;
    }
  return true;
}

void RowsKernel::emitRowsOfWarps(ImplicitLocOpBuilder &b, Value ofBlock,
                                 int64_t threads, Value first, int64_t step,
                                 int64_t count, Value end) {
  Indices i(b);
  outputs.assign(body.getOutputs().begin(), body.getOutputs().end());
  useStaticSizes(b);
  const int64_t length = countColumns();
  cols = i.constant(length);
  width = chooseWidth();
  group = kWarp;
  chooseKept(length);
  thread = ofBlock;
  lane = i.rem(thread, kWarp);
  Value warp = i.div(thread, kWarp);
  const int64_t warps = threads / kWarp;
  auto loop = scf::ForOp::create(b, warp, i.constant(count), i.constant(warps));
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(loop.getBody());
  Value row = i.add(first, i.mul(loop.getInductionVar(), step));
  auto some = scf::IfOp::create(b, i.less(row, end), /*withElseRegion=*/false);
  b.setInsertionPoint(some.thenYield());
  emitRow(b, row);
}

/// Parallel loops first, and results that have one element for each of their
/// positions.
bool RowsKernel::isRowReduction(linalg::GenericOp op) {
  if (op.getNumParallelLoops() != unsigned(rowDims) ||
      op.getNumLoops() != unsigned(dims))
    return false;
  for (auto [loop, kind] : llvm::enumerate(op.getIteratorTypesArray()))
    if ((kind == utils::IteratorType::parallel) != (int64_t(loop) < rowDims))
      return false;
  SmallVector<AffineExpr> exprs;
  for (int64_t loop = 0; loop < rowDims; ++loop)
    exprs.push_back(getAffineDimExpr(loop, op.getContext()));
  AffineMap rows = AffineMap::get(dims, 0, exprs, op.getContext());
  SmallVector<Combiner> found;
  for (auto [number, init] : llvm::enumerate(op.getDpsInitsMutable())) {
    std::optional<Combiner> combiner = Combiner::find(op, number);
    if (!combiner || op.getMatchingIndexingMap(&init) != rows ||
        !points.canEvaluate(init.get()))
      return false;
    found.push_back(*combiner);
  }
  combiners[op] = std::move(found);
  return true;
}

/// Whether rows have elements, as far as it is known.
bool RowsKernel::hasLength() {
  return !llvm::is_contained(
      ArrayRef(first.getStaticLoopRanges()).drop_front(rowDims), 0);
}

/// Threads that share a row of this length.
int64_t RowsKernel::chooseGroup(std::optional<int64_t> length) const {
  if (!length || *length > kLongestOfWarp || (isSlow && *length > kThreads))
    return kThreads;
  const int64_t threads = llvm::divideCeil(*length, std::max(width, kFewest));
  return std::min<int64_t>(kWarp, llvm::PowerOf2Ceil(threads));
}

/// A thread keeps its elements of a row where they are few.
void RowsKernel::chooseKept(std::optional<int64_t> length) {
  if (length && llvm::divideCeil(*length, group * width) * width <= kKept)
    kept = llvm::divideCeil(*length, group * width);
}

/// Neighbouring elements that a thread reads at a time: 16 bytes.
int64_t RowsKernel::chooseWidth() {
  int64_t bytes = 4;
  for (Value operand : first.getDpsInputs())
    if (auto type = dyn_cast<ShapedType>(operand.getType()))
      bytes = std::max<int64_t>(1, type.getElementTypeBitWidth() / 8);
  std::optional<int64_t> inner = getConstantIntValue(sizes.back());
  int64_t most = std::clamp<int64_t>(16 / bytes, 1, 8);
  while (most > 1 && (!inner || *inner % most))
    most /= 2;
  return most;
}

/// The elements from column `first` on, `width` of them.
SmallVector<RowsKernel::Element>
RowsKernel::findElements(ImplicitLocOpBuilder &b, Value firstCol,
                         bool mayPass) {
  Indices i(b);
  Value exists;
  if (mayPass) {
    exists = i.less(firstCol, cols);
    firstCol = arith::SelectOp::create(b, exists, firstCol, i.constant(0));
  }
  SmallVector<Value> at =
      i.unflatten(firstCol, ArrayRef(sizes).drop_front(rowDims));
  SmallVector<Element> elements;
  for (int64_t j = 0; j < width; ++j) {
    Element &element = elements.emplace_back();
    element.index = rowIndex;
    element.index.append(at.begin(), at.end());
    element.index.back() = i.add(at.back(), j);
    element.exists = exists;
  }
  return elements;
}

void RowsKernel::emitRow(ImplicitLocOpBuilder &b, Value row) {
  Indices i(b);
  rowIndex = i.unflatten(row, ArrayRef(sizes).take_front(rowDims));
  rowPoint = Point();
  SmallVector<Element> elements;
  for (int64_t turn = 0; turn < kept; ++turn) {
    Value at = i.add(i.mul(lane, width), turn * group * width);
    bool mayPass = (turn + 1) * group * width > *getConstantIntValue(cols);
    llvm::append_range(elements, findElements(b, at, mayPass));
  }
  for (linalg::GenericOp op : ops)
    if (op.getNumReductionLoops() != 0)
      emitReduction(b, op, elements);
  OpBuilder::InsertionGuard guard(b);
  if (rowExists) {
    auto some = scf::IfOp::create(b, rowExists, false);
    b.setInsertionPoint(some.thenYield());
  }
  emitResults(b, elements);
}

/// What has been summed up of a row is the same at each of its elements.
PointEvaluator::Point RowsKernel::pointOf(const Element &element) const {
  Point point = rowPoint;
  llvm::append_range(point.values, element.point.values);
  return point;
}

SmallVector<Value> RowsKernel::addElement(ImplicitLocOpBuilder &b,
                                          linalg::GenericOp op,
                                          Element &element, ValueRange sums) {
  Point point = pointOf(element);
  const size_t before = point.values.size();
  SmallVector<Value> next =
      points.evaluateBody(b, op, element.index, sums, point);
  element.point.values.append(point.values.begin() + before,
                              point.values.end());
  if (element.exists)
    for (auto [value, sum] : llvm::zip(next, sums))
      value = arith::SelectOp::create(b, element.exists, value, sum);
  return next;
}

void RowsKernel::emitReduction(ImplicitLocOpBuilder &b, linalg::GenericOp op,
                               MutableArrayRef<Element> elements) {
  Indices i(b);
  ArrayRef<Combiner> how = combiners[op];
  SmallVector<Value> sums;
  for (const Combiner &combiner : how)
    sums.push_back(combiner.neutral(b));
  if (kept) {
    for (Element &element : elements)
      sums = addElement(b, op, element, sums);
  } else {
    auto loop = scf::ForOp::create(b, i.mul(lane, width), cols,
                                   i.constant(group * width), sums);
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(loop.getBody());
    SmallVector<Value> next(loop.getRegionIterArgs());
    for (Element &element :
         findElements(b, loop.getInductionVar(), /*mayPass=*/false))
      next = addElement(b, op, element, next);
    scf::YieldOp::create(b, next);
    sums.assign(loop.getResults().begin(), loop.getResults().end());
  }
  for (auto [number, combiner] : llvm::enumerate(how)) {
    Value sum =
        combiner.combineThreads(b, sums[number], std::min(group, kWarp));
    if (group > kWarp)
      sum = combineBlock(b, combiner, sum);
    Value init =
        points.evaluate(b, op.getDpsInits()[number], rowIndex, rowPoint);
    rowPoint.add(op.getResult(number), rowIndex,
                 combiner.combine(b, init, sum));
  }
}

/// The sums of all warps together, through shared memory.
Value RowsKernel::combineBlock(ImplicitLocOpBuilder &b,
                               const Combiner &combiner, Value sum) {
  Indices i(b);
  constexpr int64_t warps = kThreads / kWarp;
  const int64_t bytes =
      std::max<int64_t>(1, combiner.getType().getIntOrFloatBitWidth() / 8);
  Value place = viewShared(b, allocateShared(b, warps * bytes), 0, {warps},
                           combiner.getType());
  auto isFirst = scf::IfOp::create(
      b,
      arith::CmpIOp::create(b, arith::CmpIPredicate::eq, i.rem(thread, kWarp),
                            i.constant(0)),
      false);
  {
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPoint(isFirst.thenYield());
    memref::StoreOp::create(b, sum, place, i.div(thread, kWarp));
  }
  gpu::BarrierOp::create(b);
  Value total;
  for (int64_t warp = 0; warp < warps; ++warp) {
    Value part = memref::LoadOp::create(b, place, i.constant(warp));
    total = total ? combiner.combine(b, total, part) : part;
  }
  return total;
}

void RowsKernel::emitResults(ImplicitLocOpBuilder &b,
                             MutableArrayRef<Element> elements) {
  Indices i(b);
  SmallVector<KernelBody::Output> whole, ofRow;
  for (const KernelBody::Output &output : outputs) {
    bool isWhole = cast<MemRefType>(output.memref.getType()).getRank() == dims;
    (isWhole ? whole : ofRow).push_back(output);
  }
  if (!ofRow.empty()) {
    Value isFirst =
        arith::CmpIOp::create(b, arith::CmpIPredicate::eq, lane, i.constant(0));
    auto one = scf::IfOp::create(b, isFirst, false);
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPoint(one.thenYield());
    Point point = rowPoint;
    for (const KernelBody::Output &output : ofRow) {
      Value value = points.evaluate(b, output.tensor, rowIndex, point);
      memref::StoreOp::create(b, value, output.memref, rowIndex);
    }
  }
  if (whole.empty())
    return;
  if (kept) {
    for (size_t at = 0; at < elements.size(); at += width)
      storeElements(b, elements.slice(at, width), whole);
    return;
  }
  auto loop = scf::ForOp::create(b, i.mul(lane, width), cols,
                                 i.constant(group * width));
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(loop.getBody());
  SmallVector<Element> found =
      findElements(b, loop.getInductionVar(), /*mayPass=*/false);
  storeElements(b, found, whole);
}

void RowsKernel::storeElements(ImplicitLocOpBuilder &b,
                               MutableArrayRef<Element> elements,
                               ArrayRef<KernelBody::Output> ofElements) {
  OpBuilder::InsertionGuard guard(b);
  if (Value exists = elements.front().exists) {
    auto some = scf::IfOp::create(b, exists, false);
    b.setInsertionPoint(some.thenYield());
  }
  SmallVector<SmallVector<Value>> indices;
  SmallVector<Point> known;
  for (const Element &element : elements) {
    indices.push_back(element.index);
    known.push_back(pointOf(element));
  }
  points.store(b, ofElements, indices, known);
}
