//===- ShortWeights.cpp - Which weights three bytes are enough for --------===//
//
// A product of few rows takes as long as memory takes to give its weights. An
// integer of 24 bits, times a power of two for each column, is as exact as the
// sum of a product of f32 wherever the weights of a column are of about the
// same size; whether they are is looked at here, weight by weight.
//
//===----------------------------------------------------------------------===//

#include "ConstantColumns.h"
#include "Utils.h"

#include "llvm/ADT/bit.h"

#include <cmath>

using namespace mlir;
using namespace sardonyx;

/// What rounding may take of most numbers of a column: a sum of some hundred
/// products in f32 has an error as large.
static constexpr float kLargestError = 1.0f / (1 << 20);

/// The scale of each column: the least power of two for which its largest
/// element is an integer of 24 bits. Nothing where a column has an infinity, a
/// NaN, or only very small numbers.
static std::optional<SmallVector<float>>
findScales(const ConstantColumns &columns) {
  SmallVector<uint32_t> largest(columns.count, 0);
  columns.forEach([&](int64_t c, int64_t, float x) {
    largest[c] = std::max(largest[c], getMagnitude(x));
  });
  constexpr uint32_t kMantissaBits = 23, kInfinity = 255, kLeastExponent = 50;
  SmallVector<float> scales;
  for (uint32_t bits : largest) {
    uint32_t exponent = bits >> kMantissaBits;
    if (exponent == kInfinity || (bits && exponent < kLeastExponent))
      return std::nullopt;
    // 2^22 <= largest / scale < 2^23
    scales.push_back(
        bits ? llvm::bit_cast<float>((exponent - 22) << kMantissaBits) : 1.0f);
  }
  return scales;
}

/// Whether the columns are as good as exact when they are multiples of
/// `scales`: most numbers of each have to be that much larger than the error
/// of rounding, whatever the few largest are, which inputs may leave out.
static bool areExactEnough(const ConstantColumns &columns,
                           ArrayRef<float> scales) {
  // The root mean square of what lies between -1/2 and 1/2.
  const float kRoundingError = 1 / std::sqrt(12.0f);
  constexpr float kHalfway = 0.5f;
  SmallVector<float> inverse;
  for (float scale : scales)
    inverse.push_back(1.0f / scale);
  SmallVector<int64_t> lost(columns.count), nonzero(columns.count);
  columns.forEach([&](int64_t c, int64_t, float x) {
    float scaled = std::abs(x) * inverse[c];
    bool isRounded = scaled != float(int32_t(scaled + kHalfway));
    lost[c] += isRounded && scaled * kLargestError < kRoundingError;
    nonzero[c] += x != 0;
  });
  for (auto [few, all] : llvm::zip_equal(lost, nonzero))
    if (2 * few > all)
      return false;
  return true;
}

DenseElementsAttr sardonyx::chooseShortScales(Value matrix, bool transposed,
                                              int64_t panelWidth,
                                              int64_t fewestBytes) {
  std::optional<ConstantColumns> found = findColumns(matrix, transposed);
  if (!found)
    return {};
  const ConstantColumns &columns = *found;
  if (columns.count * columns.length * int64_t(sizeof(float)) < fewestBytes)
    return {};
  std::optional<SmallVector<float>> scales = findScales(columns);
  if (!scales || !areExactEnough(columns, *scales))
    return {};
  int64_t panels = llvm::divideCeil(columns.count, panelWidth);
  scales->resize(panels * panelWidth, 1.0f);
  auto type = RankedTensorType::get({panels, 1, 1, panelWidth},
                                    Float32Type::get(matrix.getContext()));
  return DenseElementsAttr::get(type, ArrayRef<float>(*scales));
}
