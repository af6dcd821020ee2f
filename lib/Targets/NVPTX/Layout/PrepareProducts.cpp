//===- PrepareProducts.cpp - Products in forms that have kernels ----------===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Common/ShortOperands.h"
#include "Layout/ByteFloats.h"
#include "Layout/SplitProducts.h"
#include "Matmul/MatmulPlan.h"

#include "lib/Dispatch/Utils.h"
#include "sardonyx/Targets/NVPTX/Passes.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Dialect/Tensor/Utils/Utils.h"
#include "mlir/IR/IRMapping.h"

namespace sardonyx {
#define GEN_PASS_DEF_NVPREPAREPRODUCTS
#include "sardonyx/Targets/NVPTX/Passes.h.inc"
} // namespace sardonyx

using namespace mlir;
using namespace sardonyx;

/// Tensor cores take bytes that follow each other along K. Warpgroups take f32
/// so, too, for which weights are transposed once.
static bool isWantedAlongK(sdx::MatmulOp op) {
  if (op.getLhs().getType().getElementType().isInteger(8))
    return true;
  return nv::mayRound(op) && nv::getTargetOrDefault(op).hasWgmma() &&
         isWeight(op.getRhs());
}

static void transposeRhs(sdx::MatmulOp op) {
  if (op.getTransposed() || !isWantedAlongK(op))
    return;
  OpBuilder b(op);
  SmallVector<int64_t> order = {1, 0};
  if (op.isRhsBatched())
    order = {0, 2, 1};
  op.getRhsMutable().assign(
      createTranspose(b, op.getLoc(), op.getRhs(), order));
  op.setTransposed(true);
}

/// -128, which bytes with and without a sign differ by: a bit.
static constexpr int64_t kTopBit = -128;

/// What `op` flips the top bit of, all else being as it was; null if it does
/// something else.
static Value findUnflipped(Operation *op) {
  auto generic = dyn_cast_or_null<linalg::GenericOp>(op);
  if (!generic || !isElementwiseGeneric(op) || generic.getNumDpsInputs() != 1 ||
      op->getNumResults() != 1 ||
      !llvm::all_of(generic.getIndexingMapsArray(),
                    [](AffineMap map) { return map.isIdentity(); }))
    return {};
  Block *body = generic.getBody();
  auto flip =
      body->getTerminator()->getOperand(0).getDefiningOp<arith::XOrIOp>();
  if (!flip || flip.getLhs() != body->getArgument(0) ||
      getConstantIntValue(flip.getRhs()) != kTopBit)
    return {};
  return generic.getDpsInputs()[0];
}

/// The tensor whose bytes `bytes` are in another shape or order, or with the
/// top bit flipped.
static Value findSource(Value bytes, bool unflips) {
  while (Operation *op = bytes.getDefiningOp()) {
    Value before = unflips ? findUnflipped(op) : Value();
    if (!before && (isMovement(op) || isa<tensor::CastOp>(op)))
      before = op->getOperand(0);
    if (!before)
      break;
    bytes = before;
  }
  return bytes;
}

/// What is elementwise on `inputs`, whose maps are `maps`, in the shape of the
/// first of them.
static Value
createElementwise(OpBuilder &b, Location loc, ValueRange inputs,
                  SmallVector<AffineMap> maps,
                  function_ref<Value(OpBuilder &, ValueRange)> emit) {
  auto type = cast<RankedTensorType>(inputs[0].getType());
  Value empty = tensor::EmptyOp::create(
      b, loc, tensor::getMixedSizes(b, loc, inputs[0]), type.getElementType());
  maps.push_back(b.getMultiDimIdentityMap(type.getRank()));
  SmallVector<utils::IteratorType> loops(type.getRank(),
                                         utils::IteratorType::parallel);
  return linalg::GenericOp::create(
             b, loc, type, inputs, empty, maps, loops,
             [&](OpBuilder &inner, Location at, ValueRange args) {
               linalg::YieldOp::create(inner, at, emit(inner, args));
             })
      .getResult(0);
}

/// `bytes` with the top bit flipped. What only moves them comes after, next to
/// the product, and two flips are none.
static Value flipTopBit(OpBuilder &b, Location loc, Value bytes) {
  Operation *op = bytes.getDefiningOp();
  if (Value before = findUnflipped(op))
    return before;
  if (isMovement(op) || isa_and_nonnull<tensor::CastOp>(op)) {
    Value flipped = flipTopBit(b, loc, op->getOperand(0));
    if (auto transpose = dyn_cast<linalg::TransposeOp>(op))
      return createTranspose(b, loc, flipped, transpose.getPermutation());
    IRMapping mapping;
    mapping.map(op->getOperand(0), flipped);
    return b.clone(*op, mapping)->getResult(0);
  }
  auto type = cast<RankedTensorType>(bytes.getType());
  return createElementwise(
      b, loc, bytes, {b.getMultiDimIdentityMap(type.getRank())},
      [&](OpBuilder &inner, ValueRange args) -> Value {
        Value bit = arith::ConstantIntOp::create(inner, loc, kTopBit, 8);
        return arith::XOrIOp::create(inner, loc, args[0], bit);
      });
}

