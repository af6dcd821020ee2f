//===- ConvPoolUnpool.cpp - MaxUnpool and Col2Im --------------------------===//

#include "Checks.h"
#include "Contraction.h"
#include "ConvPool.h"
#include "StructuredPatterns.h"
#include "dialects/ONNX/ONNX.h"

#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;

namespace sardonyx {
namespace {

/// The largest side of an image or block: their products are sizes too.
constexpr int64_t kMostSide = int64_t(1) << 31;

Value flatten(TensorBuilder &b, Value tensor) {
  SmallVector<ReassociationIndices> groups;
  appendGroup(groups, 0, rankedType(tensor).getRank());
  return b.collapse(tensor, groups);
}

struct MaxUnpoolLowering : OnnxPattern<onnx::MaxUnpoolOp> {
  using Base::Base;
  LogicalResult
  matchAndRewrite(onnx::MaxUnpoolOp op, Adaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    TensorBuilder b(op.getLoc(), rewriter);
    Value input = adaptor.getX();
    int64_t rank = rankedType(input).getRank(), spatial = rank - 2;
    ArrayRef<int64_t> kernel = op.getKernelShape();
    SmallVector<int64_t> strides(std::max<int64_t>(spatial, 0), 1);
    SmallVector<int64_t> pads(2 * strides.size(), 0);
    if (op.getStrides() && !op.getStrides()->empty())
      strides.assign(op.getStrides()->begin(), op.getStrides()->end());
    if (op.getPads() && !op.getPads()->empty())
      pads.assign(op.getPads()->begin(), op.getPads()->end());
    if (spatial < 1 || static_cast<int64_t>(kernel.size()) != spatial ||
        static_cast<int64_t>(strides.size()) != spatial ||
        static_cast<int64_t>(pads.size()) != 2 * spatial)
      return refuse(op, "attributes do not fit the input");

    auto isPossible = [](int64_t value) {
      return std::abs(value) <= kMostSide;
    };
    for (ArrayRef<int64_t> list : {kernel, ArrayRef(strides), ArrayRef(pads)})
      if (!llvm::all_of(list, isPossible))
        return refuse(op, "an attribute is impossible");

    // The indices count in the shape that the attributes imply. A larger
    // output_shape adds zeros behind.
    Sizes sizes = b.dims(input);
    for (int64_t dim = 0; dim < spatial; ++dim) {
      OpFoldResult reach = b.times(b.plus(sizes[2 + dim], -1), strides[dim]);
      sizes[2 + dim] = b.atLeast(
          b.plus(reach, kernel[dim] - pads[dim] - pads[spatial + dim]), 0);
    }
    Type element = elementTypeOf(input);
    checkSizes(b, op.getLoc(), sizes, element);
    Value values = flatten(b, input), indices = flatten(b, adaptor.getI());
    OpFoldResult count = b.dim(values, 0);
    if (!b.sameSize(count, b.dim(indices, 0), "inputs X and I differ in size"))
      return refuse(op, "X and I differ in size");
    OpFoldResult total = b.product(sizes);
    Value init = b.filled({total}, b.zero(element));
    auto loop = scf::ForOp::create(
        b, b.index(int64_t(0)), b.index(count), b.index(1), init,
        [&](OpBuilder &builder, Location loc, Value i, ValueRange state) {
          TensorBuilder s(loc, builder);
          Value at = s.convert(s.extract(indices, i), s.getIndexType());
          createCheck(s, loc,
                      s.compare(arith::CmpIPredicate::ult, at, s.index(total)),
                      "index {0} lies outside of an output of {1} elements",
                      {OpFoldResult(at), total});
          Value next =
              tensor::InsertOp::create(s, s.extract(values, i), state[0], at);
          scf::YieldOp::create(s, next);
        });
    SmallVector<ReassociationIndices> groups;
    appendGroup(groups, 0, rank);
    Value result = b.expand(loop.getResult(0), groups, sizes);
    if (adaptor.getOutputShape()) {
      FailureOr<Sizes> wanted = getIntListAsSizes(
          b, op.getLoc(), adaptor.getOutputShape(), rank, "output_shape");
      if (failed(wanted))
        return refuse(
            op, "input 'output_shape' is not as long as the input's rank");
      Sizes low(rank, b.size(0)), high;
      for (auto [want, have] : llvm::zip_equal(*wanted, sizes)) {
        if (failed(checkRange(b, op.getLoc(), want, 0, kMostSize,
                              "an element of 'output_shape' is impossible")))
          return refuse(op, "output_shape is impossible");
        high.push_back(b.atLeast(b.minus(want, have), 0));
      }
      checkSizes(b, op.getLoc(), *wanted, element);
      result = b.pad(result, low, high, b.zero(element));
    }
    return replace(rewriter, op, result);
  }
};

/// Every element of the image is the sum over the kernel positions whose block
/// covers it: a reduction that reads the columns, so nothing is scattered.
struct Col2ImLowering : OnnxPattern<onnx::Col2ImOp> {
  using Base::Base;

