//===- CustomOps.cpp - Operators that are Python functions ----------------===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A function gets copies of the inputs: it may keep them, and the memory of a
// run is somebody else's soon after. How arrays and types look in Python is
// sardonyx/_custom.py, whose functions are called here.
//
//===----------------------------------------------------------------------===//

#include "CustomOps.h"
#include "Arrays.h"
#include "sardonyx/Session/CustomOps.h"
#include "sardonyx/Session/Session.h"
#include <cstring>
#include <cxxabi.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>
#include <unistd.h>

namespace nb = nanobind;
using namespace nb::literals;
using namespace sardonyx;

namespace {

/// The GIL, on any thread.
class Gil {
public:
  Gil() {
    try {
      state = PyGILState_Ensure();
    } catch (abi::__forced_unwind &) {
      for (;;) // Python has ended, and with it this thread's work
        pause();
    }
  }
  ~Gil() { PyGILState_Release(state); }

private:
  PyGILState_STATE state;
};

/// The exception that is being handled, as a sentence. One that is no
/// `Exception`, Ctrl-C's among them, stays set: it ends more than a run.
std::string describe(nb::python_error &raised) {
  std::string text = nb::type_name(raised.type()).c_str();
  try {
    std::string value = nb::str(raised.value()).c_str();
    if (!value.empty())
      text += ": " + value;
  } catch (nb::python_error &) {
    text += " that has no text";
  }
  if (PyErr_GivenExceptionMatches(raised.value().ptr(), PyExc_Exception)) {
    setCause(nb::borrow(raised.value()));
  } else {
    raised.restore();
  }
  return text;
}

/// Why `body` failed. With the GIL.
template <typename F> CustomFailure guarded(const char *what, F body) {
  try {
    body();
    return std::nullopt;
  } catch (nb::python_error &raised) {
    return what + (" raised " + describe(raised));
  } catch (const std::exception &exception) {
    return what + (std::string(" failed: ") + exception.what());
  }
}

//===----------------------------------------------------------------------===//
// Nodes and arrays for sardonyx/_custom.py
//===----------------------------------------------------------------------===//

nb::object toText(std::string_view text) {
  PyObject *made =
      PyUnicode_DecodeUTF8(text.data(), text.size(), "surrogateescape");
  if (!made)
    throw nb::python_error();
  return nb::steal(made);
}

template <typename T> nb::list toTexts(const T &texts) {
  nb::list list;
  for (const auto &text : texts)
    list.append(toText(text));
  return list;
}

nb::tuple toShape(const std::vector<int64_t> &sizes) {
  nb::list list;
  for (int64_t size : sizes)
    list.append(size < 0 ? nb::none() : nb::object(nb::int_(size)));
  return nb::tuple(list);
}

/// None, or (element type, shape or None).
nb::object toType(const CustomType &type) {
  if (!type.isPresent)
    return nb::none();
  return nb::make_tuple(static_cast<int32_t>(type.type),
                        type.hasRank ? nb::object(toShape(type.shape))
                                     : nb::none());
}

/// A number, a text, a list, or (element type, shape, bytes or texts).
nb::object toValue(const CustomAttribute &attribute) {
  switch (attribute.kind) {
  case CustomAttribute::Int:
    return nb::int_(attribute.ints[0]);
  case CustomAttribute::Float:
    return nb::float_(attribute.floats[0]);
  case CustomAttribute::String:
    return toText(attribute.strings[0]);
  case CustomAttribute::Ints:
    return nb::cast(attribute.ints);
  case CustomAttribute::Floats:
    return nb::cast(attribute.floats);
  case CustomAttribute::Strings:
    return toTexts(attribute.strings);
  case CustomAttribute::Tensor:
    break;
  }
  nb::object data = nb::bytes(attribute.data.data(), attribute.data.size());
  if (attribute.type == ElementType::String)
    data = toTexts(attribute.strings);
  return nb::make_tuple(static_cast<int32_t>(attribute.type),
                        toShape(attribute.ints), data);
}

nb::dict toAttributes(const CustomNode &node) {
  nb::dict dict;
  for (const CustomAttribute &attribute : node.attributes)
    dict[toText(attribute.name)] = toValue(attribute);
  return dict;
}

int64_t countOf(const std::vector<int64_t> &shape) {
  int64_t count = 1;
  for (int64_t size : shape)
    count *= size;
  return count;
}

/// None, or (element type, shape, bytes or texts).
nb::object toInput(const CustomType &type, size_t index, CustomRun &run) {
  if (!type.isPresent)
    return nb::none();
  const std::vector<int64_t> &shape = run.inputShape(index);
  const void *from = run.inputData(index);
  int64_t count = countOf(shape);
  nb::object data;
  if (type.type == ElementType::String) {
    auto *spans = static_cast<const StringSpan *>(from);
    nb::list texts;
    for (int64_t i = 0; i < count; ++i)
      texts.append(toText(spans[i].text()));
    data = texts;
  } else {
    // Python's own, and writable.
    PyObject *bytes = PyByteArray_FromStringAndSize(
        static_cast<const char *>(from), count * byteSizeOf(type.type));
    if (!bytes)
      throw nb::python_error();
    data = nb::steal(bytes);
  }
  return nb::make_tuple(static_cast<int32_t>(type.type), toShape(shape), data);
}

/// Writes a result, (element type, shape, bytes or a list of them). False: the
/// run says why it cannot be.
bool takeResult(nb::handle given, size_t index, CustomRun &run) {
  nb::tuple parts = nb::cast<nb::tuple>(given);
  auto type = static_cast<ElementType>(nb::cast<int32_t>(parts[0]));
  auto shape = nb::cast<std::vector<int64_t>>(parts[1]);
  void *memory = run.output(index, type, shape);
  if (!memory)
    return false;
  if (type == ElementType::String) {
    int64_t element = 0;
    for (nb::handle text : nb::cast<nb::list>(parts[2])) {
      nb::bytes bytes = nb::cast<nb::bytes>(text);
      run.setString(index, element++, {bytes.c_str(), bytes.size()});
    }
    return true;
  }
  nb::bytes bytes = nb::cast<nb::bytes>(parts[2]);
  if (static_cast<int64_t>(bytes.size()) != countOf(shape) * byteSizeOf(type))
    throw std::runtime_error("a result has another size than its shape");
  if (bytes.size())
    memcpy(memory, bytes.c_str(), bytes.size());
  return true;
}

//===----------------------------------------------------------------------===//
// The operator
//===----------------------------------------------------------------------===//

/// `call(inputs, attributes, presentOutputs)` and `infer(types, attributes,
/// presentOutputs)` are given by sardonyx/_custom.py.
class PythonOp : public CustomOp {
public:
  PythonOp(nb::object call, nb::object shapes)
      : call(call.release().ptr()), shapes(shapes.release().ptr()) {}
  ~PythonOp() override {
    if (!Py_IsInitialized())
      return; // Python takes its objects along
    Gil gil;
    Py_XDECREF(call);
    Py_XDECREF(shapes);
  }

