//===- RowLoop.cpp - Programs that run once for each row ------------------===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Support/RowLoop.h"

#include "dialects/SDX/SDX.h"
#include "dialects/SDX/TaskLoops.h"

#include <functional>

using namespace mlir;

namespace sardonyx {

/// Trips of a loop after which a run may be ended.
static constexpr int64_t kBlockTrips = 1 << 14;
/// Trips of inner loops that are enough to ask for the run's end in each trip
/// of the outermost one.
static constexpr int64_t kMinInnerTrips = 256;

Values forEachTask(
    TensorBuilder &b, ArrayRef<OpFoldResult> counts, ValueRange results,
    function_ref<Part(TensorBuilder &, ValueRange, unsigned)> partOf,
    function_ref<Values(TensorBuilder &, ValueRange, ValueRange)> body) {
  // No part of what has no elements can be written.
  auto isEmpty = [](Value tensor) {
    return llvm::is_contained(rankedType(tensor).getShape(), 0);
  };
  if (!results.empty() && llvm::all_of(results, isEmpty))
    return Values(results);
  SmallVector<Attribute> mapping(counts.size(),
                                 sdx::TaskAttr::get(b.getContext()));
  auto tasks = scf::ForallOp::create(
      b, counts, results, b.getArrayAttr(mapping),
      [&](OpBuilder &builder, Location loc, ValueRange args) {
        TensorBuilder s(loc, builder);
        ValueRange task = args.take_front(counts.size());
        ValueRange all = args.drop_front(counts.size());
        SmallVector<Part> places;
        Values parts;
        for (auto [i, tensor] : llvm::enumerate(all)) {
          Part part = partOf(s, task, i);
          parts.push_back(
              s.slice(tensor, part.offsets, part.sizes, part.dropped));
          places.push_back(std::move(part));
        }
        Values changed = body(s, task, parts);
        auto end = scf::InParallelOp::create(s);
        s.setInsertionPointToStart(end.getBody());
        for (auto [part, tensor, place] : llvm::zip_equal(changed, all, places))
          if (!isEmpty(tensor))
            tensor::ParallelInsertSliceOp::create(
                s, part, tensor, place.offsets, place.sizes,
                Sizes(place.sizes.size(), s.size(1)));
      });
  return Values(tasks.getResults());
}

Values
forEachRow(TensorBuilder &b, ValueRange results,
           function_ref<Values(TensorBuilder &, Value, ValueRange)> body) {
  SmallVector<Sizes> sizes;
  for (Value result : results) {
    sizes.push_back(b.dims(result));
    sizes.back().front() = b.size(1);
  }
  auto partOf = [&](TensorBuilder &s, ValueRange task, unsigned i) {
    Part part{Sizes(sizes[i].size(), s.size(0)), sizes[i], {0}};
    part.offsets.front() = task.front();
    return part;
  };
  return forEachTask(b, b.dim(results.front(), 0), results, partOf,
                     [&](TensorBuilder &s, ValueRange task, ValueRange rows) {
                       return body(s, task.front(), rows);
                     });
}

Values runOnce(TensorBuilder &b, ValueRange results,
               function_ref<Values(TensorBuilder &, ValueRange)> body) {
  Values rows;
  for (Value result : results)
    rows.push_back(asOneRow(b, result));
  rows = forEachRow(b, rows, [&](TensorBuilder &s, Value, ValueRange parts) {
    return body(s, parts);
  });
  for (Value &row : rows)
    row = onlyRow(b, row);
  return rows;
}

/// The groups of dimensions of a reshape that adds or drops the first of `rank`
/// + 1.
static SmallVector<ReassociationIndices> groupsWithFirst(int64_t rank) {
  SmallVector<ReassociationIndices> groups;
  if (rank > 0)
    groups.push_back({0, 1});
  for (int64_t dim = 1; dim < rank; ++dim)
    groups.push_back({dim + 1});
  return groups;
}

Value asOneRow(TensorBuilder &b, Value tensor) {
  Sizes sizes = b.dims(tensor);
  int64_t rank = sizes.size();
  sizes.insert(sizes.begin(), b.size(1));
  return b.expand(tensor, groupsWithFirst(rank), sizes);
}

Value onlyRow(TensorBuilder &b, Value tensor) {
  return b.collapse(tensor, groupsWithFirst(rankedType(tensor).getRank() - 1));
}

Ranges::Ranges(TensorBuilder &b, OpFoldResult extent, int64_t least,
               OpFoldResult rows)
    : extent(extent), number(b.size(1)), width(extent) {
  std::optional<int64_t> known = getConstantIntValue(extent);
  if (known && *known < 2 * least)
    return;
  OpFoldResult threads = sdx::ThreadCountOp::create(b).getResult();
  Value wanted = b.index(b.ceilDiv(threads, b.atLeast(rows, 1)));
  Value most = b.index(b.floorDiv(extent, b.size(least)));
  Value count = b.maximum(b.minimum(wanted, most), b.index(1));
  width = b.times(b.ceilDiv(b.ceilDiv(extent, count), b.size(least)), least);
  // Of a multiple fewer may be enough.
  number = b.atLeast(b.ceilDiv(extent, b.atLeast(width, 1)), 1);
}

Value Ranges::begin(TensorBuilder &b, Value index) const {
  if (getConstantIntValue(number) == 1)
    return b.index(int64_t(0));
  return b.mul(index, b.index(width));
}

OpFoldResult Ranges::size(TensorBuilder &b, Value begin) const {
  if (getConstantIntValue(number) == 1)
    return extent;
  return b.minimum(b.index(width), b.sub(b.index(extent), begin));
}

Values loop(TensorBuilder &b, Value from, Value to, ValueRange state,
            function_ref<Values(TensorBuilder &, Value, ValueRange)> body) {
  auto op = scf::ForOp::create(
      b, from, to, b.index(1), state,
      [&](OpBuilder &builder, Location loc, Value i, ValueRange state) {
        TensorBuilder s(loc, builder);
        scf::YieldOp::create(s, body(s, i, state));
      });
  return Values(op.getResults());
}

/// A loop whose trips are cut into blocks of kBlockTrips.
static Values
loopInBlocks(TensorBuilder &b, Value to, ValueRange state,
             function_ref<Values(TensorBuilder &, Value, ValueRange)> body) {
  Value block = b.index(kBlockTrips);
  auto op = scf::ForOp::create(
      b, b.index(int64_t(0)), to, block, state,
      [&](OpBuilder &builder, Location loc, Value from, ValueRange state) {
        TensorBuilder s(loc, builder);
        Value end = s.minimum(s.add(from, block), to);
        scf::YieldOp::create(s, loop(s, from, end, state, body));
      });
  return Values(op.getResults());
}

Values
nest(TensorBuilder &b, ArrayRef<OpFoldResult> counts, ValueRange state,
     function_ref<Values(TensorBuilder &, ValueRange, ValueRange)> body) {
  if (counts.empty())
    return body(b, {}, state);
  int64_t inner = 1;
  for (OpFoldResult count : counts.drop_front())
    inner *= std::min(getConstantIntValue(count).value_or(kMinInnerTrips),
                      kMinInnerTrips);
  std::optional<int64_t> outer = getConstantIntValue(counts.front());
  bool inBlocks =
      inner < kMinInnerTrips && (!outer || *outer > 4 * kBlockTrips);
  Values at;
  std::function<Values(TensorBuilder &, ValueRange)> enter =
      [&](TensorBuilder &s, ValueRange state) -> Values {
    if (at.size() == counts.size())
      return body(s, at, state);
    auto trip = [&](TensorBuilder &t, Value i, ValueRange state) {
      at.push_back(i);
      Values next = enter(t, state);
      at.pop_back();
      return next;
    };
    Value to = s.index(counts[at.size()]);
    if (inBlocks && at.empty())
      return loopInBlocks(s, to, state, trip);
    return loop(s, s.index(int64_t(0)), to, state, trip);
  };
  return enter(b, state);
}

Values when(TensorBuilder &b, Value condition, ValueRange otherwise,
            function_ref<Values(TensorBuilder &)> then) {
  auto op = scf::IfOp::create(
      b, condition,
      [&](OpBuilder &builder, Location loc) {
        TensorBuilder s(loc, builder);
        scf::YieldOp::create(s, then(s));
      },
      [&](OpBuilder &builder, Location loc) {
        scf::YieldOp::create(builder, loc, otherwise);
      });
  return Values(op.getResults());
}

Values findFirst(TensorBuilder &b, Value from, Value to,
                 function_ref<Value(TensorBuilder &, Value)> test) {
  Value no = arith::ConstantOp::create(b, b.getBoolAttr(false));
  Value yes = arith::ConstantOp::create(b, b.getBoolAttr(true));
  Type types[] = {b.getIndexType(), b.getI1Type()};
  auto op = scf::WhileOp::create(
      b, types, ValueRange{from, no},
      [&](OpBuilder &builder, Location loc, ValueRange state) {
        TensorBuilder s(loc, builder);
        Value more = s.compare(arith::CmpIPredicate::slt, state[0], to);
        Value open = arith::XOrIOp::create(s, state[1], yes);
        Value goOn = arith::AndIOp::create(s, more, open);
        scf::ConditionOp::create(s, goOn, state);
      },
      [&](OpBuilder &builder, Location loc, ValueRange state) {
        TensorBuilder s(loc, builder);
        Value found = test(s, state[0]);
        scf::YieldOp::create(s, ValueRange{s.add(state[0], s.index(1)), found});
      });
  op->setAttr(sdx::kAnyAttr, b.getUnitAttr());
  return Values(op.getResults());
}

Value holdsForAny(TensorBuilder &b, Value from, Value to,
                  function_ref<Value(TensorBuilder &, Value)> test) {
  return findFirst(b, from, to, test)[1];
}

Value put(TensorBuilder &b, Value value, Value tensor, ValueRange at) {
  return tensor::InsertOp::create(b, value, tensor, at);
}

} // namespace sardonyx
