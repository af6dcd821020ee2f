//===- Fourier.h - Discrete Fourier transforms ------------------*- C++ -*-===//

#ifndef SARDONYX_LIB_CONVERSION_ONNXTOLINALG_SIGNAL_FOURIER_H
#define SARDONYX_LIB_CONVERSION_ONNXTOLINALG_SIGNAL_FOURIER_H

#include "Support/TensorBuilder.h"

namespace sardonyx {

/// The parts of complex numbers: two scalars, or tensors of one shape.
struct Complex {
  mlir::Value re, im;
};

/// The first `bins`, at least, of the transform of [P, N, T] along N, in f64;
/// not divided by N.
Complex transform(TensorBuilder &b, Complex x, mlir::OpFoldResult bins,
                  bool inverse);

} // namespace sardonyx

#endif // SARDONYX_LIB_CONVERSION_ONNXTOLINALG_SIGNAL_FOURIER_H
