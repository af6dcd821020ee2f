//===- ShapeValues.cpp - What is known of small integer tensors -----------===//

#include "ShapeValues.h"

#include "mlir/IR/DialectResourceBlobManager.h"
#include "mlir/IR/Matchers.h"
#include "llvm/ADT/TypeSwitch.h"
#include "llvm/Support/MathExtras.h"

#include <cstring>

using namespace mlir;
using namespace sardonyx;

using Element = ShapeElement;

/// The number of elements if it is static, small and of integers.
static std::optional<int64_t> getCount(Type type) {
  auto tensor = dyn_cast<RankedTensorType>(type);
  if (!tensor || !tensor.hasStaticShape() ||
      !isa<IntegerType>(tensor.getElementType()) ||
      tensor.getElementTypeBitWidth() > 64)
    return std::nullopt;
  int64_t count = 1;
  for (int64_t size : tensor.getShape()) {
    if (size > ShapeEvaluator::maxElements)
      return std::nullopt;
    count *= size;
    if (count > ShapeEvaluator::maxElements)
      return std::nullopt;
  }
  return count;
}

//===----------------------------------------------------------------------===//
// Arithmetic
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

namespace {
using Binary = Element (*)(Element, Element);

Element add(Element a, Element b) {
  int64_t sum;
  if (a.isKnown() && b.isKnown())
    return llvm::AddOverflow(a.value, b.value, sum) ? Element()
                                                    : Element::known(sum);
  // Sizes are far from overflowing.
  return a.isNonNegative() && b.isNonNegative() ? Element::size() : Element();
}

Element sub(Element a, Element b) {
  int64_t difference;
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

Element div(Element a, Element b) {
  if (a.isNonNegative() && b.isNonNegative())
    if (std::optional<Element> exact = divideExactly(a, b))
      return *exact;
  if (!b.isKnown() || b.value == 0 || b.value == -1)
    return {};
  if (a.isKnown())
    return Element::known(a.value / b.value);
  return a.isNonNegative() && b.value > 0 ? Element::size() : Element();
}

Element maximum(Element a, Element b) {
  if (a.isKnown() && b.isKnown())
    return Element::known(std::max(a.value, b.value));
  return a.isNonNegative() || b.isNonNegative() ? Element::size() : Element();
}

Element minimum(Element a, Element b) {
  if (a.isKnown() && b.isKnown())
    return Element::known(std::min(a.value, b.value));
  return a.isNonNegative() && b.isNonNegative() ? Element::size() : Element();
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

Element lessOrEqual(Element a, Element b) { return logicalNot(less(b, a)); }

/// Operands of an elementwise op, evaluated; element `i` of one that is
/// broadcast. Only equal shapes and single elements are followed.
class Operands {
public:
  Operands(ShapeEvaluator &evaluator, ValueRange values, Value result) {
    auto type = cast<RankedTensorType>(result.getType());
    for (Value value : values) {
      std::optional<ShapeValue> elements = evaluator.evaluate(value);
      ok &= elements && (elements->size() == 1 || value.getType() == type ||
                         cast<RankedTensorType>(value.getType()).getShape() ==
                             type.getShape());
      all.push_back(elements ? *elements : ShapeValue());
    }
  }
  explicit operator bool() const { return ok; }
  Element get(size_t operand, size_t i) const {
    return all[operand].size() == 1 ? all[operand][0] : all[operand][i];
  }

private:
  SmallVector<ShapeValue> all;
  bool ok = true;
};

Binary getBinary(Operation *op) {
  return llvm::TypeSwitch<Operation *, Binary>(op)
      .Case<onnx::AddOp>([](auto) { return add; })
      .Case<onnx::SubOp>([](auto) { return sub; })
      .Case<onnx::MulOp>([](auto) { return mul; })
      .Case<onnx::DivOp>([](auto) { return div; })
      .Case<onnx::MaxOp>([](auto) { return maximum; })
      .Case<onnx::MinOp>([](auto) { return minimum; })
      .Case<onnx::EqualOp>([](auto) { return equal; })
      .Case<onnx::LessOp>([](auto) { return less; })
      .Case<onnx::LessOrEqualOp>([](auto) { return lessOrEqual; })
      .Case<onnx::GreaterOp>(
          [](auto) { return +[](Element a, Element b) { return less(b, a); }; })
      .Case<onnx::GreaterOrEqualOp>([](auto) {
        return +[](Element a, Element b) { return lessOrEqual(b, a); };
      })
      .Case<onnx::AndOp>([](auto) { return logicalAnd; })
      .Case<onnx::OrOp>([](auto) { return logicalOr; })
      .Default([](auto) { return Binary(nullptr); });
}
} // namespace

//===----------------------------------------------------------------------===//
// Ops
//===----------------------------------------------------------------------===//

static std::optional<ShapeValue> readConstant(ElementsAttr attribute,
                                              size_t count) {
  ShapeValue result;
  if (auto dense = dyn_cast<DenseIntElementsAttr>(attribute)) {
    auto type = cast<IntegerType>(dense.getElementType());
    bool natural = type.isUnsigned() || type.getWidth() == 1;
    for (const APInt &value : dense.getValues<APInt>())
      result.push_back(natural && value.getActiveBits() > 63
                           ? Element()
                           : Element::known(natural ? value.getZExtValue()
                                                    : value.getSExtValue()));
    return result;
  }
  auto resource = dyn_cast<DenseResourceElementsAttr>(attribute);
  if (!resource || !resource.getElementType().isSignlessInteger())
    return std::nullopt;
  AsmResourceBlob *blob = resource.getRawHandle().getBlob();
  unsigned width = resource.getElementType().getIntOrFloatBitWidth();
  if (!blob || blob->getData().size() != count * (width / 8))
    return std::nullopt;
  auto read = [&](auto zero) {
    for (size_t i = 0; i < count; ++i) {
      std::memcpy(&zero, blob->getData().data() + i * sizeof(zero),
                  sizeof(zero));
      result.push_back(Element::known(zero));
    }
  };
  if (width == 64)
    read(int64_t());
  else if (width == 32)
    read(int32_t());
  else
    return std::nullopt;
  return result;
}

/// `end` and `begin` of Shape, as Python would clamp them.
static ShapeValue evaluateShape(ShapeEvaluator &evaluator, onnx::ShapeOp op) {
  auto type = dyn_cast<RankedTensorType>(op.getData().getType());
  if (!type)
    return {};
  int64_t rank = type.getRank();
  auto clamp = [&](int64_t i) {
    return std::clamp<int64_t>(i < 0 ? i + rank : i, 0, rank);
  };
  ShapeValue result;
  for (int64_t i = clamp(op.getStart()),
               end = clamp(op.getEnd().value_or(rank));
       i < end; ++i)
    result.push_back(evaluator.getDim(op.getData(), i));
  return result;
}

static ShapeValue evaluateGather(ShapeEvaluator &evaluator, onnx::GatherOp op) {
  auto type = dyn_cast<RankedTensorType>(op.getData().getType());
  auto data = evaluator.evaluate(op.getData());
  auto indices = evaluator.evaluate(op.getIndices());
  ShapeValue result;
  if (!data || !indices || type.getRank() != 1)
    return result;
  int64_t size = data->size();
  for (Element index : *indices) {
    int64_t at = index.value < 0 ? index.value + size : index.value;
    bool inside = index.isKnown() && at >= 0 && at < size;
    result.push_back(inside ? (*data)[at] : Element());
  }
  return result;
}

static ShapeValue evaluateConcat(ShapeEvaluator &evaluator, onnx::ConcatOp op) {
  ShapeValue result;
  for (Value input : op.getInputs()) {
    auto part = evaluator.evaluate(input);
    if (!part || cast<RankedTensorType>(input.getType()).getRank() != 1)
      return {};
    result.append(*part);
  }
  return result;
}

/// A part of a vector. Its length is known, and so are those of the parts
/// before it.
static ShapeValue evaluateSplit(ShapeEvaluator &evaluator, onnx::SplitOp op,
                                OpResult part, size_t count) {
  auto data = evaluator.evaluate(op.getInput());
  if (!data || cast<RankedTensorType>(op.getInput().getType()).getRank() != 1)
    return {};
  size_t begin = 0;
  for (OpResult before : op->getResults().take_front(part.getResultNumber())) {
    std::optional<int64_t> length = getCount(before.getType());
    if (!length)
      return {};
    begin += *length;
  }
  if (begin + count > data->size())
    return {};
  return ShapeValue(ArrayRef(*data).slice(begin, count));
}

/// Slice of a vector with everything known.
static ShapeValue evaluateSlice(ShapeEvaluator &evaluator, onnx::SliceOp op) {
  auto data = evaluator.evaluate(op.getData());
  auto starts = evaluator.evaluate(op.getStarts());
  auto ends = evaluator.evaluate(op.getEnds());
  ShapeValue steps = {Element::known(1)};
  if (op.getSteps()) {
    auto given = evaluator.evaluate(op.getSteps());
    if (!given)
      return {};
    steps = *given;
  }
  auto single = [](const ShapeValue &value) {
    return value.size() == 1 && value[0].isKnown();
  };
  if (!data || cast<RankedTensorType>(op.getData().getType()).getRank() != 1 ||
      !starts || !ends || !single(*starts) || !single(*ends) ||
      !single(steps) || steps[0].value == 0)
    return {};
  int64_t size = data->size(), step = steps[0].value;
  int64_t low = step > 0 ? 0 : -1, high = step > 0 ? size : size - 1;
  auto clamp = [&](int64_t i, int64_t least) {
    if (i < 0)
      i = i < -size ? -1 : i + size;
    return std::clamp(i, least, std::max(least, high));
  };
  int64_t begin = clamp((*starts)[0].value, low);
  int64_t end = clamp((*ends)[0].value, low);
  if (begin < 0)
    return {}; // backwards from before the start: left to the run
  ShapeValue result;
  for (int64_t i = begin; step > 0 ? i < end : i > end;) {
    if (i < 0 || i >= size)
      break;
    result.push_back((*data)[i]);
    if (llvm::AddOverflow(i, step, i))
      break;
  }
  return result;
}

static ShapeValue evaluateRange(ShapeEvaluator &evaluator, onnx::RangeOp op,
                                size_t count) {
  auto start = evaluator.evaluate(op.getStart());
  auto delta = evaluator.evaluate(op.getDelta());
  if (!start || !delta || start->size() != 1 || delta->size() != 1)
    return {};
  ShapeValue result;
  Element next = start->front();
  for (size_t i = 0; i < count; ++i, next = add(next, delta->front()))
    result.push_back(next);
  return result;
}

/// A reduction of all elements to one.
static ShapeValue reduceAll(ShapeEvaluator &evaluator, Value data,
                            Element neutral, Binary combine) {
  auto elements = evaluator.evaluate(data);
  if (!elements)
    return {};
  Element result = neutral;
  for (Element element : *elements)
    result = combine(result, element);
  return {result};
}

static ShapeValue evaluateCast(ShapeEvaluator &evaluator, onnx::CastOp op) {
  auto elements = evaluator.evaluate(op.getInput());
  if (!elements)
    return {};
  auto to = cast<IntegerType>(
      cast<RankedTensorType>(op.getOutput().getType()).getElementType());
  for (Element &element : *elements) {
    if (!element.isKnown())
      continue; // a size fits wherever models put it
    if (to.getWidth() == 1)
      element.value = element.value != 0;
    else if (to.isUnsigned() ? element.value < 0 ||
                                   !llvm::isUIntN(to.getWidth(), element.value)
                             : !llvm::isIntN(to.getWidth(), element.value))
      element = {};
  }
  if (to.getWidth() < 32)
    for (Element &element : *elements)
      if (!element.isKnown())
        element = {};
  return *elements;
}

static ShapeValue evaluateElementwise(ShapeEvaluator &evaluator, Operation *op,
                                      size_t count) {
  Operands operands(evaluator, op->getOperands(), op->getResult(0));
  if (!operands)
    return {};
  ShapeValue result;
  if (Binary binary = getBinary(op)) {
    for (size_t i = 0; i < count; ++i) {
      Element element = operands.get(0, i);
      for (size_t k = 1; k < op->getNumOperands(); ++k)
        element = binary(element, operands.get(k, i));
      result.push_back(element);
    }
    return result;
  }
  for (size_t i = 0; i < count; ++i) {
    Element a = operands.get(0, i);
    if (isa<onnx::NegOp>(op))
      result.push_back(sub(Element::known(0), a));
    else if (isa<onnx::NotOp>(op))
      result.push_back(logicalNot(a));
    else if (isa<onnx::AbsOp>(op))
      result.push_back(
          a.isNonNegative() ? a : maximum(a, sub(Element::known(0), a)));
    else if (isa<onnx::WhereOp>(op))
      result.push_back(a.isKnown() ? operands.get(a.value ? 1 : 2, i)
                       : operands.get(1, i).isNonNegative() &&
                               operands.get(2, i).isNonNegative()
                           ? Element::size()
                           : Element());
  }
  return result;
}

ShapeValue ShapeEvaluator::compute(Value value, size_t count) {
  Operation *op = value.getDefiningOp();
  if (!op)
    return {};
  ElementsAttr attribute;
  if (matchPattern(op, m_Constant(&attribute))) {
    auto read = readConstant(attribute, count);
    return read ? *read : ShapeValue();
  }
  if (isa<onnx::ReduceProdOp, onnx::ReduceSumOp>(op) && count == 1) {
    bool product = isa<onnx::ReduceProdOp>(op);
    // One result of a whole tensor: all axes, unless the sizes kept are 1.
    return reduceAll(*this, op->getOperand(0), Element::known(product),
                     product ? mul : add);
  }
  if (op->hasTrait<onnx::KeepsOrder>()) {
    auto elements = evaluate(op->getOperand(0));
    return elements ? *elements : ShapeValue();
  }
  return llvm::TypeSwitch<Operation *, ShapeValue>(op)
      .Case<onnx::ShapeOp>([&](auto op) { return evaluateShape(*this, op); })
      .Case<onnx::SizeOp>(
          [&](auto op) { return ShapeValue{getNumElements(op.getData())}; })
      .Case<onnx::GatherOp>([&](auto op) { return evaluateGather(*this, op); })
      .Case<onnx::ConcatOp>([&](auto op) { return evaluateConcat(*this, op); })
      .Case<onnx::SliceOp>([&](auto op) { return evaluateSlice(*this, op); })
      .Case<onnx::SplitOp>([&](auto op) {
        return evaluateSplit(*this, op, cast<OpResult>(value), count);
      })
      .Case<onnx::RangeOp>(
          [&](auto op) { return evaluateRange(*this, op, count); })
      .Case<onnx::CastOp>([&](auto op) { return evaluateCast(*this, op); })
      .Case<onnx::ExpandOp>([&](auto op) {
        auto elements = evaluate(op.getInput());
        if (elements && elements->size() == 1)
          return ShapeValue(count, elements->front());
        return elements ? *elements : ShapeValue();
      })
      .Case<onnx::ConstantOfShapeOp>([&](auto op) {
        Element element = Element::known(0);
        if (auto given = dyn_cast_or_null<ElementsAttr>(op.getValueAttr())) {
          auto read = readConstant(given, 1);
          element = read && read->size() == 1 ? read->front() : Element();
        }
        return ShapeValue(count, element);
      })
      .Default([&](Operation *op) {
        bool known =
            getBinary(op) ||
            isa<onnx::NegOp, onnx::NotOp, onnx::AbsOp, onnx::WhereOp>(op);
        return known ? evaluateElementwise(*this, op, count) : ShapeValue();
      });
}

std::optional<ShapeValue> ShapeEvaluator::evaluate(Value value) {
  std::optional<int64_t> count = getCount(value.getType());
  if (!count)
    return std::nullopt;
  auto found = memo.find(value);
  if (found != memo.end())
    return found->second;
  // In the order of the ops operands are known already; this bound is for
  // questions out of order on endless chains.
  ShapeValue result;
  if (depth < maxDepth) {
    ++depth;
    result = compute(value, *count);
    --depth;
  }
  if (result.size() != static_cast<size_t>(*count))
    result.assign(*count, Element());
  memo[value] = result;
  return result;
}

DenseElementsAttr sardonyx::getKnownElements(RankedTensorType type,
                                             ArrayRef<ShapeElement> elements) {
  auto integer = cast<IntegerType>(type.getElementType());
  SmallVector<APInt> values;
  for (const ShapeElement &element : elements) {
    bool natural = integer.isUnsigned() || integer.getWidth() == 1;
    if (!element.isKnown() ||
        (natural ? element.value < 0 ||
                       !llvm::isUIntN(integer.getWidth(), element.value)
                 : !llvm::isIntN(integer.getWidth(), element.value)))
      return {};
    values.emplace_back(integer.getWidth(), element.value, !natural);
  }
  return DenseElementsAttr::get(type, values);
}
