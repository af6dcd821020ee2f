//===- SDXHostOps.cpp - Verifiers and interfaces of the host's ops --------===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "dialects/SDX/SDXDps.h"

#include "mlir/IR/Builders.h"
#include "mlir/IR/Matchers.h"
#include "mlir/Interfaces/FunctionInterfaces.h"

using namespace mlir;
using namespace sardonyx;
using namespace sardonyx::sdx;

//===----------------------------------------------------------------------===//
// CallOp
//===----------------------------------------------------------------------===//

bool sdx::isContiguous(MemRefType type) {
  if (type.getLayout().isIdentity())
    return true;
  SmallVector<int64_t> strides;
  int64_t offset;
  if (!type.hasStaticShape() ||
      failed(type.getStridesAndOffset(strides, offset)))
    return false;
  int64_t expected = 1;
  for (int64_t i = type.getRank() - 1; i >= 0; --i) {
    if (type.getDimSize(i) != 1 && strides[i] != expected)
      return false;
    expected *= type.getDimSize(i);
  }
  return true;
}

void sdx::CallOp::build(OpBuilder &b, OperationState &state, StringRef callee,
                        ValueRange inputs, ValueRange outputs,
                        ArrayRef<int64_t> updates) {
  SmallVector<Type> results;
  for (Type type : outputs.getTypes())
    if (isa<RankedTensorType>(type))
      results.push_back(type);
  build(b, state, results, callee, inputs, outputs,
        updates.empty() ? DenseI64ArrayAttr()
                        : b.getDenseI64ArrayAttr(updates));
}

LogicalResult sdx::CallOp::verify() {
  for (int64_t index : getUpdates().value_or(ArrayRef<int64_t>()))
    if (index < 0 || index >= static_cast<int64_t>(getOuts().size()))
      return emitOpError("updates out ")
             << index << ", and it has " << getOuts().size();
  return verifyDps(*this, getOuts(), getResultTypes());
}

LogicalResult sdx::CallOp::verifySymbolUses(SymbolTableCollection &symbols) {
  auto kernel = symbols.lookupNearestSymbolFrom<FunctionOpInterface>(
      *this, getCalleeAttr());
  if (!kernel)
    return emitOpError("calls '") << getCallee() << "', which is no function";
  ArrayRef<Type> arguments = kernel.getArgumentTypes();
  if (arguments.size() != getNumOperands())
    return emitOpError("passes ")
           << getNumOperands() << " operands to '" << getCallee()
           << "', which takes " << arguments.size();
  for (auto [i, operand, argument] :
       llvm::enumerate(getOperandTypes(), arguments)) {
    bool same = operand == argument;
    auto from = dyn_cast<ShapedType>(operand);
    auto to = dyn_cast<MemRefType>(argument);
    if (from && to && from.hasRank())
      same = to.getLayout().isIdentity() &&
             from.getElementType() == to.getElementType() &&
             from.getShape() == to.getShape();
    // A piece of a buffer is as good as a buffer once it has an address.
    if (auto buffer = dyn_cast<MemRefType>(operand); buffer && to)
      same = operand == argument ||
             (same && isContiguous(buffer) &&
              buffer.getMemorySpace() == to.getMemorySpace());
    if (!same)
      return emitOpError("operand ") << i << " is " << operand << " but '"
                                     << getCallee() << "' takes " << argument;
  }
  return success();
}

void sdx::CallOp::getEffects(Effects &effects) {
  getDpsEffects(*this, /*accumulates=*/false, effects);
  for (int64_t index : getUpdates().value_or(ArrayRef<int64_t>())) {
    OpOperand &out = getOutsMutable()[index];
    if (isa<MemRefType>(out.get().getType()))
      effects.emplace_back(MemoryEffects::Read::get(), &out);
  }
}

LogicalResult
sdx::CallOp::reifyResultShapes(OpBuilder &b,
                               ReifiedRankedShapedTypeDims &shapes) {
  return reifyFromInits(*this, b, shapes);
}

//===----------------------------------------------------------------------===//
// RuntimeCallOp
//===----------------------------------------------------------------------===//

LogicalResult RuntimeCallOp::verify() {
  if (!getCallee().starts_with("sdx_rt_"))
    return emitOpError("calls '")
           << getCallee() << "', which is no function of the runtime";
  return verifyDps(*this, getOuts(), getResultTypes());
}

void RuntimeCallOp::getEffects(Effects &effects) {
  getDpsEffects(*this, /*accumulates=*/false, effects);
  if (getStateful())
    effects.emplace_back(MemoryEffects::Write::get());
}

LogicalResult
RuntimeCallOp::reifyResultShapes(OpBuilder &b,
                                 ReifiedRankedShapedTypeDims &shapes) {
  return reifyFromInits(*this, b, shapes);
}

