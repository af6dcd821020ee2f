//===- MaxUnpool.cpp - MaxUnpool and Col2Im -------------------------------===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Contraction/Products.h"
#include "Support/Checks.h"
#include "Support/Lowering.h"
#include "Support/Patterns.h"
#include "Support/RowLoop.h"
#include "Window/Window.h"
#include "dialects/ONNX/ONNX.h"

#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;

namespace sardonyx {
namespace {

/// The largest side of an image or block: their products are sizes too.
constexpr int64_t kMaxSide = int64_t(1) << 31;

Value flatten(TensorBuilder &b, Value tensor) {
  SmallVector<ReassociationIndices> groups;
  appendGroup(groups, 0, rankedType(tensor).getRank());
  return b.collapse(tensor, groups);
}

/// The attributes of MaxUnpool, one for each spatial dimension; the pads are
/// all begins, then all ends.
struct UnpoolAttributes {
  ArrayRef<int64_t> kernel;
  SmallVector<int64_t> strides, pads;
};

FailureOr<UnpoolAttributes> getAttributes(Lowering<onnx::MaxUnpoolOp> &b,
                                          int64_t spatial) {
  UnpoolAttributes all{b.op.getKernelShape(), {}, {}};
  all.strides.assign(std::max<int64_t>(spatial, 0), 1);
  all.pads.assign(2 * all.strides.size(), 0);
  if (b.op.getStrides() && !b.op.getStrides()->empty())
    all.strides.assign(b.op.getStrides()->begin(), b.op.getStrides()->end());
  if (b.op.getPads() && !b.op.getPads()->empty())
    all.pads.assign(b.op.getPads()->begin(), b.op.getPads()->end());
  if (spatial < 1 || static_cast<int64_t>(all.kernel.size()) != spatial ||
      static_cast<int64_t>(all.strides.size()) != spatial ||
      static_cast<int64_t>(all.pads.size()) != 2 * spatial)
    return b.refuse("attributes do not fit the input");
  auto isPossible = [](int64_t value) { return std::abs(value) <= kMaxSide; };
  for (ArrayRef<int64_t> list :
       {all.kernel, ArrayRef(all.strides), ArrayRef(all.pads)})
    if (!llvm::all_of(list, isPossible))
      return b.refuse("an attribute is impossible");
  return all;
}

/// A list of `total` zeros in which each of `values` has the place that its
/// index names. Indices count in the whole result, so one task writes them all.
Value scatterValues(TensorBuilder &b, Value values, Value indices,
                    OpFoldResult total, Type element) {
  Value zeros = b.filled({b.size(1), total}, b.zero(element));
  Values rows =
      forEachRow(b, zeros, [&](TensorBuilder &s, Value, ValueRange rows) {
        auto write = [&](TensorBuilder &t, ValueRange i, ValueRange state) {
          Value at = t.convert(t.extract(indices, i), t.getIndexType());
          Value inside =
              t.compare(arith::CmpIPredicate::ult, at, t.index(total));
          createCheck(t, t.getLoc(), inside,
                      "index {0} lies outside of an output of {1} elements",
                      {OpFoldResult(at), total});
          return Values{put(t, t.extract(values, i), state.front(), at)};
        };
        return nest(s, b.dim(values, 0), rows, write);
      });
  return onlyRow(b, rows.front());
}

/// `tensor`, of `sizes`, with zeros behind until it has the sizes of input
/// 'output_shape', which are not less.
FailureOr<Value> padToOutputShape(Lowering<onnx::MaxUnpoolOp> &b, Value tensor,
                                  ArrayRef<OpFoldResult> sizes) {
  Type element = elementTypeOf(tensor);
  int64_t rank = sizes.size();
  FailureOr<Sizes> wanted = getIntListAsSizes(
      b, b.getLoc(), b.in.getOutputShape(), rank, "output_shape");
  if (failed(wanted))
    return b.refuse("input 'output_shape' is not as long as the input's rank");
  Sizes low(rank, b.size(0)), high;
  for (auto [want, have] : llvm::zip_equal(*wanted, sizes)) {
    if (failed(checkRange(b, b.getLoc(), want, 0, kMaxSize,
                          "an element of 'output_shape' is impossible")))
      return b.refuse("output_shape is impossible");
    std::optional<int64_t> least = getStaticSize(have),
                           given = getStaticSize(want);
    if (least && given && *given < *least)
      return b.refuse("input 'output_shape' is less than the attributes ask "
                      "for");
    checkSizeAtMost(b, b.getLoc(), have, want,
                    "input 'output_shape' is less than the attributes ask for");
    high.push_back(b.atLeast(b.minus(want, have), 0));
  }
  checkSizes(b, b.getLoc(), *wanted, element);
  return b.pad(tensor, low, high, b.zero(element));
}

LogicalResult lowerMaxUnpool(Lowering<onnx::MaxUnpoolOp> &b) {
  Value input = b.in.getX();
  int64_t rank = b.rank(input), spatial = rank - 2;
  FailureOr<UnpoolAttributes> window = getAttributes(b, spatial);
  if (failed(window))
    return failure();
  // The indices count in the shape that the attributes imply. A larger
  // output_shape adds zeros behind.
  Sizes sizes = b.dims(input);
  ArrayRef<int64_t> pads = window->pads;
  for (int64_t dim = 0; dim < spatial; ++dim) {
    OpFoldResult reach =
        b.times(b.plus(sizes[2 + dim], -1), window->strides[dim]);
    sizes[2 + dim] = b.atLeast(
        b.plus(reach, window->kernel[dim] - pads[dim] - pads[spatial + dim]),
        0);
  }
  Type element = elementTypeOf(input);
  checkSizes(b, b.getLoc(), sizes, element);
  Value values = flatten(b, input), indices = flatten(b, b.in.getI());
  if (!b.sameSize(b.dim(values, 0), b.dim(indices, 0),
                  "inputs X and I differ in size"))
    return b.refuse("X and I differ in size");
  Value flat = scatterValues(b, values, indices, b.product(sizes), element);
  SmallVector<ReassociationIndices> groups;
  appendGroup(groups, 0, rank);
  FailureOr<Value> result = b.expand(flat, groups, sizes);
  if (b.in.getOutputShape())
    result = padToOutputShape(b, *result, sizes);
  if (failed(result))
    return failure();
  return b.replace(*result);
}

/// Where the column of kernel position `k` that covers image position `p` is
/// (an index), and whether there is one.
std::pair<Value, Value> findBlock(TensorBuilder &s, Value p, Value k,
                                  const Window &window, int64_t dim) {
  Value shifted = s.sub(s.add(p, s.index(window.padsBegin[dim])),
                        s.mul(k, s.index(window.dilations[dim])));
  Value stride = s.index(window.strides[dim]), zero = s.index(int64_t(0));
  // Unsigned division of a negative distance gives something huge.
  Value block = arith::DivUIOp::create(s, shifted, stride);
  Value exact = s.compare(arith::CmpIPredicate::eq,
                          arith::RemUIOp::create(s, shifted, stride), zero);
  Value positive = s.compare(arith::CmpIPredicate::sge, shifted, zero);
  Value before =
      s.compare(arith::CmpIPredicate::ult, block, s.index(window.outputs[dim]));
  Value hit = arith::AndIOp::create(
      s, arith::AndIOp::create(s, exact, positive), before);
  return {block, hit};
}

/// `columns` is [N, C * product(block), product(blocks)], the result has
/// `sizes`.
Value gatherBlocks(TensorBuilder &b, Value columns, const Sizes &sizes,
                   const Sizes &kernel, const Window &window, Type element) {
  int64_t outer = sizes.size(), spatial = outer - 2, dims = outer + spatial;
  SmallVector<utils::IteratorType> iterators(dims,
                                             utils::IteratorType::reduction);
  std::fill_n(iterators.begin(), outer, utils::IteratorType::parallel);
  Type accumulator = getAccumulatorType(element);
  Value sum =
      b.generic(
           b.empty(kernel, element), b.zeros(sizes, accumulator),
           {b.dimsMap(dims, llvm::to_vector(llvm::seq<int64_t>(outer, dims))),
            b.dimsMap(dims, llvm::to_vector(llvm::seq<int64_t>(outer)))},
           iterators,
           [&](TensorBuilder &s, ValueRange args) -> SmallVector<Value> {
             Value row = linalg::IndexOp::create(s, 1);
             Value column, hit, zero = s.index(int64_t(0));
             for (int64_t dim = 0; dim < spatial; ++dim) {
               Value p = linalg::IndexOp::create(s, 2 + dim);
               Value k = linalg::IndexOp::create(s, outer + dim);
               auto [block, here] = findBlock(s, p, k, window, dim);
               block = s.select(here, block, zero);
               row = s.add(s.mul(row, s.index(kernel[dim])), k);
               column = column
                            ? s.add(s.mul(column, s.index(window.outputs[dim])),
                                    block)
                            : block;
               hit = hit ? arith::AndIOp::create(s, hit, here) : here;
             }
             Value n = linalg::IndexOp::create(s, 0);
             Value value = s.extract(columns, {n, row, column});
             value = s.select(hit, value, s.zero(element));
             return {s.add(args[1], s.convert(value, accumulator))};
           })
          .front();
  return b.convertElements(sum, element);
}

/// The sizes of the image and of a block.
struct BlockShapes {
  Sizes image, kernel;
};

FailureOr<BlockShapes> getShapes(Lowering<onnx::Col2ImOp> &b, int64_t spatial) {
  Location loc = b.getLoc();
  FailureOr<Sizes> image =
      getIntListAsSizes(b, loc, b.in.getImageShape(), spatial, "image_shape");
  FailureOr<Sizes> kernel =
      getIntListAsSizes(b, loc, b.in.getBlockShape(), spatial, "block_shape");
  if (failed(image) || failed(kernel))
    return b.refuse("image_shape and block_shape differ in length");
  for (int64_t dim = 0; dim < spatial; ++dim)
    if (failed(checkRange(b, loc, (*image)[dim], 0, kMaxSide,
                          "an element of 'image_shape' is impossible")) ||
        failed(checkRange(b, loc, (*kernel)[dim], 1, kMaxSide,
                          "an element of 'block_shape' is impossible")))
      return b.refuse("image_shape or block_shape is impossible");
  return BlockShapes{*image, *kernel};
}

/// Strides, dilations, pads at the begins, and how many blocks there are.
FailureOr<Window> getBlocks(Lowering<onnx::Col2ImOp> &b,
                            const BlockShapes &shapes) {
  int64_t spatial = shapes.image.size();
  Window window;
  window.strides.assign(spatial, 1);
  window.dilations.assign(spatial, 1);
  SmallVector<int64_t> pads(2 * spatial, 0);
  auto read = [](std::optional<ArrayRef<int64_t>> attribute,
                 SmallVector<int64_t> &list) {
    if (attribute && !attribute->empty())
      list.assign(attribute->begin(), attribute->end());
  };
  read(b.op.getStrides(), window.strides);
  read(b.op.getDilations(), window.dilations);
  read(b.op.getPads(), pads);
  auto isPositive = [](int64_t value) {
    return value > 0 && value <= kMaxSide;
  };
  auto isPossible = [](int64_t pad) { return std::abs(pad) <= kMaxSide; };
  if (static_cast<int64_t>(window.strides.size()) != spatial ||
      static_cast<int64_t>(window.dilations.size()) != spatial ||
      static_cast<int64_t>(pads.size()) != 2 * spatial ||
      !llvm::all_of(window.strides, isPositive) ||
      !llvm::all_of(window.dilations, isPositive) ||
      !llvm::all_of(pads, isPossible))
    return b.refuse("attributes do not fit");
  for (int64_t dim = 0; dim < spatial; ++dim) {
    window.padsBegin.push_back(b.size(pads[dim]));
    OpFoldResult span =
        b.times(b.plus(shapes.kernel[dim], -1), window.dilations[dim]);
    OpFoldResult room = b.plus(b.minus(shapes.image[dim], span),
                               pads[dim] + pads[spatial + dim] - 1);
    OpFoldResult blocks =
        b.plus(b.floorDiv(room, b.size(window.strides[dim])), 1);
    if (failed(checkRange(b, b.getLoc(), blocks, 0, kMaxSize,
                          "the image holds an impossible number of blocks")))
      return b.refuse("no block fits the image");
    window.outputs.push_back(blocks);
  }
  return window;
}

/// Every element of the image is the sum over the kernel positions whose block
/// covers it: a reduction that reads the columns, so nothing is scattered.
LogicalResult lowerCol2Im(Lowering<onnx::Col2ImOp> &b) {
  Value input = b.in.getInput();
  Type element = elementTypeOf(input);
  RankedTensorType blockType = rankedType(b.in.getBlockShape());
  if (b.rank(input) != 3 || blockType.getRank() != 1 ||
      blockType.isDynamicDim(0))
    return b.refuse("ranks are not known");
  FailureOr<BlockShapes> shapes = getShapes(b, blockType.getDimSize(0));
  if (failed(shapes))
    return failure();
  FailureOr<Window> window = getBlocks(b, *shapes);
  if (failed(window))
    return failure();

  const Sizes &kernel = shapes->kernel, &outputs = window->outputs;
  checkSizes(b, b.getLoc(), kernel, element);
  checkSizes(b, b.getLoc(), outputs, element);
  // Where a check of the block fails, nothing may be divided by zero first.
  OpFoldResult inBlock = b.atLeast(b.product(kernel), 1);
  OpFoldResult channels = b.floorDiv(b.dim(input, 1), inBlock);
  if (!b.sameSize(b.times(channels, inBlock), b.dim(input, 1),
                  "the input's channels are no multiple of the block's") ||
      !b.sameSize(b.product(outputs), b.dim(input, 2),
                  "image_shape asks for another number of blocks"))
    return b.refuse("shapes do not fit");
  Sizes sizes{b.dim(input, 0), channels};
  sizes.append(shapes->image);
  checkSizes(b, b.getLoc(), sizes, element);
  return b.replace(gatherBlocks(b, input, sizes, kernel, *window, element));
}

} // namespace

void populateUnpoolPatterns(const TypeConverter &converter,
                            RewritePatternSet &patterns) {
  addLowering<onnx::MaxUnpoolOp, lowerMaxUnpool>(patterns, converter);
  addLowering<onnx::Col2ImOp, lowerCol2Im>(patterns, converter);
}

} // namespace sardonyx
