// Operators of shared libraries, and those that a program brings along itself.

#include "sardonyx/Session/CustomOps.h"
#include "HandmadeModel.h"
#include "Threads.h"
#include "sardonyx/Session/Compile.h"
#include "sardonyx/Session/Session.h"
#include <cstring>
#include <dlfcn.h>
#include <gtest/gtest.h>
#include <thread>

using namespace sardonyx;

namespace {

constexpr ElementType F32 = ElementType::Float;

std::string libraryPath(const std::string &name) {
  return SDX_TEST_CUSTOM_OPS "/" + name + ".so";
}

class CustomOpsTest : public testing::Test {
protected:
  void SetUp() override {
    options.cacheDir = folder.path;
    options.intraOpThreads = 1;
    auto ops = std::make_shared<CustomOps>();
    MaybeError error = ops->addLibrary(libraryPath("TestOps"));
    ASSERT_FALSE(error) << error->message();
    options.customOps = ops;
  }

  Expected<std::shared_ptr<Session>> tryLoad(const std::string &graph,
                                             int version = 1) {
    std::string text = "<ir_version: 8, opset_import: [\"\" : 17, \"test\" : " +
                       std::to_string(version) + "]>\n" + graph;
    return Session::loadBytes(text.data(), text.size(), options);
  }
  void load(const std::string &graph, int version = 1) {
    auto loaded = tryLoad(graph, version);
    ASSERT_TRUE(loaded) << loaded.error().message();
    session = *loaded;
  }
  std::string whyNotLoaded(const std::string &graph) {
    auto loaded = tryLoad(graph);
    return loaded ? "it was loaded" : loaded.error().message();
  }

  std::vector<Tensor> run(const std::vector<TensorRef> &inputs) {
    auto results = session->run(inputs);
    EXPECT_TRUE(results) << results.error().message();
    return results ? *results : std::vector<Tensor>();
  }
  std::string whyNot(const std::vector<TensorRef> &inputs) {
    auto results = session->run(inputs);
    return results ? "it did not fail" : results.error().message();
  }

  template <typename T> static std::vector<T> elements(const Tensor &tensor) {
    auto *data = static_cast<T *>(tensor.data);
    return std::vector<T>(data, data + tensor.elements());
  }

  TemporaryFolder folder;
  SessionOptions options;
  std::shared_ptr<Session> session;
  std::vector<float> x = {1, -2, 3, -4, 5, 6}, y = {10, 20, 30, 40, 50, 60};
};

} // namespace

TEST_F(CustomOpsTest, ComputesBetweenOtherOperators) {
  const char *graph =
      "m (float[N, 3] x, float[N, 3] y) => (float[N, 3] z) {"
      " a = Relu(x) b = test.Sum<scale = 2.0>(a, , y) z = Neg(b) }";
  for (bool cached : {false, true}) {
    load(graph);
    EXPECT_EQ(session->report().fromCache, cached);
    for (int64_t n : {2, 1, 0}) {
      auto results = run({{F32, x.data(), {n, 3}}, {F32, y.data(), {n, 3}}});
      ASSERT_EQ(results[0].shape, (std::vector<int64_t>{n, 3}));
      std::vector<float> want = {-22, -40, -66, -80, -110, -132};
      want.resize(n * 3);
      EXPECT_EQ(elements<float>(results[0]), want);
    }
  }
  // All sizes known: results go straight into the program's memory.
  load("m (float[2, 3] x, float[2, 3] y) => (float[2, 3] z) {"
       " z = test.Sum(x, y) }");
  auto results = run({{F32, x.data(), {2, 3}}, {F32, y.data(), {2, 3}}});
  EXPECT_EQ(elements<float>(results[0]),
            (std::vector<float>{11, 18, 33, 36, 55, 66}));
}

TEST_F(CustomOpsTest, TellsSizesInTheRun) {
  load("m (float[6] x) => (float[k] y, int64[k] i, float[j] z) {"
       " y, i = test.Positive(x) a = Neg(x) z = test.Positive(a) }");
  auto results = run({{F32, x.data(), {6}}});
  EXPECT_EQ(elements<float>(results[0]), (std::vector<float>{1, 3, 5, 6}));
  EXPECT_EQ(elements<int64_t>(results[1]), (std::vector<int64_t>{0, 2, 4, 5}));
  EXPECT_EQ(elements<float>(results[2]), (std::vector<float>{2, 4}));
  std::vector<float> none(6, -1);
  results = run({{F32, none.data(), {6}}});
  EXPECT_EQ(results[0].shape, (std::vector<int64_t>{0}));
  EXPECT_EQ(elements<float>(results[2]).size(), 6u);
}

