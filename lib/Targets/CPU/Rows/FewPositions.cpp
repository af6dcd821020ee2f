//===- FewPositions.cpp - Cases of transposes of few positions ------------===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Rows/FewPositions.h"
#include "Rows/AccessPattern.h"
#include "Rows/RowEmitter.h"
#include "Rows/RowMoves.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Arith/Utils/Utils.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;
using namespace sardonyx;
using namespace sardonyx::cpu;

/// Up to so many positions are a case of their own: gray images and pairs up to
/// images of four channels.
static constexpr int64_t kMostPositions = 4;

/// Has `access` know that dimension `d` of its group has `size` positions; one
/// position is no dimension of its memory. Fails where it cannot.
static LogicalResult limitAccess(OpBuilder &b, Location loc, RowAccess &access,
                                 unsigned d, int64_t size) {
  if (access.kind != RowAccess::Memory || !access.map.isFunctionOfDim(d))
    return success();
  auto type = cast<MemRefType>(access.value.getType());
  const unsigned rank = type.getRank();
  if (!type.getLayout().isIdentity() || rank < 2)
    return failure();
  SmallVector<int64_t> shape(type.getShape());
  int64_t place = -1;
  for (auto [i, expr] : llvm::enumerate(access.map.getResults())) {
    if (!expr.isFunctionOfDim(d))
      continue;
    if (place >= 0 || !access.whole[i] ||
        expr != getAffineDimExpr(d, b.getContext()))
      return failure();
    place = i;
    shape[i] = size;
  }
  auto known = MemRefType::get(shape, type.getElementType(), AffineMap(),
                               type.getMemorySpace());
  access.value = memref::CastOp::create(b, loc, known, access.value);
  if (size > 1)
    return success();
  SmallVector<ReassociationIndices> groups;
  for (int64_t i = 0; i < rank; ++i)
    if (i > 0 && (i == place || (place == 0 && i == 1)))
      groups.back().push_back(i);
    else
      groups.push_back({i});
  access.value = memref::CollapseShapeOp::create(b, loc, access.value, groups);
  access.map = access.map.dropResult(place);
  llvm::SmallBitVector whole;
  for (unsigned i = 0; i < rank; ++i)
    if (i != place)
      whole.push_back(access.whole[i]);
  access.whole = whole;
  return success();
}

/// `group` with `size` positions along dimension `d`.
static FailureOr<ReductionGroup> limitGroup(OpBuilder &b,
                                            const ReductionGroup &group,
                                            unsigned d, int64_t size) {
  ReductionGroup limited = group;
  limited.sizes[d] = b.getIndexAttr(size);
  for (RowStage &stage : limited.stages)
    for (bool isStore : {false, true})
      for (RowAccess &access : isStore ? stage.stores : stage.args)
        if (failed(limitAccess(b, group.loc, access, d, size)))
          return failure();
  return limited;
}

/// Emits the case of `size` positions along dimension `d`, in whose plan all
/// vectors lie along `lane`; fails if that has none.
static LogicalResult emitCase(OpBuilder &b, const ReductionGroup &open,
                              TargetAttr target, int64_t d, int64_t size,
                              int64_t lane) {
  FailureOr<ReductionGroup> group = limitGroup(b, open, d, size);
  if (failed(group))
    return failure();
  RowsPlanAttr plan = selectPlan(RowsFacts(*group, b.getContext(), target));
  if (plan.getLane() != lane || plan.getTransposed() != (size > 1 ? d : -1))
    return failure();
  emitRowGroup(b, *group, plan);
  return success();
}

void cpu::emitCasesOfRowGroup(OpBuilder &b, ReductionGroup &group,
                              RowsPlanAttr plan, TargetAttr target) {
  const int64_t lane = plan.getLane(), transposed = plan.getTransposed();
  OpBuilder::InsertionGuard guard(b);
  emitBroadcastCopies(b, group);
  if (transposed >= 0 && group.getStaticSize(lane) < 0 &&
      group.getStaticSize(transposed) < 0) {
    for (auto [few, many] : {std::pair(lane, transposed), {transposed, lane}}) {
      for (int64_t size = 1; size <= kMostPositions; ++size) {
        Value isCase = arith::CmpIOp::create(
            b, group.loc, arith::CmpIPredicate::eq,
            getValueOrCreateConstantIndexOp(b, group.loc, group.sizes[few]),
            arith::ConstantIndexOp::create(b, group.loc, size));
        auto branch =
            scf::IfOp::create(b, group.loc, isCase, /*withElseRegion=*/true);
        b.setInsertionPoint(branch.thenYield());
        if (succeeded(emitCase(b, group, target, few, size, many))) {
          b.setInsertionPoint(branch.elseYield());
          continue;
        }
        b.setInsertionPointAfter(branch);
        branch.erase();
      }
    }
  }
  emitRowGroup(b, group, plan);
}
