//===- PackContractions.cpp - linalg contractions to packed products ------===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A contraction is read as out[b,m,n] += lhs[b,m,k] * rhs[b,k,n]: the roles
// follow from the output's order of dimensions, so that only operands, never
// the result, may need a transpose.
//
//===----------------------------------------------------------------------===//

#include "ConstantColumns.h"
#include "Utils.h"
#include "sardonyx/Dispatch/Passes.h"

#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Dialect/Tensor/Utils/Utils.h"
#include "mlir/IR/PatternMatch.h"

#include <map>

namespace sardonyx {
#define GEN_PASS_DEF_SDXPACKCONTRACTIONS
#include "sardonyx/Dispatch/Passes.h.inc"
} // namespace sardonyx

using namespace mlir;
using namespace sardonyx;

namespace {

/// The loops of a contraction by role; -1 where there is none.
struct Roles {
  int64_t batch = -1, m = -1, n = -1, k = -1;
  unsigned lhs = 0, rhs = 1; // operand numbers
};

/// A 2-D or 3-D operand, how its dimensions are ordered and whence it comes.
struct Operand {
  Value value;
  SmallVector<int64_t> loops; // the loop of each dimension
};

} // namespace

static Value transposeTo(PatternRewriter &rewriter, Location loc,
                         const Operand &operand, ArrayRef<int64_t> loops);

/// Sees through operations that only permute dimensions.
static void lookThroughTransposes(Operand &operand) {
  while (auto transpose = operand.value.getDefiningOp<linalg::TransposeOp>()) {
    // Dimension i of the result is dimension perm[i] of the source.
    SmallVector<int64_t> loops(operand.loops.size());
    for (auto [i, from] : llvm::enumerate(transpose.getPermutation()))
      loops[from] = operand.loops[i];
    operand = {transpose.getInput(), loops};
  }
}

/// A batch of transposed matrices whose batch dimensions were collapsed after
/// the transpose (the keys of an attention): where the transpose moves the
/// contiguous dimension away from the end, leaves it there and lets the packing
/// transpose the matrices instead.
static void keepContiguousDimension(PatternRewriter &rewriter,
                                    Operand &operand) {
  auto collapse = operand.value.getDefiningOp<tensor::CollapseShapeOp>();
  if (!collapse)
    return;
  auto transpose = collapse.getSrc().getDefiningOp<linalg::TransposeOp>();
  SmallVector<ReassociationIndices> groups = collapse.getReassociationIndices();
  if (!transpose || groups.size() != 3 || groups[1].size() != 1 ||
      groups[2].size() != 1)
    return;
  SmallVector<int64_t> permutation(transpose.getPermutation());
  int64_t rank = permutation.size();
  if (permutation[rank - 2] != rank - 1)
    return;
  std::swap(permutation[rank - 2], permutation[rank - 1]);
  SmallVector<int64_t> loops = llvm::to_vector(llvm::seq<int64_t>(0, rank));
  Location loc = transpose.getLoc();
  // The loops here are the dimensions of the source.
  Operand source{transpose.getInput(), loops};
  Value matrices = transposeTo(rewriter, loc, source, permutation);
  auto type = cast<RankedTensorType>(operand.value.getType());
  SmallVector<int64_t> shape(type.getShape());
  std::swap(shape[1], shape[2]);
  operand.value = tensor::CollapseShapeOp::create(
      rewriter, loc, RankedTensorType::get(shape, type.getElementType()),
      matrices, groups);
  std::swap(operand.loops[1], operand.loops[2]);
}

namespace {

/// A multiplication or division by one number.
struct Scaling {
  Value scalar; // f32, or a tensor<f32>
  bool divides;
};

} // namespace

