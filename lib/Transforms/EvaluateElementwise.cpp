//===- EvaluateElementwise.cpp - Elementwise operators on known tensors ---===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Integers are computed in 64 bits and floats in double: a single sum, product,
// quotient or root of narrower floats is then right after one more rounding.
//
//===----------------------------------------------------------------------===//

#include "Evaluation.h"

#include "llvm/Support/MathExtras.h"

#include <cmath>

using namespace mlir;
using namespace sardonyx;

using Element = ShapeElement;
using Tensor = std::optional<ShapeTensor>;
using Unary = Element (*)(Element);
using Binary = Element (*)(Element, Element);

//===----------------------------------------------------------------------===//
// Integers
//===----------------------------------------------------------------------===//

Element sardonyx::multiply(const Element &a, const Element &b) {
  int64_t product;
  if (llvm::MulOverflow(a.value, b.value, product))
    return Element::size();
  if (a.isKnown() && b.isKnown())
    return Element::known(product);
  // Nothing times anything is no size to compute with.
  if ((!a.isKnown() && !a.isSymbolic()) || (!b.isKnown() && !b.isSymbolic()) ||
      product <= 0)
    return Element::size();
  Element result = Element::size();
  result.value = product;
  result.symbols.append(a.symbols);
  result.symbols.append(b.symbols);
  llvm::sort(result.symbols);
  return result;
}

std::optional<Element> sardonyx::divideExactly(const Element &a,
                                               const Element &b) {
  if ((!a.isKnown() && !a.isSymbolic()) || (!b.isKnown() && !b.isSymbolic()) ||
      b.value <= 0 || a.value % b.value != 0)
    return std::nullopt;
  Element result = a;
  result.value = a.value / b.value;
  for (unsigned symbol : b.symbols) {
    auto *found = llvm::find(result.symbols, symbol);
    if (found == result.symbols.end())
      return std::nullopt;
    result.symbols.erase(found);
  }
  if (result.symbols.empty())
    result.kind = Element::Known;
  return result;
}

Element sardonyx::addElements(Element a, Element b) {
  int64_t sum;
  if (a.isKnown() && b.isKnown())
    return llvm::AddOverflow(a.value, b.value, sum) ? Element()
                                                    : Element::known(sum);
  if (a.isKnown(0) || b.isKnown(0))
    return a.isKnown(0) ? b : a;
  // Sizes are far from overflowing.
  return a.isNonNegative() && b.isNonNegative() ? Element::size() : Element();
}

Element sardonyx::getLarger(Element a, Element b) {
  if (a.isKnown() && b.isKnown())
    return Element::known(std::max(a.value, b.value));
  return a.isNonNegative() || b.isNonNegative() ? Element::size() : Element();
}

Element sardonyx::getSmaller(Element a, Element b) {
  if (a.isKnown() && b.isKnown())
    return Element::known(std::min(a.value, b.value));
  return a.isNonNegative() && b.isNonNegative() ? Element::size() : Element();
}

