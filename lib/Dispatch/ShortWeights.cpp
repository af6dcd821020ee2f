//===- ShortWeights.cpp - Which weights three bytes are enough for --------===//
//
// A product of few rows takes as long as memory takes to give its weights. An
// integer of 24 bits, times a power of two for each column, is as exact as the
// sum of a product of f32 wherever the weights of a column are of about the
// same size; whether they are is looked at here, weight by weight.
//
//===----------------------------------------------------------------------===//

#include "Utils.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Dialect/Utils/IndexingUtils.h"
#include "mlir/IR/AsmState.h"
#include "mlir/IR/DialectResourceBlobManager.h"
#include "llvm/ADT/bit.h"

#include <cmath>
#include <cstring>

using namespace mlir;
using namespace sardonyx;

/// What rounding may take of most numbers of a column: a sum of some hundred
/// products in f32 has an error as large.
static constexpr float kLargestError = 1.0f / (1 << 20);

namespace {

/// A constant tensor of f32 where it lies, a file maybe, in which numbers have
/// any address; strides count elements.
struct ConstantView {
  const char *data = nullptr;
  SmallVector<int64_t> shape, strides;
};

} // namespace

static std::optional<ConstantView> viewConstant(arith::ConstantOp constant) {
  auto type = dyn_cast<RankedTensorType>(constant.getType());
  if (!type || !type.getElementType().isF32() || !type.hasStaticShape())
    return std::nullopt;
  ArrayRef<char> bytes;
  if (auto resource =
          dyn_cast<DenseResourceElementsAttr>(constant.getValue())) {
    AsmResourceBlob *blob = resource.getRawHandle().getBlob();
    if (!blob)
      return std::nullopt; // read at another time, from a file of its own
    bytes = blob->getData();
  } else if (auto dense = dyn_cast<DenseElementsAttr>(constant.getValue());
             dense && !dense.isSplat()) {
    bytes = dense.getRawData();
  }
  if (int64_t(bytes.size()) != type.getNumElements() * int64_t(sizeof(float)))
    return std::nullopt;
  return ConstantView{bytes.data(), SmallVector<int64_t>(type.getShape()),
                      computeStrides(type.getShape())};
}

static std::optional<ConstantView> viewConstant(Value tensor);

static std::optional<ConstantView> viewSlice(tensor::ExtractSliceOp slice) {
  std::optional<ConstantView> view = viewConstant(slice.getSource());
  if (!view || !slice.getType().hasStaticShape() ||
      ShapedType::isDynamicShape(slice.getStaticOffsets()) ||
      ShapedType::isDynamicShape(slice.getStaticStrides()))
    return std::nullopt;
  llvm::SmallBitVector dropped = slice.getDroppedDims();
  ConstantView result{view->data, {}, {}};
  for (auto [dim, offset] : llvm::enumerate(slice.getStaticOffsets())) {
    result.data += offset * view->strides[dim] * int64_t(sizeof(float));
    if (dropped.test(dim))
      continue;
    result.shape.push_back(slice.getStaticSizes()[dim]);
    result.strides.push_back(view->strides[dim] *
                             slice.getStaticStrides()[dim]);
  }
  return result;
}

/// A view of dimensions put together, each group of which lies in one piece.
static std::optional<ConstantView>
viewCollapsed(tensor::CollapseShapeOp collapse) {
  std::optional<ConstantView> view = viewConstant(collapse.getSrc());
  if (!view)
    return std::nullopt;
  ConstantView result{view->data, {}, {}};
  for (const ReassociationIndices &group : collapse.getReassociationIndices()) {
    int64_t size = 1, stride = 1;
    for (int64_t dim : llvm::reverse(group)) {
      if (view->shape[dim] == 1)
        continue;
      if (size == 1)
        stride = view->strides[dim];
      else if (view->strides[dim] != size * stride)
        return std::nullopt;
      size *= view->shape[dim];
    }
    result.shape.push_back(size);
    result.strides.push_back(stride);
  }
  return result;
}

