//===- ScoreBody.cpp - What is done to scores before their softmax --------===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "ScoreBody.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"
#include "mlir/IR/DialectResourceBlobManager.h"
#include "mlir/IR/Matchers.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

using namespace mlir;
using namespace sardonyx;
using namespace sardonyx::attention;

using namespace sardonyx;

static bool isReshape(Operation *op) {
  return isa_and_nonnull<tensor::CollapseShapeOp, tensor::ExpandShapeOp,
                         tensor::CastOp, linalg::TransposeOp>(op);
}

/// An operation on elements with one result.
static linalg::GenericOp findElementwise(Value tensor) {
  auto op = tensor.getDefiningOp<linalg::GenericOp>();
  if (!op || op.getNumDpsInits() != 1 || op.getNumReductionLoops() != 0 ||
      !op.hasPureTensorSemantics())
    return nullptr;
  return op;
}

/// The scalar that the tensor which `op` makes consists of, or null.
static Value findScalar(Operation *op) {
  auto made = dyn_cast_or_null<tensor::FromElementsOp>(op);
  return made && made.getElements().size() == 1 ? made.getElements()[0]
                                                : Value();
}

/// The tensors that an operation on elements reads.
static SmallVector<Value> findInputs(linalg::GenericOp op) {
  SmallVector<Value> inputs;
  for (OpOperand &operand : op->getOpOperands())
    if (op.payloadUsesValueFromOperand(&operand) && !op.isScalar(&operand))
      inputs.push_back(operand.get());
  return inputs;
}

sdx::MatmulOp ScoreBody::findProduct(Value tensor) {
  SmallVector<Value> pending = {tensor};
  llvm::SmallPtrSet<Operation *, 16> seen;
  sdx::MatmulOp found;
  while (!pending.empty()) {
    Operation *op = pending.pop_back_val().getDefiningOp();
    if (!op || !seen.insert(op).second)
      continue;
    if (auto product = dyn_cast<sdx::MatmulOp>(op)) {
      if (found)
        return nullptr;
      found = product;
    } else if (isReshape(op)) {
      pending.push_back(op->getOperand(0));
    } else if (linalg::GenericOp generic = findElementwise(op->getResult(0))) {
      llvm::append_range(pending, findInputs(generic));
    }
  }
  return found;
}

bool ScoreBody::check(Position scores, Value product,
                      llvm::SetVector<Operation *> &passed) {
  this->product = product;
  this->passed = &passed;
  visited.clear();
  FailureOr<Value> value = visit(scores);
  this->passed = nullptr;
  if (failed(value) || !productDims)
    return false;
  checked = scores;
  return true;
}

/// `value` in f32; what was rounded to fewer bits before is taken as it was.
static Value widen(OpBuilder &b, Value value) {
  if (value.getType().isF32())
    return value;
  if (auto truncate = value.getDefiningOp<arith::TruncFOp>())
    if (truncate.getIn().getType().isF32())
      return truncate.getIn();
  return arith::ExtFOp::create(b, value.getLoc(), b.getF32Type(), value);
}

Value ScoreBody::build(OpBuilder &b, Value score, ValueRange elements,
                       const DenseMap<Axes::Axis, Value> &indices) {
  this->b = &b;
  this->score = score;
  this->elements = elements;
  this->indices = &indices;
  visited.clear();
  FailureOr<Value> value = visit(checked);
  this->b = nullptr;
  return succeeded(value) ? widen(b, *value) : Value();
}

bool ScoreBody::reachesProduct(Value tensor) {
  if (tensor == product)
    return true;
  auto [it, isNew] = reaching.try_emplace(tensor, false);
  if (!isNew)
    return it->second;
  Operation *op = tensor.getDefiningOp();
  bool reaches = false;
  if (isReshape(op))
    reaches = reachesProduct(op->getOperand(0));
  else if (linalg::GenericOp generic = findElementwise(tensor))
    for (Value input : findInputs(generic))
      reaches |= reachesProduct(input);
  reaching[tensor] = reaches;
  return reaches;
}

