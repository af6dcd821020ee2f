#include "sardonyx/Session/Session.h"
#include "HandmadeModel.h"
#include <gtest/gtest.h>
#include <thread>

using namespace sardonyx;

namespace {

constexpr ElementType F32 = ElementType::Float;

class SessionTest : public testing::Test {
protected:
  void SetUp() override { load(handmadeArtifact()); }

  void load(const Artifact &artifact) {
    SessionOptions options = handmadeOptions(folder, artifact);
    options.intraOpThreads = 2;
    auto loaded = Session::loadBytes(kHandmadeBytes.data(),
                                     kHandmadeBytes.size(), options);
    ASSERT_TRUE(loaded) << loaded.error().message();
    session = *loaded;
  }

  /// Why a run with these shapes (or types) fails.
  std::string whyNot(std::vector<TensorRef> inputs) {
    auto result = session->run(inputs);
    return result ? "it did not fail" : result.error().message();
  }

  TemporaryFolder folder;
  std::shared_ptr<Session> session;
  std::vector<float> x = std::vector<float>(3 * 2000, 1), b = x;
};

} // namespace

TEST_F(SessionTest, Runs) {
  EXPECT_TRUE(session->report().fromCache);
  EXPECT_EQ(session->metadata().producerName, "hand");
  for (int64_t n : {2, 0, 100, 1}) {
    auto result = session->run({{F32, x.data(), {n, 3}}, {F32, b.data(), {n}}});
    ASSERT_TRUE(result) << result.error().message();
    const Tensor &y = (*result)[0], &m = (*result)[1];
    EXPECT_EQ(y.shape, (std::vector<int64_t>{n, 3}));
    EXPECT_EQ(m.shape, (std::vector<int64_t>{n}));
    EXPECT_EQ(y.type, F32);
    for (int64_t i = 0; i < n; ++i) {
      EXPECT_EQ(static_cast<float *>(y.data)[i * 3 + 2], 200);
      EXPECT_EQ(static_cast<float *>(m.data)[i], 1.5f);
    }
  }
}

TEST_F(SessionTest, ReadsWeightsFromAFile) {
  load(handmadeArtifact(folder.path + "/weights", 5)); // not even aligned
  auto result = session->run({{F32, x.data(), {1, 3}}, {F32, b.data(), {1}}});
  ASSERT_TRUE(result);
  EXPECT_EQ(static_cast<float *>((*result)[0].data)[1], 20);
}

TEST_F(SessionTest, ResultsOutliveTheSession) {
  auto result = session->run({{F32, x.data(), {2, 3}}, {F32, b.data(), {2}}});
  ASSERT_TRUE(result);
  session = nullptr;
  EXPECT_EQ(static_cast<float *>((*result)[0].data)[0], 2);
}

TEST_F(SessionTest, WritesToTheCallersMemory) {
  float y[6] = {};
  std::vector<TensorRef> inputs = {{F32, x.data(), {2, 3}},
                                   {F32, b.data(), {2}}};
  auto result = session->run(inputs, {{F32, y, {2, 3}}, {}});
  ASSERT_TRUE(result) << result.error().message();
  EXPECT_EQ(y[4], 20);
  EXPECT_EQ((*result)[0].data, y);
  EXPECT_EQ((*result)[0].owner, nullptr);
  EXPECT_NE((*result)[1].owner, nullptr);

  auto wrong = session->run(inputs, {{F32, y, {3, 2}}, {}});
  ASSERT_FALSE(wrong);
  EXPECT_EQ(wrong.error().message(),
            "output 'y': the caller's memory has shape "
            "[3, 2], the model gives [2, 3]");
  wrong = session->run(inputs, {{ElementType::Int32, y, {2, 3}}, {}});
  EXPECT_FALSE(wrong);
  wrong = session->run(inputs, {{F32, y, {2, 3}}});
  EXPECT_FALSE(wrong);
  EXPECT_TRUE(session->run(inputs));
}

TEST_F(SessionTest, SaysWhatIsWrongWithAnInput) {
  EXPECT_EQ(whyNot({{F32, x.data(), {2, 3}}}), "the model has 2 inputs, got 1");
  EXPECT_EQ(
      whyNot({{ElementType::Double, x.data(), {2, 3}}, {F32, b.data(), {2}}}),
      "input 'x' has the element type float, got double");
  EXPECT_EQ(whyNot({{F32, x.data(), {6}}, {F32, b.data(), {2}}}),
            "input 'x' has the shape [n, 3] of 2 dimensions, got [6]");
  EXPECT_EQ(whyNot({{F32, x.data(), {2, 4}}, {F32, b.data(), {2}}}),
            "input 'x' has the shape [n, 3]: dimension 1 must be 3, got 4");
  EXPECT_EQ(
      whyNot({{F32, x.data(), {2, 3}}, {F32, b.data(), {5}}}),
      "input 'b' has the shape [n]: dimension 0 ('n') is 5, but dimension "
      "0 of input 'x' made it 2");
  EXPECT_EQ(whyNot({{F32, x.data(), {-2, 3}}, {F32, b.data(), {-2}}}),
            "input 'x' was given a negative size, [-2, 3]");
  EXPECT_EQ(whyNot({{F32, nullptr, {2, 3}}, {F32, b.data(), {2}}}),
            "input 'x' was given no data");
}

TEST_F(SessionTest, AFailedCheckIsAnError) {
  EXPECT_EQ(whyNot({{F32, x.data(), {1001, 3}}, {F32, b.data(), {1001}}}),
            "node 'scale': more than 1000 rows");
  EXPECT_TRUE(session->run({{F32, x.data(), {2, 3}}, {F32, b.data(), {2}}}));
}

TEST_F(SessionTest, RunsOnSeveralThreadsAtATime) {
  std::vector<std::thread> threads;
  std::atomic<int> wrong{0};
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&, t] {
      std::vector<float> own(300, float(t));
      for (int i = 0; i < 200; ++i) {
        auto result =
            session->run({{F32, own.data(), {100, 3}}, {F32, b.data(), {100}}});
        if (!result || static_cast<float *>((*result)[0].data)[299] != 200 * t)
          ++wrong;
      }
    });
  for (std::thread &thread : threads)
    thread.join();
  EXPECT_EQ(wrong, 0);
}

TEST(Session, RefusesWhatIsNoModel) {
  SessionOptions options;
  options.cache = false;
  auto missing = Session::load("/no/such/model.onnx", options);
  ASSERT_FALSE(missing);
  EXPECT_EQ(missing.error().kind(), ErrorKind::NoSuchFile);
  EXPECT_NE(missing.error().message().find("/no/such/model.onnx"),
            std::string::npos);
  auto folder = Session::load("/tmp", options);
  ASSERT_FALSE(folder);
  EXPECT_EQ(folder.error().kind(), ErrorKind::NoSuchFile);
  auto garbage = Session::loadBytes("garbage", 7, options);
  ASSERT_FALSE(garbage);
  EXPECT_EQ(garbage.error().kind(), ErrorKind::InvalidModel);
  EXPECT_FALSE(garbage.error().message().empty());
  EXPECT_FALSE(Session::loadBytes(nullptr, 0, options));
}

TEST(Session, RefusesCodeThatDoesNotLink) {
  TemporaryFolder folder;
  Artifact artifact = handmadeArtifact();
  artifact.objects = {"no object"};
  SessionOptions options = handmadeOptions(folder, artifact);
  auto session =
      Session::loadBytes(kHandmadeBytes.data(), kHandmadeBytes.size(), options);
  ASSERT_FALSE(session);
  EXPECT_EQ(session.error().kind(), ErrorKind::Failed);
}
