// The whole way: models as ONNX text through the compiler.

#include "sardonyx/Session/Compile.h"
#include "HandmadeModel.h"
#include "sardonyx-c/sardonyx.h"
#include <cstring>
#include <gtest/gtest.h>

using namespace sardonyx;

extern "C" int runCApi(const char *modelBytes, size_t size, const char *cache,
                       char *message, size_t capacity);
extern "C" int runCValues(const char *modelBytes, size_t size, char *message,
                          size_t capacity);
extern "C" int runCOptions(const char *modelBytes, size_t size, char *message,
                           size_t capacity);

static const char kRelu[] = R"(<ir_version: 8, opset_import: ["" : 17]>
model (float[N, 3] x) => (float[N, 3] y) { y = Relu(x) }
)";

static const char kMatMul[] = R"(<ir_version: 8, opset_import: ["" : 17]>
model (float[N, 2] x) => (float[N, 3] y)
  <float[2, 3] w = {1, 2, 3, 4, 5, 6}> { y = MatMul(x, w) }
)";

static ModelSource text(const char *model) {
  ModelSource source;
  source.bytes = model;
  source.size = strlen(model);
  return source;
}

TEST(Compile, RunsAModel) {
  TemporaryFolder folder;
  SessionOptions options;
  options.cacheDir = folder.path;
  for (bool cached : {false, true}) {
    auto session = Session::loadBytes(kMatMul, strlen(kMatMul), options);
    ASSERT_TRUE(session) << session.error().message();
    EXPECT_EQ((*session)->report().fromCache, cached);
    EXPECT_EQ((*session)->inputs()[0].name, "x");
    EXPECT_EQ(describeShape((*session)->inputs()[0].dims), "[N, 2]");
    std::vector<float> x = {1, 0, 0, 1, 1, 1};
    auto result = (*session)->run({{ElementType::Float, x.data(), {3, 2}}});
    ASSERT_TRUE(result) << result.error().message();
    auto *y = static_cast<float *>((*result)[0].data);
    EXPECT_EQ(std::vector<float>(y, y + 9),
              (std::vector<float>{1, 2, 3, 4, 5, 6, 5, 7, 9}));
  }
}

TEST(Compile, CanBeEnded) {
  SessionOptions options;
  options.cache = false;
  options.compileTimeout = 1e-9;
  auto session = Session::loadBytes(kMatMul, strlen(kMatMul), options);
  ASSERT_FALSE(session);
  EXPECT_EQ(session.error().message(),
            "compiling the model took longer than its limit of 1e-09 s");
  options.compileTimeout = 0;
  options.interrupted = [] { return true; };
  // It is asked every 20 ms; this model takes longer.
  std::string chain = "<ir_version: 8, opset_import: [\"\" : 17]>\n"
                      "model (float[N] x0) => (float[N] y) {\n"
                      "z = Constant<value_int = 0>()";
  for (int i = 0; i < 100; ++i) {
    std::string from = std::to_string(i), to = std::to_string(i + 1);
    chain += "\ns" + to + " = Softmax(x" + from + ")\nx" + to + " = CumSum(s" +
             to + ", z)";
  }
  chain += "\ny = Identity(x100)\n}";
  session = Session::loadBytes(chain.data(), chain.size(), options);
  ASSERT_FALSE(session);
  EXPECT_EQ(session.error().message(), "loading the model was interrupted");
  options.interrupted = nullptr;
  EXPECT_TRUE(Session::loadBytes(kMatMul, strlen(kMatMul), options));
}

