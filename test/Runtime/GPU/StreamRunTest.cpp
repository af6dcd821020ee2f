#include "lib/Runtime/GPU/StreamRun.h"
#include "FakeDevice.h"
#include "sardonyx/Runtime/RunContext.h"
#include <cstring>

using namespace sardonyx::cuda;
using namespace sardonyx::runtime;
using namespace sardonyx::runtime::gpu;

namespace {

std::shared_ptr<StreamCode> loadCode(const char *ptx,
                                     std::vector<KernelDescription> kernels,
                                     std::vector<CheckMessage> messages = {},
                                     int64_t most = INT64_MAX) {
  return std::make_shared<StreamCode>(get(LoadedKernels::load(
      openDevice(), {ptx, std::move(kernels), std::move(messages)},
      std::make_shared<MemoryBudget>(most))));
}

std::shared_ptr<StreamCode> loadScale(int64_t most = INT64_MAX) {
  return loadCode(
      kKernels,
      {{"scale", "node Scale", 2, 0}, {"wild", "node 'w' (Wild)", 0, 0}}, {},
      most);
}

/// An argument of an entry point.
struct Vector {
  float *data;
  int64_t size;
};

int64_t wordOf(const void *pointer) {
  return reinterpret_cast<int64_t>(pointer);
}
int64_t wordOf(float number) {
  int64_t word = -1; // kernels read low bytes alone
  memcpy(&word, &number, sizeof(number));
  return word;
}

void launchScale(float *device, int64_t count, float factor) {
  const int64_t size[] = {1, 1, 1, count, 1, 1, 0, 0};
  const int64_t args[] = {wordOf(device), wordOf(factor)};
  sdx_rt_launch(0, size, 2, args);
}

/// Result 0 = 3 * argument 0, by way of an arena and of a pool.
void scaleByThree(void **args) {
  auto *x = static_cast<Vector *>(args[0]);
  const int64_t bytes = x->size * 4;
  auto *arena = static_cast<float *>(sdx_rt_device_arena(bytes));
  sdx_rt_device_copy(SDX_RT_TO_DEVICE, arena, x->data, bytes);
  x->data[0] = -1; // it may change
  auto *copy = static_cast<float *>(sdx_rt_device_alloc(bytes, nullptr));
  sdx_rt_device_copy(SDX_RT_ON_DEVICE, copy, arena, bytes);
  launchScale(copy, x->size, 3);
  sdx_rt_device_free(sdx_rt_device_alloc(bytes, nullptr));
  auto *y = static_cast<float *>(sdx_rt_device_output(0, 1, &x->size));
  sdx_rt_device_copy(SDX_RT_ON_DEVICE, y, copy, bytes);
  sdx_rt_device_free(copy);
}

/// A run with one result.
struct OneResult {
  explicit OneResult(DeviceCode &code,
                     std::shared_ptr<MemoryBudget> budget = nullptr)
      : context(1, nullptr, std::move(budget)) {
    context.setDevice(code.makeRun());
    context.outputs().resize(1);
    context.outputs()[0].name = "y";
    context.outputs()[0].elementBytes = 4;
  }
  OutputSlot &slot() { return context.outputs()[0]; }
  bool run(sdx_entry_point entry, std::vector<float> &x,
           const RunLimits &limits = {}) {
    Vector argument{x.data(), static_cast<int64_t>(x.size())};
    void *args[] = {&argument};
    return context.run(entry, args, limits);
  }
  std::vector<float> numbers() {
    auto *data = static_cast<float *>(slot().data);
    return {data, data + slot().sizes[0]};
  }
  RunContext context;
};

} // namespace

TEST(GPUStreamRun, ComputesAndBringsResultsToTheHost) {
  runAlone({}, [] {
    auto code = loadScale();
    OneResult one(*code);
    for (float first : {1.0f, 5.0f}) {
      std::vector<float> x = {first, 2, 3};
      ASSERT_TRUE(one.run(scaleByThree, x)) << one.context.failure();
      EXPECT_EQ(x[0], -1);
      EXPECT_FALSE(one.slot().isOnDevice);
      EXPECT_EQ(one.numbers(), (std::vector<float>{3 * first, 6, 9}));
      one.context.releaseOutput(one.slot());
    }
    float memory[3] = {};
    one.slot().callerMemory = memory;
    one.slot().expected = {3};
    std::vector<float> x = {4, 5, 6};
    ASSERT_TRUE(one.run(scaleByThree, x)) << one.context.failure();
    EXPECT_EQ(one.slot().data, memory);
    EXPECT_EQ(memory[2], 18);
  });
}

