//===- MatmulPlan.cpp - Which tiles a product goes by ---------------------===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Matmul/MatmulPlan.h"

#include "Kernel/Block.h"
#include "Matmul/PackedWeights.h"
#include "Matmul/WarpgroupTile.h"

#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace sardonyx;
using namespace sardonyx::nv;

/// What an open size is taken for.
static constexpr int64_t kUsualSize = 256, kUsualSide = 32;

namespace {
struct Tiles {
  int64_t m, n, partM, partN, stages;
};
} // namespace

/// From large to small: large ones read less memory, small ones leave no
/// multiprocessor without work.
static constexpr Tiles kMmaTiles[] = {{128, 128, 64, 64, 3},
                                      {64, 64, 32, 32, 4},
                                      {32, 64, 16, 32, 4},
                                      {16, 64, 16, 16, 4}};
/// The same of f32 as sums of two bf16, which take registers, too.
static constexpr Tiles kSplitTiles[] = {{128, 128, 64, 32, 3},
                                        {64, 64, 32, 32, 4},
                                        {32, 64, 16, 32, 4},
                                        {16, 64, 16, 16, 4}};
static constexpr Tiles kFmaTiles[] = {{128, 128, 8, 8, 3},
                                      {64, 64, 4, 4, 3},
                                      {32, 64, 4, 4, 3},
                                      {32, 32, 4, 4, 3}};
/// Of few rows, where even tiles of 64x64 are not enough for the device: a
/// thread reads less of shared memory for each product, and blocks, of which a
/// multiprocessor has two, share tiles.
static constexpr Tiles kFewRowTiles[] = {{64, 64, 8, 4, 4}, {32, 64, 8, 4, 4}};
static constexpr int64_t kLeastFewRows = 16, kMostFewRows = 128;
static constexpr int64_t kFewRowBlocks = 2;
static constexpr int64_t kFmaDepth = 16;

namespace {
/// A tile of warpgroups, and the fewest steps along K that make up for what
/// follows them.
struct WarpgroupTiles {
  int64_t m, n, stages, leastSteps;
};
} // namespace

/// From large to small; of each the stages that a block has shared memory for,
/// or two blocks of the small ones.
static constexpr WarpgroupTiles kWarpgroupTiles[] = {
    {128, 256, 4, 32}, {128, 128, 6, 0}, {64, 64, 6, 0}, {64, 32, 8, 0}};

/// Filters of a group that are worth a tile: fewer leave most of it empty.
static constexpr int64_t kFewestFilters = 8;

/// `transposed`: the right-hand side follows itself along K.
static std::optional<ProductForm> findForm(Operation *op, Type lhs, Type rhs,
                                           Type sum, bool transposed) {
  if (lhs.isF32() && rhs.isF32() && sum.isF32() && mayRound(op))
    return ProductForm::Mma;
  if (lhs == sum && rhs == sum && (sum.isF32() || sum.isF64()))
    return ProductForm::Fma;
  if (lhs == rhs && (lhs.isF16() || lhs.isBF16()) && sum.isF32())
    return ProductForm::Mma;
  // Bytes are loaded along K only.
  if (lhs.isInteger(8) && rhs.isInteger(8) && sum.isInteger(32) && transposed)
    return ProductForm::Mma;
  return std::nullopt;
}

static std::optional<ProductForm> findForm(sdx::ConvOp op) {
  // Code counts on the numbers of filters and channels.
  auto weights = cast<ShapedType>(op.getWeights().getType());
  const int64_t groups = op.getGroup();
  if (!weights.hasStaticShape() ||
      weights.getDimSize(0) / groups < kFewestFilters)
    return std::nullopt;
  return findForm(op, op.getWeights().getType().getElementType(),
                  op.getInput().getType().getElementType(),
                  op.getInit().getType().getElementType(),
                  /*transposed=*/false);
}

bool nv::hasTiles(sdx::MatmulOp op) {
  const ProductTypes types = getProductTypes(op);
  return findForm(op, types.lhs, types.rhs, types.sum, types.transposed)
      .has_value();
}

