#include "sardonyx/Build/Build.h"
#include "sardonyx/Model/LoadArtifact.h"
#include "sardonyx/Model/Seal.h"
#include "sardonyx/Session/TypedValues.h"
#include <cstdlib>
#include <elf.h>
#include <fstream>
#include <gtest/gtest.h>
#include <iterator>
#include <unistd.h>

using namespace sardonyx;

namespace {

/// A folder with a model that was built, as bytes to damage.
class Built : public testing::Test {
protected:
  static void SetUpTestSuite() {
    char path[] = "/tmp/sardonyx-build-XXXXXX";
    folder = mkdtemp(path);
    write("model.onnxtxt",
          "<ir_version: 10, opset_import: [\"\" : 21]>\n"
          "m (float[n, 4] x) => (float[n, 8] y) {\n"
          "  w = Constant <value = float[4, 8] {0, 1, 2, 3, 4, 5, 6, 7, 1, 2, "
          "3, 4, 5, 6, 7, 8, 2, 3, 4, 5, 6, 7, 8, 9, 3, 4, 5, 6, 7, 8, 9, "
          "10}> ()\n  p = MatMul (x, w)\n  y = Relu (p)\n}\n");
    ModelSource source;
    source.path = folder + "/model.onnxtxt";
    auto report = build(source, folder + "/model.so");
    ASSERT_TRUE(report) << report.error().message();
    std::ifstream file(folder + "/model.so", std::ios::binary);
    bytes.assign(std::istreambuf_iterator<char>(file), {});
  }
  static void TearDownTestSuite() {
    std::string command = "rm -r " + folder;
    EXPECT_EQ(system(command.c_str()), 0);
  }

  static std::string write(const std::string &name, const std::string &text) {
    std::ofstream(folder + "/" + name, std::ios::binary) << text;
    return folder + "/" + name;
  }
  /// Why these bytes are not loaded; empty where they are.
  static std::string whyNot(const std::string &text) {
    // The system takes a library of a name that it has seen for the same.
    static int count = 0;
    std::string path = write("damaged" + std::to_string(count++) + ".so", text);
    auto model = loadArtifact(path);
    unlink(path.c_str());
    return model ? "" : model.error().message();
  }
  /// The file with another text in the place of one that it holds, and a seal
  /// that fits.
  static std::string changed(const std::string &from, const std::string &to) {
    std::string text = bytes.substr(0, bytes.rfind("sardonyx seal"));
    size_t at = text.find(from);
    EXPECT_NE(at, std::string::npos) << from;
    text.replace(at, to.size(), to);
    return text + sealOf(text);
  }

  static std::string folder, bytes;
};

std::string Built::folder, Built::bytes;

} // namespace

TEST_F(Built, Runs) {
  auto model = loadArtifact(folder + "/model.so");
  ASSERT_TRUE(model) << model.error().message();
  EXPECT_EQ((*model)->inputs()[0].dims[0].symbol, "n");
  EXPECT_EQ((*model)->metadata().graphName, "m");
  std::vector<float> x(12, 1);
  auto results = (*model)->run({{ElementType::Float, x.data(), {3, 4}}});
  ASSERT_TRUE(results) << results.error().message();
  const Tensor &y = results->front();
  EXPECT_EQ(y.shape, (std::vector<int64_t>{3, 8}));
  EXPECT_EQ(static_cast<float *>(y.data)[0], 6);
  EXPECT_EQ(static_cast<float *>(y.data)[23], 34);
  // Into memory of the caller; results outlive the model.
  std::vector<float> memory(24);
  auto again = (*model)->run({{ElementType::Float, x.data(), {3, 4}}},
                             {{ElementType::Float, memory.data(), {3, 8}}});
  ASSERT_TRUE(again);
  EXPECT_EQ(again->front().data, memory.data());
  EXPECT_EQ(memory[23], 34);
  model->reset();
  EXPECT_EQ(static_cast<float *>(y.data)[23], 34);
  results->clear();
}

