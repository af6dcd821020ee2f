#include "../HandmadeModel.h"
#include "lib/Session/Cache/Cache.h"
#include "sardonyx-c/RuntimeABI.h"
#include "sardonyx-c/sardonyx.h"
#include "sardonyx/Session/Session.h"
#include "sardonyx/Targets/CPU/CPUTarget.h"
#include "test/Runtime/GPU/FakeDevice.h"
#include <fstream>
#include <gtest/gtest.h>
#include <thread>

using namespace sardonyx;
using namespace sardonyx::runtime::gpu;
using cuda::CUdeviceptr;

/// Nothing here is compiled, so the target for devices is but a name.
llvm::ArrayRef<TargetInfo> sardonyx::getLinkedTargets() {
  static const TargetInfo targets[] = {
      getCPUTarget(),
      {"nvidia", [](mlir::DialectRegistry &) {}, [] {}, nullptr}};
  return targets;
}

namespace {

constexpr ElementType F32 = ElementType::Float;

ValueInfo tensor(const std::string &name, std::vector<Dim> dims) {
  ValueInfo info;
  info.name = name;
  info.type = "tensor(float)";
  info.elementType = F32;
  info.hasRank = true;
  info.dims = std::move(dims);
  return info;
}

/// TestDeviceModel.c, with inputs x [n] and k [1], outputs y [n], m [1] and c
/// [n], and weights 1, 2, 3 to 200.
Artifact deviceArtifact() {
  Artifact artifact;
  artifact.inputs = {tensor("x", {{-1, "n"}}), tensor("k", {{1, ""}})};
  artifact.outputs = {tensor("y", {{-1, "n"}}), tensor("m", {{1, ""}}),
                      tensor("c", {{-1, "n"}})};
  Argument x, doubled, host, k, w;
  x.onDevice = doubled.onDevice = w.onDevice = true;
  k.index = 1;
  doubled.kind = Argument::Persistent;
  w.kind = Argument::Constant;
  w.index = Argument::inlineData;
  std::vector<float> weights;
  for (int i = 0; i < 200; ++i)
    weights.push_back(1.0f + static_cast<float>(i));
  artifact.data.assign(reinterpret_cast<const char *>(weights.data()), 800);
  w.length = 800;
  w.shape = {200};
  artifact.initArgs = {w};
  artifact.mainArgs = {x, doubled, host, k};
  artifact.persistentElementBytes = {4};
  artifact.objects = {readFile(SDX_TEST_DEVICE_OBJECT)};
  artifact.images.push_back(
      {"nvidia",
       kKernels,
       {{"add", "node 'a' (Add)", 4, 0},
        {"scale", "node 's' (Mul)", 2, 0},
        {"scale_checked", "node 'c' (Mul)", 3, 0},
        {"wild", "node 'w' (Wild)", 0, 0}},
       {{"never", SDX_RT_FAILED},
        {"node 'c' (Mul): x[{0}] is negative", SDX_RT_INVALID_ARGUMENT}}});
  return artifact;
}

/// Options with a cache that has the artifact for devices of this architecture.
SessionOptions deviceOptions(const TemporaryFolder &folder,
                             const std::string &architecture = "sm_90a",
                             const Artifact &artifact = deviceArtifact()) {
  SessionOptions options;
  options.cacheDir = folder.path;
  options.device.cuda = true;
  options.device.architecture = architecture;
  Cache cache(options);
  cache.store(cache.keyOf(*FileMap::borrow(kHandmadeBytes.data(),
                                           kHandmadeBytes.size()),
                          options),
              artifact);
  options.device.architecture = "";
  return options;
}

Expected<std::shared_ptr<Session>> load(const SessionOptions &options) {
  return Session::loadBytes(kHandmadeBytes.data(), kHandmadeBytes.size(),
                            options);
}

std::shared_ptr<Session> mustLoad(const SessionOptions &options) {
  auto session = load(options);
  if (!session) {
    fprintf(stderr, "failed: %s\n", session.error().message().c_str());
    _exit(2);
  }
  return *session;
}

std::string whyNot(const SessionOptions &options) {
  auto session = load(options);
  return session ? "it did not fail" : session.error().message();
}

std::vector<float> numbers(const Tensor &tensor) {
  std::vector<float> found(static_cast<size_t>(tensor.elements()));
  if (tensor.device == kHost) {
    memcpy(found.data(), tensor.data, found.size() * 4);
    return found;
  }
  auto stream = get(Stream::create(openDevice()));
  EXPECT_EQ(sentenceOf(stream->copyToHost(
                found.data(), reinterpret_cast<CUdeviceptr>(tensor.data),
                static_cast<int64_t>(found.size() * 4))),
            "");
  EXPECT_EQ(sentenceOf(stream->synchronize()), "");
  return found;
}

/// The inputs of a run and what comes of them.
struct Feeds {
  explicit Feeds(int64_t n = 3, float first = 5) : x(n), k{10} {
    for (int64_t i = 0; i < n; ++i)
      x[i] = first + static_cast<float>(i);
  }
  std::vector<TensorRef> inputs() const {
    return {{F32, x.data(), {static_cast<int64_t>(x.size())}},
            {F32, k.data(), {1}}};
  }
  void check(const std::vector<Tensor> &results) const {
    std::vector<float> y = numbers(results[0]), c = numbers(results[2]);
    ASSERT_EQ(y.size(), x.size());
    ASSERT_EQ(c.size(), x.size());
    for (size_t i = 0; i < x.size(); ++i) {
      EXPECT_EQ(y[i], x[i] + 2 * (1 + static_cast<float>(i)));
      EXPECT_EQ(c[i], 3 * x[i]);
    }
    EXPECT_EQ(numbers(results[1])[0], (x.empty() ? 0 : x[0]) + k[0]);
  }
  void expect(Session &session, const std::vector<OutputRef> &memory = {}) {
    auto results = session.run(inputs(), memory);
    ASSERT_TRUE(results) << results.error().message();
    check(*results);
  }
  std::string whyNot(Session &session, const RunOptions &options = {}) {
    auto results = session.run(inputs(), {}, options);
    return results ? "it did not fail" : results.error().message();
  }
  std::vector<float> x, k;
};

int64_t residentKilobytes() {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);)
    if (line.compare(0, 6, "VmRSS:") == 0)
      return std::stoll(line.substr(6));
  return 0;
}

} // namespace

