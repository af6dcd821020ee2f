//===- ChannelsLastBlocks.cpp - Channels that become positions ------------===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Reshapes around a transpose split dimensions of an image, exchange the parts
// and merge them: channels become blocks of positions (DepthToSpace), or those
// of two groups are mixed. With channels last the same parts lie in another
// order. Where the result has them in the order in which they lie already, as
// the tokens of an image have, the region ends there.
//
//===----------------------------------------------------------------------===//

#include "Common/ChannelsLast.h"

#include "lib/Dispatch/Utils.h"

using namespace mlir;
using namespace sardonyx;

namespace {

/// The parts of the dimensions of a tensor, none of size 1, that reshapes and
/// transposes move. A dimension of size 1 has no parts.
class Blocks {
public:
  using Dims = SmallVector<SmallVector<unsigned>>;

  explicit Blocks(ArrayRef<int64_t> shape) {
    for (int64_t size : shape) {
      source.emplace_back();
      if (size != 1) {
        source.back().push_back(sizes.size());
        sizes.push_back(size);
      }
    }
    current = source;
  }

  /// Follows an operation; false if its result has no such parts.
  bool follow(Operation *op);

  SmallVector<int64_t> sizes;
  /// Of the dimensions of the tensor, and of what became of it.
  Dims source, current;

private:
  bool expand(tensor::ExpandShapeOp op);
  void split(unsigned part, int64_t outer);
};

} // namespace

/// Makes two of a part, the first of which has the size `outer`.
void Blocks::split(unsigned part, int64_t outer) {
  const unsigned inner = sizes.size();
  sizes.push_back(sizes[part] / outer);
  sizes[part] = outer;
  for (Dims *dims : {&source, &current})
    for (SmallVector<unsigned> &parts : *dims)
      if (auto *at = llvm::find(parts, part); at != parts.end())
        parts.insert(at + 1, inner);
}

bool Blocks::expand(tensor::ExpandShapeOp op) {
  ArrayRef<int64_t> shape = op.getResultType().getShape();
  Dims result(shape.size());
  for (auto [dim, group] : llvm::enumerate(op.getReassociationIndices())) {
    unsigned at = 0;
    for (int64_t to : group)
      for (int64_t rest = shape[to]; rest != 1;) {
        if (at == current[dim].size())
          return false;
        const unsigned part = current[dim][at];
        if (rest < sizes[part] && sizes[part] % rest == 0)
          split(part, rest);
        if (rest % sizes[part] != 0)
          return false;
        rest /= sizes[part];
        result[to].push_back(part);
        ++at;
      }
  }
  current = std::move(result);
  return true;
}

bool Blocks::follow(Operation *op) {
  if (auto expansion = dyn_cast<tensor::ExpandShapeOp>(op))
    return expand(expansion);
  Dims result;
  if (auto collapse = dyn_cast<tensor::CollapseShapeOp>(op)) {
    for (const ReassociationIndices &group :
         collapse.getReassociationIndices()) {
      result.emplace_back();
      for (int64_t dim : group)
        result.back().append(current[dim]);
    }
  } else {
    for (int64_t dim : cast<linalg::TransposeOp>(op).getPermutation())
      result.push_back(current[dim]);
  }
  current = std::move(result);
  return true;
}

static bool isMovement(Operation *op) {
  return isa_and_present<tensor::ExpandShapeOp, tensor::CollapseShapeOp,
                         linalg::TransposeOp>(op) &&
         llvm::all_of(op->getOperandTypes(), [](Type type) {
           auto tensor = dyn_cast<RankedTensorType>(type);
           return tensor && tensor.hasStaticShape() &&
                  tensor.getNumElements() > 0;
         });
}

