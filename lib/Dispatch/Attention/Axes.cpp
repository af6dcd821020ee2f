//===- Axes.cpp - Dimensions of tensors as axes of a computation ----------===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Axes.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Dialect/Tensor/Utils/Utils.h"

using namespace mlir;
using namespace sardonyx;
using namespace sardonyx::attention;

Axes::Axis Axes::add(int64_t size) {
  nodes.push_back({size, std::nullopt});
  return nodes.size() - 1;
}

Axes::List Axes::create(int64_t size) {
  return size == 1 ? List() : List{add(size)};
}

Axes::List Axes::resolve(const List &list) const {
  List resolved;
  for (Axis axis : list) {
    if (nodes[axis].parts)
      resolved.append(
          resolve({nodes[axis].parts->first, nodes[axis].parts->second}));
    else
      resolved.push_back(axis);
  }
  return resolved;
}

Axes::Dims Axes::resolve(const Dims &dims) const {
  Dims resolved;
  for (const List &list : dims)
    resolved.push_back(resolve(list));
  return resolved;
}

std::pair<Axes::Axis, Axes::Axis> Axes::splitAxis(Axis axis, int64_t inner) {
  const int64_t size = nodes[axis].size;
  Axis first = add(ShapedType::isDynamic(size) ? size : size / inner);
  Axis second = add(inner);
  nodes[axis].parts = {first, second};
  return {first, second};
}

/// By what factor dimensions of these sizes are more than the axes of `list`; 0
/// if it is not known.
int64_t Axes::countMissing(const List &list, ArrayRef<int64_t> sizes) const {
  int64_t wanted = 1, there = 1;
  for (int64_t size : sizes)
    wanted = ShapedType::isDynamic(size) ? 0 : wanted * size;
  for (Axis axis : list)
    there = ShapedType::isDynamic(sizeOf(axis)) ? 0 : there * sizeOf(axis);
  return there > 0 && wanted % there == 0 ? wanted / there : 0;
}

std::optional<Axes::Dims> Axes::split(const List &list,
                                      ArrayRef<int64_t> sizes) {
  List left = resolve(list);
  Dims dims(sizes.size());
  for (size_t i = sizes.size(); i-- > 0;) {
    int64_t wanted = sizes[i];
    if (ShapedType::isDynamic(wanted)) {
      if (left.empty() || !ShapedType::isDynamic(sizeOf(left.back())))
        return std::nullopt;
      Axis axis = left.pop_back_val();
      if (int64_t outer = countMissing(left, sizes.take_front(i)); outer > 1) {
        left.push_back(add(outer));
        Axis inner = add(ShapedType::kDynamic);
        nodes[axis].parts = {left.back(), inner};
        axis = inner;
      }
      dims[i].push_back(axis);
      continue;
    }
    while (wanted != 1) {
      if (left.empty())
        return std::nullopt;
      Axis axis = left.back();
      const int64_t size = sizeOf(axis);
      const bool isOpen = ShapedType::isDynamic(size);
      if (isOpen || (size > wanted && wanted > 0 && size % wanted == 0)) {
        auto [outer, inner] = splitAxis(axis, wanted);
        left.back() = outer;
        dims[i].insert(dims[i].begin(), inner);
        break;
      }
      if (size <= 0 || wanted % size)
        return std::nullopt;
      dims[i].insert(dims[i].begin(), axis);
      left.pop_back();
      wanted /= size;
    }
  }
  if (!left.empty())
    return std::nullopt;
  return dims;
}

/// The dimensions of the larger shape of a reshape, by those of the smaller.
static std::optional<Axes::Dims>
splitAll(Axes &axes, const Axes::Dims &dims, ArrayRef<int64_t> sizes,
         ArrayRef<ReassociationIndices> groups) {
  Axes::Dims all;
  for (auto [list, group] : llvm::zip_equal(dims, groups)) {
    SmallVector<int64_t> ofGroup;
    for (int64_t dim : group)
      ofGroup.push_back(sizes[dim]);
    std::optional<Axes::Dims> parts = axes.split(list, ofGroup);
    if (!parts)
      return std::nullopt;
    llvm::append_range(all, *parts);
  }
  return all;
}