TEST_F(CustomOpsTest, WorksInBranchesAndLoops) {
  load("m (bool c, float[N] x) => (float[M] y) { y = If (c) <"
       " then_branch = g () => (float[K] a) { a = test.Positive(x) },"
       " else_branch = h () => (float[K] b) { b = test.Sum(x, x) }> }");
  bool yes = true, no = false;
  auto results = run({{ElementType::Bool, &yes, {}}, {F32, x.data(), {6}}});
  EXPECT_EQ(elements<float>(results[0]), (std::vector<float>{1, 3, 5, 6}));
  results = run({{ElementType::Bool, &no, {}}, {F32, x.data(), {2}}});
  EXPECT_EQ(elements<float>(results[0]), (std::vector<float>{2, -4}));

  load("m (int64 n, float[N] x) => (float[M] y) { c = Constant<value_int = 1>()"
       " d = Cast<to = 9>(c) y = Loop (n, d, x) < body = g (int64 i, bool e,"
       " float[K] a) => (bool f, float[L] b) { f = Identity(e)"
       " p = test.Positive(a) one = Constant<value_float = 2.0>()"
       " b = Sub(p, one) }> }");
  int64_t trips = 2;
  results = run({{ElementType::Int64, &trips, {}}, {F32, x.data(), {6}}});
  EXPECT_EQ(elements<float>(results[0]), (std::vector<float>{-1, 1, 2}));
}

TEST_F(CustomOpsTest, LoopsDoNotPileUpResults) {
  options.memoryLimit = 8 << 20;
  load("m (int64 n, float[N] x) => (float[M] y) { c = Constant<value_int = 1>()"
       " d = Cast<to = 9>(c) y = Loop (n, d, x) < body = g (int64 i, bool e,"
       " float[K] a) => (bool f, float[L] b) { f = Identity(e)"
       " b = test.Positive(a) }> }");
  std::vector<float> ones(100000, 1);
  int64_t trips = 500; // 200 MB in all
  auto results = run({{ElementType::Int64, &trips, {}},
                      {F32, ones.data(), {int64_t(ones.size())}}});
  EXPECT_EQ(results[0].elements(), int64_t(ones.size()));
}

TEST_F(CustomOpsTest, CountsAgainstTheMemoryLimit) {
  options.memoryLimit = 1 << 20;
  load("m (float[N] x) => (float[M] y) { y = test.Positive(x) }");
  std::vector<float> many(400000, 1);
  std::string why = whyNot({{F32, many.data(), {int64_t(many.size())}}});
  EXPECT_NE(why.find("out of memory"), why.npos) << why;
  EXPECT_EQ(run({{F32, x.data(), {6}}})[0].elements(), 4);
}

TEST_F(CustomOpsTest, TakesAndGivesStrings) {
  load("m (string[N] x) => (string y) { y = test.Join<between = \"-\">(x) }");
  std::vector<StringSpan> texts = {{"ab", 2}, {"", 0}, {"c", 1}};
  auto results = run({{ElementType::String, texts.data(), {3}}});
  EXPECT_EQ(static_cast<StringSpan *>(results[0].data)->text(), "ab--c");
  results = run({{ElementType::String, nullptr, {0}}});
  EXPECT_EQ(static_cast<StringSpan *>(results[0].data)->text(), "");
}

TEST_F(CustomOpsTest, SeesAttributes) {
  for (bool cached : {false, true}) {
    load("m () => (double[N] y) { y = test.Describe<i = -3, f = 0.5,"
         " is = [4, 5], fs = [1.5], ss = [\"abc\", \"\"],"
         " t = int32[3] {7, 8, 9}>() }",
         2);
    EXPECT_EQ(session->report().fromCache, cached);
    EXPECT_EQ(elements<double>(run({})[0]),
              (std::vector<double>{-3, 0.5, 4, 5, 1.5, 3, 0, 7, 8, 9, 2}));
  }
}

TEST_F(CustomOpsTest, KeepsAStateForEachNode) {
  void *library = dlopen(libraryPath("TestOps").c_str(), RTLD_NOW);
  ASSERT_TRUE(library);
  auto states = reinterpret_cast<int64_t (*)()>(dlsym(library, "test_states"));
  load("m () => (int64 a, int64 b) { a = test.Count<first = 5>()"
       " b = test.Count() }");
  EXPECT_EQ(states(), 2);
  for (int64_t i = 0; i < 3; ++i) {
    auto results = run({});
    EXPECT_EQ(elements<int64_t>(results[0])[0], 5 + i);
    EXPECT_EQ(elements<int64_t>(results[1])[0], i);
  }
  // One thread at a time: no run gets lost.
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&] {
      for (int i = 0; i < 50; ++i)
        EXPECT_TRUE(session->run({}));
    });
  for (std::thread &thread : threads)
    thread.join();
  EXPECT_EQ(elements<int64_t>(run({})[1])[0], 203);
  session = nullptr;
  EXPECT_EQ(states(), 0);
  EXPECT_EQ(
      whyNotLoaded("m () => (int64 a) { [n] a = test.Count<first = -1>() }"),
      "node 'n' (Count): it cannot count from below zero");
  dlclose(library);
}

