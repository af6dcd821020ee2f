//===- IndexValues.cpp - Index values as polynomials ----------------------===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Common/IndexValues.h"
#include "dialects/SDX/SDX.h"

#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"
#include "mlir/IR/Matchers.h"
#include "sardonyx/DimNames.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace sardonyx;

//===----------------------------------------------------------------------===//
// Values
//===----------------------------------------------------------------------===//

Polynomial IndexValues::get(Value value) {
  auto known = values.find(value);
  if (known != values.end())
    return known->second;
  Polynomial result = compute(value);
  values.insert({value, result});
  return result;
}

Polynomial IndexValues::get(OpFoldResult value) {
  if (auto constant = getConstantIntValue(value))
    return *constant;
  return get(cast<Value>(value));
}

Polynomial IndexValues::compute(Value value) {
  APInt constant;
  if (matchPattern(value, m_ConstantInt(&constant)) &&
      constant.getSignificantBits() <= 64)
    return constant.getSExtValue();
  if (auto arg = dyn_cast<BlockArgument>(value))
    return computeArgument(arg);
  auto remainder = [&](Value x, Value y) {
    return get(x) - get(y) * bounds.divide(get(x), get(y));
  };
  // Quotients round towards zero or are of unsigned numbers: they round down
  // where nothing is negative.
  auto isUnsigned = [&](Operation *op) {
    return llvm::all_of(op->getOperands(), [&](Value operand) {
      return bounds.isNonNegative(get(operand));
    });
  };
  return llvm::TypeSwitch<Operation *, Polynomial>(value.getDefiningOp())
      .Case(
          [&](arith::AddIOp op) { return get(op.getLhs()) + get(op.getRhs()); })
      .Case(
          [&](arith::SubIOp op) { return get(op.getLhs()) - get(op.getRhs()); })
      .Case(
          [&](arith::MulIOp op) { return get(op.getLhs()) * get(op.getRhs()); })
      .Case<arith::DivUIOp, arith::DivSIOp>([&](auto op) {
        return isUnsigned(op)
                   ? bounds.divide(get(op.getLhs()), get(op.getRhs()))
                   : bounds.makeUnknown(false);
      })
      .Case([&](arith::FloorDivSIOp op) {
        return bounds.divide(get(op.getLhs()), get(op.getRhs()));
      })
      .Case<arith::CeilDivUIOp, arith::CeilDivSIOp>([&](auto op) {
        Polynomial y = get(op.getRhs());
        return isUnsigned(op) ? bounds.divide(get(op.getLhs()) + y - 1, y)
                              : bounds.makeUnknown(false);
      })
      .Case<arith::RemUIOp, arith::RemSIOp>([&](auto op) {
        return isUnsigned(op) ? remainder(op.getLhs(), op.getRhs())
                              : bounds.makeUnknown(false);
      })
      .Case<arith::MinSIOp, arith::MinUIOp>([&](auto op) {
        return bounds.minimum(get(op.getLhs()), get(op.getRhs()));
      })
      .Case<arith::MaxSIOp, arith::MaxUIOp>([&](auto op) {
        return bounds.maximum(get(op.getLhs()), get(op.getRhs()));
      })
      .Case([&](arith::SelectOp op) {
        return bounds.either(get(op.getTrueValue()), get(op.getFalseValue()));
      })
      .Case([&](arith::IndexCastOp op) { return get(op.getIn()); })
      .Case([&](affine::AffineApplyOp op) {
        SmallVector<Polynomial> operands;
        for (Value operand : op.getMapOperands())
          operands.push_back(get(operand));
        return getExpr(op.getAffineMap().getResult(0), operands,
                       op.getAffineMap().getNumDims());
      })
      .Case([&](memref::DimOp op) {
        auto dim = op.getConstantIndex();
        return dim ? getSize(op.getSource(), *dim) : bounds.makeUnknown(true);
      })
      .Case([&](scf::IfOp op) {
        unsigned number = cast<OpResult>(value).getResultNumber();
        return bounds.either(get(op.thenYield().getOperand(number)),
                             get(op.elseYield().getOperand(number)));
      })
      .Default([&](Operation *) { return bounds.makeUnknown(false); });
}

