//===- SDXOps.cpp - Verifiers and interfaces of dense sdx ops -------------===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "dialects/SDX/SDXDps.h"

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

SmallVector<Type, 1> sdx::resultTypes(Value init) {
  if (isa<RankedTensorType>(init.getType()))
    return {init.getType()};
  return {};
}

LogicalResult sdx::verifyWindow(Operation *op, size_t spatial,
                                ArrayRef<WindowAttribute> attributes) {
  for (const WindowAttribute &attr : attributes) {
    if (attr.values.size() != spatial)
      return op->emitOpError("'")
             << attr.name << "' must have " << spatial
             << " elements, one for each spatial dimension, got "
             << attr.values.size();
    // Products of two fit in an index.
    constexpr int64_t kMax = INT32_MAX;
    for (int64_t value : attr.values) {
      if (value < attr.least)
        return op->emitOpError("'") << attr.name << "' must be at least "
                                    << attr.least << ", got " << value;
      if (value > kMax)
        return op->emitOpError("'") << attr.name << "' must be at most " << kMax
                                    << ", got " << value;
    }
  }
  return success();
}

LogicalResult sdx::verifyConvSizes(Operation *op, ShapedType inputType,
                                   ShapedType initType,
                                   const ConvWindow &window, int64_t group) {
  ArrayRef<int64_t> input = inputType.getShape(), init = initType.getShape();
  if (input.size() < 3 || input.size() > 5)
    return op->emitOpError("input must be [N,C,S...] with one to three spatial "
                           "dimensions, got rank ")
           << input.size();
  if (init.size() != input.size())
    return op->emitOpError("init must have the rank of input, ")
           << input.size() << ", got " << init.size();
  size_t spatial = input.size() - 2;
  if (failed(verifyWindow(op, spatial,
                          {{"kernel_shape", window.kernel, 1},
                           {"strides", window.strides, 1},
                           {"dilations", window.dilations, 1},
                           {"pads_begin", window.padsBegin, 0},
                           {"pads_end", window.padsEnd, 0}})))
    return failure();
  if (group < 1)
    return op->emitOpError("'group' must be at least 1, got ") << group;
  for (auto [what, channels] :
       {std::pair("input", input[1]), std::pair("init", init[1])})
    if (!ShapedType::isDynamic(channels) && channels % group)
      return op->emitOpError(what)
             << " has " << channels << " channels, which 'group' = " << group
             << " does not divide";
  if (!mayEqual(input[0], init[0]))
    return op->emitOpError("input has ")
           << input[0] << " images but init " << init[0];
  for (size_t i = 0; i < spatial; ++i) {
    if (ShapedType::isDynamic(input[i + 2]))
      continue;
    int64_t room = input[i + 2] + window.padsBegin[i] + window.padsEnd[i] -
                   window.dilations[i] * (window.kernel[i] - 1) - 1;
    int64_t size = room < 0 ? 0 : room / window.strides[i] + 1;
    if (!mayEqual(size, init[i + 2]))
      return op->emitOpError("spatial dimension ")
             << i << " of init is " << init[i + 2] << "; " << size
             << " expected";
  }
  return success();
}

/// Whether elements of `from` can be extended to those of `to`: floats to
/// floats and integers to integers, of more bits, or the same.
static bool extendsTo(Type from, Type to) {
  return from == to ||
         (isa<FloatType>(from) == isa<FloatType>(to) &&
          from.getIntOrFloatBitWidth() < to.getIntOrFloatBitWidth());
}

/// What is wrong with the element types of a sum of products.
static LogicalResult verifyElements(Operation *op, ShapedType lhs,
                                    ShapedType rhs, ShapedType init) {
  Type sum = init.getElementType();
  for (Type type : {lhs.getElementType(), rhs.getElementType()})
    if (!extendsTo(type, sum))
      return op->emitOpError("elements of ")
             << type << " cannot be extended to those of init, " << sum;
  return success();
}

//===----------------------------------------------------------------------===//
// MatmulOp
//===----------------------------------------------------------------------===//

void MatmulOp::build(OpBuilder &b, OperationState &state, Value lhs, Value rhs,
                     Value init, bool transposed) {
  state.addOperands({lhs, rhs, init});
  if (transposed)
    state.getOrAddProperties<Properties>().setTransposed(b.getUnitAttr());
  state.addTypes(resultTypes(init));
}

