#include "lib/Runtime/GPU/TensorMap.h"
#include "FakeDevice.h"
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
