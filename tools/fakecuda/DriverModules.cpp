//===- DriverModules.cpp - The fake CUDA driver: kernels and launches -----===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "tools/fakecuda/Cubin.h"
#include "tools/fakecuda/DriverState.h"
#include "tools/fakecuda/DriverWork.h"
#include <algorithm>
#include <cstdlib>
#include <cstring>

using namespace sardonyx;
using namespace sardonyx::cuda;
using namespace sardonyx::fakecuda;

/// Bytes of shared memory that a block may have without asking for more.
static constexpr size_t kUsualSharedBytes = 48 << 10;

//===----------------------------------------------------------------------===//
// Modules
//===----------------------------------------------------------------------===//

CompilerLog fakecuda::findLog(unsigned int count, const CUjit_option *options,
                              void **values) {
  CompilerLog log;
  for (unsigned int i = 0; i < count; ++i) {
    if (options[i] == CU_JIT_ERROR_LOG_BUFFER)
      log.buffer = static_cast<char *>(values[i]);
    if (options[i] == CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES)
      log.bytes = reinterpret_cast<size_t>(values[i]) & 0xffffffff;
  }
  return log;
}

void fakecuda::writeLog(const CompilerLog &log, const std::string &text) {
  if (!log.buffer || !log.bytes)
    return;
  size_t length = std::min(text.size(), log.bytes - 1);
  memcpy(log.buffer, text.data(), length);
  log.buffer[length] = 0;
}

CUresult cuda::cuModuleLoadDataEx(CUmodule *module, const void *image,
                                  unsigned int count, CUjit_option *options,
                                  void **values) {
  DriverState &state = DriverState::get();
  return state.call("cuModuleLoadDataEx", Needs::Context, [&] {
    if (!module || !image)
      return CUDA_ERROR_INVALID_VALUE;
    const char *ptx = static_cast<const char *>(image);
    if (isElf(ptx)) {
      Cubin cubin;
      if (!readCubin(ptx, cubin))
        return state.tell(CUDA_ERROR_NO_BINARY_FOR_GPU,
                          "a cubin, only PTX can be interpreted");
      if (!cubin.runsOn(state.settings().sm))
        return state.tell(CUDA_ERROR_NO_BINARY_FOR_GPU,
                          "a cubin for " + cubin.architecture() +
                              ", the device is sm_" +
                              std::to_string(state.settings().sm));
      ptx = cubin.text;
    }
    std::string error = checkText(ptx, state.settings().sm);
    auto loaded = std::make_unique<CUmod_st>();
    if (error.empty())
      loaded->module = Module::parse(ptx, state.memory, error);
    if (!loaded->module) {
      writeLog(findLog(count, options, values), error);
      return state.tell(CUDA_ERROR_INVALID_PTX, error);
    }
    *module = loaded.release();
    state.modules.insert(*module);
    return CUDA_SUCCESS;
  });
}

CUresult cuda::cuModuleUnload(CUmodule module) {
  DriverState &state = DriverState::get();
  return state.call("cuModuleUnload", Needs::Context, [&] {
    if (!state.modules.count(module))
      return CUDA_ERROR_INVALID_HANDLE;
    if (CUresult code = state.drainAll())
      return code;
    state.modules.erase(module);
    delete module;
    return CUDA_SUCCESS;
  });
}

CUresult cuda::cuModuleGetFunction(CUfunction *function, CUmodule module,
                                   const char *name) {
  DriverState &state = DriverState::get();
  return state.call("cuModuleGetFunction", Needs::Context, [&] {
    if (!state.modules.count(module))
      return CUDA_ERROR_INVALID_HANDLE;
    const Function *found = module->module->find(name);
    if (!found)
      return CUDA_ERROR_NOT_FOUND;
    auto &known = module->functions[name];
    if (!known) {
      size_t declared = std::min(found->staticSharedBytes, kUsualSharedBytes);
      known = std::make_unique<CUfunc_st>(
          CUfunc_st{found, kUsualSharedBytes - declared});
    }
    *function = known.get();
    return CUDA_SUCCESS;
  });
}

