//===- Module.cpp - Kernels on a GPU --------------------------------------===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "lib/Runtime/GPU/Module.h"
#include <cstring>

using namespace sardonyx;
using namespace sardonyx::cuda;
using namespace sardonyx::runtime::gpu;

/// Bytes of shared memory that a block may have without asking for more.
static constexpr int64_t kUsualSharedBytes = 48 * 1024;

//===----------------------------------------------------------------------===//
// Modules
//===----------------------------------------------------------------------===//

/// What the driver's compiler has written, on one line.
static std::string printLog(const std::vector<char> &log) {
  std::string text(log.data(), strnlen(log.data(), log.size()));
  for (size_t end; (end = text.find('\n')) != std::string::npos;)
    text.replace(end, 1, end + 1 < text.size() ? "; " : "");
  return text.empty() ? text : ": " + text;
}

/// Whether all that the headers of an ELF file tell lies inside of it: the
/// driver is not told where a cubin ends.
static bool isWhole(std::string_view image) {
  auto read = [&](uint64_t at, unsigned bytes) {
    uint64_t value = 0;
    for (unsigned i = bytes; i-- > 0;)
      value = value << 8 | static_cast<unsigned char>(image[at + i]);
    return value;
  };
  auto isInside = [&](uint64_t at, uint64_t bytes) {
    return at <= image.size() && bytes <= image.size() - at;
  };
  constexpr uint64_t kHeader = 64, kSection = 64, kProgram = 56;
  constexpr uint64_t kNoBits = 8;
  if (!isInside(0, kHeader) || image[4] != 2 || image[5] != 1)
    return false;
  uint64_t programs = read(32, 8), sections = read(40, 8);
  uint64_t programCount = read(56, 2), sectionCount = read(60, 2);
  if ((programCount && read(54, 2) != kProgram) ||
      (sectionCount && read(58, 2) != kSection) ||
      !isInside(programs, programCount * kProgram) ||
      !isInside(sections, sectionCount * kSection))
    return false;
  for (uint64_t i = 0; i < programCount; ++i)
    if (uint64_t at = programs + i * kProgram;
        !isInside(read(at + 8, 8), read(at + 32, 8)))
      return false;
  for (uint64_t i = 0; i < sectionCount; ++i)
    if (uint64_t at = sections + i * kSection;
        read(at + 4, 4) != kNoBits &&
        !isInside(read(at + 24, 8), read(at + 32, 8)))
      return false;
  return true;
}

Result<std::shared_ptr<Module>> Module::load(std::shared_ptr<Device> device,
                                             std::string_view image,
                                             const std::string &name) {
  std::shared_ptr<Module> module(new Module);
  module->owner = device;
  module->name = name;
  if (image.substr(0, 4) == "\177ELF" && !isWhole(image))
    return Failure{FailureKind::InvalidArgument,
                   "cannot load the kernels of " + name +
                       ": the cubin is cut off or damaged"};
  // The driver finds the end of PTX by its zero, of a cubin by its headers.
  std::string text(image);
  std::vector<char> errors(4096);
  CUjit_option options[] = {CU_JIT_ERROR_LOG_BUFFER,
                            CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES};
  void *values[] = {errors.data(), reinterpret_cast<void *>(errors.size())};
  CUresult code = device->attempt([&](const Functions &f) {
    return f.cuModuleLoadDataEx(&module->module, text.c_str(), 2, options,
                                values);
  });
  if (code == CUDA_SUCCESS)
    return module;
  module->module = nullptr;
  Failure failure = *device->check("cannot load the kernels of " + name, code);
  if (failure.kind == FailureKind::Failed)
    failure.sentence += printLog(errors);
  return failure;
}