/// The sums of `rhs` along its dimension `k`, as i32.
static Value sumAlongK(OpBuilder &b, Location loc, Value rhs, int64_t k) {
  const int64_t rank = cast<RankedTensorType>(rhs.getType()).getRank();
  SmallVector<OpFoldResult> sizes = tensor::getMixedSizes(b, loc, rhs);
  sizes.erase(sizes.begin() + k);
  // The loop that sums up is the last one.
  SmallVector<AffineExpr> read, written;
  for (int64_t dim = 0; dim < rank; ++dim) {
    const int64_t loop = dim < k ? dim : dim == k ? rank - 1 : dim - 1;
    read.push_back(b.getAffineDimExpr(loop));
    if (dim != k)
      written.push_back(b.getAffineDimExpr(loop));
  }
  SmallVector<utils::IteratorType> loops(rank, utils::IteratorType::parallel);
  loops.back() = utils::IteratorType::reduction;
  Value zeros = createZeros(b, loc, sizes, b.getI32Type());
  return linalg::GenericOp::create(
             b, loc, zeros.getType(), rhs, zeros,
             {AffineMap::get(rank, 0, read, b.getContext()),
              AffineMap::get(rank, 0, written, b.getContext())},
             loops,
             [&](OpBuilder &inner, Location at, ValueRange args) {
               Value wide = arith::ExtSIOp::create(inner, at,
                                                   inner.getI32Type(), args[0]);
               Value sum = arith::AddIOp::create(inner, at, args[1], wide);
               linalg::YieldOp::create(inner, at, sum);
             })
      .getResult(0);
}

/// Makes unsigned bytes on the left signed, where warpgroups multiply then:
/// with u = s + 128, sum u w = sum s w + 128 sum w. Instructions for one side
/// without a sign came with PTX 8.4, which drivers before CUDA 12.4 refuse, and
/// sessions run from 12.0 on. `rhs` is the right-hand side, in which `k` is the
/// dimension along K.
static void makeSigned(sdx::MatmulOp op, Value rhs, int64_t k) {
  // Otherwise both the flip and the sums are work that a run would do.
  if (!isWeight(findSource(rhs, /*unflips=*/true)) &&
      !findUnflipped(findSource(op.getLhs(), false).getDefiningOp()))
    return;
  if (!nv::wantsSignedBytes(op, nv::getTargetOrDefault(op)))
    return;
  OpBuilder b(op);
  Location loc = op.getLoc();
  Value sums = sumAlongK(b, loc, rhs, k);
  op.getLhsMutable().assign(flipTopBit(b, loc, op.getLhs()));
  op.setLhsUnsigned(false);
  b.setInsertionPointAfter(op);
  Value product = op.getResult();
  auto uses = llvm::to_vector(llvm::make_pointer_range(product.getUses()));
  const int64_t rank = cast<ShapedType>(product.getType()).getRank();
  SmallVector<AffineExpr> ofSums = {b.getAffineDimExpr(rank - 1)};
  if (op.isRhsBatched())
    ofSums.insert(ofSums.begin(), b.getAffineDimExpr(0));
  Value corrected = createElementwise(
      b, loc, {product, sums},
      {b.getMultiDimIdentityMap(rank),
       AffineMap::get(rank, 0, ofSums, b.getContext())},
      [&](OpBuilder &inner, ValueRange args) -> Value {
        Value bit = arith::ConstantIntOp::create(inner, loc, -kTopBit, 32);
        Value more = arith::MulIOp::create(inner, loc, args[1], bit);
        return arith::AddIOp::create(inner, loc, args[0], more);
      });
  for (OpOperand *use : uses)
    use->set(corrected);
}

namespace {

struct PrepareProductsPass
    : sardonyx::impl::NVPrepareProductsBase<PrepareProductsPass> {
  void runOnOperation() override {
    nv::splitProducts(getOperation());
    SmallVector<sdx::DenseOpInterface> ops;
    getOperation().walk([&](sdx::DenseOpInterface op) { ops.push_back(op); });
    for (sdx::DenseOpInterface op : ops) {
      if (auto matmul = dyn_cast<sdx::MatmulOp>(op.getOperation())) {
        narrowOperands(op, matmul.getLhsMutable(), matmul.getRhsMutable());
        Value rhs = matmul.getRhs();
        const int64_t k = matmul.getDepthDim();
        transposeRhs(matmul);
        makeSigned(matmul, rhs, k);
        if (nv::hasTiles(matmul))
          continue;
      } else if (auto conv = dyn_cast<sdx::ConvOp>(op.getOperation())) {
        narrowOperands(op, conv.getInputMutable(), conv.getWeightsMutable());
        continue;
      } else if (auto pool = dyn_cast<sdx::MaxPoolOp>(op.getOperation())) {
        ShapedType input = pool.getInput().getType(),
                   init = pool.getInit().getType();
        if (isa<FloatType>(input.getElementType()) && !input.isDynamicDim(2) &&
            !input.isDynamicDim(3) && !init.isDynamicDim(2) &&
            !init.isDynamicDim(3))
          continue;
      } else if (auto dequant =
                     dyn_cast<sdx::DequantMatmulOp>(op.getOperation())) {
        if (nv::multiplyByteFloats(dequant))
          continue;
        if (nv::hasTiles(dequant)) {
          narrowOperand(op, dequant.getLhsMutable());
          continue;
        }
      }
      OpBuilder b(op);
      if (Value loops = decomposeToLinalg(b, op)) {
        op->getResult(0).replaceAllUsesWith(loops);
        op->erase();
      }
    }
  }
};

} // namespace
