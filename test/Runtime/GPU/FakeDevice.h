#ifndef SARDONYX_TEST_RUNTIME_GPU_FAKEDEVICE_H
#define SARDONYX_TEST_RUNTIME_GPU_FAKEDEVICE_H

#include "lib/Runtime/GPU/Graph.h"
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <gtest/gtest.h>
#include <string>
#include <sys/wait.h>
#include <unistd.h>
#include <utility>
#include <vector>

namespace sardonyx {
namespace runtime {
namespace gpu {

using Environment = std::vector<std::pair<std::string, std::string>>;

/// Runs `body` in a process of its own, which loads the fake driver with these
/// variables set: a process has one driver, and what is lost stays lost.
inline void runAlone(const Environment &environment,
                     const std::function<void()> &body) {
  fflush(nullptr);
  pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    setenv("SARDONYX_CUDA_DRIVER", SARDONYX_FAKECUDA_LIBRARY, 1);
    unsetenv("SARDONYX_DEBUG");
    for (const auto &[name, value] : environment)
      setenv(name.c_str(), value.c_str(), 1);
    body();
    fflush(nullptr);
    _exit(testing::Test::HasFailure() ? 1 : 0);
  }
  int status = -1;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status)) << "a signal ended the process";
  EXPECT_EQ(WEXITSTATUS(status), 0);
}

/// The value of what must go well; a failure ends the process.
template <typename T> T get(Result<T> result) {
  if (!result) {
    fprintf(stderr, "failed: %s\n", result.failure().sentence.c_str());
    fflush(nullptr);
    _exit(2);
  }
  return std::move(*result);
}

/// The sentence of what went wrong, or an empty one.
inline std::string sentenceOf(const MaybeFailure &failure) {
  return failure ? failure->sentence : "";
}
template <typename T> std::string sentenceOf(const Result<T> &result) {
  return result ? "" : result.failure().sentence;
}

inline std::shared_ptr<Device> openDevice() { return get(Device::open()); }

inline std::unique_ptr<DeviceMemory>
allocate(const std::shared_ptr<Device> &device, int64_t bytes) {
  return get(DeviceMemory::allocate(device, bytes, nullptr, "a test"));
}

/// Device memory with these numbers.
inline std::unique_ptr<DeviceMemory> upload(Stream &stream,
                                            const std::vector<float> &numbers) {
  int64_t bytes = static_cast<int64_t>(numbers.size() * sizeof(float));
  std::unique_ptr<DeviceMemory> memory = allocate(stream.device(), bytes);
  EXPECT_EQ(
      sentenceOf(stream.copyToDevice(memory->address(), numbers.data(), bytes)),
      "");
  return memory;
}

/// What device memory holds after all of the stream's work.
inline std::vector<float> download(Stream &stream, const DeviceMemory &memory) {
  std::vector<float> numbers(static_cast<size_t>(memory.size()) /
                             sizeof(float));
  EXPECT_EQ(sentenceOf(stream.copyToHost(numbers.data(), memory.address(),
                                         memory.size())),
            "");
  EXPECT_EQ(sentenceOf(stream.synchronize()), "");
  return numbers;
}

/// c = a + b of n numbers; x *= s; a store where no memory is; x *= s where no
/// x is negative, else the check of message 1 fails with the values i, 7, 8, 9
/// of the first such x.
inline constexpr const char *kKernels = R"(
.version 7.0
.target sm_80
.address_size 64

.visible .global .align 4 .f32 kept[2] = {0f3F800000, 0f40000000};

.visible .entry add(.param .u64 a, .param .u64 b, .param .u64 c, .param .u32 n)
.maxntid 256, 1, 1
{
  .reg .pred %p<2>;
  .reg .b32 %r<6>;
  .reg .f32 %f<4>;
  .reg .b64 %rd<8>;
  ld.param.u64 %rd1, [a];
  ld.param.u64 %rd2, [b];
  ld.param.u64 %rd3, [c];
  ld.param.u32 %r1, [n];
  mov.u32 %r2, %ctaid.x;
  mov.u32 %r3, %ntid.x;
  mov.u32 %r4, %tid.x;
  mad.lo.s32 %r5, %r2, %r3, %r4;
  setp.ge.u32 %p1, %r5, %r1;
  @%p1 bra DONE;
  mul.wide.u32 %rd4, %r5, 4;
  add.s64 %rd5, %rd1, %rd4;
  add.s64 %rd6, %rd2, %rd4;
  add.s64 %rd7, %rd3, %rd4;
  ld.global.f32 %f1, [%rd5];
  ld.global.f32 %f2, [%rd6];
  add.f32 %f3, %f1, %f2;
  st.global.f32 [%rd7], %f3;
DONE:
  ret;
}

