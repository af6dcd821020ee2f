#include "lib/Runtime/GPU/TensorMap.h"
#include "FakeDevice.h"
#include "lib/Runtime/GPU/WorkQueue.h"
#include "sardonyx-c/RuntimeABI.h"
#include "tools/fakecuda/Interpreter.h"
#include <cstring>

using namespace sardonyx;
using namespace sardonyx::cuda;
using namespace sardonyx::runtime::gpu;

static const std::string kRefused = "cannot describe a tensor to the device: ";

/// 3 matrices of 100 x 64 numbers, of which a copy brings 8 x 32.
static TiledTensor describe(const DeviceMemory &memory) {
  TiledTensor tensor;
  tensor.address = memory.address();
  tensor.sizes = {64, 100, 3};
  tensor.strides = {64 * 4, 64 * 4 * 100};
  tensor.box = {32, 8, 1};
  tensor.swizzle = CU_TENSOR_MAP_SWIZZLE_128B;
  return tensor;
}

TEST(GPUTensorMap, HoldsTheTensor) {
  runAlone({}, [] {
    auto device = openDevice();
    auto memory = allocate(device, 64 * 4 * 100 * 3);
    CUtensorMap map = get(encode(*device, describe(*memory)));
    fakecuda::TensorMap seen;
    memcpy(&seen, &map, sizeof(seen));
    EXPECT_EQ(seen.magic, fakecuda::TensorMap::kMagic);
    EXPECT_EQ(seen.type, CU_TENSOR_MAP_DATA_TYPE_FLOAT32);
    EXPECT_EQ(seen.rank, 3);
    EXPECT_EQ(seen.swizzle, CU_TENSOR_MAP_SWIZZLE_128B);
    EXPECT_EQ(seen.fill, 0);
    EXPECT_EQ(seen.address, memory->address());
    EXPECT_EQ(seen.sizes, (std::array<uint32_t, 5>{64, 100, 3, 0, 0}));
    EXPECT_EQ(seen.strides, (std::array<uint64_t, 4>{256, 25600, 0, 0}));
    EXPECT_EQ(seen.box, (std::array<uint16_t, 5>{32, 8, 1, 0, 0}));
    EXPECT_EQ(seen.elementStrides, (std::array<uint8_t, 5>{1, 1, 1, 0, 0}));
  });
}

TEST(GPUTensorMap, RefusesWhatDoesNotFit) {
  runAlone({}, [] {
    auto device = openDevice();
    auto memory = allocate(device, 64 * 4 * 100 * 3);
    auto refusal = [&](void (*change)(TiledTensor &)) {
      TiledTensor tensor = describe(*memory);
      change(tensor);
      return sentenceOf(encode(*device, tensor));
    };
    EXPECT_EQ(refusal([](TiledTensor &t) { t.sizes.clear(); }),
              kRefused + "it has 0 dimensions, 1 to 5 are possible");
    EXPECT_EQ(refusal([](TiledTensor &t) { t.sizes.resize(6, 1); }),
              kRefused + "it has 6 dimensions, 1 to 5 are possible");
    EXPECT_EQ(refusal([](TiledTensor &t) { t.box.pop_back(); }),
              kRefused + "the strides or the box have another rank");
    // The driver's rules.
    std::string invalid =
        kRefused + "invalid argument (CUDA_ERROR_INVALID_VALUE)";
    EXPECT_EQ(refusal([](TiledTensor &t) { t.address += 8; }), invalid);
    EXPECT_EQ(refusal([](TiledTensor &t) { t.strides[0] = 200; }), invalid);
    EXPECT_EQ(refusal([](TiledTensor &t) { t.sizes[1] = 0; }), invalid);
    EXPECT_EQ(refusal([](TiledTensor &t) { t.box[1] = 257; }), invalid);
    EXPECT_EQ(refusal([](TiledTensor &t) { t.box[0] = 33; }), invalid);
    // A row of the box is wider than the swizzle.
    EXPECT_EQ(
        refusal([](TiledTensor &t) { t.swizzle = CU_TENSOR_MAP_SWIZZLE_64B; }),
        invalid);
    EXPECT_EQ(refusal([](TiledTensor &) {}), "");
  });
  runAlone({{"SARDONYX_FAKECUDA_SM", "80"}}, [] {
    auto device = openDevice();
    auto memory = allocate(device, 64 * 4 * 100 * 3);
    EXPECT_EQ(sentenceOf(encode(*device, describe(*memory))),
              kRefused + "compute capability 9.0 is needed");
  });
}

/// One thread copies a box of 8 x 32 numbers to shared memory, then 256 threads
/// write it to `out`.
static const char *const kCopyBox = R"(
.version 8.0
.target sm_90
.address_size 64

