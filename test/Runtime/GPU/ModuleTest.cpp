#include "FakeDevice.h"
#include <cstring>
#include <thread>

using namespace sardonyx::cuda;
using namespace sardonyx::runtime::gpu;

TEST(GPUModule, LaunchesKernels) {
  runAlone({}, [] {
    auto device = openDevice();
    auto stream = get(Stream::create(device));
    auto kernel = get(loadKernels(device)->find({"add", "node Add", 4, 0}));
    unsigned n = 600;
    std::vector<float> left, right, sums;
    for (unsigned i = 0; i < n; ++i) {
      left.push_back(0.5f * i);
      right.push_back(1000.0f - i);
      sums.push_back(left[i] + right[i]);
    }
    auto a = upload(*stream, left), b = upload(*stream, right);
    auto c = allocate(device, 4 * n);
    CUdeviceptr addresses[] = {a->address(), b->address(), c->address()};
    Arguments arguments = {&addresses[0], &addresses[1], &addresses[2], &n};
    ASSERT_EQ(sentenceOf(kernel->launch(*stream, {{3, 1, 1}, {256, 1, 1}, 0},
                                        arguments)),
              "");
    // The launch has copies of its arguments.
    addresses[0] = 0;
    EXPECT_EQ(download(*stream, *c), sums);
  });
}

TEST(GPUModule, LaunchesFromSomeThreads) {
  runAlone({}, [] {
    auto device = openDevice();
    auto kernel = findScale(*loadKernels(device));
    std::vector<std::thread> workers;
    for (int worker = 1; worker <= 4; ++worker)
      workers.emplace_back([&, worker] {
        auto stream = get(Stream::create(device));
        auto memory = upload(*stream, {1.0f * worker, 0.5f});
        CUdeviceptr address = memory->address();
        float factor = 2;
        for (int i = 0; i < 10; ++i)
          EXPECT_EQ(sentenceOf(kernel->launch(*stream, threads(2),
                                              {&address, &factor})),
                    "");
        EXPECT_EQ(download(*stream, *memory),
                  (std::vector<float>{1024.0f * worker, 512}));
      });
    for (std::thread &worker : workers)
      worker.join();
  });
}

TEST(GPUModule, LaunchesNoBlocks) {
  runAlone({}, [] {
    auto device = openDevice();
    auto stream = get(Stream::create(device));
    auto kernel = get(loadKernels(device)->find({"wild", "", 0, 0}));
    EXPECT_EQ(
        sentenceOf(kernel->launch(*stream, {{5, 0, 1}, {32, 1, 1}, 0}, {})),
        "");
    EXPECT_EQ(sentenceOf(stream->synchronize()), "");
  });
}

TEST(GPUModule, FindsVariables) {
  runAlone({}, [] {
    auto device = openDevice();
    auto stream = get(Stream::create(device));
    auto module = loadKernels(device);
    Module::Global kept = get(module->findGlobal("kept"));
    EXPECT_EQ(kept.bytes, 8);
    float numbers[2];
    ASSERT_EQ(sentenceOf(stream->copyToHost(numbers, kept.address, 8)), "");
    ASSERT_EQ(sentenceOf(stream->synchronize()), "");
    EXPECT_EQ(numbers[0], 1);
    EXPECT_EQ(numbers[1], 2);
    EXPECT_EQ(sentenceOf(module->findGlobal("lost")),
              "cannot find variable lost of the test's module: named symbol "
              "not found (CUDA_ERROR_NOT_FOUND)");
  });
}

