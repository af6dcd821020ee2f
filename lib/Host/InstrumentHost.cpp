//===- InstrumentHost.cpp - Have the host program record its steps --------===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Buffers.h"
#include "lib/Dispatch/KernelWork.h"
#include "sardonyx/Host/Passes.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"

namespace sardonyx {
#define GEN_PASS_DEF_SDXINSTRUMENTHOST
#include "sardonyx/Host/Passes.h.inc"
} // namespace sardonyx

using namespace mlir;
using namespace sardonyx;

/// The nodes that `loc` names, as their checks do.
static void collectNodes(Location loc, llvm::SetVector<StringRef> &nodes) {
  if (auto fused = dyn_cast<FusedLoc>(loc)) {
    auto text = dyn_cast_or_null<StringAttr>(fused.getMetadata());
    if (text) {
      StringRef node = text.getValue();
      node.consume_front("node ");
      nodes.insert(node);
      return;
    }
    for (Location part : fused.getLocations())
      collectNodes(part, nodes);
  } else if (auto named = dyn_cast<NameLoc>(loc)) {
    nodes.insert(named.getName());
  }
}

namespace {

struct InstrumentHostPass
    : sardonyx::impl::SDXInstrumentHostBase<InstrumentHostPass> {
  void runOnOperation() override {
    SymbolTable symbols(getOperation());
    auto main = symbols.lookup<func::FuncOp>("main");
    if (!main)
      return;
    SmallVector<Operation *> steps;
    main.walk([&](Operation *op) {
      if (isa<sdx::CallOp, sdx::RuntimeCallOp, memref::CopyOp>(op))
        steps.push_back(op);
    });
    SmallVector<Attribute> sites;
    for (Operation *step : steps) {
      OpBuilder b(step);
      Value begin = sdx::ClockOp::create(b, step->getLoc(), b.getI64Type());
      b.setInsertionPointAfter(step);
      auto call = dyn_cast<sdx::CallOp>(step);
      auto kernel = call ? symbols.lookup<func::FuncOp>(call.getCallee())
                         : func::FuncOp();
      KernelWork work = kernel ? workOf(kernel) : KernelWork();
      SmallVector<Value> args;
      if (call) {
        args.assign(call.getIns().begin(), call.getIns().end());
        llvm::append_range(args, call.getOuts());
      } else if (auto copy = dyn_cast<memref::CopyOp>(step)) {
        Value target = copy.getTarget();
        args.push_back(target);
        WorkTerm bytes = countBytes(cast<MemRefType>(target.getType()), 0);
        bytes.factor *= 2; // read and written
        work.bytes.push_back(bytes);
      }
      Value flops = compute(b, step->getLoc(), work.flops, args);
      Value bytes = compute(b, step->getLoc(), work.bytes, args);
      sdx::RecordOp::create(b, step->getLoc(), sites.size(), begin, flops,
                            bytes);
      sites.push_back(describe(step, kernel));
    }
    getOperation()->setAttr(sdx::kProfileAttr,
                            ArrayAttr::get(&getContext(), sites));
  }

private:
  const KernelWork &workOf(func::FuncOp kernel) {
    auto [it, isNew] = works.try_emplace(kernel);
    if (isNew)
      it->second = countWork(kernel);
    return it->second;
  }

  static Value compute(OpBuilder &b, Location loc, ArrayRef<WorkTerm> terms,
                       ArrayRef<Value> args) {
    int64_t known = 0;
    Value sum;
    for (const WorkTerm &term : terms) {
      if (term.sizes.empty()) {
        known += term.factor;
        continue;
      }
      Value product = arith::ConstantIndexOp::create(b, loc, term.factor);
      for (WorkTerm::Size size : term.sizes) {
        Value factor = args[size.argument];
        if (size.dim)
          factor = memref::DimOp::create(b, loc, factor, *size.dim);
        product = arith::MulIOp::create(b, loc, product, factor);
      }
      sum = sum ? Value(arith::AddIOp::create(b, loc, sum, product)) : product;
    }
    Type i64 = b.getI64Type();
    Value constant =
        arith::ConstantOp::create(b, loc, b.getI64IntegerAttr(known));
    if (!sum)
      return constant;
    return arith::AddIOp::create(
        b, loc, arith::IndexCastOp::create(b, loc, i64, sum), constant);
  }

  static Attribute describe(Operation *step, func::FuncOp kernel) {
    Builder b(step->getContext());
    llvm::SetVector<StringRef> nodes;
    collectNodes(step->getLoc(), nodes);
    std::string form = kernel ? describeForm(kernel) : "copy";
    StringRef name = kernel ? kernel.getName() : "copy";
    if (auto call = dyn_cast<sdx::RuntimeCallOp>(step)) {
      form = "runtime";
      name = call.getCallee();
    }
    return b.getDictionaryAttr(
        {b.getNamedAttr("form", b.getStringAttr(form)),
         b.getNamedAttr("kernel", b.getStringAttr(name)),
         b.getNamedAttr("nodes", b.getStrArrayAttr(nodes.getArrayRef()))});
  }

  DenseMap<Operation *, KernelWork> works;
};

} // namespace
