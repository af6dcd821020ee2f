//===- Driver.cpp - CUDA's driver, loaded at run time ---------------------===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "lib/Runtime/GPU/Driver.h"
#include <cstdlib>
#include <dlfcn.h>

using namespace sardonyx;
using namespace sardonyx::cuda;
using namespace sardonyx::runtime::gpu;

using GetProcAddress = CUresult (*)(const char *name, void **function,
                                    int version, cuuint64_t flags,
                                    CUdriverProcAddressQueryResult *found);
using GetVersion = CUresult (*)(int *version);

static Failure unavailable(std::string sentence) {
  return {FailureKind::Unavailable, std::move(sentence)};
}

/// "12.4" of 12040.
static std::string printVersion(int version) {
  return std::to_string(version / 1000) + "." +
         std::to_string(version % 1000 / 10);
}

static Failure tooOld(const std::string &library, int version) {
  return unavailable("the CUDA driver " + library +
                     " is too old: it has CUDA " + printVersion(version) +
                     ", needed is " + printVersion(kCUDAVersion));
}

const Result<std::unique_ptr<Driver>> &Driver::get() {
  // Never destroyed: what uses the device may outlive other globals.
  static const auto *driver = [] {
    const char *named = getenv("SARDONYX_CUDA_DRIVER");
    return new Result<std::unique_ptr<Driver>>(
        load(named && *named ? named : "libcuda.so.1"));
  }();
  return *driver;
}

Result<std::unique_ptr<Driver>> Driver::load(const std::string &library) {
  void *handle = dlopen(library.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (!handle) {
    const char *why = dlerror();
    return unavailable("no CUDA driver on this machine: cannot open " +
                       library + " (" + (why ? why : "unknown error") + ")");
  }
  std::unique_ptr<Driver> driver(new Driver);
  MaybeFailure failure = driver->findFunctions(handle, library);
  if (!failure)
    failure = driver->initialize(library);
  // A driver that was initialised may have threads: it stays.
  if (failure)
    return *failure;
  return driver;
}

MaybeFailure Driver::findFunctions(void *library, const std::string &name) {
  // Drivers before 12.0 lack the function that finds all others.
  auto getVersion =
      reinterpret_cast<GetVersion>(dlsym(library, "cuDriverGetVersion"));
  int version = 0;
  if (getVersion && getVersion(&version) == CUDA_SUCCESS &&
      version < kCUDAVersion) {
    dlclose(library);
    return tooOld(name, version);
  }
  auto getProcAddress =
      reinterpret_cast<GetProcAddress>(dlsym(library, "cuGetProcAddress_v2"));
  if (!getProcAddress) {
    dlclose(library);
    return unavailable(name + " is no CUDA driver: it lacks the function "
                              "cuGetProcAddress_v2");
  }
  std::string missing;
  auto look = [&](const char *function, int version) -> void * {
    void *address = nullptr;
    CUdriverProcAddressQueryResult found = CU_GET_PROC_ADDRESS_SUCCESS;
    CUresult code =
        getProcAddress(function, &address, version, /*flags=*/0, &found);
    return code == CUDA_SUCCESS && found == CU_GET_PROC_ADDRESS_SUCCESS
               ? address
               : nullptr;
  };
  auto find = [&](const char *function) -> void * {
    void *address = look(function, kCUDAVersion);
    if (!address && missing.empty())
      missing = function;
    return address;
  };
#define SARDONYX_CUDA_FUNCTION(function, parameters)                           \
  table.function = reinterpret_cast<CUresult(*) parameters>(find(#function));
#define SARDONYX_CUDA_LATER_FUNCTION(function, since, parameters)              \
  table.function =                                                             \
      version < since                                                          \
          ? nullptr                                                            \
          : reinterpret_cast<CUresult(*) parameters>(look(#function, since));
#include "lib/Runtime/GPU/CUDAFunctions.def"
  if (missing.empty())
    return std::nullopt;
  return unavailable("the CUDA driver " + name + " lacks the function " +
                     missing);
}

MaybeFailure Driver::initialize(const std::string &name) {
  CUresult code = table.cuDriverGetVersion(&offered);
  if (code == CUDA_SUCCESS && offered < kCUDAVersion)
    return tooOld(name, offered);
  if (code == CUDA_SUCCESS)
    code = table.cuInit(/*flags=*/0);
  if (code == CUDA_SUCCESS)
    code = table.cuDeviceGetCount(&devices);
  if (code == CUDA_ERROR_NO_DEVICE || (code == CUDA_SUCCESS && devices == 0))
    return unavailable("no CUDA device: the driver " + name + " finds none");
  if (code != CUDA_SUCCESS)
    return unavailable("the CUDA driver " + name +
                       " cannot be used: " + describe(code));
  return std::nullopt;
}

std::string Driver::describe(CUresult code) const {
  const char *name = nullptr, *text = nullptr;
  if (table.cuGetErrorName(code, &name) != CUDA_SUCCESS || !name ||
      table.cuGetErrorString(code, &text) != CUDA_SUCCESS || !text)
    return "error " + std::to_string(code);
  return std::string(text) + " (" + name + ")";
}
