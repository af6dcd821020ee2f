//===- Butterflies.h - Transforms of lengths of small factors ---*- C++ -*-===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef SARDONYX_LIB_CONVERSION_ONNXTOLINALG_SIGNAL_BUTTERFLIES_H
#define SARDONYX_LIB_CONVERSION_ONNXTOLINALG_SIGNAL_BUTTERFLIES_H

#include "Signal/Fourier.h"

namespace sardonyx {

Complex reshape(TensorBuilder &b, Complex x,
                llvm::ArrayRef<mlir::OpFoldResult> sizes);
Complex add(TensorBuilder &b, Complex x, Complex y);
Complex multiply(TensorBuilder &b, Complex x, Complex y);

/// exp(+-2 pi i k / n) in f64 for indices 0 <= k < n; + for the inverse.
Complex rootOfUnity(TensorBuilder &b, mlir::Value k, mlir::Value n,
                    bool inverse);

/// The parts [N, P, W, T] of lines as the first stage takes them, [1, N, C].
Complex asStage(TensorBuilder &b, Complex lines);

/// One stage on [K, factor * rest, C], the K bins of the stages before:
///   y[k, K, p, q] = exp(-+2 pi i p k / (rest * factor)) *
///                   sum_j exp(-+2 pi i j k / factor) x[K, j, p, q]
/// as [factor * K, rest, C]: so the bins come out in their order. The factor is
/// 4 or a prime of which there is a butterfly.
Complex transformStage(TensorBuilder &b, Complex x, int64_t factor,
                       bool inverse);

/// Whether no prime factor of a length is larger than 13.
bool hasButterflies(int64_t length);

/// The width of lines of such a length beside `columns` others, if that is
/// known: that of a matrix whose columns and then rows are transformed, or 1.
int64_t getRowLength(int64_t length, std::optional<int64_t> columns);

/// The transforms, in their type, of lines of that width; not divided by the
/// length. A width that isn't 1 is another afterwards.
Lines transformByButterflies(TensorBuilder &b, const Lines &x, bool inverse);

} // namespace sardonyx

#endif // SARDONYX_LIB_CONVERSION_ONNXTOLINALG_SIGNAL_BUTTERFLIES_H
