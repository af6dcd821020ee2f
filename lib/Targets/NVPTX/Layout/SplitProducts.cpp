//===- SplitProducts.cpp - Products that are read in parts ----------------===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Queries, keys and values of attention are often one product by weights that
// lie side by side, after which a bias is added and the result cut, with a
// transpose between that puts parts behind each other. As many products, which
// start together, leave each part where it is read, and there is nothing to
// cut.
//
//===----------------------------------------------------------------------===//

#include "Layout/SplitProducts.h"

#include "dialects/SDX/SDX.h"
#include "lib/Dispatch/Utils.h"

#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Dialect/Utils/ReshapeOpsUtils.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"
#include "mlir/IR/Matchers.h"
#include "llvm/ADT/MapVector.h"

using namespace mlir;
using namespace sardonyx;

/// Columns of a part are a multiple of the columns of a tile; the most parts
/// that start together.
static constexpr int64_t kColumns = 64;
static constexpr size_t kMostParts = 8;

namespace {
/// A piece of a tensor without gaps.
struct Box {
  SmallVector<int64_t> offsets, sizes;

  bool isAll(ArrayRef<int64_t> shape) const { return sizes == shape; }
};
} // namespace

static ArrayRef<int64_t> shapeOf(Value value) {
  return cast<RankedTensorType>(value.getType()).getShape();
}

static bool isKnown(Value value) {
  auto type = dyn_cast<RankedTensorType>(value.getType());
  return type && type.hasStaticShape() && type.getNumElements() != 0;
}

//===----------------------------------------------------------------------===//
// Where a box of a result comes from
//===----------------------------------------------------------------------===//

/// The range of elements, counted along all of `shape`, that a box of it is;
/// none if they do not follow each other.
static std::optional<std::pair<int64_t, int64_t>>
flatten(ArrayRef<int64_t> offsets, ArrayRef<int64_t> sizes,
        ArrayRef<int64_t> shape) {
  int64_t from = 0, count = 1;
  bool isWhole = true; // all dimensions so far, from the last one on
  int64_t stride = 1;
  for (int64_t dim = shape.size(); dim-- > 0;) {
    if (!isWhole && sizes[dim] != 1)
      return std::nullopt;
    from += offsets[dim] * stride;
    count *= sizes[dim];
    isWhole &= sizes[dim] == shape[dim];
    stride *= shape[dim];
  }
  return std::pair(from, count);
}

/// The box of `shape` that is such a range.
static std::optional<Box> unflatten(int64_t from, int64_t count,
                                    ArrayRef<int64_t> shape) {
  Box box;
  box.offsets.assign(shape.size(), 0);
  box.sizes.assign(shape.size(), 1);
  int64_t left = count;
  for (int64_t dim = shape.size(); dim-- > 0;) {
    const int64_t size = shape[dim];
    const int64_t offset = from % size;
    from /= size;
    if (left == 1) {
      box.offsets[dim] = offset;
    } else if (left % size == 0 && offset == 0) {
      box.sizes[dim] = size;
      left /= size;
    } else if (offset + left <= size) {
      box.offsets[dim] = offset;
      box.sizes[dim] = left;
      left = 1;
    } else {
      return std::nullopt;
    }
  }
  return left == 1 ? std::optional(box) : std::nullopt;
}

/// The same box before a reshape, which has `groups` of dimensions on the side
/// with more of them.
static std::optional<Box> beforeReshape(const Box &box, ArrayRef<int64_t> shape,
                                        ArrayRef<int64_t> source,
                                        ArrayRef<ReassociationIndices> groups,
                                        bool expands) {
  Box result;
  for (auto [one, group] : llvm::enumerate(groups)) {
    const size_t first = group.front(), count = group.size();
    if (expands) {
      auto range = flatten(ArrayRef(box.offsets).slice(first, count),
                           ArrayRef(box.sizes).slice(first, count),
                           shape.slice(first, count));
      if (!range)
        return std::nullopt;
      result.offsets.push_back(range->first);
      result.sizes.push_back(range->second);
    } else {
      std::optional<Box> part = unflatten(box.offsets[one], box.sizes[one],
                                          source.slice(first, count));
      if (!part)
        return std::nullopt;
      result.offsets.append(part->offsets);
      result.sizes.append(part->sizes);
    }
  }
  return result;
}

