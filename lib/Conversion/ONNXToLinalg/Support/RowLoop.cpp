//===- RowLoop.cpp - Programs that run once for each row ------------------===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Support/RowLoop.h"

using namespace mlir;

namespace sardonyx {

Values
forEachRow(TensorBuilder &b, ValueRange results,
           function_ref<Values(TensorBuilder &, Value, ValueRange)> body) {
  OpFoldResult count = b.dim(results.front(), 0);
  SmallVector<Sizes> sizes;
  for (Value result : results)
    sizes.push_back({b.size(1), b.dim(result, 1)});
  auto rows = scf::ForallOp::create(
      b, ArrayRef<OpFoldResult>(count), results, std::nullopt,
      [&](OpBuilder &builder, Location loc, ValueRange args) {
        TensorBuilder s(loc, builder);
        Value row = args.front();
        ValueRange all = args.drop_front();
        Sizes offsets = {OpFoldResult(row), s.size(0)};
        Sizes strides = {s.size(1), s.size(1)};
        Values parts;
        for (auto [tensor, size] : llvm::zip_equal(all, sizes))
          parts.push_back(s.slice(tensor, offsets, size, {0}));
        Values changed = body(s, row, parts);
        auto end = scf::InParallelOp::create(s);
        s.setInsertionPointToStart(end.getBody());
        for (auto [part, tensor, size] : llvm::zip_equal(changed, all, sizes))
          tensor::ParallelInsertSliceOp::create(s, part, tensor, offsets, size,
                                                strides);
      });
  return Values(rows.getResults());
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

Value holdsForAny(TensorBuilder &b, Value from, Value to,
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
  return op.getResult(1);
}

Value put(TensorBuilder &b, Value value, Value tensor, ValueRange at) {
  return tensor::InsertOp::create(b, value, tensor, at);
}

} // namespace sardonyx
