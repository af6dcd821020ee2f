//===- Features.cpp - Features and linear models of ai.onnx.ml ------------===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "ML/PostTransform.h"
#include "ML/Tables.h"
#include "Support/Checks.h"
#include "Support/DataMovement.h"
#include "Support/Patterns.h"
#include "dialects/ONNX/ONNX.h"

#include <cmath>

using namespace mlir;

namespace sardonyx {
namespace {

Value listOf(TensorBuilder &b, ArrayRef<double> values) {
  return constantNumbers(b, static_cast<int64_t>(values.size()), values,
                         b.getF32Type());
}

/// How to read one number for each feature, the last dimension of a tensor of
/// `rank`, or the one for all.
AffineMap featureMap(TensorBuilder &b, int64_t rank, size_t count) {
  if (count == 1)
    return AffineMap::get(rank, 0, b.getAffineConstantExpr(0), b.getContext());
  return b.dimsMap(rank, {rank - 1});
}

/// Checks that there is one number for each feature of `x`, or for all.
LogicalResult checkCount(TensorBuilder &b, Operation *op, Value x, size_t count,
                         const Twine &name) {
  int64_t rank = rankedType(x).getRank();
  if (rank < 1 || count == 0)
    return refuse(op, "the input or '" + name + "' has no features");
  if (count == 1)
    return success();
  OpFoldResult features = b.dim(x, rank - 1);
  if (!b.sameSize(features, b.size(static_cast<int64_t>(count)),
                  "attribute '" + name +
                      "' is not as long as there are "
                      "features"))
    return refuse(op, "attribute '" + name +
                          "' is not as long as there are features");
  return success();
}

LogicalResult lowerScaler(Lowering<onnx::MLScalerOp> &b) {
  Value x = asFloats(b, b.in.getX(), getOnnxElementType(b.op.getX()));
  std::vector<double> offset = getNumbers(b.op, "offset");
  std::vector<double> scale = getNumbers(b.op, "scale");
  if (offset.empty())
    offset = {0};
  if (scale.empty())
    scale = {1};
  if (failed(checkCount(b, b.op, x, offset.size(), "offset")) ||
      failed(checkCount(b, b.op, x, scale.size(), "scale")))
    return failure();
  int64_t rank = b.rank(x);
  return b.replace(b.elementwise(
      b.dims(x), {x, listOf(b, offset), listOf(b, scale)},
      {b.identityMap(rank), featureMap(b, rank, offset.size()),
       featureMap(b, rank, scale.size())},
      {b.getF32Type()}, [](TensorBuilder &s, ValueRange args) {
        return SmallVector<Value>{s.mul(s.sub(args[0], args[1]), args[2])};
      }));
}

/// Divides by a norm of each row; one of zero changes nothing.
LogicalResult lowerNormalizer(Lowering<onnx::MLNormalizerOp> &b) {
  Value x = asFloats(b, b.in.getX(), getOnnxElementType(b.op.getX()));
  StringRef norm = b.op.getNorm();
  int64_t rank = b.rank(x);
  if (rank < 1)
    return b.refuse("the input has no features");
  Type f32 = b.getF32Type();
  Value zero = b.scalar(f32, 0);
  Value sizes = createReduction(
      b, b.getLoc(), TypedTensor{x, f32}, {rank - 1}, f32, zero,
      [&](OpBuilder &builder, Location loc, ValueRange args) -> Value {
        TensorBuilder s(loc, builder);
        if (norm == "L2")
          return s.add(s.mul(args[0], args[0]), args[1]);
        Value size = math::AbsFOp::create(s, args[0]);
        return norm == "L1" ? s.add(size, args[1]) : s.maximum(size, args[1]);
      });
  SmallVector<int64_t> rows = llvm::to_vector(llvm::seq<int64_t>(0, rank - 1));
  return b.replace(b.elementwise(
      b.dims(x), {x, sizes}, {b.identityMap(rank), b.dimsMap(rank, rows)},
      {f32}, [&](TensorBuilder &s, ValueRange args) {
        Value size = args[1];
        if (norm == "L2")
          size = math::SqrtOp::create(s, size);
        Value isNone = arith::CmpFOp::create(s, arith::CmpFPredicate::OEQ, size,
                                             s.scalar(f32, 0));
        size = s.select(isNone, s.scalar(f32, 1), size);
        return SmallVector<Value>{arith::DivFOp::create(s, args[0], size)};
      }));
}

LogicalResult lowerBinarizer(Lowering<onnx::MLBinarizerOp> &b) {
  Value x = b.in.getX();
  Type type = getOnnxElementType(b.op.getX());
  Type wide = type.isF64() ? type : Type(b.getF32Type());
  double threshold = b.op.getThreshold().convertToDouble();
  return b.replace(createMapped(
      b, b.getLoc(), TypedTensor{x, type}, b.identityMap(b.rank(x)), b.dims(x),
      type, [&](OpBuilder &builder, Location loc, ValueRange args) {
        TensorBuilder s(loc, builder);
        Value value = castScalar(s, loc, args[0], type, wide);
        Value above = s.greater(value, s.scalar(wide, threshold));
        return castScalar(s, loc, above, s.getI1Type(), type);
      }));
}

LogicalResult lowerImputer(Lowering<onnx::MLImputerOp> &b) {
  Value x = b.in.getX();
  Type type = getOnnxElementType(b.op.getX());
  bool isFloat = isa<FloatType>(type);
  std::vector<double> floats = getNumbers(b.op, "imputed_value_floats");
  ArrayRef<int64_t> ints = getInts(b.op, "imputed_value_int64s");
  size_t count = isFloat ? floats.size() : ints.size();
  if (failed(checkCount(b, b.op, x, count, "imputed_value")))
    return failure();
  Type stored = convertElementType(type);
  SmallVector<Attribute> values;
  for (size_t i = 0; i < count; ++i)
    values.push_back(isFloat ? Attribute(b.getFloatAttr(stored, floats[i]))
                             : b.getIntegerAttr(stored, ints[i]));
  Value list = arith::ConstantOp::create(
      b,
      DenseElementsAttr::get(
          RankedTensorType::get(static_cast<int64_t>(count), stored), values));
  double replaced = b.op.getReplacedValueFloat().convertToDouble();
  int64_t replacedInt = b.op.getReplacedValueInt64();
  int64_t rank = b.rank(x);
  auto isMissing = [&](TensorBuilder &s, Value value) -> Value {
    if (!isFloat)
      return s.compare(arith::CmpIPredicate::eq, value,
                       s.integer(value.getType(), replacedInt));
    if (std::isnan(replaced))
      return arith::CmpFOp::create(s, arith::CmpFPredicate::UNO, value, value);
    return arith::CmpFOp::create(s, arith::CmpFPredicate::OEQ, value,
                                 s.scalar(value.getType(), replaced));
  };
  return b.replace(b.elementwise(
      b.dims(x), {x, list}, {b.identityMap(rank), featureMap(b, rank, count)},
      {stored}, [&](TensorBuilder &s, ValueRange args) {
        return SmallVector<Value>{
            s.select(isMissing(s, args[0]), args[1], args[0])};
      }));
}

/// The last dimension at the indices; of a list a matrix with one row.
LogicalResult lowerExtractor(Lowering<onnx::MLArrayFeatureExtractorOp> &b) {
  Value x = b.in.getX(), indices = b.in.getY();
  int64_t rank = b.rank(x);
  if (rank < 1)
    return b.refuse("the input has no features");
  indices = b.reshape(indices, {b.product(b.dims(indices))});
  OpFoldResult features = b.dim(x, rank - 1);
  Sizes sizes = b.dims(x);
  if (rank == 1)
    sizes.insert(sizes.begin(), b.size(1));
  sizes.back() = b.dim(indices, 0);
  return b.replace(createIndexed(
      b, b.getLoc(), sizes, elementTypeOf(x),
      [&](OpBuilder &builder, Location loc, ValueRange i) -> Value {
        TensorBuilder s(loc, builder);
        Value at = s.convert(s.extract(indices, i.back()), s.getIndexType());
        createCheck(s, loc,
                    s.compare(arith::CmpIPredicate::ult, at, s.index(features)),
                    "index {0} lies outside of {1} features",
                    {OpFoldResult(at), features});
        SmallVector<Value> place(rank == 1 ? i.drop_front() : i);
        place.back() = at;
        return s.extract(x, place);
      }));
}

/// Each input cut or filled with zeros to as many columns as it should have,
/// side by side.
LogicalResult lowerVectorizer(Lowering<onnx::MLFeatureVectorizerOp> &b) {
  ArrayRef<int64_t> widths = getInts(b.op, "inputdimensions");
  ValueRange inputs = b.in.getX();
  if (widths.size() != inputs.size())
    return b.refuse("'inputdimensions' is not as long as there are inputs");
  int64_t total = 0;
  OpFoldResult rows;
  SmallVector<Value> parts;
  for (auto [original, input, width] :
       llvm::zip_equal(b.op.getX(), inputs, widths)) {
    Value x = asFloats(b, input, getOnnxElementType(original));
    constexpr int64_t kMaxColumns = int64_t(1) << 31;
    if (width < 0 || width > kMaxColumns || total > kMaxColumns ||
        b.rank(x) < 1 || b.rank(x) > 2)
      return b.refuse("an input is no matrix, or its width is impossible");
    if (b.rank(x) == 1)
      x = b.reshape(x, {b.dim(x, 0), b.size(1)});
    rows = rows ? b.sameSize(rows, b.dim(x, 0), "inputs differ in rows")
                : b.dim(x, 0);
    if (!rows)
      return b.refuse("inputs differ in rows");
    total += width;
    parts.push_back(x);
  }
  Sizes sizes = {rows, b.size(total)};
  checkSizes(b, b.getLoc(), sizes, b.getF32Type());
  Value result = b.zeros(sizes, b.getF32Type());
  int64_t begin = 0;
  for (auto [x, width] : llvm::zip_equal(parts, widths)) {
    Value have =
        arith::MinSIOp::create(b, b.index(b.dim(x, 1)), b.index(width));
    Sizes sizes = {rows, getAsOpFoldResult(have)};
    Value part = b.slice(x, {b.size(0), b.size(0)}, sizes);
    result = b.insert(part, result, {b.size(0), b.size(begin)}, sizes);
    begin += width;
  }
  return b.replace(result);
}

//===----------------------------------------------------------------------===//
// Linear models
//===----------------------------------------------------------------------===//

/// x times the transpose of `coefficients` [targets, features] and
/// `intercepts`; null where these do not fit.
Value linearScores(TensorBuilder &b, Value x, ArrayRef<double> coefficients,
                   ArrayRef<double> intercepts, int64_t targets) {
  int64_t count = coefficients.size();
  if (targets < 1 || count % targets != 0 || rankedType(x).getRank() != 2)
    return {};
  int64_t features = count / targets;
  if (!b.sameSize(b.dim(x, 1), b.size(features),
                  "there are not as many coefficients as features"))
    return {};
  if (intercepts.size() > 1 &&
      intercepts.size() != static_cast<size_t>(targets))
    return {};
  SmallVector<double> columns(count);
  for (int64_t t = 0; t < targets; ++t)
    for (int64_t f = 0; f < features; ++f)
      columns[f * targets + t] = coefficients[t * features + f];
  Type f32 = b.getF32Type();
  Value weights = constantNumbers(b, {features, targets}, columns, f32);
  Sizes sizes = {b.dim(x, 0), b.size(targets)};
  Value product =
      linalg::MatmulOp::create(b, ValueRange{x, weights}, b.zeros(sizes, f32))
          .getResult(0);
  if (intercepts.empty())
    return product;
  return b
      .elementwise(sizes, {product, listOf(b, intercepts)},
                   {b.identityMap(2), featureMap(b, 2, intercepts.size())},
                   {f32},
                   [](TensorBuilder &s, ValueRange args) {
                     return SmallVector<Value>{s.add(args[0], args[1])};
                   })
      .front();
}

LogicalResult lowerRegressor(Lowering<onnx::MLLinearRegressorOp> &b) {
  if (failed(checkPostTransform(b)))
    return failure();
  Value x = b.in.getX();
  if (b.rank(x) == 1)
    x = b.reshape(x, {b.size(1), b.dim(x, 0)});
  x = asFloats(b, x, getOnnxElementType(b.op.getX()));
  Value scores =
      linearScores(b, x, getNumbers(b.op, "coefficients"),
                   getNumbers(b.op, "intercepts"), b.op.getTargets());
  if (!scores)
    return b.refuse("its coefficients or intercepts do not fit the input");
  return b.replace(postTransform(b, b.op.getPostTransform(), scores));
}

LogicalResult lowerClassifier(Lowering<onnx::MLLinearClassifierOp> &b) {
  if (failed(checkPostTransform(b)))
    return failure();
  SmallVector<Value> labels = getLabels(b, "classlabels_ints");
  int64_t classes = labels.size();
  if (classes < 2)
    return b.refuseAlways("it has fewer than two classes");
  Value x = b.in.getX();
  if (b.rank(x) == 1)
    x = b.reshape(x, {b.size(1), b.dim(x, 0)});
  x = asFloats(b, x, getOnnxElementType(b.op.getX()));
  std::vector<double> coefficients = getNumbers(b.op, "coefficients");
  std::vector<double> intercepts = getNumbers(b.op, "intercepts");
  // One sum for two classes is for the second and against the first.
  int64_t features = rankedType(x).getDimSize(1);
  if (classes == 2 && intercepts.empty() && ShapedType::isDynamic(features))
    return b.refuse("whether there is one sum for two classes hangs on the "
                    "number of features");
  bool isBinary =
      classes == 2 && (intercepts.size() == 1 ||
                       (intercepts.empty() &&
                        static_cast<int64_t>(coefficients.size()) == features));
  if (isBinary) {
    std::vector<double> both;
    for (double value : coefficients)
      both.push_back(-value);
    llvm::append_range(both, coefficients);
    coefficients = std::move(both);
    if (!intercepts.empty())
      intercepts = {-intercepts[0], intercepts[0]};
  }
  Value scores = linearScores(b, x, coefficients, intercepts, classes);
  if (!scores)
    return b.refuse("its coefficients or intercepts do not fit the input");
  Value y = labelPlaces(b, findLargest(b, scores), labels);
  return b.replace({y, postTransform(b, b.op.getPostTransform(), scores)});
}

} // namespace

void populateMLFeaturePatterns(const TypeConverter &converter,
                               RewritePatternSet &patterns) {
  addLowering<onnx::MLScalerOp, lowerScaler>(patterns, converter);
  addLowering<onnx::MLNormalizerOp, lowerNormalizer>(patterns, converter);
  addLowering<onnx::MLBinarizerOp, lowerBinarizer>(patterns, converter);
  addLowering<onnx::MLImputerOp, lowerImputer>(patterns, converter);
  addLowering<onnx::MLArrayFeatureExtractorOp, lowerExtractor>(patterns,
                                                               converter);
  addLowering<onnx::MLFeatureVectorizerOp, lowerVectorizer>(patterns,
                                                            converter);
  addLowering<onnx::MLLinearRegressorOp, lowerRegressor>(patterns, converter);
  addLowering<onnx::MLLinearClassifierOp, lowerClassifier>(patterns, converter);
}

} // namespace sardonyx
