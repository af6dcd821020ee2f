//===- LowerPacking.cpp - Packing of operands as vector copies ------------===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Common/IndexMath.h"
#include "Conv/WinogradConv.h"
#include "Kernel/Epilogue.h"
#include "MicroKernels/CompressedWeights.h"
#include "MicroKernels/ContractionLoop.h"
#include "MicroKernels/VectorOps.h"

#include "dialects/CPU/CPU.h"
#include "sardonyx/Targets/CPU/Passes.h"

#include "mlir/Dialect/Bufferization/IR/Bufferization.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "llvm/Support/MathExtras.h"

#include <numeric>

namespace sardonyx {
#define GEN_PASS_DEF_CPULOWERPACKING
#include "sardonyx/Targets/CPU/Passes.h.inc"
} // namespace sardonyx

using namespace mlir;
using namespace sardonyx;
using namespace sardonyx::cpu;

static bool isMultiple(Value x, int64_t y) {
  std::optional<int64_t> known = IndexMath::known(x);
  return known && *known % y == 0;
}

namespace {

/// A matrix within a source of packing.
struct Matrix {
  Value memref;
  SmallVector<Value> lead;    // the indices before the row's
  SmallVector<Value> between; // and those between the row's and the column's

  SmallVector<Value> at(Value row, Value column) const {
    SmallVector<Value> indices(lead);
    indices.push_back(row);
    indices.append(between);
    indices.push_back(column);
    return indices;
  }
};

/// Emits the loops of one packing kernel.
class PackEmitter {
public:
  PackEmitter(KernelBody &body, unsigned vectorBits)
      : body(body), lanes(std::max<int64_t>(1, vectorBits / 32)),
        masksBytes(vectorBits >= 512) {}

  void emitRhs(ImplicitLocOpBuilder &b, cpu::PackRhsOp op);
  void emitConvWeights(ImplicitLocOpBuilder &b, cpu::PackConvWeightsOp op);
  void emitConvParts(ImplicitLocOpBuilder &b, cpu::PackConvWeightsOp op);

private:
  void emitColumns(ImplicitLocOpBuilder &b, const Matrix &source, Value column,
                   Value k, Value n, Value dest, ValueRange panel,
                   int64_t width);
  void emitRowsToColumns(ImplicitLocOpBuilder &b, const Matrix &source,
                         Value row, Value rowEnd, Value k, Value dest,
                         ValueRange panel, int64_t width, bool allRows);

  void emitBytes(ImplicitLocOpBuilder &b, cpu::PackRhsOp op,
                 const Matrix &source, Value column, Value k, Value n,
                 Value dest, ValueRange panel);

  KernelBody &body;
  int64_t lanes;
  /// Whether single bytes of a register can be loaded.
  bool masksBytes;
};

} // namespace

/// dest[panel..., i, 0:width] = source[i, column : column + width]
void PackEmitter::emitColumns(ImplicitLocOpBuilder &b, const Matrix &source,
                              Value column, Value k, Value n, Value dest,
                              ValueRange panel, int64_t width) {
  IndexMath math(b);
  Value mask;
  if (!isMultiple(n, width))
    mask = emitTailMask(b, math.sub(n, column), width);
  emitFor(b, math.constant(0), k, 1, [&](Value i) {
    SmallVector<Value> to(panel);
    to.append({i, math.constant(0)});
    emitStore(b, emitLoad(b, source.memref, source.at(i, column), width, mask),
              dest, to);
  });
}

