//===- Arrays.cpp - Runs of models from Python ----------------------------===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Arrays.h"
#include <nanobind/ndarray.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <cxxabi.h>
#include <deque>
#include <new>
#include <stdexcept>
#include <sys/syscall.h>
#include <typeinfo>
#include <unistd.h>

namespace nb = nanobind;
using namespace nb::literals;
using namespace sardonyx;

void takeGil(PyThreadState *state) {
  try {
    PyEval_RestoreThread(state);
  } catch (abi::__forced_unwind &) {
    for (;;)
      pause();
  }
}

/// An exception that a function raised, until somebody is told of it. A thread
/// that ends before leaves it to nobody.
static thread_local PyObject *cause = nullptr;

nb::object takeCause() { return nb::steal(std::exchange(cause, nullptr)); }

void setCause(nb::object raised) {
  Py_XDECREF(cause);
  cause = raised.release().ptr();
}

namespace {

/// Whether the importer found no model at all, which it says in these words.
bool isNoModel(const Error &error) {
  for (const char *words : {"not an ONNX model", "text does not parse",
                            "the model is truncated or damaged"})
    if (error.message().find(words) != std::string::npos)
      return true;
  return false;
}

const char *className(const Raised &raised) {
  switch (raised.error.kind()) {
  case ErrorKind::InvalidArgument:
    return "InvalidArgument";
  case ErrorKind::NoSuchFile:
    return "NoSuchFile";
  case ErrorKind::InvalidModel:
    return isNoModel(raised.error) ? "InvalidProtobuf" : "InvalidGraph";
  case ErrorKind::Unsupported:
    return "NotImplemented";
  case ErrorKind::Failed:
    break;
  }
  return raised.ofRun ? "RuntimeException" : "Fail";
}

} // namespace

/// The modules of the exceptions and of what lies on devices.
static std::string errorsModule, devicesModule;

static void raiseInPython(const Raised &raised) {
  nb::object type =
      nb::module_::import_(errorsModule.c_str()).attr(className(raised));
  nb::object failure = type(raised.error.message());
  failure.attr("detail") = raised.error.detail();
  if (nb::object cause = takeCause())
    PyException_SetCause(failure.ptr(), cause.release().ptr());
  PyErr_SetObject(type.ptr(), failure.ptr());
}

void translateErrors(const nb::module_ &extension) {
  std::string name = nb::cast<std::string>(extension.attr("__name__"));
  errorsModule = name.substr(0, name.rfind('.')) + ".errors";
  devicesModule = name.substr(0, name.rfind('.')) + "._cuda";
  nb::register_exception_translator([](const std::exception_ptr &p, void *) {
    try {
      std::rethrow_exception(p);
    } catch (const Raised &raised) {
      raiseInPython(raised);
    } catch (const std::bad_alloc &) {
      raiseInPython(Raised(Error(ErrorKind::Failed, "not enough memory")));
    } catch (const std::length_error &) {
      raiseInPython(
          Raised(Error(ErrorKind::Failed, "a size is larger than any memory")));
    } catch (const std::bad_cast &) {
      raiseInPython(
          Raised(Error(ErrorKind::InvalidArgument,
                       "an argument is of another type than is asked for")));
    }
  });
}

/// Python runs signal handlers, Ctrl-C's among them, on the main thread only,
/// when asked to. True if one of them raised an exception, which is left set.
bool interruptedByPython() {
  if (syscall(SYS_gettid) != getpid())
    return false;
  PyGILState_STATE state = PyGILState_Ensure();
  bool raised = PyErr_CheckSignals() != 0;
  PyGILState_Release(state);
  return raised;
}

