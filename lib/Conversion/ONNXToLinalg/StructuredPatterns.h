//===- StructuredPatterns.h - Families built with TensorBuilder -*- C++ -*-===//

#ifndef SARDONYX_LIB_CONVERSION_ONNXTOLINALG_STRUCTUREDPATTERNS_H
#define SARDONYX_LIB_CONVERSION_ONNXTOLINALG_STRUCTUREDPATTERNS_H

#include "mlir/Transforms/DialectConversion.h"

namespace sardonyx {

#define SARDONYX_POPULATE(NAME)                                                \
  void populate##NAME##Patterns(const mlir::TypeConverter &,                   \
                                mlir::RewritePatternSet &)
SARDONYX_POPULATE(MatMul);
SARDONYX_POPULATE(IntegerMatMul);
SARDONYX_POPULATE(Einsum);
SARDONYX_POPULATE(Det);
SARDONYX_POPULATE(Rotary);
SARDONYX_POPULATE(Conv);
SARDONYX_POPULATE(IntegerConv);
SARDONYX_POPULATE(ConvTranspose);
SARDONYX_POPULATE(Pool);
SARDONYX_POPULATE(MaxPool);
SARDONYX_POPULATE(Unpool);
SARDONYX_POPULATE(LSTM);
SARDONYX_POPULATE(GRU);
SARDONYX_POPULATE(Resize);
SARDONYX_POPULATE(GridSample);
SARDONYX_POPULATE(RoiPool);
SARDONYX_POPULATE(DeformConv);
SARDONYX_POPULATE(MelWeight);
SARDONYX_POPULATE(TensorScatter);
SARDONYX_POPULATE(NonMaxSuppression);
SARDONYX_POPULATE(Unique);
SARDONYX_POPULATE(Fourier);
SARDONYX_POPULATE(Optimizer);
SARDONYX_POPULATE(TfIdf);
SARDONYX_POPULATE(ImageDecoder);
/// All of the above.
SARDONYX_POPULATE(Structured);
#undef SARDONYX_POPULATE

} // namespace sardonyx

#endif // SARDONYX_LIB_CONVERSION_ONNXTOLINALG_STRUCTUREDPATTERNS_H
