#include "FakeDevice.h"

using namespace sardonyx::cuda;
using namespace sardonyx::runtime::gpu;

namespace {
/// A graph that copies two numbers to the device, scales them there, fills two
/// others and copies all four back.
struct ScalingGraph {
  explicit ScalingGraph(bool ordersAll = true)
      : device(openDevice()), stream(get(Stream::create(device))),
        kernel(findScale(*loadKernels(device))), memory(allocate(device, 16)),
        graph(get(Graph::create(device))), address(memory->address()) {
    auto copied = get(graph->addCopyToDevice(address, input, 8, {}));
    auto filled = get(graph->addFillBytes(address + 8, 0, 4, {}));
    scaled = get(
        graph->addKernel(kernel, threads(2), {&address, &factor}, {copied}));
    auto moved =
        get(graph->addCopyOnDevice(address + 12, address + 4, 4, {scaled}));
    std::vector<Graph::Node> after = {filled, moved};
    if (!ordersAll)
      after.pop_back();
    get(graph->addCopyToHost(output, address, 16, after));
    EXPECT_EQ(sentenceOf(graph->instantiate()), "");
  }

  std::vector<float> run() {
    EXPECT_EQ(sentenceOf(graph->launch(*stream)), "");
    EXPECT_EQ(sentenceOf(stream->synchronize()), "");
    return {output, output + 4};
  }

  std::shared_ptr<Device> device;
  std::unique_ptr<Stream> stream;
  std::shared_ptr<const Kernel> kernel;
  std::unique_ptr<DeviceMemory> memory;
  std::unique_ptr<Graph> graph;
  Graph::Node scaled;
  CUdeviceptr address;
  float factor = 3;
  float input[2] = {1, 2}, output[4] = {};
};
} // namespace

TEST(GPUGraph, Repeats) {
  runAlone({}, [] {
    ScalingGraph graph;
    EXPECT_EQ(graph.run(), (std::vector<float>{3, 6, 0, 6}));
    // Host memory is read at each launch, arguments are not.
    graph.input[0] = 5;
    graph.factor = 100;
    EXPECT_EQ(graph.run(), (std::vector<float>{15, 6, 0, 6}));
  });
}

TEST(GPUGraph, TakesOtherArguments) {
  runAlone({}, [] {
    ScalingGraph graph;
    float factor = 10;
    // What was launched before keeps its own.
    ASSERT_EQ(sentenceOf(graph.graph->launch(*graph.stream)), "");
    ASSERT_EQ(sentenceOf(graph.graph->setKernel(graph.scaled, threads(1),
                                                {&graph.address, &factor})),
              "");
    factor = 1000;
    ASSERT_EQ(sentenceOf(graph.stream->synchronize()), "");
    EXPECT_EQ(graph.output[0], 3);
    EXPECT_EQ(graph.output[1], 6);
    EXPECT_EQ(graph.run(), (std::vector<float>{10, 2, 0, 2}));
  });
}

/// Runs a kernel twice, in a graph or in a stream; the sentence of what went
/// wrong.
static std::string runTwice(const std::string &name, bool isGraph) {
  std::shared_ptr<Device> device = openDevice();
  std::unique_ptr<Stream> stream = get(Stream::create(device));
  std::shared_ptr<const Kernel> kernel = findEarly(*loadKernels(device), name);
  std::unique_ptr<DeviceMemory> memory = allocate(device, 4);
  CUdeviceptr address = memory->address();
  float factor = 3, value = 2;
  std::string sentence = sentenceOf(stream->copyToDevice(address, &value, 4));
  if (isGraph) {
    std::unique_ptr<Graph> graph = get(Graph::create(device));
    auto first =
        get(graph->addKernel(kernel, threads(1), {&address, &factor}, {}));
    get(graph->addKernel(kernel, threads(1), {&address, &factor}, {first}));
    EXPECT_EQ(sentenceOf(graph->instantiate()), "");
    EXPECT_EQ(sentenceOf(graph->launch(*stream)), "");
  } else {
    for (int i = 0; i < 2; ++i)
      EXPECT_EQ(
          sentenceOf(kernel->launch(*stream, threads(1), {&address, &factor})),
          "");
  }
  sentence += sentenceOf(stream->copyToHost(&value, address, 4));
  sentence += sentenceOf(stream->synchronize());
  if (sentence.empty())
    EXPECT_EQ(value, 18);
  return sentence;
}

