//===- Objects.h - From the llvm dialect to objects -------------*- C++ -*-===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef SARDONYX_OBJECTS_OBJECTS_H
#define SARDONYX_OBJECTS_OBJECTS_H

#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/DialectRegistry.h"
#include "llvm/Support/Error.h"
#include "llvm/Support/MemoryBuffer.h"

#include <atomic>
#include <memory>
#include <string>
#include <vector>

namespace llvm {
class Module;
} // namespace llvm

namespace sardonyx {

/// The processor to compile for and how.
struct TargetOptions {
  /// The machine, "aarch64-linux-gnu"; empty: this one.
  std::string triple;
  /// Name in LLVM's spelling ("znver4", "x86-64-v3"); empty: this machine's, or
  /// what all of another machine's processors have.
  std::string cpu;
  /// "+avx2,-avx512f,..."; empty with an empty `cpu`: what this machine has.
  std::string features;
  /// The device beside the processor that kernels are for, "sm_90a"; empty:
  /// what the target takes for granted.
  std::string device;
  /// 0 to 3. Kernels are vectorised before, so 1 is enough.
  unsigned optLevel = 1;
  /// Threads to compile on, at most as many as there are cores; 0: so many.
  unsigned threads = 0;
  /// Where it becomes true, compiling fails soon after.
  const std::atomic<bool> *stop = nullptr;
};

/// `options` with the names of this machine's processor filled in.
TargetOptions resolveTarget(TargetOptions options);

/// Asks the system, once for a process, for the tile registers of AMX, which
/// code made for a processor that has them may use. False where there are none,
/// or where it refuses: then they are no features of this machine, either.
bool requestTileRegisters();

/// The features that a processor must have to run code made for the target,
/// "avx2,fma", of those that runtime::missingFeatures() knows.
llvm::Expected<std::string> requiredFeatures(const TargetOptions &options);

/// Gives each function that `module`, of the llvm dialect, defines and others
/// may see the name `prefix` + its own.
void prefixSymbols(mlir::ModuleOp module, llvm::StringRef prefix);

/// A string that identifies the processor and the options, for cache keys.
std::string describeTarget(const TargetOptions &options);

/// Registers what the translation of the llvm dialect needs. Call before the
/// context of the modules given to `compileToObjects` is made.
void registerTargetTranslations(mlir::DialectRegistry &registry);

/// LLVM makes no code of a function for a processor.
class CodegenFailure : public llvm::ErrorInfo<CodegenFailure> {
public:
  static char ID;
  explicit CodegenFailure(std::string reason, std::string function = "")
      : text(std::move(reason)), found(std::move(function)) {}

  /// What LLVM says, which may be many lines.
  const std::string &reason() const { return text; }
  /// The function that has no code, as was found or as LLVM says; empty where
  /// none is known, and where the processor has no code for any.
  llvm::StringRef function() const;

  void log(llvm::raw_ostream &os) const override;
  std::error_code convertToErrorCode() const override {
    return llvm::inconvertibleErrorCode();
  }

private:
  std::string text, found;
};

/// Compiles a module of the llvm dialect (after `sdx-finalize-host`) to ELF
/// objects that are to be linked together: the host program is one, the
/// kernels are spread over the others, and all are compiled in parallel. Fails
/// by a CodegenFailure where LLVM would end the process.
llvm::Expected<std::vector<std::unique_ptr<llvm::MemoryBuffer>>>
compileToObjects(mlir::ModuleOp module, const TargetOptions &options);

/// An object of globals that are data, for the machine of `options`, whose
/// layout and triple the module gets.
llvm::Expected<std::unique_ptr<llvm::MemoryBuffer>>
compileData(llvm::Module &module, const TargetOptions &options);

/// The assembly of `module` for a person to read.
llvm::Expected<std::string> compileToAssembly(mlir::ModuleOp module,
                                              const TargetOptions &options);

} // namespace sardonyx

#endif // SARDONYX_OBJECTS_OBJECTS_H
