//===- ConstantColumns.cpp - The columns of a matrix of weights -----------===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Layout/ConstantColumns.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Dialect/Utils/IndexingUtils.h"
#include "mlir/IR/AsmState.h"
#include "mlir/IR/DialectResourceBlobManager.h"

using namespace mlir;
using namespace sardonyx;
using namespace sardonyx::cpu;

static std::optional<ConstantView> viewConstantOp(arith::ConstantOp constant) {
  auto type = dyn_cast<RankedTensorType>(constant.getType());
  if (!type || !type.getElementType().isF32() || !type.hasStaticShape())
    return std::nullopt;
  ArrayRef<char> bytes;
  if (auto resource =
          dyn_cast<DenseResourceElementsAttr>(constant.getValue())) {
    AsmResourceBlob *blob = resource.getRawHandle().getBlob();
    if (!blob)
      return std::nullopt; // read at another time, from a file of its own
    bytes = blob->getData();
  } else if (auto dense = dyn_cast<DenseElementsAttr>(constant.getValue());
             dense && !dense.isSplat()) {
    bytes = dense.getRawData();
  }
  if (int64_t(bytes.size()) != type.getNumElements() * int64_t(sizeof(float)))
    return std::nullopt;
  return ConstantView{bytes.data(), SmallVector<int64_t>(type.getShape()),
                      computeStrides(type.getShape())};
}

static std::optional<ConstantView> viewSlice(tensor::ExtractSliceOp slice) {
  std::optional<ConstantView> view = viewConstant(slice.getSource());
  if (!view || !slice.getType().hasStaticShape() ||
      ShapedType::isDynamicShape(slice.getStaticOffsets()) ||
      ShapedType::isDynamicShape(slice.getStaticStrides()))
    return std::nullopt;
  llvm::SmallBitVector dropped = slice.getDroppedDims();
  ConstantView result{view->data, {}, {}};
  for (auto [dim, offset] : llvm::enumerate(slice.getStaticOffsets())) {
    result.data += offset * view->strides[dim] * int64_t(sizeof(float));
    if (dropped.test(dim))
      continue;
    result.shape.push_back(slice.getStaticSizes()[dim]);
    result.strides.push_back(view->strides[dim] *
                             slice.getStaticStrides()[dim]);
  }
  return result;
}

/// A view of dimensions put together, each group of which lies in one piece.
static std::optional<ConstantView>
viewCollapsed(tensor::CollapseShapeOp collapse) {
  std::optional<ConstantView> view = viewConstant(collapse.getSrc());
  if (!view)
    return std::nullopt;
  ConstantView result{view->data, {}, {}};
  for (const ReassociationIndices &group : collapse.getReassociationIndices()) {
    int64_t size = 1, stride = 1;
    for (int64_t dim : llvm::reverse(group)) {
      if (view->shape[dim] == 1)
        continue;
      if (size == 1)
        stride = view->strides[dim];
      else if (view->strides[dim] != size * stride)
        return std::nullopt;
      size *= view->shape[dim];
    }
    result.shape.push_back(size);
    result.strides.push_back(stride);
  }
  return result;
}

static std::optional<ConstantView> viewExpanded(tensor::ExpandShapeOp expand) {
  std::optional<ConstantView> view = viewConstant(expand.getSrc());
  auto type = cast<RankedTensorType>(expand.getType());
  if (!view || !type.hasStaticShape())
    return std::nullopt;
  ConstantView result{view->data, SmallVector<int64_t>(type.getShape()),
                      SmallVector<int64_t>(type.getRank(), 1)};
  for (auto [dim, group] : llvm::enumerate(expand.getReassociationIndices())) {
    int64_t stride = view->strides[dim];
    for (int64_t inner : llvm::reverse(group)) {
      result.strides[inner] = stride;
      stride *= result.shape[inner];
    }
  }
  return result;
}

std::optional<ConstantView> cpu::viewConstant(Value tensor) {
  Operation *op = tensor.getDefiningOp();
  if (auto constant = dyn_cast_or_null<arith::ConstantOp>(op))
    return viewConstantOp(constant);
  if (auto slice = dyn_cast_or_null<tensor::ExtractSliceOp>(op))
    return viewSlice(slice);
  if (auto collapse = dyn_cast_or_null<tensor::CollapseShapeOp>(op))
    return viewCollapsed(collapse);
  if (auto expand = dyn_cast_or_null<tensor::ExpandShapeOp>(op))
    return viewExpanded(expand);
  if (auto cast = dyn_cast_or_null<tensor::CastOp>(op))
    return viewConstant(cast.getSource());
  auto transpose = dyn_cast_or_null<linalg::TransposeOp>(op);
  if (!transpose)
    return std::nullopt;
  std::optional<ConstantView> view = viewConstant(transpose.getInput());
  if (!view)
    return std::nullopt;
  ConstantView result{view->data, {}, {}};
  for (int64_t from : transpose.getPermutation()) {
    result.shape.push_back(view->shape[from]);
    result.strides.push_back(view->strides[from]);
  }
  return result;
}

std::optional<ConstantColumns> cpu::findColumns(Value matrix, bool transposed) {
  std::optional<ConstantView> view = viewConstant(matrix);
  if (!view || view->shape.size() != 2)
    return std::nullopt;
  unsigned column = transposed ? 0 : 1, row = 1 - column;
  return ConstantColumns{view->data, view->shape[column], view->shape[row],
                         view->strides[column], view->strides[row]};
}