/// The box of what is at `map` of the loops in `box`.
static Box project(const Box &box, AffineMap map) {
  Box result;
  for (AffineExpr expr : map.getResults()) {
    const unsigned loop = cast<AffineDimExpr>(expr).getPosition();
    result.offsets.push_back(box.offsets[loop]);
    result.sizes.push_back(box.sizes[loop]);
  }
  return result;
}

/// Whether an operation computes the elements of its only result from those at
/// the same place.
static bool isElementwise(linalg::GenericOp op) {
  return op && op.hasPureTensorSemantics() && op->getNumResults() == 1 &&
         op.getNumParallelLoops() == op.getNumLoops() &&
         op.getMatchingIndexingMap(op.getDpsInitOperand(0)).isIdentity() &&
         !op.payloadUsesValueFromOperand(op.getDpsInitOperand(0)) &&
         llvm::all_of(
             op.getIndexingMapsArray(),
             [](AffineMap map) { return map.isProjectedPermutation(); }) &&
         llvm::all_of(op.getBody()->without_terminator(), [](Operation &inner) {
           return isPure(&inner) && inner.getNumRegions() == 0 &&
                  !isa<linalg::IndexOp, tensor::ExtractOp>(inner);
         });
}

/// Whether `value` is a constant, or made of some by operations on elements.
static bool isOfWeights(Value value) {
  Operation *op = value.getDefiningOp();
  if (!op || matchPattern(value, m_Constant()))
    return op != nullptr;
  if (isa<tensor::CollapseShapeOp, tensor::ExpandShapeOp>(op))
    return isOfWeights(op->getOperand(0));
  auto generic = dyn_cast<linalg::GenericOp>(op);
  return isElementwise(generic) &&
         llvm::all_of(generic.getDpsInputs(),
                      [](Value in) { return isOfWeights(in); });
}

namespace {

/// Follows a slice to the product that it is of, and computes it of a part of
/// that product.
class SliceOfProduct {
public:
  explicit SliceOfProduct(tensor::ExtractSliceOp slice) : slice(slice) {}

  /// Finds the product and its columns; whether there is one.
  bool find() {
    if (!isKnown(slice.getSource()) || !isKnown(slice.getResult()) ||
        !llvm::all_of(
            slice.getMixedStrides(),
            [](OpFoldResult step) { return isConstantIntValue(step, 1); }) ||
        slice.getSourceType().getRank() != slice.getType().getRank() ||
        ShapedType::isDynamicShape(slice.getStaticOffsets()))
      return false;
    Box box{llvm::to_vector(slice.getStaticOffsets()),
            llvm::to_vector(slice.getStaticSizes())};
    return follow(slice.getSource(), box);
  }

  /// Puts what it computes in the place of the slice.
  void replace() {
    ImplicitLocOpBuilder b(slice.getLoc(), slice);
    Value value = multiply(b);
    for (const Step &step : llvm::reverse(steps))
      value = apply(b, step, value);
    replaceUsers(b, slice.getResult(),
                 reshape(b, value, shapeOf(slice.getResult())));
    slice.erase();
  }

  tensor::ExtractSliceOp slice;
  sdx::MatmulOp product;
  int64_t from = 0, count = 0; // columns
  SetVector<Operation *> ops;  // between the product and the slice

private:
  /// An operation between the product and the slice, and what is wanted of its
  /// result.
  struct Step {
    Operation *op;
    Box box;
  };

  bool follow(Value value, const Box &box) {
    Operation *op = value.getDefiningOp();
    if (!op || !isKnown(value))
      return false;
    if (auto matmul = dyn_cast<sdx::MatmulOp>(op)) {
      product = matmul;
      from = box.offsets.back();
      count = box.sizes.back();
      return !matmul.isBatched() && matmul.hasPureTensorSemantics() &&
             box.sizes[0] == shapeOf(value)[0] &&
             isOfWeights(matmul.getRhs()) &&
             matmul.getInit().getDefiningOp<linalg::FillOp>();
    }
    steps.push_back({op, box});
    ops.insert(op);
    if (auto expand = dyn_cast<tensor::ExpandShapeOp>(op))
      return followReshape(expand, box, /*expands=*/true);
    if (auto collapse = dyn_cast<tensor::CollapseShapeOp>(op))
      return followReshape(collapse, box, /*expands=*/false);
    if (auto transpose = dyn_cast<linalg::TransposeOp>(op)) {
      Box before = box;
      for (auto [to, of] : llvm::enumerate(transpose.getPermutation())) {
        before.offsets[of] = box.offsets[to];
        before.sizes[of] = box.sizes[to];
      }
      return follow(transpose.getInput(), before);
    }
    auto generic = dyn_cast<linalg::GenericOp>(op);
    if (!isElementwise(generic))
      return false;
    OpOperand *main = nullptr;
    for (OpOperand *input : generic.getDpsInputOperands()) {
      if (!isa<RankedTensorType>(input->get().getType()) ||
          isOfWeights(input->get()))
        continue;
      if (main || !generic.getMatchingIndexingMap(input).isIdentity())
        return false;
      main = input;
    }
    return main && follow(main->get(), box);
  }