TEST(GPUStreamRun, LeavesResultsOnTheDevice) {
  runAlone({}, [] {
    auto code = loadScale();
    OneResult one(*code);
    one.slot().wantedOnDevice = true;
    std::vector<float> x = {1, 2, 3, 4};
    ASSERT_TRUE(one.run(scaleByThree, x)) << one.context.failure();
    ASSERT_TRUE(one.slot().isOnDevice);
    std::shared_ptr<void> kept = one.slot().owner;
    void *place = one.slot().data;
    EXPECT_EQ(kept.get(), place);
    // Nobody else gets it while it is kept, and the next one afterwards.
    x = {5, 5, 5, 5};
    ASSERT_TRUE(one.run(scaleByThree, x));
    EXPECT_NE(one.slot().data, place);
    auto stream = get(Stream::create(openDevice()));
    std::vector<float> numbers(4);
    ASSERT_EQ(sentenceOf(stream->copyToHost(
                  numbers.data(), reinterpret_cast<CUdeviceptr>(place), 16)),
              "");
    ASSERT_EQ(sentenceOf(stream->synchronize()), "");
    EXPECT_EQ(numbers, (std::vector<float>{3, 6, 9, 12}));
    kept = nullptr;
    x = {7, 7, 7, 7};
    ASSERT_TRUE(one.run(scaleByThree, x));
    EXPECT_EQ(one.slot().data, place);
  });
}

TEST(GPUStreamRun, WritesToTheCallersDeviceMemory) {
  runAlone({}, [] {
    auto code = loadScale();
    auto device = openDevice();
    auto memory = allocate(device, 256);
    auto stream = get(Stream::create(device));
    // The second place is none that kernels could write to 16 bytes at a time.
    for (int64_t offset : {0, 20}) {
      OneResult one(*code);
      one.slot().wantedOnDevice = true;
      one.slot().callerMemory =
          reinterpret_cast<void *>(memory->address() + offset);
      one.slot().expected = {2};
      std::vector<float> x = {1, 2};
      ASSERT_TRUE(one.run(scaleByThree, x)) << one.context.failure();
      EXPECT_EQ(one.slot().owner, nullptr);
      EXPECT_EQ(one.slot().data, one.slot().callerMemory);
      std::vector<float> numbers(2);
      ASSERT_EQ(sentenceOf(stream->copyToHost(numbers.data(),
                                              memory->address() + offset, 8)),
                "");
      ASSERT_EQ(sentenceOf(stream->synchronize()), "");
      EXPECT_EQ(numbers, (std::vector<float>{3, 6}));
    }
  });
}

TEST(GPUStreamRun, TakesResultsOfTheHostToTheDevice) {
  runAlone({}, [] {
    auto code = loadScale();
    OneResult one(*code);
    one.slot().wantedOnDevice = true;
    std::vector<float> x = {1};
    ASSERT_TRUE(one.run(
        [](void **args) {
          int64_t size = 2;
          auto *y = static_cast<float *>(sdx_rt_output(0, 1, &size));
          y[0] = 8;
          y[1] = 9;
        },
        x))
        << one.context.failure();
    ASSERT_TRUE(one.slot().isOnDevice);
    auto stream = get(Stream::create(openDevice()));
    std::vector<float> numbers(2);
    ASSERT_EQ(
        sentenceOf(stream->copyToHost(
            numbers.data(), reinterpret_cast<CUdeviceptr>(one.slot().data), 8)),
        "");
    ASSERT_EQ(sentenceOf(stream->synchronize()), "");
    EXPECT_EQ(numbers, (std::vector<float>{8, 9}));
  });
}