TEST_F(CustomOpsTest, TellsWhatAnOperatorDoesWrong) {
  const std::string kind = "m (float[2] x) => (float[2] y) { [n] y = test.";
  auto why = [&](const std::string &op) {
    load(kind + op + "(x) }");
    return whyNot({{F32, x.data(), {2}}});
  };
  EXPECT_EQ(why("BadThrows"),
            "node 'n' (BadThrows): it threw an exception: not today");
  EXPECT_EQ(why("BadSilent"), "node 'n' (BadSilent): it failed without a word");
  EXPECT_EQ(why("BadNothing"),
            "node 'n' (BadNothing): the operator gives no result 0");
  const char *wrong[] = {
      "the operator gives its result 0 the element type double, where the "
      "model has float",
      "the operator gives its result 0 the shape [2, 3], where the model has "
      "[2]",
      "the operator gives its result 0 the shape [-4], where the model has [2]",
      "the operator gives its result 0 the shape [4611686018427387903], where "
      "the model has [2]",
      "the operator gives a result 5, which the node does not have",
      "the operator gives its result 0 twice",
      "set_string was called for what is no element of a result",
      "the operator asks for -1 bytes of memory",
      "set_output_type was called for what is no result",
  };
  for (int i = 0; i < 9; ++i)
    EXPECT_EQ(why("BadResult<what = " + std::to_string(i) + ">"),
              std::string("node 'n' (BadResult): ") + wrong[i]);
  EXPECT_EQ(why("BadResult<what = 10>"), "it did not fail");
  // The same where sizes are open.
  load(
      "m (float[N] x) => (float[M] y) { [n] y = test.BadResult<what = 3>(x) }");
  EXPECT_EQ(whyNot({{F32, x.data(), {2}}}),
            "node 'n' (BadResult): result 0 would have the impossible shape "
            "[4611686018427387903]");
}

TEST_F(CustomOpsTest, TellsWhatAShapeFunctionDoesWrong) {
  auto why = [&](const std::string &op, const std::string &type) {
    return whyNotLoaded("m (float[2] x) => (" + type + " y) { [n] y = test." +
                        op + "(x) }");
  };
  EXPECT_EQ(why("BadInfer", "float[2]"),
            "node 'n' (BadInfer): it wants a matrix");
  EXPECT_EQ(
      why("BadSize", "float[2]"),
      "node 'n' (BadSize): its shape function gives result 0 the size -7");
  EXPECT_EQ(why("BadType", "float[2]"),
            "node 'n' (BadType): its shape function gives result 0 the element "
            "type 999, which is the number of none");
  EXPECT_EQ(why("Positive", "double[2]").find("node 'n' (Positive): result 0"),
            0u);
  EXPECT_EQ(
      whyNotLoaded("m (float[2] x) => (int64 y) { [n] y = test.Count(x) }"),
      "node 'n' (Count): it has 1 inputs, and the operator has 0");
  // Where the model says what the operator does not, that is enough.
  load("m (float[2] x) => (float[2] y) { y = test.BadUnranked(x) }");
  EXPECT_EQ(run({{F32, x.data(), {2}}})[0].elements(), 2);
  load("m (float[N] x) => (float[N] z) <float[N] y> {"
       " y = test.Declared(x) z = Neg(y) }");
  EXPECT_EQ(elements<float>(run({{F32, x.data(), {2}}})[0]),
            (std::vector<float>{-1, 2}));
  std::string none =
      whyNotLoaded("m (float[N] x) => (float[N] z) { [n] y = test.Declared(x)"
                   " z = Neg(y) }");
  EXPECT_NE(none.find("node 'n'"), none.npos) << none;
  EXPECT_NE(none.find("types"), none.npos) << none;
}

TEST_F(CustomOpsTest, NeedsItsRegistration) {
  auto registered = options.customOps;
  options.customOps = nullptr;
  std::string why =
      whyNotLoaded("m (float[2] x) => (float[2] y) { [n] a = test.Sum(x)"
                   " [o] b = test.Other(a) c = test.Sum(b) y = Relu(c) }");
  EXPECT_EQ(why, "no lowering for: Sum of domain 'test' (node 'n') and 1 more: "
                 "no such operator is registered; Other of domain 'test' (node "
                 "'o'): no such operator is registered");
  // A compiled model in the cache is no help.
  options.customOps = registered;
  const char *known = "m (float[2] x) => (float[2] y) { [n] a = test.Sum(x)"
                      " b = test.Sum(a) y = test.Declared(b) }";
  load(known);
  load(known);
  EXPECT_TRUE(session->report().fromCache);
  options.customOps = nullptr;
  EXPECT_EQ(whyNotLoaded(known),
            "the compiled model calls operators that are not registered: "
            "Declared of domain 'test' (node 'y'); Sum of domain 'test' (node "
            "'n') and 1 more");
}

