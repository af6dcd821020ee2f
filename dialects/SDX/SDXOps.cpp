//===- SDXOps.cpp - Verifiers and interfaces of dense sdx ops
//--------------===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "dialects/SDX/SDXDps.h"
#include "dialects/SDX/Winograd.h"

#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/Builders.h"

#include <numeric>

using namespace mlir;
using namespace sardonyx;
using namespace sardonyx::sdx;

#include "dialects/SDX/SDXEnums.cpp.inc"

#define GET_OP_CLASSES
#include "dialects/SDX/SDXOps.cpp.inc"

//===----------------------------------------------------------------------===//
// What all operations in destination style share
//===----------------------------------------------------------------------===//

void sdx::getDpsEffects(DestinationStyleOpInterface op, bool accumulates,
                        Effects &effects) {
  for (OpOperand &operand : op->getOpOperands()) {
    if (!isa<MemRefType>(operand.get().getType()))
      continue;
    bool isInit = op.isDpsInit(&operand);
    if (!isInit || accumulates)
      effects.emplace_back(MemoryEffects::Read::get(), &operand);
    if (isInit)
      effects.emplace_back(MemoryEffects::Write::get(), &operand);
  }
}

LogicalResult sdx::reifyFromInits(DestinationStyleOpInterface op, OpBuilder &b,
                                  ReifiedRankedShapedTypeDims &shapes) {
  for (Value init : op.getDpsInits())
    if (isa<RankedTensorType>(init.getType()))
      shapes.push_back(tensor::getMixedSizes(b, op.getLoc(), init));
  return success();
}

LogicalResult sdx::verifyDps(Operation *op, OperandRange inits,
                             TypeRange results) {
  bool tensors = false, memrefs = false;
  for (Type type : op->getOperandTypes()) {
    tensors |= isa<TensorType>(type);
    memrefs |= isa<BaseMemRefType>(type);
  }
  if (tensors && memrefs)
    return op->emitOpError("works on tensors or on memrefs, not on both");
  size_t expected = tensors ? inits.size() : 0;
  if (results.size() != expected)
    return op->emitOpError("has ")
           << results.size() << " results; " << expected
           << " expected, one for each tensor in 'outs'";
  for (auto [init, result] : llvm::zip(inits, results))
    if (init.getType() != result)
      return op->emitOpError("result type ")
             << result << " differs from the type of its 'outs' operand, "
             << init.getType();
  return success();
}

static bool mayEqual(int64_t a, int64_t b) {
  return ShapedType::isDynamic(a) || ShapedType::isDynamic(b) || a == b;
}

/// True unless `columns` are known not to fit into `blocks` of `width`.
static bool mayFit(int64_t columns, int64_t blocks, int64_t width) {
  if (ShapedType::isDynamic(columns) || ShapedType::isDynamic(blocks))
    return true;
  return columns <= blocks * width;
}

static SmallVector<Type, 1> resultTypes(Value init) {
  if (isa<RankedTensorType>(init.getType()))
    return {init.getType()};
  return {};
}

//===----------------------------------------------------------------------===//
// PackedMatmulOp
//===----------------------------------------------------------------------===//

void PackedMatmulOp::build(OpBuilder &b, OperationState &state, Value lhs,
                           Value rhs, Value init) {
  state.addOperands({lhs, rhs, init});
  state.addTypes(resultTypes(init));
}

void PackedMatmulOp::build(OpBuilder &b, OperationState &state, Value lhs,
                           Value rhs, Value scales, int64_t block, Value init) {
  state.addOperands({lhs, rhs, scales, init});
  state.getOrAddProperties<Properties>().setBlock(b.getI64IntegerAttr(block));
  state.addTypes(resultTypes(init));
}

/// What is wrong with panels of `width` numbers of 21 or 24 bits.
static LogicalResult verifyShortPanels(Operation *op, int64_t width) {
  constexpr int64_t kLeastWidth = 8;
  if (width < kLeastWidth || !llvm::isPowerOf2_64(width))
    return op->emitOpError("panels of numbers of 21 or 24 bits must have a "
                           "power of two of columns, from ")
           << kLeastWidth << " on, but have " << width;
  return success();
}

