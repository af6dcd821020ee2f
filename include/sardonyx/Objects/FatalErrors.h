//===- FatalErrors.h - Where LLVM would end the process ---------*- C++ -*-===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef SARDONYX_OBJECTS_FATALERRORS_H
#define SARDONYX_OBJECTS_FATALERRORS_H

#include "llvm/ADT/STLFunctionalExtras.h"
#include <optional>
#include <string>

namespace sardonyx {

/// Runs `work` on this thread. Where LLVM finds what it cannot go on with (an
/// instruction that a processor does not have, memory that there is none of),
/// it would print a line and end the process; here `work` ends, and the line is
/// the result. Nothing that `work` has on its stack is destroyed then: what it
/// holds is lost, and must be nobody else's.
///
/// Threads that `work` starts need a call of their own.
std::optional<std::string> recoverFatalErrors(llvm::function_ref<void()> work);

/// The same for LLVM's linker, which ends the process in ways of its own. For
/// as long as `work` takes, signals of this thread that stand for faults end
/// `work`, too. One thread at a time.
std::optional<std::string> recoverLinkerErrors(llvm::function_ref<void()> work);

} // namespace sardonyx

#endif // SARDONYX_OBJECTS_FATALERRORS_H
