//===- HardenedLibonnx.h - Indices out of range throw -----------*- C++ -*-===//
//
// Included before everything else in the sources of libonnx. Its inference
// functions index lists by what a file says, and do not always look first:
// here such an index of a standard container or of a repeated field of protobuf
// throws std::out_of_range, which those who call libonnx catch.
//
//===----------------------------------------------------------------------===//

#ifndef SARDONYX_CMAKE_HARDENEDLIBONNX_H
#define SARDONYX_CMAKE_HARDENEDLIBONNX_H

// libstdc++'s accessors are noexcept, as their checks are meant to abort.
#define _GLIBCXX_NOEXCEPT
#define _GLIBCXX_NOEXCEPT_IF(...) noexcept(__VA_ARGS__)
#define _GLIBCXX_USE_NOEXCEPT noexcept
#define _GLIBCXX_THROW(exceptions)
#include <bits/c++config.h>

#include <bits/functexcept.h>

#undef __glibcxx_assert
#define __glibcxx_assert(condition)                                            \
  do {                                                                         \
    if (__builtin_expect(!bool(condition), false))                             \
      std::__throw_out_of_range("index out of range");                         \
  } while (false)

#include <google/protobuf/stubs/logging.h>

/// Takes the text that protobuf streams into its checks.
struct SardonyxOutOfRange {
  [[noreturn]] SardonyxOutOfRange() {
    std::__throw_out_of_range("index out of range");
  }
  template <typename T> SardonyxOutOfRange &operator<<(const T &) {
    return *this;
  }
};

#define SARDONYX_CHECK(condition)                                              \
  while (__builtin_expect(!(condition), false))                                \
  SardonyxOutOfRange()
#undef GOOGLE_DCHECK_LT
#define GOOGLE_DCHECK_LT(a, b) SARDONYX_CHECK((a) < (b))
#undef GOOGLE_DCHECK_LE
#define GOOGLE_DCHECK_LE(a, b) SARDONYX_CHECK((a) <= (b))
#undef GOOGLE_DCHECK_GT
#define GOOGLE_DCHECK_GT(a, b) SARDONYX_CHECK((a) > (b))
#undef GOOGLE_DCHECK_GE
#define GOOGLE_DCHECK_GE(a, b) SARDONYX_CHECK((a) >= (b))

#endif // SARDONYX_CMAKE_HARDENEDLIBONNX_H