/// Whether `tensor` follows from indices alone, or from one other tensor and is
/// needed nowhere else: then nobody has to write it down. What constants make
/// is computed once for all runs instead.
bool ScoreBody::isWorthBuilding(Value tensor) {
  bool hasConstant = false;
  unsigned read = 0;
  bool hasOtherUse = false;
  auto count = [&](auto &&self, Value value) -> void {
    Operation *op = value.getDefiningOp();
    if (isa_and_nonnull<linalg::FillOp>(op) || findScalar(op))
      return;
    auto constant = dyn_cast_or_null<arith::ConstantOp>(op);
    if (constant && isa<SplatElementsAttr>(constant.getValue()))
      return;
    if (constant) {
      hasConstant |= !findBound(constant) && !findSequence(constant);
      return;
    }
    linalg::GenericOp generic = findElementwise(value);
    if (!isReshape(op) && !generic) {
      ++read;
      return;
    }
    hasOtherUse |= !value.hasOneUse();
    if (!generic)
      return self(self, op->getOperand(0));
    for (Value input : findInputs(generic))
      self(self, input);
  };
  count(count, tensor);
  return !hasConstant && (read == 0 || (read == 1 && !hasOtherUse));
}

FailureOr<Value> ScoreBody::visit(Position position) {
  position.dims = axes.resolve(position.dims);
  auto it = visited.find(position.tensor);
  if (it != visited.end() && axes.areEqual(it->second.first, position.dims))
    return it->second.second;
  FailureOr<Value> value = visitNew(position);
  if (succeeded(value))
    visited[position.tensor] = {position.dims, *value};
  return value;
}

FailureOr<Value> ScoreBody::visitNew(const Position &position) {
  Operation *op = position.tensor.getDefiningOp();
  if (position.tensor == product) {
    if (productDims && !axes.areEqual(*productDims, position.dims))
      return failure();
    productDims = position.dims;
    return score;
  }
  const bool reaches = reachesProduct(position.tensor);
  if (!reaches && !isWorthBuilding(position.tensor))
    return visitExtra(position);
  if (passed && reaches)
    passed->insert(op);
  const size_t extrasBefore = extras.size();
  if (isa_and_nonnull<arith::ConstantOp>(op))
    return visitConstant(position);
  if (auto fill = dyn_cast_or_null<linalg::FillOp>(op))
    return fill.getInputs()[0];
  if (Value scalar = findScalar(op))
    return scalar;
  if (isReshape(op)) {
    if (std::optional<Axes::Dims> source = axes.findSource(op, position.dims)) {
      FailureOr<Value> value = visit({op->getOperand(0), *source});
      if (succeeded(value) || reaches)
        return value;
    }
  } else if (linalg::GenericOp generic = findElementwise(position.tensor)) {
    FailureOr<Value> value = visitGeneric(generic, position);
    if (succeeded(value) || reaches)
      return value;
  }
  if (reaches)
    return failure();
  // What it is made of cannot be read by axes; it may be.
  if (!b && extras.size() > extrasBefore) {
    extras.truncate(extrasBefore);
    visited.clear();
  }
  return visitExtra(position);
}

FailureOr<Value> ScoreBody::visitExtra(const Position &position) {
  auto *it = llvm::find_if(extras, [&](const Position &known) {
    return known.tensor == position.tensor &&
           axes.areEqual(known.dims, position.dims);
  });
  if (b) {
    if (it == extras.end())
      return failure();
    return elements[it - extras.begin()];
  }
  if (!axes.areSeparable(position.dims))
    return failure();
  if (it == extras.end())
    extras.push_back(position);
  return Value();
}

/// The bytes of a constant's elements, which may lie in the model's file.
static ArrayRef<char> findBytes(ElementsAttr elements) {
  if (auto dense = dyn_cast<DenseElementsAttr>(elements))
    return dense.isSplat() ? ArrayRef<char>() : dense.getRawData();
  auto resource = dyn_cast<DenseResourceElementsAttr>(elements);
  AsmResourceBlob *blob =
      resource ? resource.getRawHandle().getBlob() : nullptr;
  return blob ? blob->getData() : ArrayRef<char>();
}

/// The number of these bytes.
static TypedAttr makeNumber(Type type, ArrayRef<char> bytes) {
  APInt bits(bytes.size() * 8, 0);
  for (auto [i, byte] : llvm::enumerate(bytes))
    bits.insertBits(static_cast<uint8_t>(byte), i * 8, 8);
  if (auto floats = dyn_cast<FloatType>(type))
    return FloatAttr::get(type, APFloat(floats.getFloatSemantics(), bits));
  return IntegerAttr::get(type, bits);
}

