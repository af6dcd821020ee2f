//===- Module.cpp - The extension behind the Python package ---------------===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Thin: the compiler and its sessions. How they run is Runtime.cpp's; what
// onnxruntime's interface asks for beyond that is Python, in sardonyx/.
//
//===----------------------------------------------------------------------===//

#include "Arrays.h"
#include "CustomOps.h"
#include "Devices.h"
#include "sardonyx/Build/Build.h"
#include "sardonyx/Session/Compile.h"
#include "sardonyx/Session/PeakFlops.h"
#include "sardonyx/Session/Session.h"
#include "tools/sardonyx/Driver.h"
#include <cstdio>
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/map.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

namespace nb = nanobind;
using namespace nb::literals;
using namespace sardonyx;

namespace {

ModelSource sourceOf(const std::string &path, const nb::bytes &bytes) {
  ModelSource source;
  source.path = path;
  if (path.empty()) {
    source.bytes = bytes.data();
    source.size = bytes.size();
  }
  return source;
}

/// Keeps a Python object until the last copy is gone, on whatever thread.
std::shared_ptr<const void> ownerOf(nb::object object) {
  PyObject *held = object.release().ptr();
  return std::shared_ptr<const void>(held, [](const void *held) {
    // Sessions in globals outlive the interpreter.
    if (!Py_IsInitialized())
      return;
    nb::gil_scoped_acquire gil;
    Py_DECREF(static_cast<PyObject *>(const_cast<void *>(held)));
  });
}

/// What ends the loading of models while it is true; any thread may set it.
struct CancelFlag {
  std::shared_ptr<std::atomic<bool>> value =
      std::make_shared<std::atomic<bool>>(false);
};

/// Has `compile()` ask another process to compile. It tells what went wrong by
/// giving False, and raises nothing.
void setCompileElsewhere(SessionOptions &options, nb::callable compile) {
  options.compileElsewhere = [held = ownerOf(compile)]() -> MaybeError {
    nb::gil_scoped_acquire gil;
    auto *callee = static_cast<PyObject *>(const_cast<void *>(held.get()));
    if (nb::cast<bool>(nb::handle(callee)()))
      return std::nullopt;
    return Error(ErrorKind::Failed, "another process could not compile");
  };
}

/// {name: (element type, shape, bytes or a list of bytes, whether the model's
/// own lies in a file beside)}.
void setInitializers(SessionOptions &options, const nb::dict &given) {
  auto textOf = [](nb::handle value) {
    auto bytes = nb::cast<nb::bytes>(value);
    return std::string(bytes.c_str(), bytes.size());
  };
  auto made = std::make_shared<GivenInitializers>();
  for (auto [name, value] : given) {
    auto parts = nb::cast<nb::tuple>(value);
    GivenInitializer &initializer = (*made)[nb::cast<std::string>(name)];
    initializer.elementType = nb::cast<int32_t>(parts[0]);
    initializer.shape = nb::cast<std::vector<int64_t>>(parts[1]);
    if (nb::isinstance<nb::list>(parts[2]))
      for (nb::handle text : nb::cast<nb::list>(parts[2]))
        initializer.strings.push_back(textOf(text));
    else
      initializer.bytes = textOf(parts[2]);
    initializer.isExternal = nb::cast<bool>(parts[3]);
  }
  options.initializers = made->empty() ? nullptr : std::move(made);
}

/// How models are compiled and run.
void defineOptions(nb::module_ &m) {
  nb::class_<CancelFlag>(m, "CancelFlag")
      .def(nb::init<>())
      .def("is_set", [](CancelFlag &self) { return self.value->load(); })
      .def("set", [](CancelFlag &self, bool value) { *self.value = value; });
  nb::enum_<Numerics>(m, "Numerics")
      .value("exact", Numerics::Exact)
      .value("f32", Numerics::F32)
      .value("fast", Numerics::Fast);
  nb::enum_<Precision>(m, "Precision")
      .value("f32", Precision::F32)
      .value("tf32", Precision::TF32)
      .value("f16", Precision::F16)
      .value("bf16", Precision::BF16)
      .value("bf16x3", Precision::BF16x3);
  nb::enum_<Compile>(m, "Compile")
      .value("wait", Compile::Wait)
      .value("background", Compile::Background);
  nb::class_<DeviceOptions>(m, "DeviceOptions")
      .def_rw("cuda", &DeviceOptions::cuda)
      .def_rw("device_id", &DeviceOptions::deviceId)
      .def_rw("memory_limit", &DeviceOptions::memoryLimit)
      .def_prop_rw(
          "user_stream",
          [](DeviceOptions &self) {
            return reinterpret_cast<uintptr_t>(self.userStream);
          },
          [](DeviceOptions &self, uintptr_t stream) {
            self.userStream = reinterpret_cast<void *>(stream);
          })
      .def_rw("enable_graph", &DeviceOptions::enableGraph)
      .def_rw("may_use_cpu", &DeviceOptions::mayUseCpu);
  nb::class_<SessionOptions>(m, "Options")
      .def(nb::init<>())
      .def_rw("threads", &SessionOptions::intraOpThreads)
      .def_rw("cache", &SessionOptions::cache)
      .def_rw("cache_dir", &SessionOptions::cacheDir)
      .def_rw("cpu", &SessionOptions::cpu)
      .def_rw("features", &SessionOptions::features)
      .def_prop_ro(
          "device", [](SessionOptions &self) { return &self.device; },
          nb::rv_policy::reference_internal)
      .def_rw("triple", &SessionOptions::triple)
      .def_rw("opt_level", &SessionOptions::optLevel)
      .def_rw("compile", &SessionOptions::compile)
      .def_rw("dims", &SessionOptions::dims)
      .def_rw("may_dims_be_unknown", &SessionOptions::mayDimsBeUnknown)
      .def_rw("input_shapes", &SessionOptions::inputShapes)
      .def_rw("denoted_dims", &SessionOptions::denotedDims)
      .def("set_initializers", &setInitializers)
      .def("set_compile_elsewhere", &setCompileElsewhere)
      .def("set_cancel_flag",
           [](SessionOptions &self, const CancelFlag &flag) {
             self.interrupted = [value = flag.value] {
               return *value || interruptedByPython();
             };
           })
      .def("set_custom_ops",
           [](SessionOptions &self, const CustomOps &ops) {
             self.customOps = std::make_shared<CustomOps>(ops);
           })
      .def_rw("numerics", &SessionOptions::numerics)
      .def_rw("precision", &SessionOptions::precision)
      .def_rw("split_floats", &SessionOptions::splitFloats)
      .def_rw("plan", &SessionOptions::plan)
      .def_rw("check_bounds", &SessionOptions::checkBounds)
      .def_rw("profile", &SessionOptions::profile)
      .def("set_observe",
           [](SessionOptions &self,
              const std::map<std::string, std::pair<unsigned, int64_t>>
                  &tensors) {
             self.observe.clear();
             for (const auto &[name, tensor] : tensors)
               self.observe[name] = {tensor.first, tensor.second};
           })
      .def_rw("outputs", &SessionOptions::outputs)
      .def_rw("perf_map", &SessionOptions::perfMap)
      .def_rw("memory_limit", &SessionOptions::memoryLimit)
      .def_rw("compile_timeout", &SessionOptions::compileTimeout)
      .def_rw("external_data_dir", &SessionOptions::externalDataDir);
}

/// Numbers as an array of its own.
template <typename T>
nb::object toArray(const std::vector<T> &numbers,
                   std::vector<size_t> shape = {}) {
  auto *copy = new std::vector<T>(numbers);
  nb::capsule owner(copy, [](void *held) noexcept {
    delete static_cast<std::vector<T> *>(held);
  });
  if (shape.empty())
    shape.push_back(copy->size());
  return nb::cast(nb::ndarray<nb::numpy, T>(copy->data(), shape.size(),
                                            shape.data(), owner));
}

nb::dict toDict(const Observation &seen, unsigned kinds) {
  nb::dict dict;
  if (kinds &
      (runtime::ObserveRange | runtime::ObserveMoments | runtime::ObserveBits))
    dict["count"] = seen.count;
  if (kinds & runtime::ObserveRange) {
    dict["min"] = seen.least;
    dict["max"] = seen.largest;
    dict["nans"] = seen.nans;
    dict["infinities"] = seen.infinities;
  }
  if (kinds & runtime::ObserveMoments) {
    dict["sum"] = seen.sum;
    dict["square_sum"] = seen.squareSum;
  }
  if (kinds & runtime::ObserveBits) {
    std::vector<int64_t> bins(seen.bins.begin(), seen.bins.end());
    bins.resize(size_t(1) << runtime::kObservedBits);
    dict["bins"] = toArray(bins);
  }
  if (kinds & runtime::ObserveChannels) {
    dict["channel_count"] = seen.channelCount;
    dict["channel_min"] = toArray(seen.channelLeast);
    dict["channel_max"] = toArray(seen.channelLargest);
    dict["channel_absolute_sum"] = toArray(seen.channelAbsoluteSum);
    dict["channel_square_sum"] = toArray(seen.channelSquareSum);
  }
  if (kinds & runtime::ObserveGram) {
    size_t columns = 0;
    while (columns * columns < seen.gram.size())
      ++columns;
    dict["gram"] = toArray(seen.gram, {columns, columns});
  }
  return dict;
}

/// A model that has been loaded.
void defineSession(nb::module_ &m) {
  nb::module_::import_("sardonyx._runtime"); // it knows Runner
  // Its own, for it tells of what custom operators raise.
  nb::class_<Session, Runner>(m, "Session")
      .def("run", &runModel, "inputs"_a, "memory"_a.none() = nb::none(),
           "options"_a.none() = nb::none())
      .def(
          "take_trace",
          [](Session &s, int64_t start) {
            return toTrace(s.takeProfile(), start);
          },
          "start"_a)
      .def("take_observations",
           [](Session &s) {
             auto all =
                 unwrap(withoutGil([&] { return s.takeObservations(); }));
             nb::dict dict;
             for (const auto &[name, tensor] : s.options().observe)
               dict[name.c_str()] = toDict(all[name], tensor.kinds);
             return dict;
           })
      .def("find_non_finite",
           [](Session &s) {
             return withoutGil([&] { return s.findNonFinite(); });
           })
      .def(
          "wait_for_compile",
          [](Session &s, std::optional<double> seconds) {
            // In pieces, between which Python may interrupt it.
            constexpr double kPiece = 0.05;
            for (double left = seconds.value_or(HUGE_VAL);; left -= kPiece) {
              const bool ended = unwrap(withoutGil([&] {
                return s.waitForCompile(std::clamp(left, 0.0, kPiece));
              }));
              if (ended || left <= kPiece)
                return ended;
              if (PyErr_CheckSignals() != 0)
                throw nb::python_error();
            }
          },
          "seconds"_a.none() = nb::none())
      .def_prop_ro("cache_problem",
                   [](Session &s) { return s.report().cacheProblem; })
      .def_prop_ro("uses_cuda",
                   [](Session &s) { return s.options().device.cuda; })
      .def_prop_ro("device_use",
                   [](Session &s) -> nb::object {
                     std::optional<DeviceUse> use = s.lastDeviceUse();
                     if (!use)
                       return nb::none();
                     nb::dict dict;
                     dict["kernels"] = use->kernels;
                     dict["copies"] = use->copies;
                     dict["copied_bytes"] = use->copiedBytes;
                     dict["submissions"] = use->submissions;
                     dict["waits"] = use->waits;
                     dict["memory_bytes"] = use->memoryBytes;
                     dict["host_seconds"] = use->hostSeconds;
                     return dict;
                   })
      .def_prop_ro("from_cache",
                   [](Session &s) { return s.report().fromCache; })
      .def_prop_ro("timings", [](Session &s) {
        nb::dict dict;
        for (const Timing &timing : s.report().timings)
          dict[timing.step.c_str()] = timing.seconds;
        return dict;
      });
}

/// Models to sessions.
void defineLoading(nb::module_ &m) {
  m.def(
      "load",
      [](const std::string &path, SessionOptions options) {
        return unwrap(withoutGil([&] { return Session::load(path, options); }));
      },
      "path"_a, "options"_a);
  m.def(
      "load_bytes",
      [](nb::bytes bytes, SessionOptions options) {
        const void *data = bytes.data();
        size_t size = bytes.size();
        std::shared_ptr<const void> owner = ownerOf(bytes);
        return unwrap(withoutGil(
            [&] { return Session::loadBytes(data, size, options, owner); }));
      },
      "bytes"_a, "options"_a);
  m.def("stop_loading", &stopLoading, nb::call_guard<nb::gil_scoped_release>());
}

/// Models to files.
void defineFiles(nb::module_ &m) {
  m.def(
      "build",
      [](const std::string &path, nb::bytes bytes, const std::string &output,
         SessionOptions session, std::vector<std::string> cpus,
         const std::vector<std::string> &targets, const std::string &name,
         const std::string &weights, bool isStatic) {
        ModelSource source = sourceOf(path, bytes);
        BuildOptions options;
        options.session = std::move(session);
        options.cpus = std::move(cpus);
        for (const std::string &target : targets)
          if (MaybeError error = setTarget(target, options))
            throw Raised(*error);
        options.name = name;
        options.weightsFile = weights;
        options.isStatic = isStatic;
        BuildReport report =
            unwrap(withoutGil([&] { return build(source, output, options); }));
        return report.files;
      },
      "path"_a, "bytes"_a, "output"_a, "options"_a, "cpus"_a, "targets"_a,
      "name"_a, "weights"_a, "static"_a);
  m.def(
      "save_optimized",
      [](const std::string &path, nb::bytes bytes, const std::string &output,
         SessionOptions options, const std::string &weights,
         uint64_t minBytes) {
        ModelSource source = sourceOf(path, bytes);
        if (MaybeError error = withoutGil([&] {
              return saveOptimized(source, output, options,
                                   {weights, minBytes});
            }))
          throw Raised(*error);
      },
      "path"_a, "bytes"_a, "output"_a, "options"_a, "weights"_a, "min_bytes"_a);
}

/// What the compiler tells of models.
void defineViews(nb::module_ &m) {
  m.def("phases", &phaseNames);
  m.def(
      "compile_to_text",
      [](const std::string &path, nb::bytes bytes, const std::string &phase,
         const SessionOptions &options, bool elideWeights) {
        ModelSource source = sourceOf(path, bytes);
        return unwrap(withoutGil([&] {
          return compileToText(source, phase, options, nullptr, elideWeights);
        }));
      },
      "path"_a, "bytes"_a, "phase"_a, "options"_a, "elide_weights"_a = false);
  m.def(
      "inspect",
      [](const std::string &path, nb::bytes bytes,
         const std::map<std::string, int64_t> &dims,
         const SessionOptions &options) {
        ModelSource source = sourceOf(path, bytes);
        ModelReport report = unwrap(
            withoutGil([&] { return inspectModel(source, dims, options); }));
        nb::dict dict;
        dict["inputs"] = describe(report.inputs);
        dict["outputs"] = describe(report.outputs);
        dict["metadata"] = describe(report.metadata);
        dict["opsets"] = report.opsets;
        dict["ops"] = report.ops;
        dict["functions"] = report.functions;
        dict["flops"] = report.flops;
        dict["weight_bytes"] = report.weightBytes;
        dict["unsupported"] = report.unsupported;
        return dict;
      },
      "path"_a, "bytes"_a, "dims"_a, "options"_a);
}

/// The command line, and what the machine can do.
void defineTools(nb::module_ &m) {
  m.def(
      "run_driver",
      [](const std::vector<std::string> &words) {
        std::vector<const char *> argv;
        for (const std::string &word : words)
          argv.push_back(word.c_str());
        int status = runDriver(argv.size(), argv.data());
        fflush(stdout);
        return status;
      },
      "words"_a, nb::call_guard<nb::gil_scoped_release>());
  m.def("measure_peak_gflops", &sardonyx::measurePeakGflops, "threads"_a = 0,
        nb::call_guard<nb::gil_scoped_release>(),
        "The measured rate of f32 multiply-adds in registers, in GFLOP/s.");
}

} // namespace

NB_MODULE(_sardonyx, m) {
  m.attr("__version__") = SARDONYX_VERSION;
  m.attr("MAX_THREADS") = kMaxThreads;
  nb::set_leak_warnings(false); // sessions may live in globals until the end

  translateErrors(m);

  defineCustomOps(m);
  defineOptions(m);
  defineSession(m);
  defineLoading(m);
  defineFiles(m);
  defineViews(m);
  defineTools(m);
  defineDevices(m);
}
