//===- Versions.h - The oldest version of an operator -----------*- C++ -*-===//

#ifndef SARDONYX_LIB_EXPORTER_VERSIONS_H
#define SARDONYX_LIB_EXPORTER_VERSIONS_H

#include "mlir/IR/Operation.h"

#include <onnx/onnx_pb.h>

namespace sardonyx::exporter {

/// Oldest version of the operator, down to 17, that means the same by `node`,
/// which was made from `op`. Later versions often add types only, and other
/// programs lag behind the newest operator sets.
int64_t oldestVersion(mlir::Operation *op, const ::onnx::NodeProto &node);

} // namespace sardonyx::exporter

#endif // SARDONYX_LIB_EXPORTER_VERSIONS_H