.visible .entry copy_box(.param .align 64 .b8 map[128], .param .u32 x,
                         .param .u32 y, .param .u64 out)
{
  .reg .pred %p<3>;
  .reg .b32 %r<8>;
  .reg .f32 %f<2>;
  .reg .b64 %rd<8>;
  .shared .align 128 .b8 box[1024];
  .shared .align 8 .b8 arrived[8];
  ld.param.u32 %r1, [x];
  ld.param.u32 %r2, [y];
  ld.param.u64 %rd1, [out];
  mov.b64 %rd2, map;
  cvta.param.u64 %rd3, %rd2;
  mov.u32 %r3, %tid.x;
  mov.u32 %r4, box;
  mov.u32 %r5, arrived;
  setp.ne.u32 %p1, %r3, 0;
  @%p1 bra BEGUN;
  mbarrier.init.shared.b64 [%r5], 1;
  fence.proxy.async;
  mbarrier.arrive.expect_tx.shared.b64 %rd4, [%r5], 1024;
  cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes [%r4], [%rd3, {%r1, %r2}], [%r5];
BEGUN:
  bar.sync 0;
WAIT:
  mbarrier.try_wait.parity.shared.b64 %p2, [%r5], 0;
  @!%p2 bra WAIT;
  mad.lo.u32 %r6, %r3, 4, %r4;
  ld.shared.f32 %f1, [%r6];
  mul.wide.u32 %rd5, %r3, 4;
  add.s64 %rd6, %rd1, %rd5;
  st.global.f32 [%rd6], %f1;
  ret;
}
)";

TEST(GPUTensorMap, ServesCopiesOfKernels) {
  runAlone({}, [] {
    auto device = openDevice();
    auto stream = get(Stream::create(device));
    auto module = get(Module::load(device, kCopyBox, "m"));
    auto kernel = get(module->find({"copy_box", "", 4, 0}));
    std::vector<float> numbers(100 * 64);
    for (size_t i = 0; i < numbers.size(); ++i)
      numbers[i] = static_cast<float>(i + 1);
    auto memory = upload(*stream, numbers);
    auto out = allocate(device, 256 * 4);
    TiledTensor tensor;
    tensor.address = memory->address();
    tensor.sizes = {64, 100};
    tensor.strides = {64 * 4};
    tensor.box = {32, 8};
    CUtensorMap map = get(encode(*device, tensor));
    // The box's right half and its last rows lie outside of the tensor.
    uint32_t x = 48, y = 95;
    CUdeviceptr address = out->address();
    ASSERT_EQ(sentenceOf(kernel->launch(*stream, threads(256),
                                        {&map, &x, &y, &address})),
              "");
    std::vector<float> expected;
    for (uint32_t row = y; row < y + 8; ++row)
      for (uint32_t column = x; column < x + 32; ++column)
        expected.push_back(row < 100 && column < 64 ? numbers[row * 64 + column]
                                                    : 0);
    EXPECT_EQ(download(*stream, *out), expected);
  });
}

/// The words of a launch for a tensor of 100 x 64 numbers, of which a copy
/// brings 8 x 32.
static std::vector<int64_t> describeInWords(CUdeviceptr address) {
  std::vector<int64_t> words(SDX_RT_MAP_WORDS);
  words[SDX_RT_MAP_ADDRESS] = static_cast<int64_t>(address);
  words[SDX_RT_MAP_FORM] = SDX_RT_MAP_F32 | 2 << 8;
  words[SDX_RT_MAP_SIZES] = 64;
  words[SDX_RT_MAP_SIZES + 1] = 100;
  words[SDX_RT_MAP_STRIDES] = 64 * 4;
  words[SDX_RT_MAP_BOX] = 32;
  words[SDX_RT_MAP_BOX + 1] = 8;
  return words;
}

TEST(GPUTensorMap, IsReadFromTheWordsOfALaunch) {
  std::vector<int64_t> words = describeInWords(4096);
  words[SDX_RT_MAP_FORM] = SDX_RT_MAP_BF16 | 2 << 8 | 64 << 16;
  TiledTensor tensor = get(readTensor(words.data()));
  EXPECT_EQ(tensor.type, CU_TENSOR_MAP_DATA_TYPE_BFLOAT16);
  EXPECT_EQ(tensor.address, 4096u);
  EXPECT_EQ(tensor.sizes, (std::vector<uint64_t>{64, 100}));
  EXPECT_EQ(tensor.strides, (std::vector<uint64_t>{256}));
  EXPECT_EQ(tensor.box, (std::vector<uint32_t>{32, 8}));
  EXPECT_EQ(tensor.swizzle, CU_TENSOR_MAP_SWIZZLE_64B);
  for (int64_t form :
       {9 | 2 << 8, 0 | 6 << 8, 0 | 0 << 8, 0 | 2 << 8 | 1 << 16}) {
    words[SDX_RT_MAP_FORM] = form;
    EXPECT_EQ(
        sentenceOf(readTensor(words.data())),
        "the model's code describes a tensor in a form that is not known");
  }
}