/// What is wrong with a right-hand side of scaled integers.
static LogicalResult verifyScales(PackedMatmulOp op) {
  ArrayRef<int64_t> lhs = op.getLhs().getType().getShape();
  ArrayRef<int64_t> rhs = op.getRhs().getType().getShape();
  ArrayRef<int64_t> scales = op.getScales().getType().getShape();
  if (!op.getBlock() || *op.getBlock() < 1)
    return op.emitOpError("has scales but no positive block");
  if (rhs.size() != 3 || scales.size() != 4)
    return op.emitOpError("rhs must be [No,K,Nt/P] and scales "
                          "[No,ceil(K/block),1 or 2,Nt]");
  if (ShapedType::isDynamicShape(rhs) || ShapedType::isDynamicShape(scales) ||
      ShapedType::isDynamic(lhs.back()))
    return op.emitOpError("has scales and open sizes of weights");
  bool isShort = op.isShort();
  if (isShort && (scales[1] != 1 || scales[2] != 1))
    return op.emitOpError(
        "scales of numbers of 21 or 24 bits must be [No,1,1,Nt]");
  if (op.isOfTriples() && rhs.back() != scales.back())
    return op.emitOpError("has panels of ")
           << rhs.back() << " columns but scales for " << scales.back();
  if (isShort && failed(verifyShortPanels(op, scales.back())))
    return failure();
  int64_t perByte = rhs.back() ? scales.back() / rhs.back() : 0;
  if (!isShort && ((perByte != 1 && perByte != 2 && perByte != 4) ||
                   perByte * rhs.back() != scales.back()))
    return op.emitOpError("a panel of ")
           << scales.back() << " columns cannot have " << rhs.back()
           << " bytes";
  int64_t blocks = llvm::divideCeil(lhs.back(), *op.getBlock());
  if (scales[0] != rhs[0] || scales[1] != blocks ||
      (scales[2] != 1 && scales[2] != 2))
    return op.emitOpError("scales must be ")
           << rhs[0] << "x" << blocks << "x1x" << scales.back() << " or "
           << rhs[0] << "x" << blocks << "x2x" << scales.back();
  return success();
}

/// What is wrong with a product that may go by Strassen's algorithm.
static LogicalResult verifyStrassen(PackedMatmulOp op) {
  ArrayRef<int64_t> rhs = op.getRhs().getType().getShape();
  int64_t depth = *op.getStrassen();
  if (op.getScales() || !op.getRhs().getType().getElementType().isF32() ||
      op.isBatched() || ShapedType::isDynamicShape(rhs))
    return op.emitOpError(
        "only a product of f32 without batches, by weights of "
        "known sizes, can go by Strassen's algorithm");
  // Vectors of values of k come from one half.
  constexpr int64_t kLeast = 32;
  if (depth <= 0 || depth % kLeast || rhs[1] % depth || rhs[0] < 2)
    return op.emitOpError("strassen must be a multiple of ")
           << kLeast << " that divides K, and there must be two panels";
  return success();
}