TEST(SessionDevice, RunsOnTheDevice) {
  const std::pair<const char *, const char *> cases[] = {
      {"80", "sm_80"},    {"86", "sm_86"},   {"88", "sm_87"},  {"90", "sm_90a"},
      {"100", "sm_100a"}, {"103", "sm_100"}, {"130", "sm_120"}};
  for (auto [sm, name] : cases)
    runAlone({{"SARDONYX_FAKECUDA_SM", sm}}, [name = std::string(name)] {
      TemporaryFolder folder;
      auto session = mustLoad(deviceOptions(folder, name));
      EXPECT_TRUE(session->report().fromCache);
      EXPECT_TRUE(session->options().device.cuda);
      EXPECT_EQ(session->options().device.architecture, name);
      for (int64_t n : {3, 200, 0, 1, 3})
        Feeds(n, static_cast<float>(n)).expect(*session);
    });
}

TEST(SessionDevice, WritesToTheCallersMemory) {
  runAlone({}, [] {
    TemporaryFolder folder;
    auto session = mustLoad(deviceOptions(folder));
    Feeds run(3);
    float y[3] = {};
    run.expect(*session, {{F32, y, {3}}, {}, {}});
    EXPECT_EQ(y[0], 7);
    // It is also the input's.
    auto results =
        session->run(run.inputs(), {{F32, run.x.data(), {3}}, {}, {}});
    ASSERT_TRUE(results) << results.error().message();
    EXPECT_EQ(run.x, (std::vector<float>{7, 10, 13}));
    results = session->run(run.inputs(), {{F32, y, {2}}, {}, {}});
    ASSERT_FALSE(results);
    EXPECT_EQ(results.error().message(),
              "output 'y': the caller's memory has shape [2], the model gives "
              "[3]");
  });
}

TEST(SessionDevice, TakesAndGivesWhatLiesOnTheDevice) {
  runAlone({}, [] {
    TemporaryFolder folder;
    auto session = mustLoad(deviceOptions(folder));
    auto stream = get(Stream::create(openDevice()));
    Feeds run(3);
    // The second lies where kernels cannot read 16 bytes at a time.
    auto x = upload(*stream, {5, 6, 7, 5, 6, 7});
    ASSERT_EQ(sentenceOf(stream->synchronize()), "");
    for (int64_t offset : {0, 12}) {
      std::vector<TensorRef> inputs = run.inputs();
      inputs[0].data = reinterpret_cast<void *>(x->address() + offset);
      inputs[0].device = 0;
      auto results = session->run(inputs);
      ASSERT_TRUE(results) << results.error().message();
      run.check(*results);
    }
    // Results of the session's, or in memory of the caller's.
    auto memory = allocate(openDevice(), 64);
    OutputRef there;
    there.device = 0;
    OutputRef given = {
        F32, reinterpret_cast<void *>(memory->address()), {3}, 0};
    auto results = session->run(run.inputs(), {there, there, given});
    ASSERT_TRUE(results) << results.error().message();
    run.check(*results);
    for (const Tensor &result : *results)
      EXPECT_EQ(result.device, 0);
    EXPECT_EQ((*results)[2].data, given.data);
    EXPECT_EQ((*results)[2].owner, nullptr);
    // A result is the next run's input, and outlives the session.
    std::vector<TensorRef> inputs = run.inputs();
    inputs[0].data = (*results)[2].data;
    inputs[0].device = 0;
    auto next = session->run(inputs, {there, {}, given});
    ASSERT_TRUE(next) << next.error().message();
    EXPECT_EQ(numbers((*next)[2]), (std::vector<float>{45, 54, 63}));
    EXPECT_EQ(numbers((*next)[1]), std::vector<float>{25});
    session = nullptr;
    EXPECT_EQ(numbers((*next)[0]), (std::vector<float>{17, 22, 27}));
  });
}

