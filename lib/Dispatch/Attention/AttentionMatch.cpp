//===- AttentionMatch.cpp - Attention among operations on tensors ---------===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "AttentionMatch.h"
#include "../Utils.h"
#include "dialects/SDX/RoundedType.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/Matchers.h"

using namespace mlir;
using namespace sardonyx;
using namespace sardonyx::attention;

/// The axes of an operand of a product: `batch`, if it has that dimension, and
/// two more.
static Axes::Dims dimsOf(bool isBatched, const Axes::List &batch,
                         const Axes::List &outer, const Axes::List &inner) {
  Axes::Dims dims;
  if (isBatched)
    dims.push_back(batch);
  dims.push_back(outer);
  dims.push_back(inner);
  return dims;
}

static bool isSumOfZero(sdx::MatmulOp op) {
  return op.getInit().getType().getElementType().isF32() &&
         isZeroFilled(op.getInit());
}

bool AttentionMatch::findProbabilities() {
  if (!isSumOfZero(second) || !second.hasPureTensorSemantics())
    return false;
  ArrayRef<int64_t> lhs = second.getLhs().getType().getShape();
  if (second.isBatched())
    batch = axes.create(lhs[0]);
  rows = axes.create(lhs[lhs.size() - 2]);
  keys = axes.create(lhs.back());
  columns =
      axes.create(second.getRhs().getType().getDimSize(second.getColumnDim()));
  if (keys.empty() || columns.empty())
    return false;
  Position position = {second.getLhs(),
                       dimsOf(second.isBatched(), batch, rows, keys)};
  while (true) {
    skipReshapes(axes, position, passed);
    auto op = position.tensor.getDefiningOp<linalg::GenericOp>();
    if (!op || op.getNumDpsInits() != 1 || !op.hasPureTensorSemantics())
      return false;
    // Nothing but another type of floats?
    Value yielded = op.getBody()->getTerminator()->getOperand(0);
    OpOperand *element = findElement(op, yielded);
    if (element && !op.isDpsInit(element)) {
      std::optional<Dims> loops = findLoops(op, position.dims);
      std::optional<Dims> dims =
          loops ? attention::findOperand(op, *element, *loops) : std::nullopt;
      if (!dims)
        return false;
      passed.insert(op);
      position = {element->get(), *dims};
    } else if (!skipRowSelect(position)) {
      break;
    }
  }
  std::optional<Position> found = findSoftmax(axes, position, keys, passed);
  if (!found)
    return false;
  scores = *found;
  return true;
}

/// Goes past an operation that sets rows to 0 by what does not hang on keys: so
/// the result may be, too.
bool AttentionMatch::skipRowSelect(Position &position) {
  auto op = position.tensor.getDefiningOp<linalg::GenericOp>();
  std::optional<Dims> loops = findLoops(op, position.dims);
  auto select = skipFloatCasts(op.getBody()->getTerminator()->getOperand(0))
                    .getDefiningOp<arith::SelectOp>();
  if (!loops || !select || op.hasIndexSemantics() ||
      !matchPattern(select.getTrueValue(), m_AnyZeroFloat()))
    return false;
  OpOperand *kept = findElement(op, select.getFalseValue());
  if (!kept || op.isDpsInit(kept))
    return false;
  for (OpOperand &operand : op->getOpOperands()) {
    if (!op.payloadUsesValueFromOperand(&operand) || op.isScalar(&operand) ||
        &operand == kept)
      continue;
    std::optional<Dims> dims = attention::findOperand(op, operand, *loops);
    if (!dims || op.isDpsInit(&operand))
      return false;
    for (const Axes::List &list : axes.resolve(*dims))
      if (llvm::is_contained(list, keys.front()))
        return false;
  }
  std::optional<Dims> dims = attention::findOperand(op, *kept, *loops);
  if (!dims || llvm::any_of(capturedValues(op), [](Value captured) {
        return isa<ShapedType>(captured.getType());
      }))
    return false;
  rowSelects.emplace_back(op, *loops);
  passed.insert(op);
  position = {kept->get(), *dims};
  return true;
}

bool AttentionMatch::findScores() {
  first = ScoreBody::findProduct(scores.tensor);
  if (!first || first == second || !isSumOfZero(first) ||
      !first.hasPureTensorSemantics())
    return false;
  passed.insert(first);
  if (!body.check(scores, first->getResult(0), passed))
    return false;
  // Its columns are what the softmax goes along.
  return axes.resolve(body.getProductDims().back()) == axes.resolve(keys);
}