namespace {

using InputArray = nb::ndarray<nb::ro, nb::c_contig, nb::device::cpu>;
using OutputArray = nb::ndarray<nb::c_contig, nb::device::cpu>;

/// The element type that a DLPack type stands for by itself.
ElementType elementTypeOf(nb::dlpack::dtype type) {
  if (type.lanes != 1)
    return ElementType::Undefined;
  auto pick = [&](ElementType b8, ElementType b16, ElementType b32,
                  ElementType b64) {
    switch (type.bits) {
    case 8:
      return b8;
    case 16:
      return b16;
    case 32:
      return b32;
    case 64:
      return b64;
    }
    return ElementType::Undefined;
  };
  constexpr ElementType none = ElementType::Undefined;
  switch (static_cast<nb::dlpack::dtype_code>(type.code)) {
  case nb::dlpack::dtype_code::Int:
    return pick(ElementType::Int8, ElementType::Int16, ElementType::Int32,
                ElementType::Int64);
  case nb::dlpack::dtype_code::UInt:
    return pick(ElementType::Uint8, ElementType::Uint16, ElementType::Uint32,
                ElementType::Uint64);
  case nb::dlpack::dtype_code::Float:
    return pick(none, ElementType::Float16, ElementType::Float,
                ElementType::Double);
  case nb::dlpack::dtype_code::Bfloat:
    return pick(none, ElementType::Bfloat16, none, none);
  case nb::dlpack::dtype_code::Bool:
    return pick(ElementType::Bool, none, none, none);
  case nb::dlpack::dtype_code::Complex:
    return type.bits == 64    ? ElementType::Complex64
           : type.bits == 128 ? ElementType::Complex128
                              : none;
  default:
    return none;
  }
}

/// How a result is shown to numpy; types that numpy lacks as their bits.
nb::dlpack::dtype dlpackTypeOf(ElementType type) {
  using Code = nb::dlpack::dtype_code;
  Code code = Code::UInt;
  switch (type) {
  case ElementType::Float:
  case ElementType::Double:
  case ElementType::Float16:
    code = Code::Float;
    break;
  case ElementType::Int8:
  case ElementType::Int16:
  case ElementType::Int32:
  case ElementType::Int64:
    code = Code::Int;
    break;
  case ElementType::Bool:
    code = Code::Bool;
    break;
  case ElementType::Complex64:
  case ElementType::Complex128:
    code = Code::Complex;
    break;
  default:
    break;
  }
  return {static_cast<uint8_t>(code),
          static_cast<uint8_t>(byteSizeOf(type) * 8), 1};
}

template <typename Array> std::vector<int64_t> shapeOf(const Array &array) {
  std::vector<int64_t> shape(array.ndim());
  for (size_t i = 0; i < shape.size(); ++i)
    shape[i] = static_cast<int64_t>(array.shape(i));
  return shape;
}

ElementType typeOf(int32_t given, nb::dlpack::dtype found) {
  return given ? static_cast<ElementType>(given) : elementTypeOf(found);
}

/// A flat list of str and the shape.
nb::object toStrings(const Tensor &tensor) {
  nb::list texts;
  auto *spans = static_cast<const StringSpan *>(tensor.data);
  for (int64_t i = 0, e = tensor.elements(); i < e; ++i) {
    PyObject *text =
        PyUnicode_DecodeUTF8(spans[i].data, spans[i].size, "surrogateescape");
    if (!text)
      throw nb::python_error();
    texts.append(nb::steal(text));
  }
  return nb::make_tuple(texts, nb::cast(tensor.shape));
}

nb::object toNumpy(const Tensor &tensor) {
  if (tensor.type == ElementType::String)
    return toStrings(tensor);
  if (tensor.device != kHost)
    return nb::cast(DeviceTensor{tensor, nb::none()});
  std::vector<size_t> shape(tensor.shape.begin(), tensor.shape.end());
  nb::capsule owner(new std::shared_ptr<void>(tensor.owner),
                    [](void *pointer) noexcept {
                      delete static_cast<std::shared_ptr<void> *>(pointer);
                    });
  nb::ndarray<nb::numpy> array(tensor.data, shape.size(), shape.data(), owner,
                               nullptr, dlpackTypeOf(tensor.type));
  return nb::cast(array);
}

/// The elements of a list as numbers and str.
nb::list toList(const Tensor &tensor) {
  if (tensor.type == ElementType::String)
    return nb::cast<nb::list>(toStrings(tensor)[0]);
  nb::list list;
  for (int64_t i = 0, e = tensor.elements(); i < e; ++i)
    switch (tensor.type) {
    case ElementType::Int64:
      list.append(static_cast<const int64_t *>(tensor.data)[i]);
      break;
    case ElementType::Double:
      list.append(static_cast<const double *>(tensor.data)[i]);
      break;
    default:
      list.append(static_cast<const float *>(tensor.data)[i]);
    }
  return list;
}

/// Makes dicts of maps; those that share their keys do so in Python, too.
class DictMaker {
public:
  nb::dict make(const Tensor &map) {
    const Tensor &keys = map.items[0];
    if (!lastKeys.is_valid() || keys.data != lastData ||
        keys.elements() != static_cast<int64_t>(nb::len(lastKeys))) {
      lastKeys = toList(keys);
      lastData = keys.data;
    }
    nb::list values = toList(map.items[1]);
    nb::dict dict;
    for (size_t i = 0, e = nb::len(lastKeys); i < e; ++i)
      dict[lastKeys[i]] = values[i];
    return dict;
  }

private:
  nb::list lastKeys;
  const void *lastData = nullptr;
};

/// A list of what toNumpy gives, or of dicts, for a sequence, None for nothing.
nb::object toPython(const Tensor &value) {
  if (value.kind == ValueKind::Nothing)
    return nb::none();
  if (value.kind == ValueKind::Tensor)
    return toNumpy(value);
  DictMaker dicts;
  if (value.kind == ValueKind::Map)
    return dicts.make(value);
  nb::list items;
  for (const Tensor &item : value.items)
    if (item.kind == ValueKind::Map)
      items.append(dicts.make(item));
    else
      items.append(toNumpy(item));
  return items;
}

/// What Python calls the type of an object.
std::string typeName(nb::handle object) {
  return nb::cast<std::string>(nb::type_name(object.type()));
}

/// The DeviceTensor of another library's tensor that lies on a device, or None.
nb::object importTensor(nb::handle value) {
  return nb::module_::import_(devicesModule.c_str())
      .attr("import_tensor")(value);
}

TensorRef refOf(const Tensor &tensor) {
  TensorRef ref;
  ref.type = tensor.type;
  ref.data = tensor.data;
  ref.shape = tensor.shape;
  ref.device = tensor.device;
  return ref;
}

/// The caller's inputs as a session takes them, and what keeps them alive.
class Feeds {
public:
  /// (element type or 0, array) for a tensor, (8, bytes as a list, shape) for
  /// one of strings, (keys, values) for a map, a list of such for a sequence,
  /// None for nothing. `name` is the input's.
  TensorRef read(nb::handle item, const std::string &name) {
    TensorRef ref;
    if (item.is_none()) {
      ref.kind = ValueKind::Nothing;
    } else if (nb::isinstance<nb::list>(item)) {
      ref.kind = ValueKind::Sequence;
      for (nb::handle inner : nb::cast<nb::list>(item))
        ref.items.push_back(read(inner, name));
    } else {
      nb::tuple parts = nb::cast<nb::tuple>(item);
      if (nb::isinstance<nb::tuple>(parts[0])) {
        ref.kind = ValueKind::Map;
        ref.items = {read(parts[0], name), read(parts[1], name)};
        return ref;
      }
      if (nb::len(parts) == 3)
        return readStrings(nb::cast<nb::list>(parts[1]),
                           nb::cast<std::vector<int64_t>>(parts[2]));
      if (nb::isinstance<DeviceTensor>(parts[1]))
        return refOf(nb::cast<DeviceTensor &>(parts[1]).tensor);
      InputArray &array = arrays.emplace_back();
      if (!nb::try_cast(parts[1], array)) {
        nb::object there = importTensor(parts[1]);
        if (nb::isinstance<DeviceTensor>(there)) {
          kept.push_back(there);
          return refOf(nb::cast<DeviceTensor &>(there).tensor);
        }
        throw Raised(Error(ErrorKind::InvalidArgument,
                           "input '" + name + "' is a " + typeName(parts[1]) +
                               " that gives no data in the CPU's memory"));
      }
      ref.type = typeOf(nb::cast<int32_t>(parts[0]), array.dtype());
      ref.data = array.data();
      ref.shape = shapeOf(array);
    }
    return ref;
  }

private:
  TensorRef readStrings(nb::list texts, std::vector<int64_t> shape) {
    std::vector<StringSpan> &spans = strings.emplace_back();
    spans.resize(nb::len(texts));
    for (size_t i = 0; i < spans.size(); ++i) {
      nb::bytes text = nb::cast<nb::bytes>(texts[i]);
      spans[i] = {text.c_str(), text.size()};
    }
    kept.push_back(texts);
    return {ElementType::String, spans.data(), std::move(shape)};
  }