bool nv::hasTiles(sdx::ConvOp op) { return findForm(op).has_value(); }

bool nv::hasLastTiles(Operation *conv, Type element, Type sum, int64_t filters,
                      int64_t channels, int64_t groups) {
  const bool isMma = sum.isF32() && (element.isF16() || element.isBF16() ||
                                     (element.isF32() && mayRound(conv)));
  if (!isMma || filters / groups < kFewestFilters || channels == 0)
    return false;
  // Neighbouring sums are stored together, and are of one group.
  return channels % countInPiece(element) == 0 &&
         (groups == 1 || filters / groups % kStoredSums == 0);
}

bool nv::hasTiles(nv::ConvOp op) {
  RankedTensorType weights = op.getWeights().getType();
  return weights.getElementType() == op.getInput().getType().getElementType() &&
         hasLastTiles(op, weights.getElementType(),
                      op.getInit().getType().getElementType(),
                      weights.getDimSize(0), weights.getShape().back(),
                      op.getGroup());
}

bool nv::isPointwise(ConvOp op) {
  auto areAll = [](ArrayRef<int64_t> numbers, int64_t number) {
    return llvm::all_of(numbers, [&](int64_t n) { return n == number; });
  };
  return areAll(op.getKernelShape(), 1) && areAll(op.getStrides(), 1) &&
         areAll(op.getPadsBegin(), 0) && areAll(op.getPadsEnd(), 0);
}

int64_t nv::reachOf(ConvOp op, int64_t dim) {
  return (op.getKernelShape()[dim] - 1) * op.getDilations()[dim];
}

bool nv::hasTiles(sdx::DequantMatmulOp op) {
  const bool areBytes = getElementTypeOrSelf(op.getLhs()).isInteger(8);
  if (op.getDepth() == 0 || op.getColumns() == 0)
    return false;
  return areBytes ? canMultiplyByteFloats(op, getTargetOrDefault(op))
                  : canUnpack(op);
}

static int64_t usually(int64_t size) {
  return ShapedType::isDynamic(size) ? kUsualSize : size;
}

/// The most blocks that share a tile's products, and the fewest steps along K
/// that are worth a block.
static constexpr int64_t kMostSplits = 16, kFewestSteps = 4;

static ArrayRef<Tiles> listMmaTiles(const ProductTypes &types) {
  return types.areSplit ? ArrayRef(kSplitTiles) : ArrayRef(kMmaTiles);
}

/// The largest tiles that leave no multiprocessor without work. Where even the
/// smallest are too few, blocks share them. `k`: 0 if it is open.
static MatmulPlanAttr choose(ProductForm form, const ProductTypes &types,
                             int64_t pairs, int64_t m, int64_t n, int64_t k,
                             TargetAttr target) {
  const bool isMma = form == ProductForm::Mma;
  Type type = types.lhs;
  ArrayRef<Tiles> choices = isMma ? listMmaTiles(types) : ArrayRef(kFmaTiles);
  // Sums of f64 take up the registers of two.
  const int64_t bytes = type.getIntOrFloatBitWidth() / 8;
  if (bytes == 8)
    choices = choices.drop_front();
  int64_t wanted = target.countMultiprocessors();
  auto countBlocks = [&](const Tiles &tiles) {
    return std::max<int64_t>(1, pairs * llvm::divideCeil(m, tiles.m) *
                                    llvm::divideCeil(n, tiles.n));
  };
  if (type.isF32() && !isMma && m >= kLeastFewRows && m <= kMostFewRows &&
      countBlocks(kFewRowTiles[0]) < kFewRowBlocks * wanted) {
    choices = ArrayRef(kFewRowTiles).drop_front(m <= kFewRowTiles[1].m);
    wanted *= kFewRowBlocks;
  }
  const Tiles *chosen = &choices.back();
  for (const Tiles &tiles : choices)
    if (countBlocks(tiles) >= wanted) {
      chosen = &tiles;
      break;
    }
  const int64_t depth = isMma ? 128 / bytes : kFmaDepth;
  const int64_t most =
      std::min<int64_t>(kMostSplits, llvm::divideCeil(k, depth) / kFewestSteps);
  const int64_t split = std::clamp<int64_t>(wanted / countBlocks(*chosen), 1,
                                            std::max<int64_t>(most, 1));
  return MatmulPlanAttr::get(type.getContext(), form, chosen->m, chosen->n,
                             depth, chosen->partM, chosen->partN,
                             chosen->stages, split, 1, 1);
}

