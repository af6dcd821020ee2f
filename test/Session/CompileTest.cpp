// The whole way: models as ONNX text through the compiler.

#include "sardonyx/Session/Compile.h"
#include "HandmadeModel.h"
#include "sardonyx-c/sardonyx.h"
#include <cstring>
#include <gtest/gtest.h>

using namespace sardonyx;

extern "C" int runCApi(const char *modelBytes, size_t size, const char *cache,
                       char *message, size_t capacity);

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

TEST(Compile, ShowsEveryPhase) {
  for (const std::string &phase : phaseNames()) {
    auto result = compileToText(text(kRelu), phase);
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

TEST(CApi, RunsAModel) {
  TemporaryFolder folder;
  handmadeOptions(folder);
  char message[500] = "";
  EXPECT_EQ(runCApi(kHandmadeBytes.data(), kHandmadeBytes.size(),
                    folder.path.c_str(), message, sizeof(message)),
            0)
      << message;
}
