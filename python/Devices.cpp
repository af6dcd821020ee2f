//===- Devices.cpp - Tensors on devices from Python -----------------------===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Devices.h"
#include "Arrays.h"
#include "sardonyx/Session/Devices.h"
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

namespace nb = nanobind;
using namespace nb::literals;
using namespace sardonyx;

static void check(const MaybeError &error) {
  if (error)
    throw Raised(*error);
}

static void *pointer(uintptr_t address) {
  return reinterpret_cast<void *>(address);
}

/// Copies all bytes of a tensor.
static void copy(const DeviceTensor &self, uintptr_t other, int place,
                 bool isTarget) {
  const Tensor &tensor = self.tensor;
  check(withoutGil([&] {
    return isTarget ? copyOnCuda(tensor.data, tensor.device, pointer(other),
                                 place, tensor.bytes())
                    : copyOnCuda(pointer(other), place, tensor.data,
                                 tensor.device, tensor.bytes());
  }));
}

void defineDevices(nb::module_ &m) {
  m.def(
      "cuda_problem",
      [](bool needsCode) {
        MaybeError problem = findCudaProblem(needsCode);
        return problem ? problem->message() : std::string();
      },
      "needs_code"_a,
      "Why no CUDA device can be used, or no session can have one; empty: one "
      "can.");
  m.def("cuda_device_count", countCudaDevices,
        "How many CUDA devices the driver finds.");
  m.def(
      "cuda_allocate",
      [](int32_t type, std::vector<int64_t> shape, int device) {
        return DeviceTensor{unwrap(withoutGil([&] {
                              return allocateOnCuda(
                                  static_cast<ElementType>(type),
                                  std::move(shape), device);
                            })),
                            nb::none()};
      },
      "type"_a, "shape"_a, "device"_a);
  m.def(
      "cuda_memory",
      [](uintptr_t data, int32_t type, std::vector<int64_t> shape, int device,
         nb::object owner) {
        DeviceTensor made;
        made.tensor.type = static_cast<ElementType>(type);
        made.tensor.shape = std::move(shape);
        made.tensor.data = pointer(data);
        made.tensor.device = device;
        made.keeps = std::move(owner);
        return made;
      },
      "data"_a, "type"_a, "shape"_a, "device"_a, "owner"_a.none(),
      "Memory that `owner` keeps.");
  m.def(
      "cuda_device_of",
      [](uintptr_t data) { return unwrap(findCudaDevice(pointer(data))); },
      "data"_a, "The number of the device that an address is of, or -1.");
  m.def(
      "cuda_read",
      [](DeviceTensor &source, uintptr_t target, int place) {
        copy(source, target, place, /*isTarget=*/false);
      },
      "source"_a, "target"_a, "place"_a = kHost);
  m.def(
      "cuda_write",
      [](DeviceTensor &target, uintptr_t source, int place) {
        copy(target, source, place, /*isTarget=*/true);
      },
      "target"_a, "source"_a, "place"_a = kHost);
  m.def(
      "cuda_synchronize",
      [](int device, uintptr_t stream) {
        check(withoutGil(
            [&] { return synchronizeCuda(device, pointer(stream)); }));
      },
      "device"_a, "stream"_a = 0);
}
