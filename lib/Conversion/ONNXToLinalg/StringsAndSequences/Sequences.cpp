//===- Sequences.cpp - Sequences and optionals ----------------------------===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Both are handles of lists that the runtime keeps (runtime/ListTable.h), in
// tensors of one i64, so branches and loops carry them as they carry tensors.
//
//===----------------------------------------------------------------------===//

#include "StringsAndSequences/Sequences.h"
#include "Support/Checks.h"
#include "Support/DataMovement.h"
#include "Support/Lowering.h"
#include "Support/Patterns.h"
#include "Support/RuntimeCalls.h"
#include "dialects/ONNX/ONNX.h"

using namespace mlir;

namespace sardonyx {

//===----------------------------------------------------------------------===//
// Lists
//===----------------------------------------------------------------------===//

static Value bytesOf(TensorBuilder &b, Type storedElement) {
  return asNumber(b, (storedElement.getIntOrFloatBitWidth() + 7) / 8);
}

static Value callForHandle(TensorBuilder &b, StringRef name, ValueRange ins) {
  return callRuntime(b, name, ins, ArrayRef<OpFoldResult>(), b.getI64Type());
}

Value createList(TensorBuilder &b, ValueRange tensors, Type storedElement) {
  SmallVector<Value> operands = {
      asNumber(b, static_cast<int64_t>(tensors.size())),
      bytesOf(b, storedElement)};
  llvm::append_range(operands, tensors);
  return callForHandle(b, "sdx_rt_list_make", operands);
}

Value insertIntoList(TensorBuilder &b, Value list, Value tensor,
                     Value position) {
  Value at = position ? position : b.zeros({}, b.getI64Type());
  return callForHandle(b, "sdx_rt_list_insert",
                       {list, tensor, bytesOf(b, elementTypeOf(tensor)), at,
                        asNumber(b, position ? 1 : 0)});
}

/// Sizes from a tensor of them; those that `declared` states are checked. A
/// negative one is not known: it is the declared one, that of `sizesOfNone`, or
/// 0.
static Sizes takeSizes(TensorBuilder &b, Value tensor,
                       RankedTensorType declared,
                       ArrayRef<int64_t> sizesOfNone = {}) {
  Sizes sizes;
  for (auto [dim, known] : llvm::enumerate(declared.getShape())) {
    Value size =
        b.convert(b.extract(tensor, b.index(static_cast<int64_t>(dim))),
                  b.getIndexType());
    int64_t otherwise = ShapedType::isDynamic(known) ? 0 : known;
    if (ShapedType::isDynamic(known) && !sizesOfNone.empty())
      otherwise = std::max<int64_t>(sizesOfNone[dim], 0);
    Value isKnown =
        b.compare(arith::CmpIPredicate::sge, size, b.index(int64_t(0)));
    size = b.select(isKnown, size, b.index(otherwise));
    if (!ShapedType::isDynamic(known))
      checkSameSize(b, b.getLoc(), size, b.size(known),
                    "a size is not what the model says");
    sizes.push_back(ShapedType::isDynamic(known) ? OpFoldResult(size)
                                                 : b.size(known));
  }
  return sizes;
}

Value concatList(TensorBuilder &b, Value list, int64_t axis, ListConcat kind,
                 RankedTensorType declared, ArrayRef<int64_t> sizesOfNone) {
  SmallVector<Value> operands = {list, asNumber(b, axis),
                                 asNumber(b, static_cast<int64_t>(kind))};
  Value shape = callRuntime(b, "sdx_rt_list_concat_sizes", operands,
                            {b.size(declared.getRank())}, b.getI64Type());
  Type element = declared.getElementType();
  operands.push_back(bytesOf(b, element));
  return callRuntime(b, "sdx_rt_list_concat", operands,
                     takeSizes(b, shape, declared, sizesOfNone), element);
}

Value getListItem(TensorBuilder &b, Value list, Value position,
                  RankedTensorType declared, StringRef getter) {
  if (!position)
    position = b.zeros({}, b.getI64Type());
  Value shape = callRuntime(b, "sdx_rt_list_sizes", {list, position},
                            {b.size(declared.getRank())}, b.getI64Type());
  Type element = declared.getElementType();
  return callRuntime(b, getter, {list, position, bytesOf(b, element)},
                     takeSizes(b, shape, declared), element);
}

/// A position, which the schema allows to be i32 or i64, as tensor<i64>.
static Value asPosition(TensorBuilder &b, Value tensor) {
  if (!tensor)
    return {};
  Value scalar = b.convert(getScalar(b, b.getLoc(), tensor), b.getI64Type());
  return tensor::FromElementsOp::create(
      b, RankedTensorType::get({}, b.getI64Type()), scalar);
}

//===----------------------------------------------------------------------===//
// Sequences
//===----------------------------------------------------------------------===//

namespace {

LogicalResult lowerEmpty(Lowering<onnx::SequenceEmptyOp> &b) {
  return b.replace(createList(b, {}, b.getI8Type()));
}

LogicalResult lowerConstruct(Lowering<onnx::SequenceConstructOp> &b) {
  ValueRange inputs = b.in.getInputs();
  return b.replace(createList(b, inputs, elementTypeOf(inputs.front())));
}

LogicalResult lowerInsert(Lowering<onnx::SequenceInsertOp> &b) {
  return b.replace(insertIntoList(b, b.in.getInputSequence(), b.in.getTensor(),
                                  asPosition(b, b.in.getPosition())));
}

LogicalResult lowerErase(Lowering<onnx::SequenceEraseOp> &b) {
  Value position = asPosition(b, b.in.getPosition());
  Value at = position ? position : b.zeros({}, b.getI64Type());
  return b.replace(callForHandle(
      b, "sdx_rt_list_erase",
      {b.in.getInputSequence(), at, asNumber(b, position ? 1 : 0)}));
}

LogicalResult lowerLength(Lowering<onnx::SequenceLengthOp> &b) {
  return b.replace(
      callForHandle(b, "sdx_rt_list_length", b.in.getInputSequence()));
}

LogicalResult lowerAt(Lowering<onnx::SequenceAtOp> &b) {
  RankedTensorType declared = b.declared();
  if (!declared)
    return b.refuse("the rank of the sequence's tensors is not known");
  return b.replace(getListItem(b, b.in.getInputSequence(),
                               asPosition(b, b.in.getPosition()), declared));
}

LogicalResult lowerSplit(Lowering<onnx::SplitToSequenceOp> &b) {
  Value input = b.in.getInput();
  FailureOr<int64_t> axis = normalizeAxis(b.op.getAxis(), b.rank(input));
  if (failed(axis))
    return b.refuse("axis out of range");
  Type i64 = b.getI64Type();
  Value split = b.in.getSplit();
  bool keepsDim = split || b.op.getKeepdims();
  if (!split)
    split = b.filled({}, b.integer(i64, 1));
  else
    split = b.convertElements(split, i64);
  return b.replace(
      callForHandle(b, "sdx_rt_list_split",
                    {input, bytesOf(b, elementTypeOf(input)), split,
                     asNumber(b, *axis), asNumber(b, keepsDim)}));
}

LogicalResult lowerConcat(Lowering<onnx::ConcatFromSequenceOp> &b) {
  RankedTensorType declared = b.declared();
  if (!declared)
    return b.refuse("the rank of the sequence's tensors is not known");
  ListConcat kind = b.op.getNewAxis() ? ListConcat::NewAxis : ListConcat::Axis;
  return b.replace(
      concatList(b, b.in.getInputSequence(), b.op.getAxis(), kind, declared));
}

//===----------------------------------------------------------------------===//
// Optionals
//===----------------------------------------------------------------------===//

bool isTensor(Value original) { return isa<TensorType>(original.getType()); }

/// Nothing, or a list of the one tensor, or the sequence itself.
LogicalResult lowerOptional(Lowering<onnx::OptionalOp> &b) {
  Value input = b.in.getInput();
  if (!input)
    return b.replace(b.zeros({}, b.getI64Type()));
  if (isTensor(b.op.getInput()))
    input = createList(b, input, elementTypeOf(input));
  return b.replace(input);
}

LogicalResult lowerHasElement(Lowering<onnx::OptionalHasElementOp> &b) {
  Value input = b.in.getInput();
  Type i1 = b.getI1Type();
  Value has = b.integer(i1, input ? 1 : 0);
  if (input && isa<onnx::OptType>(b.op.getInput().getType()))
    has = b.compare(arith::CmpIPredicate::ne, b.extract(input, {}),
                    asNumber(b, 0));
  Value stored = storeScalar(b, b.getLoc(), has, i1);
  return b.replace(b.filled({}, stored));
}

LogicalResult lowerGetElement(Lowering<onnx::OptionalGetElementOp> &b) {
  Value input = b.in.getInput();
  if (!isa<onnx::OptType>(b.op.getInput().getType()))
    return b.replace(input);
  if (!isTensor(b.op.getOutput())) {
    createCheck(b, b.getLoc(),
                b.compare(arith::CmpIPredicate::ne, b.extract(input, {}),
                          asNumber(b, 0)),
                "the optional holds no value");
    return b.replace(input);
  }
  RankedTensorType declared = b.declared();
  if (!declared)
    return b.refuse("the rank of the tensor in the optional is not known");
  return b.replace(getListItem(b, input, {}, declared));
}

} // namespace

void populateSequencePatterns(const TypeConverter &converter,
                              RewritePatternSet &patterns) {
  addLowering<onnx::SequenceEmptyOp, lowerEmpty>(patterns, converter);
  addLowering<onnx::SequenceConstructOp, lowerConstruct>(patterns, converter);
  addLowering<onnx::SequenceInsertOp, lowerInsert>(patterns, converter);
  addLowering<onnx::SequenceEraseOp, lowerErase>(patterns, converter);
  addLowering<onnx::SequenceLengthOp, lowerLength>(patterns, converter);
  addLowering<onnx::SequenceAtOp, lowerAt>(patterns, converter);
  addLowering<onnx::SplitToSequenceOp, lowerSplit>(patterns, converter);
  addLowering<onnx::ConcatFromSequenceOp, lowerConcat>(patterns, converter);
  addLowering<onnx::OptionalOp, lowerOptional>(patterns, converter);
  addLowering<onnx::OptionalHasElementOp, lowerHasElement>(patterns, converter);
  addLowering<onnx::OptionalGetElementOp, lowerGetElement>(patterns, converter);
}

} // namespace sardonyx