TEST(GPUModule, TellsWhatTheCompilerSays) {
  runAlone({}, [] {
    auto device = openDevice();
    auto load = [&](const std::string &ptx) {
      return sentenceOf(Module::load(device, ptx, "m"));
    };
    std::string refused = "cannot load the kernels of m: a PTX JIT compilation "
                          "failed (CUDA_ERROR_INVALID_PTX): ";
    std::string ptx = kKernels;
    std::string wrong = ptx;
    wrong.replace(wrong.find("mad.lo.s32"), 10, "frobnicate");
    std::string sentence = load(wrong);
    EXPECT_EQ(sentence.find(refused), 0u) << sentence;
    EXPECT_NE(sentence.find("frobnicate"), std::string::npos) << sentence;
    EXPECT_NE(load("no PTX at all"), "");
    EXPECT_NE(load(""), "");
    // PTX for newer devices, and for one kind of them.
    std::string newer = ptx, exact = ptx;
    newer.replace(newer.find("sm_80"), 5, "sm_100");
    EXPECT_EQ(load(newer),
              refused + "the PTX is for sm_100, the device is sm_90");
    exact.replace(exact.find("sm_80"), 5, "sm_90a");
    EXPECT_EQ(load(exact), "");
    // The device can be used after that.
    EXPECT_EQ(load(ptx), "");
  });
  runAlone({{"SARDONYX_FAKECUDA_SM", "100"}}, [] {
    std::string exact = kKernels;
    exact.replace(exact.find("sm_80"), 5, "sm_90a");
    EXPECT_FALSE(Module::load(openDevice(), exact, "m"));
  });
}

/// An ELF file of 64 bits with one section of 8 bytes behind its header.
static std::string makeElf() {
  std::string image(64 + 8 + 64, 0);
  auto write = [&](size_t at, uint64_t value, size_t bytes) {
    memcpy(&image[at], &value, bytes);
  };
  image.replace(0, 6, std::string("\177ELF\2\1", 6));
  write(40, 72, 8);      // where the table of sections begins
  write(58, 64, 2);      // bytes of an entry
  write(60, 1, 2);       // entries
  write(72 + 4, 1, 4);   // the section has contents
  write(72 + 24, 64, 8); // which begin here
  write(72 + 32, 8, 8);  // and have so many bytes
  return image;
}

TEST(GPUModule, RefusesDamagedCubins) {
  runAlone({}, [] {
    auto device = openDevice();
    std::string image = makeElf();
    auto load = [&](const std::string &image) {
      return sentenceOf(Module::load(device, image, "m"));
    };
    // Only real devices run what is whole.
    EXPECT_EQ(load(image),
              "cannot load the kernels of m: no kernel image is available for "
              "execution on the device (CUDA_ERROR_NO_BINARY_FOR_GPU)");
    std::string damaged =
        "cannot load the kernels of m: the cubin is cut off or damaged";
    for (size_t size = 4; size < image.size(); ++size)
      EXPECT_EQ(load(image.substr(0, size)), damaged) << size;
    std::string large = image;
    large[72 + 32] = 73;
    EXPECT_EQ(load(large), damaged);
    large = image;
    large[72 + 24 + 7] = '\377';
    EXPECT_EQ(load(large), damaged);
  });
}

TEST(GPUModule, ChecksKernels) {
  runAlone({}, [] {
    auto device = openDevice();
    auto module = loadKernels(device);
    EXPECT_EQ(sentenceOf(module->find({"none", "", 0, 0})),
              "cannot use kernel none of the test's module: named symbol not "
              "found (CUDA_ERROR_NOT_FOUND)");
    EXPECT_EQ(sentenceOf(module->find({"add", "", 4, 228 * 1024})),
              "cannot use kernel add of the test's module: it wants 233472 "
              "bytes of shared memory, the device leaves it 232448");
  });
}