TEST(GPUGraph, LetsKernelsBeginEarly) {
  for (const char *version : {"12000", "12030"})
    for (bool isGraph : {false, true}) {
      const Environment environment = {{"SARDONYX_FAKECUDA_VERSION", version}};
      runAlone(environment,
               [=] { EXPECT_EQ(runTwice("scale_early", isGraph), ""); });
      // One that does not wait; without such edges it has to.
      const bool isLate = isGraph && version == std::string("12000");
      runAlone(environment,
               [=] { EXPECT_EQ(runTwice("scale", isGraph).empty(), isLate); });
    }
}

TEST(GPUGraph, ShowsMissingEdges) {
  runAlone({}, [] {
    ScalingGraph graph(/*ordersAll=*/false);
    EXPECT_NE(graph.run(), (std::vector<float>{3, 6, 0, 6}));
  });
}

TEST(GPUGraph, RefusesWhatDoesNotFit) {
  runAlone({}, [] {
    ScalingGraph made;
    Arguments arguments = {&made.address, &made.factor};
    EXPECT_EQ(sentenceOf(made.graph->addFillBytes(made.address, 0, 4, {})),
              "cannot add to a graph that was instantiated");
    EXPECT_EQ(sentenceOf(made.graph->instantiate()),
              "a graph was instantiated before");
    EXPECT_EQ(sentenceOf(made.graph->setKernel(0, threads(1), arguments)),
              "node 0 of a graph is no kernel that can be launched");
    EXPECT_EQ(sentenceOf(made.graph->setKernel(made.scaled, threads(1),
                                               {&made.address})),
              "cannot launch kernel scale (node Scale): 1 arguments, it has 2");
    auto graph = get(Graph::create(made.device));
    EXPECT_EQ(sentenceOf(graph->launch(*made.stream)),
              "a graph is launched that was not instantiated");
    EXPECT_EQ(sentenceOf(graph->addFillBytes(made.address, 0, 4, {0})),
              "a node of a graph waits for node 0, it has 0");
    EXPECT_EQ(sentenceOf(graph->addFillBytes(made.address, 0, 0, {})),
              "cannot add a fill of 0 bytes to a graph");
    EXPECT_EQ(sentenceOf(graph->addCopyOnDevice(0, 0, -1, {})),
              "cannot add a copy of -1 bytes to a graph");
    EXPECT_EQ(sentenceOf(graph->addKernel(
                  made.kernel, {{0, 1, 1}, {32, 1, 1}, 0}, arguments, {})),
              "cannot launch kernel scale (node Scale): no blocks, a node of a "
              "graph has some");
    EXPECT_EQ(sentenceOf(graph->addCopyOnDevice(made.address, 64, 4, {})),
              "cannot add a copy to a graph: invalid argument "
              "(CUDA_ERROR_INVALID_VALUE)");
  });
}

TEST(GPUGraph, LosesTheDeviceInItsKernels) {
  runAlone({}, [] {
    ScalingGraph graph;
    // Memory that is freed while a graph still has its address.
    graph.memory.reset();
    ASSERT_EQ(sentenceOf(graph.graph->launch(*graph.stream)), "");
    EXPECT_EQ(sentenceOf(graph.stream->synchronize()),
              "the device was lost in kernel scale (node Scale): an illegal "
              "memory access was encountered (CUDA_ERROR_ILLEGAL_ADDRESS)");
    EXPECT_EQ(sentenceOf(graph.graph->launch(*graph.stream)),
              graph.device->lossSentence());
  });
}

TEST(GPUGraph, IsNotUnderSuspicionWithoutKernels) {
  runAlone({}, [] {
    auto device = openDevice();
    auto stream = get(Stream::create(device));
    auto wild = get(loadKernels(device)->find({"wild", "node Conv_7", 0, 0}));
    auto memory = allocate(device, 4);
    auto graph = get(Graph::create(device));
    get(graph->addFillBytes(memory->address(), 0, 4, {}));
    ASSERT_EQ(sentenceOf(graph->instantiate()), "");
    ASSERT_EQ(sentenceOf(wild->launch(*stream, threads(1), {})), "");
    ASSERT_EQ(sentenceOf(wild->launch(*stream, threads(1), {})), "");
    ASSERT_EQ(sentenceOf(graph->launch(*stream)), "");
    EXPECT_EQ(sentenceOf(stream->synchronize()),
              "the device was lost in one of 2 kernels, the first wild (node "
              "Conv_7), the last wild (node Conv_7) (SARDONYX_DEBUG=1 tells "
              "which): an illegal memory access was encountered "
              "(CUDA_ERROR_ILLEGAL_ADDRESS)");
  });
}
