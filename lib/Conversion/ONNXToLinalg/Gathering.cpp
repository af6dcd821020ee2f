//===- Gathering.cpp - Reads and writes at computed positions -------------===//
//
// Gather and Scatter in all their forms, OneHot, Trilu, EyeLike, Range,
// NonZero, Compress and ReverseSequence. Indices are checked at run time: one
// out of range fails the run.
//
//===----------------------------------------------------------------------===//

#include "Checks.h"
#include "DataMovement.h"
#include "Lowering.h"

#include "dialects/ONNX/ONNX.h"

using namespace mlir;

namespace sardonyx {
namespace {

/// `raw` counted from the end when negative; fails the run unless the result
/// lies in [0, size), and stays inside even then.
Value checkedIndex(OpBuilder &b, Location loc, Value raw, Value size) {
  Value given = toIndex(b, loc, raw), index = given;
  Value zero = createIndex(b, loc, 0);
  Value negative = compare(b, loc, arith::CmpIPredicate::slt, index, zero);
  Value wrapped = arith::AddIOp::create(b, loc, index, size);
  index = arith::SelectOp::create(b, loc, negative, wrapped, index);
  Value inside = compare(b, loc, arith::CmpIPredicate::ult, index, size);
  createCheck(b, loc, inside,
              "index {0} is out of range for a dimension of size {1}",
              {Size(given), Size(size)});
  return arith::SelectOp::create(b, loc, inside, index, zero);
}

/// Fails the run unless `have` is as large as `want` in every
/// dimension but `except`.
void checkReaches(OpBuilder &b, Location loc, ArrayRef<OpFoldResult> want,
                  ArrayRef<OpFoldResult> have, int64_t except = -1) {
  for (auto [dim, sizes] : llvm::enumerate(llvm::zip(want, have)))
    if (int64_t(dim) != except)
      checkSizeAtMost(b, loc, std::get<0>(sizes), std::get<1>(sizes),
                      "sizes of the operands do not fit in dimension " +
                          Twine(dim));
}

/// Runs `body` for every position of `sizes`, row by row, carrying a tensor.
Value forEach(OpBuilder &b, Location loc, ArrayRef<OpFoldResult> sizes,
              Value carried,
              function_ref<Value(OpBuilder &, Location, ValueRange indices,
                                 Value carried)>
                  body) {
  SmallVector<Value> lower(sizes.size(), createIndex(b, loc, 0)),
      step(sizes.size(), createIndex(b, loc, 1)), upper;
  for (Size size : sizes)
    upper.push_back(asIndex(b, loc, size));
  if (sizes.empty())
    return body(b, loc, {}, carried);
  scf::LoopNest nest =
      scf::buildLoopNest(b, loc, lower, upper, step, carried,
                         [&](OpBuilder &inner, Location at, ValueRange indices,
                             ValueRange state) -> scf::ValueVector {
                           return {body(inner, at, indices, state.front())};
                         });
  return nest.results.front();
}

//===----------------------------------------------------------------------===//
// Gather
//===----------------------------------------------------------------------===//

Value byElement(OpBuilder &b, Location loc, Value flat, Value list, Size rows,
                Size extent, Size count, Size length) {
  Value size = asIndex(b, loc, extent);
  Type element = cast<RankedTensorType>(flat.getType()).getElementType();
  return createIndexed(
      b, loc, {rows, count, length}, element,
      [&](OpBuilder &inner, Location at, ValueRange i) -> Value {
        Value raw = tensor::ExtractOp::create(inner, at, list, i[1]);
        Value index = checkedIndex(inner, at, raw, size);
        return tensor::ExtractOp::create(inner, at, flat,
                                         ValueRange{i[0], index, i[2]});
      });
}

Value byRow(OpBuilder &b, Location loc, Value flat, Value list, Size rows,
            Size extent, Size count, Size length) {
  Value size = asIndex(b, loc, extent);
  Type element = cast<RankedTensorType>(flat.getType()).getElementType();
  Value empty = createEmpty(b, loc, {rows, count, length}, element);
  Size one = asSize(b, 1), zero = asSize(b, 0);
  return forEach(
      b, loc, {count, rows}, empty,
      [&](OpBuilder &inner, Location at, ValueRange i, Value out) -> Value {
        Value raw = tensor::ExtractOp::create(inner, at, list, i[0]);
        Value index = checkedIndex(inner, at, raw, size);
        SmallVector<OpFoldResult> from = {i[1], index, zero};
        SmallVector<OpFoldResult> to = {i[1], i[0], zero};
        SmallVector<OpFoldResult> box = {one, one, length};
        Value row = slice(inner, at, flat, from, box);
        return insertSlice(inner, at, row, out, to, box);
      });
}

/// As [P, D, T] x [I] -> [P, I, T]: rows of T elements are copied whole.
LogicalResult lowerGather(Lowering<onnx::GatherOp> &b) {
  Location loc = b.getLoc();
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

  std::optional<int64_t> known = getStaticSize(length);
  Value result =
      known && *known < 8
          ? byElement(b, loc, flat, list, rows, in[*axis], count, length)
          : byRow(b, loc, flat, list, rows, in[*axis], count, length);
  return b.replace(b.reshape(result, out));
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

/// The position that the index tuple `indices[prefix..., :]` names in `data`,
/// after `batch` leading dimensions that both share.
SmallVector<Value> getTuple(OpBuilder &b, Location loc, Value indices,
                            ValueRange prefix, int64_t tuple,
                            ArrayRef<Value> extents, int64_t batch) {
  SmallVector<Value> position(prefix.take_front(batch));
  for (int64_t k = 0; k < tuple; ++k) {
    SmallVector<Value> at(prefix);
    at.push_back(createIndex(b, loc, k));
    Value raw = tensor::ExtractOp::create(b, loc, indices, at);
    position.push_back(checkedIndex(b, loc, raw, extents[batch + k]));
  }
  return position;
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

//===----------------------------------------------------------------------===//
// Scatter
//===----------------------------------------------------------------------===//

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
  Value result =
      forEach(b, loc, sizes, data,
              [&](OpBuilder &b, Location at, ValueRange i, Value out) -> Value {
                Value raw = tensor::ExtractOp::create(b, at, indices, i);
                SmallVector<Value> target(i);
                target[*axis] = checkedIndex(b, at, raw, extent);
                Value update = tensor::ExtractOp::create(b, at, updates, i);
                Value old = tensor::ExtractOp::create(b, at, out, target);
                Value next = combine(b, at, reduction, old, update, onnxType);
                return tensor::InsertOp::create(b, at, next, out, target);
              });
  return b.replace(result);
}

/// `data` with the slice at each tuple of indices replaced by its update.
Value writeSlices(OpBuilder &b, Location loc, Value data, Value indices,
                  Value updates, int64_t tuple, ArrayRef<Value> extents) {
  Sizes in = getSizes(b, loc, data), at = getSizes(b, loc, indices);
  Sizes outer(ArrayRef<Size>(at).drop_back());
  auto type = cast<RankedTensorType>(data.getType());
  auto sliceType = RankedTensorType::get(type.getShape().drop_front(tuple),
                                         type.getElementType());
  ArrayRef<Size> rest = ArrayRef<Size>(in).drop_front(tuple);
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

//===----------------------------------------------------------------------===//
// OneHot, Trilu, EyeLike, Range
//===----------------------------------------------------------------------===//

LogicalResult lowerOneHot(Lowering<onnx::OneHotOp> &b) {
  Location loc = b.getLoc();
  Value indices = b.in.getIndices(), values = b.in.getValues();
  Sizes sizes = b.dims(indices);
  FailureOr<int64_t> axis = normalizeAxis(b.op.getAxis(), sizes.size() + 1);
  if (failed(axis))
    return b.refuse("axis out of range");
  Type depthType = getOnnxElementType(b.op.getDepth());
  Type indexType = getOnnxElementType(b.op.getIndices());
  auto asInteger = [&](OpBuilder &b, Location at, Value stored, Type from) {
    Type i64 = b.getI64Type();
    Value v = castScalar(b, at, loadScalar(b, at, stored, from), from, i64);
    return toIndex(b, at, v);
  };
  Value depth =
      asInteger(b, loc, getScalar(b, loc, b.in.getDepth()), depthType);
  Type element = elementTypeOf(values);
  sizes.insert(sizes.begin() + *axis, getAsOpFoldResult(depth));
  if (failed(checkLength(b, loc, values, 2, "values")) ||
      failed(checkRange(b, loc, sizes[*axis], 0, kMostSize,
                        "input 'depth' is impossible")))
    return b.refuse("depth or values are impossible");
  checkSizes(b, loc, sizes, element);
  if (RankedTensorType declared = b.declared())
    sizes = refineSizes(b, sizes, declared);
  Value result = createIndexed(
      b, loc, sizes, element,
      [&](OpBuilder &b, Location at, ValueRange i) -> Value {
        SmallVector<Value> source(i);
        source.erase(source.begin() + *axis);
        Value raw = tensor::ExtractOp::create(b, at, indices, source);
        Value hot = asInteger(b, at, raw, indexType);
        Value zero = createIndex(b, at, 0), one = createIndex(b, at, 1);
        Value negative = compare(b, at, arith::CmpIPredicate::slt, hot, zero);
        Value wrapped = arith::AddIOp::create(b, at, hot, depth);
        hot = arith::SelectOp::create(b, at, negative, wrapped, hot);
        Value on = compare(b, at, arith::CmpIPredicate::eq, hot, i[*axis]);
        Value which = arith::SelectOp::create(b, at, on, one, zero);
        return tensor::ExtractOp::create(b, at, values, which);
      });
  return b.replace(result);
}

/// The number of a diagonal, so that positions can be added to it. None farther
/// off than the bounds has an element.
Value clampDiagonal(OpBuilder &b, Location loc, Value k) {
  k = arith::MinSIOp::create(b, loc, k, createIndex(b, loc, kMostSize));
  return arith::MaxSIOp::create(b, loc, k, createIndex(b, loc, -kMostSize));
}

LogicalResult lowerTrilu(Lowering<onnx::TriluOp> &b) {
  Value input = b.in.getInput();
  int64_t rank = b.rank(input);
  if (rank < 2)
    return b.refuse("needs a matrix");
  Location loc = b.getLoc();
  Value k = b.index(int64_t(0));
  if (b.in.getK())
    k = clampDiagonal(b, loc, toIndex(b, loc, getScalar(b, loc, b.in.getK())));
  auto keeps =
      b.op.getUpper() ? arith::CmpIPredicate::sge : arith::CmpIPredicate::sle;
  Value result = createIndexed(
      b, loc, b.dims(input), elementTypeOf(input),
      [&](OpBuilder &builder, Location at, ValueRange i) -> Value {
        TensorBuilder s(at, builder);
        Value keep = s.compare(keeps, i[rank - 1], s.add(i[rank - 2], k));
        Value value = s.extract(input, i);
        return s.select(keep, value, s.zero(value.getType()));
      });
  return b.replace(result);
}

LogicalResult lowerEyeLike(Lowering<onnx::EyeLikeOp> &b) {
  Location loc = b.getLoc();
  RankedTensorType declared = b.declared();
  Sizes sizes = b.dims(b.in.getInput());
  if (!declared || sizes.size() != 2)
    return b.refuse("needs a matrix");
  Type element = declared.getElementType();
  int64_t k = std::clamp<int64_t>(b.op.getK(), -kMostSize, kMostSize);
  Value result = createIndexed(
      b, loc, sizes, element,
      [&](OpBuilder &b, Location at, ValueRange i) -> Value {
        Value diagonal =
            arith::AddIOp::create(b, at, i[0], createIndex(b, at, k));
        Value on = compare(b, at, arith::CmpIPredicate::eq, i[1], diagonal);
        TypedAttr one = isa<FloatType>(element)
                            ? TypedAttr(b.getFloatAttr(element, 1.0))
                            : TypedAttr(b.getIntegerAttr(element, 1));
        return arith::SelectOp::create(
            b, at, on, arith::ConstantOp::create(b, at, one),
            arith::ConstantOp::create(b, at, b.getZeroAttr(element)));
      });
  return b.replace(result);
}

Value countFloats(OpBuilder &b, Location loc, Value start, Value limit,
                  Value delta) {
  Type type = delta.getType();
  Value zero = createConstant(b, loc, type, 0);
  createCheck(
      b, loc,
      arith::CmpFOp::create(b, loc, arith::CmpFPredicate::UNE, delta, zero),
      "input 'delta' is zero");
  Value span = arith::SubFOp::create(b, loc, limit, start);
  Value ratio = arith::DivFOp::create(b, loc, span, delta);
  Value up = math::CeilOp::create(b, loc, ratio);
  Value bound = createConstant(b, loc, type, double(kMostSize));
  // Not a number, and what is no integer, has no length.
  createCheck(
      b, loc,
      arith::CmpFOp::create(b, loc, arith::CmpFPredicate::OLE, up, bound),
      "the bounds have no possible number of elements between them");
  up = arith::MinimumFOp::create(b, loc, up, bound);
  up = arith::MaximumFOp::create(b, loc, up, zero);
  return toIndex(b, loc, arith::FPToSIOp::create(b, loc, b.getI64Type(), up));
}

Value countIntegers(OpBuilder &b, Location loc, Value start, Value limit,
                    Value delta) {
  Type i64 = b.getI64Type();
  auto widen = [&](Value v) -> Value {
    if (v.getType() == i64)
      return v;
    return arith::ExtSIOp::create(b, loc, i64, v);
  };
  start = widen(start);
  limit = widen(limit);
  Value span = arith::SubIOp::create(b, loc, limit, start);
  Value step = widen(delta);
  Value zero = createIntConstant(b, loc, i64, 0);
  Value nonZero = compare(b, loc, arith::CmpIPredicate::ne, step, zero);
  createCheck(b, loc, nonZero, "input 'delta' is zero");
  // The difference wrapped around where its sign is wrong.
  Value grows = compare(b, loc, arith::CmpIPredicate::sge, limit, start);
  Value isPositive = compare(b, loc, arith::CmpIPredicate::sge, span, zero);
  createCheck(b, loc,
              compare(b, loc, arith::CmpIPredicate::eq, grows, isPositive),
              "inputs 'start' and 'limit' are too far apart");
  step = arith::SelectOp::create(b, loc, nonZero, step,
                                 createIntConstant(b, loc, i64, 1));
  return toIndex(b, loc, arith::CeilDivSIOp::create(b, loc, span, step));
}

/// max(ceil((limit - start) / delta), 0) elements start + i * delta.
LogicalResult lowerRange(Lowering<onnx::RangeOp> &b) {
  Location loc = b.getLoc();
  Type onnxType = getOnnxElementType(b.op.getStart());
  auto load = [&](Value tensor) {
    return loadScalar(b, loc, getScalar(b, loc, tensor), onnxType);
  };
  Value start = load(b.in.getStart()), limit = load(b.in.getLimit()),
        delta = load(b.in.getDelta());
  Type type = start.getType();
  Value count = isa<FloatType>(type)
                    ? countFloats(b, loc, start, limit, delta)
                    : countIntegers(b, loc, start, limit, delta);
  RankedTensorType declared = b.declared();
  if (!declared)
    return b.refuse("result of unknown rank");
  count = arith::MaxSIOp::create(b, loc, count, createIndex(b, loc, 0));
  Sizes sizes = {Size(count)};
  checkSizes(b, loc, sizes, declared.getElementType());
  sizes = refineSizes(b, sizes, declared);
  Value result = createIndexed(
      b, loc, sizes, declared.getElementType(),
      [&](OpBuilder &b, Location at, ValueRange i) -> Value {
        Value n = arith::IndexCastOp::create(b, at, b.getI64Type(), i[0]);
        Value value;
        if (isa<FloatType>(type)) {
          Value f = arith::SIToFPOp::create(b, at, type, n);
          f = arith::MulFOp::create(b, at, f, delta);
          value = arith::AddFOp::create(b, at, start, f);
        } else {
          Value f = n;
          if (type.getIntOrFloatBitWidth() < 64)
            f = arith::TruncIOp::create(b, at, type, n);
          f = arith::MulIOp::create(b, at, f, delta);
          value = arith::AddIOp::create(b, at, start, f);
        }
        return storeScalar(b, at, value, onnxType);
      });
  return b.replace(result);
}

//===----------------------------------------------------------------------===//
// NonZero, Compress: results whose sizes the data decides
//===----------------------------------------------------------------------===//

/// The number of positions of `sizes` for which `test` (i1) holds.
Value countIf(OpBuilder &b, Location loc, ArrayRef<OpFoldResult> sizes,
              function_ref<Value(OpBuilder &, Location, ValueRange)> test) {
  return forEach(
      b, loc, sizes, createIndex(b, loc, 0),
      [&](OpBuilder &inner, Location at, ValueRange i, Value count) -> Value {
        Value one = createIndex(inner, at, 1), zero = createIndex(inner, at, 0);
        Value add =
            arith::SelectOp::create(inner, at, test(inner, at, i), one, zero);
        return arith::AddIOp::create(inner, at, count, add);
      });
}

Value isTrue(OpBuilder &b, Location loc, Value stored, Type onnxType) {
  return castScalar(b, loc, loadScalar(b, loc, stored, onnxType), onnxType,
                    b.getI1Type());
}

LogicalResult lowerNonZero(Lowering<onnx::NonZeroOp> &b) {
  Location loc = b.getLoc();
  Value x = b.in.getX();
  Type onnxType = getOnnxElementType(b.op.getX());
  Sizes sizes = b.dims(x);
  auto test = [&](OpBuilder &b, Location at, ValueRange i) {
    return isTrue(b, at, tensor::ExtractOp::create(b, at, x, i), onnxType);
  };
  Value count = countIf(b, loc, sizes, test);
  Sizes out = {b.size(sizes.size()), Size(count)};
  if (RankedTensorType declared = b.declared())
    out = refineSizes(b, out, declared);
  Value empty = b.empty(out, b.getI64Type());
  if (sizes.empty()) // The rank of a scalar is 0: a [0, n] result.
    return b.replace(empty);
  SmallVector<Value> lower(sizes.size(), createIndex(b, loc, 0)),
      step(sizes.size(), createIndex(b, loc, 1)), upper;
  for (Size size : sizes)
    upper.push_back(b.index(size));
  scf::LoopNest nest = scf::buildLoopNest(
      b, loc, lower, upper, step, ValueRange{empty, createIndex(b, loc, 0)},
      [&](OpBuilder &b, Location at, ValueRange i,
          ValueRange state) -> scf::ValueVector {
        auto found = scf::IfOp::create(
            b, at, test(b, at, i),
            [&](OpBuilder &then, Location where) {
              Value out = state[0];
              for (auto [dim, index] : llvm::enumerate(i)) {
                Value value = arith::IndexCastOp::create(
                    then, where, then.getI64Type(), index);
                Value row = createIndex(then, where, dim);
                out = tensor::InsertOp::create(then, where, value, out,
                                               ValueRange{row, state[1]});
              }
              Value next = arith::AddIOp::create(then, where, state[1],
                                                 createIndex(then, where, 1));
              scf::YieldOp::create(then, where, ValueRange{out, next});
            },
            [&](OpBuilder &otherwise, Location where) {
              scf::YieldOp::create(otherwise, where, state);
            });
        return {found.getResult(0), found.getResult(1)};
      });
  return b.replace(nest.results[0]);
}

LogicalResult lowerCompress(Lowering<onnx::CompressOp> &b) {
  Location loc = b.getLoc();
  Value input = b.in.getInput(), condition = b.in.getCondition();
  Sizes sizes = b.dims(input);
  int64_t axis = 0;
  if (b.op.getAxis()) {
    FailureOr<int64_t> normal = normalizeAxis(*b.op.getAxis(), sizes.size());
    if (failed(normal))
      return b.refuse("axis out of range");
    axis = *normal;
  } else {
    sizes = {b.product(sizes)};
    input = b.reshape(input, sizes);
  }
  // Conditions past the axis' end select nothing.
  Value extent = b.index(sizes[axis]);
  Value length = b.index(b.dim(condition, 0));
  length = arith::MinSIOp::create(b, loc, length, extent);
  Type boolean = b.getI1Type();
  auto test = [&](OpBuilder &b, Location at, ValueRange i) {
    return loadScalar(b, at, tensor::ExtractOp::create(b, at, condition, i),
                      boolean);
  };
  Sizes out = sizes, box = sizes;
  out[axis] = countIf(b, loc, {Size(length)}, test);
  if (RankedTensorType declared = b.declared())
    out = refineSizes(b, out, declared);
  box[axis] = b.size(1);
  Type element = elementTypeOf(input);
  Value empty = b.empty(out, element);
  Value zero = createIndex(b, loc, 0);
  auto loop = scf::ForOp::create(
      b, loc, zero, length, createIndex(b, loc, 1), ValueRange{empty, zero},
      [&](OpBuilder &b, Location at, Value i, ValueRange state) {
        auto found = scf::IfOp::create(
            b, at, test(b, at, i),
            [&](OpBuilder &then, Location where) {
              Sizes from(sizes.size(), asSize(then, 0)), to = from;
              from[axis] = i;
              to[axis] = state[1];
              Value part = slice(then, where, input, from, box);
              Value next = insertSlice(then, where, part, state[0], to, box);
              Value count = arith::AddIOp::create(then, where, state[1],
                                                  createIndex(then, where, 1));
              scf::YieldOp::create(then, where, ValueRange{next, count});
            },
            [&](OpBuilder &otherwise, Location where) {
              scf::YieldOp::create(otherwise, where, state);
            });
        scf::YieldOp::create(b, at, found.getResults());
      });
  return b.replace(loop.getResult(0));
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
  addLowering<onnx::GatherOp, lowerGather>(patterns, converter);
  addLowering<onnx::GatherElementsOp, lowerGatherElements>(patterns, converter);
  addLowering<onnx::GatherNDOp, lowerGatherND>(patterns, converter);
  addLowering<onnx::ScatterElementsOp, lowerScatterElements>(patterns,
                                                             converter);
  addLowering<onnx::ScatterNDOp, lowerScatterND>(patterns, converter);
  addLowering<onnx::OneHotOp, lowerOneHot>(patterns, converter);
  addLowering<onnx::EyeLikeOp, lowerEyeLike>(patterns, converter);
  addLowering<onnx::RangeOp, lowerRange>(patterns, converter);
  addLowering<onnx::NonZeroOp, lowerNonZero>(patterns, converter);
  addLowering<onnx::CompressOp, lowerCompress>(patterns, converter);
  addLowering<onnx::ReverseSequenceOp, lowerReverseSequence>(patterns,
                                                             converter);
  addLowering<onnx::TriluOp, lowerTrilu>(patterns, converter);
}

} // namespace sardonyx
