// Threads whose inputs are of ranks and lengths that need code of their own.

#include "Threads.h"
#include "sardonyx/Session/Session.h"
#include <cstring>
#include <gtest/gtest.h>

using namespace sardonyx;

static const char kReshape[] = R"(<ir_version: 8, opset_import: ["" : 17]>
model (float[A, B] x, int64[S] s) => (float[P, Q] y) {
  d = Add(x, x)
  y = Reshape(d, s)
}
)";

static std::shared_ptr<Session> loadReshape(const SessionOptions &options) {
  auto loaded = Session::loadBytes(kReshape, strlen(kReshape), options);
  EXPECT_TRUE(loaded) << loaded.error().message();
  return loaded ? *loaded : nullptr;
}

/// Whether 24 doubled elements come in this shape.
static bool answers(Session &session, std::vector<int64_t> shape) {
  std::vector<float> x(24, 1.5f);
  auto result = session.run(
      {{ElementType::Float, x.data(), {4, 6}},
       {ElementType::Int64, shape.data(), {int64_t(shape.size())}}});
  return result && (*result)[0].shape == shape &&
         static_cast<float *>((*result)[0].data)[23] == 3;
}

static const std::vector<std::vector<int64_t>> kShapes = {
    {6, 4}, {24}, {2, 3, 4}, {2, 2, 3, 2}, {1, 2, 3, 4, 1}};

TEST(Variants, AreMadeOnceWhileThreadsWait) {
  SessionOptions options;
  options.cache = false;
  options.intraOpThreads = 2;
  std::shared_ptr<Session> session = loadReshape(options);
  ASSERT_TRUE(session);
  auto isRight = [](Session &session, size_t t, size_t i) {
    return answers(session, kShapes[(t + i) % kShapes.size()]);
  };
  EXPECT_EQ(countWrong(session, 4, 50, isRight), 0);
}

TEST(Variants, MayBeGivenUpWhileTheyAreMade) {
  SessionOptions options;
  options.cache = false;
  std::shared_ptr<Session> session = loadReshape(options);
  ASSERT_TRUE(session);
  auto isRight = [](Session &session, size_t t, size_t) {
    return answers(session, kShapes[t]);
  };
  EXPECT_EQ(countWrong(std::move(session), 3, 1, isRight), 0);
}

TEST(Variants, SomeAreForgotten) {
  SessionOptions options;
  options.cache = false;
  std::shared_ptr<Session> session = loadReshape(options);
  ASSERT_TRUE(session);
  for (size_t i = 0; i < 18; ++i) { // 17, more than are kept, then the first
    std::vector<int64_t> shape(1 + i % 17, 1);
    shape.back() = 24;
    EXPECT_TRUE(answers(*session, shape)) << shape.size();
  }
}

TEST(Variants, AreMadeWhereSizesOfOneNameDiffer) {
  const char model[] = R"(<ir_version: 8, opset_import: ["" : 17]>
model (float[N, 4] x, float[N, 4] b) => (float[2, 4] y) { y = Add(x, b) }
)";
  SessionOptions options;
  options.cache = false;
  auto loaded = Session::loadBytes(model, strlen(model), options);
  ASSERT_TRUE(loaded) << loaded.error().message();
  Session &session = **loaded;
  std::vector<float> ones(12, 1);
  auto sum = [&](int64_t rows, int64_t others) {
    auto result = session.run({{ElementType::Float, ones.data(), {rows, 4}},
                               {ElementType::Float, ones.data(), {others, 4}}});
    return result && (*result)[0].shape == std::vector<int64_t>{3, 4} &&
           static_cast<float *>((*result)[0].data)[11] == 2;
  };
  for (int i = 0; i < 2; ++i) {
    EXPECT_TRUE(sum(3, 3));
    EXPECT_TRUE(sum(1, 3));
    EXPECT_TRUE(sum(3, 1));
  }
  EXPECT_TRUE(session.hasWarnings());
  EXPECT_EQ(session.takeWarnings(),
            (std::vector<std::string>{
                "output 'y' is declared with the shape [2, 4], but a run gave "
                "[3, 4]; the declaration is ignored",
                "dimension 'N' has different sizes: 1 in dimension 0 of input "
                "'x' and 3 in dimension 0 of input 'b'; they count as "
                "different dimensions"}));
  EXPECT_FALSE(session.hasWarnings());
  options.distinctDims = true;
  loaded = Session::loadBytes(model, strlen(model), options);
  ASSERT_TRUE(loaded);
  auto result = (*loaded)->run({{ElementType::Float, ones.data(), {1, 4}},
                                {ElementType::Float, ones.data(), {2, 4}}});
  EXPECT_TRUE(result);
  EXPECT_FALSE((*loaded)->hasWarnings());
}
