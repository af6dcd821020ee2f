//===- Fourier.h - Discrete Fourier transforms ------------------*- C++ -*-===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef SARDONYX_LIB_CONVERSION_ONNXTOLINALG_SIGNAL_FOURIER_H
#define SARDONYX_LIB_CONVERSION_ONNXTOLINALG_SIGNAL_FOURIER_H

#include "Support/TensorBuilder.h"

namespace sardonyx {

/// The parts of complex numbers: two scalars, or tensors of one shape.
struct Complex {
  mlir::Value re, im;
};

/// P times T lines of N numbers, as [N / width, P, width, T]: number n of line
/// (p, t) is at (n / width, p, n % width, t). Stages of a transform are over
/// the first dimension and find the others side by side.
struct Lines {
  Complex parts;
  int64_t width = 1;

  mlir::OpFoldResult length(TensorBuilder &b) const;
  /// The place of number n of line (p, t).
  llvm::SmallVector<mlir::Value> place(TensorBuilder &b, mlir::Value n,
                                       mlir::Value p, mlir::Value t) const;
};

/// Computes `count` numbers of each of P times T lines, as lines of a width
/// that divides the count where it isn't 1.
Lines makeLines(TensorBuilder &b, mlir::OpFoldResult p,
                mlir::OpFoldResult count, mlir::OpFoldResult t, int64_t width,
                mlir::Type type,
                llvm::function_ref<Complex(TensorBuilder &, mlir::Value n,
                                           mlir::Value p, mlir::Value t)>
                    body);

/// How a transform of some length wants its lines.
struct TransformForm {
  /// f32 or f64.
  mlir::Type type;
  int64_t width = 1;

  /// For lines of numbers of a float type beside `columns` others.
  static TransformForm of(mlir::OpFoldResult length, mlir::OpFoldResult columns,
                          mlir::Type type, bool inverse);
};

/// The transforms of lines of the form for their length; not divided by it. The
/// width may be another.
Lines transform(TensorBuilder &b, const Lines &x, bool inverse);

} // namespace sardonyx

#endif // SARDONYX_LIB_CONVERSION_ONNXTOLINALG_SIGNAL_FOURIER_H