  std::deque<InputArray> arrays;
  std::deque<std::vector<StringSpan>> strings;
  std::vector<nb::object> kept;
};

/// How a run goes where the caller does not say.
const RunOptions &defaultRunOptions() {
  static const RunOptions *options = [] {
    auto *made = new RunOptions;
    made->interrupted = interruptedByPython;
    return made;
  }();
  return *options;
}

} // namespace

nb::list runModel(Runner &session, nb::list inputs, nb::object memory,
                  const RunOptions *options) {
  Feeds feeds;
  std::vector<TensorRef> refs;
  refs.reserve(nb::len(inputs));
  for (nb::handle item : inputs)
    refs.push_back(feeds.read(item, refs.size() < session.inputs().size()
                                        ? session.inputs()[refs.size()].name
                                        : std::string()));
  std::vector<OutputArray> targets;
  std::vector<nb::object> deviceTargets;
  std::vector<OutputRef> outputs;
  if (!memory.is_none())
    for (nb::handle item : nb::cast<nb::list>(memory)) {
      outputs.emplace_back();
      if (item.is_none())
        continue;
      if (nb::isinstance<nb::int_>(item)) {
        outputs.back().device = nb::cast<int>(item);
        continue;
      }
      nb::tuple pair = nb::cast<nb::tuple>(item);
      auto useDevice = [&](nb::handle given) {
        if (!nb::isinstance<DeviceTensor>(given))
          return false;
        const Tensor &tensor = nb::cast<DeviceTensor &>(given).tensor;
        outputs.back() = {tensor.type, tensor.data, tensor.shape,
                          tensor.device};
        return true;
      };
      if (useDevice(pair[1]))
        continue;
      // No conversion: a copy would take the result in the array's place.
      OutputArray &array = targets.emplace_back();
      if (!nb::try_cast(pair[1], array, /*convert=*/false)) {
        targets.pop_back();
        deviceTargets.push_back(importTensor(pair[1]));
        if (useDevice(deviceTargets.back()))
          continue;
        throw Raised(Error(
            ErrorKind::InvalidArgument,
            "output '" + session.outputs().at(outputs.size() - 1).name +
                "' takes a contiguous array in the CPU's memory that can be "
                "written to, got a " +
                typeName(pair[1])));
      }
      outputs.back() = {typeOf(nb::cast<int32_t>(pair[0]), array.dtype()),
                        array.data(), shapeOf(array)};
    }
  auto results = withoutGil([&] {
    return session.run(refs, outputs, options ? *options : defaultRunOptions());
  });
  if (!results)
    throw Raised(results.error(), /*ofRun=*/true);
  nb::list list;
  for (const Tensor &tensor : *results)
    list.append(tensor.owner || tensor.kind != ValueKind::Tensor
                    ? toPython(tensor)
                    : nb::none());
  return list;
}