/// dest[panel..., i, j] = source[row + j, i] for j < width, zero for rows from
/// `rowEnd` on. `allRows` says that no such row is asked for.
void PackEmitter::emitRowsToColumns(ImplicitLocOpBuilder &b,
                                    const Matrix &source, Value row,
                                    Value rowEnd, Value k, Value dest,
                                    ValueRange panel, int64_t width,
                                    bool allRows) {
  IndexMath math(b);
  int64_t square = std::gcd(std::min<int64_t>(lanes, 16), width);
  Value full = math.roundDown(k, square);
  auto vectorType = VectorType::get({square}, b.getF32Type());
  Value noLanes = math.constant(0);
  for (int64_t part = 0; part < width; part += square) {
    Value firstRow = math.add(row, part);
    // Rows past the end are read with no lane on, at the start of the matrix.
    SmallVector<Value> rows, masks;
    for (int64_t r = 0; r < square; ++r) {
      Value at = math.add(firstRow, r);
      if (allRows) {
        rows.push_back(at);
        masks.push_back(nullptr);
        continue;
      }
      Value inside = math.less(at, rowEnd);
      rows.push_back(
          b.createOrFold<arith::SelectOp>(inside, at, math.constant(0)));
      Value count = b.createOrFold<arith::SelectOp>(
          inside, math.constant(square), noLanes);
      masks.push_back(emitTailMask(b, count, square));
    }
    emitFor(b, math.constant(0), full, square, [&](Value i) {
      SmallVector<Value> loaded;
      for (int64_t r = 0; r < square; ++r)
        loaded.push_back(emitLoad(b, source.memref, source.at(rows[r], i),
                                  square, masks[r]));
      for (auto [c, column] : llvm::enumerate(emitTranspose(b, loaded))) {
        SmallVector<Value> to(panel);
        to.append({math.add(i, c), math.constant(part)});
        emitStore(b, column, dest, to);
      }
    });
    if (isMultiple(k, square))
      continue;
    emitFor(b, full, k, 1, [&](Value i) {
      Value column = arith::ConstantOp::create(b, b.getZeroAttr(vectorType));
      for (int64_t r = 0; r < square; ++r) {
        Value one =
            vector::LoadOp::create(b, VectorType::get({1}, b.getF32Type()),
                                   source.memref, source.at(rows[r], i));
        if (masks[r]) {
          Value inside = math.less(math.add(firstRow, r), rowEnd);
          Value zero =
              arith::ConstantOp::create(b, b.getZeroAttr(one.getType()));
          one = arith::SelectOp::create(b, inside, one, zero);
        }
        column = vector::InsertStridedSliceOp::create(
            b, one, column, ArrayRef<int64_t>{r}, ArrayRef<int64_t>{1});
      }
      SmallVector<Value> to(panel);
      to.append({i, math.constant(part)});
      emitStore(b, column, dest, to);
    });
  }
}

namespace {

/// Emits how bytes of a matrix become a panel whose rows are groups of values
/// of k, of 32 bits: four bytes, or two that are widened.
class BytePacker {
public:
  BytePacker(ImplicitLocOpBuilder &b, PackingAttr packing, const Matrix &source,
             Value column, Value k, Value n, Value dest, ValueRange panel)
      : b(b), math(b), type(packing.getStoredType()),
        group(packing.getDepthGroup()), width(packing.getPanel()),
        source(source), column(column), k(k), n(n), dest(dest), panel(panel) {}

  /// Columns that lie beside each other in the source: of `group` of its rows
  /// the bytes are interleaved. Those past the end are masked.
  void emitColumns(Value mask) {
    Value full = math.roundDown(k, group);
    emitFor(b, math.constant(0), full, group, [&](Value first) {
      SmallVector<Value> rows;
      for (int64_t j = 0; j < group; ++j)
        rows.push_back(load(math.add(first, j), column, width, mask));
      storeInterleaved(rows, first);
    });
    if (isMultiple(k, group))
      return;
    emitIf(b, math.less(full, k), [&] {
      SmallVector<Value> rows;
      for (int64_t j = 0; j < group; ++j)
        rows.push_back(emitIfInside(math.add(full, j), [&](Value row) {
          return load(row, column, width, mask);
        }));
      storeInterleaved(rows, full);
    });
  }

  /// The same a byte at a time, for columns that fill no panel.
  void emitColumnTail() {
    Value count = math.sub(n, column);
    emitFor(b, math.constant(0), math.ceilDiv(k, group), 1, [&](Value at) {
      emitFor(b, math.constant(0), count, 1, [&](Value c) {
        Value number = emitGroup(math.mul(at, group), [&](Value row) {
          return load(row, math.add(column, c), 1);
        });
        store(number, at, math.mul(c, group));
      });
    });
  }