Result<std::string> Module::compile(const std::shared_ptr<Device> &device,
                                    const std::string &text,
                                    const std::string &name) {
  std::vector<char> errors(4096);
  CUjit_option options[] = {CU_JIT_ERROR_LOG_BUFFER,
                            CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES};
  void *values[] = {errors.data(), reinterpret_cast<void *>(errors.size())};
  std::string made;
  CUresult code = device->attempt([&](const Functions &f) {
    CUlinkState state = nullptr;
    CUresult code = f.cuLinkCreate(2, options, values, &state);
    if (code != CUDA_SUCCESS)
      return code;
    // With the zero at its end.
    code = f.cuLinkAddData(state, CU_JIT_INPUT_PTX,
                           const_cast<char *>(text.c_str()), text.size() + 1,
                           name.c_str(), 0, nullptr, nullptr);
    void *cubin = nullptr;
    size_t bytes = 0;
    if (code == CUDA_SUCCESS)
      code = f.cuLinkComplete(state, &cubin, &bytes);
    // It is the state's.
    if (code == CUDA_SUCCESS)
      made.assign(static_cast<const char *>(cubin), bytes);
    CUresult destroyed = f.cuLinkDestroy(state);
    return code == CUDA_SUCCESS ? destroyed : code;
  });
  if (code == CUDA_SUCCESS)
    return made;
  Failure failure =
      *device->check("cannot compile the kernels of " + name, code);
  if (failure.kind == FailureKind::Failed)
    failure.sentence += printLog(errors);
  return failure;
}

Module::~Module() {
  if (module)
    owner->release(
        [&](const Functions &f) { return f.cuModuleUnload(module); });
}

Result<std::shared_ptr<const Kernel>>
Module::find(const KernelDescription &description) const {
  const char *entry = description.name.c_str();
  std::shared_ptr<Kernel> kernel(new Kernel);
  kernel->module = shared_from_this();
  kernel->known = std::make_shared<const KernelNames>(
      KernelNames{description.name, description.node});
  kernel->argumentCount = description.arguments;
  kernel->mostSharedBytes = description.sharedBytes;
  kernel->waits = description.waits;
  int threads = 0, declared = 0;
  CUresult code = owner->attempt([&](const Functions &f) {
    CUresult code = f.cuModuleGetFunction(&kernel->function, module, entry);
    if (code == CUDA_SUCCESS)
      code = f.cuFuncGetAttribute(
          &threads, CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK, kernel->function);
    if (code == CUDA_SUCCESS)
      code = f.cuFuncGetAttribute(
          &declared, CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES, kernel->function);
    return code;
  });
  std::string what = "cannot use kernel " + description.name + " of " + name;
  if (MaybeFailure failure = owner->check(what, code))
    return *failure;
  kernel->mostThreads = threads;
  kernel->declaredSharedBytes = declared;
  int64_t asked = description.sharedBytes,
          most = owner->facts().sharedBytesPerBlock - declared;
  if (asked < 0 || asked > most)
    return Failure{FailureKind::InvalidArgument,
                   what + ": it wants " + std::to_string(asked) +
                       " bytes of shared memory, the device leaves it " +
                       std::to_string(most)};
  if (asked + declared > kUsualSharedBytes)
    code = owner->attempt([&](const Functions &f) {
      return f.cuFuncSetAttribute(
          kernel->function, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES,
          static_cast<int>(asked));
    });
  if (MaybeFailure failure = owner->check(what, code))
    return *failure;
  return std::shared_ptr<const Kernel>(std::move(kernel));
}

bool Module::has(const std::string &global) const {
  CUdeviceptr address = 0;
  size_t bytes = 0;
  return owner->attempt([&](const Functions &f) {
    return f.cuModuleGetGlobal(&address, &bytes, module, global.c_str());
  }) == CUDA_SUCCESS;
}

Result<Module::Global> Module::findGlobal(const std::string &global) const {
  Global found;
  size_t bytes = 0;
  CUresult code = owner->attempt([&](const Functions &f) {
    return f.cuModuleGetGlobal(&found.address, &bytes, module, global.c_str());
  });
  if (code != CUDA_SUCCESS)
    return *owner->check("cannot find variable " + global + " of " + name,
                         code);
  found.bytes = static_cast<int64_t>(bytes);
  return found;
}

//===----------------------------------------------------------------------===//
// Launches
//===----------------------------------------------------------------------===//

std::string Kernel::describeLaunch() const {
  std::string what = "cannot launch kernel " + known->kernel;
  return known->node.empty() ? what : what + " (" + known->node + ")";
}