/// If `op` scales its first input as a whole, by what.
static std::optional<Scaling> matchScaling(linalg::GenericOp op) {
  if (!isElementwiseGeneric(op) || op->getNumResults() != 1 ||
      op.getNumDpsInputs() > 2)
    return std::nullopt;
  Block *body = op.getBody();
  if (body->getOperations().size() != 2)
    return std::nullopt;
  Operation &math = body->front();
  if (!isa<arith::MulFOp, arith::DivFOp>(math) ||
      body->getTerminator()->getOperand(0) != math.getResult(0) ||
      math.getOperand(0) != body->getArgument(0) ||
      !op.getIndexingMapsArray()[0].isIdentity())
    return std::nullopt;
  Value by = math.getOperand(1);
  auto argument = dyn_cast<BlockArgument>(by);
  if (argument && argument.getOwner() == body) {
    if (op.getNumDpsInputs() != 2 || argument.getArgNumber() != 1 ||
        op.getIndexingMapsArray()[1].getNumResults() != 0)
      return std::nullopt;
    by = op.getDpsInputs()[1];
  }
  return Scaling{by, isa<arith::DivFOp>(math)};
}

/// `value` before it was scaled, adding what scaled it to `scalings`: the
/// product is scaled instead, where that is a part of its epilogue.
static Value peelScalings(PatternRewriter &rewriter, Value value,
                          SmallVectorImpl<Scaling> &scalings) {
  if (auto collapse = value.getDefiningOp<tensor::CollapseShapeOp>()) {
    Value source = peelScalings(rewriter, collapse.getSrc(), scalings);
    if (source == collapse.getSrc())
      return value;
    return tensor::CollapseShapeOp::create(rewriter, collapse.getLoc(),
                                           collapse.getType(), source,
                                           collapse.getReassociationIndices());
  }
  auto generic = value.getDefiningOp<linalg::GenericOp>();
  if (!generic || scalings.size() >= 4)
    return value;
  std::optional<Scaling> scaling = matchScaling(generic);
  // A scaled weight is computed once.
  if (!scaling || isWeight(generic.getDpsInputs()[0]))
    return value;
  scalings.push_back(*scaling);
  return peelScalings(rewriter, generic.getDpsInputs()[0], scalings);
}

static Value scale(OpBuilder &b, Location loc, Value value,
                   ArrayRef<Scaling> scalings) {
  if (scalings.empty())
    return value;
  auto type = cast<RankedTensorType>(value.getType());
  Value empty =
      tensor::EmptyOp::create(b, loc, type.getShape(), type.getElementType(),
                              tensor::createDynamicDimValues(b, loc, value));
  AffineMap identity = b.getMultiDimIdentityMap(type.getRank());
  SmallVector<AffineMap> maps = {identity};
  SmallVector<Value> inputs = {value};
  for (const Scaling &scaling : scalings) {
    inputs.push_back(scaling.scalar);
    maps.push_back(AffineMap::get(type.getRank(), 0, b.getContext()));
  }
  maps.push_back(identity);
  SmallVector<utils::IteratorType> loops(type.getRank(),
                                         utils::IteratorType::parallel);
  return linalg::GenericOp::create(
             b, loc, TypeRange(type), inputs, empty, maps, loops,
             [&](OpBuilder &b, Location loc, ValueRange args) {
               Value result = args[0];
               for (auto [i, scaling] : llvm::enumerate(scalings))
                 result =
                     scaling.divides
                         ? arith::DivFOp::create(b, loc, result, args[i + 1])
                               .getResult()
                         : arith::MulFOp::create(b, loc, result, args[i + 1])
                               .getResult();
               linalg::YieldOp::create(b, loc, result);
             })
      .getResult(0);
}

static bool uses(AffineMap map, int64_t loop) {
  return map.isFunctionOfDim(loop);
}

