//===- Scan.cpp - Scan ----------------------------------------------------===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "ControlFlow/Regions.h"
#include "StringsAndSequences/Sequences.h"
#include "Support/Checks.h"
#include "Support/DataMovement.h"
#include "Support/Patterns.h"

#include "dialects/ONNX/ONNX.h"

using namespace mlir;

namespace sardonyx {
namespace {

bool isOpen(Type element) {
  return !cast<RankedTensorType>(element).hasStaticShape();
}

Value addToList(TensorBuilder &b, Value list, Value tensor, bool atFront) {
  Value front = atFront ? b.zeros({}, b.getI64Type()) : Value();
  return insertIntoList(b, list, tensor, front);
}

/// `tensor[..., index, ...]` along `axis`, which disappears.
Value takeAt(TensorBuilder &b, Value tensor, int64_t axis, Value index) {
  Location loc = b.getLoc();
  Sizes sizes = b.dims(tensor);
  Sizes offsets(sizes.size(), b.size(0));
  sizes[axis] = b.size(1);
  offsets[axis] = index;
  return squeeze(b, loc, slice(b, loc, tensor, offsets, sizes), axis);
}

Value putAt(TensorBuilder &b, Value part, Value into, int64_t axis,
            Value index) {
  Sizes sizes = b.dims(into);
  Sizes offsets(sizes.size(), b.size(0));
  sizes[axis] = b.size(1);
  offsets[axis] = index;
  return b.insert(part, into, offsets, sizes);
}

/// What a Scan goes through and collects.
struct ScanPlan {
  int64_t states, inputs, outputs;
  /// Of the inputs and outputs; a direction is 0, or 1 for backwards.
  SmallVector<int64_t> inAxes, inBack, outAxes, outBack;
  /// What the body yields: the states as they are carried, then one element of
  /// each output.
  SmallVector<Type> types;
  Size length;
};

/// The numbers in the attribute `name`, with zeros for what is left out.
SmallVector<int64_t> getList(Operation *op, StringRef name, int64_t count) {
  SmallVector<int64_t> list(count, 0);
  if (auto attr = op->getAttrOfType<DenseI64ArrayAttr>(name))
    for (auto [i, v] : llvm::enumerate(attr.asArrayRef().take_front(count)))
      list[i] = v;
  return list;
}

/// Makes the axes of inputs and outputs count from the front; fails when one is
/// out of range.
LogicalResult normalizeScanAxes(ScanPlan &plan, ValueRange scanned,
                                ArrayRef<Type> yielded) {
  for (auto [value, axis] : llvm::zip_equal(scanned, plan.inAxes)) {
    auto normal = normalizeAxis(axis, rankedType(value).getRank());
    if (failed(normal))
      return failure();
    axis = *normal;
  }
  for (auto [type, axis] :
       llvm::zip_equal(yielded.drop_front(plan.states), plan.outAxes)) {
    auto normal =
        normalizeAxis(axis, cast<RankedTensorType>(type).getRank() + 1);
    if (failed(normal))
      return failure();
    axis = *normal;
  }
  return success();
}

/// What an output is before the first iteration. An element whose size is known
/// when it is made goes to a list first.
Value createOutput(TensorBuilder &b, RankedTensorType element, int64_t axis,
                   Size length) {
  if (isOpen(element))
    return createList(b, {}, element.getElementType());
  Sizes sizes = getDeclaredSizes(b, element);
  sizes.insert(sizes.begin() + axis, length);
  return b.empty(sizes, element.getElementType());
}

/// The body of `loop`, which carries states and outputs.
LogicalResult createScanBody(Lowering<onnx::ScanOp> &b, scf::ForOp loop,
                             const ScanPlan &plan) {
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(loop.getBody());
  ValueRange scanned = b.in.getOperands().drop_front(plan.states);
  Value index = loop.getInductionVar();
  Value last = b.sub(b.index(plan.length), createIndex(b, b.getLoc(), 1));
  Value backwards = b.sub(last, index);
  SmallVector<Value> arguments(
      loop.getRegionIterArgs().take_front(plan.states));
  for (int64_t i = 0; i < plan.inputs; ++i)
    arguments.push_back(takeAt(b, scanned[i], plan.inAxes[i],
                               plan.inBack[i] ? backwards : index));
  FailureOr<ValueRange> values =
      inlineGraph(b, b.op.getBody(), arguments, plan.types);
  if (failed(values))
    return failure();
  SmallVector<Value> next(values->take_front(plan.states));
  for (int64_t i = 0; i < plan.outputs; ++i) {
    Value made = (*values)[plan.states + i];
    Value before = loop.getRegionIterArgs()[plan.states + i];
    if (isOpen(plan.types[plan.states + i]))
      next.push_back(addToList(b, before, made, plan.outBack[i]));
    else
      next.push_back(putAt(b, made, before, plan.outAxes[i],
                           plan.outBack[i] ? backwards : index));
  }
  scf::YieldOp::create(b, next);
  return success();
}

/// The output that has been collected in `last`.
Value finishOutput(TensorBuilder &b, Value last, RankedTensorType element,
                   int64_t axis) {
  if (!isOpen(element))
    return last;
  SmallVector<int64_t> shape(element.getShape());
  shape.insert(shape.begin() + axis, ShapedType::kDynamic);
  return concatList(b, last, axis, ListConcat::Scan, element.clone(shape));
}

/// What a Scan's attributes and the body's results say.
FailureOr<ScanPlan> makePlan(Lowering<onnx::ScanOp> &b) {
  ScanPlan plan;
  ValueRange operands = b.in.getOperands();
  plan.inputs = b.op.getNumScanInputs();
  plan.states = operands.size() - plan.inputs;
  auto yielded = convertTypes(getYielded(b.op.getBody()));
  if (failed(yielded) || plan.inputs < 1 || plan.states < 0 ||
      int64_t(yielded->size()) < plan.states)
    return b.refuse("the body yields a value of unknown rank or type");
  plan.outputs = yielded->size() - plan.states;
  plan.inAxes = getList(b.op, "scan_input_axes", plan.inputs);
  plan.inBack = getList(b.op, "scan_input_directions", plan.inputs);
  plan.outAxes = getList(b.op, "scan_output_axes", plan.outputs);
  plan.outBack = getList(b.op, "scan_output_directions", plan.outputs);
  if (failed(
          normalizeScanAxes(plan, operands.drop_front(plan.states), *yielded)))
    return b.refuse("scan axis out of range");
  plan.types = *yielded;
  for (int64_t i = 0; i < plan.states; ++i) {
    plan.types[i] = joinTypes(operands[i].getType(), (*yielded)[i]);
    if (!plan.types[i])
      return b.refuse("a state changes its rank");
  }
  return plan;
}

/// What all inputs have along their axis, which is checked.
Size getLength(Lowering<onnx::ScanOp> &b, const ScanPlan &plan) {
  ValueRange scanned = b.in.getOperands().drop_front(plan.states);
  Size length = b.dim(scanned.front(), plan.inAxes.front());
  for (auto [value, axis] : llvm::zip_equal(scanned, plan.inAxes))
    checkSameSize(b, b.getLoc(), b.dim(value, axis), length,
                  "the scanned inputs differ in length");
  return length;
}

LogicalResult lowerScan(Lowering<onnx::ScanOp> &b) {
  FailureOr<ScanPlan> plan = makePlan(b);
  if (failed(plan))
    return failure();
  plan->length = getLength(b, *plan);
  ArrayRef<Type> types = plan->types;
  SmallVector<Value> carried;
  for (int64_t i = 0; i < plan->states; ++i)
    carried.push_back(b.cast(b.in.getOperands()[i], types[i]));
  auto elementOf = [&](int64_t output) {
    return cast<RankedTensorType>(types[plan->states + output]);
  };
  for (int64_t i = 0; i < plan->outputs; ++i)
    carried.push_back(
        createOutput(b, elementOf(i), plan->outAxes[i], plan->length));
  auto loop = scf::ForOp::create(b, b.getLoc(), createIndex(b, b.getLoc(), 0),
                                 b.index(plan->length),
                                 createIndex(b, b.getLoc(), 1), carried);
  if (failed(createScanBody(b, loop, *plan)))
    return failure();
  SmallVector<Value> results(loop.getResults());
  for (int64_t i = 0; i < plan->outputs; ++i) {
    Value &result = results[plan->states + i];
    result = finishOutput(b, result, elementOf(i), plan->outAxes[i]);
  }
  return b.replace(results);
}

} // namespace

void populateScanPatterns(const TypeConverter &converter,
                          RewritePatternSet &patterns) {
  addLowering<onnx::ScanOp, lowerScan>(patterns, converter);
}

} // namespace sardonyx