TEST(SessionDevice, WaitsForWhatTheDefaultStreamWrites) {
  runAlone({}, [] {
    TemporaryFolder folder;
    auto session = mustLoad(deviceOptions(folder));
    auto writer = Stream::borrow(openDevice(), nullptr);
    Feeds run(3);
    auto x = upload(*writer, run.x); // late, as all that streams do
    std::vector<TensorRef> inputs = run.inputs();
    inputs[0].data = reinterpret_cast<void *>(x->address());
    inputs[0].device = 0;
    auto results = session->run(inputs);
    ASSERT_TRUE(results) << results.error().message();
    run.check(*results);
  });
}

TEST(SessionDevice, RefusesTensorsOfOtherDevices) {
  runAlone({}, [] {
    TemporaryFolder folder, second;
    auto session = mustLoad(deviceOptions(folder));
    Feeds run(3);
    std::vector<TensorRef> inputs = run.inputs();
    inputs[1].device = 1;
    auto results = session->run(inputs);
    ASSERT_FALSE(results);
    EXPECT_EQ(results.error().message(),
              "input 'k' lies on CUDA device 1, and the model runs on CUDA "
              "device 0");
    OutputRef there;
    there.device = 2;
    results = session->run(run.inputs(), {there, {}, {}});
    ASSERT_FALSE(results);
    EXPECT_EQ(results.error().message(),
              "the memory for output 'y' lies on CUDA device 2, and the model "
              "runs on CUDA device 0");
    auto host = mustLoad(handmadeOptions(second));
    std::vector<float> b = {1};
    std::vector<TensorRef> others = {{F32, run.x.data(), {1, 3}},
                                     {F32, b.data(), {1}}};
    others[1].device = 0;
    results = host->run(others);
    ASSERT_FALSE(results);
    EXPECT_EQ(results.error().message(),
              "input 'b' lies on CUDA device 0, and the model runs on the CPU");
  });
}

TEST(SessionDevice, SpeaksC) {
  runAlone({}, [] {
    TemporaryFolder folder;
    (void)deviceOptions(folder);
    sdx_options *options = sdx_options_create();
    sdx_options_set_cache(options, 1, folder.path.c_str());
    sdx_options_set_cuda(options, 0, 1 << 30, nullptr, 0);
    sdx_error *error = nullptr;
    sdx_session *session = sdx_session_create_from_bytes(
        kHandmadeBytes.data(), kHandmadeBytes.size(), options, &error);
    ASSERT_NE(session, nullptr) << sdx_error_message(error);
    EXPECT_EQ(sdx_session_device(session), 0);
    Feeds feeds(3);
    const int64_t three = 3, one = 1;
    const sdx_tensor inputs[] = {{1, 1, &three, feeds.x.data()},
                                 {1, 1, &one, feeds.k.data()}};
    const int there[] = {0, SDX_HOST, 0};
    sdx_results *first = sdx_session_run_on_device(
        session, inputs, nullptr, 2, nullptr, there, nullptr, &error);
    ASSERT_NE(first, nullptr) << sdx_error_message(error);
    EXPECT_EQ(sdx_results_get_device(first, 0), 0);
    EXPECT_EQ(sdx_results_get_device(first, 1), SDX_HOST);
    EXPECT_EQ(sdx_results_get_device(first, 9), SDX_HOST);
    // c is the next x: it lies on the device, and its results do not.
    const sdx_tensor again[] = {sdx_results_get(first, 2), inputs[1]};
    const int devices[] = {0, SDX_HOST};
    sdx_results *second = sdx_session_run_on_device(
        session, again, devices, 2, nullptr, nullptr, nullptr, &error);
    ASSERT_NE(second, nullptr) << sdx_error_message(error);
    EXPECT_EQ(sdx_results_get_device(second, 2), SDX_HOST);
    EXPECT_EQ(static_cast<float *>(sdx_results_get(second, 2).data)[1], 54);
    const int elsewhere[] = {1, SDX_HOST};
    EXPECT_EQ(sdx_session_run_on_device(session, again, elsewhere, 2, nullptr,
                                        nullptr, nullptr, &error),
              nullptr);
    EXPECT_EQ(sdx_error_get_kind(error), SDX_INVALID_ARGUMENT);
    sdx_error_free(error);
    sdx_results_free(second);
    sdx_results_free(first);
    sdx_session_free(session);
    sdx_options_free(options);
  });
}

