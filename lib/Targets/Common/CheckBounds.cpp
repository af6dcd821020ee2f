//===- CheckBounds.cpp - Loads and stores that look before they leap ------===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A failed check inside of a parallel loop does not end the loop, so what was
// to be accessed is skipped as well: a load gives zeros.
//
//===----------------------------------------------------------------------===//

#include "Common/IndexMath.h"
#include "Common/MemoryAccess.h"
#include "dialects/SDX/SDX.h"
#include "sardonyx/Targets/Common/Passes.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "llvm/ADT/TypeSwitch.h"

namespace sardonyx {
#define GEN_PASS_DEF_SDXCHECKBOUNDS
#include "sardonyx/Targets/Common/Passes.h.inc"
} // namespace sardonyx

using namespace mlir;
using namespace sardonyx;

namespace {

/// Builds what must hold before an operation may run.
class Conditions {
public:
  explicit Conditions(ImplicitLocOpBuilder &b) : b(b), math(b) {}

  /// Whether all lanes that `access` touches lie in its memref.
  Value ofAccess(const MemoryAccess &access) {
    if (access.offsets)
      return ofLanes(access, getPlaces(access), getElements(access.memref));
    Value outer;
    for (auto [d, index] : llvm::enumerate(access.indices)) {
      bool isLanes = static_cast<int64_t>(d) == access.laneDim;
      if (access.mask && static_cast<int64_t>(d) >= access.laneDim)
        continue;
      Value size = math.dim(access.memref, d);
      outer = both(outer, isBelow(index, size));
      if (isLanes && access.lanes > 1)
        outer = both(outer, isBelow(math.add(index, access.lanes - 1), size));
    }
    if (!access.mask)
      return outer;
    // The dimensions after it have size 1: a first lane outside of one that is
    // masked off is counted along all of them.
    Value first = access.indices[access.laneDim];
    for (Value index : access.indices.drop_front(access.laneDim + 1))
      first = math.add(first, index);
    Value lanes = ofLanes(access, spread(access, first),
                          math.dim(access.memref, access.laneDim));
    if (!outer)
      return lanes;
    Value any =
        vector::ReductionOp::create(b, vector::CombiningKind::OR, access.mask);
    Value idle = arith::XOrIOp::create(b, any, isTrue());
    return both(lanes, arith::OrIOp::create(b, outer, idle));
  }

  /// Whether the elements that `op` names lie in `source`.
  Value ofView(Value source, ArrayRef<OpFoldResult> offsets,
               ArrayRef<OpFoldResult> sizes, ArrayRef<OpFoldResult> strides) {
    Value holds;
    for (int64_t d = 0, e = offsets.size(); d < e; ++d) {
      Value size = toValue(sizes[d]);
      Value steps =
          math.mul(math.sub(size, math.constant(1)), toValue(strides[d]));
      Value last = math.add(toValue(offsets[d]), steps);
      Value empty = arith::CmpIOp::create(b, arith::CmpIPredicate::eq, size,
                                          math.constant(0));
      Value inside = both(isBelow(toValue(offsets[d]), math.dim(source, d)),
                          isBelow(last, math.dim(source, d)));
      inside = both(inside, arith::CmpIOp::create(b, arith::CmpIPredicate::sge,
                                                  size, math.constant(0)));
      holds = both(holds, arith::OrIOp::create(b, empty, inside));
    }
    return holds;
  }

  /// Whether the sizes of `value` are those that `type` states.
  Value ofSizes(Value value, MemRefType type) {
    Value holds;
    auto from = cast<MemRefType>(value.getType());
    for (int64_t d = 0; d < type.getRank(); ++d)
      if (from.isDynamicDim(d) && !type.isDynamicDim(d))
        holds = both(holds, isEqual(math.dim(value, d),
                                    math.constant(type.getDimSize(d))));
    return holds;
  }

  Value ofEqualSizes(Value x, Value y) {
    Value holds;
    for (int64_t d = 0; d < cast<MemRefType>(x.getType()).getRank(); ++d)
      holds = both(holds, isEqual(math.dim(x, d), math.dim(y, d)));
    return holds;
  }