static FailureOr<Roles> findRoles(linalg::LinalgOp op,
                                  PatternRewriter &rewriter) {
  FailureOr<linalg::ContractionDimensions> dims =
      linalg::inferContractionDims(op);
  if (failed(dims))
    return rewriter.notifyMatchFailure(op, "not a contraction");
  if (dims->batch.size() > 1 || dims->m.size() > 1 || dims->n.size() > 1 ||
      dims->k.size() != 1)
    return rewriter.notifyMatchFailure(
        op, "more than one dimension of a kind, or no reduction");
  SmallVector<AffineMap> maps = op.getIndexingMapsArray();
  AffineMap out = maps[2];
  if (!out.isProjectedPermutation())
    return rewriter.notifyMatchFailure(op, "output is no permutation");
  Roles roles;
  roles.k = dims->k[0];
  SmallVector<int64_t> rest;
  for (unsigned i = 0; i < out.getNumResults(); ++i) {
    int64_t loop = out.getDimPosition(i);
    if (!dims->batch.empty() && loop == int64_t(dims->batch[0])) {
      if (i != 0)
        return rewriter.notifyMatchFailure(op, "batch is not outermost");
      roles.batch = loop;
      continue;
    }
    rest.push_back(loop);
  }
  if (rest.size() == 2) {
    std::tie(roles.m, roles.n) = std::pair(rest[0], rest[1]);
    roles.lhs = uses(maps[0], roles.m) ? 0 : 1;
    roles.rhs = 1 - roles.lhs;
  } else if (rest.size() == 1 && roles.batch < 0) {
    // A vector times a matrix: M = 1. The matrix has the remaining loop.
    roles.n = rest[0];
    roles.rhs = uses(maps[0], roles.n) ? 0 : 1;
    roles.lhs = 1 - roles.rhs;
  } else {
    return rewriter.notifyMatchFailure(op, "no matrix product");
  }
  if (uses(maps[roles.lhs], roles.n) ||
      (roles.m >= 0 && uses(maps[roles.rhs], roles.m)) ||
      !uses(maps[roles.rhs], roles.n) ||
      (roles.batch >= 0 && !uses(maps[roles.lhs], roles.batch)))
    return rewriter.notifyMatchFailure(op, "operands share m or n, or lhs "
                                           "has no batch");
  if (int64_t(op.getNumLoops()) != 2 + (roles.batch >= 0) + (roles.m >= 0))
    return rewriter.notifyMatchFailure(op, "has other loops");
  return roles;
}

static FailureOr<Operand> getOperand(linalg::LinalgOp op, unsigned number) {
  AffineMap map = op.getIndexingMapsArray()[number];
  if (!map.isProjectedPermutation())
    return failure();
  Operand operand{op.getDpsInputs()[number], {}};
  for (unsigned i = 0; i < map.getNumResults(); ++i)
    operand.loops.push_back(map.getDimPosition(i));
  return operand;
}

/// `operand` with its dimensions in the order of `loops`.
static Value transposeTo(PatternRewriter &rewriter, Location loc,
                         const Operand &operand, ArrayRef<int64_t> loops) {
  if (ArrayRef(operand.loops) == loops)
    return operand.value;
  SmallVector<int64_t> permutation;
  for (int64_t loop : loops)
    permutation.push_back(llvm::find(operand.loops, loop) -
                          operand.loops.begin());
  return createTranspose(rewriter, loc, operand.value, permutation);
}

/// Zeros of f32.
static Value zeros(OpBuilder &b, Location loc, ArrayRef<OpFoldResult> sizes) {
  Value empty = tensor::EmptyOp::create(b, loc, sizes, b.getF32Type());
  Value zero = arith::ConstantOp::create(b, loc, b.getF32FloatAttr(0.0f));
  return linalg::FillOp::create(b, loc, zero, empty).getResult(0);
}

/// Zeros of the sizes of `like`, of f32.
static Value zerosLike(OpBuilder &b, Location loc, Value like) {
  return zeros(b, loc, tensor::getMixedSizes(b, loc, like));
}

/// `lhs + rhs`, of the same type.
static Value add(OpBuilder &b, Location loc, Value lhs, Value rhs) {
  auto type = cast<RankedTensorType>(lhs.getType());
  Value empty =
      tensor::EmptyOp::create(b, loc, type.getShape(), type.getElementType(),
                              tensor::createDynamicDimValues(b, loc, rhs));
  AffineMap identity = b.getMultiDimIdentityMap(type.getRank());
  SmallVector<utils::IteratorType> loops(type.getRank(),
                                         utils::IteratorType::parallel);
  return linalg::GenericOp::create(
             b, loc, TypeRange(type), ValueRange{lhs, rhs}, empty,
             ArrayRef<AffineMap>{identity, identity, identity}, loops,
             [](OpBuilder &b, Location loc, ValueRange args) {
               Value sum = arith::AddFOp::create(b, loc, args[0], args[1]);
               linalg::YieldOp::create(b, loc, sum);
             })
      .getResult(0);
}

