//===- ONNXToLinalg.h - Lower the onnx dialect to linalg --------*- C++ -*-===//

#ifndef SARDONYX_CONVERSION_ONNXTOLINALG_H
#define SARDONYX_CONVERSION_ONNXTOLINALG_H

#include "mlir/Transforms/DialectConversion.h"
#include "llvm/ADT/StringRef.h"

namespace sardonyx {

/// All patterns of the conversion.
void populateONNXToLinalgPatterns(const mlir::TypeConverter &converter,
                                  mlir::RewritePatternSet &patterns);

/// Whether some pattern lowers operations of this name ("onnx.Softmax"); those
/// that have none may be expanded to their function body first.
bool hasLinalgLowering(llvm::StringRef operationName);

} // namespace sardonyx

#endif // SARDONYX_CONVERSION_ONNXTOLINALG_H