std::optional<ScoreBody::Bound> ScoreBody::findBound(arith::ConstantOp op) {
  auto elements = dyn_cast<ElementsAttr>(op.getValue());
  if (!elements || elements.getShapedType().getRank() < 2)
    return std::nullopt;
  Type type = elements.getElementType();
  ArrayRef<int64_t> shape = elements.getShapedType().getShape();
  const int64_t rows = shape[shape.size() - 2], cols = shape.back();
  const int64_t bytes =
      type.isIntOrFloat() ? type.getIntOrFloatBitWidth() / 8 : 0;
  ArrayRef<char> data = findBytes(elements);
  if (bytes == 0 || cols < 2 || rows * cols != elements.getNumElements() ||
      int64_t(data.size()) != rows * cols * bytes)
    return std::nullopt;
  auto at = [&](int64_t index) { return data.slice(index * bytes, bytes); };
  // The first row says which values there are, and where they change.
  int64_t past = 0;
  while (past + 1 < cols && at(past + 1) == at(0))
    ++past;
  if (past + 1 == cols)
    return std::nullopt;
  for (int64_t row = 0; row < rows; ++row)
    for (int64_t col = 0; col < cols; ++col)
      if (at(row * cols + col) != at(col > row + past ? past + 1 : 0))
        return std::nullopt;
  return Bound{makeNumber(type, at(0)), makeNumber(type, at(past + 1)), past};
}

std::optional<ScoreBody::Sequence>
ScoreBody::findSequence(arith::ConstantOp op) {
  auto dense = dyn_cast<DenseIntElementsAttr>(op.getValue());
  if (!dense || dense.isSplat())
    return std::nullopt;
  // The one dimension that is not of size 1.
  std::optional<unsigned> dim;
  for (auto [i, size] : llvm::enumerate(dense.getType().getShape())) {
    if (size == 1)
      continue;
    if (dim)
      return std::nullopt;
    dim = i;
  }
  const int64_t first = (*dense.begin()).getSExtValue();
  for (auto [i, value] : llvm::enumerate(dense.getValues<APInt>()))
    if (value.getSExtValue() != first + int64_t(i))
      return std::nullopt;
  return Sequence{dim.value_or(0), first};
}

FailureOr<Value> ScoreBody::visitSequence(const Position &position,
                                          Sequence sequence) {
  FailureOr<Value> index = findIndex(position.dims[sequence.dim]);
  if (failed(index))
    return visitExtra(position);
  if (!b)
    return Value();
  Location loc = product.getLoc();
  Type type = getElementTypeOrSelf(position.tensor);
  Value number = arith::IndexCastOp::create(*b, loc, type, *index);
  if (sequence.first == 0)
    return number;
  Value first = arith::ConstantOp::create(
      *b, loc, b->getIntegerAttr(type, sequence.first));
  return arith::AddIOp::create(*b, loc, number, first).getResult();
}

FailureOr<Value> ScoreBody::visitConstant(const Position &position) {
  auto op = position.tensor.getDefiningOp<arith::ConstantOp>();
  if (auto splat = dyn_cast<SplatElementsAttr>(op.getValue()))
    return b ? arith::ConstantOp::create(*b, op.getLoc(),
                                         splat.getSplatValue<TypedAttr>())
                   .getResult()
             : Value();
  if (std::optional<Sequence> sequence = findSequence(op))
    return visitSequence(position, *sequence);
  std::optional<Bound> bound = findBound(op);
  if (!bound)
    return visitExtra(position);
  const size_t rank = position.dims.size();
  FailureOr<Value> row = findIndex(position.dims[rank - 2]);
  FailureOr<Value> col = findIndex(position.dims[rank - 1]);
  if (failed(row) || failed(col))
    return visitExtra(position);
  if (!b)
    return Value();
  Location loc = op.getLoc();
  Value past = arith::ConstantIndexOp::create(*b, loc, bound->past);
  Value last = arith::AddIOp::create(*b, loc, *row, past);
  Value isPast =
      arith::CmpIOp::create(*b, loc, arith::CmpIPredicate::slt, last, *col);
  return arith::SelectOp::create(
             *b, loc, isPast,
             arith::ConstantOp::create(*b, loc, bound->outside),
             arith::ConstantOp::create(*b, loc, bound->inside))
      .getResult();
}