/// The same of tiles for warpgroups. Small ones are shared by blocks before
/// smaller ones are taken: they are as fast as they read memory.
static MatmulPlanAttr chooseWarpgroups(Type type, int64_t pairs, int64_t m,
                                       int64_t n, int64_t k, bool transposed,
                                       TargetAttr target) {
  constexpr int64_t kMostUsualSplits = 4, kLongSteps = 32;
  const int64_t depth = kMapRowBytes / (type.getIntOrFloatBitWidth() / 8);
  const int64_t steps = llvm::divideCeil(k, depth);
  const int64_t most = std::max<int64_t>(steps / kFewestSteps, 1);
  const int64_t wanted = target.countMultiprocessors() * 7 / 10;
  int64_t blocks = 0, mostSplits = 1;
  const WarpgroupTiles *chosen = nullptr;
  for (const WarpgroupTiles &tiles : kWarpgroupTiles) {
    if (steps < tiles.leastSteps || (!transposed && tiles.n % depth))
      continue;
    chosen = &tiles;
    blocks = std::max<int64_t>(1, pairs * llvm::divideCeil(m, tiles.m) *
                                      llvm::divideCeil(n, tiles.n));
    const int64_t usual = tiles.m == 64        ? kMostUsualSplits
                          : steps < kLongSteps ? 1
                                               : 2;
    mostSplits = std::min(usual, most);
    if (blocks * mostSplits >= wanted)
      break;
    mostSplits = std::min(kMostSplits, most);
  }
  const int64_t split =
      std::clamp<int64_t>((wanted + blocks / 2) / blocks, 1, mostSplits);
  return MatmulPlanAttr::get(type.getContext(), ProductForm::Wgmma, chosen->m,
                             chosen->n, depth, 64, chosen->n, chosen->stages,
                             split, 1, 1);
}

//===----------------------------------------------------------------------===//
// The tiles of an operation
//===----------------------------------------------------------------------===//

ProductTypes nv::getProductTypes(Operation *op) {
  auto elementOf = [](Value value) { return getElementTypeOrSelf(value); };
  ProductTypes types;
  if (auto matmul = dyn_cast<sdx::MatmulOp>(op)) {
    types = {elementOf(matmul.getLhs()),  elementOf(matmul.getRhs()),
             elementOf(matmul.getInit()), matmul.getLhsUnsigned(),
             matmul.getRhsUnsigned(),     matmul.getTransposed()};
  } else if (auto conv = dyn_cast<sdx::ConvOp>(op)) {
    types = {elementOf(conv.getWeights()), elementOf(conv.getInput()),
             elementOf(conv.getInit())};
  } else if (auto conv = dyn_cast<nv::ConvOp>(op)) {
    types = {elementOf(conv.getInput()), elementOf(conv.getWeights()),
             elementOf(conv.getInit())};
    types.transposed = true;
  } else if (auto dequant = dyn_cast<sdx::DequantMatmulOp>(op)) {
    Type type = elementOf(dequant.getLhs());
    if (type.isInteger(8))
      type = *dequant.getElement();
    types = {type, type, elementOf(dequant.getInit())};
    types.transposed = true;
  }
  types.areSplit = op->hasAttr(kBF16x3Attr);
  return types;
}

static Extent getExtent(sdx::MatmulOp op) {
  ArrayRef<int64_t> result = op.getInit().getType().getShape();
  const int64_t k = op.getLhs().getType().getShape().back();
  return {op.isBatched() ? usually(result[0]) : 1,
          usually(result[result.size() - 2]), usually(result.back()),
          ShapedType::isDynamic(k) ? 0 : k};
}

