//===- Arrays.h - Runs of models from Python --------------------*- C++ -*-===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// What both extensions share: values in and out, errors, waiting.
//
//===----------------------------------------------------------------------===//

#ifndef SARDONYX_PYTHON_ARRAYS_H
#define SARDONYX_PYTHON_ARRAYS_H

#include "sardonyx/Model/Error.h"
#include "sardonyx/Model/Runner.h"
#include <exception>
#include <nanobind/nanobind.h>
#include <utility>
#include <vector>

/// An error on its way to sardonyx.errors, which has a class for each kind, and
/// one of its own for runs that failed.
struct Raised : std::exception {
  explicit Raised(sardonyx::Error error, bool ofRun = false)
      : error(std::move(error)), ofRun(ofRun) {}
  const char *what() const noexcept override { return error.message().c_str(); }
  sardonyx::Error error;
  bool ofRun;
};

/// Has nanobind make exceptions of what is raised: of the module `errors` that
/// lies beside the extension.
void translateErrors(const nanobind::module_ &extension);

template <typename T> T unwrap(sardonyx::Expected<T> value) {
  if (!value)
    throw Raised(value.error());
  return std::move(*value);
}

/// Takes the GIL back. When Python has ended meanwhile, it unwinds the thread
/// from in here; that would meet frames that must not be left by an exception,
/// and there is nothing more for the thread to do.
void takeGil(PyThreadState *state);

/// What the last custom operator raised that failed on this thread, or null.
/// Only with the GIL.
nanobind::object takeCause();

/// Keeps what a custom operator raised; null forgets it.
void setCause(nanobind::object raised);

/// Python runs signal handlers, Ctrl-C's among them, on the main thread only,
/// when asked to. True if one of them raised an exception, which is left set.
bool interruptedByPython();

/// What `work` gives while other threads of Python run on. Throws the exception
/// of a signal handler.
template <typename F> auto withoutGil(F work) {
  takeCause(); // of a failure that nobody was told of
  PyThreadState *state = PyEval_SaveThread();
  auto result = work();
  takeGil(state);
  if (PyErr_Occurred())
    throw nanobind::python_error();
  return result;
}

/// A tensor on a device as Python has it.
struct DeviceTensor {
  sardonyx::Tensor tensor;
  /// What keeps the memory in the place of `tensor.owner`: another library's.
  nanobind::object keeps;
};

/// Tells a module of DeviceTensor.
void defineDeviceTensor(nanobind::module_ &m);

/// `inputs`: (element type or 0, array) for each input. `memory`: None, or the
/// same for each output, None where the model is to give the memory, and the
/// number of a device where it is to give memory there. Arrays may be
/// DeviceTensors. Results are arrays, or DeviceTensors where they lie on a
/// device, and None where they went to the caller's memory.
nanobind::list runModel(sardonyx::Runner &model, nanobind::list inputs,
                        nanobind::object memory,
                        const sardonyx::RunOptions *options);

/// A DLPack capsule of memory that `owner` keeps, with the element type that it
/// has in ONNX; numpy exports none of bfloat16. `device`: the number of the
/// CUDA device that the memory is of, or kHost.
nanobind::object exportMemory(uintptr_t data, int32_t type,
                              const std::vector<int64_t> &shape,
                              nanobind::object owner,
                              int device = sardonyx::kHost);

/// The DeviceTensor of what a DLPack capsule of CUDA's memory holds.
DeviceTensor importDeviceMemory(nanobind::object source);

/// (element type, array on the same memory, whether it may be written) of what
/// has DLPack, or of a capsule; types that numpy lacks as their bits.
nanobind::tuple importMemory(nanobind::object source);

/// (name, type as text, element type, dims as int | str | None, or None; the
/// element type of the tensors in a sequence, an optional or a map or 0,
/// whether it is a sequence; the type of the keys of a map or a sequence of
/// maps or 0).
nanobind::list describe(const std::vector<sardonyx::ValueInfo> &infos);
nanobind::dict describe(const sardonyx::ModelMetadata &metadata);

#endif // SARDONYX_PYTHON_ARRAYS_H
