//===- Gather.cpp - Reads at computed positions ---------------------------===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Indices are checked at run time: one out of range fails the run.
//
//===----------------------------------------------------------------------===//

#include "Movement/Positions.h"
#include "Support/Checks.h"
#include "Support/DataMovement.h"
#include "Support/Lowering.h"
#include "Support/PackedConstants.h"
#include "Support/Patterns.h"

#include "dialects/ONNX/ONNX.h"

using namespace mlir;

namespace sardonyx {
namespace {

/// As [P, D, T] x [I] -> [P, I, T]: rows of T elements are copied whole.
LogicalResult lowerGather(Lowering<onnx::GatherOp> &b) {
  Value data = b.in.getData(), indices = b.in.getIndices();
  Sizes in = b.dims(data);
  Sizes at = b.dims(indices);
  FailureOr<int64_t> axis = normalizeAxis(b.op.getAxis(), in.size());
  if (failed(axis))
    return b.refuse("axis out of range");
  ArrayRef<Size> all(in);
  Sizes outer(all.take_front(*axis)), inner(all.drop_front(*axis + 1));
  Size rows = b.product(outer);
  Size length = b.product(inner);
  Size count = b.product(at);
  Value flat = b.reshape(data, {rows, in[*axis], length});
  Value list = b.reshape(indices, {count});
  Sizes out = outer;
  out.append(at.begin(), at.end());
  out.append(inner.begin(), inner.end());
  if (RankedTensorType declared = b.declared())
    out = refineSizes(b, out, declared);

  return b.replace(b.reshape(takeSlices(b, flat, list), out));
}

/// From a table of 256 elements by bytes, each of which is a place in it: as a
/// number counted from the front, a negative one from the end. An elementwise
/// operation without checks.
LogicalResult lowerTableOfBytes(Lowering<onnx::GatherOp> &b) {
  constexpr int64_t kBytes = 256;
  auto cast = b.op.getIndices().getDefiningOp<onnx::CastOp>();
  Value table = b.in.getData();
  Value bytes = cast ? b.rewriter.getRemappedValue(cast.getInput()) : Value();
  if (!bytes || !getOnnxElementType(cast.getInput()).isInteger(8) ||
      rankedType(table).getShape() != ArrayRef(kBytes))
    return b.refuse("no table for bytes");
  return b.replace(
      b.map(bytes, elementTypeOf(table),
            [&](TensorBuilder &s, ValueRange args) -> SmallVector<Value> {
              Value place =
                  arith::IndexCastUIOp::create(s, s.getIndexType(), args[0]);
              return {s.extract(table, place)};
            }));
}

/// A scale or a zero point of a matrix.
struct Parameter {
  Value value;
  Type element;
  /// Neighbours along each dimension that share one; 0: all.
  std::array<int64_t, 2> shared = {0, 0};

