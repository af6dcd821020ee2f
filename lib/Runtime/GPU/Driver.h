//===- Driver.h - CUDA's driver, loaded at run time -------------*- C++ -*-===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Nothing is linked with CUDA: a process that uses no GPU loads no driver, and
// one on a machine without a driver is told so.
//
//===----------------------------------------------------------------------===//

#ifndef SARDONYX_LIB_RUNTIME_GPU_DRIVER_H
#define SARDONYX_LIB_RUNTIME_GPU_DRIVER_H

#include "lib/Runtime/GPU/CUDATypes.h"
#include "lib/Runtime/GPU/Result.h"
#include <memory>
#include <string>

namespace sardonyx {
namespace cuda {

/// A pointer for each function of CUDAFunctions.def; null for later ones that
/// the driver lacks.
struct Functions {
#define SARDONYX_CUDA_FUNCTION(name, parameters)                               \
  CUresult(*name) parameters = nullptr;
#include "lib/Runtime/GPU/CUDAFunctions.def"
};

} // namespace cuda

namespace runtime {
namespace gpu {

/// The version of CUDA whose functions are asked for, in the driver's own
/// form: 1000 times the major version and 10 times the minor one.
constexpr int kCUDAVersion = 12000;

/// The functions of the driver. It stays loaded until the process ends, since
/// others may use it.
class Driver {
public:
  /// The driver of this process: the library that the environment variable
  /// SARDONYX_CUDA_DRIVER names, or libcuda.so.1. It is loaded by the first
  /// call; a failure is kept, too.
  static const Result<std::unique_ptr<Driver>> &get();

  /// Loads `library`, checks that it has all functions and is new enough, and
  /// initialises it.
  static Result<std::unique_ptr<Driver>> load(const std::string &library);

  const cuda::Functions &functions() const { return table; }
  /// The version of CUDA that the driver offers, in its own form.
  int version() const { return offered; }
  /// How many devices it finds, at least one.
  int countDevices() const { return devices; }
  /// The driver's text for a code and its name: "out of memory
  /// (CUDA_ERROR_OUT_OF_MEMORY)".
  std::string describe(cuda::CUresult code) const;

private:
  Driver() = default;
  MaybeFailure findFunctions(void *library, const std::string &name);
  MaybeFailure initialize(const std::string &name);

  cuda::Functions table;
  int offered = 0, devices = 0;
};

} // namespace gpu
} // namespace runtime
} // namespace sardonyx

#endif // SARDONYX_LIB_RUNTIME_GPU_DRIVER_H
