//===- SDXDense.cpp - What passes ask of dense operations -----------------===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "dialects/SDX/SDX.h"

#include "llvm/ADT/StringExtras.h"

using namespace mlir;
using namespace sardonyx;
using namespace sardonyx::sdx;

#include "dialects/SDX/SDXInterfaces.cpp.inc"

void DenseWork::multiplyAllDims(Value shaped) {
  int64_t rank = cast<ShapedType>(shaped.getType()).getRank();
  for (int64_t dim = 0; dim < rank; ++dim)
    sizes.emplace_back(shaped, dim);
}

static std::string times(ArrayRef<int64_t> sizes) {
  return llvm::join(
      llvm::map_range(sizes, [](int64_t size) { return std::to_string(size); }),
      "x");
}

static bool isOne(int64_t number) { return number == 1; }

template <typename OpT>
static std::string describeWindow(StringRef kind, OpT op) {
  std::string text = (kind + " " + times(op.getKernelShape())).str();
  if (!llvm::all_of(op.getStrides(), isOne))
    text += " stride " + times(op.getStrides());
  return text;
}

//===----------------------------------------------------------------------===//
// PackedMatmulOp
//===----------------------------------------------------------------------===//

bool PackedMatmulOp::isRoot() { return true; }
bool PackedMatmulOp::isContraction() { return true; }
StringRef PackedMatmulOp::getKernelName() { return "matmul"; }

std::string PackedMatmulOp::describeForm() {
  if (isOfThreeBytes())
    return "product of 24-bit weights";
  if (isOfTriples())
    return "product of 21-bit weights";
  if (getScales())
    return "product of " + std::to_string(8 / getNumbersPerByte()) +
           "-bit weights";
  return getDepthGroup() == 1   ? "product"
         : getDepthGroup() == 2 ? "product of bf16"
                                : "product of bytes";
}

DenseWork PackedMatmulOp::countFlops() {
  DenseWork work{2};
  work.multiplyAllDims(getInit());
  work.sizes.emplace_back(getLhs(), getLhs().getType().getRank() - 1);
  return work;
}

//===----------------------------------------------------------------------===//
// ConvOp
//===----------------------------------------------------------------------===//

bool ConvOp::isRoot() { return true; }
bool ConvOp::isContraction() { return true; }
StringRef ConvOp::getKernelName() { return "conv"; }

std::string ConvOp::describeForm() {
  std::string text = describeWindow("conv", *this);
  if (!llvm::all_of(getDilations(), isOne))
    text += " dilation " + times(getDilations());
  if (getGroup() != 1)
    text += " groups " + std::to_string(getGroup());
  if (std::optional<int64_t> side = getWinograd())
    text += ", winograd " + times({*side, *side});
  if (getScales())
    text += ", 24-bit weights";
  if (hasSplitWeights())
    text += ", parts of bf16";
  return text;
}

DenseWork ConvOp::countFlops() {
  ShapedType input = getInput().getType();
  DenseWork work{2};
  work.multiplyAllDims(getInit());
  for (int64_t size : getKernelShape())
    work.factor *= size;
  // Channels of a group are known where there are several.
  if (getGroup() == 1)
    work.sizes.emplace_back(getInput(), 1);
  else
    work.factor *= input.isDynamicDim(1) ? 0 : input.getDimSize(1) / getGroup();
  return work;
}

//===----------------------------------------------------------------------===//
// MaxPoolOp
//===----------------------------------------------------------------------===//

bool MaxPoolOp::isRoot() { return true; }
StringRef MaxPoolOp::getKernelName() { return "max_pool"; }

std::string MaxPoolOp::describeForm() {
  return describeWindow("max pool", *this);
}

DenseWork MaxPoolOp::countFlops() {
  DenseWork work{1};
  work.multiplyAllDims(getInit());
  for (int64_t size : getKernelShape())
    work.factor *= size;
  return work;
}

//===----------------------------------------------------------------------===//
// Packings
//===----------------------------------------------------------------------===//

bool PackRhsOp::isPacking() { return true; }
bool PackConvWeightsOp::replacesWeights() { return true; }
