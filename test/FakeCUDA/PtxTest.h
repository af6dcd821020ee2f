#ifndef SARDONYX_TEST_FAKECUDA_PTXTEST_H
#define SARDONYX_TEST_FAKECUDA_PTXTEST_H

#include "tools/fakecuda/Interpreter.h"
#include <cstring>
#include <string>
#include <vector>

/// A module of one kernel `k` that takes pointers, and what it is run with.
class PtxKernel {
public:
  /// `body` is the text between the braces of a kernel with the parameters p0
  /// to p`parameters - 1`, all of 64 bits; registers %r, %rd, %rs, %f, %fd, %h
  /// and %p are declared. `before` stands before the kernel, `limits` behind
  /// its parameters.
  explicit PtxKernel(const std::string &body, unsigned parameters = 1,
                     const std::string &before = "",
                     const std::string &limits = "");

  template <class T> uint64_t put(const std::vector<T> &values) {
    uint64_t address = memory.allocate(values.size() * sizeof(T));
    memcpy(reinterpret_cast<void *>(address), values.data(),
           values.size() * sizeof(T));
    return address;
  }
  template <class T> std::vector<T> get(uint64_t address, size_t count) {
    std::vector<T> values(count);
    memcpy(values.data(), reinterpret_cast<void *>(address), count * sizeof(T));
    return values;
  }
  /// Returns the fault, or what was wrong with the text.
  std::string run(const std::vector<uint64_t> &arguments, uint32_t threads,
                  uint32_t blocks = 1, size_t shared = 0);

  /// Whether launches may begin before what comes before them has ended.
  bool isDependent = false;
  sardonyx::fakecuda::Memory memory;
  std::unique_ptr<sardonyx::fakecuda::Module> module;
  std::string error;
};

/// Runs a body that computes something of 32 lanes and stores %r0 (or, of 64
/// bits, %rd0) of each; %r31 is the lane. The result is of the 32 lanes.
std::vector<uint32_t> runLanes(const std::string &body);
std::vector<uint64_t> runWideLanes(const std::string &body);

#endif // SARDONYX_TEST_FAKECUDA_PTXTEST_H