LogicalResult MatmulOp::verify() {
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
  if (rhs.size() != 2 && rhs.size() != lhs.size())
    return emitOpError("rhs must be a matrix, or a batch of matrices with a "
                       "batched lhs, got rank ")
           << rhs.size();
  if (failed(verifyElements(*this, getLhs().getType(), getRhs().getType(),
                            getInit().getType())))
    return failure();
  if ((getLhsUnsigned() || getRhsUnsigned()) &&
      isa<FloatType>(getInit().getType().getElementType()))
    return emitOpError("'lhs_unsigned' and 'rhs_unsigned' are for integers");
  if (!mayEqual(lhs.back(), rhs[getDepthDim()]))
    return emitOpError("lhs has K = ")
           << lhs.back() << " but rhs " << rhs[getDepthDim()];
  if (!mayEqual(lhs[lhs.size() - 2], init[init.size() - 2]))
    return emitOpError("lhs has M = ")
           << lhs[lhs.size() - 2] << " but init " << init[init.size() - 2];
  if (!mayEqual(rhs[getColumnDim()], init.back()))
    return emitOpError("rhs has N = ")
           << rhs[getColumnDim()] << " but init " << init.back();
  if (isBatched() && !mayEqual(lhs[0], init[0]))
    return emitOpError("lhs has ") << lhs[0] << " batches but init " << init[0];
  if (isRhsBatched() && !mayEqual(rhs[0], init[0]))
    return emitOpError("rhs has ") << rhs[0] << " batches but init " << init[0];
  return success();
}

void MatmulOp::getEffects(Effects &effects) {
  getDpsEffects(*this, /*accumulates=*/true, effects);
}

LogicalResult MatmulOp::reifyResultShapes(OpBuilder &b,
                                          ReifiedRankedShapedTypeDims &shapes) {
  return reifyFromInits(*this, b, shapes);
}

//===----------------------------------------------------------------------===//
// DequantMatmulOp
//===----------------------------------------------------------------------===//

void DequantMatmulOp::build(OpBuilder &b, OperationState &state, Value lhs,
                            Value weights, Value scales, Value zeroPoints,
                            Value init, int64_t bits, int64_t block,
                            Type element) {
  build(b, state, resultTypes(init), lhs, weights, scales, zeroPoints, init,
        b.getI64IntegerAttr(bits), b.getI64IntegerAttr(block),
        element ? TypeAttr::get(element) : TypeAttr());
}

LogicalResult DequantMatmulOp::verify() {
  if (failed(verifyDps(*this, getDpsInits(), (*this)->getResultTypes())))
    return failure();
  ShapedType lhs = getLhs().getType(), weights = getWeights().getType();
  ShapedType scales = getScales().getType(), init = getInit().getType();
  Type element = lhs.getElementType();
  const bool areCodes = element.isInteger(8) && getElement() && getBits() == 8;
  if (lhs.getRank() != 2 || init.getRank() != 2 ||
      !(element.isF32() || element.isF16() || element.isBF16() || areCodes) ||
      !init.getElementType().isF32())
    return emitOpError("lhs must be [M,K] of f32, f16 or bf16, or of i8 where "
                       "'element' has eight bits, and init [M,N] of f32");
  int64_t bits = getBits(), block = getBlock();
  if (bits != 2 && bits != 4 && bits != 8)
    return emitOpError("'bits' must be 2, 4 or 8, got ") << bits;
  constexpr int64_t kMaxBlock = INT32_MAX;
  if (block < 1 || block > kMaxBlock || block * bits % 8)
    return emitOpError("'block' must be positive, at most ")
           << kMaxBlock << " and of whole bytes, got " << block;
  if (std::optional<Type> type = getElement()) {
    const bool isFloat4 = isa<Float4E2M1FNType>(*type);
    if (!isFloat4 && !isa<Float8E4M3FNType, Float8E5M2Type>(*type))
      return emitOpError("'element' must be f4E2M1FN, f8E4M3FN or f8E5M2, got ")
             << *type;
    if (bits != (isFloat4 ? 4 : 8) || getZeroPoints())
      return emitOpError("weights of ")
             << *type << " must have its bits and no zero points";
  }
  if (lhs.isDynamicDim(1) || !weights.hasStaticShape() ||
      !scales.hasStaticShape())
    return emitOpError("K and the sizes of weights must be known");
  int64_t n = weights.getRank() == 3 ? weights.getDimSize(0) : 0;
  int64_t blocks = llvm::divideCeil(lhs.getDimSize(1), block);
  if (weights.getShape() != ArrayRef<int64_t>({n, blocks, block * bits / 8}) ||
      !weights.getElementType().isInteger(8))
    return emitOpError("weights must be Nx")
           << blocks << "x" << block * bits / 8 << " of i8";
  if (scales.getShape() != ArrayRef<int64_t>({n, blocks}) ||
      !isa<FloatType>(scales.getElementType()))
    return emitOpError("scales must be ") << n << "x" << blocks << " of floats";
  if (Value zeros = getZeroPoints()) {
    auto type = cast<ShapedType>(zeros.getType());
    bool areFloats = isa<FloatType>(type.getElementType());
    int64_t perRow =
        areFloats ? blocks : int64_t(llvm::divideCeil(blocks * bits, 8));
    if (type.getShape() != ArrayRef<int64_t>({n, perRow}) ||
        (!areFloats && !type.getElementType().isInteger(8)))
      return emitOpError("zero_points must be ")
             << n << "x" << blocks << " of floats, or " << n << "x"
             << llvm::divideCeil(blocks * bits, 8) << " of i8";
  }
  if (!mayEqual(lhs.getDimSize(0), init.getDimSize(0)))
    return emitOpError("lhs has M = ")
           << lhs.getDimSize(0) << " but init " << init.getDimSize(0);
  if (!mayEqual(n, init.getDimSize(1)))
    return emitOpError("weights have N = ")
           << n << " but init " << init.getDimSize(1);
  return success();
}