namespace {

Element sub(Element a, Element b) {
  int64_t difference;
  if (b.isKnown(0))
    return a;
  if (!a.isKnown() || !b.isKnown() ||
      llvm::SubOverflow(a.value, b.value, difference))
    return {};
  return Element::known(difference);
}

Element mul(Element a, Element b) {
  int64_t product;
  if (a.isKnown() && b.isKnown())
    return llvm::MulOverflow(a.value, b.value, product)
               ? Element()
               : Element::known(product);
  return a.isNonNegative() && b.isNonNegative() ? multiply(a, b) : Element();
}

/// Towards zero; open by zero and where the quotient has no place.
Element div(Element a, Element b) {
  if (a.isNonNegative() && b.isNonNegative())
    if (std::optional<Element> exact = divideExactly(a, b))
      return *exact;
  if (!b.isKnown() || b.value == 0)
    return {};
  if (a.isKnown())
    return b.value == -1 ? sub(Element::known(0), a)
                         : Element::known(a.value / b.value);
  return a.isNonNegative() && b.value > 0 ? Element::size() : Element();
}

/// What is left has the sign of the dividend.
Element remainder(Element a, Element b) {
  if (a.isNonNegative() && b.isNonNegative() && divideExactly(a, b))
    return Element::known(0);
  if (!b.isKnown() || b.value == 0)
    return {};
  if (a.isKnown())
    return Element::known(b.value == -1 ? 0 : a.value % b.value);
  return a.isNonNegative() ? Element::size() : Element();
}

/// What is left has the sign of the divisor.
Element modulo(Element a, Element b) {
  Element left = remainder(a, b);
  if (left.isKnown() && left.value != 0 && (left.value < 0) != (b.value < 0))
    return Element::known(left.value + b.value);
  return left.isKnown() || b.isNonNegative() ? left : Element();
}

Element power(Element a, Element b) {
  if (b.isKnown(1))
    return a;
  if (!a.isKnown() || !b.isKnown() || b.value < 0)
    return {};
  int64_t result = 1, base = a.value;
  for (int64_t left = b.value; left; left >>= 1) {
    if ((left & 1) && llvm::MulOverflow(result, base, result))
      return {};
    if (left > 1 && llvm::MulOverflow(base, base, base))
      return {};
  }
  return Element::known(result);
}

Element equal(Element a, Element b) {
  if (a.isSame(b))
    return Element::known(1);
  if (a.isKnown() && b.isKnown())
    return Element::known(a.value == b.value);
  bool differ = (a.isNonNegative() && b.isKnown() && b.value < 0) ||
                (b.isNonNegative() && a.isKnown() && a.value < 0);
  return differ ? Element::known(0) : Element();
}

Element less(Element a, Element b) {
  if (a.isKnown() && b.isKnown())
    return Element::known(a.value < b.value);
  if (a.isNonNegative() && b.isKnown() && b.value <= 0)
    return Element::known(0);
  if (b.isNonNegative() && a.isKnown() && a.value < 0)
    return Element::known(1);
  return {};
}

Element logicalAnd(Element a, Element b) {
  if (a.isKnown(0) || b.isKnown(0))
    return Element::known(0);
  return a.isKnown() && b.isKnown() ? Element::known(1) : Element();
}

Element logicalNot(Element a) {
  return a.isKnown() ? Element::known(!a.value) : Element();
}

Element logicalOr(Element a, Element b) {
  return logicalNot(logicalAnd(logicalNot(a), logicalNot(b)));
}

Element greater(Element a, Element b) { return less(b, a); }
Element lessOrEqual(Element a, Element b) { return logicalNot(less(b, a)); }
Element greaterOrEqual(Element a, Element b) { return logicalNot(less(a, b)); }

Element bitAnd(Element a, Element b) {
  return a.isKnown() && b.isKnown() ? Element::known(a.value & b.value)
                                    : Element();
}
Element bitOr(Element a, Element b) {
  return a.isKnown() && b.isKnown() ? Element::known(a.value | b.value)
                                    : Element();
}
/// Of booleans, too.
Element bitXor(Element a, Element b) {
  return a.isKnown() && b.isKnown() ? Element::known(a.value ^ b.value)
                                    : Element();
}

Element negate(Element a) { return sub(Element::known(0), a); }
Element absolute(Element a) {
  return a.isNonNegative() ? a : getLarger(a, negate(a));
}
Element sign(Element a) {
  return a.isKnown() ? Element::known((a.value > 0) - (a.value < 0))
                     : Element();
}
Element relu(Element a) {
  return a.isNonNegative() ? a : getLarger(a, Element::known(0));
}

//===----------------------------------------------------------------------===//
// Floats
//===----------------------------------------------------------------------===//

/// Nothing is said of what is no number.
Element fromNumber(double value) {
  return std::isnan(value) ? Element() : Element::number(value);
}

template <double (*function)(double)> Element ofNumber(Element a) {
  return a.isKnown() ? fromNumber(function(a.getNumber())) : Element();
}

template <double (*function)(double, double)>
Element ofNumbers(Element a, Element b) {
  return a.isKnown() && b.isKnown()
             ? fromNumber(function(a.getNumber(), b.getNumber()))
             : Element();
}

template <bool (*function)(double, double)>
Element compareNumbers(Element a, Element b) {
  return a.isKnown() && b.isKnown()
             ? Element::known(function(a.getNumber(), b.getNumber()))
             : Element();
}

double addNumbers(double a, double b) { return a + b; }
double subNumbers(double a, double b) { return a - b; }
double mulNumbers(double a, double b) { return a * b; }
double divNumbers(double a, double b) { return a / b; }
/// Which of two zeros is the larger one is open.
double maxNumbers(double a, double b) {
  return std::isnan(a) || std::isnan(b) || (a == 0 && b == 0) ? NAN
         : a > b                                              ? a
                                                              : b;
}
double minNumbers(double a, double b) { return -maxNumbers(-a, -b); }
bool equalNumbers(double a, double b) { return a == b; }
bool lessNumbers(double a, double b) { return a < b; }
bool lessOrEqualNumbers(double a, double b) { return a <= b; }
bool greaterNumbers(double a, double b) { return a > b; }
bool greaterOrEqualNumbers(double a, double b) { return a >= b; }
double negateNumber(double a) { return -a; }
double absoluteNumber(double a) { return std::fabs(a); }
double signNumber(double a) {
  return std::isnan(a) ? a : static_cast<double>((a > 0) - (a < 0));
}
double floorNumber(double a) { return std::floor(a); }
double ceilNumber(double a) { return std::ceil(a); }
/// Halves to the even neighbour.
double roundNumber(double a) { return std::nearbyint(a); }
double rootNumber(double a) { return std::sqrt(a); }
double reciprocalNumber(double a) { return 1 / a; }
double reluNumber(double a) {
  return a > 0 ? a : a == 0 ? 0.0 : a < 0 ? 0.0 : a;
}
/// Of more than a product, the last digit is a library's.
double powerNumbers(double a, double b) {
  return b == 0 ? 1 : b == 1 ? a : b == 2 ? a * a : NAN;
}

//===----------------------------------------------------------------------===//
// Operators
//===----------------------------------------------------------------------===//

/// Combines all operands, from the left.
Tensor combine(const Evaluation &e, Operation *op, Binary function) {
  SmallVector<const ShapeTensor *> operands;
  SmallVector<ArrayRef<int64_t>> shapes;
  for (Value operand : op->getOperands()) {
    operands.push_back(e.get(operand));
    if (!operands.back())
      return std::nullopt;
    shapes.push_back(operands.back()->shape);
  }
  auto shape = broadcastShapes(shapes);
  if (!shape || !function || !countElements(*shape))
    return std::nullopt;
  Type type = e.getResultElementType();
  ShapeTensor result{*shape, {}};
  for (int64_t place : getBroadcastPlaces(shapes[0], *shape))
    result.elements.push_back(operands[0]->elements[place]);
  for (size_t i = 1; i < operands.size(); ++i)
    for (auto [element, place] : llvm::zip_equal(
             result.elements, getBroadcastPlaces(shapes[i], *shape)))
      element =
          fitElement(function(element, operands[i]->elements[place]), type);
  return result;
}

template <Binary ofIntegers, Binary ofFloats = nullptr>
Tensor binary(const Evaluation &e, Operation *op) {
  bool isFloat =
      isa_and_nonnull<FloatType>(Evaluation::getElementType(op->getOperand(0)));
  return combine(e, op, isFloat ? ofFloats : ofIntegers);
}

Tensor mapElements(const Evaluation &e, Operation *op,
                   llvm::function_ref<Element(Element)> function) {
  const ShapeTensor *operand = e.get(op->getOperand(0));
  if (!operand)
    return std::nullopt;
  ShapeTensor result = *operand;
  for (Element &element : result.elements)
    element = function(element);
  return result;
}

template <Unary ofIntegers, Unary ofFloats = nullptr>
Tensor unary(const Evaluation &e, Operation *op) {
  bool isFloat =
      isa_and_nonnull<FloatType>(Evaluation::getElementType(op->getOperand(0)));
  Unary function = isFloat ? ofFloats : ofIntegers;
  return function ? mapElements(e, op, function) : std::nullopt;
}

Tensor evaluateMod(const Evaluation &e, onnx::ModOp op) {
  if (isa_and_nonnull<FloatType>(Evaluation::getElementType(op.getA())))
    return std::nullopt;
  return combine(e, op, op.getFmod() ? remainder : modulo);
}

/// The exponent may be of another type than the base.
Tensor evaluatePow(const Evaluation &e, onnx::PowOp op) {
  Type base = Evaluation::getElementType(op.getX());
  Type exponent = Evaluation::getElementType(op.getY());
  if (!isEvaluated(base) || !isEvaluated(exponent))
    return std::nullopt;
  bool isFloat = isa<FloatType>(base);
  if (isFloat == isa<FloatType>(exponent))
    return combine(e, op, isFloat ? ofNumbers<powerNumbers> : power);
  return combine(e, op, isFloat ? +[](Element a, Element b) {
    return b.isKnown() ? ofNumbers<powerNumbers>(
                             a, Element::number(static_cast<double>(b.value)))
                       : Element();
  } : +[](Element a, Element b) {
    return b.isKnown() && b.getNumber() == std::floor(b.getNumber()) &&
                   std::fabs(b.getNumber()) < 64
               ? power(a, Element::known(static_cast<int64_t>(b.getNumber())))
               : Element();
  });
}

/// Shifts of as many bits as the type has are open.
Tensor evaluateBitShift(const Evaluation &e, onnx::BitShiftOp op) {
  auto type = dyn_cast_or_null<IntegerType>(e.getResultElementType());
  if (!type)
    return std::nullopt;
  const ShapeTensor *bits = e.get(op.getY());
  if (!bits || !llvm::all_of(bits->elements, [&](const Element &element) {
        return element.isKnown() && element.value < type.getWidth();
      }))
    return std::nullopt;
  if (op.getDirection() == "RIGHT")
    return combine(
        e, op, +[](Element a, Element b) {
          return a.isKnown() ? Element::known(a.value >> b.value) : Element();
        });
  // Where bits leave the type nothing is said.
  return combine(
      e, op, +[](Element a, Element b) {
        return a.isKnown() && llvm::isUIntN(63 - b.value,
                                            static_cast<uint64_t>(a.value))
                   ? Element::known(a.value << b.value)
                   : Element();
      });
}

Tensor evaluateBitwiseNot(const Evaluation &e, onnx::BitwiseNotOp op) {
  auto type = dyn_cast_or_null<IntegerType>(e.getResultElementType());
  if (!type || (type.isUnsigned() && type.getWidth() > 63))
    return std::nullopt;
  return mapElements(e, op, [&](Element a) {
    if (!a.isKnown())
      return Element();
    uint64_t mask = type.isUnsigned()
                        ? llvm::maskTrailingOnes<uint64_t>(type.getWidth())
                        : ~uint64_t(0);
    return Element::known(~a.value & mask);
  });
}

Tensor evaluateClip(const Evaluation &e, onnx::ClipOp op) {
  bool isFloat = isa_and_nonnull<FloatType>(e.getResultElementType());
  std::optional<Element> low = e.getSingle(op.getMin());
  std::optional<Element> high = e.getSingle(op.getMax());
  if ((op.getMin() && !low) || (op.getMax() && !high))
    return std::nullopt;
  return mapElements(e, op, [&](Element a) {
    if (low)
      a = isFloat ? ofNumbers<maxNumbers>(a, *low) : getLarger(a, *low);
    if (high)
      a = isFloat ? ofNumbers<minNumbers>(a, *high) : getSmaller(a, *high);
    return a;
  });
}

Tensor evaluateCast(const Evaluation &e, Operation *op) {
  Type from = Evaluation::getElementType(op->getOperand(0));
  return mapElements(e, op, [&](Element element) {
    return castElement(element, from, e.getResultElementType());
  });
}

Tensor evaluateIsNaN(const Evaluation &e, onnx::IsNaNOp op) {
  return mapElements(e, op, [](Element a) {
    return a.isKnown() ? Element::known(std::isnan(a.getNumber())) : Element();
  });
}

/// An element whose source is not known may still be a size, and is known
/// where both sources are the same.
Tensor evaluateWhere(const Evaluation &e, onnx::WhereOp op) {
  const ShapeTensor *condition = e.get(op.getCondition());
  const ShapeTensor *x = e.get(op.getX()), *y = e.get(op.getY());
  if (!condition || !x || !y)
    return std::nullopt;
  auto shape = broadcastShapes({condition->shape, x->shape, y->shape});
  if (!shape || !countElements(*shape))
    return std::nullopt;
  bool isInteger = isa<IntegerType>(e.getResultElementType());
  ShapeTensor result{*shape, {}};
  for (auto [c, i, k] :
       llvm::zip_equal(getBroadcastPlaces(condition->shape, *shape),
                       getBroadcastPlaces(x->shape, *shape),
                       getBroadcastPlaces(y->shape, *shape))) {
    const Element &choice = condition->elements[c];
    const Element &a = x->elements[i], &b = y->elements[k];
    bool bothSizes = isInteger && a.isNonNegative() && b.isNonNegative();
    result.elements.push_back(choice.isKnown() ? (choice.value ? a : b)
                              : a.isSame(b)    ? a
                              : bothSizes      ? Element::size()
                                               : Element());
  }
  return result;
}

} // namespace