static Axes::Dims uniteAll(const Axes::Dims &dims,
                           ArrayRef<ReassociationIndices> groups) {
  Axes::Dims all;
  for (const ReassociationIndices &group : groups) {
    Axes::List &list = all.emplace_back();
    for (int64_t dim : group)
      list.append(dims[dim]);
  }
  return all;
}

std::optional<Axes::Dims> Axes::findSource(Operation *op, const Dims &dims) {
  if (auto collapse = dyn_cast<tensor::CollapseShapeOp>(op)) {
    // A scalar has no groups.
    if (collapse.getResultType().getRank() == 0)
      return std::nullopt;
    return splitAll(*this, dims, collapse.getSrcType().getShape(),
                    collapse.getReassociationIndices());
  }
  if (auto expand = dyn_cast<tensor::ExpandShapeOp>(op)) {
    if (expand.getSrcType().getRank() == 0)
      return std::nullopt;
    return uniteAll(dims, expand.getReassociationIndices());
  }
  if (auto transpose = dyn_cast<linalg::TransposeOp>(op)) {
    Dims source(dims.size());
    for (auto [to, from] : llvm::enumerate(transpose.getPermutation()))
      source[from] = dims[to];
    return source;
  }
  if (isa<tensor::CastOp>(op) &&
      isa<RankedTensorType>(op->getOperand(0).getType()))
    return dims;
  return std::nullopt;
}

std::optional<Axes::Dims> Axes::findResult(Operation *op, const Dims &dims) {
  if (auto collapse = dyn_cast<tensor::CollapseShapeOp>(op)) {
    if (collapse.getResultType().getRank() == 0)
      return std::nullopt;
    return uniteAll(dims, collapse.getReassociationIndices());
  }
  if (auto expand = dyn_cast<tensor::ExpandShapeOp>(op)) {
    if (expand.getSrcType().getRank() == 0)
      return std::nullopt;
    return splitAll(*this, dims, expand.getResultType().getShape(),
                    expand.getReassociationIndices());
  }
  if (auto transpose = dyn_cast<linalg::TransposeOp>(op)) {
    Dims result;
    for (int64_t from : transpose.getPermutation())
      result.push_back(dims[from]);
    return result;
  }
  return std::nullopt;
}

/// The size that a dimension of size `size`, of which the other parts are
/// static, leaves to its open part.
static OpFoldResult divideOpen(OpBuilder &b, Location loc, Value size,
                               int64_t others) {
  if (others == 1)
    return size;
  Value divisor = arith::ConstantIndexOp::create(b, loc, others);
  return arith::DivUIOp::create(b, loc, size, divisor).getResult();
}

int64_t Axes::countElements(const List &list) const {
  int64_t count = 1;
  for (Axis axis : list) {
    if (ShapedType::isDynamic(sizeOf(axis)))
      return ShapedType::kDynamic;
    count *= sizeOf(axis);
  }
  return count;
}

bool Axes::areSeparable(const Dims &dims) const {
  return llvm::all_of(resolve(dims), [&](const List &list) {
    return llvm::count_if(list, [&](Axis axis) {
             return ShapedType::isDynamic(sizeOf(axis));
           }) <= 1;
  });
}

