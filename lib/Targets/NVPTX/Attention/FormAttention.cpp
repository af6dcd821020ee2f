//===- FormAttention.cpp - Make one operation of attention ----------------===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Goes backwards from the product of probabilities and values: through the
// softmax, what is done to scores, and the product of queries and keys, to
// tensors that lie in memory. What repeats, transposes, reshapes or scales them
// is told by the maps and the body instead.
//
//===----------------------------------------------------------------------===//

#include "Attention/AttentionPlan.h"
#include "Attention/ScoreBody.h"

#include "dialects/NV/NV.h"
#include "lib/Dispatch/Utils.h"
#include "sardonyx/Targets/NVPTX/Passes.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Dialect/Tensor/Utils/Utils.h"
#include "mlir/IR/Matchers.h"

namespace sardonyx {
#define GEN_PASS_DEF_NVFORMATTENTION
#include "sardonyx/Targets/NVPTX/Passes.h.inc"
} // namespace sardonyx

using namespace mlir;
using namespace sardonyx;
using namespace sardonyx::nv;

namespace {

/// An operand of a product, and what it was multiplied by.
struct Operand {
  Position position;
  double factor = 1;
};

class AttentionMatch {
public:
  explicit AttentionMatch(sdx::MatmulOp second) : second(second) {}

  bool match() {
    return findProbabilities() && findScores() && findOperands() &&
           isUsedHereOnly();
  }
  bool replace();

private:
  using Dims = Axes::Dims;

  bool findProbabilities();
  bool skipRowSelect(Position &position);
  bool findScores();
  bool findOperands();
  bool isUsedHereOnly();
  Operand findOperand(Position from, const Axes::List &last);
  bool findScaled(Operand &operand);
  Position findResult();
  void orderAxes();
  Value sizeOf(OpBuilder &b, Axes::Axis axis);
  AffineMap mapOf(const Dims &dims);
  Value applyRowSelects(OpBuilder &b, Value result, const Dims &dims);
  AttentionOp build(OpBuilder &b, Value init, const Dims &resultDims);

  sdx::MatmulOp second, first;
  Axes axes;
  Axes::List batch, rows, keys, depth, columns;
  Position scores;
  ScoreBody body{axes};
  llvm::SetVector<Operation *> passed;
  /// Operations that set whole rows of probabilities to 0, the last one first,
  /// with the axes of their loops.
  SmallVector<std::pair<linalg::GenericOp, Dims>> rowSelects;
  Operand query, key, value;
  /// All axes, those of keys, depth and columns last; and tensors' dimensions
  /// that have their sizes.
  Axes::List order;
  SmallVector<std::pair<Value, Dims>> separated;
};

} // namespace

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
          loops ? nv::findOperand(op, *element, *loops) : std::nullopt;
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
    std::optional<Dims> dims = nv::findOperand(op, operand, *loops);
    if (!dims || op.isDpsInit(&operand))
      return false;
    for (const Axes::List &list : axes.resolve(*dims))
      if (llvm::is_contained(list, keys.front()))
        return false;
  }
  std::optional<Dims> dims = nv::findOperand(op, *kept, *loops);
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

/// Goes past a product by a positive number.
bool AttentionMatch::findScaled(Operand &operand) {
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
  OpOperand *element = findElement(op, yielded);
  if (!element || op.isDpsInit(element) || op.isScalar(element) ||
      getElementTypeOrSelf(element->get()) !=
          getElementTypeOrSelf(operand.position.tensor))
    return false;
  std::optional<Dims> dims = nv::findOperand(op, *element, *loops);
  if (!dims)
    return false;
  operand.position = {element->get(), *dims};
  operand.factor *= number.convertToDouble();
  return true;
}

