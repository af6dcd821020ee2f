//===- Scatter.cpp - Writes at computed positions -------------------------===//
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
#include "Support/Patterns.h"

#include "dialects/ONNX/ONNX.h"

using namespace mlir;

namespace sardonyx {
namespace {

/// How an update meets the element that is there.
LogicalResult isKnownReduction(StringRef name, Value data) {
  if (isStringType(getOnnxElementType(data)))
    return success(name == "none");
  return success(
      llvm::is_contained({"none", "add", "mul", "min", "max"}, name));
}

Value combine(OpBuilder &b, Location loc, StringRef reduction, Value old,
              Value update, Type onnxType) {
  if (reduction == "none")
    return update;
  Value x = loadScalar(b, loc, old, onnxType);
  Value y = loadScalar(b, loc, update, onnxType);
  bool isFloat = isa<FloatType>(x.getType());
  bool isUnsigned = isUnsignedType(onnxType) || isBoolType(onnxType);
  Value z;
  if (reduction == "add")
    z = isFloat ? arith::AddFOp::create(b, loc, x, y).getResult()
        : isBoolType(onnxType)
            ? arith::OrIOp::create(b, loc, x, y).getResult()
            : arith::AddIOp::create(b, loc, x, y).getResult();
  else if (reduction == "mul")
    z = isFloat ? arith::MulFOp::create(b, loc, x, y).getResult()
                : arith::MulIOp::create(b, loc, x, y).getResult();
  else if (reduction == "min")
    z = isFloat      ? arith::MinimumFOp::create(b, loc, x, y).getResult()
        : isUnsigned ? arith::MinUIOp::create(b, loc, x, y).getResult()
                     : arith::MinSIOp::create(b, loc, x, y).getResult();
  else
    z = isFloat      ? arith::MaximumFOp::create(b, loc, x, y).getResult()
        : isUnsigned ? arith::MaxUIOp::create(b, loc, x, y).getResult()
                     : arith::MaxSIOp::create(b, loc, x, y).getResult();
  return storeScalar(b, loc, z, onnxType);
}

/// The indices of a scatter, of which an Expand may have made all along some
/// last dimensions equal.
struct Indices {
  /// What the Expand read, or the indices themselves.
  Value tensor;
  /// The indices' rank, and how many leading dimensions they differ in.
  int64_t rank, varying;

  static Indices of(Lowering<onnx::ScatterElementsOp> &b, int64_t axis) {
    Value all = b.in.getIndices();
    int64_t rank = rankedType(all).getRank();
    auto expand = b.op.getIndices().getDefiningOp<onnx::ExpandOp>();
    Value source =
        expand ? b.rewriter.getRemappedValue(expand.getInput()) : Value();
    auto type = source ? dyn_cast<RankedTensorType>(source.getType())
                       : RankedTensorType();
    if (!type || type.getElementType() != elementTypeOf(all) ||
        type.getRank() > rank || llvm::is_contained(type.getShape(), 0))
      return {all, rank, rank};
    int64_t varying = type.getRank();
    while (varying > 0 && type.getDimSize(varying - 1) == 1)
      --varying;
    varying = std::max(rank - type.getRank() + varying, axis + 1);
    return varying < rank ? Indices{source, rank, varying}
                          : Indices{all, rank, rank};
  }

