#include "sardonyx/Session/Devices.h"
#include "test/Runtime/GPU/FakeDevice.h"
#include <gtest/gtest.h>

using namespace sardonyx;
using namespace sardonyx::runtime::gpu;

namespace {

std::string textOf(const MaybeError &error) {
  return error ? error->message() : "";
}

} // namespace

TEST(Devices, CopiesTensors) {
  runAlone({}, [] {
    EXPECT_EQ(textOf(findCudaProblem(/*needsCode=*/true)), "");
    auto tensor = allocateOnCuda(ElementType::Float, {2, 2}, 0);
    ASSERT_TRUE(tensor) << tensor.error().message();
    EXPECT_EQ(tensor->device, 0);
    auto found = findCudaDevice(tensor->data);
    ASSERT_TRUE(found);
    EXPECT_EQ(*found, 0);
    const float numbers[4] = {1, 2, 3, 4};
    found = findCudaDevice(numbers);
    ASSERT_TRUE(found);
    EXPECT_EQ(*found, kHost);
    auto other = allocateOnCuda(ElementType::Float, {4}, 0);
    ASSERT_TRUE(other);
    EXPECT_EQ(textOf(copyOnCuda(tensor->data, 0, numbers, kHost, 16)), "");
    EXPECT_EQ(textOf(copyOnCuda(other->data, 0, tensor->data, 0, 16)), "");
    float copy[4] = {};
    EXPECT_EQ(textOf(copyOnCuda(copy, kHost, other->data, 0, 16)), "");
    EXPECT_EQ(copy[3], 4);
    EXPECT_EQ(textOf(synchronizeCuda(0)), "");
    EXPECT_EQ(textOf(copyOnCuda(copy, kHost, numbers, kHost, 16)),
              "there are copies between the host and a CUDA device, and within "
              "one, but not from -1 to -1");
    // One without elements can be had, too.
    auto empty = allocateOnCuda(ElementType::Int64, {0, 3}, 0);
    ASSERT_TRUE(empty);
    EXPECT_EQ(textOf(copyOnCuda(empty->data, 0, nullptr, kHost, 0)), "");
  });
}

TEST(Devices, RefusesWhatCannotBe) {
  runAlone({}, [] {
    auto whyNot = [](ElementType type, std::vector<int64_t> shape, int device) {
      auto tensor = allocateOnCuda(type, std::move(shape), device);
      return tensor ? "it did not fail" : tensor.error().message();
    };
    EXPECT_EQ(whyNot(ElementType::String, {1}, 0),
              "a CUDA device has no tensors of string");
    EXPECT_EQ(whyNot(ElementType::Float, {-1}, 0),
              "no tensor has the shape [-1]");
    EXPECT_EQ(whyNot(ElementType::Float, {INT64_MAX, 8}, 0),
              "no tensor has the shape [9223372036854775807, 8]");
    EXPECT_EQ(whyNot(ElementType::Float, {1}, 7),
              "no CUDA device 7: the driver finds 1");
    EXPECT_EQ(whyNot(ElementType::Float, {int64_t(1) << 40}, 0)
                  .find("out of device memory for a tensor: asked for "
                        "4398046511104 bytes"),
              0u);
  });
  runAlone({{"SARDONYX_CUDA_DRIVER", "/no/libcuda.so"}}, [] {
    const std::string problem = textOf(findCudaProblem(/*needsCode=*/false));
    EXPECT_EQ(problem.find("no CUDA driver on this machine: "), 0u);
    EXPECT_EQ(textOf(findCudaProblem(/*needsCode=*/true)), problem);
    auto tensor = allocateOnCuda(ElementType::Float, {1}, 0);
    ASSERT_FALSE(tensor);
    EXPECT_EQ(tensor.error().message(), problem);
    EXPECT_FALSE(findCudaDevice(&problem));
  });
}