TEST_F(CustomOpsTest, RefusesLibraries) {
  CustomOps ops;
  auto why = [&](const std::string &path) {
    MaybeError error = ops.addLibrary(path);
    return error ? error->message() : "it was taken";
  };
  EXPECT_NE(why(folder.path + "/none.so").find("there is no library"),
            std::string::npos);
  writeFile(folder.path + "/text.so", "no library");
  EXPECT_NE(why(folder.path + "/text.so").find("is no library that can be"),
            std::string::npos);
  EXPECT_NE(why(libraryPath("WrongVersion"))
                .find("an operator is made for version 99 of the interface; "
                      "this is version 1"),
            std::string::npos);
  EXPECT_NE(why(libraryPath("Failing")).find("the licence has run out"),
            std::string::npos);
  EXPECT_NE(why(libraryPath("Empty")).find("registers no operator"),
            std::string::npos);
  EXPECT_NE(why(SDX_TEST_OTHER_LIBRARY)
                .find("has no function 'sardonyx_register_custom_ops'"),
            std::string::npos);
  EXPECT_TRUE(ops.empty());
}

//===----------------------------------------------------------------------===//
// In C++
//===----------------------------------------------------------------------===//

namespace {

/// y = value, of one size that hangs on the version.
class Fill : public CustomOp {
public:
  Fill(const char *name, int64_t version, float value, int64_t size)
      : value(value), size(size) {
    domain = "test";
    this->name = name;
    sinceVersion = version;
  }
  CustomFailure infer(CustomNode &node) const override {
    node.outputs[0].type = F32;
    node.outputs[0].hasRank = true;
    node.outputs[0].shape = {size};
    return std::nullopt;
  }
  CustomFailure compute(const CustomNode &, void *,
                        CustomRun &run) const override {
    if (auto *y = static_cast<float *>(run.output(0, F32, {size})))
      std::fill(y, y + size, value);
    return std::nullopt;
  }

private:
  float value;
  int64_t size;
};

} // namespace

TEST_F(CustomOpsTest, FollowsVersionsAndSessions) {
  const char *graph = "m () => (float[N] y) { y = test.Fill() }";
  auto first = std::make_shared<CustomOps>(), second = first;
  second = std::make_shared<CustomOps>();
  ASSERT_FALSE(first->add(std::make_shared<Fill>("Fill", 1, 1.0f, 1)));
  ASSERT_FALSE(first->add(std::make_shared<Fill>("Fill", 3, 3.0f, 3)));
  ASSERT_FALSE(second->add(std::make_shared<Fill>("Fill", 1, 7.0f, 7)));
  options.customOps = first;
  load(graph, 2);
  auto old = session;
  EXPECT_EQ(elements<float>(run({})[0]), (std::vector<float>{1}));
  load(graph, 4);
  EXPECT_EQ(elements<float>(run({})[0]), (std::vector<float>(3, 3)));
  // What is in the cache was made for other shapes.
  options.customOps = second;
  load(graph, 4);
  EXPECT_FALSE(session->report().fromCache);
  EXPECT_EQ(elements<float>(run({})[0]), (std::vector<float>(7, 7)));
  session = old;
  EXPECT_EQ(elements<float>(run({})[0]), (std::vector<float>{1}));
  // Only a later version has it.
  CustomOps late;
  ASSERT_FALSE(late.add(std::make_shared<Fill>("Fill", 5, 1.0f, 1)));
  options.customOps = std::make_shared<CustomOps>(late);
  EXPECT_NE(tryLoad("m () => (float[1] y) { z = test.Fill() y = Neg(z) }", 4)
                .error()
                .message()
                .find("no such operator is registered"),
            std::string::npos);
}

TEST_F(CustomOpsTest, RefusesWhatIsThereAlready) {
  auto op = std::make_shared<Fill>("Relu", 1, 1.0f, 1);
  op->domain = "ai.onnx";
  CustomOps ops;
  MaybeError error = ops.add(op);
  ASSERT_TRUE(error);
  EXPECT_EQ(error->message(), "'Relu' of domain 'ai.onnx' is an operator that "
                              "Sardonyx has itself");
  EXPECT_TRUE(ops.add(std::make_shared<Fill>("", 1, 1.0f, 1)));
  EXPECT_TRUE(ops.add(std::make_shared<Fill>("F", 0, 1.0f, 1)));
}
