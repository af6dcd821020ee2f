//===- Device.cpp - A GPU and its memory ----------------------------------===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "lib/Runtime/GPU/Device.h"
#include <algorithm>
#include <cstdlib>
#include <unistd.h>

using namespace sardonyx;
using namespace sardonyx::cuda;
using namespace sardonyx::runtime;
using namespace sardonyx::runtime::gpu;

/// Whether the driver says the same to each call from then on.
static bool isSticky(CUresult code) {
  switch (code) {
  case CUDA_ERROR_ECC_UNCORRECTABLE:
  case CUDA_ERROR_NVLINK_UNCORRECTABLE:
  case CUDA_ERROR_CONTAINED:
  case CUDA_ERROR_ILLEGAL_ADDRESS:
  case CUDA_ERROR_LAUNCH_TIMEOUT:
  case CUDA_ERROR_CONTEXT_IS_DESTROYED:
  case CUDA_ERROR_ASSERT:
  case CUDA_ERROR_HARDWARE_STACK_ERROR:
  case CUDA_ERROR_ILLEGAL_INSTRUCTION:
  case CUDA_ERROR_MISALIGNED_ADDRESS:
  case CUDA_ERROR_INVALID_ADDRESS_SPACE:
  case CUDA_ERROR_INVALID_PC:
  case CUDA_ERROR_LAUNCH_FAILED:
    return true;
  default:
    return false;
  }
}

void LaunchedKernels::add(const LaunchedKernels &next) {
  // A graph may have no kernels.
  if (next.count == 0)
    return;
  if (count == 0)
    first = next.first;
  last = next.last;
  count += next.count;
}

namespace {
/// The devices of this process by number.
struct OpenDevices {
  std::mutex mutex;
  std::map<int, std::weak_ptr<Device>> open;
  /// What was lost stays so when nobody has it any more.
  std::map<int, std::string> lossSentences;

  // Never destroyed: devices may outlive other globals.
  static OpenDevices &get() {
    static auto *devices = new OpenDevices;
    return *devices;
  }
};
} // namespace

Device::Device(const Driver &driver, int number, CUdevice device)
    : driver(driver), number(number), device(device), process(getpid()) {}

Result<std::shared_ptr<Device>> Device::open(int ordinal) {
  OpenDevices &devices = OpenDevices::get();
  std::lock_guard<std::mutex> lock(devices.mutex);
  if (auto lost = devices.lossSentences.find(ordinal);
      lost != devices.lossSentences.end())
    return Failure{FailureKind::DeviceLost, lost->second};
  if (std::shared_ptr<Device> device = devices.open[ordinal].lock())
    return device;
  Result<std::shared_ptr<Device>> device = create(ordinal);
  if (device)
    devices.open[ordinal] = *device;
  return device;
}

Result<std::shared_ptr<Device>> Device::create(int ordinal) {
  const Result<std::unique_ptr<Driver>> &loaded = Driver::get();
  if (!loaded)
    return loaded.failure();
  const Driver &driver = **loaded;
  const Functions &functions = driver.functions();
  auto refuse = [&](CUresult code) -> Failure {
    return {FailureKind::Unavailable,
            "the CUDA device " + std::to_string(ordinal) +
                " cannot be used: " + driver.describe(code)};
  };
  int count = 0;
  if (CUresult code = functions.cuDeviceGetCount(&count))
    return refuse(code);
  if (ordinal < 0 || ordinal >= count)
    return Failure{FailureKind::Unavailable,
                   "no CUDA device " + std::to_string(ordinal) +
                       ": the driver finds " + std::to_string(count)};
  CUdevice handle = 0;
  if (CUresult code = functions.cuDeviceGet(&handle, ordinal))
    return refuse(code);
  std::shared_ptr<Device> device(new Device(driver, ordinal, handle));
  if (CUresult code = device->readFacts())
    return refuse(code);
  int sm = device->facts().sm;
  if (sm < kLeastSM)
    return Failure{FailureKind::Unavailable,
                   "the CUDA device " + device->facts().name +
                       " has compute capability " + std::to_string(sm / 10) +
                       "." + std::to_string(sm % 10) + ", needed is " +
                       std::to_string(kLeastSM / 10) + "." +
                       std::to_string(kLeastSM % 10)};
  if (CUresult code =
          functions.cuDevicePrimaryCtxRetain(&device->context, handle)) {
    device->context = nullptr;
    return refuse(code);
  }
  const char *debug = getenv("SARDONYX_DEBUG");
  device->isWaiting = debug && *debug && std::string(debug) != "0";
  return device;
}

Device::~Device() {
  if (context)
    driver.functions().cuDevicePrimaryCtxRelease(device);
}

namespace {
/// Operations a clock and multiprocessor.
struct CoreRates {
  int flops, tensorFlops;
};
} // namespace

