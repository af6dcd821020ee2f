//===- Patterns.h - The families of lowerings -------------------*- C++ -*-===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef SARDONYX_LIB_CONVERSION_ONNXTOLINALG_SUPPORT_PATTERNS_H
#define SARDONYX_LIB_CONVERSION_ONNXTOLINALG_SUPPORT_PATTERNS_H

#include "mlir/Transforms/DialectConversion.h"

namespace sardonyx {

// One line for each family, which adds its rows; ConvertONNXToLinalg.cpp calls
// each, but those that another family calls.
#define SARDONYX_POPULATE(NAME)                                                \
  void populate##NAME##Patterns(const mlir::TypeConverter &,                   \
                                mlir::RewritePatternSet &)
SARDONYX_POPULATE(CustomOp);
SARDONYX_POPULATE(Random);
SARDONYX_POPULATE(Structural);
// Contraction
SARDONYX_POPULATE(Det);
SARDONYX_POPULATE(Einsum);
SARDONYX_POPULATE(IntegerMatMul);
SARDONYX_POPULATE(Inverse);
SARDONYX_POPULATE(MatMul);
SARDONYX_POPULATE(MatMulNBits);
// ControlFlow
SARDONYX_POPULATE(ControlFlow);
SARDONYX_POPULATE(Scan);
// Elementwise
SARDONYX_POPULATE(Activation);
SARDONYX_POPULATE(Cast);
SARDONYX_POPULATE(Elementwise);
SARDONYX_POPULATE(Optimizer);
SARDONYX_POPULATE(Quantization);
SARDONYX_POPULATE(Rotary);
// Handles
SARDONYX_POPULATE(ImageDecoder);
SARDONYX_POPULATE(Sequence);
SARDONYX_POPULATE(String);
SARDONYX_POPULATE(TfIdf);
SARDONYX_POPULATE(Token);
// Learned
SARDONYX_POPULATE(MLFeature);
SARDONYX_POPULATE(MLLookup);
SARDONYX_POPULATE(MLMap);
SARDONYX_POPULATE(MLSupportVector);
SARDONYX_POPULATE(MLTree);
// Movement
SARDONYX_POPULATE(ByPlace);
SARDONYX_POPULATE(Gather);
SARDONYX_POPULATE(GridSample);
SARDONYX_POPULATE(Resize);
SARDONYX_POPULATE(Scatter);
SARDONYX_POPULATE(Select);
SARDONYX_POPULATE(Slice);
SARDONYX_POPULATE(TensorScatter);
SARDONYX_POPULATE(View);
// Ordering
SARDONYX_POPULATE(NonMaxSuppression);
SARDONYX_POPULATE(Sorting);
SARDONYX_POPULATE(Unique);
// Recurrent
SARDONYX_POPULATE(GRU);
SARDONYX_POPULATE(LSTM);
// Reduction
SARDONYX_POPULATE(ArgReduction);
SARDONYX_POPULATE(BatchNorm);
SARDONYX_POPULATE(Cumulative);
SARDONYX_POPULATE(Normalization);
SARDONYX_POPULATE(Reduction);
SARDONYX_POPULATE(Softmax);
// Signal
SARDONYX_POPULATE(Fourier);
SARDONYX_POPULATE(MelWeight);
SARDONYX_POPULATE(TimeWarping);
// Support
SARDONYX_POPULATE(ShapeArithmetic);
// Window
SARDONYX_POPULATE(Conv);
SARDONYX_POPULATE(ConvTranspose);
SARDONYX_POPULATE(DeformConv);
SARDONYX_POPULATE(IntegerConv);
SARDONYX_POPULATE(MaxPool);
SARDONYX_POPULATE(Pool);
SARDONYX_POPULATE(RoiPool);
SARDONYX_POPULATE(Unpool);
#undef SARDONYX_POPULATE

} // namespace sardonyx

#endif // SARDONYX_LIB_CONVERSION_ONNXTOLINALG_SUPPORT_PATTERNS_H
