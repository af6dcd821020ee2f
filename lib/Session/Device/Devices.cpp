//===- Devices.cpp - Tensors on devices -----------------------------------===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "sardonyx/Session/Devices.h"
#include "lib/Model/Device/DeviceModel.h"
#include "lib/Model/Device/ImageChoice.h"
#include "lib/Runtime/GPU/Stream.h"
#include "lib/Session/Compile/Options.h"

using namespace sardonyx;
using namespace sardonyx::cuda;
using namespace sardonyx::runtime::gpu;

MaybeError sardonyx::findCudaProblem(bool needsCode) {
  SessionOptions options;
  options.device.cuda = true;
  if (needsCode && !targetInfoOf(options))
    return noCodeForCuda();
  const auto &driver = Driver::get();
  return driver ? std::nullopt : MaybeError(toError(driver.failure()));
}

int sardonyx::countCudaDevices() {
  const auto &driver = Driver::get();
  return driver ? (*driver)->countDevices() : 0;
}

/// Bytes of a tensor, or an error where it has no such shape.
static Expected<int64_t> bytesOf(ElementType type,
                                 const std::vector<int64_t> &shape) {
  int64_t bytes = byteSizeOf(type);
  if (bytes == 0 || type == ElementType::String)
    return Error(ErrorKind::InvalidArgument,
                 std::string("a CUDA device has no tensors of ") +
                     nameOf(type));
  for (int64_t size : shape)
    if (size < 0 || __builtin_mul_overflow(bytes, size, &bytes))
      return Error(ErrorKind::InvalidArgument,
                   "no tensor has the shape " + describeShape(shape));
  return bytes;
}

Expected<CudaDevice> sardonyx::describeCudaDevice(int device) {
  auto opened = Device::open(device);
  if (!opened)
    return toError(opened.failure());
  const DeviceFacts &facts = (*opened)->facts();
  return CudaDevice{
      facts.name,        architectureOf(facts.sm), facts.multiprocessors,
      facts.memoryBytes, facts.peakFlops,          facts.peakTensorFlops,
      facts.peakBytes};
}

Expected<Tensor> sardonyx::allocateOnCuda(ElementType type,
                                          std::vector<int64_t> shape,
                                          int device) {
  Expected<int64_t> bytes = bytesOf(type, shape);
  if (!bytes)
    return bytes.error();
  auto opened = Device::open(device);
  if (!opened)
    return toError(opened.failure());
  // One without elements has an address, too.
  auto memory = DeviceMemory::allocate(*opened, std::max<int64_t>(*bytes, 1),
                                       nullptr, "a tensor");
  if (!memory)
    return toError(memory.failure());
  Tensor tensor;
  tensor.type = type;
  tensor.shape = std::move(shape);
  tensor.device = device;
  tensor.data = reinterpret_cast<void *>((*memory)->address());
  tensor.owner = std::shared_ptr<DeviceMemory>(std::move(*memory));
  return tensor;
}

Expected<int> sardonyx::findCudaDevice(const void *address) {
  const auto &driver = Driver::get();
  if (!driver)
    return toError(driver.failure());
  for (int number = 0;; ++number) {
    auto device = Device::open(number);
    // What comes after the last device is none.
    if (!device && number > 0)
      return kHost;
    if (!device)
      return toError(device.failure());
    auto holds = (*device)->holds(reinterpret_cast<CUdeviceptr>(address));
    if (!holds)
      return toError(holds.failure());
    if (*holds)
      return number;
  }
}

MaybeError sardonyx::copyOnCuda(void *target, int targetPlace,
                                const void *source, int sourcePlace,
                                int64_t bytes) {
  const bool isUpload = sourcePlace == kHost, isDownload = targetPlace == kHost;
  if (isUpload == isDownload && (isUpload || targetPlace != sourcePlace))
    return Error(ErrorKind::InvalidArgument,
                 "there are copies between the host and a CUDA device, and "
                 "within one, but not from " +
                     std::to_string(sourcePlace) + " to " +
                     std::to_string(targetPlace));
  auto device = Device::open(isUpload ? targetPlace : sourcePlace);
  if (!device)
    return toError(device.failure());
  std::unique_ptr<Stream> stream = Stream::borrow(*device, nullptr);
  auto to = reinterpret_cast<CUdeviceptr>(target);
  auto from = reinterpret_cast<CUdeviceptr>(source);
  MaybeFailure failure = isUpload     ? stream->copyToDevice(to, source, bytes)
                         : isDownload ? stream->copyToHost(target, from, bytes)
                                      : stream->copyOnDevice(to, from, bytes);
  if (!failure)
    failure = stream->synchronize();
  return failure ? MaybeError(toError(*failure)) : std::nullopt;
}

MaybeError sardonyx::synchronizeCuda(int device, void *stream) {
  auto opened = Device::open(device);
  if (!opened)
    return toError(opened.failure());
  auto borrowed = Stream::borrow(*opened, static_cast<CUstream>(stream));
  MaybeFailure failure = borrowed->synchronize();
  return failure ? MaybeError(toError(*failure)) : std::nullopt;
}