  template <typename OpT>
  bool followReshape(OpT op, const Box &box, bool expands) {
    std::optional<Box> before =
        beforeReshape(box, shapeOf(op.getResult()), shapeOf(op.getSrc()),
                      op.getReassociationIndices(), expands);
    return before && follow(op.getSrc(), *before);
  }

  /// Whether dimensions of `before` with more than one element keep their
  /// order.
  static bool isInOrder(linalg::TransposeOp op, ArrayRef<int64_t> before) {
    int64_t last = -1;
    for (int64_t of : op.getPermutation()) {
      if (before[of] == 1)
        continue;
      if (of < last)
        return false;
      last = of;
    }
    return true;
  }

  /// A part of a weight: what it is made of is cut, so that it stays what makes
  /// an operand of a product.
  static Value cut(ImplicitLocOpBuilder &b, Value value, const Box &box) {
    if (box.isAll(shapeOf(value)))
      return value;
    if (auto generic = value.getDefiningOp<linalg::GenericOp>())
      return computePart(b, generic, box, {});
    SmallVector<OpFoldResult> steps(box.sizes.size(), b.getIndexAttr(1));
    return tensor::ExtractSliceOp::create(
        b, value, getAsIndexOpFoldResult(b.getContext(), box.offsets),
        getAsIndexOpFoldResult(b.getContext(), box.sizes), steps);
  }

  /// The product of the columns.
  Value multiply(ImplicitLocOpBuilder &b) {
    Box box;
    box.offsets.assign(2, 0);
    llvm::append_range(box.sizes, shapeOf(product.getRhs()));
    box.offsets[product.getColumnDim()] = from;
    box.sizes[product.getColumnDim()] = count;
    auto fill = product.getInit().getDefiningOp<linalg::FillOp>();
    auto type = cast<RankedTensorType>(product.getInit().getType());
    type = RankedTensorType::get({type.getDimSize(0), count},
                                 type.getElementType());
    Value empty =
        tensor::EmptyOp::create(b, type.getShape(), type.getElementType());
    Value init =
        linalg::FillOp::create(b, fill.getInputs()[0], empty).getResult(0);
    IRMapping mapping;
    mapping.map(product.getRhs(), cut(b, product.getRhs(), box));
    mapping.map(product.getInit(), init);
    Operation *part = b.clone(*product, mapping);
    part->getResult(0).setType(type);
    return part->getResult(0);
  }

  /// A tensor of the same elements in the same order.
  static Value reshape(ImplicitLocOpBuilder &b, Value value,
                       ArrayRef<int64_t> shape) {
    while (isa_and_present<tensor::CollapseShapeOp, tensor::ExpandShapeOp>(
        value.getDefiningOp()))
      value = value.getDefiningOp()->getOperand(0);
    auto type = cast<RankedTensorType>(value.getType());
    const int64_t rank = shape.size();
    if (type.getShape() == shape)
      return value;
    auto wanted = RankedTensorType::get(shape, type.getElementType());
    if (type.getRank() != rank)
      if (auto groups = getReassociationIndicesForReshape(type, wanted))
        return type.getRank() < rank
                   ? tensor::ExpandShapeOp::create(b, wanted, value, *groups)
                         .getResult()
                   : tensor::CollapseShapeOp::create(b, value, *groups)
                         .getResult();
    auto all = [](int64_t dims) {
      return SmallVector<ReassociationIndices>{
          llvm::to_vector(llvm::seq<int64_t>(0, dims))};
    };
    value = tensor::CollapseShapeOp::create(b, value, all(type.getRank()));
    return tensor::ExpandShapeOp::create(b, wanted, value, all(rank));
  }

