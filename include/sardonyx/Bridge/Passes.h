//===- Passes.h - Passes that ask the onnx library --------------*- C++ -*-===//

#ifndef SARDONYX_BRIDGE_PASSES_H
#define SARDONYX_BRIDGE_PASSES_H

#include "dialects/ONNX/ONNX.h"
#include "mlir/Pass/Pass.h"

#include <functional>
#include <memory>

namespace sardonyx {

#define GEN_PASS_DECL
#include "sardonyx/Bridge/Passes.h.inc"

/// onnx-expand-functions with a predicate in place of its lists: expands each
/// op that has a function body and for which `shouldExpand` holds.
std::unique_ptr<mlir::Pass>
createOnnxExpandFunctions(std::function<bool(mlir::Operation *)> shouldExpand);

#define GEN_PASS_REGISTRATION
#include "sardonyx/Bridge/Passes.h.inc"

} // namespace sardonyx

#endif // SARDONYX_BRIDGE_PASSES_H
