#include "FakeDevice.h"
#include <cstring>

using namespace sardonyx::cuda;
using namespace sardonyx::runtime::gpu;

TEST(GPUStream, CopiesAndFills) {
  runAlone({}, [] {
    auto device = openDevice();
    auto stream = get(Stream::create(device));
    auto memory = upload(*stream, {1, 2, 3, 4, 5, 6});
    CUdeviceptr start = memory->address();
    ASSERT_EQ(sentenceOf(stream->fillBytes(start + 4, 0, 4)), "");
    ASSERT_EQ(sentenceOf(stream->fillWords(start + 8, 0x3f800000, 2)), "");
    ASSERT_EQ(sentenceOf(stream->copyOnDevice(start + 20, start, 4)), "");
    EXPECT_EQ(download(*stream, *memory),
              (std::vector<float>{1, 0, 1, 1, 5, 1}));
  });
}

TEST(GPUStream, DoesNothingWithNoBytesAndRefusesLess) {
  runAlone({}, [] {
    auto stream = get(Stream::create(openDevice()));
    EXPECT_EQ(sentenceOf(stream->copyToDevice(0, nullptr, 0)), "");
    EXPECT_EQ(sentenceOf(stream->copyToHost(nullptr, 0, 0)), "");
    EXPECT_EQ(sentenceOf(stream->copyOnDevice(0, 0, 0)), "");
    EXPECT_EQ(sentenceOf(stream->fillBytes(0, 0, 0)), "");
    EXPECT_EQ(sentenceOf(stream->fillWords(0, 0, 0)), "");
    EXPECT_EQ(stream->copyOnDevice(0, 0, -1)->kind,
              FailureKind::InvalidArgument);
  });
}

TEST(GPUStream, TellsWhatTheDriverRefuses) {
  runAlone({}, [] {
    auto device = openDevice();
    auto stream = get(Stream::create(device));
    auto memory = allocate(device, 8);
    int host[3] = {};
    MaybeFailure failure = stream->copyToDevice(memory->address(), host, 12);
    EXPECT_EQ(sentenceOf(failure), "cannot copy to the device: invalid "
                                   "argument (CUDA_ERROR_INVALID_VALUE)");
    EXPECT_EQ(failure->kind, FailureKind::Failed);
    // The device goes on.
    EXPECT_EQ(sentenceOf(stream->copyToDevice(memory->address(), host, 8)), "");
    EXPECT_EQ(sentenceOf(stream->synchronize()), "");
  });
}

TEST(GPUStream, RunsLate) {
  runAlone({}, [] {
    auto device = openDevice();
    auto stream = get(Stream::create(device));
    auto memory = upload(*stream, {1});
    auto pinned = get(PinnedMemory::allocate(device, 4));
    auto *number = static_cast<float *>(pinned->data());
    *number = 7;
    ASSERT_EQ(sentenceOf(stream->copyToHost(number, memory->address(), 4)), "");
    EXPECT_EQ(*number, 7);
    ASSERT_EQ(sentenceOf(stream->synchronize()), "");
    EXPECT_EQ(*number, 1);
    // Pinned memory is read late, too, other memory at once.
    *number = 2;
    float pageable = 3;
    ASSERT_EQ(sentenceOf(stream->copyToDevice(memory->address(), number, 4)),
              "");
    *number = 4;
    EXPECT_EQ(download(*stream, *memory), std::vector<float>{4});
    ASSERT_EQ(sentenceOf(stream->copyToDevice(memory->address(), &pageable, 4)),
              "");
    pageable = 5;
    EXPECT_EQ(download(*stream, *memory), std::vector<float>{3});
  });
}

/// What a second stream reads of what a first one has written.
static std::vector<float> readBehind(bool waits) {
  auto device = openDevice();
  auto first = get(Stream::create(device));
  auto second = get(Stream::create(device));
  auto event = get(Event::create(device));
  auto memory = allocate(device, 4);
  EXPECT_EQ(sentenceOf(first->fillWords(memory->address(), 0x40000000, 1)), "");
  EXPECT_EQ(sentenceOf(first->record(*event)), "");
  if (waits)
    EXPECT_EQ(sentenceOf(second->wait(*event)), "");
  // Not what was waited for: a record that came later.
  EXPECT_EQ(sentenceOf(first->fillWords(memory->address(), 0x40400000, 1)), "");
  EXPECT_EQ(sentenceOf(first->record(*event)), "");
  return download(*second, *memory);
}

TEST(GPUStream, WaitsForEvents) {
  runAlone({}, [] { EXPECT_EQ(readBehind(true), std::vector<float>{2}); });
}

TEST(GPUStream, DoesNotWaitForOtherStreams) {
  runAlone({}, [] {
    // What was never written is no number.
    float number = readBehind(false)[0];
    EXPECT_NE(number, number);
  });
}

TEST(GPUStream, TellsWhetherEventsAreDone) {
  runAlone({}, [] {
    auto device = openDevice();
    auto stream = get(Stream::create(device));
    auto event = get(Event::create(device));
    EXPECT_TRUE(get(event->isDone()));
    auto memory = upload(*stream, {1});
    ASSERT_EQ(sentenceOf(stream->record(*event)), "");
    EXPECT_FALSE(get(event->isDone()));
    ASSERT_EQ(sentenceOf(event->synchronize()), "");
    EXPECT_TRUE(get(event->isDone()));
    // Who asks often enough sees it.
    ASSERT_EQ(sentenceOf(stream->fillBytes(memory->address(), 0, 4)), "");
    ASSERT_EQ(sentenceOf(stream->record(*event)), "");
    int asked = 0;
    while (!get(event->isDone()) && asked < 10)
      ++asked;
    EXPECT_GE(asked, 1);
    EXPECT_LT(asked, 10);
  });
}

TEST(GPUStream, MeasuresTime) {
  runAlone({}, [] {
    auto device = openDevice();
    auto stream = get(Stream::create(device));
    auto start = get(Event::create(device, /*isTimed=*/true));
    auto end = get(Event::create(device, /*isTimed=*/true));
    auto untimed = get(Event::create(device));
    for (Event *event : {start.get(), end.get(), untimed.get()})
      ASSERT_EQ(sentenceOf(stream->record(*event)), "");
    EXPECT_EQ(sentenceOf(Event::elapsed(*start, *end)),
              "cannot tell elapsed time: device not ready "
              "(CUDA_ERROR_NOT_READY)");
    ASSERT_EQ(sentenceOf(stream->synchronize()), "");
    EXPECT_GE(get(Event::elapsed(*start, *end)), 0);
    EXPECT_FALSE(Event::elapsed(*start, *untimed));
  });
}

TEST(GPUStream, BorrowsStreams) {
  runAlone({}, [] {
    auto device = openDevice();
    auto stream = get(Stream::create(device));
    auto memory = upload(*stream, {1, 2});
    Stream::borrow(device, stream->handle())
        ->fillBytes(memory->address(), 0, 4);
    EXPECT_EQ(download(*stream, *memory), (std::vector<float>{0, 2}));
    // The process's default stream.
    auto ofAll = Stream::borrow(device, nullptr);
    ASSERT_EQ(sentenceOf(ofAll->fillBytes(memory->address() + 4, 0, 4)), "");
    EXPECT_EQ(download(*ofAll, *memory), (std::vector<float>{0, 0}));
  });
}
