//===- Runtime.cpp - The extension that runs models -----------------------===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// It has no compiler: models come ready from files of `sardonyx build`, or from
// the other extension.
//
//===----------------------------------------------------------------------===//

#include "Arrays.h"
#ifndef SARDONYX_RUNTIME_ONLY
#include "OpenCompiler.h"
#include "lib/Runtime/GPU/Driver.h"
#endif
#include "sardonyx/Model/LoadArtifact.h"
#include <nanobind/nanobind.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

namespace nb = nanobind;
using namespace nb::literals;
using namespace sardonyx;

NB_MODULE(_runtime, m) {
  m.attr("__version__") = SARDONYX_VERSION;
  nb::set_leak_warnings(false); // models may live in globals until the end
  translateErrors(m);

  nb::class_<RunOptions>(m, "RunOptions")
      .def("__init__",
           [](RunOptions *self) {
             new (self) RunOptions;
             self->interrupted = interruptedByPython;
           })
      .def_prop_rw(
          "terminate", [](RunOptions &self) { return self.terminate.load(); },
          [](RunOptions &self, bool value) { self.terminate.store(value); })
      .def_rw("timeout", &RunOptions::timeout)
      .def_rw("max_trip_count", &RunOptions::maxTripCount)
      .def_rw("release_memory", &RunOptions::releaseMemory);

  nb::class_<Runner>(m, "Runner")
      .def("run", &runModel, "inputs"_a, "memory"_a.none() = nb::none(),
           "options"_a.none() = nb::none())
      .def_prop_ro("bytes_held", &Runner::bytesHeld)
      .def_prop_ro("device", &Runner::device)
      .def("release_memory", &Runner::releaseMemory)
      .def_prop_ro("has_warnings", &Runner::hasWarnings)
      .def("take_warnings", &Runner::takeWarnings)
      .def_prop_ro("inputs", [](Runner &r) { return describe(r.inputs()); })
      .def_prop_ro("outputs", [](Runner &r) { return describe(r.outputs()); })
      .def_prop_ro("metadata",
                   [](Runner &r) { return describe(r.metadata()); });

  defineDeviceTensor(m);
  m.def("export_memory", &exportMemory, "data"_a, "type"_a, "shape"_a,
        "owner"_a, "device"_a = kHost);
  m.def("import_memory", &importMemory, "source"_a);
  m.def("import_device_memory", &importDeviceMemory, "source"_a);
  m.def(
      "load",
      [](const std::string &path, unsigned threads, int64_t memoryLimit,
         std::optional<int> device, int64_t deviceMemoryLimit,
         uintptr_t stream) {
        ArtifactOptions options;
        options.threads = threads;
        options.memoryLimit = memoryLimit;
        options.device = device;
        options.deviceMemoryLimit = deviceMemoryLimit;
        options.stream = reinterpret_cast<void *>(stream);
        return unwrap(withoutGil([&] { return loadArtifact(path, options); }));
      },
      "path"_a, "threads"_a, "memory_limit"_a, "device"_a.none(),
      "device_memory_limit"_a, "stream"_a);
#ifndef SARDONYX_RUNTIME_ONLY
  m.def(
      "cuda_driver_problem",
      [] {
        const auto &driver = runtime::gpu::Driver::get();
        return driver ? std::string() : driver.failure().sentence;
      },
      "Why there is no CUDA device; empty: there is one. The compiler is not "
      "loaded to tell.");
  m.def("open_compiler_libraries", &openCompilerLibraries, "path"_a);
#endif
}
