//===- MicroKernelTest.cpp - The table of micro-kernels -------------------===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "MicroKernels/MicroKernel.h"

#include "mlir/AsmParser/AsmParser.h"
#include "llvm/ADT/StringSet.h"
#include <gtest/gtest.h>

using namespace mlir;
using namespace sardonyx::cpu;

namespace {

struct MicroKernels : testing::Test {
  MicroKernels() { context.loadDialect<CPUDialect>(); }

  std::string select(PackedElement element, const char *target,
                     MicroKernel::Unit unit = MicroKernel::Unit::Vectors) {
    const MicroKernel *kernel = selectMicroKernel(
        element, cast<TargetAttr>(parseAttribute(target, &context)), unit);
    return kernel ? kernel->getName().str() : "";
  }

  MLIRContext context;
};

TEST_F(MicroKernels, HaveNamesOfTheirOwn) {
  llvm::StringSet<> names;
  for (const MicroKernel *kernel : getMicroKernels()) {
    EXPECT_TRUE(names.insert(kernel->getName()).second);
    EXPECT_EQ(findMicroKernel(kernel->getName()), kernel);
  }
  EXPECT_EQ(findMicroKernel("fast"), nullptr);
}

TEST_F(MicroKernels, OnVectorsThereIsOneForEveryPackingAndMachine) {
  for (unsigned i = 0; i <= getMaxEnumValForPackedElement(); ++i)
    for (const char *target :
         {"#cpu.target<>", "#cpu.target<vector_bits = 128>",
          "#cpu.target<int8 = amx, bf16 = amx>"})
      EXPECT_NE(select(PackedElement(i), target), "");
}

TEST_F(MicroKernels, AreTheFastestThatAMachineHas) {
  EXPECT_EQ(select(PackedElement::I8, "#cpu.target<>"), "widen_int8");
  EXPECT_EQ(select(PackedElement::I8, "#cpu.target<int8 = maddwd>"),
            "widen_int8");
  EXPECT_EQ(select(PackedElement::I16, "#cpu.target<>"), "widen_int16");
  EXPECT_EQ(select(PackedElement::I16, "#cpu.target<int8 = maddwd>"), "maddwd");
  EXPECT_EQ(select(PackedElement::I8, "#cpu.target<int8 = vnni>"), "vnni");
  EXPECT_EQ(select(PackedElement::I8, "#cpu.target<int8 = amx>"), "vnni");
  EXPECT_EQ(select(PackedElement::BF16, "#cpu.target<>"), "widen_bf16");
  EXPECT_EQ(select(PackedElement::BF16, "#cpu.target<bf16 = amx>"), "dot_bf16");
  const auto tiles = MicroKernel::Unit::Tiles;
  EXPECT_EQ(select(PackedElement::I8, "#cpu.target<int8 = vnni>", tiles), "");
  EXPECT_EQ(select(PackedElement::I8, "#cpu.target<int8 = amx>", tiles),
            "amx_int8");
  const auto split = MicroKernel::Unit::SplitTiles;
  EXPECT_EQ(select(PackedElement::F32, "#cpu.target<>", split), "");
  EXPECT_EQ(select(PackedElement::F32, "#cpu.target<f32 = amx_bf16x6>", split),
            "amx_bf16x6");
  EXPECT_EQ(select(PackedElement::W21, "#cpu.target<f32 = amx_bf16x6>", split),
            "");
}

} // namespace