static CoreRates ratesOf(int sm) {
  if (sm == 80)
    return {128, 2048};
  if (sm < 90)
    return {256, 1024};
  return sm == 90 ? CoreRates{256, 4096} : CoreRates{256, 8192};
}

CUresult Device::readFacts() {
  const Functions &functions = driver.functions();
  char name[256] = "";
  if (CUresult code = functions.cuDeviceGetName(name, sizeof(name), device))
    return code;
  name[sizeof(name) - 1] = 0;
  knownFacts.name = name;
  size_t bytes = 0;
  if (CUresult code = functions.cuDeviceTotalMem(&bytes, device))
    return code;
  knownFacts.memoryBytes = static_cast<int64_t>(bytes);
  int major = 0, minor = 0, shared = 0, l2 = 0;
  int clock = 0, memoryClock = 0, memoryBits = 0;
  const std::pair<CUdevice_attribute, int *> attributes[] = {
      {CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, &major},
      {CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, &minor},
      {CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, &knownFacts.multiprocessors},
      {CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN, &shared},
      {CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE, &l2},
      {CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR,
       &knownFacts.threadsPerMultiprocessor},
  };
  for (auto [attribute, value] : attributes)
    if (CUresult code =
            functions.cuDeviceGetAttribute(value, attribute, device))
      return code;
  knownFacts.sm = 10 * major + minor;
  knownFacts.sharedBytesPerBlock = shared;
  knownFacts.l2Bytes = l2;
  // A driver that does not tell them leaves 0.
  functions.cuDeviceGetAttribute(&clock, CU_DEVICE_ATTRIBUTE_CLOCK_RATE,
                                 device);
  functions.cuDeviceGetAttribute(&memoryClock,
                                 CU_DEVICE_ATTRIBUTE_MEMORY_CLOCK_RATE, device);
  functions.cuDeviceGetAttribute(
      &memoryBits, CU_DEVICE_ATTRIBUTE_GLOBAL_MEMORY_BUS_WIDTH, device);
  // Clocks are in kHz; memory moves two bits on each wire at a beat of its own.
  const CoreRates rates = ratesOf(knownFacts.sm);
  const double beats = 1e3 * clock * knownFacts.multiprocessors;
  knownFacts.peakFlops = beats * rates.flops;
  knownFacts.peakTensorFlops = beats * rates.tensorFlops;
  knownFacts.peakBytes = 1e3 * memoryClock * 2 * memoryBits / 8;
  return CUDA_SUCCESS;
}

Result<int64_t> Device::freeBytes() {
  size_t free = 0, total = 0;
  if (MaybeFailure failure =
          call("cannot ask for free device memory", [&](const Functions &f) {
            return f.cuMemGetInfo(&free, &total);
          }))
    return *failure;
  return static_cast<int64_t>(free);
}

Result<bool> Device::holds(CUdeviceptr address) {
  unsigned int type = 0;
  CUresult code = attempt([&](const Functions &f) {
    return f.cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE,
                                   address);
  });
  // The driver does not know memory that it has nothing to do with.
  if (code == CUDA_ERROR_INVALID_VALUE)
    return false;
  int owner = -1;
  if (code == CUDA_SUCCESS && type == CU_MEMORYTYPE_DEVICE)
    code = attempt([&](const Functions &f) {
      return f.cuPointerGetAttribute(
          &owner, CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, address);
    });
  if (MaybeFailure failure = check("cannot ask for an address", code))
    return *failure;
  return owner == number;
}

std::string Device::lossSentence() const {
  std::lock_guard<std::mutex> lock(mutex);
  return loss;
}

CUresult Device::codeOfLoss() const {
  std::lock_guard<std::mutex> lock(mutex);
  return lossCode;
}

MaybeFailure Device::check(const std::string &what, CUresult code,
                           const LaunchedKernels *current) {
  if (code == CUDA_SUCCESS)
    return std::nullopt;
  if (isSticky(code)) {
    lose(code, current);
    std::string sentence = lossSentence();
    OpenDevices &devices = OpenDevices::get();
    std::lock_guard<std::mutex> lock(devices.mutex);
    devices.lossSentences.emplace(number, sentence);
    return Failure{FailureKind::DeviceLost, sentence};
  }
  if (code == CUDA_ERROR_NOT_INITIALIZED && getpid() != process)
    return Failure{FailureKind::Unavailable,
                   what + ": a process that was forked after the CUDA device "
                          "was opened cannot use it"};
  FailureKind kind = code == CUDA_ERROR_OUT_OF_MEMORY ? FailureKind::OutOfMemory
                                                      : FailureKind::Failed;
  return Failure{kind, what + ": " + driver.describe(code)};
}

/// "K (node 'x' (Conv))".
static std::string nameKernel(const KernelNames &names) {
  return names.node.empty() ? names.kernel
                            : names.kernel + " (" + names.node + ")";
}