/// The dimensions of size 1 beside those with parts, all of `shape`, as they
/// are grouped where only the latter are there.
static SmallVector<ReassociationIndices>
groupWithOnes(const Blocks::Dims &dims, ArrayRef<int64_t> order) {
  SmallVector<ReassociationIndices> groups;
  ReassociationIndices ones;
  for (auto [at, dim] : llvm::enumerate(order)) {
    ones.push_back(at);
    if (dims[dim].empty())
      continue;
    groups.push_back(std::exchange(ones, {}));
  }
  if (!groups.empty())
    groups.back().append(ones);
  return groups;
}

/// The parts of all dimensions, which are visited in this order.
static SmallVector<unsigned> flatten(const Blocks::Dims &dims,
                                     ArrayRef<int64_t> order) {
  SmallVector<unsigned> parts;
  for (int64_t dim : order)
    llvm::append_range(parts, dims[dim]);
  return parts;
}

void ChannelsLast::convertBlocks(Operation *op) {
  // The last of a chain.
  auto result = cast<RankedTensorType>(op->getResult(0).getType());
  if (!isMovement(op) || result.getRank() < 3 ||
      llvm::any_of(op->getUsers(), isMovement))
    return;
  SmallVector<Operation *> chain;
  Value last;
  for (Operation *at = op; isMovement(at) && !last;
       at = at->getOperand(0).getDefiningOp()) {
    chain.push_back(at);
    last = findLast(at->getOperand(0));
  }
  if (!last || !llvm::any_of(chain, llvm::IsaPred<linalg::TransposeOp>))
    return;
  auto first = cast<RankedTensorType>(chain.back()->getOperand(0).getType());
  Blocks blocks(first.getShape());
  for (Operation *each : llvm::reverse(chain))
    if (!blocks.follow(each))
      return;

  // Without the dimensions of size 1, in parts, exchanged, and merged.
  const Location loc = op->getLoc();
  const SmallVector<int64_t> from = orderLast(first.getRank());
  SmallVector<int64_t> to =
      llvm::to_vector(llvm::seq<int64_t>(result.getRank()));
  const bool isInOrder =
      flatten(blocks.source, from) == flatten(blocks.current, to);
  if (!isInOrder && isa<linalg::TransposeOp>(op))
    return;
  if (!isInOrder)
    to = orderLast(result.getRank());
  SmallVector<int64_t> places(blocks.sizes.size()), order, shape, merged, all;
  SmallVector<ReassociationIndices> before, after;
  for (int64_t dim : from) {
    if (blocks.source[dim].empty())
      continue;
    before.emplace_back();
    for (unsigned part : blocks.source[dim]) {
      places[part] = shape.size();
      before.back().push_back(shape.size());
      shape.push_back(blocks.sizes[part]);
    }
  }
  for (int64_t dim : to) {
    all.push_back(result.getDimSize(dim));
    if (blocks.current[dim].empty())
      continue;
    merged.push_back(result.getDimSize(dim));
    after.emplace_back();
    for (unsigned part : blocks.current[dim]) {
      after.back().push_back(order.size());
      order.push_back(places[part]);
    }
  }
  if (before.empty())
    return;
  auto reshape = [&](Value value, ArrayRef<int64_t> sizes,
                     ArrayRef<ReassociationIndices> groups) -> Value {
    RankedTensorType type = first.clone(sizes);
    if (type == value.getType())
      return value;
    if (type.getRank() > cast<RankedTensorType>(value.getType()).getRank())
      return tensor::ExpandShapeOp::create(b, loc, type, value, groups);
    return tensor::CollapseShapeOp::create(b, loc, type, value, groups);
  };
  SmallVector<int64_t> whole;
  for (int64_t dim : from)
    if (!blocks.source[dim].empty())
      whole.push_back(first.getDimSize(dim));
  Value value = reshape(last, whole, groupWithOnes(blocks.source, from));
  value = reshape(value, shape, before);
  if (!isInOrder)
    value = createTranspose(b, loc, value, order);
  value = reshape(value, merged, after);
  value = reshape(value, all, groupWithOnes(blocks.current, to));
  if (isInOrder)
    b.replaceAllUsesWith(op->getResult(0), value);
  else
    replace(op->getResult(0), value);
  b.eraseOp(op);
}