/// Launches whose tensors are elsewhere than in the graph are changed there.
TEST(GPUTensorMap, IsMadeAnewWhereAddressesChange) {
  runAlone({}, [] {
    auto device = openDevice();
    auto stream = get(Stream::create(device));
    auto module = get(Module::load(device, kCopyBox, "m"));
    auto kernel = get(module->find({"copy_box", "", 4, 0}));
    auto ones = upload(*stream, std::vector<float>(100 * 64, 1)),
         twos = upload(*stream, std::vector<float>(100 * 64, 2));
    std::vector<std::unique_ptr<DeviceMemory>> out;
    for (int i = 0; i < 4; ++i)
      out.push_back(allocate(device, 256 * 4));
    WorkQueue queue(device, WorkMode::Graphs);
    auto run = [&](const DeviceMemory &first) {
      for (size_t i = 0; i < out.size(); ++i) {
        std::vector<int64_t> words =
            describeInWords((i == 0 ? first : *ones).address());
        for (int64_t word :
             {int64_t(0), int64_t(0), static_cast<int64_t>(out[i]->address())})
          words.push_back(word);
        EXPECT_EQ(
            sentenceOf(queue.addKernel(kernel, threads(256), 1,
                                       int64_t(words.size()), words.data())),
            "");
      }
      DeviceUse use = {};
      EXPECT_EQ(sentenceOf(queue.submit(*stream, use)), "");
      EXPECT_EQ(download(*stream, *out[1]), std::vector<float>(256, 1));
      EXPECT_EQ(download(*stream, *out[0]),
                std::vector<float>(256, &first == ones.get() ? 1.f : 2.f));
      return use.submissions;
    };
    EXPECT_EQ(run(*ones), 4);
    EXPECT_EQ(run(*ones), 1);
    EXPECT_EQ(run(*twos), 1);
    EXPECT_EQ(run(*ones), 1);
    int64_t words[4] = {};
    EXPECT_EQ(
        sentenceOf(queue.addKernel(kernel, threads(256), 1, 4, words)),
        "cannot launch kernel copy_box: 4 words do not describe 1 tensor maps");
  });
}

TEST(GPUTensorMap, IsOfPixelsOfImages) {
  runAlone({}, [] {
    auto device = openDevice();
    auto memory = allocate(device, 2 * 9 * 11 * 64 * 2);
    std::vector<int64_t> words(SDX_RT_MAP_WORDS);
    words[SDX_RT_MAP_ADDRESS] = static_cast<int64_t>(memory->address());
    words[SDX_RT_MAP_FORM] =
        SDX_RT_MAP_F16 | 4 << 8 | 128 << 16 | SDX_RT_MAP_IMAGE;
    const int64_t sizes[] = {64, 11, 9, 2}, strides[] = {128, 1408, 12672};
    std::copy_n(sizes, 4, &words[SDX_RT_MAP_SIZES]);
    std::copy_n(strides, 3, &words[SDX_RT_MAP_STRIDES]);
    words[SDX_RT_MAP_BOX] = 64;
    words[SDX_RT_MAP_BOX + 1] = 128;
    words[SDX_RT_MAP_LOWER] = 0xfffe | 0xffff << 16; // -2, -1
    words[SDX_RT_MAP_UPPER] = 0xffff | 1 << 16;      // -1, 1
    words[SDX_RT_MAP_STEPS] = 1 | 2 << 8 | 3 << 16 | 1 << 24;
    TiledTensor tensor = get(readTensor(words.data()));
    CUtensorMap map = get(encode(*device, tensor));
    fakecuda::TensorMap seen;
    memcpy(&seen, &map, sizeof(seen));
    EXPECT_EQ(seen.isIm2col, 1);
    EXPECT_EQ(seen.box, (std::array<uint16_t, 5>{64, 128, 0, 0, 0}));
    EXPECT_EQ(seen.lower, (std::array<int16_t, 3>{-2, -1, 0}));
    EXPECT_EQ(seen.upper, (std::array<int16_t, 3>{-1, 1, 0}));
    EXPECT_EQ(seen.elementStrides, (std::array<uint8_t, 5>{1, 2, 3, 1, 0}));
    const std::string invalid =
        kRefused + "invalid argument (CUDA_ERROR_INVALID_VALUE)";
    TiledTensor other = tensor;
    other.lower = {-129, 0};
    EXPECT_EQ(sentenceOf(encode(*device, other)), invalid);
    other = tensor;
    other.upper = {-13, 0};
    EXPECT_EQ(sentenceOf(encode(*device, other)), invalid);
    other = tensor;
    other.upper.pop_back();
    EXPECT_EQ(sentenceOf(encode(*device, other)),
              kRefused + "the corners have another rank");
  });
}