void Device::lose(CUresult code, const LaunchedKernels *current) {
  std::lock_guard<std::mutex> lock(mutex);
  if (lossCode != CUDA_SUCCESS)
    return;
  lossCode = code;
  // The driver doesn't tell which stream it speaks of, either.
  LaunchedKernels suspects;
  for (const auto &[stream, kernels] : launched)
    suspects.add(kernels);
  if (current)
    suspects.add(*current);
  loss = "the device was lost";
  if (suspects.count == 1)
    loss += " in kernel " + nameKernel(*suspects.first);
  else if (suspects.count > 1)
    loss += " in one of " + std::to_string(suspects.count) +
            " kernels, the first " + nameKernel(*suspects.first) +
            ", the last " + nameKernel(*suspects.last) +
            (isWaiting ? "" : " (SARDONYX_DEBUG=1 tells which)");
  loss += ": " + driver.describe(code);
  launched.clear();
}

void Device::noteLaunch(CUstream stream, const LaunchedKernels &kernels) {
  std::lock_guard<std::mutex> lock(mutex);
  launched[stream].add(kernels);
}

void Device::noteEnd(CUstream stream) {
  std::lock_guard<std::mutex> lock(mutex);
  launched.erase(stream);
}

//===----------------------------------------------------------------------===//
// Memory
//===----------------------------------------------------------------------===//

Result<std::unique_ptr<DeviceMemory>>
DeviceMemory::allocate(std::shared_ptr<Device> device, int64_t bytes,
                       std::shared_ptr<MemoryBudget> budget,
                       const std::string &what) {
  if (bytes < 0)
    return Failure{FailureKind::InvalidArgument,
                   "cannot allocate " + std::to_string(bytes) +
                       " bytes of device memory for " + what};
  auto refuse = [&](std::string inBudget) -> Failure {
    std::string sentence = "out of device memory for " + what + ": asked for " +
                           std::to_string(bytes) + " bytes";
    if (Result<int64_t> free = device->freeBytes())
      sentence += ", free are " + std::to_string(*free) + " of " +
                  std::to_string(device->facts().memoryBytes);
    return {FailureKind::OutOfMemory, sentence + std::move(inBudget)};
  };
  auto tellBudget = [&](int64_t held) -> std::string {
    // A budget of all that 64 bits count is none.
    if (!budget || budget->limit() == INT64_MAX)
      return "";
    return ", the budget is " + std::to_string(budget->limit()) +
           ", of which " + std::to_string(held) + " are taken";
  };
  std::unique_ptr<DeviceMemory> memory(new DeviceMemory);
  memory->device = device;
  memory->bytes = bytes;
  if (bytes == 0)
    return memory;
  if (budget && !budget->take(bytes)) {
    // A refusal of a lost device is its own.
    if (std::string loss = device->lossSentence(); !loss.empty())
      return Failure{FailureKind::DeviceLost, loss};
    return refuse(tellBudget(budget->bytesHeld()));
  }
  CUresult code = device->attempt([&](const Functions &f) {
    return f.cuMemAlloc(&memory->start, static_cast<size_t>(bytes));
  });
  if (code == CUDA_SUCCESS) {
    memory->budget = std::move(budget);
    return memory;
  }
  memory->start = 0;
  if (budget)
    budget->give(bytes);
  if (code == CUDA_ERROR_OUT_OF_MEMORY)
    return refuse(tellBudget(budget ? budget->bytesHeld() : 0));
  return *device->check("cannot allocate device memory for " + what, code);
}

DeviceMemory::~DeviceMemory() {
  if (start)
    device->release([&](const Functions &f) { return f.cuMemFree(start); });
  if (budget)
    budget->give(bytes);
}

Result<std::unique_ptr<PinnedMemory>>
PinnedMemory::allocate(std::shared_ptr<Device> device, int64_t bytes) {
  if (bytes < 0)
    return Failure{FailureKind::InvalidArgument, "cannot allocate " +
                                                     std::to_string(bytes) +
                                                     " bytes of pinned memory"};
  std::unique_ptr<PinnedMemory> memory(new PinnedMemory);
  memory->device = device;
  memory->bytes = bytes;
  if (bytes == 0)
    return memory;
  CUresult code = device->attempt([&](const Functions &f) {
    return f.cuMemHostAlloc(&memory->start, static_cast<size_t>(bytes),
                            CU_MEMHOSTALLOC_PORTABLE);
  });
  if (code == CUDA_SUCCESS)
    return memory;
  memory->start = nullptr;
  return *device->check("cannot allocate " + std::to_string(bytes) +
                            " bytes of pinned memory",
                        code);
}

PinnedMemory::~PinnedMemory() {
  if (start)
    device->release([&](const Functions &f) { return f.cuMemFreeHost(start); });
}
