#include "lib/Runtime/GPU/WorkQueue.h"
#include "FakeDevice.h"
#include <cstring>

using namespace sardonyx;
using namespace sardonyx::cuda;
using namespace sardonyx::runtime;
using namespace sardonyx::runtime::gpu;

namespace {

/// Four numbers that come from the host, are scaled by several launches and go
/// back.
struct Scaling {
  explicit Scaling(WorkMode mode = WorkMode::Graphs)
      : device(openDevice()), stream(get(Stream::create(device))),
        kernel(findScale(*loadKernels(device))), memory(allocate(device, 32)),
        pinned(get(PinnedMemory::allocate(device, 64))), queue(device, mode) {}

  /// What one number becomes; the launch of each factor scales `count` ones.
  float run(float number, const std::vector<float> &factors, int count = 4) {
    auto *numbers = static_cast<float *>(pinned->data());
    std::fill_n(numbers, 4, number);
    const CUdeviceptr address = memory->address();
    queue.addCopyToDevice(address, numbers, 16);
    for (float factor : factors) {
      // A kernel reads four bytes of it.
      int64_t words[2] = {static_cast<int64_t>(address), -1};
      memcpy(&words[1], &factor, sizeof(factor));
      EXPECT_EQ(
          sentenceOf(queue.addKernel(kernel, threads(count), 0, 2, words)), "");
    }
    queue.addCopyOnDevice(address + 16, address, 16);
    queue.addClear(address, 16);
    queue.addCopyToHost(numbers + 4, address + 16, 16);
    EXPECT_FALSE(queue.isEmpty());
    use = {};
    EXPECT_EQ(sentenceOf(queue.submit(*stream, use)), "");
    EXPECT_TRUE(queue.isEmpty());
    EXPECT_EQ(use.kernels, static_cast<int64_t>(factors.size()));
    EXPECT_EQ(use.copies, 2);
    EXPECT_EQ(use.copiedBytes, 32);
    EXPECT_EQ(sentenceOf(stream->synchronize()), "");
    return numbers[4 + count - 1];
  }

  std::shared_ptr<Device> device;
  std::unique_ptr<Stream> stream;
  std::shared_ptr<const Kernel> kernel;
  std::unique_ptr<DeviceMemory> memory;
  std::unique_ptr<PinnedMemory> pinned;
  WorkQueue queue;
  DeviceUse use;
};

/// The driver makes no launch of this number, and none after it.
Environment failingLaunch(int number) {
  return {{"SARDONYX_FAKECUDA_FAIL",
           "cuLaunchKernelEx:" + std::to_string(number) + ":700"}};
}
} // namespace

TEST(GPUWorkQueue, LaunchesWhatRepeatsAsAGraph) {
  // The first time there are three launches.
  runAlone(failingLaunch(4), [] {
    Scaling work;
    for (int i = 1; i < 20; ++i) {
      EXPECT_EQ(work.run(float(i), {2, 3, 0.5}), float(i) * 3);
      EXPECT_EQ(work.use.submissions, i == 1 ? 7 : 1);
    }
  });
}

TEST(GPUWorkQueue, MakesNoGraphOfOneLaunch) {
  runAlone({{"SARDONYX_FAKECUDA_FAIL", "cuGraphCreate:1"}}, [] {
    Scaling work;
    for (int i = 1; i < 4; ++i)
      EXPECT_EQ(work.run(float(i), {2}), float(i) * 2);
  });
}

TEST(GPUWorkQueue, MakesNoGraphsUnlessItMay) {
  runAlone({{"SARDONYX_FAKECUDA_FAIL", "cuGraphCreate:1"}}, [] {
    Scaling work(WorkMode::Plain);
    for (int i = 1; i < 4; ++i)
      EXPECT_EQ(work.run(float(i), {2, 3}), float(i) * 6);
  });
}

