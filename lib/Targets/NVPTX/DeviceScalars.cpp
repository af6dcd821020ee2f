//===- DeviceScalars.cpp - What a kernel reads beside its loops -----------===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The body of a kernel's function runs on the host, which has no access to the
// device's memory. What reads or writes it outside of parallel loops goes to
// loops of one iteration.
//
//===----------------------------------------------------------------------===//

#include "ThreadLoops.h"
#include "dialects/NV/NV.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Interfaces/ViewLikeInterface.h"
#include "mlir/Transforms/RegionUtils.h"

using namespace mlir;
using namespace sardonyx;

void nv::makeSequential(scf::ParallelOp loop) {
  OpBuilder b(loop);
  SmallVector<Value> positions;
  for (auto [from, to, step] :
       llvm::zip(loop.getLowerBound(), loop.getUpperBound(), loop.getStep())) {
    auto inner = scf::ForOp::create(b, loop.getLoc(), from, to, step);
    positions.push_back(inner.getInductionVar());
    b.setInsertionPointToStart(inner.getBody());
  }
  Block *body = b.getInsertionBlock();
  for (auto [from, to] : llvm::zip(loop.getInductionVars(), positions))
    from.replaceAllUsesWith(to);
  body->getOperations().splice(body->begin(), loop.getBody()->getOperations(),
                               loop.getBody()->begin(),
                               std::prev(loop.getBody()->end()));
  loop.erase();
}

/// Whether `op` is the host's whatever it works on: it makes buffers, views and
/// sizes, copies whole buffers, or is a loop of threads.
static bool isOfHost(Operation *op) {
  return isa<memref::AllocOp, memref::DeallocOp, memref::DimOp, memref::CopyOp,
             scf::ParallelOp, ViewLikeOpInterface,
             memref::ExtractStridedMetadataOp>(op) ||
         op->hasTrait<OpTrait::IsTerminator>();
}

namespace {

class DeviceScalars {
public:
  explicit DeviceScalars(func::FuncOp func) : func(func) {}

  LogicalResult run() {
    // Walks a copy: operations are moved.
    SmallVector<Operation *> ops;
    for (Operation &op : func.front())
      ops.push_back(&op);
    for (Operation *op : ops)
      if (failed(visit(op)))
        return failure();
    wrap();
    return success();
  }

private:
  LogicalResult visit(Operation *op) {
    if (isOfHost(op)) {
      wrap();
      for (Value operand : op->getOperands())
        if (ofDevice.contains(operand))
          return op->emitOpError("needs a number on the host that the device "
                                 "computes, which is not supported");
      if (auto loop = dyn_cast<scf::ParallelOp>(op))
        reload(loop.getRegion());
      return success();
    }
    bool depends = llvm::any_of(op->getOperands(), [&](Value operand) {
      return ofDevice.contains(operand);
    });
    op->walk([&](Operation *inner) {
      depends |= isa<memref::LoadOp, memref::StoreOp, memref::CopyOp>(inner);
      for (Value operand : inner->getOperands())
        depends |= ofDevice.contains(operand);
    });
    if (!depends)
      return success();
    group.push_back(op);
    for (Value result : op->getResults())
      ofDevice.insert(result);
    return success();
  }

  /// Moves the group into a loop of one iteration. What others use of it is
  /// stored.
  void wrap() {
    if (group.empty())
      return;
    OpBuilder b(group.back());
    b.setInsertionPointAfter(group.back());
    Location loc = group.front()->getLoc();
    DenseSet<Operation *> inside(group.begin(), group.end());
    SmallVector<Value> shared;
    for (Operation *op : group)
      for (Value result : op->getResults())
        if (llvm::any_of(result.getUsers(), [&](Operation *user) {
              return !inside.contains(
                  func.front().findAncestorOpInBlock(*user));
            }))
          shared.push_back(result);
    for (Value value : shared) {
      auto type = MemRefType::get({1}, value.getType(), AffineMap(), space());
      places[value] = memref::AllocOp::create(b, loc, type);
    }
    Value zero = arith::ConstantIndexOp::create(b, loc, 0);
    Value one = arith::ConstantIndexOp::create(b, loc, 1);
    auto loop = scf::ParallelOp::create(b, loc, zero, one, one);
    nv::nameStep(loop, "scalars");
    for (Operation *op : group)
      op->moveBefore(loop.getBody()->getTerminator());
    reload(loop.getRegion());
    b.setInsertionPoint(loop.getBody()->getTerminator());
    for (Value value : shared)
      memref::StoreOp::create(b, loc, value, places[value], zero);
    SmallVector<scf::ParallelOp> inner;
    loop.getBody()->walk([&](scf::ParallelOp op) { inner.push_back(op); });
    for (scf::ParallelOp op : inner)
      nv::makeSequential(op);
    for (Value value : shared) {
      OpBuilder end(func.front().getTerminator());
      memref::DeallocOp::create(end, loc, places[value]);
    }
    group.clear();
  }

  /// Loads in a loop what it uses of other loops of one iteration.
  void reload(Region &region) {
    SetVector<Value> used;
    region.walk([&](Operation *op) {
      for (Value operand : op->getOperands())
        if (places.contains(operand) &&
            !region.isAncestor(operand.getParentRegion()))
          used.insert(operand);
    });
    auto b = OpBuilder::atBlockBegin(&region.front());
    for (Value value : used) {
      Value zero = arith::ConstantIndexOp::create(b, value.getLoc(), 0);
      Value loaded =
          memref::LoadOp::create(b, value.getLoc(), places[value], zero);
      replaceAllUsesInRegionWith(value, loaded, region);
    }
  }

  Attribute space() {
    return gpu::AddressSpaceAttr::get(func.getContext(),
                                      gpu::AddressSpace::Global);
  }

  func::FuncOp func;
  /// Operations that go to the next loop.
  SmallVector<Operation *> group;
  DenseSet<Value> ofDevice;
  /// Where a value of a loop of one iteration lies.
  DenseMap<Value, Value> places;
};

} // namespace

LogicalResult nv::wrapDeviceScalars(func::FuncOp func) {
  return DeviceScalars(func).run();
}