void DequantMatmulOp::getEffects(Effects &effects) {
  getDpsEffects(*this, /*accumulates=*/true, effects);
}

LogicalResult
DequantMatmulOp::reifyResultShapes(OpBuilder &b,
                                   ReifiedRankedShapedTypeDims &shapes) {
  return reifyFromInits(*this, b, shapes);
}

//===----------------------------------------------------------------------===//
// ConvOp
//===----------------------------------------------------------------------===//

void ConvOp::build(OpBuilder &b, OperationState &state, Value input,
                   Value weights, Value init, ArrayRef<int64_t> strides,
                   ArrayRef<int64_t> dilations, ArrayRef<int64_t> padsBegin,
                   ArrayRef<int64_t> padsEnd, int64_t group, bool exact) {
  build(b, state, resultTypes(init), input, weights, init,
        b.getDenseI64ArrayAttr(strides), b.getDenseI64ArrayAttr(dilations),
        b.getDenseI64ArrayAttr(padsBegin), b.getDenseI64ArrayAttr(padsEnd),
        b.getI64IntegerAttr(group), exact ? b.getUnitAttr() : UnitAttr(),
        /*input_unsigned=*/UnitAttr(), /*weights_unsigned=*/UnitAttr(),
        /*padding=*/IntegerAttr());
}

bool ConvOp::isOfBytes() {
  return getInput().getType().getElementType().isInteger(8) &&
         getWeights().getType().getElementType().isInteger(8) &&
         getInit().getType().getElementType().isInteger(32);
}

/// What only integers can have.
static LogicalResult verifyIntegerAttributes(ConvOp op) {
  auto type = dyn_cast<IntegerType>(op.getInput().getType().getElementType());
  if (!type) {
    if (op.getInputUnsigned() || op.getWeightsUnsigned() || op.getPadding())
      return op.emitOpError(
          "'input_unsigned', 'weights_unsigned' and 'padding' "
          "are for integers");
    return success();
  }
  const unsigned width = type.getWidth();
  const int64_t padding = op.getPadding();
  if (width < 64 && !(op.getInputUnsigned() ? llvm::isUIntN(width, padding)
                                            : llvm::isIntN(width, padding)))
    return op.emitOpError("'padding' = ")
           << padding << " is no element of the input";
  return success();
}

