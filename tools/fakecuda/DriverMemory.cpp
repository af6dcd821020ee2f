//===- DriverMemory.cpp - The fake CUDA driver: memory and copies ---------===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "tools/fakecuda/DriverState.h"
#include "tools/fakecuda/DriverWork.h"
#include <cstdlib>
#include <cstring>

using namespace sardonyx;
using namespace sardonyx::cuda;
using namespace sardonyx::fakecuda;

CUresult cuda::cuMemAlloc(CUdeviceptr *pointer, size_t bytes) {
  DriverState &state = DriverState::get();
  return state.call("cuMemAlloc", Needs::Context, [&] {
    if (!pointer || !bytes)
      return CUDA_ERROR_INVALID_VALUE;
    size_t total = state.settings().memoryBytes,
           held = state.memory.allocatedBytes();
    if (held > total || bytes > total - held)
      return CUDA_ERROR_OUT_OF_MEMORY;
    *pointer = state.memory.allocate(bytes);
    return *pointer ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
  });
}

CUresult cuda::cuMemFree(CUdeviceptr pointer) {
  DriverState &state = DriverState::get();
  return state.call("cuMemFree", Needs::Context, [&] {
    if (!pointer)
      return CUDA_SUCCESS;
    if (CUresult code = state.drainAll())
      return code;
    if (state.memory.release(pointer))
      return CUDA_SUCCESS;
    return state.tell(CUDA_ERROR_INVALID_VALUE,
                      "cuMemFree of what is no allocation");
  });
}

CUresult cuda::cuMemGetInfo(size_t *free, size_t *total) {
  DriverState &state = DriverState::get();
  return state.call("cuMemGetInfo", Needs::Context, [&] {
    size_t held = state.memory.allocatedBytes();
    *total = state.settings().memoryBytes;
    *free = held > *total ? 0 : *total - held;
    return CUDA_SUCCESS;
  });
}

CUresult cuda::cuMemHostAlloc(void **pointer, size_t bytes, unsigned int) {
  DriverState &state = DriverState::get();
  return state.call("cuMemHostAlloc", Needs::Context, [&] {
    if (!pointer || !bytes)
      return CUDA_ERROR_INVALID_VALUE;
    *pointer = malloc(bytes);
    if (!*pointer)
      return CUDA_ERROR_OUT_OF_MEMORY;
    state.pinned[static_cast<char *>(*pointer)] = bytes;
    return CUDA_SUCCESS;
  });
}

CUresult cuda::cuMemFreeHost(void *pointer) {
  DriverState &state = DriverState::get();
  return state.call("cuMemFreeHost", Needs::Context, [&] {
    auto found = state.pinned.find(static_cast<char *>(pointer));
    if (found == state.pinned.end())
      return state.tell(CUDA_ERROR_INVALID_VALUE,
                        "cuMemFreeHost of what is no pinned memory");
    if (CUresult code = state.drainAll())
      return code;
    state.pinned.erase(found);
    free(pointer);
    return CUDA_SUCCESS;
  });
}

CUresult cuda::cuPointerGetAttribute(void *value, CUpointer_attribute attribute,
                                     CUdeviceptr pointer) {
  DriverState &state = DriverState::get();
  return state.call("cuPointerGetAttribute", Needs::Context, [&] {
    uint64_t begin = 0;
    size_t bytes = 0;
    bool isDevice = state.memory.find(pointer, begin, bytes);
    if (!isDevice && !state.isPinned(reinterpret_cast<void *>(pointer), 1))
      return CUDA_ERROR_INVALID_VALUE;
    switch (attribute) {
    case CU_POINTER_ATTRIBUTE_CONTEXT:
      *static_cast<CUcontext *>(value) = &state.context;
      return CUDA_SUCCESS;
    case CU_POINTER_ATTRIBUTE_MEMORY_TYPE:
      *static_cast<unsigned int *>(value) =
          isDevice ? CU_MEMORYTYPE_DEVICE : CU_MEMORYTYPE_HOST;
      return CUDA_SUCCESS;
    case CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL:
      *static_cast<int *>(value) = 0;
      return CUDA_SUCCESS;
    }
    return CUDA_ERROR_INVALID_VALUE;
  });
}

//===----------------------------------------------------------------------===//
// Copies and fills
//===----------------------------------------------------------------------===//

CUresult fakecuda::checkDevice(const char *what, CUdeviceptr address,
                               size_t bytes) {
  DriverState &state = DriverState::get();
  if (state.memory.resolve(address, bytes))
    return CUDA_SUCCESS;
  return state.tell(CUDA_ERROR_INVALID_VALUE,
                    std::string(what) + ": " + std::to_string(bytes) +
                        " bytes do not lie in one allocation");
}

CUresult fakecuda::checkHost(const char *what, const void *data) {
  DriverState &state = DriverState::get();
  uint64_t begin = 0;
  size_t bytes = 0;
  if (!state.memory.find(reinterpret_cast<uint64_t>(data), begin, bytes))
    return CUDA_SUCCESS;
  return state.tell(CUDA_ERROR_INVALID_VALUE,
                    std::string(what) + ": device memory where host memory is "
                                        "expected");
}

