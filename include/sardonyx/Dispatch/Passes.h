//===- Passes.h - From linalg to kernels and a host program -----*- C++ -*-===//

#ifndef SARDONYX_DISPATCH_PASSES_H
#define SARDONYX_DISPATCH_PASSES_H

#include "mlir/IR/BuiltinOps.h"
#include "mlir/Pass/Pass.h"

#include <memory>

namespace sardonyx {

#define GEN_PASS_DECL
#include "sardonyx/Dispatch/Passes.h.inc"

#define GEN_PASS_REGISTRATION
#include "sardonyx/Dispatch/Passes.h.inc"

} // namespace sardonyx

#endif // SARDONYX_DISPATCH_PASSES_H