TEST_F(Built, RunsByName) {
  auto model = loadArtifact(folder + "/model.so");
  ASSERT_TRUE(model) << model.error().message();
  const std::vector<float> x(12, 1);
  const NamedInput given = {"x", refTo(x.data(), {3, 4})};
  for (const std::vector<std::string> &wanted :
       {std::vector<std::string>(), {"y"}}) {
    auto results = runByName(**model, {given}, wanted);
    ASSERT_TRUE(results) << results.error().message();
    EXPECT_EQ(results->size(), 1u);
    auto y = viewAs<float>((*results)["y"]);
    ASSERT_TRUE(y) << y.error().message();
    EXPECT_EQ(y->shape(), (std::vector<int64_t>{3, 8}));
    EXPECT_EQ((*y)[0], 6);
    EXPECT_EQ((*y)[23], 34);
  }
  auto whyNot = [&](const std::vector<NamedInput> &inputs,
                    const std::vector<std::string> &wanted = {}) {
    auto results = runByName(**model, inputs, wanted);
    return results ? std::string() : results.error().message();
  };
  EXPECT_EQ(whyNot({}), "input 'x' is missing");
  EXPECT_EQ(whyNot({given, given}), "input 'x' is given twice");
  EXPECT_EQ(whyNot({{"X", given.value}}),
            "the model has no input 'X'; it has x (did you mean x?)");
  EXPECT_EQ(whyNot({given}, {"Y"}),
            "the model has no output 'Y'; it has y (did you mean y?)");
}

TEST_F(Built, ChecksWhatItIsGiven) {
  auto model = loadArtifact(folder + "/model.so");
  ASSERT_TRUE(model);
  auto whyNot = [&](std::vector<TensorRef> inputs,
                    const RunOptions &options = RunOptions()) {
    auto results = (*model)->run(inputs, {}, options);
    return results ? std::string() : results.error().message();
  };
  std::vector<float> x(12, 1);
  EXPECT_EQ(whyNot({}), "the model has 1 inputs, got 0");
  EXPECT_NE(whyNot({{ElementType::Float, x.data(), {4, 3}}})
                .find("input 'x' has the shape [n, 4]"),
            std::string::npos);
  RunOptions ended;
  ended.terminate = true;
  EXPECT_EQ(whyNot({{ElementType::Float, x.data(), {3, 4}}}, ended),
            "the run was terminated");
}

TEST_F(Built, IsRefusedWhereItIsCutOff) {
  EXPECT_EQ(whyNot(bytes), "");
  for (size_t size = 0; size < bytes.size(); size += 1000)
    ASSERT_NE(whyNot(bytes.substr(0, size)), "") << size;
  EXPECT_NE(whyNot(bytes + "x").find("cut off"), std::string::npos);
}

TEST_F(Built, IsRefusedWhereABitIsAnother) {
  for (size_t at = 0; at < bytes.size(); at += 997) {
    std::string damaged = bytes;
    damaged[at] ^= 1 << (at % 8);
    ASSERT_NE(whyNot(damaged), "") << at;
  }
}

TEST_F(Built, IsRefusedWhereItIsForOthers) {
  EXPECT_NE(whyNot(changed("sardonyx model 1", "sardonyx model 0"))
                .find("was made by another version of Sardonyx"),
            std::string::npos);
  std::string version("sardonyx packed\0\x01", 17);
  EXPECT_NE(whyNot(changed(version.substr(0, 16), version))
                .find("was made by another version of Sardonyx"),
            std::string::npos);
  std::string machine = bytes.substr(0, bytes.rfind("sardonyx seal"));
  machine[18] = static_cast<char>(EM_RISCV);
  EXPECT_NE(whyNot(machine + sealOf(machine)).find("another kind of processor"),
            std::string::npos);
  // A feature that this processor does not have.
  size_t comma = bytes.find("popcnt");
  ASSERT_NE(comma, std::string::npos);
  std::string lacking = whyNot(changed("popcnt", "nosuch"));
  EXPECT_NE(lacking.find("of which it lacks nosuch"), std::string::npos)
      << lacking;
  EXPECT_NE(whyNot("no library at all, but long enough to have a header and "
                   "more of it")
                .find("is no shared library"),
            std::string::npos);
}