  static Value apply(ImplicitLocOpBuilder &b, const Step &step, Value value) {
    if (auto generic = dyn_cast<linalg::GenericOp>(step.op)) {
      Value flat = computeFlat(b, generic, step.box, value);
      return flat ? reshape(b, flat, step.box.sizes)
                  : computePart(b, generic, step.box, value);
    }
    auto transpose = dyn_cast<linalg::TransposeOp>(step.op);
    if (transpose && !isInOrder(transpose, shapeOf(value)))
      return createTranspose(b, b.getLoc(), value, transpose.getPermutation());
    return reshape(b, value, step.box.sizes);
  }

  /// The same as `computePart`, in the shape that `value` had before reshapes,
  /// where that is without some loops of one turn only: so it is part of the
  /// product's kernel. Null where it is not.
  static Value computeFlat(ImplicitLocOpBuilder &b, linalg::GenericOp generic,
                           const Box &box, Value value) {
    Value flat = value;
    while (isa_and_present<tensor::CollapseShapeOp, tensor::ExpandShapeOp>(
        flat.getDefiningOp()))
      flat = flat.getDefiningOp()->getOperand(0);
    ArrayRef<int64_t> shape = shapeOf(flat);
    SmallVector<AffineExpr> dims; // of each loop; null for those left out
    unsigned next = 0;
    for (int64_t size : box.sizes) {
      const bool isKept = next < shape.size() && shape[next] == size;
      if (!isKept && size != 1)
        return {};
      dims.push_back(isKept ? b.getAffineDimExpr(next++) : AffineExpr());
    }
    if (next != shape.size())
      return {};
    SmallVector<Value> inputs;
    SmallVector<AffineMap> maps;
    for (OpOperand *input : generic.getDpsInputOperands()) {
      AffineMap map = generic.getMatchingIndexingMap(input);
      SmallVector<AffineExpr> results;
      for (AffineExpr expr : map.getResults()) {
        results.push_back(dims[cast<AffineDimExpr>(expr).getPosition()]);
        if (!results.back() && isOfWeights(input->get()))
          return {};
      }
      const bool isMain = isa<RankedTensorType>(input->get().getType()) &&
                          !isOfWeights(input->get());
      maps.push_back(
          isMain ? b.getMultiDimIdentityMap(shape.size())
                 : AffineMap::get(shape.size(), 0, results, b.getContext()));
      inputs.push_back(input->get());
    }
    for (auto [input, operand] :
         llvm::zip_equal(inputs, generic.getDpsInputOperands()))
      if (isa<RankedTensorType>(input.getType()))
        input = isOfWeights(input)
                    ? cut(b, input,
                          project(box, generic.getMatchingIndexingMap(operand)))
                    : flat;
    maps.push_back(b.getMultiDimIdentityMap(shape.size()));
    auto type = RankedTensorType::get(
        shape, getElementTypeOrSelf(generic.getResult(0).getType()));
    Value empty = tensor::EmptyOp::create(b, shape, type.getElementType());
    SmallVector<utils::IteratorType> loops(shape.size(),
                                           utils::IteratorType::parallel);
    auto made = linalg::GenericOp::create(b, type, inputs, empty, maps, loops);
    IRMapping mapping;
    generic.getRegion().cloneInto(&made.getRegion(), mapping);
    return made.getResult(0);
  }

  /// What `generic` computes in `box`, of parts of weights and of `value`,
  /// where it reads something else, too.
  static Value computePart(ImplicitLocOpBuilder &b, linalg::GenericOp generic,
                           const Box &box, Value value) {
    IRMapping mapping;
    auto type = cast<RankedTensorType>(generic.getResult(0).getType());
    type = RankedTensorType::get(box.sizes, type.getElementType());
    for (OpOperand *input : generic.getDpsInputOperands()) {
      Value of = input->get();
      if (!isa<RankedTensorType>(of.getType()))
        continue;
      mapping.map(
          of,
          isOfWeights(of)
              ? cut(b, of, project(box, generic.getMatchingIndexingMap(input)))
              : value);
    }
    mapping.map(
        generic.getDpsInits()[0],
        tensor::EmptyOp::create(b, type.getShape(), type.getElementType())
            .getResult());
    Operation *part = b.clone(*generic, mapping);
    part->getResult(0).setType(type);
    return part->getResult(0);
  }

  static bool isMoved(Value value) {
    return isa_and_present<tensor::CollapseShapeOp, tensor::ExpandShapeOp,
                           linalg::TransposeOp>(value.getDefiningOp());
  }