/// Up to so many rows a product takes as long as its weights take to come.
static constexpr int64_t kFewRows = 8;

/// `matrix` [(B,) K, N] as one panel of all its columns, which costs nothing;
/// null where it has many, or has to be packed for more than few rows of `lhs`.
static Value viewAsPanel(OpBuilder &b, Location loc, Value lhs, Value matrix) {
  constexpr int64_t kMostColumns = 8 * sdx::kPanelWidth;
  auto left = cast<RankedTensorType>(lhs.getType());
  auto type = cast<RankedTensorType>(matrix.getType());
  int64_t rank = type.getRank(), columns = type.getShape().back();
  int64_t rows = left.getDimSize(left.getRank() - 2);
  if (ShapedType::isDynamic(rows) || rows > kFewRows ||
      ShapedType::isDynamic(columns) || columns > kMostColumns ||
      columns == 0 || columns % sdx::kPanelWidth)
    return nullptr;
  SmallVector<OpFoldResult> sizes = tensor::getMixedSizes(b, loc, matrix);
  SmallVector<int64_t> shape(type.getShape());
  sizes.insert(sizes.end() - 2, b.getIndexAttr(1));
  shape.insert(shape.end() - 2, 1);
  SmallVector<ReassociationIndices> groups = {{0, 1}, {2}};
  if (rank == 3)
    groups = {{0}, {1, 2}, {3}};
  return tensor::ExpandShapeOp::create(
      b, loc, RankedTensorType::get(shape, type.getElementType()), matrix,
      groups, sizes);
}

/// `lhs` [(B,) M, K] times the transpose of `matrix` [(B,) N, K] as the
/// transpose of `matrix` times that of `lhs`, which is the smaller one to pack;
/// null where `lhs` has more than few rows, or `matrix` has few.
static Value multiplySwapped(OpBuilder &b, Location loc, Value lhs,
                             Value matrix) {
  constexpr int64_t kFewestColumns = 2 * sdx::kPanelWidth;
  auto left = cast<RankedTensorType>(lhs.getType());
  auto right = cast<RankedTensorType>(matrix.getType());
  int64_t rank = left.getRank(), rows = left.getDimSize(rank - 2);
  int64_t columns = right.getDimSize(right.getRank() - 2);
  if (right.getRank() != rank || ShapedType::isDynamic(rows) || rows < 1 ||
      rows > kFewRows ||
      (!ShapedType::isDynamic(columns) && columns < kFewestColumns))
    return nullptr;
  constexpr int64_t kNarrowest = 4;
  int64_t width = std::max<int64_t>(kNarrowest, llvm::PowerOf2Ceil(rows));
  Value packed = packRhs(b, loc, lhs, /*transposed=*/true, width);
  SmallVector<OpFoldResult> sizes = tensor::getMixedSizes(b, loc, matrix);
  sizes.back() = b.getIndexAttr(rows);
  Value product =
      sdx::PackedMatmulOp::create(b, loc, matrix, packed, zeros(b, loc, sizes))
          .getResult();
  auto order = llvm::to_vector(llvm::seq<int64_t>(0, rank));
  std::swap(order[rank - 1], order[rank - 2]);
  return createTranspose(b, loc, product, order);
}

namespace {

/// What is found out of weights by reading them: once, however many products
/// they have.
class WeightSurveys {
public:
  WeightSurveys(MLIRContext *context, const ShortWeightLimits &limits)
      : context(context), limits(limits) {}