Polynomial IndexValues::computeArgument(BlockArgument arg) {
  Operation *parent = arg.getOwner()->getParentOp();
  if (auto loop = dyn_cast<scf::ForOp>(parent);
      loop && arg == loop.getInductionVar())
    return bounds.makeCounter(get(loop.getLowerBound()),
                              get(loop.getUpperBound()), get(loop.getStep()));
  if (auto loop = dyn_cast<scf::ParallelOp>(parent)) {
    unsigned i = arg.getArgNumber();
    return bounds.makeCounter(get(loop.getLowerBound()[i]),
                              get(loop.getUpperBound()[i]),
                              get(loop.getStep()[i]));
  }
  return bounds.makeUnknown(false);
}

Polynomial IndexValues::getExpr(AffineExpr expr, ArrayRef<Polynomial> operands,
                                unsigned numDims) {
  if (auto dim = dyn_cast<AffineDimExpr>(expr))
    return operands[dim.getPosition()];
  if (auto symbol = dyn_cast<AffineSymbolExpr>(expr))
    return operands[numDims + symbol.getPosition()];
  if (auto constant = dyn_cast<AffineConstantExpr>(expr))
    return constant.getValue();
  auto binary = cast<AffineBinaryOpExpr>(expr);
  Polynomial x = getExpr(binary.getLHS(), operands, numDims);
  Polynomial y = getExpr(binary.getRHS(), operands, numDims);
  switch (binary.getKind()) {
  case AffineExprKind::Add:
    return x + y;
  case AffineExprKind::Mul:
    return x * y;
  case AffineExprKind::FloorDiv:
    return bounds.divide(x, y);
  case AffineExprKind::CeilDiv:
    return bounds.divide(x + y - 1, y);
  case AffineExprKind::Mod:
    return x - y * bounds.divide(x, y);
  default:
    return bounds.makeUnknown(false);
  }
}

//===----------------------------------------------------------------------===//
// Sizes
//===----------------------------------------------------------------------===//

Polynomial IndexValues::getSize(Value memref, int64_t dim) {
  auto type = dyn_cast<MemRefType>(memref.getType());
  if (type && !type.isDynamicDim(dim))
    return type.getDimSize(dim);
  auto known = sizes.find({memref, dim});
  if (known != sizes.end())
    return known->second;
  Polynomial result = computeSize(memref, dim);
  sizes.insert({{memref, dim}, result});
  return result;
}

Polynomial IndexValues::computeSize(Value memref, int64_t dim) {
  Operation *op = memref.getDefiningOp();
  auto dynamic = [&](ValueRange given) {
    auto type = cast<MemRefType>(memref.getType());
    return get(given[type.getDynamicDimIndex(dim)]);
  };
  if (!op)
    return bounds.makeUnknown(true);
  return llvm::TypeSwitch<Operation *, Polynomial>(op)
      .Case<memref::AllocOp, memref::AllocaOp>(
          [&](auto alloc) { return dynamic(alloc.getDynamicSizes()); })
      .Case([&](sardonyx::sdx::OutputBufferOp out) {
        return dynamic(out.getSizes());
      })
      .Case([&](memref::ViewOp view) { return dynamic(view.getSizes()); })
      .Case([&](memref::CastOp cast) {
        if (!isa<MemRefType>(cast.getSource().getType()))
          return bounds.makeUnknown(true);
        return getSize(cast.getSource(), dim);
      })
      .Case([&](memref::ExpandShapeOp view) {
        return get(view.getMixedOutputShape()[dim]);
      })
      .Case([&](memref::CollapseShapeOp view) {
        Polynomial product(1);
        ReassociationIndices group = view.getReassociationIndices()[dim];
        for (int64_t d : group)
          product = product * getSize(view.getSrc(), d);
        return product;
      })
      .Case([&](memref::ReinterpretCastOp view) {
        return get(view.getMixedSizes()[dim]);
      })
      .Case([&](memref::SubViewOp view) {
        auto dropped = view.getDroppedDims();
        int64_t at = -1;
        for (unsigned d = 0; d < dropped.size(); ++d)
          if (!dropped[d] && ++at == dim)
            return get(view.getMixedSizes()[d]);
        return bounds.makeUnknown(true);
      })
      .Default([&](Operation *) { return bounds.makeUnknown(true); });
}

