//===- TargetTest.cpp - From the llvm dialect to objects ------------------===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "sardonyx/Objects/Facts.h"

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Parser/Parser.h"
#include "llvm/Object/ObjectFile.h"
#include "gtest/gtest.h"

using namespace mlir;

namespace {

constexpr llvm::StringLiteral kModule = R"(
llvm.mlir.global internal constant @text("hello\00") : !llvm.array<6 x i8>
llvm.func @sdx_rt_check_failed(!llvm.ptr)
llvm.func internal @helper(%x: f32) -> f32 {
  %y = llvm.fmul %x, %x : f32
  llvm.return %y : f32
}
llvm.func hidden @k0(%x: f32) -> f32 attributes {sdx.kernel} {
  %y = llvm.call @helper(%x) : (f32) -> f32
  llvm.return %y : f32
}
llvm.func hidden @k1(%x: f32) -> f32 attributes {sdx.kernel} {
  %y = llvm.fadd %x, %x : f32
  llvm.return %y : f32
}
llvm.func @sdx_main(%args: !llvm.ptr) attributes {sdx.host} {
  %x = llvm.load %args : !llvm.ptr -> f32
  %y = llvm.call @k0(%x) : (f32) -> f32
  %z = llvm.call @k1(%y) : (f32) -> f32
  llvm.store %z, %args : f32, !llvm.ptr
  %t = llvm.mlir.addressof @text : !llvm.ptr
  llvm.call @sdx_rt_check_failed(%t) : (!llvm.ptr) -> ()
  llvm.return
}
)";

/// A hypervisor that gives the model number of a Rocket Lake hides neither
/// AVX512-FP16 nor PREFETCHIT.
TEST(NameProcessor, LooksBehindModelNumbers) {
  using sardonyx::nameProcessor;
  llvm::StringMap<bool> features;
  EXPECT_EQ(nameProcessor("rocketlake", features), "rocketlake");
  features["prefetchi"] = false;
  features["avx512fp16"] = true;
  EXPECT_EQ(nameProcessor("rocketlake", features), "sapphirerapids");
  EXPECT_EQ(nameProcessor("emeraldrapids", features), "emeraldrapids");
  EXPECT_EQ(nameProcessor("znver5", features), "znver5");
  features["prefetchi"] = true;
  EXPECT_EQ(nameProcessor("rocketlake", features), "graniterapids");
  EXPECT_EQ(nameProcessor("graniterapids-d", features), "graniterapids-d");
}

class TargetTest : public ::testing::Test {
protected:
  TargetTest() {
    DialectRegistry registry;
    registry.insert<LLVM::LLVMDialect>();
    sardonyx::registerTargetTranslations(registry);
    context.appendDialectRegistry(registry);
    context.allowUnregisteredDialects();
    module = parseSourceString<ModuleOp>(kModule, &context);
  }

  MLIRContext context;
  OwningOpRef<ModuleOp> module;
};

TEST_F(TargetTest, SplitsKernelsAndKeepsTheHostTogether) {
  ASSERT_TRUE(module);
  sardonyx::TargetOptions options;
  options.threads = 2;
  auto objects = sardonyx::compileToObjects(*module, options);
  ASSERT_TRUE(static_cast<bool>(objects))
      << llvm::toString(objects.takeError());
  // The host program, and a part for each kernel.
  EXPECT_EQ(objects->size(), 3u);
  std::map<std::string, int> definitions;
  for (auto &buffer : *objects) {
    auto object =
        llvm::object::ObjectFile::createObjectFile(buffer->getMemBufferRef());
    ASSERT_TRUE(static_cast<bool>(object));
    for (const auto &symbol : (*object)->symbols()) {
      uint32_t flags = llvm::cantFail(symbol.getFlags());
      if ((flags & llvm::object::SymbolRef::SF_Global) &&
          !(flags & llvm::object::SymbolRef::SF_Undefined))
        ++definitions[llvm::cantFail(symbol.getName()).str()];
    }
  }
  EXPECT_EQ(definitions["k0"], 1);
  EXPECT_EQ(definitions["k1"], 1);
  EXPECT_EQ(definitions["sdx_main"], 1);
  EXPECT_EQ(definitions.count("helper"), 0u);
}

