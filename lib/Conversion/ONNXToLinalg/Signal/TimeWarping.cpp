//===- TimeWarping.cpp - DynamicTimeWarping -------------------------------===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Support/Checks.h"
#include "Support/Lowering.h"
#include "Support/Patterns.h"
#include "Support/RuntimeCalls.h"
#include "dialects/ONNX/ONNX.h"

using namespace mlir;

namespace sardonyx {
namespace {

LogicalResult lowerTimeWarping(Lowering<onnx::MSDynamicTimeWarpingOp> &b) {
  Value costs = b.in.getInput();
  int64_t rank = b.rank(costs);
  if (rank != 2 && rank != 3)
    return b.refuse("needs one matrix");
  if (rank == 3) {
    checkSameSize(b, b.getLoc(), b.dim(costs, 0), b.size(1),
                  "the input must be one matrix");
    costs = b.subTensor(costs, 0, b.size(0));
  }
  OpFoldResult rows = b.dim(costs, 0), columns = b.dim(costs, 1);
  // The sums of two columns, and the way that each place is come to.
  Value sums = b.empty({b.size(2), b.plus(rows, 1)}, b.getF32Type());
  Value ways = b.empty({columns, rows}, b.getI8Type());
  // A path has fewer places than rows and columns; it ends at the last.
  OpFoldResult most = b.plus(rows, columns);
  Value places = b.empty({b.size(2), most}, b.getI32Type());
  SmallVector<Value> results =
      callRuntime(b, "sdx_rt_time_warping", costs,
                  {places, b.empty({}, b.getI64Type()), sums, ways});
  OpFoldResult length = b.convert(b.extract(results[1], {}), b.getIndexType());
  return b.replace(b.slice(results[0], {b.size(0), b.minus(most, length)},
                           {b.size(2), length}));
}

} // namespace

void populateTimeWarpingPatterns(const TypeConverter &converter,
                                 RewritePatternSet &patterns) {
  addLowering<onnx::MSDynamicTimeWarpingOp, lowerTimeWarping>(patterns,
                                                              converter);
}

} // namespace sardonyx
