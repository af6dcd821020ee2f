//===- QuantizeModel.h - The parts of onnx-quantize -------------*- C++ -*-===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef SARDONYX_LIB_TRANSFORMS_QUANTIZE_QUANTIZEMODEL_H
#define SARDONYX_LIB_TRANSFORMS_QUANTIZE_QUANTIZEMODEL_H

#include "QuantizationPlan.h"
#include "WeightMath.h"

namespace sardonyx {

/// Writes a plan into a model, as pairs of QuantizeLinear and
/// DequantizeLinear. Fails with an error of `root`.
mlir::LogicalResult quantizeByPlan(mlir::Operation *root,
                                   const QuantizationPlan &plan);

/// Has a MatMul or Gemm round its input to bytes as it comes and multiply it by
/// weights of i8, one scale for each of their columns, if its weights are a
/// matrix of f32; false for others.
bool quantizeDynamically(const WeightedOp &layer);

/// Stores the weights of a layer as integers of `bits`. Scales are those of
/// blocks of as many inputs, or where a window is, of each output (block 0,
/// too). False where blocks do not fit.
bool quantizeWeights(const WeightedOp &layer, unsigned bits, int64_t block);

} // namespace sardonyx

#endif // SARDONYX_LIB_TRANSFORMS_QUANTIZE_QUANTIZEMODEL_H
