//===- SDXDense.cpp - What passes ask of dense operations -----------------===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "dialects/SDX/SDXDps.h"

#include "llvm/ADT/StringExtras.h"

using namespace mlir;
using namespace sardonyx;
using namespace sardonyx::sdx;

#include "dialects/SDX/SDXAttrInterfaces.cpp.inc"
#include "dialects/SDX/SDXInterfaces.cpp.inc"

void DenseWork::multiplyAllDims(Value shaped) {
  int64_t rank = cast<ShapedType>(shaped.getType()).getRank();
  for (int64_t dim = 0; dim < rank; ++dim)
    sizes.emplace_back(shaped, dim);
}

std::string sdx::describeSizes(ArrayRef<int64_t> sizes) {
  return llvm::join(
      llvm::map_range(sizes, [](int64_t size) { return std::to_string(size); }),
      "x");
}

static bool isOne(int64_t number) { return number == 1; }

std::string sdx::describeWindow(StringRef kind, ArrayRef<int64_t> kernel,
                                ArrayRef<int64_t> strides) {
  std::string text = (kind + " " + describeSizes(kernel)).str();
  if (!llvm::all_of(strides, isOne))
    text += " stride " + describeSizes(strides);
  return text;
}

std::string sdx::describeConv(const ConvWindow &window, int64_t group) {
  std::string text = describeWindow("conv", window.kernel, window.strides);
  if (!llvm::all_of(window.dilations, isOne))
    text += " dilation " + describeSizes(window.dilations);
  if (group != 1)
    text += " groups " + std::to_string(group);
  return text;
}

DenseWork sdx::countConvFlops(Value input, Value init, ArrayRef<int64_t> kernel,
                              int64_t group) {
  auto type = cast<ShapedType>(input.getType());
  DenseWork work{2};
  work.multiplyAllDims(init);
  for (int64_t size : kernel)
    work.factor *= size;
  // Channels of a group are known where there are several.
  if (group == 1)
    work.sizes.emplace_back(input, 1);
  else
    work.factor *= type.isDynamicDim(1) ? 0 : type.getDimSize(1) / group;
  return work;
}

static DenseWork countPoolFlops(Value init, ArrayRef<int64_t> kernel) {
  DenseWork work{1};
  work.multiplyAllDims(init);
  for (int64_t size : kernel)
    work.factor *= size;
  return work;
}

static DenseWork countProductFlops(Value lhs, Value init) {
  DenseWork work{2};
  work.multiplyAllDims(init);
  work.sizes.emplace_back(lhs, cast<ShapedType>(lhs.getType()).getRank() - 1);
  return work;
}

//===----------------------------------------------------------------------===//
// MatmulOp
//===----------------------------------------------------------------------===//

bool MatmulOp::isRoot() { return true; }
bool MatmulOp::isContraction() { return true; }
StringRef MatmulOp::getKernelName() { return "matmul"; }

std::string MatmulOp::describeForm() {
  Type type = getLhs().getType().getElementType();
  return type.isBF16()       ? "product of bf16"
         : type.isInteger(8) ? "product of bytes"
                             : "product";
}

DenseWork MatmulOp::countFlops() {
  return countProductFlops(getLhs(), getInit());
}

//===----------------------------------------------------------------------===//
// DequantMatmulOp
//===----------------------------------------------------------------------===//

bool DequantMatmulOp::isRoot() { return true; }
bool DequantMatmulOp::isContraction() { return true; }
StringRef DequantMatmulOp::getKernelName() { return "matmul"; }

std::string DequantMatmulOp::describeForm() {
  return "product of " + std::to_string(getBits()) + "-bit " +
         (getElement() ? "floats as weights" : "weights");
}

DenseWork DequantMatmulOp::countFlops() {
  return countProductFlops(getLhs(), getInit());
}

//===----------------------------------------------------------------------===//
// ConvOp
//===----------------------------------------------------------------------===//

bool ConvOp::isRoot() { return true; }
bool ConvOp::isContraction() { return true; }
StringRef ConvOp::getKernelName() { return "conv"; }

std::string ConvOp::describeForm() {
  return describeConv({getKernelShape(), getStrides(), getDilations(),
                       getPadsBegin(), getPadsEnd()},
                      getGroup());
}

DenseWork ConvOp::countFlops() {
  return countConvFlops(getInput(), getInit(), getKernelShape(), getGroup());
}

//===----------------------------------------------------------------------===//
// MaxPoolOp
//===----------------------------------------------------------------------===//

bool MaxPoolOp::isRoot() { return true; }
StringRef MaxPoolOp::getKernelName() { return "max_pool"; }

std::string MaxPoolOp::describeForm() {
  return describeWindow("max pool", getKernelShape(), getStrides());
}

DenseWork MaxPoolOp::countFlops() {
  return countPoolFlops(getInit(), getKernelShape());
}

//===----------------------------------------------------------------------===//
// AveragePoolOp
//===----------------------------------------------------------------------===//

bool AveragePoolOp::isRoot() { return true; }
StringRef AveragePoolOp::getKernelName() { return "average_pool"; }

std::string AveragePoolOp::describeForm() {
  return describeWindow("average pool", getKernelShape(), getStrides());
}

DenseWork AveragePoolOp::countFlops() {
  return countPoolFlops(getInit(), getKernelShape());
}
