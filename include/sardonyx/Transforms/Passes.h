//===- Passes.h - From onnx to onnx -----------------------------*- C++ -*-===//

#ifndef SARDONYX_TRANSFORMS_PASSES_H
#define SARDONYX_TRANSFORMS_PASSES_H

#include "dialects/ONNX/ONNX.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/Pass/Pass.h"

#include <memory>

namespace sardonyx {

#define GEN_PASS_DECL
#include "sardonyx/Transforms/Passes.h.inc"

#define GEN_PASS_REGISTRATION
#include "sardonyx/Transforms/Passes.h.inc"

} // namespace sardonyx

#endif // SARDONYX_TRANSFORMS_PASSES_H