void IndexValues::nameSizes(func::FuncOp func) {
  llvm::StringMap<Polynomial> named;
  for (BlockArgument arg : func.getArguments()) {
    auto type = dyn_cast<MemRefType>(arg.getType());
    auto names =
        func.getArgAttrOfType<ArrayAttr>(arg.getArgNumber(), "onnx.dim_params");
    if (!type || !names || static_cast<int64_t>(names.size()) != type.getRank())
      continue;
    for (auto [dim, attr] : llvm::enumerate(names)) {
      auto name = dyn_cast<StringAttr>(attr);
      if (!name || !isNameOfSize(name.getValue()) || !type.isDynamicDim(dim))
        continue;
      auto [it, isNew] = named.try_emplace(name.getValue(), Polynomial());
      if (isNew)
        it->second = bounds.makeUnknown(true);
      sizes[{arg, dim}] = it->second;
    }
  }
}

std::string IndexValues::bind(BlockArgument arg, Value value,
                              IndexValues &caller) {
  std::string key;
  if (auto type = dyn_cast<MemRefType>(arg.getType())) {
    for (int64_t d = 0; d < type.getRank(); ++d)
      if (type.isDynamicDim(d)) {
        Polynomial size = caller.getSize(value, d);
        sizes[{arg, d}] = size;
        key += size.getKey() + ",";
      }
    return key;
  }
  if (!arg.getType().isIndex() && !arg.getType().isInteger())
    return key;
  Polynomial bound = caller.get(value);
  values.insert({arg, bound});
  return bound.getKey();
}

//===----------------------------------------------------------------------===//
// Conditions
//===----------------------------------------------------------------------===//

void IndexValues::assume(Value condition, bool holds, bool always) {
  Operation *op = condition.getDefiningOp();
  if (!op)
    return;
  bool joins = holds ? isa<arith::AndIOp>(op) : isa<arith::OrIOp>(op);
  if (joins) {
    assume(op->getOperand(0), holds, always);
    assume(op->getOperand(1), holds, always);
  } else if (auto negation = dyn_cast<arith::XOrIOp>(op)) {
    if (matchPattern(negation.getRhs(), m_One()) &&
        op->getResult(0).getType().isInteger(1))
      assume(negation.getLhs(), !holds, always);
  } else if (auto compare = dyn_cast<arith::CmpIOp>(op)) {
    assumeComparison(compare, holds, always);
  }
}

void IndexValues::assumeComparison(arith::CmpIOp compare, bool holds,
                                   bool always) {
  using Predicate = arith::CmpIPredicate;
  if (!compare.getLhs().getType().isIntOrIndex())
    return;
  Predicate predicate = holds ? compare.getPredicate()
                              : arith::invertPredicate(compare.getPredicate());
  Polynomial x = get(compare.getLhs()), y = get(compare.getRhs());
  switch (predicate) {
  case Predicate::eq:
    if (always)
      bounds.assumeZero(x - y);
    bounds.pushFact(x - y);
    return bounds.pushFact(y - x);
  case Predicate::ult:
  case Predicate::ule:
    if (!bounds.isNonNegative(y))
      return;
    bounds.pushFact(x);
    return bounds.pushFact(y - x - (predicate == Predicate::ult ? 1 : 0));
  case Predicate::slt:
    return bounds.pushFact(y - x - 1);
  case Predicate::sle:
    return bounds.pushFact(y - x);
  case Predicate::sgt:
    return bounds.pushFact(x - y - 1);
  case Predicate::sge:
    return bounds.pushFact(x - y);
  case Predicate::ugt:
  case Predicate::uge:
    if (!bounds.isNonNegative(x))
      return;
    return bounds.pushFact(x - y - (predicate == Predicate::ugt ? 1 : 0));
  case Predicate::ne:
    return;
  }
}