  /// Whether an expansion has as many elements as what it expands.
  Value ofExpansion(memref::ExpandShapeOp op) {
    SmallVector<OpFoldResult> sizes = op.getMixedOutputShape();
    Value holds;
    for (auto [d, dims] : llvm::enumerate(op.getReassociationIndices())) {
      Value product = math.constant(1);
      for (int64_t dim : dims)
        product = math.mul(product, toValue(sizes[dim]));
      holds = both(holds, isEqual(math.dim(op.getSrc(), d), product));
    }
    return holds;
  }

private:
  Value toValue(OpFoldResult value) {
    return getValueOrCreateConstantIndexOp(b, b.getLoc(), value);
  }
  Value isTrue() { return arith::ConstantIntOp::create(b, 1, 1); }
  Value both(Value x, Value y) {
    if (!x || !y)
      return x ? x : y;
    return arith::AndIOp::create(b, x, y);
  }
  /// 0 <= index < size: a negative index is a huge one.
  Value isBelow(Value index, Value size) {
    return arith::CmpIOp::create(b, arith::CmpIPredicate::ult, index, size);
  }
  Value isEqual(Value x, Value y) {
    return arith::CmpIOp::create(b, arith::CmpIPredicate::eq, x, y);
  }

  VectorType laneType(const MemoryAccess &access) {
    return VectorType::get(access.lanes, b.getIndexType());
  }
  /// The positions of lanes that lie side by side.
  Value spread(const MemoryAccess &access, Value first) {
    VectorType type = laneType(access);
    return arith::AddIOp::create(b, vector::BroadcastOp::create(b, type, first),
                                 vector::StepOp::create(b, type));
  }

  /// The distance of dimension `d`'s elements in memory.
  SmallVector<Value> getStrides(Value memref) {
    auto type = cast<MemRefType>(memref.getType());
    SmallVector<Value> strides(type.getRank());
    if (type.getLayout().isIdentity()) {
      Value stride = math.constant(1);
      for (int64_t d = type.getRank() - 1; d >= 0; --d) {
        strides[d] = stride;
        stride = math.mul(stride, math.dim(memref, d));
      }
      return strides;
    }
    auto metadata = memref::ExtractStridedMetadataOp::create(b, memref);
    return llvm::to_vector_of<Value>(metadata.getStrides());
  }
  /// One past the last element's place, from the memref's first element on.
  Value getElements(Value memref) {
    Value last = math.constant(1);
    for (auto [d, stride] : llvm::enumerate(getStrides(memref)))
      last = math.add(
          last,
          math.mul(math.sub(math.dim(memref, d), math.constant(1)), stride));
    return last;
  }
  /// The places of a gather's lanes, counted as `getElements` does.
  Value getPlaces(const MemoryAccess &access) {
    Value first = math.constant(0);
    for (auto [index, stride] :
         llvm::zip(access.indices, getStrides(access.memref)))
      first = math.add(first, math.mul(index, stride));
    VectorType type = laneType(access);
    Value offsets = access.offsets;
    if (!cast<VectorType>(offsets.getType()).getElementType().isIndex())
      offsets = arith::IndexCastOp::create(b, type, offsets);
    return arith::AddIOp::create(b, vector::BroadcastOp::create(b, type, first),
                                 offsets);
  }
  /// Whether `places` are below `end` in all lanes of the mask.
  Value ofLanes(const MemoryAccess &access, Value places, Value end) {
    Value ends = vector::BroadcastOp::create(b, laneType(access), end);
    Value outside =
        arith::CmpIOp::create(b, arith::CmpIPredicate::uge, places, ends);
    if (access.mask)
      outside = arith::AndIOp::create(b, outside, access.mask);
    Value any =
        vector::ReductionOp::create(b, vector::CombiningKind::OR, outside);
    return arith::XOrIOp::create(b, any, isTrue());
  }

