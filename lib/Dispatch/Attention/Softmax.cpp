//===- Softmax.cpp - Softmax among operations on tensors ------------------===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// exp(x - max(x)) / sum(exp(x - max(x))), or times 1 / sum: four operations on
// elements and two reductions, whose values may be rounded on the way.
//
//===----------------------------------------------------------------------===//

#include "Softmax.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/IR/Matchers.h"

using namespace mlir;
using namespace sardonyx;
using namespace sardonyx::attention;

using namespace sardonyx;

Value attention::skipFloatCasts(Value value) {
  while (Operation *op = value.getDefiningOp()) {
    if (!isa<arith::ExtFOp, arith::TruncFOp>(op))
      break;
    value = op->getOperand(0);
  }
  return value;
}

OpOperand *attention::findElement(linalg::GenericOp op, Value value) {
  auto argument = dyn_cast<BlockArgument>(skipFloatCasts(value));
  if (!argument || argument.getOwner() != op.getBody())
    return nullptr;
  return &op->getOpOperand(argument.getArgNumber());
}

void attention::skipReshapes(Axes &axes, Position &position,
                             llvm::SetVector<Operation *> &passed) {
  while (Operation *op = position.tensor.getDefiningOp()) {
    std::optional<Axes::Dims> source = axes.findSource(op, position.dims);
    if (!source)
      return;
    passed.insert(op);
    position = {op->getOperand(0), *source};
  }
}

static Value yielded(linalg::GenericOp op) {
  return op.getBody()->getTerminator()->getOperand(0);
}

/// The operation with one result that makes the tensor at `position`.
static linalg::GenericOp findGeneric(Axes &axes, Position &position,
                                     llvm::SetVector<Operation *> &passed) {
  skipReshapes(axes, position, passed);
  auto op = position.tensor.getDefiningOp<linalg::GenericOp>();
  if (!op || op.getNumDpsInits() != 1 || !op.hasPureTensorSemantics() ||
      op.hasIndexSemantics())
    return nullptr;
  passed.insert(op);
  return op;
}

static bool isFilled(Value init, llvm::function_ref<bool(const APFloat &)> is) {
  auto fill = init.getDefiningOp<linalg::FillOp>();
  APFloat value(0.0);
  return fill && matchPattern(fill.getInputs()[0], m_ConstantFloat(&value)) &&
         is(value);
}

/// What `position` is the sum, or the maximum, of along `along`.
static std::optional<Position>
findReduction(Axes &axes, Position position, const Axes::List &along,
              bool isSum, llvm::SetVector<Operation *> &passed) {
  linalg::GenericOp op = findGeneric(axes, position, passed);
  if (!op || op.getNumDpsInputs() != 1 || op.getNumReductionLoops() != 1)
    return std::nullopt;
  AffineMap map = op.getMatchingIndexingMap(op.getDpsInitOperand(0));
  if (!map.isProjectedPermutation() ||
      map.getNumResults() != op.getNumParallelLoops())
    return std::nullopt;
  Axes::Dims loops(op.getNumLoops(), along);
  for (auto [dim, list] : llvm::enumerate(position.dims)) {
    const unsigned loop = map.getDimPosition(dim);
    if (op.getIteratorTypesArray()[loop] != utils::IteratorType::parallel)
      return std::nullopt;
    loops[loop] = list;
  }
  Operation *combine = yielded(op).getDefiningOp();
  Value init = op.getDpsInits()[0];
  const bool isRight =
      isSum ? isa_and_nonnull<arith::AddFOp>(combine) &&
                  isFilled(init, [](const APFloat &x) { return x.isZero(); })
            : isa_and_nonnull<arith::MaxNumFOp, arith::MaximumFOp>(combine) &&
                  isFilled(init, [](const APFloat &x) {
                    return x.isNegative() && (x.isInfinity() || x.isLargest());
                  });
  if (!isRight)
    return std::nullopt;
  OpOperand *a = findElement(op, combine->getOperand(0));
  OpOperand *b = findElement(op, combine->getOperand(1));
  if (!a || !b || op.isDpsInit(a) == op.isDpsInit(b))
    return std::nullopt;
  OpOperand *input = op.getDpsInputOperand(0);
  std::optional<Axes::Dims> dims = findOperand(op, *input, loops);
  if (!dims)
    return std::nullopt;
  Position found = {input->get(), *dims};
  skipReshapes(axes, found, passed);
  return found;
}