TEST(GPUModule, ChecksLaunches) {
  runAlone({}, [] {
    auto device = openDevice();
    auto stream = get(Stream::create(device));
    auto kernel =
        get(loadKernels(device)->find({"add", "node Add_1", 4, 100000}));
    CUdeviceptr none = 0;
    unsigned n = 0;
    Arguments arguments = {&none, &none, &none, &n};
    auto launch = [&](const LaunchSize &size) {
      return sentenceOf(kernel->launch(*stream, size, arguments));
    };
    // More than the usual shared memory was asked for before.
    EXPECT_EQ(launch({{1, 1, 1}, {256, 1, 1}, 100000}), "");
    EXPECT_EQ(sentenceOf(stream->synchronize()), "");
    EXPECT_EQ(launch({{1, 1, 1}, {256, 1, 1}, 100001}),
              "cannot launch kernel add (node Add_1): 100001 bytes of shared "
              "memory, at most 100000 were asked for");
    EXPECT_EQ(launch({{1, 1, 1}, {257, 1, 1}, 0}),
              "cannot launch kernel add (node Add_1): blocks of 257 x 1 x 1 "
              "threads, at most 256 fit");
    EXPECT_NE(launch({{1, 1, 1}, {0, 1, 1}, 0}), "");
    EXPECT_NE(launch({{1, 1, 1}, {1, 1, 65}, 0}), "");
    EXPECT_NE(launch({{1, 1, 1}, {32, 1, 1}, -1}), "");
    EXPECT_EQ(launch({{int64_t(1) << 31, 1, 1}, {32, 1, 1}, 0}),
              "cannot launch kernel add (node Add_1): a grid of 2147483648 x 1 "
              "x 1 blocks, at most 2147483647 x 65535 x 65535 fit");
    EXPECT_NE(launch({{1, 65536, 1}, {32, 1, 1}, 0}), "");
    EXPECT_NE(launch({{-1, 1, 1}, {32, 1, 1}, 0}), "");
    arguments[2] = nullptr;
    EXPECT_EQ(launch(threads(32)),
              "cannot launch kernel add (node Add_1): argument 2 is missing");
    arguments.pop_back();
    EXPECT_EQ(launch(threads(32)), "cannot launch kernel add (node Add_1): 3 "
                                   "arguments, it has 4");
  });
}

TEST(GPUModule, TellsLaunchesThatTheDriverRefuses) {
  runAlone({{"SARDONYX_FAKECUDA_FAIL", "cuLaunchKernelEx:1:701"}}, [] {
    auto device = openDevice();
    auto stream = get(Stream::create(device));
    auto memory = upload(*stream, {1, 2});
    auto kernel = findScale(*loadKernels(device));
    CUdeviceptr address = memory->address();
    float factor = 3;
    EXPECT_EQ(
        sentenceOf(kernel->launch(*stream, threads(2), {&address, &factor})),
        "cannot launch kernel scale (node Scale): too many resources "
        "requested for launch (CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES)");
    EXPECT_EQ(
        sentenceOf(kernel->launch(*stream, threads(2), {&address, &factor})),
        "");
    EXPECT_EQ(download(*stream, *memory), (std::vector<float>{3, 6}));
  });
}

//===----------------------------------------------------------------------===//
// Lost devices
//===----------------------------------------------------------------------===//

static const char *const kIllegal = "an illegal memory access was encountered "
                                    "(CUDA_ERROR_ILLEGAL_ADDRESS)";

TEST(GPUModule, LosesTheDeviceInOneKernel) {
  runAlone({}, [] {
    auto device = openDevice();
    auto stream = get(Stream::create(device));
    auto module = loadKernels(device);
    auto memory = upload(*stream, {1});
    auto wild = get(module->find({"wild", "node Conv_7", 0, 0}));
    auto scale = findScale(*module);
    // A kernel that is done is not under suspicion.
    CUdeviceptr address = memory->address();
    float factor = 2;
    ASSERT_EQ(
        sentenceOf(scale->launch(*stream, threads(1), {&address, &factor})),
        "");
    ASSERT_EQ(sentenceOf(stream->synchronize()), "");
    ASSERT_EQ(sentenceOf(wild->launch(*stream, threads(1), {})), "");
    EXPECT_EQ(device->lossSentence(), "");
    std::string lost =
        std::string("the device was lost in kernel wild (node Conv_7): ") +
        kIllegal;
    MaybeFailure failure = stream->synchronize();
    EXPECT_EQ(sentenceOf(failure), lost);
    EXPECT_EQ(failure->kind, FailureKind::DeviceLost);
    EXPECT_EQ(device->lossSentence(), lost);
    // Each use from then on says the same.
    auto refused = DeviceMemory::allocate(device, 4, nullptr, "a test");
    EXPECT_EQ(sentenceOf(refused), lost);
    EXPECT_EQ(refused.failure().kind, FailureKind::DeviceLost);
    EXPECT_EQ(sentenceOf(device->freeBytes()), lost);
    EXPECT_EQ(sentenceOf(Module::load(device, kKernels, "m")), lost);
    EXPECT_EQ(sentenceOf(module->find({"add", "", 4, 0})), lost);
    EXPECT_EQ(sentenceOf(module->findGlobal("kept")), lost);
    EXPECT_EQ(sentenceOf(Stream::create(device)), lost);
    EXPECT_EQ(sentenceOf(Event::create(device)), lost);
    EXPECT_EQ(sentenceOf(Graph::create(device)), lost);
    EXPECT_EQ(sentenceOf(stream->fillBytes(address, 0, 4)), lost);
    EXPECT_EQ(sentenceOf(wild->launch(*stream, threads(1), {})), lost);
    auto budget = std::make_shared<sardonyx::runtime::MemoryBudget>(1);
    EXPECT_EQ(sentenceOf(DeviceMemory::allocate(device, 4, budget, "a test")),
              lost);
  });
}