TEST(GPUStreamRun, ReadsTheDeviceInTheMiddleOfARun) {
  runAlone({}, [] {
    auto code = loadScale();
    OneResult one(*code);
    std::vector<float> x(300000, 2); // more than pinned memory has at first
    ASSERT_TRUE(one.run(
        [](void **args) {
          auto *x = static_cast<Vector *>(args[0]);
          void *memory = sdx_rt_device_alloc(x->size * 4, nullptr);
          sdx_rt_device_copy(SDX_RT_TO_DEVICE, memory, x->data, x->size * 4);
          launchScale(static_cast<float *>(memory), 2, 10);
          sdx_rt_device_copy(SDX_RT_TO_HOST, x->data, memory, x->size * 4);
          int64_t size = static_cast<int64_t>(x->data[1]);
          auto *y = static_cast<float *>(sdx_rt_output(0, 1, &size));
          for (int64_t i = 0; i < size; ++i)
            y[i] = x->data[i] + x->data[x->size - 1];
        },
        x))
        << one.context.failure();
    EXPECT_EQ(one.numbers().size(), 20u);
    EXPECT_EQ(one.numbers()[1], 22);
    EXPECT_EQ(one.numbers()[2], 4);
  });
}

TEST(GPUStreamRun, UploadsMoreThanPinnedMemoryHolds) {
  runAlone({}, [] {
    auto code = loadScale();
    OneResult one(*code);
    // Pieces of 4 MB: this takes four of them, after small ones that lie
    // before.
    std::vector<float> x(3500001);
    for (size_t i = 0; i < x.size(); ++i)
      x[i] = static_cast<float>(i % 65536);
    std::vector<float> expected = x;
    ASSERT_TRUE(one.run(
        [](void **args) {
          auto *x = static_cast<Vector *>(args[0]);
          auto *y = static_cast<char *>(sdx_rt_device_output(0, 1, &x->size));
          auto *from = reinterpret_cast<char *>(x->data);
          const int64_t bytes = x->size * 4;
          for (int64_t i = 0; i < 40; ++i)
            sdx_rt_device_copy(SDX_RT_TO_DEVICE, y + i * 100, from + i * 100,
                               100);
          sdx_rt_device_copy(SDX_RT_TO_DEVICE, y + 4000, from + 4000,
                             bytes - 4000);
        },
        x))
        << one.context.failure();
    EXPECT_EQ(one.numbers(), expected);
  });
}

static void scaleChecked(void **args) {
  auto *x = static_cast<Vector *>(args[0]);
  const int64_t bytes = x->size * 4;
  void *memory = sdx_rt_device_alloc(bytes, nullptr);
  sdx_rt_device_copy(SDX_RT_TO_DEVICE, memory, x->data, bytes);
  void *y = sdx_rt_device_output(0, 1, &x->size);
  const int64_t size[] = {1, 1, 1, x->size, 1, 1, 0, 0};
  const int64_t words[] = {wordOf(memory), wordOf(2.0f),
                           wordOf(sdx_rt_device_failure())};
  sdx_rt_launch(0, size, 3, words);
  sdx_rt_device_copy(SDX_RT_ON_DEVICE, y, memory, bytes);
}

TEST(GPUStreamRun, TellsWhichCheckOfAKernelFailed) {
  runAlone({}, [] {
    auto code =
        loadCode(kKernels, {{"scale_checked", "node 'n' (Scale)", 3, 0}},
                 {{"never", SDX_RT_FAILED},
                  {"node 'n' (Scale): element {0} is negative ({1}, {2}, {3})",
                   SDX_RT_INVALID_ARGUMENT}});
    OneResult one(*code);
    std::vector<float> good = {1, 2, 3}, bad = {1, 2, -3, 4};
    for (int i = 0; i < 2; ++i) {
      ASSERT_TRUE(one.run(scaleChecked, good)) << one.context.failure();
      EXPECT_EQ(one.numbers(), (std::vector<float>{2, 4, 6}));
      one.context.releaseOutput(one.slot());
      ASSERT_FALSE(one.run(scaleChecked, bad));
      EXPECT_EQ(one.context.failure(),
                "node 'n' (Scale): element 2 is negative (7, 8, 9)");
      EXPECT_EQ(one.context.failureKind(), SDX_RT_INVALID_ARGUMENT);
    }
  });
}

TEST(GPUStreamRun, WaitsForStepsThatAreRecorded) {
  runAlone({}, [] {
    auto code = loadScale();
    OneResult one(*code);
    static float isDone;
    std::vector<float> x = {3, 4};
    ASSERT_TRUE(one.run(
        [](void **args) {
          auto *x = static_cast<Vector *>(args[0]);
          auto *y = static_cast<float *>(sdx_rt_device_output(0, 1, &x->size));
          sdx_rt_device_copy(SDX_RT_TO_DEVICE, y, x->data, 8);
          launchScale(y, 2, 2);
          sdx_rt_record(0, sdx_rt_clock(), 2, 16);
          isDone = y[1]; // the fake device's memory is the host's
        },
        x))
        << one.context.failure();
    EXPECT_EQ(isDone, 8);
    EXPECT_EQ(one.context.steps().size(), 1u);
  });
}

