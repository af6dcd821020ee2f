//===- DriverContext.cpp - The fake CUDA driver: device and context -------===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "tools/fakecuda/DriverState.h"
#include <algorithm>
#include <cstring>

using namespace sardonyx;
using namespace sardonyx::cuda;
using namespace sardonyx::fakecuda;

#define EXPORT extern "C" __attribute__((visibility("default")))

//===----------------------------------------------------------------------===//
// What the library exports
//===----------------------------------------------------------------------===//

EXPORT CUresult cuGetProcAddress_v2(const char *name, void **function,
                                    int version, cuuint64_t,
                                    CUdriverProcAddressQueryResult *found) {
  struct Entry {
    const char *name;
    void *function;
    int since;
  };
  static const Entry entries[] = {
#define SARDONYX_CUDA_FUNCTION(name, parameters)                               \
  {#name, reinterpret_cast<void *>(&sardonyx::cuda::name), 12000},
#define SARDONYX_CUDA_LATER_FUNCTION(name, since, parameters)                  \
  {#name, reinterpret_cast<void *>(&sardonyx::cuda::name), since},
#include "lib/Runtime/GPU/CUDAFunctions.def"
  };
  return DriverState::get().call("cuGetProcAddress", Needs::Nothing, [&] {
    if (!name || !function)
      return CUDA_ERROR_INVALID_VALUE;
    *function = nullptr;
    // The signatures are those of the version in which they came, or of 12.0.
    const int known = std::min(version, DriverState::get().settings().version);
    for (const Entry &entry : entries)
      if (!strcmp(entry.name, name) && known >= entry.since)
        *function = entry.function;
    if (found)
      *found = *function         ? CU_GET_PROC_ADDRESS_SUCCESS
               : version < 12000 ? CU_GET_PROC_ADDRESS_VERSION_NOT_SUFFICIENT
                                 : CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND;
    return *function ? CUDA_SUCCESS : CUDA_ERROR_NOT_FOUND;
  });
}

/// Also exported by its name, as drivers of all versions do.
EXPORT CUresult cuDriverGetVersion(int *version) {
  return sardonyx::cuda::cuDriverGetVersion(version);
}

/// The last fault as a sentence, for tests: empty if there was none. It stays
/// until the thread asks again.
EXPORT const char *sdxFakeCudaLastFault() {
  static thread_local std::string fault;
  fault = DriverState::get().lastFault();
  return fault.c_str();
}

//===----------------------------------------------------------------------===//
// Driver and errors
//===----------------------------------------------------------------------===//

CUresult cuda::cuInit(unsigned int flags) {
  DriverState &state = DriverState::get();
  return state.call("cuInit", Needs::Nothing, [&] {
    if (!state.settings().mistake.empty())
      return state.tell(CUDA_ERROR_INVALID_VALUE, state.settings().mistake);
    if (flags)
      return CUDA_ERROR_INVALID_VALUE;
    if (!state.settings().devices)
      return CUDA_ERROR_NO_DEVICE;
    state.isInitialized = true;
    return CUDA_SUCCESS;
  });
}

CUresult cuda::cuDriverGetVersion(int *version) {
  DriverState &state = DriverState::get();
  return state.call("cuDriverGetVersion", Needs::Nothing, [&] {
    if (!version)
      return CUDA_ERROR_INVALID_VALUE;
    *version = state.settings().version;
    return CUDA_SUCCESS;
  });
}

namespace {
struct ErrorText {
  CUresult code;
  const char *name, *text;
};
} // namespace

static const ErrorText *findError(CUresult code) {
#define ERROR(name, text)                                                      \
  {                                                                            \
    name, #name, text                                                          \
  }
  static const ErrorText errors[] = {
      ERROR(CUDA_SUCCESS, "no error"),
      ERROR(CUDA_ERROR_INVALID_VALUE, "invalid argument"),
      ERROR(CUDA_ERROR_OUT_OF_MEMORY, "out of memory"),
      ERROR(CUDA_ERROR_NOT_INITIALIZED, "initialization error"),
      ERROR(CUDA_ERROR_DEINITIALIZED, "driver shutting down"),
      ERROR(CUDA_ERROR_NO_DEVICE, "no CUDA-capable device is detected"),
      ERROR(CUDA_ERROR_INVALID_DEVICE, "invalid device ordinal"),
      ERROR(CUDA_ERROR_INVALID_IMAGE, "device kernel image is invalid"),
      ERROR(CUDA_ERROR_INVALID_CONTEXT, "invalid device context"),
      ERROR(CUDA_ERROR_NO_BINARY_FOR_GPU,
            "no kernel image is available for execution on the device"),
      ERROR(CUDA_ERROR_ECC_UNCORRECTABLE, "uncorrectable ECC error"),
      ERROR(CUDA_ERROR_INVALID_PTX, "a PTX JIT compilation failed"),
      ERROR(CUDA_ERROR_UNSUPPORTED_PTX_VERSION,
            "the provided PTX was compiled with an unsupported toolchain."),
      ERROR(CUDA_ERROR_INVALID_HANDLE, "invalid resource handle"),
      ERROR(CUDA_ERROR_NOT_FOUND, "named symbol not found"),
      ERROR(CUDA_ERROR_NOT_READY, "device not ready"),
      ERROR(CUDA_ERROR_ILLEGAL_ADDRESS,
            "an illegal memory access was encountered"),
      ERROR(CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES,
            "too many resources requested for launch"),
      ERROR(CUDA_ERROR_LAUNCH_TIMEOUT,
            "the launch timed out and was terminated"),
      ERROR(CUDA_ERROR_ASSERT, "device-side assert triggered"),
      ERROR(CUDA_ERROR_ILLEGAL_INSTRUCTION,
            "an illegal instruction was encountered"),
      ERROR(CUDA_ERROR_MISALIGNED_ADDRESS, "misaligned address"),
      ERROR(CUDA_ERROR_LAUNCH_FAILED, "unspecified launch failure"),
      ERROR(CUDA_ERROR_NOT_SUPPORTED, "operation not supported"),
      ERROR(CUDA_ERROR_UNKNOWN, "unknown error"),
  };
#undef ERROR
  for (const ErrorText &error : errors)
    if (error.code == code)
      return &error;
  return nullptr;
}

CUresult cuda::cuGetErrorName(CUresult code, const char **name) {
  const ErrorText *error = findError(code);
  *name = error ? error->name : nullptr;
  return error ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult cuda::cuGetErrorString(CUresult code, const char **text) {
  const ErrorText *error = findError(code);
  *text = error ? error->text : nullptr;
  return error ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

//===----------------------------------------------------------------------===//
// Device and context
//===----------------------------------------------------------------------===//

CUresult cuda::cuDeviceGetCount(int *count) {
  return DriverState::get().call(
      "cuDeviceGetCount", Needs::Initialization, [&] {
        *count = DriverState::get().settings().devices;
        return CUDA_SUCCESS;
      });
}

CUresult cuda::cuDeviceGet(CUdevice *device, int ordinal) {
  return DriverState::get().call("cuDeviceGet", Needs::Initialization, [&] {
    *device = ordinal;
    return ordinal == 0 ? CUDA_SUCCESS : CUDA_ERROR_INVALID_DEVICE;
  });
}

int fakecuda::sharedBytesOfMultiprocessor(int sm) {
  return sm == 80 ? 164 << 10 : sm < 90 ? 100 << 10 : 228 << 10;
}

CUresult cuda::cuDeviceGetAttribute(int *value, CUdevice_attribute attribute,
                                    CUdevice device) {
  DriverState &state = DriverState::get();
  return state.call("cuDeviceGetAttribute", Needs::Initialization, [&] {
    int sm = state.settings().sm;
    if (device != 0)
      return CUDA_ERROR_INVALID_DEVICE;
    switch (attribute) {
    case CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK:
      *value = 1024;
      return CUDA_SUCCESS;
    case CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK:
      *value = 48 << 10;
      return CUDA_SUCCESS;
    case CU_DEVICE_ATTRIBUTE_WARP_SIZE:
      *value = 32;
      return CUDA_SUCCESS;
    case CU_DEVICE_ATTRIBUTE_CLOCK_RATE:
      *value = 1'500'000; // kHz
      return CUDA_SUCCESS;
    case CU_DEVICE_ATTRIBUTE_MEMORY_CLOCK_RATE:
      *value = 2'500'000;
      return CUDA_SUCCESS;
    case CU_DEVICE_ATTRIBUTE_GLOBAL_MEMORY_BUS_WIDTH:
      *value = 5120; // bits
      return CUDA_SUCCESS;
    case CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT:
      *value = 132;
      return CUDA_SUCCESS;
    case CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE:
      *value = 50 << 20;
      return CUDA_SUCCESS;
    case CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR:
      *value = 2048;
      return CUDA_SUCCESS;
    case CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR:
      *value = sm / 10;
      return CUDA_SUCCESS;
    case CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR:
      *value = sm % 10;
      return CUDA_SUCCESS;
    case CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR:
      *value = sharedBytesOfMultiprocessor(sm);
      return CUDA_SUCCESS;
    case CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN:
      // The system keeps 1 KB of each block.
      *value = sharedBytesOfMultiprocessor(sm) - 1024;
      return CUDA_SUCCESS;
    }
    return state.tell(CUDA_ERROR_INVALID_VALUE, "device attribute " +
                                                    std::to_string(attribute) +
                                                    " is not known");
  });
}

CUresult cuda::cuDeviceGetName(char *name, int length, CUdevice device) {
  return DriverState::get().call("cuDeviceGetName", Needs::Initialization, [&] {
    if (device != 0)
      return CUDA_ERROR_INVALID_DEVICE;
    if (length <= 0)
      return CUDA_ERROR_INVALID_VALUE;
    std::string text = "Sardonyx fake CUDA device";
    text.resize(std::min(text.size(), static_cast<size_t>(length) - 1));
    memcpy(name, text.c_str(), text.size() + 1);
    return CUDA_SUCCESS;
  });
}

CUresult cuda::cuDeviceTotalMem(size_t *bytes, CUdevice device) {
  return DriverState::get().call(
      "cuDeviceTotalMem", Needs::Initialization, [&] {
        *bytes = DriverState::get().settings().memoryBytes;
        return device == 0 ? CUDA_SUCCESS : CUDA_ERROR_INVALID_DEVICE;
      });
}

std::vector<CUcontext> &fakecuda::currentContexts() {
  static thread_local std::vector<CUcontext> contexts;
  return contexts;
}

CUresult cuda::cuDevicePrimaryCtxRetain(CUcontext *context, CUdevice device) {
  DriverState &state = DriverState::get();
  return state.call("cuDevicePrimaryCtxRetain", Needs::Device, [&] {
    if (device != 0)
      return CUDA_ERROR_INVALID_DEVICE;
    ++state.retained;
    *context = &state.context;
    return CUDA_SUCCESS;
  });
}

CUresult cuda::cuDevicePrimaryCtxRelease(CUdevice device) {
  DriverState &state = DriverState::get();
  return state.call("cuDevicePrimaryCtxRelease", Needs::Initialization, [&] {
    if (device != 0)
      return CUDA_ERROR_INVALID_DEVICE;
    if (state.retained == 0)
      return CUDA_ERROR_INVALID_CONTEXT;
    --state.retained;
    return state.retained ? CUDA_SUCCESS : state.drainAll();
  });
}

CUresult cuda::cuCtxPushCurrent(CUcontext context) {
  DriverState &state = DriverState::get();
  return state.call("cuCtxPushCurrent", Needs::Initialization, [&] {
    if (context != &state.context || state.retained == 0)
      return CUDA_ERROR_INVALID_CONTEXT;
    currentContexts().push_back(context);
    return CUDA_SUCCESS;
  });
}

CUresult cuda::cuCtxPopCurrent(CUcontext *context) {
  return DriverState::get().call("cuCtxPopCurrent", Needs::Initialization, [&] {
    if (currentContexts().empty())
      return CUDA_ERROR_INVALID_CONTEXT;
    if (context)
      *context = currentContexts().back();
    currentContexts().pop_back();
    return CUDA_SUCCESS;
  });
}
