#include "FakeDevice.h"

using namespace sardonyx::cuda;
using namespace sardonyx::runtime;
using namespace sardonyx::runtime::gpu;

TEST(GPUDevice, KnowsFacts) {
  runAlone({{"SARDONYX_FAKECUDA_MEMORY", "1000000"}}, [] {
    DeviceFacts facts = openDevice()->facts();
    EXPECT_EQ(facts.name, "Sardonyx fake CUDA device");
    EXPECT_EQ(facts.sm, 90);
    EXPECT_EQ(facts.multiprocessors, 132);
    EXPECT_EQ(facts.sharedBytesPerBlock, 227 * 1024);
    EXPECT_EQ(facts.l2Bytes, 50 << 20);
    EXPECT_EQ(facts.memoryBytes, 1000000);
  });
}

TEST(GPUDevice, RefusesOldDevices) {
  runAlone({{"SARDONYX_FAKECUDA_SM", "75"}}, [] {
    EXPECT_EQ(sentenceOf(Device::open()),
              "the CUDA device Sardonyx fake CUDA device has compute "
              "capability 7.5, needed is 8.0");
  });
}

TEST(GPUDevice, RefusesNumbersOfNone) {
  runAlone({}, [] {
    EXPECT_EQ(sentenceOf(Device::open(1)),
              "no CUDA device 1: the driver finds 1");
    EXPECT_EQ(sentenceOf(Device::open(-1)),
              "no CUDA device -1: the driver finds 1");
  });
}

TEST(GPUDevice, TellsWhyItCannotBeOpened) {
  runAlone({{"SARDONYX_FAKECUDA_FAIL", "cuDevicePrimaryCtxRetain:1"}}, [] {
    EXPECT_EQ(sentenceOf(Device::open()),
              "the CUDA device 0 cannot be used: out of memory "
              "(CUDA_ERROR_OUT_OF_MEMORY)");
    EXPECT_TRUE(Device::open());
  });
}

TEST(GPUDevice, LeavesTheCurrentContextAlone) {
  runAlone({}, [] {
    auto device = openDevice();
    auto memory = allocate(device, 100);
    const Functions &functions = (*Driver::get())->functions();
    CUcontext context = nullptr;
    EXPECT_EQ(functions.cuCtxPopCurrent(&context), CUDA_ERROR_INVALID_CONTEXT);
    // Another library's stays where it was, also after a failure.
    ASSERT_EQ(functions.cuCtxPushCurrent(device->primaryContext()),
              CUDA_SUCCESS);
    EXPECT_FALSE(
        DeviceMemory::allocate(device, int64_t(1) << 50, nullptr, "a test"));
    EXPECT_EQ(functions.cuCtxPopCurrent(&context), CUDA_SUCCESS);
    EXPECT_EQ(context, device->primaryContext());
    EXPECT_EQ(functions.cuCtxPopCurrent(&context), CUDA_ERROR_INVALID_CONTEXT);
  });
}

TEST(GPUDevice, CanBeUsedAgainAfterItRanOutOfMemory) {
  runAlone({{"SARDONYX_FAKECUDA_MEMORY", "1000000"}}, [] {
    auto device = openDevice();
    auto first = allocate(device, 600000);
    auto refused = DeviceMemory::allocate(device, 500000, nullptr, "weights");
    EXPECT_EQ(sentenceOf(refused),
              "out of device memory for weights: asked for 500000 bytes, free "
              "are 400000 of 1000000");
    EXPECT_EQ(refused.failure().kind, FailureKind::OutOfMemory);
    first.reset();
    EXPECT_EQ(get(device->freeBytes()), 1000000);
    EXPECT_TRUE(DeviceMemory::allocate(device, 500000, nullptr, "weights"));
  });
}

TEST(GPUDevice, FailsAsTheFakeIsTold) {
  runAlone({{"SARDONYX_FAKECUDA_FAIL", "cuMemAlloc:2,cuMemHostAlloc:1"}}, [] {
    auto device = openDevice();
    auto one = allocate(device, 10);
    EXPECT_FALSE(DeviceMemory::allocate(device, 10, nullptr, "a test"));
    EXPECT_TRUE(DeviceMemory::allocate(device, 10, nullptr, "a test"));
    EXPECT_EQ(sentenceOf(PinnedMemory::allocate(device, 10)),
              "cannot allocate 10 bytes of pinned memory: out of memory "
              "(CUDA_ERROR_OUT_OF_MEMORY)");
  });
}