  /// Where the column of kernel position `k` that covers image position `p` is
  /// (an index), and whether there is one.
  static std::pair<Value, Value> findBlock(TensorBuilder &s, Value p, Value k,
                                           const Window &window, int64_t dim) {
    Value shifted = s.sub(s.add(p, s.index(window.padsBegin[dim])),
                          s.mul(k, s.index(window.dilations[dim])));
    Value stride = s.index(window.strides[dim]), zero = s.index(int64_t(0));
    // Unsigned division of a negative distance gives something huge.
    Value block = arith::DivUIOp::create(s, shifted, stride);
    Value exact = s.compare(arith::CmpIPredicate::eq,
                            arith::RemUIOp::create(s, shifted, stride), zero);
    Value positive = s.compare(arith::CmpIPredicate::sge, shifted, zero);
    Value before = s.compare(arith::CmpIPredicate::ult, block,
                             s.index(window.outputs[dim]));
    Value hit = arith::AndIOp::create(
        s, arith::AndIOp::create(s, exact, positive), before);
    return {block, hit};
  }

  LogicalResult
  matchAndRewrite(onnx::Col2ImOp op, Adaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    TensorBuilder b(op.getLoc(), rewriter);
    Value input = adaptor.getInput();
    Type element = elementTypeOf(input);
    RankedTensorType blockType = rankedType(adaptor.getBlockShape());
    if (rankedType(input).getRank() != 3 || blockType.getRank() != 1 ||
        blockType.isDynamicDim(0))
      return refuse(op, "ranks are not known");
    int64_t spatial = blockType.getDimSize(0);
    FailureOr<Sizes> image = getIntListAsSizes(
        b, op.getLoc(), adaptor.getImageShape(), spatial, "image_shape");
    FailureOr<Sizes> kernel = getIntListAsSizes(
        b, op.getLoc(), adaptor.getBlockShape(), spatial, "block_shape");
    if (failed(image) || failed(kernel))
      return refuse(op, "image_shape and block_shape differ in length");
    for (int64_t dim = 0; dim < spatial; ++dim)
      if (failed(checkRange(b, op.getLoc(), (*image)[dim], 0, kMostSide,
                            "an element of 'image_shape' is impossible")) ||
          failed(checkRange(b, op.getLoc(), (*kernel)[dim], 1, kMostSide,
                            "an element of 'block_shape' is impossible")))
        return refuse(op, "image_shape or block_shape is impossible");

    Window window;
    window.strides.assign(spatial, 1);
    window.dilations.assign(spatial, 1);
    SmallVector<int64_t> pads(2 * spatial, 0);
    if (op.getStrides() && !op.getStrides()->empty())
      window.strides.assign(op.getStrides()->begin(), op.getStrides()->end());
    if (op.getDilations() && !op.getDilations()->empty())
      window.dilations.assign(op.getDilations()->begin(),
                              op.getDilations()->end());
    if (op.getPads() && !op.getPads()->empty())
      pads.assign(op.getPads()->begin(), op.getPads()->end());
    auto isPositive = [](int64_t value) {
      return value > 0 && value <= kMostSide;
    };
    auto isPossible = [](int64_t pad) { return std::abs(pad) <= kMostSide; };
    if (static_cast<int64_t>(window.strides.size()) != spatial ||
        static_cast<int64_t>(window.dilations.size()) != spatial ||
        static_cast<int64_t>(pads.size()) != 2 * spatial ||
        !llvm::all_of(window.strides, isPositive) ||
        !llvm::all_of(window.dilations, isPositive) ||
        !llvm::all_of(pads, isPossible))
      return refuse(op, "attributes do not fit");
    for (int64_t dim = 0; dim < spatial; ++dim) {
      window.padsBegin.push_back(b.size(pads[dim]));
      OpFoldResult span =
          b.times(b.plus((*kernel)[dim], -1), window.dilations[dim]);
      OpFoldResult room = b.plus(b.minus((*image)[dim], span),
                                 pads[dim] + pads[spatial + dim] - 1);
      OpFoldResult blocks =
          b.plus(b.floorDiv(room, b.size(window.strides[dim])), 1);
      if (failed(checkRange(b, op.getLoc(), blocks, 0, kMostSize,
                            "the image holds an impossible number of blocks")))
        return refuse(op, "no block fits the image");
      window.outputs.push_back(blocks);
    }

    checkSizes(b, op.getLoc(), *kernel, element);
    checkSizes(b, op.getLoc(), window.outputs, element);
    // Where a check of the block fails, nothing may be divided by zero first.
    OpFoldResult inBlock = b.atLeast(b.product(*kernel), 1);
    OpFoldResult channels = b.floorDiv(b.dim(input, 1), inBlock);
    if (!b.sameSize(b.times(channels, inBlock), b.dim(input, 1),
                    "the input's channels are no multiple of the block's") ||
        !b.sameSize(b.product(window.outputs), b.dim(input, 2),
                    "image_shape asks for another number of blocks"))
      return refuse(op, "shapes do not fit");
    Sizes sizes{b.dim(input, 0), channels};
    sizes.append(*image);
    checkSizes(b, op.getLoc(), sizes, element);
    return replace(rewriter, op,
                   gatherBlocks(b, input, sizes, *kernel, window, element));
  }

  /// `columns` is [N, C * product(block), product(blocks)], the result has
  /// `sizes`.
  static Value gatherBlocks(TensorBuilder &b, Value columns, const Sizes &sizes,
                            const Sizes &kernel, const Window &window,
                            Type element) {
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
                 column =
                     column ? s.add(s.mul(column, s.index(window.outputs[dim])),
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
};

} // namespace

void populateUnpoolPatterns(const TypeConverter &converter,
                            RewritePatternSet &patterns) {
  patterns.add<MaxUnpoolLowering, Col2ImLowering>(converter,
                                                  patterns.getContext());
}

} // namespace sardonyx
