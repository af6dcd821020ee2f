//===- TensorScatter.cpp - Updates of caches ------------------------------===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The update of each sample is a box of its cache, or two where it wraps
// around: whole boxes are copied, by a task for each position of the dimensions
// before the axis.
//
//===----------------------------------------------------------------------===//

#include "Support/Checks.h"
#include "Support/DataMovement.h"
#include "Support/Lowering.h"
#include "Support/Patterns.h"
#include "Support/RowLoop.h"

#include "dialects/ONNX/ONNX.h"

using namespace mlir;

namespace sardonyx {
namespace {

/// What is written to one position of the dimensions before the axis: `update`
/// has the axis first.
struct CacheBox {
  Value update;
  Sizes sizes; // of the update

  /// `cache` with the positions [from, from + count) of the update written at
  /// `to`.
  Value write(TensorBuilder &b, Value cache, OpFoldResult from,
              OpFoldResult count, OpFoldResult to) const {
    Sizes source(sizes.size(), b.size(0)), box = sizes;
    Sizes target = source;
    source[0] = from;
    target[0] = to;
    box[0] = count;
    Value part = slice(b, b.getLoc(), update, source, box);
    return insertSlice(b, b.getLoc(), part, cache, target, box);
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
  Value zero = b.index(int64_t(0));
  // What a task works on: everything from the axis on.
  auto partOf = [&](TensorBuilder &s, ValueRange task, ArrayRef<Size> all) {
    Part part{Sizes(task.begin(), task.end()), Sizes(task.size(), s.size(1)),
              llvm::to_vector(llvm::seq<int64_t>(0, task.size()))};
    part.offsets.resize(all.size(), s.size(0));
    llvm::append_range(part.sizes, all.drop_front(task.size()));
    return part;
  };
  Values result = forEachTask(
      b, ArrayRef<Size>(have).take_front(*axis), cache,
      [&](TensorBuilder &s, ValueRange task, unsigned) {
        return partOf(s, task, have);
      },
      [&](TensorBuilder &s, ValueRange task, ValueRange parts) -> Values {
        Part from = partOf(s, task, sizes);
        CacheBox box{s.slice(update, from.offsets, from.sizes, from.dropped),
                     Sizes(ArrayRef<Size>(sizes).drop_front(*axis))};
        Value start = zero, first = count, next = parts.front();
        if (indices) {
          Value given = toIndex(s, s.getLoc(), s.extract(indices, task[0]));
          start = getStart(s, given, extent, count, mode == "circular");
          first = s.minimum(count, s.sub(extent, start));
        }
        next = box.write(s, next, s.size(0), first, start);
        if (indices && mode == "circular") {
          // Where nothing is left it starts inside all the same.
          Value rest = s.sub(count, first);
          Value last = s.maximum(s.sub(count, s.index(1)), zero);
          next = box.write(s, next, s.minimum(first, last), rest, s.size(0));
        }
        return {next};
      });
  return b.replace(result);
}

} // namespace

void populateTensorScatterPatterns(const TypeConverter &converter,
                                   RewritePatternSet &patterns) {
  addLowering<onnx::TensorScatterOp, lowerTensorScatter>(patterns, converter);
}

} // namespace sardonyx