TEST(GPUWorkQueue, TimesLaunches) {
  runAlone({}, [] {
    Scaling work(WorkMode::Timed);
    for (int i = 0; i < 3; ++i) {
      EXPECT_EQ(work.run(1, {2, 3}, 4), 6);
      std::vector<DeviceLaunch> launches;
      int64_t all = get(work.queue.takeTimes(launches));
      ASSERT_EQ(launches.size(), 2u);
      EXPECT_EQ(launches[0].kernel, "scale");
      EXPECT_EQ(launches[0].size.threads[0], 4);
      EXPECT_LE(launches[0].end, launches[1].begin);
      EXPECT_LE(launches[1].end, all);
      EXPECT_GT(launches[1].registers, 0);
      // A warp of each of 32 blocks, of 64 that there could be.
      EXPECT_EQ(launches[1].occupancy, 0.5);
      launches.clear();
      EXPECT_EQ(get(work.queue.takeTimes(launches)), 0);
      EXPECT_TRUE(launches.empty());
    }
  });
}

TEST(GPUWorkQueue, KeepsGraphsOfSeveralSizes) {
  // Each of four sizes is launched once.
  runAlone(failingLaunch(9), [] {
    Scaling work;
    for (int i = 0; i < 12; ++i)
      EXPECT_EQ(work.run(1, {2, 3}, 1 + i % 4), 6);
  });
}

TEST(GPUWorkQueue, ChangesAGraphWhereLittleIsNew) {
  // One of four arguments differs from the third time on.
  runAlone(failingLaunch(5), [] {
    Scaling work;
    for (int i = 0; i < 2; ++i)
      EXPECT_EQ(work.run(1, {1, 2, 3, 4}), 24);
    for (int i = 0; i < 20; ++i)
      EXPECT_EQ(work.run(1, {1, 2, float(i), 4}), 8 * float(i));
  });
}

TEST(GPUWorkQueue, ForgetsTheGraphThatWasNotUsedForLongest) {
  runAlone({}, [] {
    Scaling work;
    for (int round = 0; round < 3; ++round)
      for (int i = 0; i < 20; ++i)
        EXPECT_EQ(work.run(1, {2, float(i)}), 2 * float(i));
  });
}

TEST(GPUWorkQueue, GoesOnWithoutTheGraphThatTheDriverRefuses) {
  runAlone({{"SARDONYX_FAKECUDA_FAIL", "cuGraphInstantiateWithFlags:1"}}, [] {
    Scaling work;
    for (int i = 1; i < 5; ++i)
      EXPECT_EQ(work.run(float(i), {2, 3}), float(i) * 6);
  });
}

TEST(GPUWorkQueue, ChecksLaunchesWhenTheyAreAdded) {
  runAlone({}, [] {
    Scaling work;
    const int64_t words[2] = {};
    EXPECT_EQ(
        sentenceOf(work.queue.addKernel(work.kernel, threads(4), 0, 1, words)),
        "cannot launch kernel scale (node Scale): 1 arguments, it has 2");
    EXPECT_EQ(sentenceOf(work.queue.addKernel(
                  work.kernel, {{0, 1, 1}, {32, 1, 1}, 0}, 0, 2, words)),
              "");
    EXPECT_TRUE(work.queue.isEmpty());
    work.queue.addCopyOnDevice(0, 0, 0);
    EXPECT_TRUE(work.queue.isEmpty());
    work.queue.addClear(work.memory->address(), 4);
    work.queue.drop();
    EXPECT_TRUE(work.queue.isEmpty());
  });
}

TEST(GPUWorkQueue, TellsOfADeviceThatIsLost) {
  runAlone({}, [] {
    Scaling work;
    work.run(1, {2, 3});
    // The address that the graph has is nobody's any more.
    const CUdeviceptr address = work.memory->address();
    work.memory.reset();
    int64_t words[2] = {static_cast<int64_t>(address), 0};
    for (int i = 0; i < 2; ++i)
      EXPECT_EQ(sentenceOf(
                    work.queue.addKernel(work.kernel, threads(4), 0, 2, words)),
                "");
    EXPECT_EQ(sentenceOf(work.queue.submit(*work.stream, work.use)), "");
    EXPECT_EQ(
        sentenceOf(work.stream->synchronize()).find("the device was lost"), 0u);
    EXPECT_EQ(
        sentenceOf(work.queue.addKernel(work.kernel, threads(4), 0, 2, words)),
        "");
    EXPECT_EQ(sentenceOf(work.queue.submit(*work.stream, work.use)),
              work.device->lossSentence());
  });
}