LogicalResult PackedMatmulOp::verify() {
  if (failed(verifyDps(*this, getDpsInits(), (*this)->getResultTypes())))
    return failure();
  ArrayRef<int64_t> lhs = getLhs().getType().getShape();
  ArrayRef<int64_t> rhs = getRhs().getType().getShape();
  ArrayRef<int64_t> init = getInit().getType().getShape();
  if (lhs.size() != 2 && lhs.size() != 3)
    return emitOpError("lhs must be [M,K] or [B,M,K], got rank ") << lhs.size();
  if (init.size() != lhs.size())
    return emitOpError("init must have the rank of lhs, ")
           << lhs.size() << ", got rank " << init.size();
  if (rhs.size() != 3 && !(rhs.size() == 4 && lhs.size() == 3))
    return emitOpError("rhs must be [No,K,Nt], or [B,No,K,Nt] with a batched "
                       "lhs, got rank ")
           << rhs.size();
  auto isOf = [&](Type left, Type right, Type sum) {
    return getLhs().getType().getElementType() == left &&
           getRhs().getType().getElementType() == right &&
           getInit().getType().getElementType() == sum;
  };
  Builder b(getContext());
  Type f32 = b.getF32Type(), bf16 = b.getBF16Type(), i8 = b.getI8Type();
  if (!isOf(f32, f32, f32) && !isOf(bf16, bf16, f32) &&
      !isOf(i8, i8, b.getI32Type()) &&
      !(getScales() && (isOf(f32, i8, f32) || isOf(f32, b.getI64Type(), f32))))
    return emitOpError("operands must be of f32, or lhs and rhs of i8 and init "
                       "of i32, or lhs and rhs of bf16 and init of f32, or rhs "
                       "of i8 or i64 with scales and the others of f32");
  if (getScales() && failed(verifyScales(*this)))
    return failure();
  if (getStrassen() && failed(verifyStrassen(*this)))
    return failure();
  if (!getScales() && getBlock())
    return emitOpError("has a block but no scales");
  int64_t panels = rhs[rhs.size() - 3];
  if (ShapedType::isDynamic(rhs.back()) || rhs.back() <= 0)
    return emitOpError("the last dimension of rhs, the panel width, must be "
                       "static and positive");
  if (rhs.back() % getDepthGroup())
    return emitOpError("the last dimension of rhs, ")
           << rhs.back() << ", is no multiple of " << getDepthGroup();
  int64_t width = getPanelWidth();
  int64_t k = lhs.back();
  if (!ShapedType::isDynamic(k))
    k = getPackedDepth(k);
  if (!mayEqual(k, rhs[rhs.size() - 2]))
    return emitOpError("lhs has K = ")
           << lhs.back() << " but rhs " << rhs[rhs.size() - 2]
           << (getDepthGroup() > 1 || isOfTriples() ? " groups" : "");
  if (!mayEqual(lhs[lhs.size() - 2], init[init.size() - 2]))
    return emitOpError("lhs has M = ")
           << lhs[lhs.size() - 2] << " but init " << init[init.size() - 2];
  if (!mayFit(init.back(), panels, width))
    return emitOpError("init has N = ")
           << init.back() << " columns but rhs only " << panels << " panels of "
           << width;
  if (lhs.size() == 3 && !mayEqual(lhs[0], init[0]))
    return emitOpError("lhs has ") << lhs[0] << " batches but init " << init[0];
  if (rhs.size() == 4 && !mayEqual(rhs[0], init[0]))
    return emitOpError("rhs has ") << rhs[0] << " batches but init " << init[0];
  return success();
}

void PackedMatmulOp::getEffects(Effects &effects) {
  getDpsEffects(*this, /*accumulates=*/true, effects);
}

LogicalResult
PackedMatmulOp::reifyResultShapes(OpBuilder &b,
                                  ReifiedRankedShapedTypeDims &shapes) {
  return reifyFromInits(*this, b, shapes);
}

//===----------------------------------------------------------------------===//
// PackRhsOp
//===----------------------------------------------------------------------===//

void PackRhsOp::build(OpBuilder &b, OperationState &state, Value source,
                      Value init, bool transposed) {
  build(b, state, source, /*scales=*/Value(), init, transposed);
}

void PackRhsOp::build(OpBuilder &b, OperationState &state, Value source,
                      Value scales, Value init, bool transposed) {
  state.addOperands(source);
  if (scales)
    state.addOperands(scales);
  state.addOperands(init);
  if (transposed)
    state.getOrAddProperties<Properties>().setTransposed(b.getUnitAttr());
  state.addTypes(resultTypes(init));
}