MaybeFailure Kernel::checkLaunch(const LaunchSize &size,
                                 const Arguments &arguments) const {
  auto refuse = [&](const std::string &why) {
    return Failure{FailureKind::InvalidArgument, describeLaunch() + ": " + why};
  };
  auto print = [](const std::array<int64_t, 3> &sizes) {
    return std::to_string(sizes[0]) + " x " + std::to_string(sizes[1]) + " x " +
           std::to_string(sizes[2]);
  };
  auto isWithin = [](const std::array<int64_t, 3> &sizes,
                     const std::array<int64_t, 3> &most, int64_t least) {
    for (int i = 0; i < 3; ++i)
      if (sizes[i] < least || sizes[i] > most[i])
        return false;
    return true;
  };
  if (arguments.size() != argumentCount)
    return refuse(std::to_string(arguments.size()) + " arguments, it has " +
                  std::to_string(argumentCount));
  for (size_t i = 0; i < arguments.size(); ++i)
    if (!arguments[i])
      return refuse("argument " + std::to_string(i) + " is missing");
  // Compute capability 3.0 and all later ones have these limits.
  if (!isWithin(size.grid, {INT32_MAX, 65535, 65535}, 0))
    return refuse("a grid of " + print(size.grid) +
                  " blocks, at most 2147483647 x 65535 x 65535 fit");
  if (!isWithin(size.block, {1024, 1024, 64}, 1) ||
      size.block[0] * size.block[1] * size.block[2] > mostThreads)
    return refuse("blocks of " + print(size.block) + " threads, at most " +
                  std::to_string(mostThreads) + " fit");
  if (size.sharedBytes < 0 || size.sharedBytes > mostSharedBytes)
    return refuse(std::to_string(size.sharedBytes) +
                  " bytes of shared memory, at most " +
                  std::to_string(mostSharedBytes) + " were asked for");
  return std::nullopt;
}

MaybeFailure Kernel::describe(const LaunchSize &size,
                              DeviceLaunch &launch) const {
  constexpr int64_t kThreadsOfWarp = 32;
  Device &device = *module->device();
  int registers = 0, blocks = 0;
  const int64_t threads = size.block[0] * size.block[1] * size.block[2];
  CUresult code = device.attempt([&](const Functions &f) {
    CUresult code =
        f.cuFuncGetAttribute(&registers, CU_FUNC_ATTRIBUTE_NUM_REGS, function);
    if (code != CUDA_SUCCESS)
      return code;
    return f.cuOccupancyMaxActiveBlocksPerMultiprocessor(
        &blocks, function, static_cast<int>(threads),
        static_cast<size_t>(size.sharedBytes));
  });
  launch.registers = registers;
  launch.declaredSharedBytes = declaredSharedBytes;
  const int64_t warps = (threads + kThreadsOfWarp - 1) / kThreadsOfWarp;
  launch.occupancy = double(blocks * warps * kThreadsOfWarp) /
                     double(device.facts().threadsPerMultiprocessor);
  return device.check("cannot describe kernel " + known->kernel, code);
}

MaybeFailure Kernel::launch(Stream &stream, const LaunchSize &size,
                            const Arguments &arguments) const {
  if (MaybeFailure failure = checkLaunch(size, arguments))
    return failure;
  if (size.isEmpty())
    return std::nullopt;
  CUlaunchConfig config = {};
  config.gridDimX = static_cast<unsigned>(size.grid[0]);
  config.gridDimY = static_cast<unsigned>(size.grid[1]);
  config.gridDimZ = static_cast<unsigned>(size.grid[2]);
  config.blockDimX = static_cast<unsigned>(size.block[0]);
  config.blockDimY = static_cast<unsigned>(size.block[1]);
  config.blockDimZ = static_cast<unsigned>(size.block[2]);
  config.sharedMemBytes = static_cast<unsigned>(size.sharedBytes);
  config.hStream = stream.handle();
  CUlaunchAttribute early = {};
  early.id = CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION;
  early.value.programmaticStreamSerializationAllowed = 1;
  if (mayBeginEarly()) {
    config.attrs = &early;
    config.numAttrs = 1;
  }
  Device &device = *module->device();
  LaunchedKernels launched{known, known, 1};
  CUresult code = device.attempt([&](const Functions &f) {
    return f.cuLaunchKernelEx(&config, function,
                              const_cast<void **>(arguments.data()),
                              /*extra=*/nullptr);
  });
  if (code != CUDA_SUCCESS)
    return device.check(describeLaunch(), code, &launched);
  device.noteLaunch(stream.handle(), launched);
  if (device.waitsForLaunches())
    return stream.synchronize();
  return std::nullopt;
}