CUresult cuda::cuModuleGetGlobal(CUdeviceptr *pointer, size_t *bytes,
                                 CUmodule module, const char *name) {
  DriverState &state = DriverState::get();
  return state.call("cuModuleGetGlobal", Needs::Context, [&] {
    if (!state.modules.count(module))
      return CUDA_ERROR_INVALID_HANDLE;
    size_t size = 0;
    uint64_t address = module->module->findGlobal(name, size);
    if (!address)
      return CUDA_ERROR_NOT_FOUND;
    if (pointer)
      *pointer = address;
    if (bytes)
      *bytes = size;
    return CUDA_SUCCESS;
  });
}

/// What a compiler would have given each thread.
static constexpr int kRegisters = 32;

CUresult cuda::cuFuncGetAttribute(int *value, CUfunction_attribute attribute,
                                  CUfunction function) {
  DriverState &state = DriverState::get();
  return state.call("cuFuncGetAttribute", Needs::Context, [&] {
    if (!state.isLoaded(function))
      return CUDA_ERROR_INVALID_HANDLE;
    switch (attribute) {
    case CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK:
      *value = static_cast<int>(function->function->maxThreads);
      return CUDA_SUCCESS;
    case CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES:
      *value = static_cast<int>(function->function->staticSharedBytes);
      return CUDA_SUCCESS;
    case CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES:
      *value = static_cast<int>(function->dynamicSharedBytes);
      return CUDA_SUCCESS;
    case CU_FUNC_ATTRIBUTE_NUM_REGS:
      *value = kRegisters;
      return CUDA_SUCCESS;
    case CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES:
      break;
    }
    return state.tell(CUDA_ERROR_NOT_SUPPORTED,
                      "function attribute " + std::to_string(attribute) +
                          " is known to compilers only");
  });
}

/// The least of what threads, registers and shared memory leave room for.
CUresult cuda::cuOccupancyMaxActiveBlocksPerMultiprocessor(int *blocks,
                                                           CUfunction function,
                                                           int threads,
                                                           size_t sharedBytes) {
  DriverState &state = DriverState::get();
  return state.call(
      "cuOccupancyMaxActiveBlocksPerMultiprocessor", Needs::Context, [&] {
        constexpr int kThreads = 2048, kMostBlocks = 32, kAllRegisters = 65536;
        if (!state.isLoaded(function))
          return CUDA_ERROR_INVALID_HANDLE;
        if (threads < 1)
          return CUDA_ERROR_INVALID_VALUE;
        const size_t shared =
            sharedBytes + function->function->staticSharedBytes + 1024;
        const auto all = static_cast<size_t>(
            sharedBytesOfMultiprocessor(state.settings().sm));
        *blocks = std::min({kThreads / threads, kMostBlocks,
                            kAllRegisters / (threads * kRegisters),
                            static_cast<int>(all / shared)});
        return CUDA_SUCCESS;
      });
}

/// Bytes of shared memory that a block may have when it asks for more.
static size_t mostSharedBytes() {
  int sm = DriverState::get().settings().sm;
  return static_cast<size_t>(sharedBytesOfMultiprocessor(sm)) - 1024;
}

CUresult cuda::cuFuncSetAttribute(CUfunction function,
                                  CUfunction_attribute attribute, int value) {
  DriverState &state = DriverState::get();
  return state.call("cuFuncSetAttribute", Needs::Context, [&] {
    if (!state.isLoaded(function))
      return CUDA_ERROR_INVALID_HANDLE;
    if (attribute != CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES ||
        value < 0 ||
        static_cast<size_t>(value) + function->function->staticSharedBytes >
            mostSharedBytes())
      return CUDA_ERROR_INVALID_VALUE;
    function->dynamicSharedBytes = static_cast<size_t>(value);
    return CUDA_SUCCESS;
  });
}

//===----------------------------------------------------------------------===//
// Launches
//===----------------------------------------------------------------------===//

/// The code that a driver gives for a fault of a kernel.
static CUresult codeOfFault(const std::string &fault) {
  auto says = [&](const char *word) {
    return fault.find(word) != std::string::npos;
  };
  if (says("isn't aligned"))
    return CUDA_ERROR_MISALIGNED_ADDRESS;
  if (says("deadlock"))
    return CUDA_ERROR_LAUNCH_TIMEOUT;
  if (!says("race") && (says("reads ") || says("writes ")))
    return CUDA_ERROR_ILLEGAL_ADDRESS;
  return CUDA_ERROR_LAUNCH_FAILED;
}

