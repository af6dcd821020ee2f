//===- AccessPattern.cpp - How accesses walk memory along lanes -----------===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Rows/AccessPattern.h"

using namespace mlir;
using namespace sardonyx;
using namespace sardonyx::cpu;

bool cpu::getLaneCoefficients(const RowAccess &access, int64_t lane,
                              SmallVectorImpl<int64_t> &coefficients) {
  MLIRContext *context = access.map.getContext();
  unsigned numDims = access.map.getNumDims();
  AffineExpr dim = getAffineDimExpr(lane, context);
  for (AffineExpr expr : access.map.getResults()) {
    AffineExpr step =
        simplifyAffineExpr(expr.replace(dim, dim + 1) - expr, numDims, 0);
    auto constant = dyn_cast<AffineConstantExpr>(step);
    if (!constant)
      return false;
    coefficients.push_back(constant.getValue());
  }
  return true;
}

AccessPattern cpu::getAccessPattern(const RowAccess &access, int64_t lane) {
  if (access.kind != RowAccess::Memory)
    return AccessPattern::Uniform;
  if (!access.map.isFunctionOfDim(lane))
    return AccessPattern::Uniform;
  SmallVector<int64_t> coefficients;
  if (!getLaneCoefficients(access, lane, coefficients))
    return AccessPattern::Irregular;
  auto type = cast<MemRefType>(access.value.getType());
  SmallVector<int64_t> strides;
  int64_t offset;
  if (failed(type.getStridesAndOffset(strides, offset)) || strides.back() != 1)
    return AccessPattern::Irregular;
  bool last = true;
  for (auto [c, stride] :
       llvm::zip(ArrayRef(coefficients).drop_back(), strides))
    if (c != 0) {
      last = false;
      if (ShapedType::isDynamic(stride) && !type.getLayout().isIdentity())
        return AccessPattern::Irregular;
    }
  if (last && coefficients.back() == 0)
    return AccessPattern::Uniform;
  return last && coefficients.back() == 1 ? AccessPattern::Contiguous
                                          : AccessPattern::Strided;
}

/// The last dimension of `access`, all of the positions of which lie between
/// those of neighbours along `lane`; -1 if it is none of a few.
static int64_t findInterleaved(ReductionGroup &group, const RowAccess &access,
                               int64_t lane) {
  constexpr int64_t kMost = 8;
  auto type = cast<MemRefType>(access.value.getType());
  ArrayRef<AffineExpr> exprs = access.map.getResults();
  if (exprs.size() < 2 || !type.getLayout().isIdentity() ||
      exprs[exprs.size() - 2] != getAffineDimExpr(lane, type.getContext()))
    return -1;
  auto last = dyn_cast<AffineDimExpr>(exprs.back());
  const int64_t size = type.getShape().back();
  if (!last || last.getPosition() == lane || size < 2 || size > kMost ||
      group.getStaticSize(last.getPosition()) != size)
    return -1;
  for (AffineExpr expr : exprs.drop_back(2))
    if (expr.isFunctionOfDim(lane) || expr.isFunctionOfDim(last.getPosition()))
      return -1;
  return last.getPosition();
}

/// The dimension of all accesses that stride along `lane`, of stores only or of
/// loads only; -1 if they have no such in common.
static int64_t findInterleaved(ReductionGroup &group, int64_t lane,
                               bool ofStores) {
  if (group.reduced.any())
    return -1;
  int64_t found = -1;
  for (RowStage &stage : group.stages)
    for (bool isStore : {false, true})
      for (RowAccess &access : isStore ? stage.stores : stage.args) {
        const AccessPattern walk = getAccessPattern(access, lane);
        const bool isMemory = access.kind == RowAccess::Memory;
        if (walk == AccessPattern::Contiguous && !(isStore && ofStores))
          continue;
        if (walk == AccessPattern::Uniform && !(isStore && isMemory))
          continue;
        const int64_t dim = isMemory && isStore == ofStores
                                ? findInterleaved(group, access, lane)
                                : -1;
        if (dim < 0 || (found >= 0 && found != dim))
          return -1;
        found = dim;
      }
  return found;
}

int64_t cpu::findInterleavedStores(ReductionGroup &group, int64_t lane) {
  return findInterleaved(group, lane, /*ofStores=*/true);
}

int64_t cpu::findInterleavedLoads(ReductionGroup &group, int64_t lane) {
  return findInterleaved(group, lane, /*ofStores=*/false);
}

std::optional<NextRow> cpu::findNextRow(const ReductionGroup &group,
                                        int64_t lane) {
  int64_t rows = -1, elements = 1;
  for (unsigned d = 0; d < group.getNumDims(); ++d) {
    const int64_t size = group.getStaticSize(d);
    if (!group.reduced[d])
      rows = d;
    else
      elements = elements < 0 || size < 0 ? -1 : elements * size;
  }
  if (rows < 0 || lane < 0 || !group.reduced[lane])
    return std::nullopt;
  NextRow next{static_cast<unsigned>(rows), {}, 0};
  auto add = [&](const RowAccess &access, bool isWritten) {
    if (access.kind != RowAccess::Memory || !access.map.isFunctionOfDim(rows) ||
        getAccessPattern(access, lane) != AccessPattern::Contiguous)
      return;
    for (auto &[known, wasWritten] : next.accesses)
      if (known.value == access.value && known.map == access.map) {
        wasWritten |= isWritten;
        return;
      }
    next.accesses.emplace_back(access, isWritten);
    const unsigned bits =
        cast<MemRefType>(access.value.getType()).getElementTypeBitWidth();
    next.bytes =
        elements < 0 ? -1 : next.bytes + elements * llvm::divideCeil(bits, 8);
  };
  for (const RowStage &stage : group.stages) {
    for (const RowAccess &arg : stage.args)
      add(arg, false);
    for (const RowAccess &store : stage.stores)
      add(store, true);
  }
  if (next.accesses.empty())
    return std::nullopt;
  return next;
}

int64_t cpu::getInterleave(const RowAccess &access, int64_t lane) {
  SmallVector<int64_t> coefficients;
  if (getAccessPattern(access, lane) != AccessPattern::Strided ||
      !getLaneCoefficients(access, lane, coefficients))
    return 0;
  for (int64_t c : ArrayRef(coefficients).drop_back())
    if (c != 0)
      return 0;
  return coefficients.back() >= 2 && coefficients.back() <= 4
             ? coefficients.back()
             : 0;
}