TEST_F(TargetTest, OneThreadMakesAHostAndAKernelObject) {
  sardonyx::TargetOptions options;
  options.threads = 1;
  auto objects = sardonyx::compileToObjects(*module, options);
  ASSERT_TRUE(static_cast<bool>(objects));
  EXPECT_EQ(objects->size(), 2u);
}

TEST_F(TargetTest, LongHostProgramsAreCutAndKernelsAreNot) {
  // Each call leaves a number that the last one needs.
  auto text = [](StringRef name, StringRef attribute) {
    std::string calls;
    for (int i = 0; i < 2000; ++i)
      calls += "  %v" + std::to_string(i + 1) + " = llvm.call @work(%v" +
               std::to_string(i) + ") : (i64) -> i64\n";
    return ("llvm.func @" + name + "(%v0: i64) -> i64 attributes {" +
            attribute + "} {\n" + calls + "  llvm.return %v2000 : i64\n}\n")
        .str();
  };
  std::string both = "llvm.func @work(i64) -> i64\n" +
                     text("sdx_main", "sdx.host") + text("k0", "sdx.kernel");
  module = parseSourceString<ModuleOp>(both, &context);
  auto assembly = sardonyx::compileToAssembly(*module, {});
  ASSERT_TRUE(static_cast<bool>(assembly));
  auto count = [&](const char *what) {
    return StringRef(*assembly).count(what);
  };
  EXPECT_GE(count("call\tsdx_main.") + count("callq\tsdx_main."), 2u);
  EXPECT_EQ(count("callq\tk0."), 0u);
  EXPECT_EQ(count("work@PLT"), 4000u);
}

TEST_F(TargetTest, RefusesAnUnknownProcessor) {
  sardonyx::TargetOptions options;
  options.cpu = "abacus";
  auto objects = sardonyx::compileToObjects(*module, options);
  ASSERT_FALSE(static_cast<bool>(objects));
  EXPECT_NE(llvm::toString(objects.takeError()).find("abacus"),
            std::string::npos);
}

TEST_F(TargetTest, FailsWhereLLVMWouldEndTheProcess) {
  // An instruction of AVX's.
  constexpr llvm::StringLiteral kOfAvx = R"(
llvm.func hidden @k0(%x: vector<8xf32>) -> vector<8xf32> attributes {sdx.kernel} {
  %y = llvm.call_intrinsic "llvm.x86.avx.rsqrt.ps.256"(%x) : (vector<8xf32>) -> vector<8xf32>
  llvm.return %y : vector<8xf32>
}
llvm.func hidden @k1(%x: vector<8xf32>) -> vector<8xf32> attributes {sdx.kernel} {
  %y = llvm.call_intrinsic "llvm.x86.avx.rsqrt.ps.256"(%x) : (vector<8xf32>) -> vector<8xf32>
  %z = llvm.fadd %x, %y : vector<8xf32>
  llvm.return %z : vector<8xf32>
}
)";
  auto odd = parseSourceString<ModuleOp>(kOfAvx, &context);
  ASSERT_TRUE(odd);
  sardonyx::TargetOptions options;
  options.triple = "x86_64-linux-gnu";
  for (unsigned threads : {1u, 2u}) {
    options.threads = threads;
    options.cpu = "x86-64";
    auto objects = sardonyx::compileToObjects(*odd, options);
    ASSERT_FALSE(static_cast<bool>(objects));
    unsigned failures = 0;
    llvm::handleAllErrors(objects.takeError(),
                          [&](const sardonyx::CodegenFailure &failure) {
                            ++failures;
                            EXPECT_FALSE(failure.reason().empty());
                            EXPECT_TRUE(failure.function().starts_with("k"));
                          });
    EXPECT_EQ(failures, 1u);
    auto assembly = sardonyx::compileToAssembly(*odd, options);
    ASSERT_FALSE(static_cast<bool>(assembly));
    llvm::consumeError(assembly.takeError());
    // The process goes on, and so does the code generator.
    options.cpu = "x86-64-v3";
    objects = sardonyx::compileToObjects(*odd, options);
    EXPECT_TRUE(static_cast<bool>(objects));
  }
}

TEST(Target, NamesTheFunctionThatHasNoCode) {
  using sardonyx::CodegenFailure;
  EXPECT_EQ(
      CodegenFailure("Cannot select: t1\n  t0\nIn function: k1").function(),
      "k1");
  EXPECT_EQ(CodegenFailure("<unknown>:0:0: in function k2 i32 (ptr): what")
                .function(),
            "k2");
  EXPECT_EQ(CodegenFailure("out of memory").function(), "");
}

