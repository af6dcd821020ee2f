//===- RowMemory.cpp - Loads and stores of a group's loops ----------------===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Rows/RowMemory.h"
#include "Kernel/Vectorize.h"
#include "Rows/AccessPattern.h"

#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;

/// Rows of scratch up to this size live on the stack.
static constexpr int64_t kStackBytes = 65536;

namespace sardonyx::cpu {

SmallVector<Value> RowMemory::getIndices(const RowAccess &access,
                                         const Point &point, unsigned copy) {
  SmallVector<OpFoldResult> ivs;
  int64_t copied = point.isTile ? plan.transposed : plan.lane;
  int64_t step = point.isTile ? 1 : plan.lanes;
  for (auto [d, iv] : llvm::enumerate(point.ivs)) {
    if (!iv)
      ivs.push_back(b.getIndexAttr(0));
    else if (static_cast<int64_t>(d) == copied && copy > 0)
      ivs.push_back(affine::makeComposedFoldedAffineApply(
          b, loc, b.getAffineDimExpr(0) + copy * step, {iv}));
    else
      ivs.push_back(iv);
  }
  SmallVector<Value> indices;
  for (AffineExpr expr : access.map.getResults())
    indices.push_back(getValueOrCreateConstantIndexOp(
        b, loc,
        affine::makeComposedFoldedAffineApply(
            b, loc, AffineMap::get(ivs.size(), 0, expr), ivs)));
  return indices;
}

/// Elements between the first lane's and each lane's address.
Value RowMemory::getLaneOffsets(const RowAccess &access) {
  SmallVector<int64_t> coefficients, strides;
  int64_t offset;
  (void)getLaneCoefficients(access, plan.lane, coefficients);
  auto type = cast<MemRefType>(access.value.getType());
  (void)type.getStridesAndOffset(strides, offset);
  Value total = index(0);
  for (unsigned i = 0; i < coefficients.size(); ++i) {
    if (coefficients[i] == 0)
      continue;
    Value stride;
    if (!ShapedType::isDynamic(strides[i])) {
      stride = index(strides[i] * coefficients[i]);
    } else {
      stride = index(coefficients[i]);
      for (unsigned j = i + 1; j < coefficients.size(); ++j)
        stride = arith::MulIOp::create(
            b, loc, stride, memref::DimOp::create(b, loc, access.value, j));
    }
    total = arith::AddIOp::create(b, loc, total, stride);
  }
  auto vector = VectorType::get(plan.lanes, b.getIndexType());
  return arith::MulIOp::create(
      b, loc, vector::StepOp::create(b, loc, vector),
      vector::BroadcastOp::create(b, loc, vector, total));
}

/// A square tile, loaded along the transposed dimension and turned: halves are
/// exchanged, then quarters, down to single elements.
Copies RowMemory::loadTransposed(const RowAccess &access, const Point &point) {
  int64_t lanes = plan.lanes;
  auto type = VectorType::get(
      lanes, cast<MemRefType>(access.value.getType()).getElementType());
  Point at = point;
  at.isTile = false;
  Copies rows;
  for (int64_t i = 0; i < lanes; ++i) {
    if (i > 0)
      at.ivs[plan.lane] = affine::AffineApplyOp::create(
          b, loc, b.getAffineDimExpr(0) + i, ValueRange{point.ivs[plan.lane]});
    rows.push_back(vector::LoadOp::create(b, loc, type, access.value,
                                          getIndices(access, at, 0)));
  }
  for (int64_t half = lanes / 2; half > 0; half /= 2) {
    SmallVector<int64_t> low, high;
    for (int64_t lane = 0; lane < lanes; ++lane) {
      bool first = (lane & half) == 0;
      low.push_back(first ? lane : lanes + lane - half);
      high.push_back(first ? lane + half : lanes + lane);
    }
    for (int64_t i = 0; i < lanes; ++i) {
      if (i & half)
        continue;
      Value x = rows[i], y = rows[i + half];
      rows[i] = vector::ShuffleOp::create(b, loc, x, y, low);
      rows[i + half] = vector::ShuffleOp::create(b, loc, x, y, high);
    }
  }
  return rows;
}

/// Every n-th element of n `parts` behind each other, from `first` on. The last
/// part begins `overlap` elements before the end of the one before.
static Value pickEvery(OpBuilder &b, Location loc, ArrayRef<Value> parts,
                       int64_t first, int64_t overlap = 0) {
  const int64_t n = parts.size();
  const int64_t lanes =
      cast<VectorType>(parts.front().getType()).getNumElements();
  Value result = parts.front();
  for (int64_t part = 1; part < n; ++part) {
    SmallVector<int64_t> picked;
    for (int64_t lane = 0; lane < lanes; ++lane) {
      const int64_t from = (lane * n + first) / lanes,
                    at = (lane * n + first) % lanes;
      // What earlier parts gave is in place but for the first part's.
      picked.push_back(from == part ? lanes + at + (part == n - 1 ? overlap : 0)
                       : part == 1 && from == 0 ? at
                                                : lane);
    }
    result = vector::ShuffleOp::create(b, loc, result, parts[part], picked);
  }
  return result;
}

/// Every n-th element: loads all of them and picks.
Value RowMemory::loadInterleaved(const RowAccess &access, const Point &point,
                                 SmallVector<Value> indices) {
  int64_t n = getInterleave(access, plan.lane), lanes = plan.lanes;
  auto type = VectorType::get(
      lanes, cast<MemRefType>(access.value.getType()).getElementType());
  auto maskType = VectorType::get(lanes, b.getI1Type());
  // The last lane's element is the last one that may be read.
  Value left;
  if (point.mask) {
    left = arith::SubIOp::create(b, loc, point.left, index(1));
    left = arith::MulIOp::create(b, loc, left, index(n));
    left = arith::AddIOp::create(b, loc, left, index(1));
  }
  // Without a mask the last vector begins earlier and ends with that element.
  const int64_t overlap = point.mask ? 0 : n - 1;
  Value first = indices.back();
  Copies parts;
  for (int64_t k = 0; k < n; ++k) {
    indices.back() = affine::AffineApplyOp::create(
        b, loc,
        b.getAffineDimExpr(0) + (k * lanes - (k == n - 1 ? overlap : 0)),
        ValueRange{first});
    if (!left) {
      parts.push_back(
          vector::LoadOp::create(b, loc, type, access.value, indices));
      continue;
    }
    Value mask = vector::CreateMaskOp::create(
        b, loc, maskType,
        arith::SubIOp::create(b, loc, left, index(k * lanes)).getResult());
    parts.push_back(vector::MaskedLoadOp::create(
        b, loc, type, access.value, indices, mask,
        arith::ConstantOp::create(b, loc, b.getZeroAttr(type))));
  }
  return pickEvery(b, loc, parts, 0, overlap);
}

Copies RowMemory::load(const RowAccess &access, const Point &point) {
  AccessPattern walk = point.onVectors ? getAccessPattern(access, plan.lane)
                                       : AccessPattern::Uniform;
  if (walk == AccessPattern::Uniform) {
    bool differs = point.isTile && access.map.isFunctionOfDim(plan.transposed);
    Copies values;
    for (unsigned i = 0; i < (differs ? point.copies : 1); ++i)
      values.push_back(memref::LoadOp::create(b, loc, access.value,
                                              getIndices(access, point, i)));
    return values;
  }
  if (point.isTile && walk == AccessPattern::Strided)
    return plan.deinterleaves ? loadDeinterleaved(access, point)
                              : loadTransposed(access, point);
  auto type = VectorType::get(
      plan.lanes, cast<MemRefType>(access.value.getType()).getElementType());
  Copies values;
  if (walk == AccessPattern::Strided && getInterleave(access, plan.lane)) {
    for (unsigned i = 0; i < point.copies; ++i)
      values.push_back(
          loadInterleaved(access, point, getIndices(access, point, i)));
    return values;
  }
  Value offsets, none, mask = point.mask;
  if (walk == AccessPattern::Strided || mask)
    none = arith::ConstantOp::create(b, loc, b.getZeroAttr(type));
  if (walk == AccessPattern::Strided) {
    offsets = getLaneOffsets(access);
    mask = getFullMask(mask);
  }
  for (unsigned i = 0; i < point.copies; ++i) {
    SmallVector<Value> indices = getIndices(access, point, i);
    if (walk == AccessPattern::Strided)
      values.push_back(vector::GatherOp::create(b, loc, type, access.value,
                                                indices, offsets, mask, none));
    else if (mask)
      values.push_back(vector::MaskedLoadOp::create(b, loc, type, access.value,
                                                    indices, mask, none));
    else
      values.push_back(
          vector::LoadOp::create(b, loc, type, access.value, indices));
  }
  return values;
}

Value RowMemory::getFullMask(Value mask) {
  if (mask)
    return mask;
  auto type = VectorType::get(plan.lanes, b.getI1Type());
  return arith::ConstantOp::create(b, loc, DenseElementsAttr::get(type, true));
}

/// The elements of vectors of one type, first those of all first lanes, then
/// those of the second ones ..., as vectors of that type.
static Copies interleaveAll(OpBuilder &b, Location loc,
                            ArrayRef<Value> vectors) {
  const int64_t count = vectors.size();
  const int64_t lanes =
      cast<VectorType>(vectors.front().getType()).getNumElements();
  Copies results;
  for (int64_t part = 0; part < count; ++part) {
    Value result = vectors.front();
    for (int64_t from = 1; from < count; ++from) {
      SmallVector<int64_t> picked;
      for (int64_t lane = 0; lane < lanes; ++lane) {
        const int64_t place = part * lanes + lane;
        // What other vectors gave is in place but for the first one's.
        picked.push_back(place % count == from ? lanes + place / count
                         : from == 1 && place % count == 0 ? place / count
                                                           : lane);
      }
      result = vector::ShuffleOp::create(b, loc, result, vectors[from], picked);
    }
    results.push_back(result);
  }
  return results;
}

/// The memory of `access` whose last two dimensions are one, and where in it
/// all copies of the first lane begin.
std::pair<Value, SmallVector<Value>>
RowMemory::flattenPositions(const RowAccess &access, const Point &point) {
  const int64_t rank = cast<MemRefType>(access.value.getType()).getRank();
  SmallVector<ReassociationIndices> groups;
  for (int64_t dim = 0; dim < rank - 1; ++dim)
    groups.push_back({dim});
  groups.back().push_back(rank - 1);
  Value flat = memref::CollapseShapeOp::create(b, loc, access.value, groups);
  SmallVector<Value> indices = getIndices(access, point, 0);
  indices.pop_back();
  indices.back() = affine::makeComposedAffineApply(
      b, loc, b.getAffineDimExpr(0) * int64_t(point.copies),
      {OpFoldResult(indices.back())});
  return {flat, indices};
}

/// The elements of `lanes` pixels of as many numbers as there are copies, each
/// copy's in a vector.
Copies RowMemory::loadDeinterleaved(const RowAccess &access,
                                    const Point &point) {
  const int64_t lanes = plan.lanes, count = point.copies;
  auto type = VectorType::get(
      lanes, cast<MemRefType>(access.value.getType()).getElementType());
  auto [flat, indices] = flattenPositions(access, point);
  Value first = indices.back();
  Copies parts, results;
  for (int64_t part = 0; part < count; ++part) {
    indices.back() = affine::AffineApplyOp::create(
        b, loc, b.getAffineDimExpr(0) + part * lanes, ValueRange{first});
    parts.push_back(vector::LoadOp::create(b, loc, type, flat, indices));
  }
  for (int64_t copy = 0; copy < count; ++copy)
    results.push_back(pickEvery(b, loc, parts, copy));
  return results;
}

/// Stores that stride along the lanes by the number of copies, which fill what
/// lies between.
void RowMemory::storeInterleaved(const RowAccess &access, const Point &point,
                                 const Copies &values) {
  Copies vectors;
  for (unsigned i = 0; i < point.copies; ++i)
    vectors.push_back(broadcastTo(b, loc, pick(values, i), shape(point)));
  auto [flat, indices] = flattenPositions(access, point);
  Value first = indices.back();
  for (auto [i, part] : llvm::enumerate(interleaveAll(b, loc, vectors))) {
    indices.back() = affine::AffineApplyOp::create(
        b, loc, b.getAffineDimExpr(0) + int64_t(i) * plan.lanes,
        ValueRange{first});
    vector::StoreOp::create(b, loc, part, flat, indices);
  }
}

bool RowMemory::repeat(const RowAccess &access, const Point &point,
                       llvm::function_ref<void(const Point &)> write) {
  for (unsigned d : plan.repeated) {
    if (point.ivs[d] || !access.map.isFunctionOfDim(d))
      continue;
    Point at = point;
    for (int64_t i = 0, e = group.getStaticSize(d); i < e; ++i) {
      at.ivs[d] = index(i);
      write(at);
    }
    return true;
  }
  return false;
}

void RowMemory::store(const RowAccess &access, const Point &point,
                      const Copies &values) {
  if (repeat(access, point,
             [&](const Point &at) { store(access, at, values); }))
    return;
  AccessPattern walk = point.onVectors ? getAccessPattern(access, plan.lane)
                                       : AccessPattern::Uniform;
  if (walk == AccessPattern::Uniform) {
    memref::StoreOp::create(b, loc, values.front(), access.value,
                            getIndices(access, point, 0));
    return;
  }
  if (point.isTile && plan.interleaves)
    return storeInterleaved(access, point, values);
  Value offsets, mask = point.mask;
  if (walk == AccessPattern::Strided) {
    offsets = getLaneOffsets(access);
    mask = getFullMask(mask);
  }
  for (unsigned i = 0; i < point.copies; ++i) {
    Value value = broadcastTo(b, loc, pick(values, i), shape(point));
    SmallVector<Value> indices = getIndices(access, point, i);
    if (walk == AccessPattern::Strided)
      vector::ScatterOp::create(b, loc, /*result=*/Type(), access.value,
                                indices, offsets, mask, value);
    else if (mask)
      vector::MaskedStoreOp::create(b, loc, access.value, indices, mask, value);
    else
      vector::StoreOp::create(b, loc, value, access.value, indices);
  }
}

void RowMemory::prefetchNextRow(const Point &point) {
  constexpr int64_t kLineBytes = 64;
  const std::optional<NextRow> row = findNextRow(group, plan.lane);
  Point next = point;
  next.ivs[row->rows] =
      arith::AddIOp::create(b, loc, point.ivs[row->rows], index(plan.rows));
  // Rows of open sizes may be longer than the L1 cache.
  const unsigned locality = row->bytes < 0 ? 2 : 3;
  for (const auto &[access, isWritten] : row->accesses) {
    if (isWritten && row->bytes < 0)
      continue;
    auto type = cast<MemRefType>(access.value.getType());
    const int64_t bytes =
        plan.lanes * llvm::divideCeil(type.getElementTypeBitWidth(), 8);
    for (unsigned i = 0; i < point.copies; ++i)
      if (i * bytes % kLineBytes == 0)
        memref::PrefetchOp::create(b, loc, access.value,
                                   getIndices(access, next, i), isWritten,
                                   locality, /*isDataCache=*/true);
  }
}

/// A row of `type`: one element for each point of the row's dimensions and,
/// when the lanes are rows of their own, for each lane that is worked on.
RowAccess RowMemory::makeScratch(Type type) {
  SmallVector<int64_t> sizes;
  SmallVector<Value> dynamic;
  SmallVector<AffineExpr> exprs;
  for (unsigned d = 0; d < group.getNumDims(); ++d) {
    if (!group.reduced[d])
      continue;
    exprs.push_back(b.getAffineDimExpr(d));
    sizes.push_back(group.getStaticSize(d));
    if (sizes.back() < 0) {
      sizes.back() = ShapedType::kDynamic;
      dynamic.push_back(getSize(d));
    }
  }
  if (plan.lane >= 0 && !plan.laneReduced) {
    // Positions are taken modulo what one iteration works on.
    int64_t width = plan.lanes * plan.unroll;
    exprs.push_back(b.getAffineDimExpr(plan.lane) % width);
    sizes.push_back(width);
  }
  auto memref = MemRefType::get(sizes, type);
  RowAccess access;
  access.kind = RowAccess::Memory;
  access.map = AffineMap::get(group.getNumDims(), 0, exprs, b.getContext());
  if (memref.hasStaticShape() &&
      memref.getNumElements() *
              llvm::divideCeil(type.getIntOrFloatBitWidth(), 8) <=
          kStackBytes) {
    access.value =
        memref::AllocaOp::create(b, loc, memref, b.getI64IntegerAttr(64));
  } else {
    access.value = memref::AllocOp::create(b, loc, memref, dynamic);
    buffers.push_back(access.value);
  }
  return access;
}

} // namespace sardonyx::cpu
