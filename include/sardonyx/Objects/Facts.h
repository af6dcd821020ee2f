//===- Facts.h - What is known of processors --------------------*- C++ -*-===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef SARDONYX_OBJECTS_FACTS_H
#define SARDONYX_OBJECTS_FACTS_H

#include "dialects/CPU/CPU.h"
#include "sardonyx/Objects/Objects.h"

#include "llvm/ADT/StringMap.h"

namespace sardonyx {

/// LLVM's `guess` of a processor's name, or the name of the one that must be
/// behind it: hypervisors give model numbers of older ones, but hide no
/// `features`. AVX512-FP16 came with Sapphire Rapids, PREFETCHIT with Granite
/// Rapids. With the name go the sizes of its caches.
std::string nameProcessor(llvm::StringRef guess,
                          const llvm::StringMap<bool> &features);

/// Whether tile registers multiply at one rate, whatever a core did before: on
/// a Sapphire Rapids it was at times a third, for minutes, on a Granite Rapids
/// always the whole one (docs/performance/HowItWorks.md).
bool keepsTileRate(llvm::StringRef cpu);

/// The target's processor, from its features and, what these do not tell, from
/// tables by its name: the same wherever it is asked for. The context must have
/// loaded the cpu dialect.
cpu::TargetAttr getTargetAttr(mlir::MLIRContext *context,
                              const TargetOptions &options);

/// The options that a target attribute was made of, as far as it holds them.
TargetOptions getTargetOptions(cpu::TargetAttr target);

} // namespace sardonyx

#endif // SARDONYX_OBJECTS_FACTS_H
