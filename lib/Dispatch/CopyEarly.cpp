//===- CopyEarly.cpp - Copies of what has just been computed --------------===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// What is packed or transposed right after it was computed is still in the
// cache, and later does not push out of it what a product reads beside it: an
// attention's values would come between its Softmax and the product with them.
// It is no more memory, for nothing else reads what is copied.
//
//===----------------------------------------------------------------------===//

#include "Utils.h"

#include "dialects/SDX/SDX.h"

#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "mlir/Transforms/RegionUtils.h"

using namespace mlir;
using namespace sardonyx;

/// The operation that computes `value`, a view of its result; null where other
/// operations read it as well.
static Operation *findMaker(Value value) {
  while (isReadOnce(value)) {
    Operation *maker = value.getDefiningOp();
    if (!isa_and_nonnull<tensor::ExpandShapeOp, tensor::CollapseShapeOp,
                         tensor::CastOp>(maker))
      return maker;
    value = maker->getOperand(0);
  }
  return nullptr;
}

void sardonyx::copyEarly(Operation *root) {
  SmallVector<Operation *> copies;
  root->walk([&](Operation *op) {
    auto dense = dyn_cast<sdx::DenseOpInterface>(op);
    if ((dense && dense.isPacking()) || isa<linalg::TransposeOp>(op))
      copies.push_back(op);
  });
  IRRewriter rewriter(root->getContext());
  for (Operation *op : copies) {
    Operation *maker = findMaker(op->getOperand(0));
    if (!isa_and_nonnull<DestinationStyleOpInterface>(maker) ||
        maker->getBlock() != op->getBlock())
      continue;
    // Views and sizes, of which some may be this operation's, come first.
    Operation *place = maker->getNextNode();
    while (place != op && isPure(place) &&
           !isa<DestinationStyleOpInterface>(place))
      place = place->getNextNode();
    if (place != op &&
        succeeded(moveOperationDependencies(rewriter, op, place)))
      rewriter.moveOpBefore(op, place);
  }
}