.visible .entry scale(.param .u64 x, .param .f32 s)
{
  .reg .b32 %r<2>;
  .reg .f32 %f<4>;
  .reg .b64 %rd<4>;
  ld.param.u64 %rd1, [x];
  ld.param.f32 %f1, [s];
  mov.u32 %r1, %tid.x;
  mul.wide.u32 %rd2, %r1, 4;
  add.s64 %rd3, %rd1, %rd2;
  ld.global.f32 %f2, [%rd3];
  mul.f32 %f3, %f2, %f1;
  st.global.f32 [%rd3], %f3;
  ret;
}

.visible .entry scale_early(.param .u64 x, .param .f32 s)
{
  .reg .b32 %r<2>;
  .reg .f32 %f<4>;
  .reg .b64 %rd<4>;
  griddepcontrol.launch_dependents;
  ld.param.u64 %rd1, [x];
  ld.param.f32 %f1, [s];
  mov.u32 %r1, %tid.x;
  mul.wide.u32 %rd2, %r1, 4;
  add.s64 %rd3, %rd1, %rd2;
  griddepcontrol.wait;
  ld.global.f32 %f2, [%rd3];
  mul.f32 %f3, %f2, %f1;
  st.global.f32 [%rd3], %f3;
  ret;
}

.visible .entry wild()
{
  .reg .b32 %r<2>;
  .reg .b64 %rd<2>;
  mov.u64 %rd1, 64;
  mov.u32 %r1, 0;
  st.global.u32 [%rd1], %r1;
  ret;
}

.visible .entry scale_checked(.param .u64 x, .param .f32 s, .param .u64 record)
{
  .reg .pred %p<3>;
  .reg .b32 %r<2>;
  .reg .f32 %f<4>;
  .reg .b64 %rd<8>;
  ld.param.u64 %rd1, [x];
  ld.param.f32 %f1, [s];
  ld.param.u64 %rd2, [record];
  mov.u32 %r1, %tid.x;
  mul.wide.u32 %rd3, %r1, 4;
  add.s64 %rd4, %rd1, %rd3;
  ld.global.f32 %f2, [%rd4];
  setp.ge.f32 %p1, %f2, 0f00000000;
  @%p1 bra FINE;
  mov.u64 %rd6, 0;
  mov.u64 %rd7, 1;
  atom.global.cas.b64 %rd5, [%rd2], %rd6, %rd7;
  setp.ne.s64 %p2, %rd5, 0;
  @%p2 exit;
  st.global.u64 [%rd2+8], %rd7;
  cvt.u64.u32 %rd5, %r1;
  st.global.u64 [%rd2+16], %rd5;
  mov.u64 %rd5, 7;
  st.global.u64 [%rd2+24], %rd5;
  mov.u64 %rd5, 8;
  st.global.u64 [%rd2+32], %rd5;
  mov.u64 %rd5, 9;
  st.global.u64 [%rd2+40], %rd5;
  exit;
FINE:
  mul.f32 %f3, %f2, %f1;
  st.global.f32 [%rd4], %f3;
  ret;
}
)";

inline std::shared_ptr<Module> loadKernels(const std::shared_ptr<Device> &d) {
  return get(Module::load(d, kKernels, "the test's module"));
}

/// Kernel `scale` for "node Scale".
inline std::shared_ptr<const Kernel> findScale(const Module &module) {
  return get(module.find({"scale", "node Scale", 2, 0}));
}

/// A kernel as `scale` of which it is said that it waits itself.
inline std::shared_ptr<const Kernel> findEarly(const Module &module,
                                               const std::string &name) {
  return get(module.find({name, "node Scale", 2, 0, /*waits=*/true}));
}

inline LaunchSize threads(int64_t count) {
  return {{1, 1, 1}, {count, 1, 1}, 0};
}

} // namespace gpu
} // namespace runtime
} // namespace sardonyx

#endif // SARDONYX_TEST_RUNTIME_GPU_FAKEDEVICE_H