LogicalResult PackRhsOp::verify() {
  if (failed(verifyDps(*this, getDpsInits(), (*this)->getResultTypes())))
    return failure();
  Type element = getInit().getType().getElementType();
  if (getScales() ? !element.isInteger(8) && !makesTriples() : !element.isF32())
    return emitOpError("init must be of i8 or i64 with scales, else of f32");
  ArrayRef<int64_t> source = getSource().getType().getShape();
  ArrayRef<int64_t> init = getInit().getType().getShape();
  if (source.size() < 2 || source.size() > 4)
    return emitOpError("source must be a matrix or a batch of matrices, got "
                       "rank ")
           << source.size();
  size_t rank = std::min<size_t>(source.size() + 1, 4);
  if (init.size() != rank)
    return emitOpError("init must have rank ")
           << rank << " for a source of rank " << source.size() << ", got "
           << init.size();
  int64_t width = getPanelWidth();
  if (ShapedType::isDynamic(width) || width <= 0)
    return emitOpError("the last dimension of init, the panel width, must be "
                       "static and positive");
  if (getScales()) {
    ArrayRef<int64_t> scales = getScales().getType().getShape();
    if (init.size() != 3 || scales.size() != 4 || scales[0] != init[0] ||
        scales[1] != 1 || scales[2] != 1 ||
        init.back() != (makesTriples() ? width : width * 3))
      return emitOpError(
          "with scales [No,1,1,Nt] init must be [No,K,Nt*3] of i8 "
          "or [No,ceil(K/3),Nt] of i64");
    if (failed(verifyShortPanels(*this, width)))
      return failure();
  }
  int64_t n = source[getColumnDim()], k = source[getDepthDim()];
  if (makesTriples() && !ShapedType::isDynamic(k))
    k = llvm::divideCeil(k, kTriple);
  if (!mayEqual(k, init[init.size() - 2]))
    return emitOpError("source has K = ")
           << k << " but init " << init[init.size() - 2]
           << (makesTriples() ? " groups" : "");
  int64_t panels = init[init.size() - 3];
  int64_t expected = ShapedType::isDynamic(n) ? n : (n + width - 1) / width;
  if (!mayEqual(expected, panels))
    return emitOpError("source has N = ") << n << ", which makes " << expected
                                          << " panels, but init has " << panels;
  if (source.size() == 2)
    return success();
  int64_t batches = source[0];
  if (isInterleaved())
    batches =
        ShapedType::isDynamic(source[0]) || ShapedType::isDynamic(source[2])
            ? ShapedType::kDynamic
            : source[0] * source[2];
  if (!mayEqual(batches, init[0]))
    return emitOpError("source has ")
           << batches << " batches but init " << init[0];
  return success();
}

void PackRhsOp::getEffects(Effects &effects) {
  getDpsEffects(*this, /*accumulates=*/false, effects);
}

LogicalResult PackRhsOp::reifyResultShapes(OpBuilder &b,
                                           ReifiedRankedShapedTypeDims &s) {
  return reifyFromInits(*this, b, s);
}

//===----------------------------------------------------------------------===//
// ConvOp
//===----------------------------------------------------------------------===//

void ConvOp::build(OpBuilder &b, OperationState &state, Value input,
                   Value weights, Value init, ArrayRef<int64_t> kernelShape,
                   ArrayRef<int64_t> strides, ArrayRef<int64_t> dilations,
                   ArrayRef<int64_t> padsBegin, ArrayRef<int64_t> padsEnd,
                   int64_t group, bool exact) {
  build(b, state, resultTypes(init), input, weights, /*scales=*/Value(), init,
        b.getDenseI64ArrayAttr(kernelShape), b.getDenseI64ArrayAttr(strides),
        b.getDenseI64ArrayAttr(dilations), b.getDenseI64ArrayAttr(padsBegin),
        b.getDenseI64ArrayAttr(padsEnd), b.getI64IntegerAttr(group),
        exact ? b.getUnitAttr() : UnitAttr(), /*winograd=*/IntegerAttr());
}

/// The values of K that a filter becomes: those of `kernel`, or as many as
/// F(m x m, 3 x 3) has for m = `winograd`.
static FailureOr<int64_t> countTaps(Operation *op, ArrayRef<int64_t> kernel,
                                    int64_t group,
                                    std::optional<int64_t> winograd) {
  if (!winograd)
    return std::accumulate(kernel.begin(), kernel.end(), int64_t(1),
                           std::multiplies<int64_t>());
  if (*winograd != 2 && *winograd != 4)
    return op->emitOpError("'winograd' must be 2 or 4, got ") << *winograd;
  if (group != 1 || kernel != ArrayRef<int64_t>({3, 3}))
    return op->emitOpError("'winograd' is for kernels of 3x3 and one group");
  return sdx::getWinograd(*winograd).taps();
}

/// How long a filter of `channels` channels is in packed weights where each has
/// become `taps` values.
static int64_t countPacked(ShapedType weights, int64_t channels, int64_t taps) {
  return taps * (weights.getElementType().isBF16()
                     ? llvm::divideCeil(channels, kPartBlock)
                     : channels);
}

