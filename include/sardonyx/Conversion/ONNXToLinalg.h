//===- ONNXToLinalg.h - Lower the onnx dialect to linalg --------*- C++ -*-===//

#ifndef SARDONYX_CONVERSION_ONNXTOLINALG_H
#define SARDONYX_CONVERSION_ONNXTOLINALG_H

#include "mlir/Transforms/DialectConversion.h"
#include "llvm/ADT/StringRef.h"

#include <string>
#include <vector>

namespace sardonyx {

/// All patterns of the conversion.
void populateONNXToLinalgPatterns(const mlir::TypeConverter &converter,
                                  mlir::RewritePatternSet &patterns);

/// The names ("onnx.Softmax") of all operations that have a lowering, sorted;
/// others should be expanded to their function bodies first.
std::vector<std::string> getLinalgLoweredOps();
bool hasLinalgLowering(llvm::StringRef operationName);

} // namespace sardonyx

#endif // SARDONYX_CONVERSION_ONNXTOLINALG_H
