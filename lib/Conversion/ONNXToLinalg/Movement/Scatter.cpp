//===- Scatter.cpp - Writes at computed positions -------------------------===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Indices are checked at run time: one out of range fails the run. Updates of
// one element are written in their order, so only what cannot be the same
// element is split into tasks: positions of dimensions that no index decides
// on.
//
//===----------------------------------------------------------------------===//

#include "Movement/Positions.h"
#include "Support/Checks.h"
#include "Support/DataMovement.h"
#include "Support/Lowering.h"
#include "Support/Patterns.h"
#include "Support/RowLoop.h"

#include "dialects/ONNX/ONNX.h"

using namespace mlir;

namespace sardonyx {
namespace {

/// Elements of a slice for which a range of its own is worth while.
constexpr int64_t kMinColumns = 64;

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

/// The updates of a ScatterElements.
struct ElementScatter {
  Value updates;
  Indices where;
  Sizes sizes; // of the indices
  Sizes in;    // of the data
  int64_t axis;
  Value extent;
  StringRef reduction;
  Type onnxType;

  /// A task for each position of the dimensions before the axis.
  Value byRows(TensorBuilder &b, Value data) const {
    return forEachTask(
               b, ArrayRef<Size>(sizes).take_front(axis), data,
               [&](TensorBuilder &s, ValueRange task, unsigned) {
                 return partAt(s, task);
               },
               [&](TensorBuilder &s, ValueRange task, ValueRange parts) {
                 ArrayRef<Size> counts = ArrayRef<Size>(sizes).drop_front(axis);
                 return write(s, task, Value(), counts, parts);
               })
        .front();
  }

  /// The dimensions before the axis have size 1 in the indices: a task for each
  /// range of the dimension behind the axis.
  Value byColumns(TensorBuilder &b, Value data) const {
    Value row = asOneRow(b, data);
    bool hasColumns = axis + 1 < static_cast<int64_t>(sizes.size());
    Ranges ranges(b, hasColumns ? sizes[axis + 1] : b.size(1), kMinColumns);
    Value zero = b.index(int64_t(0));
    SmallVector<Value> first(axis, zero);
    Values result = forEachTask(
        b, ranges.count(), row,
        [&](TensorBuilder &s, ValueRange task, unsigned) {
          Part part = partAt(s, first);
          if (hasColumns) {
            Value begin = ranges.begin(s, task.front());
            part.offsets[axis + 1] = begin;
            part.sizes[axis + 1] = ranges.size(s, begin);
          }
          part.offsets.insert(part.offsets.begin(), s.size(0));
          part.sizes.insert(part.sizes.begin(), s.size(1));
          part.dropped.push_back(axis);
          return part;
        },
        [&](TensorBuilder &s, ValueRange task, ValueRange parts) {
          Sizes counts(ArrayRef<Size>(sizes).drop_front(axis));
          Value begin;
          if (hasColumns) {
            begin = ranges.begin(s, task.front());
            counts[1] = ranges.size(s, begin);
          }
          return write(s, first, begin, counts, parts);
        });
    return onlyRow(b, result.front());
  }

private:
  /// The data at a position of the dimensions before the axis.
  Part partAt(TensorBuilder &s, ValueRange before) const {
    Part part{Sizes(before.begin(), before.end()), Sizes(axis, s.size(1)),
              llvm::to_vector(llvm::seq<int64_t>(0, axis))};
    part.offsets.resize(in.size(), s.size(0));
    llvm::append_range(part.sizes, ArrayRef<Size>(in).drop_front(axis));
    return part;
  }

  /// Writes the updates at `before` of the dimensions before the axis, `counts`
  /// of the others. The part has the data's dimensions from the axis on; its
  /// columns are those from `firstColumn` on (null: from 0).
  Values write(TensorBuilder &b, ValueRange before, Value firstColumn,
               ArrayRef<Size> counts, ValueRange parts) const {
    auto source = [&](TensorBuilder &s, ValueRange i) {
      SmallVector<Value> from(before);
      llvm::append_range(from, i);
      if (firstColumn && i.size() > 1)
        from[axis + 1] = s.add(from[axis + 1], firstColumn);
      return from;
    };
    int64_t varying = where.varying - axis;
    auto writeOne = [&](TensorBuilder &s, Value place, ValueRange i,
                        ValueRange state) -> Values {
      SmallVector<Value> target(i);
      target.front() = place;
      Value update = s.extract(updates, source(s, i));
      Value old = s.extract(state.front(), target);
      Value next = combine(s, s.getLoc(), reduction, old, update, onnxType);
      return {put(s, next, state.front(), target)};
    };
    return nest(b, counts.take_front(varying), parts,
                [&](TensorBuilder &s, ValueRange i, ValueRange state) {
                  Value raw = where.at(s, s.getLoc(), source(s, i));
                  Value place = checkedIndex(s, s.getLoc(), raw, extent);
                  return nest(
                      s, counts.drop_front(varying), state,
                      [&](TensorBuilder &t, ValueRange j, ValueRange state) {
                        SmallVector<Value> all(i);
                        llvm::append_range(all, j);
                        return writeOne(t, place, all, state);
                      });
                });
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
  if (isEmptyBox(sizes) || isEmptyBox(in))
    return b.replace(data);
  ElementScatter scatter{updates,
                         Indices::of(b, *axis),
                         sizes,
                         in,
                         *axis,
                         extent,
                         b.op.getReduction(),
                         getOnnxElementType(b.op.getData())};
  ArrayRef<Size> before = ArrayRef<Size>(sizes).take_front(*axis);
  bool isOneRow =
      llvm::all_of(before, [](Size size) { return getStaticSize(size) == 1; });
  return b.replace(isOneRow ? scatter.byColumns(b, data)
                            : scatter.byRows(b, data));
}

/// The updates of a ScatterND, whose index tuples name places of the `tuple`
/// first dimensions of the data.
struct TupleScatter {
  Value indices, updates;
  int64_t tuple;
  Sizes outer; // of the indices
  Sizes in;    // of the data
  SmallVector<Value> extents;
  StringRef reduction;
  Type onnxType;

