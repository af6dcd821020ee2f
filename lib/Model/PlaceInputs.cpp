//===- PlaceInputs.cpp - Inputs where the code takes them -----------------===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "ModelState.h"

using namespace sardonyx;
using runtime::DeviceRun;
using runtime::OutputSlot;
using runtime::RunContext;

namespace {

/// The inputs of one run in both places, each copied at most once.
class PlacedInputs {
public:
  PlacedInputs(RunContext &context, size_t count)
      : context(context), device(*context.device()), onDevice(count),
        onHost(count) {}

  /// Where the input of this number, which is `tensor`, is. Null, and the run
  /// has failed, where it cannot be there.
  const void *onDeviceOf(size_t number, const TensorRef &tensor);
  const void *onHostOf(size_t number, const TensorRef &tensor);
  /// Has host copies hold what they are copies of.
  void finish() {
    if (isReading && !context.failed())
      device.wait(context);
  }

private:
  RunContext &context;
  DeviceRun &device;
  std::vector<void *> onDevice, onHost;
  bool isReading = false;
};

} // namespace

/// Model::check() has seen that the shape is one.
static int64_t bytesOf(const TensorRef &tensor) {
  int64_t bytes = byteSizeOf(tensor.type);
  for (int64_t size : tensor.shape)
    bytes *= size;
  return bytes;
}

static bool isAligned(const void *memory) {
  return reinterpret_cast<uintptr_t>(memory) % runtime::kDeviceAlignment == 0;
}

const void *PlacedInputs::onDeviceOf(size_t number, const TensorRef &tensor) {
  const bool isThere = tensor.device != kHost;
  if (isThere && tensor.data && isAligned(tensor.data))
    return tensor.data;
  void *&copy = onDevice[number];
  if (copy)
    return copy;
  const int64_t bytes = bytesOf(tensor);
  copy = device.allocate(context, bytes, nullptr);
  if (!copy || bytes == 0)
    return copy;
  if (isThere)
    device.copyOnDevice(context, copy, tensor.data, bytes);
  else
    device.copyToDevice(context, copy, tensor.data, bytes);
  return copy;
}

const void *PlacedInputs::onHostOf(size_t number, const TensorRef &tensor) {
  const int64_t bytes = bytesOf(tensor);
  if (tensor.device == kHost || bytes == 0)
    return tensor.device == kHost && tensor.data ? tensor.data : emptyTensor;
  void *&copy = onHost[number];
  if (copy)
    return copy;
  copy = context.allocate(bytes);
  if (!copy)
    return nullptr;
  device.copyToHost(context, copy, tensor.data, bytes);
  isReading = true;
  return copy;
}

void Model::placeInputs(State &state,
                        const std::vector<TensorRef> &inputs) const {
  RunContext &context = state.context;
  bool concernsCaller = false;
  for (const TensorRef &tensor : inputs)
    concernsCaller |= tensor.device != kHost;
  for (const OutputSlot &slot : context.outputs())
    concernsCaller |= slot.wantedOnDevice && slot.callerMemory;
  if (concernsCaller)
    context.device()->joinCaller(context);

  // Strings and lists are handles, on the device as well.
  std::vector<TensorRef> handles;
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (!isHandled(inputInfos[i]))
      continue;
    handles.resize(inputs.size());
    handles[i].type = ElementType::Int64;
    handles[i].data = state.handles[i].data();
    if (inputInfos[i].items.empty())
      handles[i].shape = inputs[i].shape;
  }
  PlacedInputs placed(context, inputs.size());
  for (size_t i = 0; i < code.arguments.size() && !context.failed(); ++i) {
    const ModelArgument &argument = code.arguments[i];
    if (!argument.input)
      continue;
    const size_t number = *argument.input;
    const TensorRef &tensor =
        isHandled(inputInfos[number]) ? handles[number] : inputs[number];
    const void *data = argument.onDevice ? placed.onDeviceOf(number, tensor)
                                         : placed.onHostOf(number, tensor);
    state.table.set(i, data, tensor.shape);
  }
  placed.finish();
}