TEST(GPUModule, LosesTheDeviceInOneOfSomeKernels) {
  auto run = [] {
    auto device = openDevice();
    auto stream = get(Stream::create(device));
    auto module = loadKernels(device);
    auto memory = upload(*stream, {1});
    auto wild = get(module->find({"wild", "node Conv_7", 0, 0}));
    auto scale = findScale(*module);
    CUdeviceptr address = memory->address();
    float factor = 2;
    Arguments arguments = {&address, &factor};
    MaybeFailure failure = scale->launch(*stream, threads(1), arguments);
    if (!failure)
      failure = wild->launch(*stream, threads(1), {});
    if (!failure)
      failure = scale->launch(*stream, threads(1), arguments);
    if (!failure)
      failure = stream->synchronize();
    return sentenceOf(failure);
  };
  runAlone({}, [&] {
    EXPECT_EQ(run(),
              std::string("the device was lost in one of 3 kernels, the first "
                          "scale (node Scale), the last scale (node Scale) "
                          "(SARDONYX_DEBUG=1 tells which): ") +
                  kIllegal);
  });
  runAlone({{"SARDONYX_DEBUG", "1"}}, [&] {
    EXPECT_EQ(run(), std::string("the device was lost in kernel wild (node "
                                 "Conv_7): ") +
                         kIllegal);
  });
}

TEST(GPUModule, LosesTheDeviceInALaunch) {
  runAlone({{"SARDONYX_FAKECUDA_FAIL", "cuLaunchKernelEx:2:700"}}, [] {
    auto device = openDevice();
    auto stream = get(Stream::create(device));
    auto memory = upload(*stream, {1});
    auto scale = findScale(*loadKernels(device));
    CUdeviceptr address = memory->address();
    float factor = 2;
    Arguments arguments = {&address, &factor};
    ASSERT_EQ(sentenceOf(scale->launch(*stream, threads(1), arguments)), "");
    EXPECT_EQ(download(*stream, *memory), std::vector<float>{2});
    EXPECT_EQ(
        sentenceOf(scale->launch(*stream, threads(1), arguments)),
        std::string("the device was lost in kernel scale (node Scale): ") +
            kIllegal);
  });
}

/// Loads a kernel of these statements, runs a block of 64 threads and returns
/// what is lost.
static std::string runAndLose(const std::string &statements) {
  auto device = openDevice();
  auto stream = get(Stream::create(device));
  auto module = get(Module::load(
      device,
      ".version 7.0\n.target sm_80\n.address_size 64\n.visible .entry k(.param "
      ".u64 x) {\n.reg .pred %p<2>; .reg .b32 %r<4>; .reg .b64 %rd<4>; .shared "
      ".align 4 .b8 s[128];\nld.param.u64 %rd1, [x]; mov.u32 %r1, %tid.x;\n" +
          statements + "\nret; }",
      "m"));
  auto kernel = get(module->find({"k", "", 1, 0}));
  auto memory = upload(*stream, std::vector<float>(64));
  CUdeviceptr address = memory->address();
  EXPECT_EQ(sentenceOf(kernel->launch(*stream, threads(64), {&address})), "");
  return sentenceOf(stream->synchronize());
}