/// What is wrong with packed weights of a convolution and their scales, if they
/// have some. A filter has become `taps` values.
static LogicalResult verifyShortWeights(Operation *op, ShapedType weights,
                                        Value scales,
                                        std::optional<int64_t> winograd,
                                        int64_t taps) {
  if (weights.getElementType().isF32()) {
    if (scales)
      return op->emitOpError("has scales but weights of f32");
    return success();
  }
  if (weights.getElementType().isBF16()) {
    constexpr int64_t kStep = kWeightParts * kPartBlock * kPartBlock;
    if (scales || winograd)
      return op->emitOpError("weights of bf16 are for neither scales nor "
                             "'winograd'");
    if (weights.getDimSize(3) != kStep)
      return op->emitOpError("weights of bf16 must have ")
             << kStep << " in a step, got " << weights.getDimSize(3);
    return success();
  }
  if (!scales || !winograd)
    return op->emitOpError("weights of i8 must have scales and 'winograd'");
  if (!weights.hasStaticShape())
    return op->emitOpError("has scales and open sizes of weights");
  int64_t panels = weights.getDimSize(1) * taps, bytes = weights.getDimSize(3);
  if (bytes % 3 || weights.getDimSize(2) % taps ||
      cast<ShapedType>(scales.getType()).getShape() !=
          ArrayRef<int64_t>({panels, 1, 1, bytes / 3}))
    return op->emitOpError("scales must be ")
           << panels << "x1x1x" << bytes / 3 << " where weights have "
           << weights.getDimSize(1) << " blocks of " << bytes << " bytes";
  return verifyShortPanels(op, bytes / 3);
}

namespace {
/// An attribute with an element for each spatial dimension.
struct WindowAttribute {
  StringRef name;
  ArrayRef<int64_t> values;
  int64_t least;
};
} // namespace

static LogicalResult verifyWindow(Operation *op, size_t spatial,
                                  ArrayRef<WindowAttribute> attributes) {
  for (const WindowAttribute &attr : attributes) {
    if (attr.values.size() != spatial)
      return op->emitOpError("'")
             << attr.name << "' must have " << spatial
             << " elements, one for each spatial dimension, got "
             << attr.values.size();
    for (int64_t value : attr.values)
      if (value < attr.least)
        return op->emitOpError("'") << attr.name << "' must be at least "
                                    << attr.least << ", got " << value;
  }
  return success();
}

const Winograd *ConvOp::getAlgorithm() {
  return getWinograd() ? &sdx::getWinograd(*getWinograd(), getStrides().front())
                       : nullptr;
}