/// The index of a dimension that is the product of these axes.
FailureOr<Value> ScoreBody::findIndex(const Axes::List &unresolved) {
  Axes::List list = axes.resolve(unresolved);
  for (Axes::Axis axis : ArrayRef(list).drop_front(list.empty() ? 0 : 1))
    if (ShapedType::isDynamic(axes.sizeOf(axis)))
      return failure();
  if (!b)
    return Value();
  Location loc = product.getLoc();
  Value index = arith::ConstantIndexOp::create(*b, loc, 0);
  for (auto [i, axis] : llvm::enumerate(list)) {
    Value ofAxis = indices->lookup(axis);
    if (!ofAxis)
      return failure();
    if (i == 0) {
      index = ofAxis;
      continue;
    }
    Value size = arith::ConstantIndexOp::create(*b, loc, axes.sizeOf(axis));
    index = arith::MulIOp::create(*b, loc, index, size);
    index = arith::AddIOp::create(*b, loc, index, ofAxis);
  }
  return index;
}

FailureOr<Value> ScoreBody::visitGeneric(linalg::GenericOp op,
                                         const Position &position) {
  std::optional<Axes::Dims> loops = findLoops(op, position.dims);
  if (!loops)
    return failure();
  IRMapping mapping;
  for (OpOperand &operand : op->getOpOperands()) {
    if (!op.payloadUsesValueFromOperand(&operand))
      continue;
    Value element = operand.get();
    if (!op.isScalar(&operand)) {
      std::optional<Axes::Dims> dims = findOperand(op, operand, *loops);
      if (!dims)
        return failure();
      FailureOr<Value> value = visit({operand.get(), *dims});
      if (failed(value))
        return failure();
      element = *value;
    }
    if (b) {
      // The product's own element is f32, whatever it was rounded to.
      Value argument = op.getMatchingBlockArgument(&operand);
      if (element.getType() != argument.getType())
        return failure();
      mapping.map(argument, element);
    }
  }
  for (Operation &inner : op.getBody()->without_terminator())
    if (failed(cloneOp(inner, *loops, mapping)))
      return failure();
  if (!b)
    return Value();
  return mapping.lookupOrDefault(op.getBody()->getTerminator()->getOperand(0));
}

/// `score` plus `mask` where that is zero, or -inf under a condition and zero
/// otherwise; null where it is something else. No softmax tells -0 from 0.
static Value addMask(OpBuilder &b, Value mask, Value score) {
  if (matchPattern(mask, m_AnyZeroFloat()))
    return score;
  auto select = mask.getDefiningOp<arith::SelectOp>();
  if (!select || !matchPattern(select.getTrueValue(), m_NegInfFloat()) ||
      !matchPattern(select.getFalseValue(), m_AnyZeroFloat()))
    return nullptr;
  return arith::SelectOp::create(b, mask.getLoc(), select.getCondition(),
                                 select.getTrueValue(), score);
}

LogicalResult ScoreBody::cloneOp(Operation &op, const Axes::Dims &loops,
                                 IRMapping &mapping) {
  if (auto index = dyn_cast<linalg::IndexOp>(op)) {
    FailureOr<Value> value = findIndex(loops[index.getDim()]);
    if (succeeded(value) && b)
      mapping.map(index.getResult(), *value);
    return value;
  }
  if (!isPure(&op) || op.getNumRegions() != 0 ||
      llvm::any_of(op.getOperandTypes(), llvm::IsaPred<ShapedType>))
    return failure();
  if (!b)
    return success();
  if (auto extend = dyn_cast<arith::ExtFOp>(op)) {
    Value in = mapping.lookupOrDefault(extend.getIn());
    if (extend.getType().isF32()) {
      mapping.map(extend.getResult(), widen(*b, in));
      return success();
    }
  }
  if (isa<arith::AddFOp>(op))
    for (unsigned side : {0, 1})
      if (Value sum =
              addMask(*b, mapping.lookupOrDefault(op.getOperand(side)),
                      mapping.lookupOrDefault(op.getOperand(1 - side)))) {
        mapping.map(op.getResult(0), sum);
        return success();
      }
  b->clone(op, mapping);
  return success();
}