/// Whether the bytes are still allocated; the device is lost if not.
static bool isThere(const char *what, void *data, size_t bytes) {
  DriverState &state = DriverState::get();
  if (state.memory.resolve(reinterpret_cast<uint64_t>(data), bytes))
    return true;
  state.lose(CUDA_ERROR_ILLEGAL_ADDRESS,
             std::string(what) + " of memory that was freed");
  return false;
}

std::function<void()> fakecuda::makeCopy(CopyEnd to, CopyEnd from,
                                         size_t bytes) {
  return [=] {
    // Both ends may be one allocation.
    if ((!to.isDevice || isThere("a copy", to.data, bytes)) &&
        (!from.isDevice || isThere("a copy", from.data, bytes)))
      memmove(to.data, from.data, bytes);
  };
}

std::function<void()> fakecuda::makeFill(CUdeviceptr to, unsigned int value,
                                         size_t elementBytes, size_t count) {
  return [=] {
    char *data = reinterpret_cast<char *>(to);
    if (isThere("a fill", data, elementBytes * count))
      for (size_t i = 0; i < count; ++i)
        memcpy(data + i * elementBytes, &value, elementBytes);
  };
}

static CopyEnd onDevice(CUdeviceptr address) {
  return {reinterpret_cast<void *>(address), true};
}

static CopyEnd onHost(const void *data) {
  return {const_cast<void *>(data), false};
}

CUresult cuda::cuMemcpyHtoDAsync(CUdeviceptr to, const void *from, size_t bytes,
                                 CUstream handle) {
  DriverState &state = DriverState::get();
  return state.call("cuMemcpyHtoDAsync", Needs::Context, [&] {
    CUstream stream = state.find(handle);
    if (!stream)
      return CUDA_ERROR_INVALID_HANDLE;
    if (CUresult code = checkDevice("cuMemcpyHtoDAsync", to, bytes))
      return code;
    if (CUresult code = checkHost("cuMemcpyHtoDAsync", from))
      return code;
    if (state.isPinned(from, bytes)) {
      state.push(stream, makeCopy(onDevice(to), onHost(from), bytes));
      return CUDA_SUCCESS;
    }
    // What is not pinned the driver has read when the call returns.
    const char *data = static_cast<const char *>(from);
    auto read = std::make_shared<std::vector<char>>(data, data + bytes);
    state.push(stream, [=] {
      makeCopy(onDevice(to), onHost(read->data()), read->size())();
    });
    return CUDA_SUCCESS;
  });
}

CUresult cuda::cuMemcpyDtoHAsync(void *to, CUdeviceptr from, size_t bytes,
                                 CUstream handle) {
  DriverState &state = DriverState::get();
  return state.call("cuMemcpyDtoHAsync", Needs::Context, [&] {
    CUstream stream = state.find(handle);
    if (!stream)
      return CUDA_ERROR_INVALID_HANDLE;
    if (CUresult code = checkDevice("cuMemcpyDtoHAsync", from, bytes))
      return code;
    if (CUresult code = checkHost("cuMemcpyDtoHAsync", to))
      return code;
    state.push(stream, makeCopy(onHost(to), onDevice(from), bytes));
    // What is not pinned the driver has written when the call returns.
    return state.isPinned(to, bytes) ? CUDA_SUCCESS : state.drain(stream);
  });
}

CUresult cuda::cuMemcpyDtoDAsync(CUdeviceptr to, CUdeviceptr from, size_t bytes,
                                 CUstream handle) {
  DriverState &state = DriverState::get();
  return state.call("cuMemcpyDtoDAsync", Needs::Context, [&] {
    CUstream stream = state.find(handle);
    if (!stream)
      return CUDA_ERROR_INVALID_HANDLE;
    if (CUresult code = checkDevice("cuMemcpyDtoDAsync", to, bytes))
      return code;
    if (CUresult code = checkDevice("cuMemcpyDtoDAsync", from, bytes))
      return code;
    state.push(stream, makeCopy(onDevice(to), onDevice(from), bytes));
    return CUDA_SUCCESS;
  });
}

static CUresult fill(const char *name, CUdeviceptr to, unsigned int value,
                     size_t elementBytes, size_t count, CUstream handle) {
  DriverState &state = DriverState::get();
  return state.call(name, Needs::Context, [&] {
    CUstream stream = state.find(handle);
    if (!stream)
      return CUDA_ERROR_INVALID_HANDLE;
    if (to % elementBytes || count > SIZE_MAX / elementBytes)
      return CUDA_ERROR_INVALID_VALUE;
    if (CUresult code = checkDevice(name, to, elementBytes * count))
      return code;
    state.push(stream, makeFill(to, value, elementBytes, count));
    return CUDA_SUCCESS;
  });
}

CUresult cuda::cuMemsetD8Async(CUdeviceptr to, unsigned char value,
                               size_t count, CUstream stream) {
  return fill("cuMemsetD8Async", to, value, 1, count, stream);
}

CUresult cuda::cuMemsetD32Async(CUdeviceptr to, unsigned int value,
                                size_t count, CUstream stream) {
  return fill("cuMemsetD32Async", to, value, 4, count, stream);
}