static Extent getExtent(sdx::ConvOp op) {
  ArrayRef<int64_t> result = op.getInit().getType().getShape();
  int64_t positions = 1;
  for (int64_t size : result.drop_front(2))
    positions *= ShapedType::isDynamic(size) ? kUsualSide : size;
  const int64_t images = ShapedType::isDynamic(result[0]) ? 1 : result[0];
  const int64_t groups = op.getGroup();
  ArrayRef<int64_t> weights = op.getWeights().getType().getShape();
  int64_t k = 1;
  for (int64_t size : weights.drop_front())
    k *= size;
  return {images * groups, weights[0] / groups, positions, k};
}

static Extent getExtent(nv::ConvOp op) {
  ArrayRef<int64_t> result = op.getInit().getType().getShape();
  int64_t positions = ShapedType::isDynamic(result[0]) ? 1 : result[0];
  for (int64_t size : result.drop_front().drop_back())
    positions *= ShapedType::isDynamic(size) ? kUsualSide : size;
  ArrayRef<int64_t> weights = op.getWeights().getType().getShape();
  int64_t k = 1;
  for (int64_t size : weights.drop_front())
    k *= size;
  const auto groups = static_cast<int64_t>(op.getGroup());
  return {groups, positions, weights[0] / groups, k};
}

static Extent getExtent(sdx::DequantMatmulOp op) {
  return {/*pairs=*/1, usually(op.getInit().getType().getDimSize(0)),
          op.getColumns(), op.getDepth()};
}

Extent nv::extentOf(Operation *op) {
  Extent extent =
      llvm::TypeSwitch<Operation *, Extent>(op)
          .Case<sdx::MatmulOp, sdx::ConvOp, nv::ConvOp, sdx::DequantMatmulOp>(
              [](auto product) { return getExtent(product); });
  extent.isKnown = llvm::all_of(op->getOperandTypes(), [](Type type) {
    auto shaped = dyn_cast<ShapedType>(type);
    return !shaped || shaped.hasStaticShape();
  });
  if (auto kernel = op->getParentOfType<func::FuncOp>())
    if (auto count = kernel->getAttrOfType<IntegerAttr>(nv::kTogetherAttr))
      extent.pairs *= std::max<int64_t>(count.getInt(), 1);
  return extent;
}

static std::optional<ProductForm> findForm(Operation *op) {
  if (auto conv = dyn_cast<sdx::ConvOp>(op))
    return findForm(conv);
  if (auto conv = dyn_cast<nv::ConvOp>(op))
    return nv::hasTiles(conv) ? std::optional(ProductForm::Mma) : std::nullopt;
  const ProductTypes types = nv::getProductTypes(op);
  if (types.areByteFloats())
    return ProductForm::Wgmma;
  return findForm(op, types.lhs, types.rhs, types.sum, types.transposed);
}

/// Why warpgroups cannot multiply windows; empty where they can. A copy is of
/// channels of one tap.
static std::string whyNoWindows(nv::ConvOp op) {
  const int64_t bytes = op.getWeights().getType().getElementTypeBitWidth() / 8;
  const int64_t channels = op.getWeights().getType().getShape().back();
  const int64_t spatial = op.getNumSpatialDims();
  if (op.getGroup() != 1)
    return "warpgroups compute convolutions of one group";
  if (nv::isPointwise(op))
    return channels * bytes % 16 ? "channels are multiples of 16 bytes" : "";
  if (spatial > 3 || channels * bytes % kMapRowBytes)
    return "the channels of windows are multiples of " +
           std::to_string(kMapRowBytes) + " bytes";
  auto isWithin = [](int64_t corner, int64_t most) {
    return corner >= -most - 1 && corner <= most;
  };
  const int64_t most = TensorMapOp::mostCorner(spatial);
  for (int64_t dim = 0; dim < spatial; ++dim) {
    const int64_t reach = nv::reachOf(op, dim);
    if (!isWithin(-op.getPadsBegin()[dim], most) ||
        !isWithin(op.getPadsEnd()[dim] - reach, most) ||
        reach > TensorMapOp::mostOffset(spatial) ||
        op.getStrides()[dim] > TensorMapOp::kMostStep)
      return "windows are too large for copies by the hardware";
  }
  return "";
}