  /// Columns that are rows of the source: squares of groups are transposed.
  /// Rows past the end are the first one again.
  void emitRows(int64_t lanes) {
    int64_t square = std::gcd(std::min<int64_t>(lanes, kLargestSquare), width);
    std::optional<int64_t> depth = IndexMath::known(k);
    while (depth && square > kSmallestSquare && *depth < square * group)
      square /= 2;
    Value full = math.roundDown(k, square * group);
    for (int64_t part = 0; part < width; part += square) {
      SmallVector<Value> rows;
      for (int64_t r = 0; r < square; ++r) {
        Value at = math.add(column, part + r);
        if (!isMultiple(n, width))
          at = b.createOrFold<arith::SelectOp>(math.less(at, n), at,
                                               math.constant(0));
        rows.push_back(at);
      }
      emitFor(b, math.constant(0), full, square * group, [&](Value first) {
        SmallVector<Value> loaded;
        for (Value row : rows)
          loaded.push_back(asGroups(load(row, first, square * group)));
        Value at = math.div(first, group);
        for (auto [i, groups] : llvm::enumerate(emitTranspose(b, loaded)))
          store(groups, math.add(at, i), math.constant(part * group));
      });
      if (isMultiple(k, square * group))
        continue;
      emitFor(
          b, math.div(full, group), math.ceilDiv(k, group), 1, [&](Value at) {
            auto ofSquare = VectorType::get({square}, b.getI32Type());
            Value groups =
                arith::ConstantOp::create(b, b.getZeroAttr(ofSquare));
            for (int64_t r = 0; r < square; ++r) {
              Value number = emitGroup(math.mul(at, group), [&](Value column) {
                return load(rows[r], column, 1);
              });
              groups = vector::InsertStridedSliceOp::create(
                  b, number, groups, ArrayRef<int64_t>{r},
                  ArrayRef<int64_t>{1});
            }
            store(groups, at, math.constant(part * group));
          });
    }
  }

private:
  static constexpr int64_t kLargestSquare = 16, kSmallestSquare = 4;

  /// Bytes from a place on, widened.
  Value load(Value row, Value column, int64_t count, Value mask = nullptr) {
    Value bytes =
        emitLoad(b, source.memref, source.at(row, column), count, mask);
    return type.isInteger(8) ? bytes
                             : Value(arith::ExtSIOp::create(
                                   b, VectorType::get({count}, type), bytes));
  }
  /// What `emit` gives for `index`; zeros where that is no value of k.
  Value emitIfInside(Value index, function_ref<Value(Value)> emit) {
    Value isInside = math.less(index, k);
    Value at =
        b.createOrFold<arith::SelectOp>(isInside, index, math.constant(0));
    Value value = emit(at);
    Value zero = arith::ConstantOp::create(b, b.getZeroAttr(value.getType()));
    return b.createOrFold<arith::SelectOp>(isInside, value, zero);
  }
  /// The values of k from `first` on of one column, which `emit` loads, as one
  /// i32 in a vector.
  Value emitGroup(Value first, function_ref<Value(Value)> emit) {
    auto ofGroup = VectorType::get({group}, type);
    Value values = arith::ConstantOp::create(b, b.getZeroAttr(ofGroup));
    for (int64_t j = 0; j < group; ++j)
      values = vector::InsertStridedSliceOp::create(
          b, emitIfInside(math.add(first, j), emit), values,
          ArrayRef<int64_t>{j}, ArrayRef<int64_t>{1});
    return asGroups(values);
  }
  Value asGroups(Value values) {
    int64_t count = cast<VectorType>(values.getType()).getNumElements() / group;
    return vector::BitCastOp::create(
        b, VectorType::get({count}, b.getI32Type()), values);
  }
  void storeInterleaved(ArrayRef<Value> rows, Value first) {
    SmallVector<Value> parts(rows);
    for (size_t count = parts.size(); count > 1; count /= 2)
      for (size_t i = 0; i < count / 2; ++i)
        parts[i] =
            vector::InterleaveOp::create(b, parts[i], parts[i + count / 2]);
    store(parts.front(), math.div(first, group), math.constant(0));
  }
  void store(Value values, Value row, Value at) {
    auto stored = cast<VectorType>(values.getType());
    if (stored.getElementType() != type) {
      stored = VectorType::get({stored.getNumElements() * group}, type);
      values = vector::BitCastOp::create(b, stored, values);
    }
    SmallVector<Value> to(panel);
    to.append({row, at});
    emitStore(b, values, dest, to);
  }