LogicalResult ConvOp::verify() {
  if (failed(verifyDps(*this, getDpsInits(), (*this)->getResultTypes())))
    return failure();
  ArrayRef<int64_t> input = getInput().getType().getShape();
  ArrayRef<int64_t> weights = getWeights().getType().getShape();
  ArrayRef<int64_t> init = getInit().getType().getShape();
  if (input.size() < 3 || input.size() > 5)
    return emitOpError("input must be [N,C,S...] with one to three spatial "
                       "dimensions, got rank ")
           << input.size();
  if (init.size() != input.size())
    return emitOpError("init must have the rank of input, ")
           << input.size() << ", got " << init.size();
  if (weights.size() != 4)
    return emitOpError("weights must be packed, [G,Ob,K,Rt], got rank ")
           << weights.size();
  if (ShapedType::isDynamic(weights[3]) || weights[3] <= 0)
    return emitOpError("the last dimension of weights, the block of output "
                       "channels, must be static and positive");
  if (failed(verifyWindow(*this, getNumSpatialDims(),
                          {{"kernel_shape", getKernelShape(), 1},
                           {"strides", getStrides(), 1},
                           {"dilations", getDilations(), 1},
                           {"pads_begin", getPadsBegin(), 0},
                           {"pads_end", getPadsEnd(), 0}})))
    return failure();
  int64_t group = getGroup();
  if (group < 1)
    return emitOpError("'group' must be at least 1, got ") << group;
  if (!mayEqual(weights[0], group))
    return emitOpError("weights have ")
           << weights[0] << " groups but 'group' is " << group;
  for (auto [what, channels] :
       {std::pair("input", input[1]), std::pair("init", init[1])})
    if (!ShapedType::isDynamic(channels) && channels % group)
      return emitOpError(what)
             << " has " << channels << " channels, which 'group' = " << group
             << " does not divide";
  FailureOr<int64_t> taps =
      countTaps(*this, getKernelShape(), group, getWinograd());
  if (failed(taps))
    return failure();
  if (getWinograd()) {
    int64_t stride = getStrides().front();
    auto areAll = [](ArrayRef<int64_t> sizes, int64_t size) {
      return llvm::all_of(sizes, [&](int64_t s) { return s == size; });
    };
    if (!areAll(getDilations(), 1))
      return emitOpError("'winograd' is for no dilations");
    if (stride > 2 || !areAll(getStrides(), stride))
      return emitOpError("'winograd' is for strides of 1 or of 2");
  }
  if (failed(verifyShortWeights(*this, getWeights().getType(), getScales(),
                                getWinograd(), *taps)))
    return failure();
  if (!ShapedType::isDynamic(input[1]) &&
      !mayEqual(countPacked(getWeights().getType(), input[1] / group, *taps),
                weights[2]))
    return emitOpError("weights have K = ")
           << weights[2] << "; "
           << countPacked(getWeights().getType(), input[1] / group, *taps)
           << " expected";
  if (!ShapedType::isDynamic(init[1]) &&
      !mayFit(init[1] / group, weights[1], getBlockRows()))
    return emitOpError("init has ")
           << init[1] / group << " channels a group but weights only "
           << weights[1] << " blocks of " << getBlockRows();
  if (!mayEqual(input[0], init[0]))
    return emitOpError("input has ")
           << input[0] << " images but init " << init[0];
  for (int64_t i = 0, e = getNumSpatialDims(); i < e; ++i) {
    if (ShapedType::isDynamic(input[i + 2]))
      continue;
    int64_t room = input[i + 2] + getPadsBegin()[i] + getPadsEnd()[i] -
                   getDilations()[i] * (getKernelShape()[i] - 1) - 1;
    int64_t size = room < 0 ? 0 : room / getStrides()[i] + 1;
    if (!mayEqual(size, init[i + 2]))
      return emitOpError("spatial dimension ")
             << i << " of init is " << init[i + 2] << "; " << size
             << " expected";
  }
  return success();
}

void ConvOp::getEffects(Effects &effects) {
  getDpsEffects(*this, /*accumulates=*/true, effects);
}

LogicalResult ConvOp::reifyResultShapes(OpBuilder &b,
                                        ReifiedRankedShapedTypeDims &shapes) {
  return reifyFromInits(*this, b, shapes);
}

//===----------------------------------------------------------------------===//
// MaxPoolOp
//===----------------------------------------------------------------------===//

void MaxPoolOp::build(OpBuilder &b, OperationState &state, Value input,
                      Value init, ArrayRef<int64_t> kernelShape,
                      ArrayRef<int64_t> strides, ArrayRef<int64_t> padsBegin) {
  build(b, state, resultTypes(init), input, init,
        b.getDenseI64ArrayAttr(kernelShape), b.getDenseI64ArrayAttr(strides),
        b.getDenseI64ArrayAttr(padsBegin));
}

LogicalResult MaxPoolOp::verify() {
  if (failed(verifyDps(*this, getDpsInits(), (*this)->getResultTypes())))
    return failure();
  ArrayRef<int64_t> input = getInput().getType().getShape();
  ArrayRef<int64_t> init = getInit().getType().getShape();
  if (input.size() != 4 || init.size() != 4)
    return emitOpError("input and init must be [N,C,H,W], got ranks ")
           << input.size() << " and " << init.size();
  if (failed(verifyWindow(*this, getNumSpatialDims(),
                          {{"kernel_shape", getKernelShape(), 1},
                           {"strides", getStrides(), 1},
                           {"pads_begin", getPadsBegin(), 0}})))
    return failure();
  for (int64_t i = 0; i < 2; ++i)
    if (!mayEqual(input[i], init[i]))
      return emitOpError("input and init must have the same first two "
                         "dimensions, got ")
             << input[i] << " and " << init[i];
  for (int64_t i = 0; i < getNumSpatialDims(); ++i) {
    int64_t in = input[i + 2], out = init[i + 2];
    if (ShapedType::isDynamic(in) || ShapedType::isDynamic(out) || out == 0)
      return emitOpError("spatial dimension ")
             << i << " must be known, and there must be windows";
    int64_t first = -getPadsBegin()[i];
    int64_t last = first + (out - 1) * getStrides()[i];
    if (first + getKernelShape()[i] <= 0 || last >= in)
      return emitOpError("has windows that see nothing in spatial dimension ")
             << i;
  }
  return success();
}