/// The furthest that `from` was made of whose last axis is that of `last`. The
/// tensor of none is null.
Operand AttentionMatch::findOperand(Position from, const Axes::List &last) {
  Operand operand{from}, found;
  while (true) {
    if (axes.resolve(last).size() != 1)
      return Operand();
    if (endsIn(axes, operand.position.dims, axes.resolve(last).front()))
      found = operand;
    Operation *op = operand.position.tensor.getDefiningOp();
    if (!op)
      return found;
    if (std::optional<Dims> source =
            axes.findSource(op, operand.position.dims)) {
      operand.position = {op->getOperand(0), *source};
      continue;
    }
    if (!findScaled(operand))
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

bool AttentionMatch::findOperands() {
  depth = axes.create(first.getLhs().getType().getShape().back());
  const Dims &product = body.getProductDims();
  Axes::List ofBatch = first.isBatched() ? product[0] : Axes::List();
  auto rhs = [&](sdx::MatmulOp op, const Axes::List &ofBatch,
                 const Axes::List &last) {
    const bool isLast = op.getTransposed() == (op == first);
    Dims dims = dimsOf(op.isRhsBatched(), ofBatch, keys, last);
    Position position = {op.getRhs(), dims};
    if (!isLast)
      std::swap(position.dims[dims.size() - 1], position.dims[dims.size() - 2]);
    Operand found = findOperand(position, last);
    if (found.position.tensor)
      return found;
    OpBuilder b(second);
    return Operand{{exchange(b, op.getRhs()), dims}};
  };
  if (depth.empty() || !canComputeAttention(first, second))
    return false;
  // Where heads share keys, they may be rows of one product only.
  const Axes::List &ofRows = product[product.size() - 2];
  query = findOperand(
      {first.getLhs(), dimsOf(first.isBatched(), ofBatch, ofRows, depth)},
      depth);
  key = rhs(first, ofBatch, depth);
  value = rhs(second, batch, columns);
  return query.position.tensor && value.factor == 1;
}

/// Sizes of what is computed on the way do not need it.
bool AttentionMatch::isUsedHereOnly() {
  return llvm::all_of(passed, [&](Operation *op) {
    return llvm::all_of(op->getUsers(), [&](Operation *user) {
      return user == second || passed.contains(user) ||
             isa<tensor::DimOp>(user);
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
      if (!isa<tensor::DimOp>(other)) {
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

void AttentionMatch::orderAxes() {
  order = axes.resolve(batch);
  order.append(axes.resolve(rows));
  order.append({axes.resolve(keys).front(), axes.resolve(depth).front(),
                axes.resolve(columns).front()});
}

AffineMap AttentionMatch::mapOf(const Dims &dims) {
  MLIRContext *context = second.getContext();
  SmallVector<AffineExpr> exprs;
  for (const Axes::List &list : axes.resolve(dims)) {
    if (list.empty())
      exprs.push_back(getAffineConstantExpr(0, context));
    for (Axes::Axis axis : list)
      exprs.push_back(
          getAffineDimExpr(llvm::find(order, axis) - order.begin(), context));
  }
  return AffineMap::get(order.size(), 0, exprs, context);
}

/// The size of an axis that is open, of a tensor that has it.
Value AttentionMatch::sizeOf(OpBuilder &b, Axes::Axis axis) {
  for (auto &[tensor, dims] : separated) {
    int64_t dim = 0;
    for (const Axes::List &list : axes.resolve(dims)) {
      for (Axes::Axis other : list) {
        if (other == axis)
          return tensor::DimOp::create(b, tensor.getLoc(), tensor, dim);
        ++dim;
      }
      dim += list.empty();
    }
  }
  return Value();
}

AttentionOp AttentionMatch::build(OpBuilder &b, Value init,
                                  const Dims &resultDims) {
  Location loc = b.getFusedLoc({first.getLoc(), second.getLoc()});
  SmallVector<Value> inputs;
  for (auto &[tensor, dims] : separated)
    inputs.push_back(tensor);
  SmallVector<Attribute> maps;
  for (auto &[tensor, dims] : separated)
    maps.push_back(AffineMapAttr::get(mapOf(dims)));
  maps.push_back(AffineMapAttr::get(mapOf(resultDims)));
  auto op = AttentionOp::create(b, loc, init.getType(), inputs[0], inputs[1],
                                inputs[2], ArrayRef(inputs).drop_front(3), init,
                                b.getArrayAttr(maps));
  Block &block = op.getBody().emplaceBlock();
  block.addArgument(b.getF32Type(), loc);
  for (Value extra : ArrayRef(inputs).drop_front(3))
    block.addArgument(getElementTypeOrSelf(extra), loc);
  DenseMap<Axes::Axis, Value> indices;
  for (Axes::Axis axis : ArrayRef(order).drop_back(2))
    indices[axis] = block.addArgument(b.getIndexType(), loc);
  OpBuilder inner = OpBuilder::atBlockEnd(&block);
  Value score = block.getArgument(0);
  const double factor = query.factor * key.factor;
  if (factor != 1)
    score = arith::MulFOp::create(
        inner, loc, score,
        arith::ConstantOp::create(inner, loc, b.getF32FloatAttr(factor)));
  score = body.build(inner, score, op.getElements(), indices);
  if (score)
    YieldOp::create(inner, loc, score);
  else
    op.erase();
  return score ? op : AttentionOp();
}

/// `result`, which has a dimension for each axis of `dims`, with the rows 0
/// that were set to 0 in the probabilities.
Value AttentionMatch::applyRowSelects(OpBuilder &b, Value result,
                                      const Dims &dims) {
  Axes::List axesOfResult;
  for (const Axes::List &list : axes.resolve(dims))
    axesOfResult.append(list);
  auto type = cast<RankedTensorType>(result.getType());
  for (auto &[op, loops] : llvm::reverse(rowSelects)) {
    SmallVector<Value> inputs = {result};
    SmallVector<AffineMap> maps = {b.getMultiDimIdentityMap(type.getRank())};
    SmallVector<unsigned> arguments;
    for (OpOperand *operand : op.getDpsInputOperands()) {
      Dims of = *nv::findOperand(op, *operand, loops);
      bool isKept = llvm::any_of(axes.resolve(of), [&](const Axes::List &list) {
        return llvm::is_contained(list, axes.resolve(keys).front());
      });
      arguments.push_back(isKept ? 0 : inputs.size());
      if (isKept)
        continue;
      SmallVector<AffineExpr> exprs;
      for (const Axes::List &list : axes.resolve(of)) {
        if (list.empty())
          exprs.push_back(b.getAffineConstantExpr(0));
        for (Axes::Axis axis : list)
          exprs.push_back(b.getAffineDimExpr(llvm::find(axesOfResult, axis) -
                                             axesOfResult.begin()));
      }
      inputs.push_back(op.isScalar(operand)
                           ? operand->get()
                           : axes.separate(b, operand->get(), of));
      maps.push_back(AffineMap::get(type.getRank(), 0, exprs, b.getContext()));
    }
    maps.push_back(maps.front());
    Value empty = tensor::EmptyOp::create(
        b, op.getLoc(), tensor::getMixedSizes(b, op.getLoc(), result),
        type.getElementType());
    SmallVector<utils::IteratorType> kinds(type.getRank(),
                                           utils::IteratorType::parallel);
    linalg::GenericOp from = op;
    result = linalg::GenericOp::create(
                 b, op.getLoc(), TypeRange(type), inputs, empty, maps, kinds,
                 [&](OpBuilder &n, Location loc, ValueRange args) {
                   auto convert = [&](Value x, Type to) -> Value {
                     const unsigned a = x.getType().getIntOrFloatBitWidth();
                     const unsigned z = to.getIntOrFloatBitWidth();
                     if (a < z)
                       return arith::ExtFOp::create(n, loc, to, x);
                     return a > z ? arith::TruncFOp::create(n, loc, to, x) : x;
                   };
                   IRMapping mapping;
                   for (auto [i, argument] : llvm::enumerate(arguments)) {
                     Value of = from.getBody()->getArgument(i);
                     Value x = args[argument];
                     mapping.map(of, argument ? x : convert(x, of.getType()));
                   }
                   for (Operation &inner : from.getBody()->without_terminator())
                     n.clone(inner, mapping);
                   Value y = mapping.lookupOrDefault(
                       from.getBody()->getTerminator()->getOperand(0));
                   linalg::YieldOp::create(n, loc,
                                           convert(y, type.getElementType()));
                 })
                 .getResult(0);
  }
  return result;
}

bool AttentionMatch::replace() {
  Position result = findResult();
  OpBuilder b(second);
  orderAxes();
  separated.push_back({query.position.tensor, query.position.dims});
  separated.push_back({key.position.tensor, key.position.dims});
  separated.push_back({value.position.tensor, value.position.dims});
  for (const Position &extra : body.getExtras())
    separated.push_back({extra.tensor, extra.dims});
  for (auto &[tensor, dims] : separated)
    tensor = axes.separate(b, tensor, dims);
  auto type = cast<RankedTensorType>(result.tensor.getType());
  SmallVector<OpFoldResult> sizes;
  Dims flat;
  for (const Axes::List &list : axes.resolve(result.dims))
    for (Axes::Axis axis : list) {
      flat.push_back({axis});
      if (!ShapedType::isDynamic(axes.sizeOf(axis))) {
        sizes.push_back(b.getIndexAttr(axes.sizeOf(axis)));
        continue;
      }
      Value size = sizeOf(b, axis);
      if (!size)
        return false;
      sizes.push_back(size);
    }
  Value init =
      tensor::EmptyOp::create(b, second.getLoc(), sizes, type.getElementType());
  AttentionOp op = build(b, init, flat);
  if (!op)
    return false;
  Value made = applyRowSelects(b, op.getResult(), flat);
  Value united = axes.unite(b, made, result.dims, type);
  if (united.getType() != type)
    united = tensor::CastOp::create(b, second.getLoc(), type, united);
  result.tensor.replaceAllUsesWith(united);
  return true;
}

namespace {

struct FormAttentionPass
    : sardonyx::impl::NVFormAttentionBase<FormAttentionPass> {
  void runOnOperation() override {
    eraseDead();
    SmallVector<sdx::MatmulOp> products;
    getOperation().walk([&](sdx::MatmulOp op) { products.push_back(op); });
    for (sdx::MatmulOp product : products) {
      AttentionMatch attention(product);
      if (attention.match())
        attention.replace();
    }
    eraseDead();
  }

private:
  /// What nothing needs any more would count as another use.
  void eraseDead() {
    getOperation().walk([](Block *block) {
      for (Operation &op : llvm::make_early_inc_range(llvm::reverse(*block)))
        if (isOpTriviallyDead(&op))
          op.erase();
    });
  }
};

} // namespace