TEST(GPUDevice, CountsAgainstABudget) {
  runAlone({{"SARDONYX_FAKECUDA_MEMORY", "1000000"}}, [] {
    auto device = openDevice();
    auto budget = std::make_shared<MemoryBudget>(1000);
    auto first = get(DeviceMemory::allocate(device, 600, budget, "a test"));
    EXPECT_EQ(budget->bytesHeld(), 600);
    EXPECT_EQ(sentenceOf(DeviceMemory::allocate(device, 500, budget,
                                                "the "
                                                "arena")),
              "out of device memory for the arena: asked for 500 bytes, free "
              "are 999400 of 1000000, the budget is 1000, of which 600 are "
              "taken");
    EXPECT_EQ(budget->bytesHeld(), 600);
    first.reset();
    EXPECT_EQ(budget->bytesHeld(), 0);
    EXPECT_TRUE(DeviceMemory::allocate(device, 500, budget, "the arena"));
    // What the device refuses is not counted, either.
    auto large = std::make_shared<MemoryBudget>(2000000);
    EXPECT_FALSE(DeviceMemory::allocate(device, 1500000, large, "a test"));
    EXPECT_EQ(large->bytesHeld(), 0);
  });
}

TEST(GPUDevice, AllocatesNothingAndRefusesLess) {
  runAlone({}, [] {
    auto device = openDevice();
    EXPECT_EQ(allocate(device, 0)->address(), 0u);
    EXPECT_EQ(get(PinnedMemory::allocate(device, 0))->data(), nullptr);
    EXPECT_EQ(sentenceOf(DeviceMemory::allocate(device, -1, nullptr, "a test")),
              "cannot allocate -1 bytes of device memory for a test");
    EXPECT_EQ(sentenceOf(PinnedMemory::allocate(device, -1)),
              "cannot allocate -1 bytes of pinned memory");
  });
}

TEST(GPUDevice, TellsWhatIsDeviceMemory) {
  runAlone({}, [] {
    auto device = openDevice();
    auto memory = allocate(device, 100);
    auto pinned = get(PinnedMemory::allocate(device, 100));
    int local = 0;
    EXPECT_TRUE(get(device->holds(memory->address())));
    EXPECT_TRUE(get(device->holds(memory->address() + 99)));
    EXPECT_FALSE(
        get(device->holds(reinterpret_cast<CUdeviceptr>(pinned->data()))));
    EXPECT_FALSE(get(device->holds(reinterpret_cast<CUdeviceptr>(&local))));
  });
}

TEST(GPUDevice, IsOneForAll) {
  runAlone({}, [] {
    auto device = openDevice();
    EXPECT_EQ(openDevice(), device);
  });
}

TEST(GPUDevice, StaysLostWhenNobodyHasIt) {
  runAlone({{"SARDONYX_FAKECUDA_FAIL", "cuMemGetInfo:1:700"}}, [] {
    auto device = openDevice();
    std::string lost = "the device was lost: an illegal memory access was "
                       "encountered (CUDA_ERROR_ILLEGAL_ADDRESS)";
    EXPECT_EQ(sentenceOf(device->freeBytes()), lost);
    EXPECT_EQ(sentenceOf(Device::open()), lost);
    device.reset();
    EXPECT_EQ(sentenceOf(Device::open()), lost);
    EXPECT_EQ(Device::open().failure().kind, FailureKind::DeviceLost);
  });
}

TEST(GPUDevice, TellsThatItDoesNotSurviveAFork) {
  // CUDA's driver says so in children.
  runAlone({{"SARDONYX_FAKECUDA_FAIL", "cuMemAlloc:1:3"}}, [] {
    auto device = openDevice();
    runAlone({}, [&] {
      EXPECT_EQ(
          sentenceOf(DeviceMemory::allocate(device, 4, nullptr, "a test")),
          "cannot allocate device memory for a test: a process that was forked "
          "after the CUDA device was opened cannot use it");
    });
    EXPECT_EQ(sentenceOf(DeviceMemory::allocate(device, 4, nullptr, "a test")),
              "cannot allocate device memory for a test: initialization error "
              "(CUDA_ERROR_NOT_INITIALIZED)");
  });
}

TEST(GPUDevice, OutlivesWhoOpenedIt) {
  runAlone({}, [] {
    auto memory = allocate(openDevice(), 100);
    auto device = openDevice();
    EXPECT_EQ(get(device->freeBytes()), device->facts().memoryBytes - 100);
    memory.reset();
    EXPECT_EQ(get(device->freeBytes()), device->facts().memoryBytes);
  });
}
