//===- Random.h - Random numbers --------------------------------*- C++ -*-===//

#ifndef SARDONYX_LIB_CONVERSION_ONNXTOLINALG_RANDOM_H
#define SARDONYX_LIB_CONVERSION_ONNXTOLINALG_RANDOM_H

#include "mlir/Transforms/DialectConversion.h"

namespace sardonyx {

void populateRandomPatterns(const mlir::TypeConverter &,
                            mlir::RewritePatternSet &);

} // namespace sardonyx

#endif // SARDONYX_LIB_CONVERSION_ONNXTOLINALG_RANDOM_H
