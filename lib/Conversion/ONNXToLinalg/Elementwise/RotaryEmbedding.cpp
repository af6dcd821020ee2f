//===- RotaryEmbedding.cpp - RotaryEmbedding ------------------------------===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Support/Lowering.h"
#include "Support/Patterns.h"
#include "dialects/ONNX/ONNX.h"

using namespace mlir;

namespace sardonyx {
namespace {

/// Where an element of a rotated head finds its angle and its partner.
struct Rotation {
  Value angle, partner, isFirst;
};

/// For position `d` of a head of which `size` elements are rotated.
Rotation createRotation(TensorBuilder &s, Value d, int64_t size,
                        bool interleaved) {
  Value one = s.index(1), two = s.index(2), half = s.index(size / 2);
  if (interleaved) {
    Value rest = arith::RemUIOp::create(s, d, two);
    Value isFirst =
        s.compare(arith::CmpIPredicate::eq, rest, s.index(int64_t(0)));
    return {arith::DivUIOp::create(s, d, two),
            s.select(isFirst, s.add(d, one), s.sub(d, one)), isFirst};
  }
  Value isFirst = s.compare(arith::CmpIPredicate::ult, d, half);
  return {s.select(isFirst, d, s.sub(d, half)),
          s.select(isFirst, s.add(d, half), s.sub(d, half)), isFirst};
}

LogicalResult checkTables(TensorBuilder &b, Value ids, ArrayRef<Value> tables,
                          OpFoldResult batch, OpFoldResult sequence,
                          int64_t angles) {
  StringRef message = "a cache does not fit the input";
  auto fits = [&](Value value, int64_t dim, OpFoldResult size) {
    return static_cast<bool>(b.sameSize(b.dim(value, dim), size, message));
  };
  if (ids && (!fits(ids, 0, batch) || !fits(ids, 1, sequence)))
    return failure();
  for (Value table : tables) {
    if (!fits(table, rankedType(table).getRank() - 1, b.size(angles)))
      return failure();
    if (!ids && (!fits(table, 0, batch) || !fits(table, 1, sequence)))
      return failure();
  }
  return success(!ids || fits(tables[1], 0, b.dim(tables[0], 0)));
}

/// The leading indices of the angles' row. An id outside of the table reads
/// its first or last row, never other memory.
SmallVector<Value> getTableRow(TensorBuilder &s, Value ids, Value table,
                               Value batch, Value position) {
  if (!ids)
    return {batch, position};
  Value id = s.convert(s.extract(ids, {batch, position}), s.getIndexType());
  Value last = s.index(s.plus(s.dim(table, 0), -1));
  return {s.maximum(s.minimum(id, last), s.index(int64_t(0)))};
}

/// The tables of angles, and which elements of a head they turn.
struct RotaryTables {
  Value ids, cos, sin;
  int64_t rotated;
  bool interleaved;
};

/// `x`, the element of `input` [.., .., .., head size] at `at`, turned by its
/// angle.
Value rotate(TensorBuilder &s, Value input, Type element, Value x,
             SmallVector<Value> at, int64_t sequenceDim,
             const RotaryTables &tables) {
  Location loc = s.getLoc();
  Value d = at[3];
  Value isRotated =
      s.compare(arith::CmpIPredicate::ult, d, s.index(tables.rotated));
  // What is not rotated reads position 0 and drops it.
  Value inside = s.select(isRotated, d, s.index(int64_t(0)));
  Rotation rotation =
      createRotation(s, inside, tables.rotated, tables.interleaved);
  SmallVector<Value> row =
      getTableRow(s, tables.ids, tables.cos, at[0], at[sequenceDim]);
  row.push_back(rotation.angle);
  Value c = loadScalar(s, loc, s.extract(tables.cos, row), element);
  Value angle = loadScalar(s, loc, s.extract(tables.sin, row), element);
  at[3] = rotation.partner;
  Value partner = loadScalar(s, loc, s.extract(input, at), element);
  Value turn = s.mul(angle, partner);
  Value value = s.mul(c, x);
  value = s.select(rotation.isFirst, s.sub(value, turn), s.add(value, turn));
  return s.select(isRotated, value, x);
}

/// The tables of an op whose ranks fit.
FailureOr<RotaryTables> getTables(Lowering<onnx::RotaryEmbeddingOp> &b) {
  RotaryTables tables{b.in.getPositionIds(), b.in.getCosCache(),
                      b.in.getSinCache(), b.op.getRotaryEmbeddingDim(),
                      b.op.getInterleaved() != 0};
  int64_t rank = tables.ids ? 2 : 3;
  if (b.rank(tables.cos) != rank || b.rank(tables.sin) != rank ||
      (tables.ids && b.rank(tables.ids) != 2))
    return b.refuse("a cache has the wrong rank");
  return tables;
}

LogicalResult lowerRotaryEmbedding(Lowering<onnx::RotaryEmbeddingOp> &b) {
  Value input = b.in.getX();
  Type element = getOnnxElementType(b.op.getX());
  int64_t rank = b.rank(input);
  int64_t numHeads = b.op.getNumHeads().value_or(0);
  if (!isa<FloatType>(element) || (rank != 4 && (rank != 3 || numHeads < 1)))
    return b.refuse("X must be [N,H,S,D], or [N,S,H*D] with num_heads");
  FailureOr<RotaryTables> tables = getTables(b);
  if (failed(tables))
    return failure();

  // Loops run over the input's own order of dimensions.
  bool headsFirst = rank == 4;
  int64_t sequenceDim = headsFirst ? 2 : 1;
  Sizes full = b.dims(input), sizes = full;
  SmallVector<ReassociationIndices> groups{{0}, {1}, {2, 3}};
  if (!headsFirst) {
    sizes.pop_back();
    sizes.push_back(b.size(numHeads));
    sizes.push_back(b.floorDiv(full[2], b.size(numHeads)));
    if (!b.sameSize(b.times(sizes[3], numHeads), full[2],
                    "the heads do not divide the input"))
      return b.refuse("num_heads does not divide X");
    input = b.expand(input, groups, sizes);
  }
  std::optional<int64_t> headSize = getStaticSize(sizes[3]);
  int64_t &rotated = tables->rotated;
  if (rotated == 0)
    rotated = headSize.value_or(0);
  if (!headSize || rotated < 2 || rotated % 2 != 0 || rotated > *headSize)
    return b.refuse("the rotated size is not known");
  if (failed(checkTables(b, tables->ids, {tables->cos, tables->sin}, sizes[0],
                         sizes[sequenceDim], rotated / 2)))
    return b.refuse("sizes do not fit");
  Value result = createMapped(
      b, b.getLoc(), {{input, element}}, {b.identityMap(4)}, sizes, element,
      [&](OpBuilder &builder, Location loc, ValueRange args) -> Value {
        TensorBuilder s(loc, builder);
        SmallVector<Value> at;
        for (int64_t dim = 0; dim < 4; ++dim)
          at.push_back(linalg::IndexOp::create(s, dim));
        return rotate(s, input, element, args[0], at, sequenceDim, *tables);
      });
  return b.replace(headsFirst ? result : b.collapse(result, groups));
}

} // namespace

void populateRotaryPatterns(const TypeConverter &converter,
                            RewritePatternSet &patterns) {
  addLowering<onnx::RotaryEmbeddingOp, lowerRotaryEmbedding>(patterns,
                                                             converter);
}

} // namespace sardonyx