TEST(SessionDevice, FailsRunsWhoseChecksFailOnTheDevice) {
  runAlone({}, [] {
    TemporaryFolder folder;
    auto session = mustLoad(deviceOptions(folder));
    Feeds bad(3, -1);
    auto results = session->run(bad.inputs());
    ASSERT_FALSE(results);
    EXPECT_EQ(results.error().message(), "node 'c' (Mul): x[0] is negative");
    EXPECT_EQ(results.error().kind(), ErrorKind::InvalidArgument);
    Feeds(3).expect(*session);
  });
}

TEST(SessionDevice, RefusesAllWhenTheDeviceIsLost) {
  runAlone({}, [] {
    TemporaryFolder folder, second;
    auto session = mustLoad(deviceOptions(folder));
    auto other = mustLoad(deviceOptions(folder));
    auto host = mustLoad(handmadeOptions(second));
    Feeds good(3), fatal(3, 990);
    good.expect(*other);
    const std::string text = fatal.whyNot(*session);
    EXPECT_EQ(text.find("the device was lost in one of "), 0u) << text;
    EXPECT_EQ(good.whyNot(*session), text);
    EXPECT_EQ(good.whyNot(*other), text);
    EXPECT_EQ(whyNot(deviceOptions(folder)), text);
    std::vector<float> x = {1, 2, 3};
    EXPECT_TRUE(host->run({{F32, x.data(), {1, 3}}, {F32, x.data(), {1}}}));
  });
}

TEST(SessionDevice, TellsWhyThereIsNoDevice) {
  struct Case {
    Environment environment;
    int number;
    const char *text;
  };
  const Case cases[] = {
      {{{"SARDONYX_CUDA_DRIVER", "/no/libcuda.so"}},
       0,
       "no CUDA driver on this machine: cannot open /no/libcuda.so"},
      {{{"SARDONYX_FAKECUDA_VERSION", "11080"}},
       0,
       " is too old: it has CUDA "
       "11.8, needed is 12.0"},
      {{{"SARDONYX_FAKECUDA_DEVICES", "0"}}, 0, "no CUDA device: the driver "},
      {{}, 3, "no CUDA device 3: the driver finds 1"},
      {{{"SARDONYX_FAKECUDA_SM", "75"}},
       0,
       "has compute capability 7.5, needed is 8.0"},
  };
  for (const Case &one : cases)
    runAlone(one.environment, [&] {
      TemporaryFolder folder;
      SessionOptions options = deviceOptions(folder);
      options.device.deviceId = one.number;
      const std::string text = whyNot(options);
      EXPECT_NE(text.find(one.text), std::string::npos) << text;
      // The same model on the CPU.
      (void)handmadeOptions(folder);
      options.device.mayUseCpu = true;
      auto session = mustLoad(options);
      EXPECT_FALSE(session->options().device.cuda);
      EXPECT_EQ(session->takeWarnings(),
                std::vector<std::string>{"the model runs on the CPU: " + text});
      std::vector<float> x = {1, 2, 3};
      EXPECT_TRUE(
          session->run({{F32, x.data(), {1, 3}}, {F32, x.data(), {1}}}));
    });
}

TEST(SessionDevice, RefusesWrongOptions) {
  SessionOptions options;
  options.device.cuda = true;
  options.device.memoryLimit = -1;
  EXPECT_EQ(whyNot(options), "the memory limit of the device must be a "
                             "positive number of bytes, got -1");
  options.device.memoryLimit = 0;
  options.device.deviceId = -2;
  EXPECT_EQ(whyNot(options), "there is no CUDA device -2");
}

