//===- TensorScatter.cpp - Updates of caches ------------------------------===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The update of each sample is a box of its cache, or two where it wraps
// around: whole boxes are copied.
//
//===----------------------------------------------------------------------===//

#include "Support/Checks.h"
#include "Support/DataMovement.h"
#include "Support/Lowering.h"
#include "Support/Patterns.h"

#include "dialects/ONNX/ONNX.h"

using namespace mlir;

namespace sardonyx {
namespace {

/// Where updates go: along `axis`, for the sample `sample`.
struct CacheBox {
  Value update;
  int64_t axis;
  Sizes sizes; // of an update of all samples

  /// `cache` with the positions [from, from + count) of the sample's update
  /// written at `to`.
  Value write(TensorBuilder &b, Value cache, Value sample, OpFoldResult from,
              OpFoldResult count, OpFoldResult to) const {
    Sizes source(sizes.size(), b.size(0)), box = sizes;
    source[0] = sample;
    Sizes target = source;
    source[axis] = from;
    target[axis] = to;
    box[0] = b.size(1);
    box[axis] = count;
    Location loc = b.getLoc();
    Value part = slice(b, loc, update, source, box);
    return insertSlice(b, loc, part, cache, target, box);
  }
};

/// The position of a sample's first update: in [0, extent), or checked to leave
/// room for all of them.
Value getStart(TensorBuilder &b, Value given, Value extent, Value count,
               bool wraps) {
  Value zero = b.index(int64_t(0));
  if (wraps) {
    Value some = b.maximum(extent, b.index(1));
    Value rest = arith::RemSIOp::create(b, given, some);
    Value negative = b.compare(arith::CmpIPredicate::slt, rest, zero);
    return b.select(negative, b.add(rest, some), rest);
  }
  // No sum of what a run gives: it might wrap around.
  Value fits =
      b.compare(arith::CmpIPredicate::ule, given, b.sub(extent, count));
  createCheck(b, b.getLoc(), fits,
              "an update of size {0} at index {1} does not fit into a cache of "
              "size {2}",
              {count, given, extent});
  return b.select(fits, given, zero);
}

LogicalResult lowerTensorScatter(Lowering<onnx::TensorScatterOp> &b) {
  Value cache = b.in.getPastCache(), update = b.in.getUpdate();
  Value indices = b.in.getWriteIndices();
  StringRef mode = b.op.getMode();
  FailureOr<int64_t> axis = normalizeAxis(b.op.getAxis(), b.rank(cache));
  if (failed(axis) || *axis == 0 || b.rank(update) != b.rank(cache))
    return b.refuse("ranks or axis do not fit");
  if (mode != "linear" && mode != "circular")
    return b.refuseAlways("mode '" + mode + "' is not known");
  Sizes have = b.dims(cache), sizes = b.dims(update);
  for (int64_t dim = 0; dim < b.rank(cache); ++dim)
    if (dim != *axis &&
        !b.sameSize(sizes[dim], have[dim], "sizes of cache and update differ"))
      return b.refuse("sizes of cache and update differ");
  checkSizeAtMost(b, b.getLoc(), sizes[*axis], have[*axis],
                  "the update is longer than the cache");
  if (indices && (b.rank(indices) != 1 ||
                  !b.sameSize(b.dim(indices, 0), have[0],
                              "input 'write_indices' does not fit the batch")))
    return b.refuse("input 'write_indices' does not fit the batch");
  if (isEmptyBox(sizes))
    return b.replace(cache);
  Value extent = b.index(have[*axis]), count = b.index(sizes[*axis]);
  CacheBox box{update, *axis, sizes};
  Value zero = b.index(int64_t(0));
  auto loop = scf::ForOp::create(
      b, zero, b.index(have[0]), b.index(1), cache,
      [&](OpBuilder &builder, Location loc, Value sample, ValueRange state) {
        TensorBuilder s(loc, builder);
        Value start = zero, first = count, next = state[0];
        if (indices) {
          Value given = toIndex(s, loc, s.extract(indices, sample));
          start = getStart(s, given, extent, count, mode == "circular");
          first = s.minimum(count, s.sub(extent, start));
        }
        next = box.write(s, next, sample, s.size(0), first, start);
        if (indices && mode == "circular") {
          // Where nothing is left it starts inside all the same.
          Value rest = s.sub(count, first);
          Value last = s.maximum(s.sub(count, s.index(1)), zero);
          Value from = s.minimum(first, last);
          next = box.write(s, next, sample, from, rest, s.size(0));
        }
        scf::YieldOp::create(s, next);
      });
  return b.replace(loop.getResult(0));
}

} // namespace

void populateTensorScatterPatterns(const TypeConverter &converter,
                                   RewritePatternSet &patterns) {
  addLowering<onnx::TensorScatterOp, lowerTensorScatter>(patterns, converter);
}

} // namespace sardonyx
