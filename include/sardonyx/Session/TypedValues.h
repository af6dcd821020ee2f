//===- TypedValues.h - Values by name and by C++ type -----------*- C++ -*-===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef SARDONYX_SESSION_TYPEDVALUES_H
#define SARDONYX_SESSION_TYPEDVALUES_H

#include "sardonyx/Model/Error.h"
#include "sardonyx/Model/Export.h"
#include "sardonyx/Model/Runner.h"
#include "sardonyx/Model/Types.h"
#include "sardonyx/Model/Values.h"
#include <complex>
#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

namespace sardonyx {

/// The element type whose elements in memory are T.
template <typename T> struct ElementTypeOf;
#define SARDONYX_ELEMENT_TYPE(T, TYPE)                                         \
  template <> struct ElementTypeOf<T> {                                        \
    static constexpr ElementType value = ElementType::TYPE;                    \
  };
SARDONYX_ELEMENT_TYPE(float, Float)
SARDONYX_ELEMENT_TYPE(double, Double)
SARDONYX_ELEMENT_TYPE(int8_t, Int8)
SARDONYX_ELEMENT_TYPE(int16_t, Int16)
SARDONYX_ELEMENT_TYPE(int32_t, Int32)
SARDONYX_ELEMENT_TYPE(int64_t, Int64)
SARDONYX_ELEMENT_TYPE(uint8_t, Uint8)
SARDONYX_ELEMENT_TYPE(uint16_t, Uint16)
SARDONYX_ELEMENT_TYPE(uint32_t, Uint32)
SARDONYX_ELEMENT_TYPE(uint64_t, Uint64)
SARDONYX_ELEMENT_TYPE(bool, Bool)
SARDONYX_ELEMENT_TYPE(StringSpan, String)
SARDONYX_ELEMENT_TYPE(std::complex<float>, Complex64)
SARDONYX_ELEMENT_TYPE(std::complex<double>, Complex128)
#undef SARDONYX_ELEMENT_TYPE

/// A tensor in the caller's memory, contiguous, row by row.
template <typename T>
TensorRef refTo(const T *data, std::vector<int64_t> shape) {
  return {ElementTypeOf<T>::value, data, std::move(shape)};
}

/// A result's elements, which it keeps.
template <typename T> class View {
public:
  View(Tensor tensor) : tensor(std::move(tensor)) {}

  const T *data() const { return static_cast<const T *>(tensor.data); }
  const T *begin() const { return data(); }
  const T *end() const { return data() + size(); }
  size_t size() const { return static_cast<size_t>(tensor.elements()); }
  const T &operator[](size_t index) const { return data()[index]; }
  const std::vector<int64_t> &shape() const { return tensor.shape; }

private:
  Tensor tensor;
};

/// What is wrong with reading a result as elements of this type.
SARDONYX_API MaybeError checkView(const Tensor &tensor, ElementType type);

/// A result as elements of T. Fails where it has others, is no tensor, or does
/// not lie in the host's memory.
template <typename T> Expected<View<T>> viewAs(const Tensor &tensor) {
  if (MaybeError error = checkView(tensor, ElementTypeOf<T>::value))
    return *error;
  return View<T>(tensor);
}

struct NamedInput {
  std::string name;
  TensorRef value;
};

/// Runs a model on inputs by name, and gives results by name: those of
/// `outputs`, or all. Names that the model does not have are errors, and so are
/// inputs that are given twice or not at all; optional ones may be left out.
SARDONYX_API Expected<std::map<std::string, Tensor>>
runByName(Runner &model, const std::vector<NamedInput> &inputs,
          const std::vector<std::string> &outputs = {},
          const RunOptions &options = RunOptions());

} // namespace sardonyx

#endif // SARDONYX_SESSION_TYPEDVALUES_H
