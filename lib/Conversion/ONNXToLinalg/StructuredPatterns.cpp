//===- StructuredPatterns.cpp - Families built with TensorBuilder ---------===//

#include "StructuredPatterns.h"

namespace sardonyx {

void populateStructuredPatterns(const mlir::TypeConverter &converter,
                                mlir::RewritePatternSet &patterns) {
  populateMatMulPatterns(converter, patterns);
  populateIntegerMatMulPatterns(converter, patterns);
  populateEinsumPatterns(converter, patterns);
  populateDetPatterns(converter, patterns);
  populateRotaryPatterns(converter, patterns);
  populateConvPatterns(converter, patterns);
  populateIntegerConvPatterns(converter, patterns);
  populateConvTransposePatterns(converter, patterns);
  populatePoolPatterns(converter, patterns);
  populateMaxPoolPatterns(converter, patterns);
  populateUnpoolPatterns(converter, patterns);
  populateLSTMPatterns(converter, patterns);
  populateGRUPatterns(converter, patterns);
  populateResizePatterns(converter, patterns);
  populateGridSamplePatterns(converter, patterns);
  populateRoiPoolPatterns(converter, patterns);
  populateDeformConvPatterns(converter, patterns);
  populateMelWeightPatterns(converter, patterns);
  populateTensorScatterPatterns(converter, patterns);
  populateNonMaxSuppressionPatterns(converter, patterns);
  populateUniquePatterns(converter, patterns);
  populateFourierPatterns(converter, patterns);
  populateOptimizerPatterns(converter, patterns);
  populateTfIdfPatterns(converter, patterns);
  populateImageDecoderPatterns(converter, patterns);
}

} // namespace sardonyx