static constexpr const char *kWantsRows =
    "the rows of what warpgroups multiply are multiples of 16 bytes";

bool nv::canMultiplyByteFloats(sdx::DequantMatmulOp op, TargetAttr target) {
  std::optional<Type> type = op.getElement();
  const int64_t depth = op.getDepth();
  return type && isa<Float8E4M3FNType, Float8E5M2Type>(*type) &&
         target.hasWgmma() && depth > 0 && depth % 16 == 0 &&
         op.getBlock() == depth && op.getColumns() > 0;
}

/// Why warpgroups cannot multiply what the operation does, as these `types`;
/// the end of a sentence, empty where they can.
static std::string whyNoWarpgroups(Operation *op, const ProductTypes &types,
                                   TargetAttr target) {
  if (!target.hasWgmma())
    return "no warpgroups of " + target.getChip() + " multiply";
  auto matmul = dyn_cast<sdx::MatmulOp>(op);
  auto conv = dyn_cast<nv::ConvOp>(op);
  const bool areHalves = types.lhs.isF16() || types.lhs.isBF16();
  if (types.areByteFloats())
    return canMultiplyByteFloats(cast<sdx::DequantMatmulOp>(op), target)
               ? ""
               : kWantsRows;
  if ((!matmul && !conv) || findForm(op) != ProductForm::Mma)
    return "warpgroups multiply matrices of f16, bf16, tf32, bf16x3 and bytes";
  if (types.isLhsUnsigned != types.isRhsUnsigned)
    return "warpgroups multiply bytes that all have a sign, or none";
  if (!areHalves && !types.transposed)
    return "warpgroups multiply tf32 and bf16x3 by what is [N,K]";
  if (conv)
    return whyNoWindows(conv);
  // Copies are of rows of whole 16 bytes.
  for (Value operand : {matmul.getLhs(), matmul.getRhs()}) {
    const int64_t row = cast<ShapedType>(operand.getType()).getShape().back();
    if (ShapedType::isDynamic(row) || row == 0 || row * types.lhsBytes() % 16)
      return kWantsRows;
  }
  return "";
}

static std::string whyNoWarpgroups(Operation *op, TargetAttr target) {
  return whyNoWarpgroups(op, nv::getProductTypes(op), target);
}

/// Rows for which the tiles of warpgroups, which have 64, are not mostly empty.
static constexpr int64_t kLeastGroupRows = 17;

bool nv::wantsSignedBytes(sdx::MatmulOp op, TargetAttr target) {
  ProductTypes types = getProductTypes(op);
  if (!types.lhs.isInteger(8) || !types.isLhsUnsigned || types.isRhsUnsigned)
    return false;
  types.isLhsUnsigned = false;
  return getExtent(op).m >= kLeastGroupRows &&
         whyNoWarpgroups(op, types, target).empty();
}

static std::optional<MatmulPlanAttr> chooseTiles(Operation *op,
                                                 TargetAttr target) {
  std::optional<ProductForm> form = findForm(op);
  if (!form)
    return std::nullopt;
  const Extent extent = extentOf(op);
  const ProductTypes types = getProductTypes(op);
  const bool isPossible = whyNoWarpgroups(op, target).empty();
  if (form == ProductForm::Wgmma && !isPossible)
    return std::nullopt;
  if (isPossible && (form == ProductForm::Wgmma || extent.m >= kLeastGroupRows))
    return chooseSharers(chooseWarpgroups(types.lhs, extent.pairs, extent.m,
                                          extent.n, extent.k, types.transposed,
                                          target),
                         extent, target);
  return choose(*form, types, extent.pairs, extent.m, extent.n, extent.k,
                target);
}

