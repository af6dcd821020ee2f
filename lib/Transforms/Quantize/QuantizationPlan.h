//===- QuantizationPlan.h - What a quantisation decides ---------*- C++ -*-===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The plan of sardonyx.quantization (python/sardonyx/quantization/plan.py tells
// its format), as JSON.
//
//===----------------------------------------------------------------------===//

#ifndef SARDONYX_LIB_TRANSFORMS_QUANTIZE_QUANTIZATIONPLAN_H
#define SARDONYX_LIB_TRANSFORMS_QUANTIZE_QUANTIZATIONPLAN_H

#include "mlir/IR/BuiltinTypes.h"
#include "llvm/Support/Error.h"
#include "llvm/Support/JSON.h"

#include <map>
#include <optional>
#include <string>
#include <vector>

namespace sardonyx {

/// How one tensor is stored.
struct TensorPlan {
  enum class Role { Activation, Weight, Bias } role = Role::Activation;
  /// Integers of 2 to 32 bits or floats of 8; null of a bias that stays float.
  mlir::Type type;
  /// The type of the scales.
  mlir::FloatType floatType;
  /// One number, one for each index of `axis`, or one for each block. Empty
  /// where the plan has none.
  std::vector<double> scale;
  std::vector<int64_t> zeroPoint;
  /// The shape of both.
  llvm::SmallVector<int64_t> shape;
  std::optional<int64_t> axis;
  int64_t block = 0;
  /// Of a bias: what it is stored times, and its Gemm no longer multiplies by.
  double beta = 1;
  /// The tensor whose parameters are also this one's; "" if it has its own.
  std::string shares;
};

struct QuantizationPlan {
  /// By name.
  std::map<std::string, TensorPlan> tensors;
  /// Nodes that do nothing any more, since ranges do their work.
  std::vector<std::string> removed;

  /// Reads a plan; the error says in a sentence what is wrong with it.
  static llvm::Expected<QuantizationPlan> parse(llvm::StringRef json,
                                                mlir::MLIRContext *context);
  static llvm::Expected<QuantizationPlan> load(llvm::StringRef path,
                                               mlir::MLIRContext *context);
};

} // namespace sardonyx

#endif // SARDONYX_LIB_TRANSFORMS_QUANTIZE_QUANTIZATIONPLAN_H
