// What runs allocate once the session has memory from those before.

#include "sardonyx/Runtime/AlignedMemory.h"
#include "sardonyx/Session/Session.h"
#include <atomic>
#include <cstdlib>
#include <cstring>
#include <gtest/gtest.h>
#include <new>

using namespace sardonyx;

// All that the program's C++ code allocates; sanitizers have operators of their
// own.
static std::atomic<size_t> newBytes{0};

#if !__has_feature(thread_sanitizer) && !__has_feature(address_sanitizer)
void *operator new(size_t size) {
  newBytes += size;
  if (void *memory = malloc(size ? size : 1))
    return memory;
  throw std::bad_alloc();
}
void operator delete(void *memory) noexcept { free(memory); }
void operator delete(void *memory, size_t) noexcept { free(memory); }
#endif

namespace {

struct Case {
  const char *name;
  const char *graph;
};

// Sizes that are known, that a run tells, and that a loop makes; each with
// intermediate values of its own.
const Case kCases[] = {
    {"Static", R"(
  model (float[64, 32] x) => (float[64, 64] y) {
    t = Transpose <perm = [1, 0]> (x)
    g = MatMul (x, t)
    s = Softmax (g)
    y = MatMul (s, g)
  })"},
    {"Open", R"(
  model (float[M, N] x) => (float[M, M] y) {
    t = Transpose <perm = [1, 0]> (x)
    g = MatMul (x, t)
    s = Softmax (g)
    y = MatMul (s, g)
  })"},
    {"Windows", R"(
  model (float[1, 8, H, W] x) => (float[1, 16, P, Q] y) {
    a = Relu (x)
    b = MaxPool <kernel_shape = [3, 3], pads = [1, 1, 1, 1]> (a)
    c = Concat <axis = 1> (a, b)
    y = AveragePool <kernel_shape = [3, 3]> (c)
  })"},
    {"Loop", R"(
  model (float[M, N] x) => (float[M, N] y)
    <int64 n = {5}, bool go = {1}> {
    y = Loop (n, go, x) <body = b (int64 i, bool c, float[M, N] s) => (bool d, float[M, N] r) {
      d = Identity (c)
      e = Exp (s)
      t = Transpose <perm = [1, 0]> (e)
      g = MatMul (e, t)
      f = MatMul (g, s)
      r = Tanh (f)
    }>
  })"},
};

class Allocations : public testing::TestWithParam<Case> {};

} // namespace

TEST_P(Allocations, OfSteadyRunsAreNone) {
  std::string text = R"(<ir_version: 8, opset_import: ["" : 17]>)";
  text += GetParam().graph;
  SessionOptions options;
  options.cache = false;
  options.intraOpThreads = 2;
  auto loaded = Session::loadBytes(text.data(), text.size(), options);
  ASSERT_TRUE(loaded) << loaded.error().message();
  Session &session = **loaded;
  std::vector<int64_t> shape = session.inputs()[0].dims.size() == 4
                                   ? std::vector<int64_t>{1, 8, 40, 40}
                                   : std::vector<int64_t>{64, 32};
  std::vector<float> x(64 * 200, 0.125f), memory;
  std::vector<TensorRef> inputs{{ElementType::Float, x.data(), shape}};
  std::vector<OutputRef> outputs;
  auto runOnce = [&] {
    auto result = session.run(inputs, outputs);
    ASSERT_TRUE(result) << result.error().message();
    if (memory.empty()) {
      memory.resize((*result)[0].elements());
      outputs = {{ElementType::Float, memory.data(), (*result)[0].shape}};
      outputs[0].data = nullptr;
    }
  };
  uint64_t before = runtime::countAllocations();
  runOnce();
  EXPECT_GT(runtime::countAllocations(), before); // they are counted
  // First with results of the session's, which the next run gets again, then
  // with memory of the caller's.
  for (bool own : {false, true}) {
    for (int i = 0; i < 4; ++i)
      runOnce();
    constexpr size_t kRuns = 50;
    uint64_t tensors = runtime::countAllocations();
    size_t bytes = newBytes;
    for (size_t i = 0; i < kRuns; ++i)
      runOnce();
    // A thread allocates for itself in its first task, which may come late.
    EXPECT_LT(runtime::countAllocations() - tensors, kRuns / 10) << own;
    // Lists of results and their shapes; no tensor is as small.
    EXPECT_LT((newBytes - bytes) / kRuns, 2048u) << own;
    outputs[0].data = memory.data();
  }
}

INSTANTIATE_TEST_SUITE_P(Models, Allocations, testing::ValuesIn(kCases),
                         [](const testing::TestParamInfo<Case> &info) {
                           return info.param.name;
                         });