nb::object exportMemory(uintptr_t data, int32_t type,
                        const std::vector<int64_t> &shape, nb::object owner,
                        int device) {
  auto element = static_cast<ElementType>(type);
  nb::dlpack::dtype dtype = dlpackTypeOf(element);
  if (element == ElementType::Bfloat16)
    dtype.code = static_cast<uint8_t>(nb::dlpack::dtype_code::Bfloat);
  std::vector<size_t> sizes(shape.begin(), shape.end());
  const bool isHost = device == kHost;
  nb::ndarray<> array(reinterpret_cast<void *>(data), sizes.size(),
                      sizes.data(), owner, nullptr, dtype,
                      isHost ? nb::device::cpu::value : nb::device::cuda::value,
                      isHost ? 0 : device);
  return nb::cast(array);
}

DeviceTensor importDeviceMemory(nb::object source) {
  using Array = nb::ndarray<nb::ro, nb::c_contig, nb::device::cuda>;
  Array array = nb::cast<Array>(source, /*convert=*/false);
  DeviceTensor result;
  result.tensor.type = elementTypeOf(array.dtype());
  result.tensor.shape = shapeOf(array);
  result.tensor.data = const_cast<void *>(array.data());
  result.tensor.device = array.device_id();
  result.keeps = nb::capsule(new Array(array), [](void *kept) noexcept {
    delete static_cast<Array *>(kept);
  });
  return result;
}