/// Facts by a processor's name.
class Facts : public testing::Test {
protected:
  Facts() { context.loadDialect<sardonyx::cpu::CPUDialect>(); }
  sardonyx::cpu::TargetAttr of(std::string cpu, std::string triple = "") {
    sardonyx::TargetOptions options;
    options.cpu = std::move(cpu);
    options.triple = std::move(triple);
    return sardonyx::getTargetAttr(&context, options);
  }
  MLIRContext context{MLIRContext::Threading::DISABLED};
};

TEST_F(Facts, VectorWidths) {
  EXPECT_EQ(of("x86-64-v3").getVectorBits(), 256u);
  EXPECT_EQ(of("x86-64-v4").getVectorBits(), 512u);
  EXPECT_EQ(of("x86-64").getVectorBits(), 128u);
  EXPECT_EQ(of("x86-64-v4").countVectorRegisters(), 32u);
  EXPECT_EQ(of("haswell").countVectorRegisters(), 16u);
  EXPECT_EQ(of("", "aarch64-linux-gnu").countVectorRegisters(), 32u);
  EXPECT_EQ(of("", "wasm32-wasi").getVectorBits(), 128u);
  EXPECT_EQ(of("haswell").getCpu(), "haswell");
  sardonyx::TargetOptions options;
  options.cpu = "x86-64";
  EXPECT_NE(sardonyx::describeTarget(options).find("x86-64"),
            std::string::npos);
}

TEST_F(Facts, ProductsOfNarrowNumbers) {
  using sardonyx::cpu::Bf16Product;
  using sardonyx::cpu::F32Product;
  using sardonyx::cpu::Int8Product;
  struct {
    const char *cpu;
    Int8Product int8;
    Bf16Product bf16;
  } expected[] = {{"sapphirerapids", Int8Product::Amx, Bf16Product::Amx},
                  {"cooperlake", Int8Product::Vnni, Bf16Product::Dot},
                  {"icelake-server", Int8Product::Vnni, Bf16Product::Generic},
                  {"znver5", Int8Product::Vnni, Bf16Product::Dot},
                  {"skylake-avx512", Int8Product::Maddwd, Bf16Product::Generic},
                  {"haswell", Int8Product::Maddwd, Bf16Product::Generic}};
  for (auto [cpu, int8, bf16] : expected) {
    sardonyx::cpu::TargetAttr target = of(cpu);
    EXPECT_EQ(target.getInt8(), int8) << cpu;
    EXPECT_EQ(target.getBf16(), bf16) << cpu;
    bool hasTiles = int8 == Int8Product::Amx;
    EXPECT_EQ(target.getF32() == F32Product::AmxBf16x6, hasTiles) << cpu;
    target = target.withoutTiles();
    EXPECT_NE(target.getInt8(), Int8Product::Amx);
    EXPECT_NE(target.getBf16(), Bf16Product::Amx);
    EXPECT_EQ(target.getF32(), F32Product::Fma);
  }
}

TEST_F(Facts, Traits) {
  using sardonyx::cpu::TargetTraits;
  EXPECT_TRUE(of("znver4").has(TargetTraits::FastL3));
  EXPECT_FALSE(of("znver4").hasRoomyL1());
  EXPECT_TRUE(of("znver5").hasRoomyL1());
  EXPECT_FALSE(of("sapphirerapids").has(TargetTraits::FastL1Prefetch));
  EXPECT_FALSE(sardonyx::keepsTileRate("sapphirerapids"));
  EXPECT_TRUE(sardonyx::keepsTileRate("graniterapids-d"));
  EXPECT_TRUE(of("", "wasm32-wasi").has(TargetTraits::SlowMaskedStores));
  EXPECT_FALSE(of("x86-64").has(TargetTraits::ShufflesBytes));
  EXPECT_EQ(of("znver3").getBytesOfFastL3(), 8 << 20);
  EXPECT_EQ(of("znver4").getBytesOfFastL3(), 0);
}

// What this machine is said to have it lets this process use.
TEST(Target, HasTileRegistersOnlyIfAllowed) {
  std::string features = sardonyx::resolveTarget({}).features;
  bool has = StringRef(features).contains("+amx-tile");
  EXPECT_TRUE(!has || sardonyx::requestTileRegisters());
}

} // namespace