TEST(GPUModule, TellsKindsOfFaults) {
  const std::pair<const char *, const char *> faults[] = {
      // The word after the last.
      {"st.global.u32 [%rd1+256], %r1;", "ILLEGAL_ADDRESS"},
      {"st.global.u32 [%rd1+2], %r1;", "MISALIGNED_ADDRESS"},
      {"setp.lt.u32 %p1, %r1, 32; @%p1 bra L; bar.sync 0; bra M; L: bar.sync "
       "1, 64; M:",
       "LAUNCH_TIMEOUT"},
      {"st.shared.u32 [s], %r1;", "LAUNCH_FAILED"},
      {"trap;", "LAUNCH_FAILED"},
  };
  for (auto [statements, code] : faults)
    runAlone({}, [statements = statements, code = code] {
      std::string lost = runAndLose(statements);
      EXPECT_EQ(lost.find("the device was lost in kernel k: "), 0u) << lost;
      EXPECT_NE(lost.find("(CUDA_ERROR_" + std::string(code) + ")"),
                std::string::npos)
          << lost;
    });
}

TEST(GPUModule, LosesTheDeviceWithoutAKernel) {
  runAlone({{"SARDONYX_FAKECUDA_FAIL", "cuMemcpyDtoHAsync:1:719"}}, [] {
    auto device = openDevice();
    auto stream = get(Stream::create(device));
    auto memory = upload(*stream, {1});
    float number = 0;
    EXPECT_EQ(sentenceOf(stream->copyToHost(&number, memory->address(), 4)),
              "the device was lost: unspecified launch failure "
              "(CUDA_ERROR_LAUNCH_FAILED)");
  });
}

TEST(GPUModule, KeepsWhatTheDriverCompiles) {
  runAlone({}, [] {
    auto device = openDevice();
    std::string cubin = get(Module::compile(device, kKernels, "a test"));
    EXPECT_EQ(cubin.substr(0, 4), "\177ELF");
    auto module = get(Module::load(device, cubin, "a test"));
    auto stream = get(Stream::create(device));
    auto kernel = findScale(*module);
    auto memory = upload(*stream, {3});
    CUdeviceptr address = memory->address();
    float factor = 2;
    EXPECT_EQ(
        sentenceOf(kernel->launch(*stream, threads(1), {&address, &factor})),
        "");
    EXPECT_EQ(download(*stream, *memory), (std::vector<float>{6}));
    EXPECT_EQ(sentenceOf(Module::load(device, cubin.substr(0, cubin.size() - 1),
                                      "a test")),
              "cannot load the kernels of a test: the cubin is cut off or "
              "damaged");
    std::string other = cubin;
    other[48] = 80; // the compute capability that it is for
    EXPECT_NE(sentenceOf(Module::load(device, other, "a test"))
                  .find("CUDA_ERROR_NO_BINARY_FOR_GPU"),
              std::string::npos);
  });
}

TEST(GPUModule, TellsWhatTheDriverDoesNotCompile) {
  runAlone({}, [] {
    auto device = openDevice();
    std::string sentence =
        sentenceOf(Module::compile(device, "no PTX at all", "a test"));
    EXPECT_EQ(sentence.find("cannot compile the kernels of a test: "), 0u);
    EXPECT_NE(sentence.find("PTX without a .version"), std::string::npos);
  });
  runAlone({{"SARDONYX_FAKECUDA_FAIL", "cuLinkComplete:1:2"}}, [] {
    auto device = openDevice();
    auto failed = Module::compile(device, kKernels, "a test");
    ASSERT_FALSE(failed);
    EXPECT_EQ(failed.failure().kind, FailureKind::OutOfMemory);
  });
}
