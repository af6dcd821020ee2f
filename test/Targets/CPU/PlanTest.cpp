//===- PlanTest.cpp - How matrix products are computed --------------------===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Plan/MatmulPlan.h"

#include "mlir/AsmParser/AsmParser.h"
#include <gtest/gtest.h>

using namespace mlir;
using namespace sardonyx::cpu;

namespace {

struct Plans : testing::Test {
  Plans() { context.loadDialect<CPUDialect>(); }

  /// Rows x depth x columns by panels of 32 columns, on a processor of 512 bits
  /// unless `target` says otherwise.
  MatmulFacts facts(std::optional<int64_t> rows, int64_t depth, int64_t columns,
                    const char *target = "#cpu.target<>",
                    PackedElement element = PackedElement::F32) {
    MatmulFacts result(PackingAttr::get(&context, element, 32),
                       cast<TargetAttr>(parseAttribute(target, &context)));
    result.m = rows;
    result.minRows = rows.value_or(0);
    result.n = columns;
    result.depth = depth;
    result.k = result.packing.getPackedDepth(depth);
    result.panels = (columns + 31) / 32;
    return result;
  }

  MLIRContext context;
};

TEST_F(Plans, ManyRowsHaveTilesOfTwoPanelsThatStayInTheL2Cache) {
  MatmulPlan plan = planMatmul(facts(128, 768, 768), 128);
  EXPECT_EQ(plan.shape.rows, 6);
  EXPECT_EQ(plan.shape.width, 32);
  EXPECT_EQ(plan.panelsPerTile, 2);
  EXPECT_FALSE(plan.usesTiles() || plan.usesBf16x3() || plan.usesStrassen);
}

TEST_F(Plans, LongPanelsAreReadOneByOne) {
  MatmulPlan plan = planMatmul(facts(128, 4096, 768), 128);
  EXPECT_EQ(plan.panelsPerTile, 1);
  EXPECT_EQ(plan.shape.rows, TileShape::get(facts(1, 1, 1).target, 32).rows);
}

TEST_F(Plans, FewRowsHaveTilesAsEvenAsCanBe) {
  auto tileRows = [&](int64_t rows) {
    return planMatmul(facts(rows, 768, 768), rows).shape.rows;
  };
  EXPECT_EQ(tileRows(8), 8);
  EXPECT_EQ(tileRows(12), 12);
  EXPECT_EQ(tileRows(18), 9);
  EXPECT_EQ(tileRows(30), 10);
}

TEST_F(Plans, SixteenRegistersHaveTilesOfSixRows) {
  const char *narrow = "#cpu.target<vector_bits = 256>";
  EXPECT_EQ(planMatmul(facts(128, 768, 768, narrow), 128).shape.rows, 6);
}

TEST_F(Plans, OneRowTakesSeveralPanelsOrOneStream) {
  MatmulFacts of = facts(1, 768, 768);
  of.comesFromMemory = true;
  MatmulPlan wide = planMatmul(of, 1);
  EXPECT_EQ(wide.panelsPerTile, 4);
  EXPECT_EQ(wide.prefetch, MatmulPrefetch::Near);
  of.target = cast<TargetAttr>(
      parseAttribute("#cpu.target<vector_bits = 256>", &context));
  MatmulPlan narrow = planMatmul(of, 1);
  EXPECT_EQ(narrow.panelsPerTile, 1);
  EXPECT_EQ(narrow.prefetch, MatmulPrefetch::None);
  EXPECT_EQ(narrow.shape.width, 32);
}

TEST_F(Plans, CompressedPanelsAreReadAsAWhole) {
  for (PackedElement element : {PackedElement::W21, PackedElement::W24}) {
    MatmulFacts of = facts(1, 768, 768, "#cpu.target<>", element);
    MatmulPlan plan = planMatmul(of, 1);
    EXPECT_EQ(plan.shape.width, 32);
    EXPECT_EQ(plan.panelsPerTile, element == PackedElement::W21 ? 2 : 4);
  }
}

TEST_F(Plans, WidenedBytesHaveTheTilesOfFloats) {
  const char *narrow = "#cpu.target<vector_bits = 256, int8 = maddwd>";
  MatmulPlan plan =
      planMatmul(facts(128, 768, 768, narrow, PackedElement::I16), 128);
  EXPECT_EQ(plan.micro->getName(), "maddwd");
  EXPECT_EQ(plan.shape.rows, 6);
  EXPECT_EQ(plan.shape.width, 16);
  plan = planMatmul(
      facts(128, 768, 768, "#cpu.target<int8 = maddwd>", PackedElement::I16),
      128);
  EXPECT_EQ(plan.shape.rows, 6);
  EXPECT_EQ(plan.shape.width * plan.panelsPerTile, 64);
}

TEST_F(Plans, TileRegistersTakeSixteenRowsOfBytes) {
  const char *amx = "#cpu.target<int8 = amx>";
  auto usesTiles = [&](const char *target, int64_t rows, int64_t depth) {
    return planMatmul(facts(rows, depth, 768, target, PackedElement::I8), rows)
        .usesTiles();
  };
  EXPECT_TRUE(usesTiles(amx, 16, 768));
  EXPECT_FALSE(usesTiles(amx, 15, 768));
  // No step of 64 values of k.
  EXPECT_FALSE(usesTiles(amx, 16, 63));
  EXPECT_FALSE(usesTiles("#cpu.target<int8 = vnni>", 16, 768));
}

TEST_F(Plans, FloatsGoByBf16x3WhereThereIsEnoughToDo) {
  const char *amx = "#cpu.target<f32 = amx_bf16x6, bf16 = amx>";
  MatmulPlan plan = planMatmul(facts(256, 1024, 1024, amx), 256);
  EXPECT_TRUE(plan.usesBf16x3());
  EXPECT_EQ(plan.partRows % 32, 0);
  EXPECT_EQ(plan.partDepth % 32, 0);
  EXPECT_GE(plan.partPanels, 1);
  EXPECT_FALSE(planMatmul(facts(256, 1024, 1024, amx), 256, true).usesBf16x3());
  EXPECT_FALSE(planMatmul(facts(16, 1024, 1024, amx), 16).usesBf16x3());
  EXPECT_FALSE(planMatmul(facts(256, 1024, 128, amx), 256).usesBf16x3());
  EXPECT_FALSE(planMatmul(facts(256, 1024, 1024), 256).usesBf16x3());
}

TEST_F(Plans, StrassensAlgorithmWantsRowsAndEvenWeights) {
  MatmulFacts even = facts(512, 1024, 1024);
  EXPECT_FALSE(planMatmul(even, 512).usesStrassen);
  even.strassen = 512;
  MatmulPlan plan = planMatmul(even, 512);
  EXPECT_TRUE(plan.usesStrassen);
  EXPECT_EQ(plan.strassen.depth, 512);
  EXPECT_EQ(plan.strassen.pairs, 16);
  EXPECT_EQ(plan.strassen.pairs % plan.panelsPerTile, 0);
  EXPECT_EQ(plan.strassen.half() % plan.strassen.period, 0);
  EXPECT_FALSE(planMatmul(even, 512, /*isDirect=*/true).usesStrassen);
  EXPECT_FALSE(planMatmul(even, 8).usesStrassen);
  MatmulFacts narrow = facts(512, 1024, 1024, "#cpu.target<vector_bits = 128>");
  narrow.strassen = 512;
  EXPECT_FALSE(planMatmul(narrow, 512).usesStrassen);
}

TEST_F(Plans, TooFewRowsForATileOfOnePanelGoDirectly) {
  // Five pairs of panels leave an odd one to tiles of two.
  MatmulFacts of = facts(50, 320, 320);
  of.strassen = 320;
  MatmulPlan plan = planMatmul(of, 50);
  EXPECT_FALSE(plan.usesStrassen);
  EXPECT_EQ(plan.panelsPerTile, 2);
  EXPECT_EQ(whyNot(of, selectPlan(of)), "");
  of.m = of.minRows = 64;
  EXPECT_TRUE(planMatmul(of, 64).usesStrassen);
}

/// What is selected always fits: a kernel whose plan does not fit is computed
/// by plain loops.
TEST_F(Plans, WhatIsSelectedFits) {
  const char *targets[] = {
      "#cpu.target<>",
      "#cpu.target<vector_bits = 128>",
      "#cpu.target<vector_bits = 128, vector_registers = 32>",
      "#cpu.target<vector_bits = 256>",
      "#cpu.target<vector_bits = 256, int8 = vnni>",
      "#cpu.target<int8 = vnni>",
      "#cpu.target<l2_kib = 2048>",
      "#cpu.target<f32 = amx_bf16x6, int8 = amx, bf16 = amx>"};
  for (const char *target : targets)
    for (PackedElement element :
         {PackedElement::F32, PackedElement::W24, PackedElement::W21,
          PackedElement::I8, PackedElement::I16, PackedElement::BF16})
      for (int64_t rows = 0; rows < 300; rows += rows < 100 ? 1 : 13)
        for (int64_t depth : {1, 31, 64, 320, 512, 3072})
          for (int64_t columns : {1, 32, 64, 96, 320, 352, 768})
            for (bool mixes : {false, true}) {
              MatmulFacts of = facts(rows, depth, columns, target, element);
              if (rows == 0)
                of.m = std::nullopt;
              of.comesFromMemory = columns % 3 == 0;
              if (mixes && element == PackedElement::F32 && depth % 32 == 0)
                of.strassen = depth;
              if (!of.select(MicroKernel::Unit::Vectors))
                continue;
              ASSERT_EQ(whyNot(of, selectPlan(of)), "")
                  << rows << " x " << depth << " x " << columns << ", "
                  << stringifyPackedElement(element).str() << ", " << target;
            }
}

TEST_F(Plans, FewRowsAreOneChunkWhereWeightsComeFromMemory) {
  MatmulFacts of = facts(32, 768, 3072);
  of.comesFromMemory = true;
  MatmulPlan plan = planMatmul(of, 32);
  EXPECT_EQ(plan.chunkTiles, (32 + plan.shape.rows - 1) / plan.shape.rows);
}

TEST_F(Plans, OpenRowsHaveACaseForThoseOfOneTile) {
  MatmulFacts open = facts(std::nullopt, 768, 768);
  open.comesFromMemory = true;
  ArrayRef<MatmulCaseAttr> cases = selectPlan(open).getCases();
  ASSERT_EQ(cases.size(), 4u);
  EXPECT_EQ(cases[0].getMaxRows(), 1);
  EXPECT_EQ(cases[1].getMaxRows(), 6);
  EXPECT_EQ(cases[1].getTileRows(), 6);
  EXPECT_EQ(cases[1].getPanels(), 2);
  EXPECT_EQ(cases[2].getMaxRows(), MatmulPlan::kFewRows);
  EXPECT_EQ(cases[3].getMaxRows(), 0);
  open.target = facts(1, 1, 1, "#cpu.target<vector_bits = 256>").target;
  EXPECT_EQ(selectPlan(open).getCases().size(), 3u);
}

TEST_F(Plans, OpenSizesHavePlans) {
  MatmulFacts open = facts(std::nullopt, 768, 768);
  open.n = open.k = open.panels = open.depth = std::nullopt;
  for (int64_t rows : {0, 1, 16, 128}) {
    MatmulPlan plan = planMatmul(open, rows);
    EXPECT_GE(plan.rows, 1);
    EXPECT_GE(plan.chunkTiles, 1);
    EXPECT_GE(plan.shape.rows, 1);
  }
}

} // namespace