  /// See chooseShortWeights().
  const std::optional<ShortWeights> &
  getShortWeights(const ConstantColumns &columns) {
    return find(shortWeights, columns, [&] {
      return chooseShortWeights(columns, sdx::kPanelWidth, context, limits);
    });
  }
  /// See chooseStrassenDepth().
  int64_t getStrassenDepth(const ConstantColumns &columns) {
    return find(strassenDepths, columns,
                [&] { return chooseStrassenDepth(columns, sdx::kPanelWidth); });
  }

private:
  using Place = decltype(std::declval<ConstantColumns>().place());
  template <typename Fact, typename Read>
  static const Fact &find(std::map<Place, Fact> &known,
                          const ConstantColumns &columns, Read read) {
    auto it = known.find(columns.place());
    if (it == known.end())
      it = known.emplace(columns.place(), read()).first;
    return it->second;
  }

  MLIRContext *context;
  ShortWeightLimits limits;
  std::map<Place, std::optional<ShortWeights>> shortWeights;
  std::map<Place, int64_t> strassenDepths;
};

} // namespace

/// `lhs` times `matrix` [K,N], or [N,K] if `transposed`, whose numbers are kept
/// in fewer than four bytes; null where they cannot be, or have more use as
/// they are.
static Value multiplyShort(PatternRewriter &rewriter, Location loc, Value lhs,
                           Value matrix, bool transposed, Value init,
                           WeightSurveys &surveys) {
  auto left = cast<RankedTensorType>(lhs.getType());
  if (left.getRank() != 2 || !left.hasStaticShape() ||
      left.getDimSize(0) > kFewRows)
    return nullptr;
  std::optional<ConstantColumns> columns = findColumns(matrix, transposed);
  if (!columns)
    return nullptr;
  const std::optional<ShortWeights> &chosen = surveys.getShortWeights(*columns);
  if (!chosen)
    return nullptr;
  int64_t depth = left.getDimSize(1);
  Value scales = arith::ConstantOp::create(rewriter, loc, chosen->scales);
  SmallVector<int64_t> sizes = {chosen->scales.getType().getDimSize(0), depth,
                                sdx::kPanelWidth * 3};
  Type element = rewriter.getI8Type();
  if (chosen->areTriples) {
    sizes[1] = llvm::divideCeil(depth, sdx::kTriple);
    sizes[2] = sdx::kPanelWidth;
    element = rewriter.getI64Type();
  }
  Value empty = tensor::EmptyOp::create(rewriter, loc, sizes, element);
  Value packed =
      sdx::PackRhsOp::create(rewriter, loc, matrix, scales, empty, transposed)
          .getResult();
  return sdx::PackedMatmulOp::create(rewriter, loc, lhs, packed, scales, depth,
                                     init)
      .getResult();
}

/// The ranges of k in which `lhs` times `matrix` may go by Strassen's
/// algorithm; 0: none.
static int64_t findStrassenDepth(Value lhs, Value matrix, bool transposed,
                                 WeightSurveys &surveys) {
  auto left = cast<RankedTensorType>(lhs.getType());
  if (left.getRank() != 2 ||
      (!left.isDynamicDim(0) && left.getDimSize(0) < sdx::kFewestStrassenRows))
    return 0;
  std::optional<ConstantColumns> columns = findColumns(matrix, transposed);
  return columns ? surveys.getStrassenDepth(*columns) : 0;
}

namespace {

struct PackContraction : OpInterfaceRewritePattern<linalg::LinalgOp> {
  PackContraction(MLIRContext *context, WeightSurveys &surveys,
                  bool useShortWeights, int64_t longLoopWeights,
                  bool useStrassen)
      : OpInterfaceRewritePattern(context), surveys(surveys),
        useShortWeights(useShortWeights), longLoopWeights(longLoopWeights),
        useStrassen(useStrassen) {}