//===----------------------------------------------------------------------===//
// Accesses
//===----------------------------------------------------------------------===//

std::optional<Polynomial> IndexValues::countLanes(Value mask) {
  if (auto made = mask.getDefiningOp<vector::CreateMaskOp>())
    return get(made.getOperands().front());
  if (auto constant = mask.getDefiningOp<vector::ConstantMaskOp>())
    return constant.getMaskDimSizes().front();
  if (auto both = mask.getDefiningOp<arith::AndIOp>()) {
    if (auto count = countLanes(both.getLhs()))
      return count;
    return countLanes(both.getRhs());
  }
  return std::nullopt;
}

std::string IndexValues::findUncovered(const MemoryAccess &access) {
  Polynomial lanes = access.lanes;
  if (access.mask)
    if (auto count = countLanes(access.mask))
      lanes = bounds.minimum(*count, lanes);
  if (access.offsets)
    return findUncoveredGather(access, lanes);
  int64_t rank = access.indices.size();
  for (int64_t d = 0; d < rank; ++d) {
    Polynomial index = get(access.indices[d]);
    if (!bounds.isNonNegative(index))
      return "the index of dimension " + std::to_string(d) + " may be negative";
    Polynomial end = index + (d == access.laneDim ? lanes : Polynomial(1));
    if (!bounds.isNonNegative(getSize(access.memref, d) - end))
      return "the index of dimension " + std::to_string(d) +
             " may be too large";
  }
  return "";
}

std::optional<Polynomial> IndexValues::getLaneStep(Value offsets) {
  if (offsets.getDefiningOp<vector::StepOp>())
    return Polynomial(1);
  auto product = offsets.getDefiningOp<arith::MulIOp>();
  if (!product)
    return std::nullopt;
  for (auto [x, y] : {std::pair(product.getLhs(), product.getRhs()),
                      std::pair(product.getRhs(), product.getLhs())}) {
    if (!x.getDefiningOp<vector::StepOp>())
      continue;
    if (auto spread = y.getDefiningOp<vector::BroadcastOp>())
      return get(spread.getSource());
    DenseIntElementsAttr constant;
    if (matchPattern(y, m_Constant(&constant)) && constant.isSplat())
      return Polynomial(constant.getSplatValue<APInt>().getSExtValue());
  }
  return std::nullopt;
}

std::string IndexValues::findUncoveredGather(const MemoryAccess &access,
                                             const Polynomial &lanes) {
  if (!access.memref.getType().getLayout().isIdentity())
    return "the layout is not known";
  Polynomial first, stride(1);
  for (int64_t d = access.indices.size() - 1; d >= 0; --d) {
    first = first + get(access.indices[d]) * stride;
    stride = stride * getSize(access.memref, d);
  }
  if (!bounds.isNonNegative(first))
    return "the first lane's place may be negative";
  DenseIntElementsAttr constant;
  Polynomial reach;
  if (matchPattern(access.offsets, m_Constant(&constant))) {
    int64_t most = 0;
    for (const APInt &offset : constant.getValues<APInt>()) {
      if (offset.isNegative())
        return "a lane may lie before the first";
      most = std::max(most, offset.getSExtValue());
    }
    reach = most;
  } else if (auto step = getLaneStep(access.offsets)) {
    if (!bounds.isNonNegative(*step))
      return "a lane may lie before the first";
    reach = *step * (lanes - 1);
  } else {
    return "the distances of lanes are not known";
  }
  return bounds.isNonNegative(stride - first - reach - 1)
             ? ""
             : "the last lane's place may be too large";
}