void defineDeviceTensor(nb::module_ &m) {
  nb::class_<DeviceTensor>(m, "DeviceTensor")
      .def_prop_ro("data",
                   [](DeviceTensor &self) {
                     return reinterpret_cast<uintptr_t>(self.tensor.data);
                   })
      .def_prop_ro("device",
                   [](DeviceTensor &self) { return self.tensor.device; })
      .def_prop_rw(
          "type",
          [](DeviceTensor &self) {
            return static_cast<int32_t>(self.tensor.type);
          },
          [](DeviceTensor &self, int32_t type) {
            self.tensor.type = static_cast<ElementType>(type);
          })
      .def_prop_ro("shape",
                   [](DeviceTensor &self) { return self.tensor.shape; })
      .def_prop_ro("bytes",
                   [](DeviceTensor &self) { return self.tensor.bytes(); });
}

nb::tuple importMemory(nb::object source) {
  // What may be written is asked for first; neither may end in a copy.
  std::optional<InputArray> readable;
  std::optional<OutputArray> writable;
  OutputArray found;
  if (nb::try_cast(source, found, /*convert=*/false))
    writable = found;
  else
    readable = nb::cast<InputArray>(source, /*convert=*/false);
  auto make = [](auto &array, bool isWritable) {
    ElementType type = elementTypeOf(array.dtype());
    std::vector<size_t> shape(array.ndim());
    for (size_t i = 0; i < shape.size(); ++i)
      shape[i] = array.shape(i);
    nb::object owner = nb::capsule(
        new std::decay_t<decltype(array)>(array), [](void *kept) noexcept {
          delete static_cast<std::decay_t<decltype(array)> *>(kept);
        });
    nb::ndarray<nb::numpy> result(
        const_cast<void *>(static_cast<const void *>(array.data())),
        shape.size(), shape.data(), owner, nullptr, dlpackTypeOf(type));
    return nb::make_tuple(static_cast<int32_t>(type), nb::cast(result),
                          isWritable);
  };
  return writable ? make(*writable, true) : make(*readable, false);
}

nb::list describe(const std::vector<ValueInfo> &infos) {
  nb::list list;
  for (const ValueInfo &info : infos) {
    nb::list dims;
    for (const Dim &dim : info.dims) {
      if (dim.isStatic())
        dims.append(dim.size);
      else if (!dim.symbol.empty())
        dims.append(dim.symbol);
      else
        dims.append(nb::none());
    }
    constexpr ElementType none = ElementType::Undefined;
    // Of a tensor that comes in a list it is said what the tensor is.
    bool isTensor = info.items.empty() || info.elementType != none;
    ElementType item = isTensor ? none : info.innerType();
    ElementType key = info.map() ? info.map()->items[0].elementType : none;
    list.append(nb::make_tuple(info.name, info.type,
                               static_cast<int32_t>(info.elementType),
                               info.hasRank ? nb::object(dims) : nb::none(),
                               static_cast<int32_t>(item), info.isSequence,
                               static_cast<int32_t>(key)));
  }
  return list;
}

nb::dict describe(const ModelMetadata &metadata) {
  nb::dict custom;
  for (const auto &[key, value] : metadata.custom)
    custom[key.c_str()] = value;
  nb::dict dict;
  dict["producer_name"] = metadata.producerName;
  dict["graph_name"] = metadata.graphName;
  dict["domain"] = metadata.domain;
  dict["description"] = metadata.description;
  dict["version"] = metadata.modelVersion;
  dict["custom_metadata_map"] = custom;
  return dict;
}
