//===- DecomposeLast.cpp - Windows with channels last as loops ------------===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Conv/DecomposeLast.h"
#include "Common/ChannelsLast.h"

#include "dialects/NV/NV.h"
#include "lib/Dispatch/Utils.h"
#include "sardonyx/Dispatch/Passes.h"

using namespace mlir;
using namespace sardonyx;

static Value toFirst(OpBuilder &b, Value tensor) {
  return createTranspose(
      b, tensor.getLoc(), tensor,
      orderFirst(cast<RankedTensorType>(tensor.getType()).getRank()));
}

/// The operation with channels before the others, as loops.
template <typename OpT> static Value decompose(OpBuilder &b, OpT first) {
  Value loops =
      decomposeToLinalg(b, cast<sdx::DenseOpInterface>(first.getOperation()));
  first.erase();
  return loops
             ? createTranspose(
                   b, loops.getLoc(), loops,
                   orderLast(cast<RankedTensorType>(loops.getType()).getRank()))
             : Value();
}

Value nv::decomposeLast(OpBuilder &b, Operation *op) {
  if (auto conv = dyn_cast<nv::ConvOp>(op))
    return decompose(
        b, sdx::ConvOp::create(b, op->getLoc(), toFirst(b, conv.getInput()),
                               toFirst(b, conv.getWeights()),
                               toFirst(b, conv.getInit()), conv.getStrides(),
                               conv.getDilations(), conv.getPadsBegin(),
                               conv.getPadsEnd(), conv.getGroup()));
  if (auto pool = dyn_cast<nv::MaxPoolOp>(op))
    return decompose(b, sdx::MaxPoolOp::create(
                            b, op->getLoc(), toFirst(b, pool.getInput()),
                            toFirst(b, pool.getInit()), pool.getKernelShape(),
                            pool.getStrides(), pool.getPadsBegin()));
  return nullptr;
}
