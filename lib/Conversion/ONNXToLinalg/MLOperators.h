//===- MLOperators.h - The operators of ai.onnx.ml --------------*- C++ -*-===//

#ifndef SARDONYX_LIB_CONVERSION_ONNXTOLINALG_MLOPERATORS_H
#define SARDONYX_LIB_CONVERSION_ONNXTOLINALG_MLOPERATORS_H

#include "mlir/Transforms/DialectConversion.h"

namespace sardonyx {

void populateMLLookupPatterns(const mlir::TypeConverter &,
                              mlir::RewritePatternSet &);
void populateMLFeaturePatterns(const mlir::TypeConverter &,
                               mlir::RewritePatternSet &);
void populateMLMapPatterns(const mlir::TypeConverter &,
                           mlir::RewritePatternSet &);
void populateMLSupportVectorPatterns(const mlir::TypeConverter &,
                                     mlir::RewritePatternSet &);
void populateMLTreePatterns(const mlir::TypeConverter &,
                            mlir::RewritePatternSet &);

} // namespace sardonyx

#endif // SARDONYX_LIB_CONVERSION_ONNXTOLINALG_MLOPERATORS_H
