//===- RunningSums.h - Sums up to each element ------------------*- C++ -*-===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef SARDONYX_LIB_CONVERSION_ONNXTOLINALG_REDUCTION_RUNNINGSUMS_H
#define SARDONYX_LIB_CONVERSION_ONNXTOLINALG_REDUCTION_RUNNINGSUMS_H

#include "Support/TensorBuilder.h"

namespace sardonyx {

/// The sums of a list of i64 up to each element, this one included.
mlir::Value sumUpToEach(TensorBuilder &b, mlir::Value list);

/// The last of such sums, an index; 0 where there is none. The host reads it.
mlir::Value lastSum(TensorBuilder &b, mlir::Value sums);

} // namespace sardonyx

#endif // SARDONYX_LIB_CONVERSION_ONNXTOLINALG_REDUCTION_RUNNINGSUMS_H
