//===- Devices.h - Tensors on devices ---------------------------*- C++ -*-===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// For callers that keep inputs and results on a GPU between runs. Devices are
// numbered as CUDA's driver does, which is loaded by the first call.
//
//===----------------------------------------------------------------------===//

#ifndef SARDONYX_SESSION_DEVICES_H
#define SARDONYX_SESSION_DEVICES_H

#include "sardonyx/Model/Error.h"
#include "sardonyx/Model/Export.h"
#include "sardonyx/Model/Values.h"
#include <cstdint>
#include <string>
#include <vector>

namespace sardonyx {

/// Why this process can use no CUDA device, or, with `needsCode`, why no
/// session can. Nothing where it can; it does not look at a device closely: one
/// may still be refused.
SARDONYX_API MaybeError findCudaProblem(bool needsCode);

/// How many CUDA devices the driver finds; 0 where there is none.
SARDONYX_API int countCudaDevices();

/// A device and its peaks at the clocks that the driver tells: operations a
/// second of f32, and of f16 with sums in f32 by the tensor cores, and bytes a
/// second of its memory.
struct CudaDevice {
  std::string name;
  /// What sessions make code for, DeviceOptions::architecture: "sm_90a".
  std::string architecture;
  int multiprocessors;
  int64_t memoryBytes;
  double flops, tensorFlops, bytes;
};
SARDONYX_API Expected<CudaDevice> describeCudaDevice(int device);

/// A tensor on a device, whose elements are not set.
SARDONYX_API Expected<Tensor>
allocateOnCuda(ElementType type, std::vector<int64_t> shape, int device);

/// The number of the device that the memory at an address is of, or kHost.
SARDONYX_API Expected<int> findCudaDevice(const void *address);

/// Copies bytes between places, each a device's number or kHost, at least one
/// of them no host's. What the process's default stream has to do comes before,
/// and the bytes are there when the function returns.
SARDONYX_API MaybeError copyOnCuda(void *target, int targetPlace,
                                   const void *source, int sourcePlace,
                                   int64_t bytes);

/// Waits until a stream of the device (CUstream; null: the default one) has
/// nothing to do.
SARDONYX_API MaybeError synchronizeCuda(int device, void *stream = nullptr);

} // namespace sardonyx

#endif // SARDONYX_SESSION_DEVICES_H