  ImplicitLocOpBuilder &b;
  IndexMath math;
  /// Elements of the panel, and how many values of k are a group.
  Type type;
  int64_t group, width;
  const Matrix &source;
  Value column, k, n, dest;
  ValueRange panel;
};

} // namespace

void PackEmitter::emitBytes(ImplicitLocOpBuilder &b, cpu::PackRhsOp op,
                            const Matrix &source, Value column, Value k,
                            Value n, Value dest, ValueRange panel) {
  IndexMath math(b);
  const int64_t width = op.getPanelWidth();
  BytePacker packer(b, op.getPacking(), source, column, k, n, dest, panel);
  if (op.getTransposed())
    return packer.emitRows(lanes);
  if (isMultiple(n, width))
    return packer.emitColumns(/*mask=*/nullptr);
  if (masksBytes)
    return packer.emitColumns(emitTailMask(b, math.sub(n, column), width));
  emitIf(
      b, math.less(n, math.add(column, width)),
      [&] { packer.emitColumnTail(); },
      [&] { packer.emitColumns(/*mask=*/nullptr); });
}

void PackEmitter::emitRhs(ImplicitLocOpBuilder &b, cpu::PackRhsOp op) {
  IndexMath math(b);
  Value source = body.getBuffer(op.getSource());
  Value dest = body.getOutputs().front().memref;
  int64_t width = op.getPanelWidth();
  Value n = math.dim(source, op.getColumnDim());
  Value k = math.dim(source, op.getDepthDim());
  int64_t panelDim = op.getInit().getType().getRank() - 3;
  SmallVector<Value> sizes;
  for (int64_t dim = 0; dim <= panelDim; ++dim)
    sizes.push_back(math.dim(dest, dim));
  emitParallel(b, sizes, [&](ValueRange panel) {
    Matrix matrix{source, {}, {}};
    if (op.isInterleaved()) {
      Value heads = math.dim(source, 2), outer = math.div(panel[0], heads);
      matrix.lead.push_back(outer);
      matrix.between.push_back(math.sub(panel[0], math.mul(outer, heads)));
    } else if (panelDim > 0) {
      matrix.lead.push_back(panel[0]);
    }
    Value column = math.mul(panel.back(), width);
    if (op.isOfBytes())
      return emitBytes(b, op, matrix, column, k, n, dest, panel);
    Value to = dest;
    ValueRange toPanel = panel;
    if (op.getScales()) {
      int64_t rows = *IndexMath::known(k);
      if (op.makesW21())
        rows = llvm::alignTo(rows, cpu::kW21Group);
      to = emitBuffer(b, MemRefType::get({rows, width}, b.getF32Type()));
      toPanel = {};
    }
    if (op.getTransposed())
      emitRowsToColumns(b, matrix, column, n, k, to, toPanel, width,
                        isMultiple(n, width));
    else
      emitColumns(b, matrix, column, k, n, to, toPanel, width);
    if (!op.getScales())
      return;
    CompressedPanel packed =
        CompressedPanel::get(dest, panel.back(), width, lanes);
    Value scales = body.getBuffer(op.getScales());
    if (op.makesW21())
      packW21(b, to, scales, k, packed);
    else
      packW24(b, to, scales, k, packed);
    memref::DeallocOp::create(b, to);
  });
}

void PackEmitter::emitConvWeights(ImplicitLocOpBuilder &b,
                                  cpu::PackConvWeightsOp op) {
  IndexMath math(b);
  Value source = emitCollapse(b, body.getBuffer(op.getSource()), 1);
  Value dest = body.getOutputs().front().memref;
  Value groups = math.dim(dest, 0);
  Value filters = math.div(math.dim(source, 0), groups);
  Value k = math.dim(dest, 2);
  int64_t width = op.getBlockRows();
  emitParallel(b, {groups, math.dim(dest, 1)}, [&](ValueRange panel) {
    Value first = math.mul(panel[0], filters);
    Value row = math.add(first, math.mul(panel[1], width));
    emitRowsToColumns(b, {source, {}, {}}, row, math.add(first, filters), k,
                      dest, panel, width, isMultiple(filters, width));
  });
}