Value Axes::separate(OpBuilder &b, Value tensor, const Dims &dims) const {
  auto type = cast<RankedTensorType>(tensor.getType());
  Location loc = tensor.getLoc();
  // What axes tell of the dimensions that they divide; a cast may have hidden
  // it from the tensor's type, or told the type what they do not know.
  SmallVector<int64_t> divided(type.getShape());
  for (auto [size, list] : llvm::zip_equal(divided, resolve(dims)))
    if (list.size() > 1)
      size = countElements(list);
  auto dividedType = RankedTensorType::get(divided, type.getElementType());
  if (dividedType != type) {
    tensor = tensor::CastOp::create(b, loc, dividedType, tensor);
    type = dividedType;
  }
  SmallVector<int64_t> shape;
  SmallVector<OpFoldResult> sizes;
  SmallVector<ReassociationIndices> groups;
  for (auto [dim, list] : llvm::enumerate(resolve(dims))) {
    ReassociationIndices &group = groups.emplace_back();
    int64_t others = 1;
    for (Axis axis : list)
      if (!ShapedType::isDynamic(sizeOf(axis)))
        others *= sizeOf(axis);
    // A cast may have made an axis open whose size the tensor has.
    if (list.size() <= 1) {
      group.push_back(shape.size());
      shape.push_back(type.getDimSize(dim));
      sizes.push_back(tensor::getMixedSize(b, loc, tensor, dim));
      continue;
    }
    for (Axis axis : list) {
      group.push_back(shape.size());
      shape.push_back(sizeOf(axis));
      if (!ShapedType::isDynamic(sizeOf(axis)))
        sizes.push_back(b.getIndexAttr(sizeOf(axis)));
      else
        sizes.push_back(divideOpen(
            b, loc, tensor::DimOp::create(b, loc, tensor, dim), others));
    }
  }
  if (shape.size() == size_t(type.getRank()))
    return tensor;
  return tensor::ExpandShapeOp::create(
      b, loc, RankedTensorType::get(shape, type.getElementType()), tensor,
      groups, sizes);
}

Value Axes::unite(OpBuilder &b, Value tensor, const Dims &dims,
                  RankedTensorType type) const {
  Location loc = tensor.getLoc();
  SmallVector<ReassociationIndices> united, spread;
  SmallVector<OpFoldResult> sizes;
  int64_t next = 0;
  // Dimensions of size 1 join the one before them, the first ones the first.
  for (auto [dim, list] : llvm::enumerate(resolve(dims))) {
    if (list.empty() && !spread.empty()) {
      spread.back().push_back(dim);
      continue;
    }
    if (spread.empty() || !united.back().empty()) {
      united.emplace_back();
      spread.emplace_back();
    }
    spread.back().push_back(dim);
    for (size_t i = 0; i < list.size(); ++i)
      united.back().push_back(next++);
  }
  if (next != int64_t(united.size()))
    tensor = tensor::CollapseShapeOp::create(b, loc, tensor, united);
  if (spread.size() == size_t(type.getRank()))
    return tensor;
  // Sizes are those of `tensor`, which may tell more or less than `type`.
  for (auto [group, indices] : llvm::enumerate(spread))
    for (int64_t dim : indices)
      sizes.push_back(resolve(dims[dim]).empty()
                          ? OpFoldResult(b.getIndexAttr(1))
                          : tensor::getMixedSize(b, loc, tensor, group));
  auto [shape, open] = decomposeMixedValues(sizes);
  return tensor::ExpandShapeOp::create(
      b, loc, RankedTensorType::get(shape, type.getElementType()), tensor,
      spread, sizes);
}

std::optional<Axes::Dims> attention::findLoops(linalg::GenericOp op,
                                               const Axes::Dims &dims) {
  AffineMap map = op.getMatchingIndexingMap(op.getDpsInitOperand(0));
  if (op.getNumReductionLoops() != 0 || !map.isPermutation())
    return std::nullopt;
  Axes::Dims loops(dims.size());
  for (auto [dim, list] : llvm::enumerate(dims))
    loops[map.getDimPosition(dim)] = list;
  return loops;
}

std::optional<Axes::Dims> attention::findOperand(linalg::GenericOp op,
                                                 OpOperand &operand,
                                                 const Axes::Dims &loops) {
  Axes::Dims dims;
  for (AffineExpr expr : op.getMatchingIndexingMap(&operand).getResults()) {
    if (auto dim = dyn_cast<AffineDimExpr>(expr))
      dims.push_back(loops[dim.getPosition()]);
    else if (expr == getAffineConstantExpr(0, op.getContext()))
      dims.emplace_back();
    else
      return std::nullopt;
  }
  return dims;
}