  /// A task for each range of the first dimension behind the tuple's.
  Value write(TensorBuilder &b, Value data) const {
    Value row = asOneRow(b, data);
    bool hasSlices = tuple < static_cast<int64_t>(in.size());
    int64_t least = kMinColumns;
    if (hasSlices)
      for (Size size : ArrayRef<Size>(in).drop_front(tuple + 1))
        least = std::max<int64_t>(
            1, least / std::max<int64_t>(1, getStaticSize(size).value_or(1)));
    Ranges ranges(b, hasSlices ? in[tuple] : b.size(1), least);
    Values result = forEachTask(
        b, ranges.count(), row,
        [&](TensorBuilder &s, ValueRange task, unsigned) {
          Part part{Sizes(in.size() + 1, s.size(0)), in, {0}};
          part.sizes.insert(part.sizes.begin(), s.size(1));
          if (hasSlices) {
            Value begin = ranges.begin(s, task.front());
            part.offsets[tuple + 1] = begin;
            part.sizes[tuple + 1] = ranges.size(s, begin);
          }
          return part;
        },
        [&](TensorBuilder &s, ValueRange task, ValueRange parts) {
          Sizes slice(ArrayRef<Size>(in).drop_front(tuple));
          Value begin;
          if (hasSlices) {
            begin = ranges.begin(s, task.front());
            slice.front() = ranges.size(s, begin);
          }
          return nest(
              s, outer, parts,
              [&](TensorBuilder &t, ValueRange i, ValueRange state) {
                SmallVector<Value> target =
                    getTuple(t, t.getLoc(), indices, i, tuple, extents, 0);
                // A tuple of no indices names all the data, and a slice that is
                // all of its target would take its place.
                return reduction == "none" && hasSlices && tuple > 0
                           ? copySlice(t, i, target, begin, slice, state)
                           : updateSlice(t, i, target, begin, slice, state);
              });
        });
    return onlyRow(b, result.front());
  }

private:
  /// Replaces a range of the slice at `target` by that of the update at `i`.
  Values copySlice(TensorBuilder &b, ValueRange i, ValueRange target,
                   Value begin, ArrayRef<Size> slice, ValueRange state) const {
    Part from = partAt(b, i, slice);
    from.offsets[i.size()] = begin;
    Part to = partAt(b, target, slice);
    Value update = b.slice(updates, from.offsets, from.sizes, from.dropped);
    return {tensor::InsertSliceOp::create(b, update, state.front(), to.offsets,
                                          to.sizes,
                                          Sizes(to.sizes.size(), b.size(1)))};
  }

  /// Combines each element of such a slice with that of the update.
  Values updateSlice(TensorBuilder &b, ValueRange i, ValueRange target,
                     Value begin, ArrayRef<Size> slice,
                     ValueRange state) const {
    return nest(
        b, slice, state,
        [&](TensorBuilder &s, ValueRange j, ValueRange state) -> Values {
          SmallVector<Value> from(i), to(target);
          llvm::append_range(from, j);
          llvm::append_range(to, j);
          if (!j.empty())
            from[i.size()] = s.add(from[i.size()], begin);
          Value update = s.extract(updates, from);
          Value old = s.extract(state.front(), to);
          Value next = combine(s, s.getLoc(), reduction, old, update, onnxType);
          return {put(s, next, state.front(), to)};
        });
  }

  /// The slice at `leading` dimensions of size 1.
  static Part partAt(TensorBuilder &b, ValueRange leading,
                     ArrayRef<Size> slice) {
    Part part{Sizes(leading.begin(), leading.end()),
              Sizes(leading.size(), b.size(1)),
              llvm::to_vector(llvm::seq<int64_t>(0, leading.size()))};
    part.offsets.resize(leading.size() + slice.size(), b.size(0));
    llvm::append_range(part.sizes, slice);
    return part;
  }
};

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
  Sizes sizes(ArrayRef<Size>(at).drop_back()), outer = sizes;
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
  for (auto [need, have] : llvm::zip_equal(sizes, given)) {
    std::optional<int64_t> least = getStaticSize(need);
    std::optional<int64_t> known = getStaticSize(have);
    if (least && known && *known < *least)
      return b.refuse("there are too few updates");
  }
  TupleScatter scatter{indices,
                       updates,
                       *tuple,
                       outer,
                       in,
                       extents,
                       b.op.getReduction(),
                       getOnnxElementType(b.op.getData())};
  return b.replace(scatter.write(b, data));
}

} // namespace

void populateScatterPatterns(const TypeConverter &converter,
                             RewritePatternSet &patterns) {
  addLowering<onnx::ScatterElementsOp, lowerScatterElements>(patterns,
                                                             converter);
  addLowering<onnx::ScatterNDOp, lowerScatterND>(patterns, converter);
}

} // namespace sardonyx