/// Whether `axis` is the last one of the last dimension, so that elements along
/// it follow each other.
static bool endsIn(const Axes &axes, const Axes::Dims &dims, Axes::Axis axis) {
  Axes::List last = axes.resolve(dims).back();
  return !last.empty() && last.back() == axis;
}

/// Goes past a product by a positive number, or a conversion to f32.
bool AttentionMatch::findScaled(Operand &operand, Widening widening) {
  auto op = operand.position.tensor.getDefiningOp<linalg::GenericOp>();
  if (!op || op.getNumDpsInits() != 1 || !op.hasPureTensorSemantics())
    return false;
  std::optional<Dims> loops = findLoops(op, operand.position.dims);
  if (!loops)
    return false;
  Value yielded = op.getBody()->getTerminator()->getOperand(0);
  APFloat number(1.0f);
  if (auto product = skipFloatCasts(yielded).getDefiningOp<arith::MulFOp>()) {
    Value other = product.getRhs();
    if (auto argument = dyn_cast<BlockArgument>(other);
        argument && argument.getOwner() == op.getBody())
      other = op->getOperand(argument.getArgNumber());
    if (!matchPattern(other, m_ConstantFloat(&number)) || number.isNegative() ||
        !number.isNormal())
      return false;
    yielded = product.getLhs();
  }
  auto ofInteger = yielded.getDefiningOp<arith::SIToFPOp>();
  if (ofInteger)
    yielded = ofInteger.getIn();
  OpOperand *element = findElement(op, yielded);
  if (!element || op.isDpsInit(element) || op.isScalar(element))
    return false;
  Type from = getElementTypeOrSelf(element->get());
  Type to = getElementTypeOrSelf(operand.position.tensor);
  const bool isWidened =
      to.isF32() &&
      (ofInteger
           ? widening == Widening::Bytes && from.isInteger(8)
           : widening != Widening::None && (from.isF16() || from.isBF16()));
  if (from != to && !isWidened)
    return false;
  std::optional<Dims> dims = attention::findOperand(op, *element, *loops);
  if (!dims)
    return false;
  operand.position = {element->get(), *dims};
  operand.factor *= number.convertToDouble();
  return true;
}

/// Whether `op`, whose result has `dims`, puts the axis `last` together of
/// several dimensions.
static bool unitesAxis(const Axes &axes, Operation *op, const Axes::Dims &dims,
                       Axes::Axis last) {
  auto collapse = dyn_cast<tensor::CollapseShapeOp>(op);
  if (!collapse)
    return false;
  for (auto [list, group] :
       llvm::zip_equal(axes.resolve(dims), collapse.getReassociationIndices()))
    if (llvm::is_contained(list, last) && list.size() == 1)
      return llvm::count_if(group, [&](int64_t dim) {
               return collapse.getSrcType().getDimSize(dim) != 1;
             }) > 1;
  return false;
}

/// The furthest that `from` was made of whose last axis is that of `last`. The
/// tensor of none is null.
/// What was widened only if it may be.
Operand AttentionMatch::findOperand(Position from, const Axes::List &last,
                                    Widening widening) {
  Operand operand{from}, found;
  while (true) {
    if (axes.resolve(last).size() != 1)
      return Operand();
    if (endsIn(axes, operand.position.dims, axes.resolve(last).front()) &&
        axes.areSeparable(operand.position.dims))
      found = operand;
    Operation *op = operand.position.tensor.getDefiningOp();
    if (!op ||
        unitesAxis(axes, op, operand.position.dims, axes.resolve(last).front()))
      return found;
    if (std::optional<Dims> source =
            axes.findSource(op, operand.position.dims)) {
      operand.position = {op->getOperand(0), *source};
      continue;
    }
    if (!findScaled(operand, widening))
      return found;
  }
}

/// `tensor` with its last two dimensions exchanged.
static Value exchange(OpBuilder &b, Value tensor) {
  SmallVector<int64_t> order = {1, 0};
  if (cast<RankedTensorType>(tensor.getType()).getRank() == 3)
    order = {0, 2, 1};
  return createTranspose(b, tensor.getLoc(), tensor, order);
}

/// The type that operands of both products may be rounded to; null where there
/// is none.
Type AttentionMatch::findRoundedType() {
  const Type type = sdx::getRoundedType(first);
  return type == sdx::getRoundedType(second) ? type : Type();
}