std::optional<MatmulPlanAttr> nv::choosePlan(Operation *op, TargetAttr target) {
  std::optional<MatmulPlanAttr> plan = chooseTiles(op, target);
  auto matmul = dyn_cast<sdx::MatmulOp>(op);
  auto kernel = op->getParentOfType<func::FuncOp>();
  if (!plan || !matmul || !kernel || !hasRows(kernel))
    return plan;
  std::optional<MatmulPlanAttr> clusters = chooseCluster(matmul, *plan, target);
  return clusters && whyNoClusters(op, *clusters, target).empty() ? clusters
                                                                  : plan;
}

SmallVector<MatmulPlanAttr> nv::listTiles(Operation *op, TargetAttr target) {
  SmallVector<MatmulPlanAttr> plans;
  std::optional<ProductForm> form = findForm(op);
  if (!form)
    return plans;
  const ProductTypes types = getProductTypes(op);
  const Extent extent = extentOf(op);
  Type type = types.lhs;
  const int64_t bytes = type.getIntOrFloatBitWidth() / 8;
  auto add = [&](ProductForm by, int64_t depth, ArrayRef<Tiles> choices) {
    for (const Tiles &tiles : choices)
      plans.push_back(MatmulPlanAttr::get(op->getContext(), by, tiles.m,
                                          tiles.n, depth, tiles.partM,
                                          tiles.partN, tiles.stages, 1, 1, 1));
  };
  if (*form == ProductForm::Mma)
    add(ProductForm::Mma, kMapRowBytes / bytes, listMmaTiles(types));
  if (type.isF32() || *form == ProductForm::Fma) {
    add(ProductForm::Fma, kFmaDepth, kFmaTiles);
    add(ProductForm::Fma, kFmaDepth, kFewRowTiles);
  }
  if (whyNoWarpgroups(op, target).empty())
    for (const WarpgroupTiles &tiles : kWarpgroupTiles) {
      auto plan = MatmulPlanAttr::get(
          op->getContext(), ProductForm::Wgmma, tiles.m, tiles.n,
          kMapRowBytes / bytes, kGroupRows, tiles.n, tiles.stages, 1, 1, 1);
      plans.push_back(plan);
      if (tiles.m > kGroupRows && extent.m > tiles.m)
        plans.push_back(withCluster(plan, 2, 1));
      if (tiles.m > kGroupRows && extent.n > tiles.n)
        plans.push_back(withCluster(plan, 1, 2));
    }
  return plans;
}

int64_t nv::mostSplits(Operation *op, MatmulPlanAttr plan, TargetAttr target) {
  constexpr int64_t kRounds = 4;
  const Extent extent = extentOf(op);
  const int64_t blocks = extent.pairs *
                         llvm::divideCeil(extent.m, plan.getTileM()) *
                         llvm::divideCeil(extent.n, plan.getTileN());
  const int64_t steps = llvm::divideCeil(extent.k, plan.getTileK());
  return std::max<int64_t>(
      1, std::min<int64_t>({kMostSplits, steps / kFewestSteps,
                            kRounds * target.countMultiprocessors() /
                                std::max<int64_t>(blocks, 1)}));
}

std::unique_ptr<BlockTile> nv::createTile(const ProductTypes &types,
                                          MatmulPlanAttr plan, Value thread) {
  return plan.isMma() ? createMmaTile(types, plan, thread)
                      : createFmaTile(types, plan, thread);
}

int64_t nv::countSharedBytes(const ProductTypes &types, MatmulPlanAttr plan) {
  if (plan.isWgmma())
    return WarpgroupTile(types, plan).countSharedBytes();
  // No code is made: sizes hang on no thread.
  std::unique_ptr<BlockTile> tile = createTile(types, plan, Value());
  const int64_t stage =
      tile->lhsLayout().countBytes() + tile->rhsLayout().countBytes();
  const int64_t sums = plan.getTileM() * (plan.getTileN() + kSumGap) *
                       (types.sum.getIntOrFloatBitWidth() / 8);
  return std::max(plan.getStages() * stage, sums);
}