  CustomFailure infer(CustomNode &node) const override {
    Gil gil;
    return guarded("its shape function", [&] {
      nb::list types;
      for (const CustomType &type : node.inputs)
        types.append(toType(type));
      nb::object given =
          nb::handle(shapes)(types, toAttributes(node), presence(node));
      size_t index = 0;
      for (nb::handle item : nb::cast<nb::list>(given))
        readType(item, node.outputs.at(index++));
    });
  }

  CustomFailure compute(const CustomNode &node, void *,
                        CustomRun &run) const override {
    Gil gil;
    return guarded("its function", [&] {
      nb::list inputs;
      for (size_t i = 0; i < node.inputs.size(); ++i)
        inputs.append(toInput(node.inputs[i], i, run));
      nb::object given =
          nb::handle(call)(inputs, toAttributes(node), presence(node));
      size_t index = 0;
      for (nb::handle item : nb::cast<nb::list>(given)) {
        if (!item.is_none() && !takeResult(item, index, run))
          return;
        ++index;
      }
    });
  }

private:
  static nb::list presence(const CustomNode &node) {
    nb::list list;
    for (const CustomType &type : node.outputs)
      list.append(type.isPresent);
    return list;
  }

  static void readType(nb::handle given, CustomType &type) {
    if (given.is_none() || !type.isPresent)
      return;
    nb::tuple parts = nb::cast<nb::tuple>(given);
    type.type = static_cast<ElementType>(nb::cast<int32_t>(parts[0]));
    type.hasRank = !parts[1].is_none();
    if (type.hasRank)
      type.shape = nb::cast<std::vector<int64_t>>(parts[1]);
  }

  PyObject *const call, *const shapes;
};

void check(const MaybeError &error) {
  if (error)
    throw Raised(*error);
}

} // namespace

void defineCustomOps(nb::module_ &m) {
  nb::class_<CustomOps>(m, "CustomOps")
      .def(nb::init<>())
      .def("add_all", &CustomOps::addAll)
      .def(
          "add_python",
          [](CustomOps &self, const std::string &domain,
             const std::string &name, int64_t version, nb::object call,
             nb::object infer, bool isStateful) {
            auto op = std::make_shared<PythonOp>(call, infer);
            op->domain = domain;
            op->name = name;
            op->sinceVersion = version;
            op->isStateful = isStateful;
            check(self.add(std::move(op)));
          },
          "domain"_a, "name"_a, "version"_a, "call"_a, "infer"_a, "stateful"_a)
      .def("add_library",
           [](CustomOps &self, const std::string &path) {
             check(self.addLibrary(path));
           })
      .def("add_functions_file",
           [](CustomOps &self, const std::string &path) {
             check(self.addFunctionsFile(path));
           })
      .def("add_functions",
           [](CustomOps &self, nb::bytes bytes) {
             check(self.addFunctions({bytes.c_str(), bytes.size()}));
           })
      .def("add_mlir_file",
           [](CustomOps &self, const std::string &path) {
             check(self.addMlirFile(path));
           })
      .def("add_mlir", [](CustomOps &self, const std::string &text) {
        check(self.addMlir(text));
      });
}