  LogicalResult matchAndRewrite(linalg::LinalgOp op,
                                PatternRewriter &rewriter) const override {
    if (!op.hasPureTensorSemantics() || op->getNumResults() != 1 ||
        !linalg::isaContractionOpInterface(op))
      return rewriter.notifyMatchFailure(op, "not a contraction on tensors");
    for (Type type : op->getOperandTypes())
      if (!getElementTypeOrSelf(type).isF32())
        return rewriter.notifyMatchFailure(op, "not all of f32");
    FailureOr<Roles> found = findRoles(op, rewriter);
    if (failed(found))
      return failure();
    Roles roles = *found;
    FailureOr<Operand> lhs = getOperand(op, roles.lhs);
    FailureOr<Operand> rhs = getOperand(op, roles.rhs);
    if (failed(lhs) || failed(rhs))
      return rewriter.notifyMatchFailure(op, "an operand is no permutation");
    SmallVector<Scaling> scalings;
    lhs->value = peelScalings(rewriter, lhs->value, scalings);
    rhs->value = peelScalings(rewriter, rhs->value, scalings);
    lookThroughTransposes(*rhs);
    rhs->value = peelScalings(rewriter, rhs->value, scalings);
    if (roles.m < 0 && rhs->loops.back() == roles.k && !isWeight(rhs->value))
      return rewriter.notifyMatchFailure(
          op, "a matrix that is no weight times a vector is a row reduction");
    Operand plainLhs = *lhs;
    lookThroughTransposes(*lhs);

    Location loc = op.getLoc();
    SmallVector<int64_t> lhsOrder;
    for (int64_t loop : {roles.batch, roles.m, roles.k})
      if (loop >= 0)
        lhsOrder.push_back(loop);
    // A transpose is looked through only if that makes it vanish.
    Value left = ArrayRef(lhs->loops) == ArrayRef(lhsOrder)
                     ? lhs->value
                     : transposeTo(rewriter, loc, plainLhs, lhsOrder);

    keepContiguousDimension(rewriter, *rhs);
    bool batchedRhs = llvm::is_contained(rhs->loops, roles.batch);
    auto position = [&](int64_t loop) {
      return llvm::find(rhs->loops, loop) - rhs->loops.begin();
    };
    bool transposed = position(roles.n) < position(roles.k);
    SmallVector<int64_t> rhsOrder;
    if (batchedRhs)
      rhsOrder.push_back(roles.batch);
    if (transposed)
      rhsOrder.append({roles.n, roles.k});
    else
      rhsOrder.append({roles.k, roles.n});
    Value matrix = transposeTo(rewriter, loc, *rhs, rhsOrder);
    auto multiply = [&](Value init) -> Value {
      if (useShortWeights && !staysInLastCache(op, matrix))
        if (Value result = multiplyShort(rewriter, loc, left, matrix,
                                         transposed, init, surveys))
          return result;
      Value right;
      if (!isWeight(matrix)) {
        if (transposed)
          if (Value result = multiplySwapped(rewriter, loc, left, matrix))
            return result;
        if (!transposed)
          right = viewAsPanel(rewriter, loc, left, matrix);
      }
      if (!right)
        right = packRhs(rewriter, loc, matrix, transposed, sdx::kPanelWidth);
      auto product =
          sdx::PackedMatmulOp::create(rewriter, loc, left, right, init);
      if (int64_t depth =
              useStrassen ? findStrassenDepth(left, matrix, transposed, surveys)
                          : 0)
        product.setStrassen(depth);
      return product.getResult();
    };

    Value init = op.getDpsInits()[0];
    auto type = cast<RankedTensorType>(init.getType());
    if (roles.m < 0) {
      // Rows of one: [K] is [1,K] and [1,N] is [N].
      SmallVector<ReassociationIndices> all = {{0, 1}};
      left = expandToRow(rewriter, loc, left);
      Value zero = zerosLike(rewriter, loc, expandToRow(rewriter, loc, init));
      Value row = multiply(zero);
      Value result =
          tensor::CollapseShapeOp::create(rewriter, loc, type, row, all);
      result = scale(rewriter, loc, result, scalings);
      if (!isZeroFilled(init))
        result = add(rewriter, loc, result, init);
      rewriter.replaceOp(op, result);
      return success();
    }
    bool zero = isZeroFilled(init) && init.getDefiningOp<linalg::FillOp>();
    Value start = zero ? init : zerosLike(rewriter, loc, init);
    Value result = multiply(start);
    result = scale(rewriter, loc, result, scalings);
    if (!isZeroFilled(init))
      result = add(rewriter, loc, result, init);
    rewriter.replaceOp(op, result);
    return success();
  }

private:
  static Value expandToRow(OpBuilder &b, Location loc, Value vector) {
    auto type = cast<RankedTensorType>(vector.getType());
    OpFoldResult size = tensor::getMixedSizes(b, loc, vector)[0];
    auto row =
        RankedTensorType::get({1, type.getDimSize(0)}, type.getElementType());
    SmallVector<ReassociationIndices> all = {{0, 1}};
    return tensor::ExpandShapeOp::create(b, loc, row, vector, all,
                                         {b.getIndexAttr(1), size});
  }

