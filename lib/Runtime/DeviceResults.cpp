//===- DeviceResults.cpp - Results of runs on a device --------------------===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "sardonyx/Runtime/RunContext.h"

using namespace sardonyx::runtime;

/// What kernels count on where the memory is not the runtime's own: they read
/// and write 16 bytes at a time.
static bool isAligned(const void *memory) {
  return reinterpret_cast<uintptr_t>(memory) % kDeviceAlignment == 0;
}

void RunContext::setDevice(std::unique_ptr<DeviceRun> given) {
  deviceRun = std::move(given);
}

static std::string describe(const OutputSlot &slot, int64_t rank,
                            const int64_t *sizes) {
  std::string text = "output '" + slot.name + "' of shape [";
  for (int64_t i = 0; i < rank; ++i)
    text += (i ? ", " : "") + std::to_string(sizes[i]);
  return text + "]";
}

static int64_t bytesOf(const OutputSlot &slot) {
  int64_t bytes = slot.elementBytes;
  for (int64_t size : slot.sizes)
    bytes *= size;
  return bytes;
}

void *RunContext::deviceOutput(int64_t index, int64_t rank,
                               const int64_t *sizes) {
  int64_t bytes = 0;
  OutputSlot *slot = beginOutput(index, rank, sizes, bytes);
  if (!slot)
    return nullptr;
  if (slot->callerMemory && slot->wantedOnDevice && !slot->copied &&
      isAligned(slot->callerMemory))
    slot->data = slot->callerMemory;
  else
    slot->data = deviceRun->allocateResult(
        *this, bytes, describe(*slot, rank, sizes),
        /*isKept=*/slot->wantedOnDevice && !slot->callerMemory);
  if (!slot->data)
    return nullptr;
  slot->isOnDevice = true;
  endOutput(*slot, rank, sizes);
  return slot->data;
}

/// Takes a result to where the caller wants it. His memory is the result's from
/// then on, but for host memory that is an input's, too, which the caller of
/// the run copies to.
void RunContext::settleOutput(OutputSlot &slot) {
  const int64_t bytes = bytesOf(slot);
  const bool hasMemory = slot.callerMemory && !slot.copied;
  if (slot.isOnDevice && !slot.wantedOnDevice) {
    void *host = hasMemory
                     ? slot.callerMemory
                     : tryTwice([&] { return outputMemory->allocate(bytes); });
    if (!host)
      return setResultOutOfMemory(slot, slot.sizes.size(), slot.sizes.data(),
                                  bytes);
    deviceRun->copyToHost(*this, host, slot.data, bytes);
    slot.data = host;
    slot.isOnDevice = false;
    return;
  }
  if (!slot.wantedOnDevice)
    return;
  void *device = slot.callerMemory;
  if (!slot.isOnDevice) {
    if (!device)
      device = deviceRun->allocateResult(
          *this, bytes, describe(slot, slot.sizes.size(), slot.sizes.data()),
          /*isKept=*/true);
    if (!device)
      return;
    deviceRun->copyToDevice(*this, device, slot.data, bytes);
    outputMemory->release(slot.data);
    slot.data = device;
    slot.isOnDevice = true;
  } else if (device && device != slot.data) {
    deviceRun->copyOnDevice(*this, device, slot.data, bytes);
    slot.data = device;
  }
}

void RunContext::settleOutputs() {
  for (OutputSlot &slot : outputSlots)
    if (slot.given && !failed())
      settleOutput(slot);
  if (!failed())
    deviceRun->wait(*this);
  for (OutputSlot &slot : outputSlots) {
    if (!slot.isOnDevice)
      continue;
    if (failed())
      slot.data = nullptr;
    else if (slot.data != slot.callerMemory)
      slot.owner = deviceRun->keep(slot.data);
  }
  deviceRun->end(*this);
}