  ImplicitLocOpBuilder &b;
  IndexMath math;
};

struct CheckBoundsPass : sardonyx::impl::SDXCheckBoundsBase<CheckBoundsPass> {
  void runOnOperation() override {
    if (getOperation().isExternal())
      return;
    SmallVector<Operation *> ops;
    getOperation().walk([&](Operation *op) { ops.push_back(op); });
    for (Operation *op : ops)
      visit(op);
  }

private:
  void visit(Operation *op) {
    ImplicitLocOpBuilder b(op->getLoc(), op);
    Conditions conditions(b);
    if (auto access = MemoryAccess::get(op)) {
      if (Value holds = conditions.ofAccess(*access))
        guard(b, op, holds, access->isStore ? "writes" : "reads");
      return;
    }
    llvm::TypeSwitch<Operation *>(op)
        .Case([&](memref::SubViewOp view) {
          check(b, op,
                conditions.ofView(view.getSource(), view.getMixedOffsets(),
                                  view.getMixedSizes(), view.getMixedStrides()),
                "takes a part");
        })
        .Case([&](memref::ExpandShapeOp view) {
          check(b, op, conditions.ofExpansion(view), "takes a view");
        })
        .Case([&](memref::CastOp cast) {
          auto type = dyn_cast<MemRefType>(cast.getType());
          if (type && isa<MemRefType>(cast.getSource().getType()))
            check(b, op, conditions.ofSizes(cast.getSource(), type),
                  "takes a view");
        })
        .Case([&](memref::CopyOp copy) {
          if (isa<MemRefType>(copy.getSource().getType()) &&
              isa<MemRefType>(copy.getTarget().getType()))
            check(b, op,
                  conditions.ofEqualSizes(copy.getSource(), copy.getTarget()),
                  "copies");
        });
  }

  /// "node 'conv1' reads outside of a buffer of 2x?xf32 (in k3_conv)".
  std::string describe(Operation *op, StringRef deed, Value memref) {
    std::string text = describeNode(op);
    llvm::raw_string_ostream out(text);
    out << (text.empty() ? "code" : ":") << " " << deed << " outside of a ";
    if (auto type =
            dyn_cast_or_null<MemRefType>(memref ? memref.getType() : Type())) {
      out << "buffer of ";
      for (int64_t size : type.getShape())
        if (ShapedType::isDynamic(size))
          out << "?x";
        else
          out << size << "x";
      out << type.getElementType();
    } else {
      out << "buffer";
    }
    out << " (bounds check in '" << getOperation().getName() << "')";
    return text;
  }

  void check(ImplicitLocOpBuilder &b, Operation *op, Value holds,
             StringRef deed) {
    if (holds)
      sdx::CheckOp::create(
          b, holds, b.getStringAttr(describe(op, deed, op->getOperand(0))));
  }

  /// `op` runs only if `holds`.
  void guard(ImplicitLocOpBuilder &b, Operation *op, Value holds,
             StringRef deed) {
    sdx::CheckOp::create(
        b, holds,
        b.getStringAttr(describe(op, deed, MemoryAccess::get(op)->memref)));
    auto branch = scf::IfOp::create(b, op->getResultTypes(), holds,
                                    /*addThenBlock=*/true,
                                    /*addElseBlock=*/op->getNumResults() > 0);
    op->moveBefore(branch.thenBlock(), branch.thenBlock()->end());
    if (op->getNumResults() == 0) {
      b.setInsertionPointToEnd(branch.thenBlock());
      scf::YieldOp::create(b);
      return;
    }
    op->replaceAllUsesWith(branch.getResults());
    b.setInsertionPointToEnd(branch.thenBlock());
    scf::YieldOp::create(b, op->getResults());
    b.setInsertionPointToEnd(branch.elseBlock());
    SmallVector<Value> zeros;
    for (Type type : op->getResultTypes())
      zeros.push_back(arith::ConstantOp::create(b, b.getZeroAttr(type)));
    scf::YieldOp::create(b, zeros);
  }
};

} // namespace