/// Whether the target has a kernel for both products, or one that reads keys
/// and values of bytes; without a target any does.
bool AttentionMatch::hasKernel(bool areBytes) {
  Type type = first.getLhs().getType().getElementType();
  if (first.getRhs().getType().getElementType() != type ||
      second.getRhs().getType().getElementType() != type)
    return false;
  ArrayRef<int64_t> probabilities = second.getLhs().getType().getShape();
  sdx::AttentionSizes sizes;
  const Type rounded = areBytes ? Type() : findRoundedType();
  sizes.type = rounded ? rounded : type;
  sizes.areBytes = areBytes;
  sizes.queries = probabilities[probabilities.size() - 2];
  sizes.keys = probabilities.back();
  sizes.depth = first.getLhs().getType().getShape().back();
  sizes.columns = second.getRhs().getType().getDimSize(second.getColumnDim());
  sdx::TargetAttrInterface target = sdx::getTarget(second);
  return !target || target.hasAttention(sizes);
}

bool AttentionMatch::findOperands() {
  depth = axes.create(first.getLhs().getType().getShape().back());
  const Dims &product = body.getProductDims();
  Axes::List ofBatch = first.isBatched() ? product[0] : Axes::List();
  Widening widening = Widening::Bytes;
  auto rhs = [&](sdx::MatmulOp op, const Axes::List &ofBatch,
                 const Axes::List &last) {
    const bool isLast = op.getTransposed() == (op == first);
    Dims dims = dimsOf(op.isRhsBatched(), ofBatch, keys, last);
    Position position = {op.getRhs(), dims};
    if (!isLast)
      std::swap(position.dims[dims.size() - 1], position.dims[dims.size() - 2]);
    Operand found = findOperand(position, last, widening);
    if (found.position.tensor)
      return found;
    OpBuilder b(second);
    return Operand{{exchange(b, op.getRhs()), dims}};
  };
  if (depth.empty())
    return false;
  // Where heads share keys, they may be rows of one product only.
  const Axes::List &ofRows = product[product.size() - 2];
  auto find = [&] {
    const bool areBytes = widening == Widening::Bytes;
    query = findOperand(
        {first.getLhs(), dimsOf(first.isBatched(), ofBatch, ofRows, depth)},
        depth, areBytes ? Widening::None : widening);
    key = rhs(first, ofBatch, depth);
    value = rhs(second, batch, columns);
    if (!query.position.tensor)
      return false;
    auto typeOf = [](const Operand &operand) {
      return getElementTypeOrSelf(operand.position.tensor);
    };
    if (typeOf(key) != typeOf(value))
      return false;
    return areBytes ? typeOf(query).isF32() && typeOf(key).isInteger(8)
                    : typeOf(query) == typeOf(key);
  };
  // Bytes, or shorter floats, are widened where they are read, if all are.
  if (!hasKernel(/*areBytes=*/true) || !find()) {
    if (!hasKernel())
      return false;
    widening = Widening::Floats;
    if (!find()) {
      widening = Widening::None;
      if (!find())
        return false;
    }
  }
  return value.factor == 1;
}

/// Sizes of what is computed on the way do not need it.
bool AttentionMatch::isUsedHereOnly() {
  return llvm::all_of(passed, [&](Operation *op) {
    return llvm::all_of(op->getUsers(), [&](Operation *user) {
      return user == second || passed.contains(user) ||
             isa<tensor::DimOp>(user) || sdx::isObservation(user);
    });
  });
}

/// The result of the second product, or what it is in the end: a tensor in
/// another order, of shorter floats.
Position AttentionMatch::findResult() {
  Position position = {second->getResult(0),
                       dimsOf(second.isBatched(), batch, rows, columns)};
  Position found = position;
  while (true) {
    Operation *user = nullptr;
    for (Operation *other : position.tensor.getUsers())
      if (!isa<tensor::DimOp>(other) && !sdx::isObservation(other)) {
        if (user)
          return found;
        user = other;
      }
    if (!user)
      return found;
    std::optional<Dims> dims = axes.findResult(user, position.dims);
    auto generic = dyn_cast<linalg::GenericOp>(user);
    if (generic && generic.getNumDpsInits() == 1 &&
        generic.getNumDpsInputs() == 1 && generic.getNumReductionLoops() == 0 &&
        generic.getDpsInputs()[0] == position.tensor &&
        llvm::all_of(generic.getIndexingMapsArray(),
                     [](AffineMap map) { return map.isIdentity(); })) {
      auto truncate = generic.getBody()
                          ->getTerminator()
                          ->getOperand(0)
                          .getDefiningOp<arith::TruncFOp>();
      if (truncate && truncate.getIn() == generic.getBody()->getArgument(0) &&
          (truncate.getType().isF16() || truncate.getType().isBF16()))
        dims = position.dims;
    }
    if (!dims)
      return found;
    position = {user->getResult(0), *dims};
    if (endsIn(axes, position.dims, axes.resolve(columns).front()))
      found = position;
  }
}