void PackEmitter::emitConvParts(ImplicitLocOpBuilder &b,
                                cpu::PackConvWeightsOp op) {
  constexpr int64_t kBlock = cpu::kBf16x2Block;
  IndexMath math(b);
  Value source = emitCollapse(b, body.getBuffer(op.getSource()), 2);
  Value dest = body.getOutputs().front().memref;
  Value groups = math.dim(dest, 0);
  Value filters = math.div(math.dim(source, 0), groups);
  Value channels = math.dim(source, 1), taps = math.dim(source, 2);
  auto type = VectorType::get({kBlock}, b.getF32Type());
  Value none = arith::ConstantOp::create(b, b.getZeroAttr(type));
  // Channels lie as far apart as a filter has taps.
  Value places = arith::MulIOp::create(b, emitLanes(b, kBlock, 1),
                                       emitSplat32(b, taps, kBlock));
  emitParallel(
      b, {groups, math.dim(dest, 1), math.dim(dest, 2)}, [&](ValueRange ivs) {
        Value step = math.div(ivs[2], taps);
        Value tap = math.sub(ivs[2], math.mul(step, taps));
        Value channel = math.mul(step, kBlock);
        Value inStep = emitTailMask(b, math.sub(channels, channel), kBlock);
        Value first = math.mul(ivs[1], kBlock);
        emitFor(b, math.constant(0), math.constant(kBlock), 1, [&](Value row) {
          Value inGroup = math.add(first, row);
          Value isInside = math.less(inGroup, filters);
          Value filter = b.createOrFold<arith::SelectOp>(isInside, inGroup,
                                                         math.constant(0));
          Value mask = vector::BroadcastOp::create(b, type.clone(b.getI1Type()),
                                                   isInside);
          if (inStep)
            mask = arith::AndIOp::create(b, mask, inStep);
          Value rest = vector::GatherOp::create(
              b, type, source,
              ValueRange{math.add(math.mul(ivs[0], filters), filter), channel,
                         tap},
              places, mask, none);
          for (int64_t part = 0; part < cpu::kBf16x2Terms; ++part) {
            Value nearest =
                arith::TruncFOp::create(b, type.clone(b.getBF16Type()), rest);
            Value at = math.mul(math.add(row, part * kBlock), kBlock);
            emitStore(b, nearest, dest, {ivs[0], ivs[1], ivs[2], at});
            rest = arith::SubFOp::create(
                b, rest, arith::ExtFOp::create(b, type, nearest));
          }
        });
      });
}

namespace {

struct LowerPackingPass
    : sardonyx::impl::CPULowerPackingBase<LowerPackingPass> {
  using Base::Base;

  void runOnOperation() override {
    func::FuncOp func = getOperation();
    if (!func->hasAttr(sdx::kKernelAttr) || func.isDeclaration())
      return;
    unsigned vectorBits = cpu::getTargetOrDefault(func).getVectorBits();
    KernelBody body(func);
    Operation *root = nullptr;
    for (Operation &op : func.getBody().front())
      if (isa<cpu::PackRhsOp, cpu::PackConvWeightsOp>(op)) {
        root = &op;
        break;
      }
    if (!root || root->getNumResults() == 0)
      return;
    if (body.getOutputs().size() != 1 ||
        body.getOutputs().front().tensor != root->getResult(0) ||
        !llvm::all_of(cast<DestinationStyleOpInterface>(root).getDpsInputs(),
                      KernelBody::hasBuffer)) {
      root->emitOpError("must be the only operation of its kernel");
      return signalPassFailure();
    }
    auto convWeights = dyn_cast<cpu::PackConvWeightsOp>(root);
    if (failed(body.replaceDims()))
      return signalPassFailure();
    ImplicitLocOpBuilder b(root->getLoc(),
                           func.getBody().front().getTerminator());
    PackEmitter emitter(body, vectorBits);
    if (convWeights && convWeights.getAlgorithm())
      emitWinogradWeights(b, *convWeights.getAlgorithm(),
                          body.getBuffer(convWeights.getSource()),
                          body.getOutputs().front().memref);
    else if (convWeights && convWeights.splits())
      emitter.emitConvParts(b, convWeights);
    else if (convWeights)
      emitter.emitConvWeights(b, convWeights);
    else
      emitter.emitRhs(b, cast<cpu::PackRhsOp>(root));
    body.eraseTensors();
  }
};

} // namespace