TEST(Compile, EndsALoopThatDoesNot) {
  static const char model[] = R"(<ir_version: 8, opset_import: ["" : 17]>
model (float[N] x) => (float[M] y)
  <int64 m = {9223372036854775807}, bool c = {1}> {
  y = Loop <body = b (int64 i, bool ci, float[N] s) => (bool co, float[N] so) {
    co = Identity(ci)
    so = Add(s, s)
  }> (m, c, x)
}
)";
  SessionOptions options;
  options.cache = false;
  options.intraOpThreads = 1;
  auto session = Session::loadBytes(model, strlen(model), options);
  ASSERT_TRUE(session) << session.error().message();
  std::vector<float> x(4);
  RunOptions once;
  once.maxTripCount = 50;
  auto result =
      (*session)->run({{ElementType::Float, x.data(), {4}}}, {}, once);
  ASSERT_FALSE(result);
  EXPECT_NE(result.error().message().find(
                "the loop takes more than the 50 trips that one may take"),
            std::string::npos)
      << result.error().message();
  once.maxTripCount = 0;
  once.timeout = 0.05;
  result = (*session)->run({{ElementType::Float, x.data(), {4}}}, {}, once);
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().message(),
            "the run took longer than its limit of 0.05 s");
}

TEST(Compile, ShowsEveryPhase) {
  for (const std::string &phase : phaseNames()) {
    auto result = compileToText(text(kRelu), phase);
    if (phase == "ptx") {
      ASSERT_FALSE(result);
      EXPECT_EQ(result.error().message(), "the model has no code for a device");
      continue;
    }
    ASSERT_TRUE(result) << phase << ": " << result.error().message();
    EXPECT_FALSE(result->empty());
  }
  auto onnx = compileToText(text(kRelu), "import");
  EXPECT_NE(onnx->find("onnx.Relu"), std::string::npos);
  auto unknown = compileToText(text(kRelu), "nowhere");
  ASSERT_FALSE(unknown);
  EXPECT_NE(unknown.error().message().find("no phase 'nowhere'"),
            std::string::npos);
}

TEST(Compile, Inspects) {
  auto report = inspectModel(text(kMatMul), {{"N", 10}});
  ASSERT_TRUE(report) << report.error().message();
  EXPECT_EQ(report->ops.at("MatMul"), 1);
  EXPECT_EQ(report->flops, 2 * 10 * 2 * 3);
  EXPECT_EQ(report->weightBytes, 24);
  EXPECT_TRUE(report->unsupported.empty());
}

TEST(Compile, CountsNothingWhereElementsOnlyMove) {
  auto report = inspectModel(text(R"(<ir_version: 10, opset_import: ["" : 21]>
    g (float[2, 3] x, int64[2] times) => (float[M, N] y, float[2, 3] r) {
      t = Tile(x, times)
      y = Trilu(t)
      r = RandomUniformLike(x)
    })"),
                             {});
  ASSERT_TRUE(report) << report.error().message();
  EXPECT_EQ(report->flops, 6);
}

TEST(CApi, RunsAModel) {
  TemporaryFolder folder;
  handmadeOptions(folder);
  char message[500] = "";
  EXPECT_EQ(runCApi(kHandmadeBytes.data(), kHandmadeBytes.size(),
                    folder.path.c_str(), message, sizeof(message)),
            0)
      << message;
}

TEST(CApi, TakesOptions) {
  static const char model[] = R"(<ir_version: 8, opset_import: ["" : 17]>
model (float[N, 3] x) => (float[N, 4] y) { h = Relu(x) y = Neg(h) })";
  char message[500] = "";
  EXPECT_EQ(runCOptions(model, strlen(model), message, sizeof(message)), 0)
      << message;
}

TEST(CApi, TakesAndGivesValuesOfAnyKind) {
  static const char model[] = R"(<ir_version: 9,
  opset_import: ["" : 20, "ai.onnx.ml" : 4]>
model (float[n, 2] x, seq(string[k]) words, map(int64, float) m,
       optional(float[k]) o)
  => (seq(map(string, float)) maps, seq(string[k]) rest, float[1, 3] row,
      optional(float[k]) same) {
  maps = ai.onnx.ml.ZipMap<classlabels_strings = ["b", "a"]>(x)
  rest = SequenceErase(words)
  row = ai.onnx.ml.DictVectorizer<int64_vocabulary = [10, 15, 20]>(m)
  same = Identity(o)
})";
  char message[500] = "";
  EXPECT_EQ(runCValues(model, strlen(model), message, sizeof(message)), 0)
      << message;
}