void MaxPoolOp::getEffects(Effects &effects) {
  getDpsEffects(*this, /*accumulates=*/true, effects);
}

LogicalResult
MaxPoolOp::reifyResultShapes(OpBuilder &b,
                             ReifiedRankedShapedTypeDims &shapes) {
  return reifyFromInits(*this, b, shapes);
}

//===----------------------------------------------------------------------===//
// PackConvWeightsOp
//===----------------------------------------------------------------------===//

void PackConvWeightsOp::build(OpBuilder &b, OperationState &state, Value source,
                              Value init) {
  build(b, state, resultTypes(init), source, /*scales=*/Value(), init,
        /*winograd=*/IntegerAttr(),
        /*winograd_stride=*/IntegerAttr());
}

const Winograd *PackConvWeightsOp::getAlgorithm() {
  return getWinograd() ? &sdx::getWinograd(*getWinograd(),
                                           getWinogradStride().value_or(1))
                       : nullptr;
}

LogicalResult PackConvWeightsOp::verify() {
  if (failed(verifyDps(*this, getDpsInits(), (*this)->getResultTypes())))
    return failure();
  ArrayRef<int64_t> source = getSource().getType().getShape();
  ArrayRef<int64_t> init = getInit().getType().getShape();
  if (source.size() < 3 || source.size() > 5)
    return emitOpError("source must be [OC,C/G,k...] with one to three kernel "
                       "dimensions, got rank ")
           << source.size();
  if (init.size() != 4)
    return emitOpError("init must be [G,Ob,K,Rt], got rank ") << init.size();
  if (ShapedType::isDynamic(init[3]) || init[3] <= 0)
    return emitOpError("the last dimension of init, the block of output "
                       "channels, must be static and positive");
  int64_t group = getGroup();
  if (group == 0)
    return emitOpError("init has no groups");
  if (std::optional<int64_t> stride = getWinogradStride())
    if (!getWinograd() || (*stride != 1 && *stride != 2))
      return emitOpError("'winograd_stride' must be 1 or 2, and is for "
                         "'winograd'; got ")
             << *stride;
  FailureOr<int64_t> taps = ShapedType::kDynamic;
  if (getWinograd() || !ShapedType::isDynamicShape(source.drop_front(2)))
    taps = countTaps(*this, source.drop_front(2), group, getWinograd());
  if (failed(taps) ||
      failed(verifyShortWeights(*this, getInit().getType(), getScales(),
                                getWinograd(), *taps)))
    return failure();
  if (!ShapedType::isDynamic(source[0]) && !ShapedType::isDynamic(group)) {
    if (source[0] % group)
      return emitOpError("source has ")
             << source[0] << " output channels, which the " << group
             << " groups of init do not divide";
    int64_t blocks = llvm::divideCeil(source[0] / group, getBlockRows());
    if (!mayEqual(blocks, init[1]))
      return emitOpError("init has ")
             << init[1] << " blocks; " << blocks << " expected";
  }
  if (!ShapedType::isDynamic(*taps) && !ShapedType::isDynamic(source[1]) &&
      !mayEqual(countPacked(getInit().getType(), source[1], *taps), init[2]))
    return emitOpError("init has K = ")
           << init[2] << "; "
           << countPacked(getInit().getType(), source[1], *taps) << " expected";
  return success();
}

void PackConvWeightsOp::getEffects(Effects &effects) {
  getDpsEffects(*this, /*accumulates=*/false, effects);
}

LogicalResult
PackConvWeightsOp::reifyResultShapes(OpBuilder &b,
                                     ReifiedRankedShapedTypeDims &shapes) {
  return reifyFromInits(*this, b, shapes);
}