  /// What moves the elements of `from` to make `to`, with `instead` for `from`.
  static Value move(ImplicitLocOpBuilder &b, Value from, Value to,
                    Value instead) {
    if (from == to)
      return instead;
    Operation *op = to.getDefiningOp();
    Value before = move(b, from, op->getOperand(0), instead);
    if (auto transpose = dyn_cast<linalg::TransposeOp>(op))
      return createTranspose(b, b.getLoc(), before, transpose.getPermutation());
    return reshape(b, before, shapeOf(to));
  }

  /// Has those that read `old` read `value`. What they compute of its elements
  /// comes before these move, in the kernel of the product.
  static void replaceUsers(ImplicitLocOpBuilder &b, Value old, Value value) {
    Value first = value;
    while (isMoved(first))
      first = first.getDefiningOp()->getOperand(0);
    SetVector<Operation *> users(old.user_begin(), old.user_end());
    for (Operation *user : users) {
      if (isa<tensor::CollapseShapeOp, tensor::ExpandShapeOp>(user)) {
        Value result = user->getResult(0);
        replaceUsers(b, result, reshape(b, value, shapeOf(result)));
        user->erase();
        continue;
      }
      auto generic = dyn_cast<linalg::GenericOp>(user);
      if (!isElementwise(generic) || generic.getDpsInputs().size() != 1 ||
          generic.getDpsInputs()[0] != old ||
          !generic.getIndexingMapsArray()[0].isIdentity())
        continue;
      OpBuilder::InsertionGuard guard(b);
      b.setInsertionPoint(generic);
      const int64_t rank = shapeOf(first).size();
      auto type = RankedTensorType::get(
          shapeOf(first), getElementTypeOrSelf(generic.getResult(0).getType()));
      Value empty =
          tensor::EmptyOp::create(b, type.getShape(), type.getElementType());
      SmallVector<AffineMap> maps(2, b.getMultiDimIdentityMap(rank));
      SmallVector<utils::IteratorType> loops(rank,
                                             utils::IteratorType::parallel);
      auto made = linalg::GenericOp::create(b, type, first, empty, maps, loops);
      IRMapping mapping;
      generic.getRegion().cloneInto(&made.getRegion(), mapping);
      replaceUsers(b, generic.getResult(0),
                   move(b, first, value, made.getResult(0)));
      generic.erase();
    }
    old.replaceAllUsesWith(value);
  }

  SmallVector<Step> steps;
};

} // namespace

/// Whether the slices are all that is read of the product, and each of its
/// columns is in one of them.
static bool areParts(sdx::MatmulOp product, ArrayRef<SliceOfProduct> slices) {
  if (slices.size() < 2 || slices.size() > kMostParts)
    return false;
  SmallVector<std::pair<int64_t, int64_t>> columns;
  DenseSet<Operation *> ops = {product};
  DenseSet<Operation *> readers;
  for (const SliceOfProduct &slice : slices) {
    columns.push_back({slice.from, slice.count});
    ops.insert_range(slice.ops);
    readers.insert(slice.slice);
  }
  llvm::sort(columns);
  int64_t end = 0;
  for (auto [from, count] : columns) {
    if (from != end || count % kColumns)
      return false;
    end += count;
  }
  return end == shapeOf(product.getResult()).back() &&
         llvm::all_of(ops, [&](Operation *op) {
           return llvm::all_of(op->getUsers(), [&](Operation *user) {
             return ops.contains(user) || readers.contains(user);
           });
         });
}

void nv::splitProducts(ModuleOp module) {
  llvm::MapVector<Operation *, SmallVector<SliceOfProduct, 0>> found;
  module.walk([&](tensor::ExtractSliceOp slice) {
    SliceOfProduct part(slice);
    if (part.find())
      found[part.product].push_back(part);
  });
  for (auto &[op, slices] : found) {
    auto product = cast<sdx::MatmulOp>(op);
    if (!areParts(product, slices))
      continue;
    SetVector<Operation *> unused;
    for (SliceOfProduct &slice : slices) {
      unused.insert_range(slice.ops);
      slice.replace();
    }
    unused.insert(product);
    // Those come first that nobody reads any more.
    while (true) {
      auto left = llvm::find_if(
          unused, [](Operation *candidate) { return candidate->use_empty(); });
      if (left == unused.end())
        break;
      Operation *last = *left;
      unused.erase(left);
      last->erase();
    }
  }
}