LogicalResult ConvOp::verify() {
  if (failed(verifyDps(*this, getDpsInits(), (*this)->getResultTypes())))
    return failure();
  ShapedType input = getInput().getType(), weights = getWeights().getType();
  ShapedType init = getInit().getType();
  if (input.getRank() < 3 || input.getRank() > 5)
    return emitOpError("input must be [N,C,S...] with one to three spatial "
                       "dimensions, got rank ")
           << input.getRank();
  if (weights.getRank() != input.getRank())
    return emitOpError("weights must be [OC,C/group,k...], of the rank of "
                       "input, ")
           << input.getRank() << ", got " << weights.getRank();
  if (ShapedType::isDynamicShape(getKernelShape()))
    return emitOpError("the sizes of the kernel must be known");
  if (failed(verifyConvSizes(*this, input, init,
                             {getKernelShape(), getStrides(), getDilations(),
                              getPadsBegin(), getPadsEnd()},
                             getGroup())) ||
      failed(verifyElements(*this, input, weights, init)) ||
      failed(verifyIntegerAttributes(*this)))
    return failure();
  int64_t channels = input.getDimSize(1);
  if (!ShapedType::isDynamic(channels))
    channels /= int64_t(getGroup());
  if (!mayEqual(channels, weights.getDimSize(1)))
    return emitOpError("weights have ")
           << weights.getDimSize(1) << " channels; " << channels << " expected";
  if (!weights.isDynamicDim(0) && weights.getDimSize(0) % int64_t(getGroup()))
    return emitOpError("weights have ")
           << weights.getDimSize(0)
           << " filters, which 'group' = " << getGroup() << " does not divide";
  if (!mayEqual(weights.getDimSize(0), init.getDimSize(1)))
    return emitOpError("weights have ")
           << weights.getDimSize(0) << " filters but init "
           << init.getDimSize(1) << " channels";
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
        b.getDenseI64ArrayAttr(padsBegin), /*is_unsigned=*/UnitAttr());
}

/// Whether windows of known sizes fit the images that `op` pools.
template <typename OpT> static LogicalResult verifyPool(OpT op) {
  ArrayRef<int64_t> input = op.getInput().getType().getShape();
  ArrayRef<int64_t> init = op.getInit().getType().getShape();
  if (input.size() != 4 || init.size() != 4)
    return op.emitOpError("input and init must be [N,C,H,W], got ranks ")
           << input.size() << " and " << init.size();
  if (failed(verifyWindow(op, op.getNumSpatialDims(),
                          {{"kernel_shape", op.getKernelShape(), 1},
                           {"strides", op.getStrides(), 1},
                           {"pads_begin", op.getPadsBegin(), 0}})))
    return failure();
  for (int64_t i = 0; i < 2; ++i)
    if (!mayEqual(input[i], init[i]))
      return op.emitOpError("input and init must have the same first two "
                            "dimensions, got ")
             << input[i] << " and " << init[i];
  for (int64_t i = 0; i < op.getNumSpatialDims(); ++i) {
    const int64_t in = input[i + 2], out = init[i + 2];
    const int64_t first = -op.getPadsBegin()[i];
    if (out == 0)
      return op.emitOpError("has no windows in spatial dimension ") << i;
    if (first + op.getKernelShape()[i] <= 0 ||
        (!ShapedType::isDynamic(in) && !ShapedType::isDynamic(out) &&
         first + (out - 1) * op.getStrides()[i] >= in))
      return op.emitOpError(
                 "has windows that see nothing in spatial dimension ")
             << i;
  }
  return success();
}

LogicalResult MaxPoolOp::verify() {
  if (failed(verifyDps(*this, getDpsInits(), (*this)->getResultTypes())))
    return failure();
  Type element = getInput().getType().getElementType();
  if (element != getInit().getType().getElementType() ||
      (!element.isF32() && !element.isInteger(8)))
    return emitOpError("input and init must both be of f32, or both of i8");
  return verifyPool(*this);
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
// AveragePoolOp
//===----------------------------------------------------------------------===//

void AveragePoolOp::build(OpBuilder &b, OperationState &state, Value input,
                          Value init, ArrayRef<int64_t> kernelShape,
                          ArrayRef<int64_t> strides,
                          ArrayRef<int64_t> padsBegin, bool countIncludePad) {
  build(b, state, resultTypes(init), input, init,
        b.getDenseI64ArrayAttr(kernelShape), b.getDenseI64ArrayAttr(strides),
        b.getDenseI64ArrayAttr(padsBegin),
        countIncludePad ? b.getUnitAttr() : UnitAttr());
}

LogicalResult AveragePoolOp::verify() {
  if (failed(verifyDps(*this, getDpsInits(), (*this)->getResultTypes())))
    return failure();
  if (!getInput().getType().getElementType().isF32() ||
      !getInit().getType().getElementType().isF32())
    return emitOpError("input and init must be of f32");
  return verifyPool(*this);
}

void AveragePoolOp::getEffects(Effects &effects) {
  getDpsEffects(*this, /*accumulates=*/false, effects);
}

LogicalResult
AveragePoolOp::reifyResultShapes(OpBuilder &b,
                                 ReifiedRankedShapedTypeDims &shapes) {
  return reifyFromInits(*this, b, shapes);
}
