#include "sardonyx/Session/Session.h"
#include "HandmadeModel.h"
#include "Threads.h"
#include <cmath>
#include <gtest/gtest.h>
#include <sys/stat.h>

using namespace sardonyx;

namespace {

constexpr ElementType F32 = ElementType::Float;

class SessionTest : public testing::Test {
protected:
  void SetUp() override { load(handmadeArtifact()); }

  void load(const Artifact &artifact) {
    options = handmadeOptions(folder, artifact);
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
  SessionOptions options;
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

TEST_F(SessionTest, RunsByName) {
  auto results = session->run(
      {{"b", refTo(b.data(), {2})}, {"x", refTo(x.data(), {2, 3})}});
  ASSERT_TRUE(results) << results.error().message();
  EXPECT_EQ(results->size(), 2u);
  auto y = viewAs<float>((*results)["y"]);
  ASSERT_TRUE(y) << y.error().message();
  EXPECT_EQ(y->shape(), (std::vector<int64_t>{2, 3}));
  EXPECT_EQ(std::vector<float>(y->begin(), y->end()),
            (std::vector<float>{2, 20, 200, 2, 20, 200}));
  EXPECT_EQ((*y)[4], 20);
  EXPECT_EQ(viewAs<int64_t>((*results)["y"]).error().message(),
            "the result has elements of type float, not int64");

  auto some = session->run(
      {{"b", refTo(b.data(), {2})}, {"x", refTo(x.data(), {2, 3})}}, {"m"});
  ASSERT_TRUE(some);
  EXPECT_EQ(some->size(), 1u);
  EXPECT_EQ(some->count("m"), 1u);
  // A view outlives the results that it is of.
  auto m = viewAs<float>((*some)["m"]);
  some->clear();
  session = nullptr;
  EXPECT_EQ((*m)[0], 1.5f);
}

TEST_F(SessionTest, TellsWrongNames) {
  auto whyNotNamed = [&](const std::vector<NamedInput> &inputs,
                         const std::vector<std::string> &outputs = {}) {
    auto results = runByName(*session, inputs, outputs);
    return results ? "it did not fail" : results.error().message();
  };
  NamedInput x0 = {"x", refTo(x.data(), {2, 3})};
  NamedInput b0 = {"b", refTo(b.data(), {2})};
  EXPECT_EQ(whyNotNamed({x0}), "input 'b' is missing");
  EXPECT_EQ(whyNotNamed({x0, b0, x0}), "input 'x' is given twice");
  EXPECT_EQ(whyNotNamed({x0, {"X", b0.value}}),
            "the model has no input 'X'; it has x, b (did you mean x?)");
  EXPECT_EQ(whyNotNamed({x0, b0}, {"z"}),
            "the model has no output 'z'; it has y, m");
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

TEST_F(SessionTest, ResultsMayLieOverInputs) {
  for (int shift : {0, 1, 3, 5}) {
    std::vector<float> memory(6 + 5);
    for (int i = 0; i < 11; ++i)
      memory[i] = float(i);
    // The input begins within the result's memory.
    std::vector<float> in(memory.begin() + shift, memory.begin() + shift + 6);
    auto result = session->run(
        {{F32, memory.data() + shift, {2, 3}}, {F32, b.data(), {2}}},
        {{F32, memory.data(), {2, 3}}, {}});
    ASSERT_TRUE(result) << result.error().message();
    EXPECT_EQ((*result)[0].data, memory.data());
    EXPECT_EQ((*result)[0].owner, nullptr);
    for (int i = 0; i < 6; ++i)
      EXPECT_EQ(memory[i], in[i] * 2 *
                               (i % 3 == 0   ? 1
                                : i % 3 == 1 ? 10
                                             : 100));
  }
  // A run that fails leaves the input as it was.
  std::vector<float> many(3 * 1001, 7);
  EXPECT_FALSE(
      session->run({{F32, many.data(), {1001, 3}}, {F32, x.data(), {1001}}},
                   {{F32, many.data(), {1001, 3}}, {}}));
  EXPECT_EQ(many[5], 7);
}

TEST_F(SessionTest, RefusesResultsOverEachOther) {
  std::vector<float> memory(8);
  std::vector<TensorRef> inputs = {{F32, x.data(), {2, 3}},
                                   {F32, b.data(), {2}}};
  auto result = session->run(
      inputs, {{F32, memory.data(), {2, 3}}, {F32, &memory[5], {2}}});
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().kind(), ErrorKind::InvalidArgument);
  EXPECT_EQ(result.error().message(),
            "outputs 'y' and 'm' were given memory that overlaps");
  EXPECT_TRUE(session->run(
      inputs, {{F32, memory.data(), {2, 3}}, {F32, &memory[6], {2}}}));
}

TEST_F(SessionTest, KeepsToTheMemoryLimit) {
  options.memoryLimit = 30000;
  auto limited =
      Session::loadBytes(kHandmadeBytes.data(), kHandmadeBytes.size(), options);
  ASSERT_TRUE(limited) << limited.error().message();
  session = *limited;
  int64_t atFirst = session->bytesHeld();
  EXPECT_GT(atFirst, 0);
  for (int64_t n : {100, 500, 1000, 300})
    EXPECT_TRUE(session->run({{F32, x.data(), {n, 3}}, {F32, b.data(), {n}}}))
        << n;
  options.memoryLimit = 10000;
  limited =
      Session::loadBytes(kHandmadeBytes.data(), kHandmadeBytes.size(), options);
  ASSERT_TRUE(limited);
  session = *limited;
  EXPECT_EQ(whyNot({{F32, x.data(), {1000, 3}}, {F32, b.data(), {1000}}})
                .find("out of memory: the run needs 12000 bytes for output 'y' "
                      "of shape [1000, 3], and of the memory limit of 10000 "
                      "bytes "),
            0u);
  EXPECT_LE(session->bytesHeld(), 10000);
  EXPECT_TRUE(session->run({{F32, x.data(), {20, 3}}, {F32, b.data(), {20}}}));
  // Results count for as long as somebody has them.
  std::vector<std::vector<Tensor>> kept;
  for (int i = 0; i < 100; ++i) {
    auto result =
        session->run({{F32, x.data(), {20, 3}}, {F32, b.data(), {20}}});
    if (!result)
      break;
    kept.push_back(std::move(*result));
  }
  EXPECT_GT(kept.size(), 5u);
  EXPECT_LT(kept.size(), 50u);
  kept.clear();
  EXPECT_TRUE(session->run({{F32, x.data(), {20, 3}}, {F32, b.data(), {20}}}));
}

TEST_F(SessionTest, WeightsCountAgainstTheMemoryLimit) {
  options.memoryLimit = 10;
  auto limited =
      Session::loadBytes(kHandmadeBytes.data(), kHandmadeBytes.size(), options);
  ASSERT_FALSE(limited);
  EXPECT_NE(limited.error().message().find("out of memory"), std::string::npos);
}

TEST_F(SessionTest, GivesBackWhatRunsNoLongerNeed) {
  auto runOnce = [&](int64_t n) {
    ASSERT_TRUE(session->run({{F32, x.data(), {n, 3}}, {F32, b.data(), {n}}}));
  };
  for (int i = 0; i < 40; ++i)
    runOnce(1);
  const int64_t little = session->bytesHeld();
  // Many at a time, once, and with many sizes.
  countWrong(session, 8, 27, [&](Session &, int, int i) {
    runOnce(1 + 37 * i);
    return true;
  });
  EXPECT_GT(session->bytesHeld(), little);
  const int64_t much = session->bytesHeld();
  for (int i = 0; i < 100; ++i)
    runOnce(1);
  // Blocks of the larger sizes that do as well may have taken the place of
  // those of the right size.
  EXPECT_LE(session->bytesHeld(), little + little / 2);
  EXPECT_LT(session->bytesHeld(), much / 4);
  runOnce(900);
  session->releaseMemory();
  EXPECT_LE(session->bytesHeld(), little + little / 2);
  RunOptions once;
  once.releaseMemory = true;
  int64_t before = session->bytesHeld();
  ASSERT_TRUE(session->run({{F32, x.data(), {900, 3}}, {F32, b.data(), {900}}},
                           {}, once));
  EXPECT_EQ(session->bytesHeld(), before);
}

TEST_F(SessionTest, RunsCanBeEnded) {
  std::vector<TensorRef> inputs = {{F32, x.data(), {2, 3}},
                                   {F32, b.data(), {2}}};
  RunOptions once;
  once.terminate = true;
  auto result = session->run(inputs, {}, once);
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().message(), "the run was terminated");
  once.terminate = false;
  once.timeout = 1000;
  EXPECT_TRUE(session->run(inputs, {}, once));
  for (double seconds : {-1.0, -1e300, std::nan("")}) {
    once.timeout = seconds;
    result = session->run(inputs, {}, once);
    ASSERT_FALSE(result);
    EXPECT_EQ(result.error().kind(), ErrorKind::InvalidArgument);
  }
  once.timeout = 0;
  once.maxTripCount = -1;
  result = session->run(inputs, {}, once);
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().kind(), ErrorKind::InvalidArgument);
}

TEST_F(SessionTest, MayBeGivenUpWhileItRuns) {
  auto isRight = [&](Session &session, int, int) {
    return bool(
        session.run({{F32, x.data(), {100, 3}}, {F32, b.data(), {100}}}));
  };
  for (int round = 0; round < 20; ++round) {
    load(handmadeArtifact());
    EXPECT_EQ(countWrong(std::move(session), 3, 20, isRight), 0);
  }
}

TEST_F(SessionTest, SaysWhatIsWrongWithAnOption) {
  auto whyNotWith = [&](const SessionOptions &wrong) {
    auto loaded =
        Session::loadBytes(kHandmadeBytes.data(), kHandmadeBytes.size(), wrong);
    if (loaded)
      return std::string("it did not fail");
    EXPECT_EQ(loaded.error().kind(), ErrorKind::InvalidArgument);
    return loaded.error().message();
  };
  for (unsigned threads : {4097u, 1u << 31, ~0u}) {
    SessionOptions wrong = options;
    wrong.intraOpThreads = threads;
    EXPECT_EQ(whyNotWith(wrong),
              "the number of threads must be at most 4096, got " +
                  std::to_string(threads));
  }
  SessionOptions wrong = options;
  wrong.memoryLimit = -1;
  EXPECT_EQ(whyNotWith(wrong),
            "the memory limit must be a positive number of bytes, got -1");
  wrong = options;
  wrong.compileTimeout = -1;
  EXPECT_NE(whyNotWith(wrong).find("must not be negative"), std::string::npos);
  // A folder that was asked for is not passed over.
  ASSERT_EQ(chmod(folder.path.c_str(), 0777), 0);
  EXPECT_NE(whyNotWith(options).find("others can write to it"),
            std::string::npos);
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
  // There is no model of which other code could be made.
  EXPECT_EQ(whyNot({{F32, x.data(), {2, 3}}, {F32, b.data(), {5}}}),
            "not an ONNX model: byte 0 starts no protobuf field (dimension 'n' "
            "has different sizes: 2 in dimension 0 of input 'x' and 5 in "
            "dimension 0 of input 'b')");
  EXPECT_EQ(whyNot({{F32, x.data(), {-2, 3}}, {F32, b.data(), {-2}}}),
            "input 'x' was given a negative size, [-2, 3]");
  EXPECT_EQ(whyNot({{F32, nullptr, {2, 3}}, {F32, b.data(), {2}}}),
            "input 'x' was given no data");
}

TEST_F(SessionTest, AFailedCheckIsAnError) {
  EXPECT_EQ(whyNot({{F32, x.data(), {1001, 3}}, {F32, b.data(), {1001}}}),
            "node 'scale': 1001 rows, at most 1000 are possible");
  EXPECT_TRUE(session->run({{F32, x.data(), {2, 3}}, {F32, b.data(), {2}}}));
}

TEST_F(SessionTest, RunsOnSeveralThreadsAtATime) {
  auto isRight = [&](Session &session, int t, int) {
    std::vector<float> own(300, float(t));
    auto result =
        session.run({{F32, own.data(), {100, 3}}, {F32, b.data(), {100}}});
    return result && static_cast<float *>((*result)[0].data)[299] == 200 * t;
  };
  EXPECT_EQ(countWrong(session, 4, 200, isRight), 0);
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