namespace {

/// An operation on elements of two tensors.
struct Binary {
  Position lhs, rhs;
  Operation *op; // in the body
};

} // namespace

/// The operation on elements that makes the tensor at `position`, if its
/// result, or that of `outer` on it, is all that is computed.
template <typename Outer>
static std::optional<Binary> findBinary(Axes &axes, Position position,
                                        llvm::SetVector<Operation *> &passed) {
  linalg::GenericOp op = findGeneric(axes, position, passed);
  if (!op)
    return std::nullopt;
  std::optional<Axes::Dims> loops = findLoops(op, position.dims);
  Operation *inner = skipFloatCasts(yielded(op)).getDefiningOp();
  if constexpr (!std::is_void_v<Outer>) {
    if (!isa_and_nonnull<Outer>(inner))
      return std::nullopt;
    inner = skipFloatCasts(inner->getOperand(0)).getDefiningOp();
  }
  if (!loops || !inner || inner->getNumOperands() != 2)
    return std::nullopt;
  Binary found;
  found.op = inner;
  Position *sides[] = {&found.lhs, &found.rhs};
  for (auto [i, side] : llvm::enumerate(sides)) {
    OpOperand *element = findElement(op, inner->getOperand(i));
    if (!element || op.isDpsInit(element) ||
        !isa<RankedTensorType>(element->get().getType()))
      return std::nullopt;
    std::optional<Axes::Dims> dims = findOperand(op, *element, *loops);
    if (!dims)
      return std::nullopt;
    *side = {element->get(), *dims};
    skipReshapes(axes, *side, passed);
  }
  return found;
}

/// What `position` is 1 divided by.
static std::optional<Position>
findInverse(Axes &axes, Position position,
            llvm::SetVector<Operation *> &passed) {
  linalg::GenericOp op = findGeneric(axes, position, passed);
  if (!op)
    return std::nullopt;
  std::optional<Axes::Dims> loops = findLoops(op, position.dims);
  auto divide = skipFloatCasts(yielded(op)).getDefiningOp<arith::DivFOp>();
  if (!loops || !divide || !matchPattern(divide.getLhs(), m_OneFloat()))
    return std::nullopt;
  OpOperand *element = findElement(op, divide.getRhs());
  if (!element || op.isDpsInit(element))
    return std::nullopt;
  std::optional<Axes::Dims> dims = findOperand(op, *element, *loops);
  if (!dims)
    return std::nullopt;
  Position found = {element->get(), *dims};
  skipReshapes(axes, found, passed);
  return found;
}

std::optional<Position>
attention::findSoftmax(Axes &axes, Position position, const Axes::List &along,
                       llvm::SetVector<Operation *> &passed) {
  std::optional<Binary> quotient = findBinary<void>(axes, position, passed);
  if (!quotient)
    return std::nullopt;
  Position sum = quotient->rhs;
  if (isa<arith::MulFOp>(quotient->op)) {
    std::optional<Position> inverse = findInverse(axes, sum, passed);
    if (!inverse)
      return std::nullopt;
    sum = *inverse;
  } else if (!isa<arith::DivFOp>(quotient->op)) {
    return std::nullopt;
  }
  auto areSame = [&](const Position &a, const Position &b) {
    return a.tensor == b.tensor && axes.areEqual(a.dims, b.dims);
  };
  std::optional<Position> terms =
      findReduction(axes, sum, along, /*isSum=*/true, passed);
  if (!terms || !areSame(*terms, quotient->lhs))
    return std::nullopt;
  std::optional<Binary> difference =
      findBinary<math::ExpOp>(axes, *terms, passed);
  if (!difference || !isa<arith::SubFOp>(difference->op))
    return std::nullopt;
  std::optional<Position> scores =
      findReduction(axes, difference->rhs, along, /*isSum=*/false, passed);
  if (!scores || !areSame(*scores, difference->lhs))
    return std::nullopt;
  return scores;
}
