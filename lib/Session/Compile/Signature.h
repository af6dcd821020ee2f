//===- Signature.h - What a module says about its model ---------*- C++ -*-===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef SARDONYX_LIB_SESSION_COMPILE_SIGNATURE_H
#define SARDONYX_LIB_SESSION_COMPILE_SIGNATURE_H

#include "mlir/IR/BuiltinOps.h"
#include "sardonyx/Model/Artifact.h"

#include "sardonyx/Model/Error.h"
#include <map>

namespace sardonyx {

/// Reads inputs, outputs and metadata from an imported module. `asDeclared`:
/// sizes of outputs that only a run tells are those that the model declares,
/// which nobody has checked.
MaybeError readSignature(mlir::ModuleOp module, Artifact &artifact,
                         bool asDeclared = true);

/// Takes the names off the dimensions of a module's inputs, so that none counts
/// as equal to another.
void forgetDimNames(mlir::ModuleOp module);

/// Lists the files that weights of an imported module come from. Those that get
/// folded away count too: the compiled model holds for these files only.
MaybeError readSourceFiles(mlir::ModuleOp module, const std::string &modelPath,
                           Artifact &artifact);

/// The paths of files beside the model's own.
std::vector<std::string> pathsOf(const std::vector<SourceFile> &files);

/// What becomes of a name of dimensions that no input has: nothing, where an
/// input was given another shape, say.
enum class UnknownDims { AreErrors, AreTold, AreIgnored };

/// Gives named dimensions of the inputs the sizes in `dims`, in the module and
/// in the signature; type inference carries them through the graph.
MaybeError fixDims(mlir::ModuleOp module,
                   const std::map<std::string, int64_t> &dims,
                   Artifact &artifact, UnknownDims unknown);

/// Reads the arguments of @main and @init, constants included, from a module
/// after Phase::Kernels. Constants in `modelPath`, or within `modelBytes`,
/// refer to the model itself.
MaybeError readArguments(mlir::ModuleOp module, const std::string &modelPath,
                         llvm::StringRef modelBytes, Artifact &artifact);

} // namespace sardonyx

#endif // SARDONYX_LIB_SESSION_COMPILE_SIGNATURE_H