//===----------------------------------------------------------------------===//
// CheckOp, OutputBufferOp, ArenaOp, LaunchOp, FailureRecordOp
//===----------------------------------------------------------------------===//

void CheckOp::build(OpBuilder &b, OperationState &state, Value condition,
                    StringAttr message) {
  build(b, state, condition, message, ValueRange());
}

LogicalResult CheckOp::verify() {
  if (getValues().size() > kMaxValues)
    return emitOpError("names ") << getValues().size() << " values, at most "
                                 << kMaxValues << " are possible";
  return success();
}

LogicalResult CheckOp::canonicalize(CheckOp op, PatternRewriter &rewriter) {
  if (!matchPattern(op.getCondition(), m_One()))
    return rewriter.notifyMatchFailure(op, "the condition is not known true");
  rewriter.eraseOp(op);
  return success();
}

LogicalResult OutputBufferOp::verify() {
  auto type = cast<MemRefType>(getMemory().getType());
  if (!type.getLayout().isIdentity())
    return emitOpError("memory must have the identity layout");
  if (int64_t(getSizes().size()) != type.getNumDynamicDims())
    return emitOpError("has ")
           << getSizes().size() << " sizes for " << type.getNumDynamicDims()
           << " dynamic dimensions";
  return success();
}

LogicalResult ArenaOp::verify() {
  auto type = cast<MemRefType>(getMemory().getType());
  if (!type.getElementType().isInteger(8) || type.getRank() != 1)
    return emitOpError("is a row of bytes, memref<Nxi8>; got ") << type;
  return success();
}

LogicalResult LaunchOp::verify() {
  if (getBlocks().size() != 3 || getThreads().size() != 3)
    return emitOpError("has ")
           << getBlocks().size() << " sizes of a grid and "
           << getThreads().size() << " of a block; it takes 3 of each";
  for (int64_t size : getThreads())
    if (size < 1)
      return emitOpError("has blocks of ") << size << " threads";
  if (static_cast<int64_t>(getShared()) < 0)
    return emitOpError("asks for ") << getShared() << " bytes";
  for (Type type : llvm::drop_begin(getArgs().getTypes(), countMaps()))
    if (!isa<MemRefType>(type) && !type.isIntOrIndexOrFloat())
      return emitOpError("passes a ")
             << type << "; a kernel takes memrefs, integers and floats, and "
             << "before them tensor maps";
  return success();
}

int64_t LaunchOp::countMaps() {
  auto isMap = [](Type type) {
    auto words = dyn_cast<VectorType>(type);
    return words && words.getShape() == ArrayRef<int64_t>{kMapWords} &&
           words.getElementType().isInteger(64);
  };
  const TypeRange types = getArgs().getTypes();
  return llvm::find_if_not(types, isMap) - types.begin();
}

LogicalResult FailureRecordOp::verify() {
  auto type = cast<MemRefType>(getRecord().getType());
  if (type.getShape() != ArrayRef<int64_t>{kWords} ||
      !type.getElementType().isInteger(64))
    return emitOpError("is ") << kWords << " words of 64 bits; got " << type;
  return success();
}

//===----------------------------------------------------------------------===//
// ObserveOp
//===----------------------------------------------------------------------===//

bool ObserveOp::isUnordered() {
  constexpr ObservationKinds kOrdered =
      ObservationKinds::Channels | ObservationKinds::Gram;
  return (getKinds() & kOrdered) == ObservationKinds(0);
}

LogicalResult ObserveOp::verify() {
  auto type = cast<ShapedType>(getValue().getType());
  if (getKinds() == ObservationKinds(0))
    return emitOpError("observes nothing of its value");
  const bool isGram = bitEnumContainsAny(getKinds(), ObservationKinds::Gram);
  if (isGram && getKinds() != ObservationKinds::Gram)
    return emitOpError("adds up matrices, and so observes nothing else");
  if (isGram && type.hasRank() && type.getRank() != 2)
    return emitOpError("adds up matrices, got ") << type;
  const bool hasChannels =
      bitEnumContainsAny(getKinds(), ObservationKinds::Channels);
  if (hasChannels != getAxis().has_value())
    return emitOpError(hasChannels ? "observes channels along no axis"
                                   : "has an axis and observes no channels");
  if (hasChannels && type.hasRank() &&
      (*getAxis() < 0 || *getAxis() >= type.getRank()))
    return emitOpError("observes channels along axis ")
           << *getAxis() << " of a value of rank " << type.getRank();
  if (getExtent().empty())
    return success();
  auto memref = dyn_cast<MemRefType>(type);
  if (getExtent().size() != 2 || !memref || memref.getRank() != 2 ||
      !isUnordered())
    return emitOpError("has the extent of a tile, which is a buffer of rows");
  return success();
}