TEST(GPUStreamRun, RefusesWhatTheCodeGetsWrong) {
  runAlone({}, [] {
    auto code = loadScale();
    OneResult one(*code);
    std::vector<float> x = {1};
    EXPECT_FALSE(one.run(
        [](void **) {
          const int64_t size[] = {1, 1, 1, 1, 1, 1, 0, 0};
          sdx_rt_launch(2, size, 0, nullptr);
        },
        x));
    EXPECT_EQ(one.context.failure(),
              "the model's code starts a kernel 2, which there is not");
    EXPECT_FALSE(one.run(
        [](void **) {
          const int64_t size[] = {1, 1, 1, 1, 1, 1, 0, 0}, word = 0;
          sdx_rt_launch(0, size, 1, &word);
        },
        x));
    EXPECT_EQ(one.context.failure(), "cannot launch kernel scale (node Scale): "
                                     "1 arguments, it has 2");
    EXPECT_FALSE(one.run(
        [](void **) { sdx_rt_device_copy(5, nullptr, nullptr, 0); }, x));
    EXPECT_EQ(
        one.context.failure(),
        "the model's code asks for a copy of the kind 5, which there is not");
    EXPECT_FALSE(one.run([](void **) { sdx_rt_device_alloc(-8, nullptr); }, x));
    EXPECT_EQ(one.context.failure(), "cannot allocate -8 bytes of device "
                                     "memory for an intermediate value");
    // No blocks are no work.
    EXPECT_TRUE(one.run(
        [](void **) {
          const int64_t size[] = {0, 1, 1, 1, 1, 1, 0, 0}, words[2] = {};
          sdx_rt_launch(0, size, 2, words);
          int64_t none = 0;
          sdx_rt_device_output(0, 1, &none);
        },
        x))
        << one.context.failure();
  });
  RunContext host(1);
  EXPECT_FALSE(host.run([](void **) { sdx_rt_device_arena(8); }, nullptr));
  EXPECT_EQ(host.failure(),
            "the model's code is for a device, and the run has none");
}

TEST(GPUStreamRun, GoesOnWhenItRanOutOfMemory) {
  runAlone({}, [] {
    auto code = loadScale(/*most=*/1 << 20);
    OneResult one(*code);
    std::vector<float> x = {1, 2, 3};
    ASSERT_TRUE(one.run(scaleByThree, x)) << one.context.failure();
    EXPECT_FALSE(one.run(
        [](void **) { sdx_rt_device_alloc(2 << 20, "node 'c' (Conv)"); }, x));
    const std::string text = one.context.failure();
    EXPECT_EQ(text.find("node 'c' (Conv): out of device memory for an "
                        "intermediate value: asked for 2097152 bytes, free "
                        "are "),
              0u)
        << text;
    EXPECT_NE(text.find(", the budget is 1048576, of which "),
              std::string::npos)
        << text;
    // Kept blocks of other sizes make room for one that would not fit beside.
    EXPECT_TRUE(one.run(
        [](void **) {
          sdx_rt_device_free(sdx_rt_device_alloc(700000, nullptr));
          sdx_rt_device_free(sdx_rt_device_alloc(900000, nullptr));
          int64_t none = 0;
          sdx_rt_device_output(0, 1, &none);
        },
        x))
        << one.context.failure();
    one.context.releaseOutput(one.slot());
    ASSERT_TRUE(one.run(scaleByThree, x)) << one.context.failure();
  });
}

TEST(GPUStreamRun, TellsOfALostDevice) {
  runAlone({}, [] {
    auto code = loadScale();
    OneResult one(*code);
    std::vector<float> x = {1, 2, 3};
    EXPECT_FALSE(one.run(
        [](void **) {
          const int64_t size[] = {1, 1, 1, 1, 1, 1, 0, 0};
          sdx_rt_launch(1, size, 0, nullptr);
        },
        x));
    EXPECT_EQ(one.context.failure().find(
                  "the device was lost in kernel wild (node 'w' (Wild))"),
              0u)
        << one.context.failure();
    const std::string first = one.context.failure();
    EXPECT_FALSE(one.run(scaleByThree, x));
    EXPECT_EQ(one.context.failure(), first);
  });
}

