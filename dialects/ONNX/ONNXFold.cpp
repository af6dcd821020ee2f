//===- ONNXFold.cpp - Folders ---------------------------------------------===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "dialects/ONNX/ONNX.h"

using namespace mlir;

namespace sardonyx::onnx {

/// The value of any form of `onnx.Constant` as elements. Never null, as
/// m_Constant relies on it.
OpFoldResult ConstantOp::fold(FoldAdaptor) {
  if (getValueAttr())
    return getValueAttr();
  if (getSparseValueAttr())
    return getSparseValueAttr();
  MLIRContext *context = getContext();
  auto tensor = [](ArrayRef<int64_t> shape, Type element) {
    return RankedTensorType::get(shape, element);
  };
  auto i64 = IntegerType::get(context, 64);
  auto f32 = Float32Type::get(context);
  auto string = StringType::get(context);
  if (auto value = getValueInt())
    return DenseElementsAttr::get(tensor({}, i64), ArrayRef<int64_t>(*value));
  if (auto values = getValueInts())
    return DenseElementsAttr::get(
        tensor({static_cast<int64_t>(values->size())}, i64), *values);
  if (auto value = getValueFloat())
    return DenseElementsAttr::get(tensor({}, f32), ArrayRef<APFloat>(*value));
  if (auto values = getValueFloats())
    return DenseElementsAttr::get(
        tensor({static_cast<int64_t>(values->size())}, f32), *values);
  if (auto value = getValueString())
    return DenseStringElementsAttr::get(tensor({}, string),
                                        ArrayRef<StringRef>(*value));
  SmallVector<StringRef> strings;
  if (auto values = getValueStrings())
    for (auto value : values->getAsValueRange<StringAttr>())
      strings.push_back(value);
  return DenseStringElementsAttr::get(
      tensor({static_cast<int64_t>(strings.size())}, string), strings);
}

OpFoldResult IdentityOp::fold(FoldAdaptor) {
  return getInput().getType() == getOutput().getType() ? getInput()
                                                       : OpFoldResult();
}

OpFoldResult CastOp::fold(FoldAdaptor) {
  return getInput().getType() == getOutput().getType() ? getInput()
                                                       : OpFoldResult();
}

OpFoldResult TransposeOp::fold(FoldAdaptor) {
  std::optional<ArrayRef<int64_t>> perm = getPerm();
  if (!perm || getData().getType() != getTransposed().getType())
    return {};
  for (auto [i, p] : llvm::enumerate(*perm))
    if (p != static_cast<int64_t>(i))
      return {};
  return getData();
}

} // namespace sardonyx::onnx