  /// Whether a loop multiplies by a constant matrix so small that it is in the
  /// last cache from the second time on.
  bool staysInLastCache(Operation *op, Value matrix) const {
    auto type = cast<RankedTensorType>(matrix.getType());
    return longLoopWeights && op->getParentOfType<LoopLikeOpInterface>() &&
           type.hasStaticShape() &&
           type.getNumElements() * int64_t(sizeof(float)) <= longLoopWeights;
  }

  WeightSurveys &surveys;
  bool useShortWeights;
  int64_t longLoopWeights;
  bool useStrassen;
};

/// A convolution onto something else than zeros: the init is added afterwards,
/// so that every convolution kernel starts from zero.
struct ZeroConvInit : OpRewritePattern<sdx::ConvOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(sdx::ConvOp op,
                                PatternRewriter &rewriter) const override {
    Value init = op.getInit();
    if (!isa<RankedTensorType>(init.getType()))
      return rewriter.notifyMatchFailure(op, "not on tensors");
    if (init.getDefiningOp<linalg::FillOp>() && isZeroFilled(init))
      return rewriter.notifyMatchFailure(op, "starts from zero already");
    Location loc = op.getLoc();
    Value start = zerosLike(rewriter, loc, init);
    if (isZeroFilled(init)) {
      rewriter.modifyOpInPlace(op, [&] { op.getInitMutable().assign(start); });
      return success();
    }
    rewriter.setInsertionPointAfter(op);
    auto conv = cast<sdx::ConvOp>(rewriter.clone(*op));
    conv.getInitMutable().assign(start);
    rewriter.replaceOp(op, add(rewriter, loc, conv.getResult(), init));
    return success();
  }
};

struct PackContractionsPass
    : sardonyx::impl::SDXPackContractionsBase<PackContractionsPass> {
  using Base::Base;

  void runOnOperation() override {
    RewritePatternSet patterns(&getContext());
    populateGenericToTransposePatterns(patterns);
    sdx::TargetAttr target = sdx::getTargetOrDefault(getOperation());
    // Narrower vectors compute longer than memory takes, and have too few
    // registers.
    bool hasWideVectors = target.getVectorBits() >= 256;
    int64_t shortBytes =
        target.has(sdx::TargetTraits::ShufflesBytes) ? shortWeights : 0;
    ShortWeightLimits limits{shortBytes, hasWideVectors, lossyTriples};
    WeightSurveys surveys(&getContext(), limits);
    patterns.add<PackContraction>(&getContext(), surveys, shortBytes != 0,
                                  target.getBytesOfFastL3(),
                                  strassen && hasWideVectors);
    populateShortenConvWeightsPatterns(patterns, limits);
    if (splitConvs && target.getF32() == sdx::F32Product::AmxBf16x6)
      populateSplitConvWeightsPatterns(patterns);
    patterns.add<ZeroConvInit>(&getContext());
    populatePackNarrowProductsPatterns(patterns, target.getBf16() !=
                                                     sdx::Bf16Product::Generic);
    populatePackInterleavedPatterns(patterns);
    // Afterwards: a transpose of fewer dimensions is no longer one of matrices.
    RewritePatternSet transposes(&getContext());
    populateSimplifyTransposesPatterns(transposes);
    rewriteGreedily(getOperation(), std::move(patterns));
    rewriteGreedily(getOperation(), std::move(transposes));
    copyEarly(getOperation());
  }
};

} // namespace