static std::optional<ConstantView> viewExpanded(tensor::ExpandShapeOp expand) {
  std::optional<ConstantView> view = viewConstant(expand.getSrc());
  auto type = cast<RankedTensorType>(expand.getType());
  if (!view || !type.hasStaticShape())
    return std::nullopt;
  ConstantView result{view->data, SmallVector<int64_t>(type.getShape()),
                      SmallVector<int64_t>(type.getRank(), 1)};
  for (auto [dim, group] : llvm::enumerate(expand.getReassociationIndices())) {
    int64_t stride = view->strides[dim];
    for (int64_t inner : llvm::reverse(group)) {
      result.strides[inner] = stride;
      stride *= result.shape[inner];
    }
  }
  return result;
}

/// Where a tensor lies that is a constant or a view or transpose of one.
static std::optional<ConstantView> viewConstant(Value tensor) {
  Operation *op = tensor.getDefiningOp();
  if (auto constant = dyn_cast_or_null<arith::ConstantOp>(op))
    return viewConstant(constant);
  if (auto slice = dyn_cast_or_null<tensor::ExtractSliceOp>(op))
    return viewSlice(slice);
  if (auto collapse = dyn_cast_or_null<tensor::CollapseShapeOp>(op))
    return viewCollapsed(collapse);
  if (auto expand = dyn_cast_or_null<tensor::ExpandShapeOp>(op))
    return viewExpanded(expand);
  if (auto cast = dyn_cast_or_null<tensor::CastOp>(op))
    return viewConstant(cast.getSource());
  auto transpose = dyn_cast_or_null<linalg::TransposeOp>(op);
  if (!transpose)
    return std::nullopt;
  std::optional<ConstantView> view = viewConstant(transpose.getInput());
  if (!view)
    return std::nullopt;
  ConstantView result{view->data, {}, {}};
  for (int64_t from : transpose.getPermutation()) {
    result.shape.push_back(view->shape[from]);
    result.strides.push_back(view->strides[from]);
  }
  return result;
}

namespace {

/// Columns of a matrix that lie `step` elements apart, and their elements
/// `stride`.
struct Columns {
  const char *data;
  int64_t count, length, step, stride;

  float at(int64_t column, int64_t i) const {
    float number;
    std::memcpy(&number,
                data + (i * stride + column * step) * int64_t(sizeof(float)),
                sizeof(float));
    return number;
  }

  /// Calls `visit` with each element and the number of its column, in the order
  /// of memory.
  template <typename Visit> void forEach(Visit visit) const {
    if (step <= stride) {
      for (int64_t i = 0; i < length; ++i)
        for (int64_t c = 0; c < count; ++c)
          visit(c, at(c, i));
      return;
    }
    for (int64_t c = 0; c < count; ++c)
      for (int64_t i = 0; i < length; ++i)
        visit(c, at(c, i));
  }
};

} // namespace

/// The scale of each column: the least power of two for which its largest
/// element is an integer of 24 bits. Nothing where a column has an infinity, a
/// NaN, or only very small numbers.
static std::optional<SmallVector<float>> findScales(const Columns &columns) {
  // Magnitudes have the order of their bits.
  SmallVector<uint32_t> largest(columns.count, 0);
  columns.forEach([&](int64_t c, float x) {
    largest[c] =
        std::max(largest[c], llvm::bit_cast<uint32_t>(x) & 0x7FFFFFFFu);
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
static bool areExactEnough(const Columns &columns, ArrayRef<float> scales) {
  // The root mean square of what lies between -1/2 and 1/2.
  const float kRoundingError = 1 / std::sqrt(12.0f);
  constexpr float kHalfway = 0.5f;
  SmallVector<float> inverse;
  for (float scale : scales)
    inverse.push_back(1.0f / scale);
  SmallVector<int64_t> lost(columns.count), nonzero(columns.count);
  columns.forEach([&](int64_t c, float x) {
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
  std::optional<ConstantView> view = viewConstant(matrix);
  if (!view || view->shape.size() != 2)
    return {};
  unsigned columnDim = transposed ? 0 : 1, rowDim = 1 - columnDim;
  Columns columns{view->data, view->shape[columnDim], view->shape[rowDim],
                  view->strides[columnDim], view->strides[rowDim]};
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
