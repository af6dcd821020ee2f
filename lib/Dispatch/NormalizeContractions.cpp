//===- NormalizeContractions.cpp - Contractions as matrix products --------===//
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

#include "Utils.h"
#include "sardonyx/Dispatch/Passes.h"

#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Dialect/Tensor/Utils/Utils.h"
#include "mlir/IR/PatternMatch.h"

namespace sardonyx {
#define GEN_PASS_DEF_SDXNORMALIZECONTRACTIONS
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

/// Zeros of the sizes and the type of `like`.
static Value zerosLike(OpBuilder &b, Location loc, Value like) {
  return createZeros(b, loc, tensor::getMixedSizes(b, loc, like),
                     getElementTypeOrSelf(like));
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
               Value sum =
                   isa<FloatType>(args[0].getType())
                       ? arith::AddFOp::create(b, loc, args[0], args[1])
                             .getResult()
                       : arith::AddIOp::create(b, loc, args[0], args[1]);
               linalg::YieldOp::create(b, loc, sum);
             })
      .getResult(0);
}

namespace {

/// The matrices that a contraction multiplies.
struct Product {
  Value lhs, rhs;
  bool transposed, isVector;
  SmallVector<Scaling> scalings;
};

} // namespace

/// [K] as [1,K], and [N] as [1,N].
static Value expandToRow(OpBuilder &b, Location loc, Value vector) {
  auto type = cast<RankedTensorType>(vector.getType());
  OpFoldResult size = tensor::getMixedSizes(b, loc, vector)[0];
  auto row =
      RankedTensorType::get({1, type.getDimSize(0)}, type.getElementType());
  SmallVector<ReassociationIndices> all = {{0, 1}};
  return tensor::ExpandShapeOp::create(b, loc, row, vector, all,
                                       {b.getIndexAttr(1), size});
}

/// Whether `op` multiplies bf16 and adds up f32.
static bool isBf16Product(linalg::LinalgOp op) {
  if (!isa<linalg::MatmulOp, linalg::BatchMatmulOp>(op) ||
      op.getNumDpsInputs() != 2)
    return false;
  return getElementTypeOrSelf(op.getDpsInputs()[0]).isBF16() &&
         getElementTypeOrSelf(op.getDpsInputs()[1]).isBF16() &&
         getElementTypeOrSelf(op.getDpsInits()[0]).isF32();
}

static bool isF32Product(linalg::LinalgOp op) {
  return llvm::all_of(op->getOperandTypes(), [](Type type) {
    return getElementTypeOrSelf(type).isF32();
  });
}

/// The operands of `op` in the order of sdx.matmul. Numbers of f32 may be
/// scaled after the product rather than before.
static FailureOr<Product> arrange(linalg::LinalgOp op, bool mayScaleAfter,
                                  PatternRewriter &rewriter) {
  FailureOr<Roles> found = findRoles(op, rewriter);
  if (failed(found))
    return failure();
  Roles roles = *found;
  FailureOr<Operand> lhs = getOperand(op, roles.lhs);
  FailureOr<Operand> rhs = getOperand(op, roles.rhs);
  if (failed(lhs) || failed(rhs))
    return rewriter.notifyMatchFailure(op, "an operand is no permutation");
  Product product;
  product.isVector = roles.m < 0;
  if (product.isVector) {
    Operand matrix = *rhs;
    lookThroughTransposes(matrix);
    if (matrix.loops.back() == roles.k && !isWeight(matrix.value))
      return rewriter.notifyMatchFailure(
          op, "a matrix that is no weight times a vector is a row reduction");
  }
  auto peel = [&](Operand &operand) {
    if (mayScaleAfter)
      operand.value = peelScalings(rewriter, operand.value, product.scalings);
  };
  peel(*lhs);
  peel(*rhs);
  lookThroughTransposes(*rhs);
  peel(*rhs);
  Operand plainLhs = *lhs;
  lookThroughTransposes(*lhs);

  Location loc = op.getLoc();
  SmallVector<int64_t> lhsOrder;
  for (int64_t loop : {roles.batch, roles.m, roles.k})
    if (loop >= 0)
      lhsOrder.push_back(loop);
  // A transpose is looked through only if that makes it vanish.
  product.lhs = ArrayRef(lhs->loops) == ArrayRef(lhsOrder)
                    ? lhs->value
                    : transposeTo(rewriter, loc, plainLhs, lhsOrder);

  keepContiguousDimension(rewriter, *rhs);
  bool batchedRhs = llvm::is_contained(rhs->loops, roles.batch);
  auto position = [&](int64_t loop) {
    return llvm::find(rhs->loops, loop) - rhs->loops.begin();
  };
  product.transposed = position(roles.n) < position(roles.k);
  SmallVector<int64_t> rhsOrder;
  if (batchedRhs)
    rhsOrder.push_back(roles.batch);
  if (product.transposed)
    rhsOrder.append({roles.n, roles.k});
  else
    rhsOrder.append({roles.k, roles.n});
  product.rhs = transposeTo(rewriter, loc, *rhs, rhsOrder);
  return product;
}

