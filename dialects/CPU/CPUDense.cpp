//===- CPUDense.cpp - What passes ask of packed operations ----------------===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "dialects/CPU/CPU.h"
#include "dialects/SDX/SDXDps.h"

using namespace mlir;
using namespace sardonyx;
using namespace sardonyx::cpu;
using sdx::DenseWork;

//===----------------------------------------------------------------------===//
// PackedMatmulOp
//===----------------------------------------------------------------------===//

bool PackedMatmulOp::isRoot() { return true; }
bool PackedMatmulOp::isContraction() { return true; }
StringRef PackedMatmulOp::getKernelName() { return "matmul"; }

std::string PackedMatmulOp::describeForm() {
  switch (getPacking().getElement()) {
  case PackedElement::F32:
    return "product";
  case PackedElement::BF16:
    return "product of bf16";
  case PackedElement::F16:
    return "product of f16 weights";
  case PackedElement::I8:
  case PackedElement::I16:
    return "product of bytes";
  case PackedElement::W24:
    return "product of 24-bit weights";
  case PackedElement::W21:
    return "product of 21-bit weights";
  default:
    return "product of " + std::to_string(getPacking().getBits()) +
           "-bit weights";
  }
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
  std::string text =
      sdx::describeConv({getKernelShape(), getStrides(), getDilations(),
                         getPadsBegin(), getPadsEnd()},
                        getGroup());
  if (int64_t side = getFilters().getWinograd())
    text += ", winograd " + sdx::describeSizes({side, side});
  if (hasSplitWeights())
    text += ", parts of bf16";
  return text;
}

DenseWork ConvOp::countFlops() {
  return sdx::countConvFlops(getInput(), getInit(), getKernelShape(),
                             getGroup());
}

//===----------------------------------------------------------------------===//
// Packings
//===----------------------------------------------------------------------===//

bool PackRhsOp::isPacking() { return true; }
bool PackConvWeightsOp::replacesWeights() { return true; }
