//===- CustomOps.h - Operators that callers bring along ---------*- C++ -*-===//

#ifndef SARDONYX_LIB_CONVERSION_ONNXTOLINALG_CUSTOMOPS_H
#define SARDONYX_LIB_CONVERSION_ONNXTOLINALG_CUSTOMOPS_H

#include "mlir/Transforms/DialectConversion.h"

namespace sardonyx {

void populateCustomOpPatterns(const mlir::TypeConverter &,
                              mlir::RewritePatternSet &);

} // namespace sardonyx

#endif // SARDONYX_LIB_CONVERSION_ONNXTOLINALG_CUSTOMOPS_H
