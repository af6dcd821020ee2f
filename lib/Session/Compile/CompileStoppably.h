//===- CompileStoppably.h - Compiling that can be ended ---------*- C++ -*-===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef SARDONYX_LIB_SESSION_COMPILE_COMPILESTOPPABLY_H
#define SARDONYX_LIB_SESSION_COMPILE_COMPILESTOPPABLY_H

#include "lib/Session/Compile/StoppableWork.h"
#include "sardonyx/Model/Artifact.h"
#include "sardonyx/Session/Compile.h"

namespace sardonyx {

struct AheadOfTime;

/// compileModel() by runStoppably(). The compiler stops before its next pass.
Expected<Artifact> compileStoppably(const ModelSource &model,
                                    const SessionOptions &options,
                                    std::vector<Timing> &timings, bool mayDefer,
                                    AheadOfTime *ahead = nullptr);

} // namespace sardonyx

#endif // SARDONYX_LIB_SESSION_COMPILE_COMPILESTOPPABLY_H