  /// That of the element at `position`, as f32.
  Value load(TensorBuilder &s, ArrayRef<Value> position) const {
    SmallVector<Value> place;
    for (auto [index, by] : llvm::zip_equal(position, shared))
      if (by)
        place.push_back(
            by == 1
                ? index
                : arith::DivUIOp::create(s, index, s.index(by)).getResult());
    Value loaded = loadScalar(s, s.getLoc(), s.extract(value, place), element);
    return castScalar(s, s.getLoc(), loaded, element, s.getF32Type());
  }
};

/// `given`, a scale or a zero point of `op`; none where it does not fit.
std::optional<Parameter> findParameter(Lowering<onnx::GatherOp> &b,
                                       onnx::DequantizeLinearOp op,
                                       Value given) {
  Value value = b.rewriter.getRemappedValue(given);
  auto matrix = cast<RankedTensorType>(op.getX().getType());
  auto shape = value ? rankedType(value) : RankedTensorType();
  if (!shape || !shape.hasStaticShape())
    return std::nullopt;
  Parameter parameter{value, getOnnxElementType(given)};
  const int64_t block = op.getBlockSize();
  const int64_t axis = op.getAxis() < 0 ? op.getAxis() + 2 : op.getAxis();
  if (shape.getNumElements() == 1) {
    parameter.value = b.reshape(value, {});
  } else if (block == 0 && shape.getRank() == 1 &&
             shape.getDimSize(0) == matrix.getDimSize(axis)) {
    parameter.shared[axis] = 1;
  } else if (block > 0 && shape.getRank() == 2) {
    parameter.shared = {1, 1};
    parameter.shared[axis] = block;
    for (int64_t dim = 0; dim < 2; ++dim)
      if (shape.getDimSize(dim) !=
          llvm::divideCeil(matrix.getDimSize(dim), parameter.shared[dim]))
        return std::nullopt;
  } else {
    return std::nullopt;
  }
  return parameter;
}

/// Rows of a large constant of 2, 4 or 8 bits that DequantizeLinear or Cast
/// makes other numbers of: the numbers of these rows are made.
LogicalResult lowerRowsOfDequantized(Lowering<onnx::GatherOp> &b) {
  constexpr int64_t kLarge = 1 << 16;
  Value data = b.op.getData();
  auto dequantize = data.getDefiningOp<onnx::DequantizeLinearOp>();
  auto cast = data.getDefiningOp<onnx::CastOp>();
  Value source = dequantize ? dequantize.getX()
                 : cast     ? cast.getInput()
                            : Value();
  auto constant =
      source ? source.getDefiningOp<onnx::ConstantOp>() : onnx::ConstantOp();
  auto type = constant ? dyn_cast<RankedTensorType>(constant.getType())
                       : RankedTensorType();
  if (!type || type.getRank() != 2 || type.getNumElements() < kLarge ||
      (b.op.getAxis() != 0 && b.op.getAxis() != -2))
    return b.refuse("no rows of a large constant of few bits");
  std::optional<Parameter> scale, zeroPoint;
  if (dequantize) {
    scale = findParameter(b, dequantize, dequantize.getXScale());
    if (Value given = dequantize.getXZeroPoint())
      zeroPoint = findParameter(b, dequantize, given);
    if (!scale || (dequantize.getXZeroPoint() && !zeroPoint))
      return b.refuse("its scales do not fit");
  }
  std::optional<PackedConstant> numbers = createPackedConstant(b, constant);
  if (!numbers)
    return b.refuse("no constant of 2, 4 or 8 bits");

  const Type element = type.getElementType();
  const Type result = getOnnxElementType(b.op.getOutput());
  const int64_t columns = type.getDimSize(1);
  Value indices = b.in.getIndices(), extent = b.index(type.getDimSize(0));
  Sizes sizes = b.dims(indices);
  sizes.push_back(b.size(columns));
  auto body = [&](OpBuilder &inner, Location at, ValueRange i) -> Value {
    TensorBuilder s(at, inner);
    Value row =
        checkedIndex(inner, at, s.extract(indices, i.drop_back()), extent);
    Value code =
        numbers->extract(s, s.add(s.mul(row, s.index(columns)), i.back()));
    Value number =
        loadScalar(inner, at, s.convert(code, s.getI8Type()), element);
    if (!dequantize)
      return storeScalar(
          inner, at, castScalar(inner, at, number, element, result), result);
    const Type f32 = s.getF32Type();
    Value value = castScalar(inner, at, number, element, f32);
    if (zeroPoint)
      value = s.sub(value, zeroPoint->load(s, {row, i.back()}));
    value = s.mul(value, scale->load(s, {row, i.back()}));
    return storeScalar(inner, at, castScalar(inner, at, value, f32, result),
                       result);
  };
  Value rows =
      createIndexed(b, b.getLoc(), sizes, convertElementType(result), body);
  return b.replace(rows);
}

LogicalResult lowerGatherElements(Lowering<onnx::GatherElementsOp> &b) {
  Location loc = b.getLoc();
  Value data = b.in.getData(), indices = b.in.getIndices();
  Sizes sizes = b.dims(indices);
  FailureOr<int64_t> axis = normalizeAxis(b.op.getAxis(), sizes.size());
  auto type = cast<RankedTensorType>(data.getType());
  if (failed(axis) || type.getRank() != int64_t(sizes.size()))
    return b.refuse("ranks or axis do not fit");
  checkReaches(b, loc, sizes, b.dims(data), *axis);
  Value extent = b.index(b.dim(data, *axis));
  Value result =
      createIndexed(b, loc, sizes, type.getElementType(),
                    [&](OpBuilder &b, Location at, ValueRange i) -> Value {
                      Value raw = tensor::ExtractOp::create(b, at, indices, i);
                      SmallVector<Value> source(i);
                      source[*axis] = checkedIndex(b, at, raw, extent);
                      return tensor::ExtractOp::create(b, at, data, source);
                    });
  return b.replace(result);
}

LogicalResult lowerGatherND(Lowering<onnx::GatherNDOp> &b) {
  Location loc = b.getLoc();
  Value data = b.in.getData(), indices = b.in.getIndices();
  auto type = cast<RankedTensorType>(data.getType());
  Sizes in = b.dims(data);
  Sizes at = b.dims(indices);
  std::optional<int64_t> tuple =
      at.empty() ? std::nullopt : getStaticSize(at.back());
  int64_t batch = b.op.getBatchDims();
  if (!tuple || batch < 0 || batch + *tuple > int64_t(in.size()) ||
      batch >= int64_t(at.size()))
    return b.refuse("length of index tuples unknown");
  int64_t outer = at.size() - 1;
  for (int64_t dim = 0; dim < batch; ++dim)
    checkSameSize(b, loc, at[dim], in[dim],
                  "batch sizes of the operands differ");
  Sizes out(ArrayRef<Size>(at).drop_back());
  out.append(in.begin() + batch + *tuple, in.end());
  if (RankedTensorType declared = b.declared())
    out = refineSizes(b, out, declared);
  SmallVector<Value> extents;
  for (Size size : in)
    extents.push_back(b.index(size));
  Value result =
      createIndexed(b, loc, out, type.getElementType(),
                    [&](OpBuilder &b, Location where, ValueRange i) -> Value {
                      SmallVector<Value> source =
                          getTuple(b, where, indices, i.take_front(outer),
                                   *tuple, extents, batch);
                      llvm::append_range(source, i.drop_front(outer));
                      return tensor::ExtractOp::create(b, where, data, source);
                    });
  return b.replace(result);
}

LogicalResult lowerReverseSequence(Lowering<onnx::ReverseSequenceOp> &b) {
  Location loc = b.getLoc();
  Value input = b.in.getInput(), lengths = b.in.getSequenceLens();
  auto type = cast<RankedTensorType>(input.getType());
  int64_t batch = b.op.getBatchAxis(), time = b.op.getTimeAxis();
  if (type.getRank() < 2 || batch < 0 || time < 0 || batch > 1 || time > 1 ||
      batch == time)
    return b.refuse("axes must be 0 and 1");
  Sizes sizes = b.dims(input);
  Value extent = b.index(sizes[time]);
  if (b.rank(lengths) != 1)
    return b.refuse("sequence_lens must be a list");
  checkSameSize(b, loc, b.dim(lengths, 0), sizes[batch],
                "input 'sequence_lens' does not fit the batch");
  Value result = createIndexed(
      b, loc, sizes, type.getElementType(),
      [&](OpBuilder &b, Location at, ValueRange i) -> Value {
        Value raw = tensor::ExtractOp::create(b, at, lengths, i[batch]);
        Value length = toIndex(b, at, raw);
        length = arith::MinSIOp::create(b, at, length, extent);
        Value inside =
            compare(b, at, arith::CmpIPredicate::slt, i[time], length);
        Value last =
            arith::SubIOp::create(b, at, length, createIndex(b, at, 1));
        Value mirrored = arith::SubIOp::create(b, at, last, i[time]);
        SmallVector<Value> source(i);
        source[time] =
            arith::SelectOp::create(b, at, inside, mirrored, i[time]);
        return tensor::ExtractOp::create(b, at, input, source);
      });
  return b.replace(result);
}

} // namespace

void populateGatherPatterns(const TypeConverter &converter,
                            RewritePatternSet &patterns) {
  addSpecialCase<onnx::GatherOp, lowerTableOfBytes>(patterns, converter);
  addSpecialCase<onnx::GatherOp, lowerRowsOfDequantized>(patterns, converter);
  addLowering<onnx::GatherOp, lowerGather>(patterns, converter);
  addLowering<onnx::GatherElementsOp, lowerGatherElements>(patterns, converter);
  addLowering<onnx::GatherNDOp, lowerGatherND>(patterns, converter);
  addLowering<onnx::ReverseSequenceOp, lowerReverseSequence>(patterns,
                                                             converter);
}

} // namespace sardonyx