CUresult fakecuda::makeLaunch(const char *what, CUfunction function,
                              const LaunchSizes &sizes, void **arguments,
                              void **extra, std::function<void()> &work) {
  DriverState &state = DriverState::get();
  if (!state.isLoaded(function))
    return CUDA_ERROR_INVALID_HANDLE;
  const Function &kernel = *function->function;
  auto refuse = [&](CUresult code, const std::string &why) {
    return state.tell(code,
                      std::string(what) + " of " + kernel.name + ": " + why);
  };
  if (extra)
    return refuse(CUDA_ERROR_NOT_SUPPORTED, "arguments in one buffer");
  Launch launched;
  uint64_t threads = 1;
  const unsigned int mostBlocks[] = {0x7fffffff, 65535, 65535};
  for (size_t i = 0; i < 3; ++i) {
    if (!sizes.grid[i] || sizes.grid[i] > mostBlocks[i] || !sizes.block[i] ||
        sizes.block[i] > 1024)
      return refuse(CUDA_ERROR_INVALID_VALUE, "sizes of the grid or blocks");
    launched.grid[i] = sizes.grid[i];
    launched.block[i] = sizes.block[i];
    threads *= sizes.block[i];
  }
  if (threads > kernel.maxThreads)
    return refuse(CUDA_ERROR_INVALID_VALUE,
                  std::to_string(threads) + " threads, it has at most " +
                      std::to_string(kernel.maxThreads));
  if (sizes.sharedBytes > function->dynamicSharedBytes)
    return refuse(CUDA_ERROR_INVALID_VALUE,
                  std::to_string(sizes.sharedBytes) +
                      " bytes of shared memory, it may have " +
                      std::to_string(function->dynamicSharedBytes));
  launched.dynamicSharedBytes = sizes.sharedBytes;
  launched.isDependent = sizes.isDependent;
  launched.parameters.resize(kernel.parameterBytes);
  if (!kernel.parameters.empty() && !arguments)
    return refuse(CUDA_ERROR_INVALID_VALUE, "no arguments");
  for (size_t i = 0; i < kernel.parameters.size(); ++i) {
    if (!arguments[i])
      return refuse(CUDA_ERROR_INVALID_VALUE,
                    "argument " + std::to_string(i) + " is missing");
    memcpy(launched.parameters.data() + kernel.parameters[i].offset,
           arguments[i], kernel.parameters[i].size);
  }
  // With a copy of the kernel: a graph may outlive the module.
  work = [&state, kernel, launched] {
    std::string fault = launch(kernel, launched, state.memory);
    if (!fault.empty())
      state.lose(codeOfFault(fault), fault);
  };
  return CUDA_SUCCESS;
}

/// Kernels run one after the other in any case; the interpreter looks whether
/// those that need not wait do so themselves.
static bool isKnown(const CUlaunchAttribute &attribute) {
  const auto &cluster = attribute.value.clusterDim;
  return attribute.id == CU_LAUNCH_ATTRIBUTE_IGNORE ||
         attribute.id ==
             CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION ||
         (attribute.id == CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION &&
          cluster.x == 1 && cluster.y == 1 && cluster.z == 1);
}

CUresult cuda::cuLaunchKernelEx(const CUlaunchConfig *config,
                                CUfunction function, void **arguments,
                                void **extra) {
  DriverState &state = DriverState::get();
  return state.call("cuLaunchKernelEx", Needs::Context, [&] {
    if (!config)
      return CUDA_ERROR_INVALID_VALUE;
    CUstream stream = state.find(config->hStream);
    if (!stream)
      return CUDA_ERROR_INVALID_HANDLE;
    for (unsigned int i = 0; i < config->numAttrs; ++i)
      if (!isKnown(config->attrs[i]))
        return state.tell(CUDA_ERROR_NOT_SUPPORTED,
                          "launch attribute " +
                              std::to_string(config->attrs[i].id));
    LaunchSizes sizes = {
        {config->gridDimX, config->gridDimY, config->gridDimZ},
        {config->blockDimX, config->blockDimY, config->blockDimZ},
        config->sharedMemBytes};
    for (unsigned int i = 0; i < config->numAttrs; ++i)
      if (config->attrs[i].id ==
          CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION)
        sizes.isDependent =
            config->attrs[i].value.programmaticStreamSerializationAllowed != 0;
    std::function<void()> work;
    if (CUresult code = makeLaunch("cuLaunchKernelEx", function, sizes,
                                   arguments, extra, work))
      return code;
    state.push(stream, std::move(work));
    return CUDA_SUCCESS;
  });
}