//===----------------------------------------------------------------------===//
// Plans that are given
//===----------------------------------------------------------------------===//

/// Sums that a thread keeps in registers beside operands and addresses.
static constexpr int64_t kMostSumBytes = 512;

/// Why the tiles of warpgroups do not lie in shared memory as they must: rows
/// are 128 bytes.
static std::string whyNotRows(const ProductTypes &types, MatmulPlanAttr plan) {
  const int64_t row = kMapRowBytes / types.lhsBytes();
  if (plan.getTileK() != row)
    return "tile_k is " + std::to_string(row);
  if (!types.transposed && plan.getTileN() % row)
    return "tile_n is a multiple of " + std::to_string(row);
  // The instructions of bytes have fewer sizes.
  if (types.lhs.isInteger() && plan.getTileN() > 24 && plan.getTileN() % 16)
    return "tile_n is a multiple of 16";
  return "";
}

/// Why tiles for tensor cores do not lie in shared memory as they must: rows
/// are eight pieces of 16 bytes, or several times that.
static std::string whyNotAligned(const ProductTypes &types,
                                 MatmulPlanAttr plan) {
  constexpr int64_t kRow = 128;
  if (plan.getTileK() * types.lhsBytes() % kRow)
    return "tile_k is a multiple of " + std::to_string(kRow / types.lhsBytes());
  if (!types.transposed && plan.getTileN() * types.rhsBytes() % kRow)
    return "tile_n is a multiple of " + std::to_string(kRow / types.rhsBytes());
  return "";
}

std::string nv::whyNot(Operation *op, MatmulPlanAttr plan, TargetAttr target) {
  std::optional<MatmulPlanAttr> chosen = choosePlan(op, target);
  if (!chosen)
    return "there are no tiles for what it multiplies";
  const ProductTypes types = getProductTypes(op);
  const ProductForm form = *findForm(op);
  if (plan.isWgmma()) {
    if (std::string reason = whyNoWarpgroups(op, target); !reason.empty())
      return reason;
    if (std::string reason = whyNotRows(types, plan); !reason.empty())
      return reason;
  } else if (plan.getForm() != form &&
             // What may be rounded need not be.
             !(types.lhs.isF32() && plan.getForm() == ProductForm::Fma)) {
    return ("what it multiplies goes by " + stringifyProductForm(form)).str();
  }
  if (plan.countCluster() > 1)
    if (std::string reason = whyNoClusters(op, plan, target); !reason.empty())
      return reason;
  // Pieces of packed weights are a step's.
  if (isa<sdx::DequantMatmulOp>(op) && plan.getTileK() != chosen->getTileK())
    return "tile_k is " + std::to_string(chosen->getTileK());
  if (plan.isMma())
    if (std::string reason = whyNotAligned(types, plan); !reason.empty())
      return reason;
  const int64_t sums = plan.getPartM() * plan.getPartN() *
                       (types.sum.getIntOrFloatBitWidth() / 8) /
                       (plan.isWgmma() ? MatmulPlanAttr::kWarpgroup
                        : plan.isMma() ? 32
                                       : 1);
  if (sums > kMostSumBytes)
    return "a thread has " + std::to_string(sums) + " bytes of sums, at most " +
           std::to_string(kMostSumBytes) + " are in registers";
  const int64_t shared = countSharedBytes(types, plan);
  if (shared > target.getSharedBytesOfBlock())
    return "its tiles take " + std::to_string(shared) +
           " bytes of shared memory, a block has at most " +
           std::to_string(target.getSharedBytesOfBlock());
  return "";
}

std::optional<MatmulPlanAttr> nv::getPlan(func::FuncOp func, Operation *op) {
  if (Attribute plan = func->getAttr(kPlanAttr)) {
    auto tiles = dyn_cast<MatmulPlanAttr>(plan);
    return tiles ? std::optional(tiles) : std::nullopt;
  }
  return choosePlan(op, getTargetOrDefault(func));
}