  /// That at `position`, of the leading dimensions.
  Value at(OpBuilder &b, Location loc, ValueRange position) const {
    auto type = cast<RankedTensorType>(tensor.getType());
    int64_t added = rank - type.getRank();
    Value zero = arith::ConstantIndexOp::create(b, loc, 0);
    SmallVector<Value> place;
    for (int64_t dim = 0; dim < type.getRank(); ++dim) {
      if (type.getDimSize(dim) == 1 || dim + added >= varying) {
        place.push_back(zero);
        continue;
      }
      Value index = position[dim + added];
      // A size that is not known may be 1, and expanded as well.
      if (type.isDynamicDim(dim) && varying < rank) {
        Value size = asIndex(b, loc, getSizes(b, loc, tensor)[dim]);
        Value last = arith::SubIOp::create(
            b, loc, size, arith::ConstantIndexOp::create(b, loc, 1));
        index = arith::MinUIOp::create(b, loc, index, last);
      }
      place.push_back(index);
    }
    return tensor::ExtractOp::create(b, loc, tensor, place);
  }
};

LogicalResult lowerScatterElements(Lowering<onnx::ScatterElementsOp> &b) {
  Location loc = b.getLoc();
  Value data = b.in.getData(), indices = b.in.getIndices();
  Value updates = b.in.getUpdates();
  Sizes sizes = b.dims(indices);
  FailureOr<int64_t> axis = normalizeAxis(b.op.getAxis(), sizes.size());
  if (failed(axis) ||
      failed(isKnownReduction(b.op.getReduction(), b.op.getData())))
    return b.refuse("axis or reduction not known");
  Sizes in = b.dims(data);
  if (in.size() != sizes.size())
    return b.refuse("operands differ in rank");
  checkReaches(b, loc, sizes, in, *axis);
  checkReaches(b, loc, sizes, b.dims(updates));
  Value extent = b.index(in[*axis]);
  Type onnxType = getOnnxElementType(b.op.getData());
  StringRef reduction = b.op.getReduction();
  const Indices where = Indices::of(b, *axis);
  ArrayRef<Size> outer = ArrayRef<Size>(sizes).take_front(where.varying);
  ArrayRef<Size> inner = ArrayRef<Size>(sizes).drop_front(where.varying);
  Value result = forEach(
      b, loc, outer, data,
      [&](OpBuilder &b, Location at, ValueRange i, Value out) -> Value {
        Value place = checkedIndex(b, at, where.at(b, at, i), extent);
        return forEach(
            b, at, inner, out,
            [&](OpBuilder &b, Location at, ValueRange j, Value out) -> Value {
              SmallVector<Value> from(i);
              llvm::append_range(from, j);
              SmallVector<Value> target(from);
              target[*axis] = place;
              Value update = tensor::ExtractOp::create(b, at, updates, from);
              Value old = tensor::ExtractOp::create(b, at, out, target);
              Value next = combine(b, at, reduction, old, update, onnxType);
              return tensor::InsertOp::create(b, at, next, out, target);
            });
      });
  return b.replace(result);
}

/// `data` with the slice at each tuple of indices replaced by its update.
Value writeSlices(OpBuilder &b, Location loc, Value data, Value indices,
                  Value updates, int64_t tuple, ArrayRef<Value> extents) {
  Sizes in = getSizes(b, loc, data), at = getSizes(b, loc, indices);
  Sizes outer(ArrayRef<Size>(at).drop_back());
  auto type = cast<RankedTensorType>(data.getType());
  // Sizes may be known better than the data's type says.
  ArrayRef<Size> rest = ArrayRef<Size>(in).drop_front(tuple);
  RankedTensorType sliceType = getTensorType(rest, type.getElementType());
  // Slices of a tensor whose leading sizes are 1.
  auto describe = [&](OpBuilder &b, ValueRange leading, Sizes &offsets,
                      Sizes &sizes, Sizes &strides) {
    offsets.assign(leading.begin(), leading.end());
    offsets.append(rest.size(), b.getIndexAttr(0));
    sizes.assign(leading.size(), b.getIndexAttr(1));
    sizes.append(rest.begin(), rest.end());
    strides.assign(sizes.size(), b.getIndexAttr(1));
  };
  return forEach(
      b, loc, outer, data,
      [&](OpBuilder &b, Location where, ValueRange i, Value out) -> Value {
        SmallVector<Value> target =
            getTuple(b, where, indices, i, tuple, extents, 0);
        Sizes offsets, sizes, strides;
        describe(b, i, offsets, sizes, strides);
        Value update = tensor::ExtractSliceOp::create(
            b, where, sliceType, updates, offsets, sizes, strides);
        describe(b, target, offsets, sizes, strides);
        return tensor::InsertSliceOp::create(b, where, update, out, offsets,
                                             sizes, strides);
      });
}

LogicalResult lowerScatterND(Lowering<onnx::ScatterNDOp> &b) {
  Location loc = b.getLoc();
  Value data = b.in.getData(), indices = b.in.getIndices();
  Value updates = b.in.getUpdates();
  Sizes in = b.dims(data);
  Sizes at = b.dims(indices);
  std::optional<int64_t> tuple =
      at.empty() ? std::nullopt : getStaticSize(at.back());
  if (!tuple || *tuple > int64_t(in.size()) ||
      failed(isKnownReduction(b.op.getReduction(), b.op.getData())))
    return b.refuse("length of index tuples unknown");
  int64_t outer = at.size() - 1;
  Sizes sizes(ArrayRef<Size>(at).drop_back());
  sizes.append(in.begin() + *tuple, in.end());
  Sizes given = b.dims(updates);
  if (given.size() != sizes.size())
    return b.refuse("the updates' rank does not fit");
  checkReaches(b, loc, sizes, given);
  // There are no slices of what has no elements.
  auto isEmpty = [](Size size) { return getStaticSize(size) == 0; };
  if (llvm::any_of(in, isEmpty) || llvm::any_of(given, isEmpty))
    return b.replace(data);
  SmallVector<Value> extents;
  for (Size size : in)
    extents.push_back(b.index(size));
  Type onnxType = getOnnxElementType(b.op.getData());
  StringRef reduction = b.op.getReduction();
  for (auto [need, have] : llvm::zip_equal(sizes, given)) {
    std::optional<int64_t> least = getStaticSize(need);
    std::optional<int64_t> known = getStaticSize(have);
    if (least && known && *known < *least)
      return b.refuse("there are too few updates");
  }
  if (reduction == "none" && *tuple < int64_t(in.size()))
    return b.replace(
        writeSlices(b, loc, data, indices, updates, *tuple, extents));
  Value result = forEach(
      b, loc, sizes, data,
      [&](OpBuilder &b, Location where, ValueRange i, Value out) -> Value {
        SmallVector<Value> target = getTuple(
            b, where, indices, i.take_front(outer), *tuple, extents, 0);
        llvm::append_range(target, i.drop_front(outer));
        Value update = tensor::ExtractOp::create(b, where, updates, i);
        Value old = tensor::ExtractOp::create(b, where, out, target);
        Value next = combine(b, where, reduction, old, update, onnxType);
        return tensor::InsertOp::create(b, where, next, out, target);
      });
  return b.replace(result);
}

} // namespace

void populateScatterPatterns(const TypeConverter &converter,
                             RewritePatternSet &patterns) {
  addLowering<onnx::ScatterElementsOp, lowerScatterElements>(patterns,
                                                             converter);
  addLowering<onnx::ScatterNDOp, lowerScatterND>(patterns, converter);
}

} // namespace sardonyx
