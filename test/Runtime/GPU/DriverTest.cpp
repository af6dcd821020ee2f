#include "FakeDevice.h"
#include <dlfcn.h>

using namespace sardonyx::cuda;
using namespace sardonyx::runtime::gpu;

static std::string sentence() { return sentenceOf(Driver::get()); }

TEST(GPUDriver, TellsThatThereIsNone) {
  runAlone({{"SARDONYX_CUDA_DRIVER", "/nowhere/libcuda.so.1"}}, [] {
    EXPECT_EQ(sentence().find("no CUDA driver on this machine: cannot open "
                              "/nowhere/libcuda.so.1 (/nowhere/libcuda.so.1: "),
              0u)
        << sentence();
    // It is kept, also for devices.
    EXPECT_EQ(sentenceOf(Device::open()), sentence());
    EXPECT_EQ(Driver::get().failure().kind, FailureKind::Unavailable);
  });
}

TEST(GPUDriver, AsksForTheSystemsDriver) {
  runAlone({{"SARDONYX_CUDA_DRIVER", ""}}, [] {
    if (!Driver::get())
      EXPECT_NE(sentence().find("libcuda.so.1"), std::string::npos)
          << sentence();
  });
}

TEST(GPUDriver, RefusesOtherLibraries) {
  runAlone({{"SARDONYX_CUDA_DRIVER", "libm.so.6"}}, [] {
    EXPECT_EQ(sentence(), "libm.so.6 is no CUDA driver: it lacks the function "
                          "cuGetProcAddress_v2");
  });
}

TEST(GPUDriver, RefusesOldDrivers) {
  runAlone({{"SARDONYX_FAKECUDA_VERSION", "11040"}}, [] {
    EXPECT_EQ(sentence(), "the CUDA driver " SARDONYX_FAKECUDA_LIBRARY
                          " is too old: it has CUDA 11.4, needed is 12.0");
  });
}

TEST(GPUDriver, RefusesDriversWithoutAFunction) {
  runAlone({{"SARDONYX_FAKECUDA_FAIL", "cuGetProcAddress:5:500"}}, [] {
    EXPECT_EQ(sentence(), "the CUDA driver " SARDONYX_FAKECUDA_LIBRARY
                          " lacks the function cuDeviceGetCount");
  });
}

TEST(GPUDriver, TellsThatThereIsNoDevice) {
  runAlone({{"SARDONYX_FAKECUDA_DEVICES", "0"}}, [] {
    EXPECT_EQ(sentence(),
              "no CUDA device: the driver " SARDONYX_FAKECUDA_LIBRARY
              " finds none");
  });
}

TEST(GPUDriver, TellsWhatTheDriverSays) {
  runAlone({{"SARDONYX_FAKECUDA_FAIL", "cuInit:1:999"}}, [] {
    EXPECT_EQ(sentence(),
              "the CUDA driver " SARDONYX_FAKECUDA_LIBRARY
              " cannot be used: unknown error (CUDA_ERROR_UNKNOWN)");
  });
  runAlone({{"SARDONYX_FAKECUDA_FAIL", "cuInit:1:998"}}, [] {
    EXPECT_EQ(sentence(), "the CUDA driver " SARDONYX_FAKECUDA_LIBRARY
                          " cannot be used: error 998");
  });
}

TEST(GPUDriver, FakeRefusesSettingsThatMakeNoSense) {
  for (const Environment &environment :
       {Environment{{"SARDONYX_FAKECUDA_FAIL", "cuMemAlloc"}},
        Environment{{"SARDONYX_FAKECUDA_FAIL", "cuMemAlloc:0"}},
        Environment{{"SARDONYX_FAKECUDA_SM", "new"}}})
    runAlone(environment, [] {
      EXPECT_NE(sentence().find("(CUDA_ERROR_INVALID_VALUE)"),
                std::string::npos)
          << sentence();
    });
}

TEST(GPUDriver, HasAllFunctions) {
  runAlone({}, [] {
    ASSERT_TRUE(Driver::get());
    const Driver &driver = **Driver::get();
    EXPECT_EQ(driver.version(), 12000);
    EXPECT_EQ(driver.describe(CUDA_ERROR_ILLEGAL_ADDRESS),
              "an illegal memory access was encountered "
              "(CUDA_ERROR_ILLEGAL_ADDRESS)");
    const Functions &functions = driver.functions();
#define SARDONYX_CUDA_FUNCTION(name, parameters)                               \
  EXPECT_TRUE(functions.name) << #name;
#define SARDONYX_CUDA_LATER_FUNCTION(name, version, parameters)                \
  EXPECT_FALSE(functions.name) << #name;
#include "lib/Runtime/GPU/CUDAFunctions.def"
  });
}

TEST(GPUDriver, FindsLaterFunctions) {
  runAlone({{"SARDONYX_FAKECUDA_VERSION", "12030"}}, [] {
    ASSERT_EQ(sentence(), "");
    EXPECT_TRUE((*Driver::get())->functions().cuGraphAddDependencies);
  });
}

TEST(GPUDriver, FakeKeepsTheLastFault) {
  runAlone({{"SARDONYX_FAKECUDA_FAIL", "cuInit:1:999"}}, [] {
    EXPECT_FALSE(Driver::get());
    void *library = dlopen(SARDONYX_FAKECUDA_LIBRARY, RTLD_NOW);
    ASSERT_TRUE(library);
    auto lastFault = reinterpret_cast<const char *(*)()>(
        dlsym(library, "sdxFakeCudaLastFault"));
    ASSERT_TRUE(lastFault);
    EXPECT_STREQ(lastFault(), "cuInit fails by request");
  });
}
