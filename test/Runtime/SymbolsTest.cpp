#include "sardonyx/Runtime/Symbols.h"
#include "../../lib/Runtime/HalfConversions.h"
#include <cmath>
#include <cstring>
#include <gtest/gtest.h>
#include <limits>
#include <set>
#include <string>

using namespace sardonyx::runtime;

TEST(Symbols, HaveAddressesAndNoDuplicates) {
  size_t count = 0;
  const Symbol *table = symbols(count);
  std::set<std::string> names;
  for (size_t i = 0; i < count; ++i) {
    EXPECT_NE(table[i].address, nullptr) << table[i].name;
    EXPECT_TRUE(names.insert(table[i].name).second) << table[i].name;
  }
  EXPECT_TRUE(names.count("sdx_rt_parallel_for") && names.count("expf") &&
              names.count("sdx_rt_copy"));
}

TEST(HalfConversions, RoundTripEveryHalf) {
  for (uint32_t bits = 0; bits < 0x10000; ++bits) {
    float value = floatFromHalf(static_cast<uint16_t>(bits));
    if (std::isnan(value))
      EXPECT_TRUE(std::isnan(floatFromHalf(halfFromDouble(value))));
    else
      ASSERT_EQ(halfFromDouble(value), bits) << value;
  }
}

TEST(HalfConversions, RoundToNearestEven) {
  EXPECT_EQ(halfFromDouble(65504.0), 0x7bff);
  EXPECT_EQ(halfFromDouble(65519.9), 0x7bff);
  EXPECT_EQ(halfFromDouble(65520.0), 0x7c00);
  EXPECT_EQ(halfFromDouble(-1e300), 0xfc00);
  EXPECT_EQ(halfFromDouble(std::ldexp(1.0, -25)), 0); // a tie
  EXPECT_EQ(halfFromDouble(std::ldexp(1.0001, -25)), 1);
  EXPECT_EQ(halfFromDouble(std::ldexp(1.5, -24)), 2); // a tie
  EXPECT_EQ(halfFromDouble(1.0 + std::ldexp(1.0, -11)), 0x3c00);
  EXPECT_EQ(halfFromDouble(1.0 + std::ldexp(3.0, -11)), 0x3c02);
  for (uint32_t bits = 0; bits < 0x10000; ++bits) {
    uint32_t wide = bits << 16;
    float value;
    memcpy(&value, &wide, 4);
    if (!std::isnan(value))
      ASSERT_EQ(bfloatFromDouble(value), bits) << value;
  }
  EXPECT_EQ(bfloatFromDouble(1.0 + std::ldexp(1.0, -8)), 0x3f80);
  EXPECT_EQ(bfloatFromDouble(std::numeric_limits<float>::max()), 0x7f80);
}