TEST(GPUStreamRun, EndsWhileTheDeviceIsBusy) {
  runAlone({}, [] {
    auto code = loadScale();
    OneResult one(*code);
    std::vector<float> x(1000, 1);
    static std::atomic<bool> terminate;
    terminate = false;
    RunLimits limits;
    limits.terminate = &terminate;
    EXPECT_FALSE(one.run(
        [](void **args) {
          auto *x = static_cast<Vector *>(args[0]);
          float *y = static_cast<float *>(sdx_rt_device_output(0, 1, &x->size));
          for (int i = 0; i < 100; ++i)
            launchScale(y, x->size, 1);
          // The fake driver does one thing each time it is asked.
          terminate = true;
          sdx_rt_device_copy(SDX_RT_TO_HOST, x->data, y, 4);
        },
        x, limits));
    EXPECT_EQ(one.context.failure(), "the run was terminated");
    // What is left comes before the next run's.
    x = {1, 2, 3};
    ASSERT_TRUE(one.run(scaleByThree, x)) << one.context.failure();
    EXPECT_EQ(one.numbers(), (std::vector<float>{3, 6, 9}));
  });
}

TEST(GPUStreamRun, AllocatesNothingInSteadyState) {
  runAlone({}, [] {
    auto code = loadScale();
    auto device = openDevice();
    OneResult one(*code);
    one.slot().wantedOnDevice = true;
    int64_t free = 0;
    for (int i = 0; i < 1000; ++i) {
      std::vector<float> x = {1, 2, 3};
      ASSERT_TRUE(one.run(scaleByThree, x)) << one.context.failure();
      one.context.releaseOutput(one.slot());
      if (i == 10)
        free = get(device->freeBytes());
    }
    EXPECT_EQ(get(device->freeBytes()), free);
    code->releaseMemory();
    EXPECT_GT(get(device->freeBytes()), free);
  });
  // Sizes that repeat are not allocated again: the driver would refuse.
  runAlone({{"SARDONYX_FAKECUDA_FAIL", "cuMemAlloc:4"}}, [] {
    auto code = loadScale();
    OneResult one(*code);
    for (int i = 0; i < 100; ++i) {
      std::vector<float> x = {1, 2, 3};
      ASSERT_TRUE(one.run(scaleByThree, x)) << one.context.failure();
      one.context.releaseOutput(one.slot());
    }
    EXPECT_FALSE(
        get(DeviceMemory::allocate(openDevice(), 0, nullptr, ""))->address());
    EXPECT_FALSE(DeviceMemory::allocate(openDevice(), 8, nullptr, "x"));
  });
}

TEST(GPUDevicePool, KeepsBlocksForAWhile) {
  runAlone({}, [] {
    auto device = openDevice();
    auto budget = std::make_shared<MemoryBudget>(1 << 22);
    DevicePool pool(device, budget);
    EXPECT_EQ(pool.find(1000), nullptr);
    auto block = get(pool.allocate(1000, "a test"));
    EXPECT_GE(block->size(), 1000);
    CUdeviceptr start = block->address();
    pool.give(std::move(block));
    EXPECT_EQ(pool.find(5000), nullptr);
    block = pool.find(1001);
    ASSERT_NE(block, nullptr);
    EXPECT_EQ(block->address(), start);
    pool.give(std::move(block));
    for (int i = 0; i < 16; ++i)
      pool.trim();
    block = pool.find(1000);
    ASSERT_NE(block, nullptr);
    pool.give(std::move(block));
    for (int i = 0; i < 18; ++i)
      pool.trim();
    EXPECT_EQ(pool.find(1000), nullptr);
    EXPECT_EQ(budget->bytesHeld(), 0);
    for (int64_t bytes : {0, 1, 256, 257, 4096, 4097, 1000000}) {
      block = get(pool.allocate(bytes, "a test"));
      EXPECT_GE(block->size(), bytes);
      EXPECT_LE(block->size(), bytes + bytes / 8 + 256);
      pool.give(std::move(block));
    }
    pool.trimAll();
    EXPECT_EQ(budget->bytesHeld(), 0);
  });
}
