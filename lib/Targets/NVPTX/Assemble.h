//===- Assemble.h - PTX to machine code by ptxas ----------------*- C++ -*-===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef SARDONYX_TARGETS_NVPTX_ASSEMBLE_H
#define SARDONYX_TARGETS_NVPTX_ASSEMBLE_H

#include "sardonyx/Targets/Target.h"

namespace sardonyx::nv {

/// Has CUDA's ptxas make a cubin of an image of PTX. It is looked for as
/// `options` name it, then where SARDONYX_PTXAS says ("none": nowhere), in bin
/// of CUDA_HOME and CUDA_PATH, along PATH, and in PyPI's nvidia-cuda-nvcc where
/// that lies beside this library. One that was named must be there.
llvm::Expected<std::optional<Image>> assemble(const Image &image,
                                              const AssembleOptions &options);

} // namespace sardonyx::nv

#endif // SARDONYX_TARGETS_NVPTX_ASSEMBLE_H
