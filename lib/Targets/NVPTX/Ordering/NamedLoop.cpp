//===- NamedLoop.cpp - Loops over tasks that say what they compute --------===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Ordering/NamedLoop.h"

#include "dialects/SDX/SDX.h"

#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

using namespace mlir;
using namespace sardonyx;
using namespace sardonyx::nv;

/// The only buffer that the loop reads elements of, or null.
static Value findSource(scf::ForallOp op) {
  Value source;
  WalkResult result = op.walk([&](tensor::ExtractOp load) {
    Value tensor = load.getTensor();
    if (op->isAncestor(tensor.getParentRegion()->getParentOp()))
      return WalkResult::advance();
    if (source && source != tensor)
      return WalkResult::interrupt();
    source = tensor;
    return WalkResult::advance();
  });
  return result.wasInterrupted() || !source || !KernelBody::hasBuffer(source)
             ? Value()
             : source;
}

std::optional<NamedLoop> NamedLoop::find(func::FuncOp func,
                                         const KernelBody &body,
                                         StringRef attribute) {
  if (!func->hasAttr(sdx::kKernelAttr) || func.isDeclaration())
    return std::nullopt;
  NamedLoop loop;
  for (Operation &op : func.getBody().front()) {
    if (isa<linalg::LinalgOp, sdx::DenseOpInterface, scf::ForOp, scf::IfOp>(op))
      return std::nullopt;
    if (auto forall = dyn_cast<scf::ForallOp>(op)) {
      if (loop.op)
        return std::nullopt;
      loop.op = forall;
    }
  }
  auto words =
      loop.op ? loop.op->getAttrOfType<StringAttr>(attribute) : StringAttr();
  if (!words)
    return std::nullopt;
  words.getValue().split(loop.words, ' ');
  loop.source = findSource(loop.op);
  loop.targets.resize(loop.op->getNumResults());
  for (const KernelBody::Output &output : body.getOutputs()) {
    if (output.tensor.getDefiningOp() != loop.op)
      return std::nullopt;
    loop.targets[cast<OpResult>(output.tensor).getResultNumber()] =
        output.memref;
  }
  if (!loop.source || body.getOutputs().empty())
    return std::nullopt;
  return loop;
}