void sardonyx::addElementwiseEvaluations(EvaluationTable &table) {
  using namespace onnx;
  table.add<AddOp, binary<addElements, ofNumbers<addNumbers>>>();
  table.add<SumOp, binary<addElements, ofNumbers<addNumbers>>>();
  table.add<SubOp, binary<sub, ofNumbers<subNumbers>>>();
  table.add<MulOp, binary<mul, ofNumbers<mulNumbers>>>();
  table.add<DivOp, binary<div, ofNumbers<divNumbers>>>();
  table.add<MaxOp, binary<getLarger, ofNumbers<maxNumbers>>>();
  table.add<MinOp, binary<getSmaller, ofNumbers<minNumbers>>>();
  table.add<EqualOp, binary<equal, compareNumbers<equalNumbers>>>();
  table.add<LessOp, binary<less, compareNumbers<lessNumbers>>>();
  table.add<LessOrEqualOp,
            binary<lessOrEqual, compareNumbers<lessOrEqualNumbers>>>();
  table.add<GreaterOp, binary<greater, compareNumbers<greaterNumbers>>>();
  table.add<GreaterOrEqualOp,
            binary<greaterOrEqual, compareNumbers<greaterOrEqualNumbers>>>();
  table.add<AndOp, binary<logicalAnd>>();
  table.add<OrOp, binary<logicalOr>>();
  table.add<XorOp, binary<bitXor>>();
  table.add<BitwiseAndOp, binary<bitAnd>>();
  table.add<BitwiseOrOp, binary<bitOr>>();
  table.add<BitwiseXorOp, binary<bitXor>>();
  table.add<ModOp, evaluateMod>();
  table.add<PowOp, evaluatePow>();
  table.add<BitShiftOp, evaluateBitShift>();
  table.add<BitwiseNotOp, evaluateBitwiseNot>();
  table.add<NotOp, unary<logicalNot>>();
  table.add<NegOp, unary<negate, ofNumber<negateNumber>>>();
  table.add<AbsOp, unary<absolute, ofNumber<absoluteNumber>>>();
  table.add<SignOp, unary<sign, ofNumber<signNumber>>>();
  table.add<ReluOp, unary<relu, ofNumber<reluNumber>>>();
  table.add<FloorOp, unary<nullptr, ofNumber<floorNumber>>>();
  table.add<CeilOp, unary<nullptr, ofNumber<ceilNumber>>>();
  table.add<RoundOp, unary<nullptr, ofNumber<roundNumber>>>();
  table.add<SqrtOp, unary<nullptr, ofNumber<rootNumber>>>();
  table.add<ReciprocalOp, unary<nullptr, ofNumber<reciprocalNumber>>>();
  table.add<ClipOp, evaluateClip>();
  table.add<CastOp, evaluateCast>();
  table.add<CastLikeOp, evaluateCast>();
  table.add<IsNaNOp, evaluateIsNaN>();
  table.add<WhereOp, evaluateWhere>();
}