namespace {

struct NormalizeContraction : OpInterfaceRewritePattern<linalg::LinalgOp> {
  using OpInterfaceRewritePattern::OpInterfaceRewritePattern;

  LogicalResult matchAndRewrite(linalg::LinalgOp op,
                                PatternRewriter &rewriter) const override {
    if (!op.hasPureTensorSemantics() || op->getNumResults() != 1 ||
        !linalg::isaContractionOpInterface(op))
      return rewriter.notifyMatchFailure(op, "not a contraction on tensors");
    const bool isF32 = isF32Product(op);
    if (!isF32 && !isBf16Product(op))
      return rewriter.notifyMatchFailure(op,
                                         "not of f32, nor of bf16 onto f32");
    FailureOr<Product> product = arrange(op, /*mayScaleAfter=*/isF32, rewriter);
    if (failed(product))
      return failure();
    Location loc = op.getLoc();
    Value init = op.getDpsInits()[0];
    Value result;
    if (product->isVector) {
      Value row = expandToRow(rewriter, loc, product->lhs);
      Value zero = zerosLike(rewriter, loc, expandToRow(rewriter, loc, init));
      row = sdx::MatmulOp::create(rewriter, loc, row, product->rhs, zero,
                                  product->transposed)
                .getResult();
      SmallVector<ReassociationIndices> all = {{0, 1}};
      result = tensor::CollapseShapeOp::create(rewriter, loc, init.getType(),
                                               row, all);
    } else {
      bool isZero = isZeroFilled(init) && init.getDefiningOp<linalg::FillOp>();
      Value start = isZero ? init : zerosLike(rewriter, loc, init);
      result = sdx::MatmulOp::create(rewriter, loc, product->lhs, product->rhs,
                                     start, product->transposed)
                   .getResult();
    }
    result = scale(rewriter, loc, result, product->scalings);
    if (!isZeroFilled(init))
      result = add(rewriter, loc, result, init);
    rewriter.replaceOp(op, result);
    return success();
  }
};

/// Whether the body is out + extui(first) * extsi(second).
bool isByteProduct(linalg::GenericOp op) {
  Block *body = op.getBody();
  auto add =
      body->getTerminator()->getOperand(0).getDefiningOp<arith::AddIOp>();
  if (!add || body->getOperations().size() != 5)
    return false;
  auto product = add.getRhs().getDefiningOp<arith::MulIOp>();
  if (!product || add.getLhs() != body->getArgument(2))
    return false;
  auto left = product.getLhs().getDefiningOp<arith::ExtUIOp>();
  auto right = product.getRhs().getDefiningOp<arith::ExtSIOp>();
  return left && right && left.getIn() == body->getArgument(0) &&
         right.getIn() == body->getArgument(1);
}

/// Products of unsigned by signed integers, which no named operation has.
struct NormalizeByteProduct : OpRewritePattern<linalg::GenericOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(linalg::GenericOp op,
                                PatternRewriter &rewriter) const override {
    if (!op.hasPureTensorSemantics() || op.getNumDpsInputs() != 2 ||
        op.getNumDpsInits() != 1 || op.getNumReductionLoops() != 1 ||
        !linalg::isaContractionOpInterface(op) || !isByteProduct(op))
      return rewriter.notifyMatchFailure(op, "no matrix product of bytes");
    if (!getElementTypeOrSelf(op.getDpsInputs()[0]).isInteger(8) ||
        !getElementTypeOrSelf(op.getDpsInputs()[1]).isInteger(8))
      return rewriter.notifyMatchFailure(op, "is not of bytes");
    FailureOr<Roles> roles = findRoles(op, rewriter);
    if (failed(roles) || roles->m < 0 || roles->lhs != 0)
      return rewriter.notifyMatchFailure(op, "is of vectors, or transposed");
    FailureOr<Product> matrices =
        arrange(op, /*mayScaleAfter=*/false, rewriter);
    if (failed(matrices))
      return failure();
    auto product = sdx::MatmulOp::create(rewriter, op.getLoc(), matrices->lhs,
                                         matrices->rhs, op.getDpsInits()[0],
                                         matrices->transposed);
    product.setLhsUnsigned(true);
    rewriter.replaceOp(op, product);
    return success();
  }
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

struct NormalizeContractionsPass
    : sardonyx::impl::SDXNormalizeContractionsBase<NormalizeContractionsPass> {
  void runOnOperation() override {
    RewritePatternSet patterns(&getContext());
    populateGenericToTransposePatterns(patterns);
    patterns.add<NormalizeContraction, NormalizeByteProduct, ZeroConvInit>(
        &getContext());
    rewriteGreedily(getOperation(), std::move(patterns));
  }
};

} // namespace