TEST(SessionDevice, KeepsToItsBudget) {
  runAlone({}, [] {
    TemporaryFolder folder;
    SessionOptions options = deviceOptions(folder);
    options.device.memoryLimit = 500;
    const std::string text = whyNot(options);
    EXPECT_EQ(text.find("out of device memory for constants: asked for "), 0u)
        << text;
    options.device.memoryLimit = 5000;
    auto session = mustLoad(options);
    Feeds(3).expect(*session);
    const std::string full = Feeds(200).whyNot(*session);
    EXPECT_NE(full.find("out of device memory for "), std::string::npos)
        << full;
    EXPECT_NE(full.find(", the budget is 5000, of which "), std::string::npos)
        << full;
    Feeds(3).expect(*session);
  });
  // The driver has none.
  runAlone({{"SARDONYX_FAKECUDA_FAIL", "cuMemAlloc:7"}}, [] {
    TemporaryFolder folder;
    auto session = mustLoad(deviceOptions(folder));
    // What finds none tries once more, with less memory held.
    for (int i = 0; i < 10; ++i)
      Feeds(3).expect(*session);
  });
}

TEST(SessionDevice, EndsWhenItIsTold) {
  runAlone({}, [] {
    TemporaryFolder folder;
    auto session = mustLoad(deviceOptions(folder));
    RunOptions options;
    options.terminate = true;
    EXPECT_EQ(Feeds(3).whyNot(*session, options), "the run was terminated");
    Feeds(3).expect(*session);
  });
}

TEST(SessionDevice, RunsOnAStreamOfTheCallers) {
  runAlone({}, [] {
    TemporaryFolder folder;
    auto device = openDevice();
    auto stream = get(Stream::create(device));
    SessionOptions options = deviceOptions(folder);
    options.device.userStream = stream->handle();
    auto session = mustLoad(options);
    Feeds(3).expect(*session);
    Feeds(7).expect(*session);
  });
}

TEST(SessionDevice, RunsOnManyThreads) {
  runAlone({}, [] {
    TemporaryFolder folder;
    auto session = mustLoad(deviceOptions(folder));
    std::vector<std::thread> threads;
    for (int i = 0; i < 6; ++i)
      threads.emplace_back([&, i] {
        OutputRef there;
        there.device = 0;
        for (int k = 0; k < 40; ++k)
          Feeds(3 + i * 20 + k % 3, static_cast<float>(i))
              .expect(*session, k % 2 ? std::vector<OutputRef>{there, {}, there}
                                      : std::vector<OutputRef>{});
      });
    for (std::thread &thread : threads)
      thread.join();
  });
}

TEST(SessionDevice, LeaksNothing) {
  runAlone({}, [] {
    TemporaryFolder folder;
    auto device = openDevice();
    const int64_t all = get(device->freeBytes());
    SessionOptions options = deviceOptions(folder);
    {
      auto session = mustLoad(options);
      int64_t free = 0, resident = 0;
      for (int i = 0; i < 10000; ++i) {
        Feeds(1 + i % 5).expect(*session);
        if (i == 1000) {
          free = get(device->freeBytes());
          resident = residentKilobytes();
        }
      }
      EXPECT_EQ(get(device->freeBytes()), free);
      EXPECT_LT(residentKilobytes(), resident + 2000);
      session->releaseMemory();
      EXPECT_GT(get(device->freeBytes()), free);
    }
    EXPECT_EQ(get(device->freeBytes()), all);
    int64_t resident = 0;
    for (int i = 0; i < 300; ++i) {
      Feeds(3).expect(*mustLoad(options));
      if (i == 100)
        resident = residentKilobytes();
    }
    EXPECT_EQ(get(device->freeBytes()), all);
    EXPECT_LT(residentKilobytes(), resident + 4000);
  });
}

TEST(SessionDevice, RefusesDamagedArtifacts) {
  Artifact artifact = deviceArtifact();
  EXPECT_TRUE(deserialize(serialize(artifact)));
  EXPECT_TRUE(deserialize(serialize(artifact))->mainArgs[0].onDevice);
  artifact.mainArgs[0].index = 2;
  EXPECT_FALSE(deserialize(serialize(artifact)));
}

TEST(SessionDevice, RefusesImagesThatTheDriverDoes) {
  runAlone({}, [] {
    TemporaryFolder folder;
    Artifact artifact = deviceArtifact();
    artifact.images[0].bytes = ".version 7.0\n.target sm_80\nnonsense\n";
    std::string text = whyNot(deviceOptions(folder, "sm_90a", artifact));
    EXPECT_EQ(text.find("cannot load the kernels of the model: "), 0u) << text;
    artifact = deviceArtifact();
    artifact.images[0].kernels[1].name = "gone";
    text = whyNot(deviceOptions(folder, "sm_90a", artifact));
    EXPECT_EQ(text.find("cannot use kernel gone of the model: "), 0u) << text;
  });
}
