//===- NVDialect.cpp - The nv dialect -------------------------------------===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "dialects/NV/NV.h"

#include "mlir/IR/Builders.h"
#include "mlir/IR/DialectImplementation.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace sardonyx;
using namespace sardonyx::nv;

#include "dialects/NV/NVDialect.cpp.inc"

#include "dialects/NV/NVEnums.cpp.inc"

#define GET_ATTRDEF_CLASSES
#include "dialects/NV/NVAttrs.cpp.inc"

#define GET_OP_CLASSES
#include "dialects/NV/NVOps.cpp.inc"

void NVDialect::registerAttrs() {
  addAttributes<
#define GET_ATTRDEF_LIST
#include "dialects/NV/NVAttrs.cpp.inc"
      >();
}

void NVDialect::initialize() {
  registerAttrs();
  addOperations<
#define GET_OP_LIST
#include "dialects/NV/NVOps.cpp.inc"
      >();
}

LogicalResult SharedMemoryOp::verify() {
  auto type = cast<MemRefType>(getBytes().getType());
  auto space =
      gpu::AddressSpaceAttr::get(getContext(), gpu::AddressSpace::Workgroup);
  if (!type.getElementType().isInteger(8) || type.getRank() != 1 ||
      type.getMemorySpace() != space)
    return emitOpError("is a row of bytes in the block's memory, memref<Nxi8, "
                       "#gpu.address_space<workgroup>>; got ")
           << type;
  return success();
}

/// Of images.
static LogicalResult verifyPixels(TensorMapOp op) {
  const size_t rank = op.getSizes().size();
  if (rank < 3 || rank > 5 || op.getBox().size() != 2 || !op.getLower() ||
      !op.getUpper() || !op.getSteps() || op.getLower()->size() != rank - 2 ||
      op.getUpper()->size() != rank - 2 || op.getSteps()->size() != rank)
    return op.emitOpError(
        "has boxes of channels and pixels, corners in all but "
        "the first and last dimension, and steps in all");
  const int64_t most = TensorMapOp::mostCorner(rank - 2);
  for (ArrayRef<int64_t> corners : {*op.getLower(), *op.getUpper()})
    for (int64_t corner : corners)
      if (corner < -most - 1 || corner > most)
        return op.emitOpError("has a corner at ")
               << corner << ", which is from " << -most - 1 << " to " << most;
  for (int64_t step : *op.getSteps())
    if (step < 1 || step > TensorMapOp::kMostStep)
      return op.emitOpError("has a step of ") << step << ", which is 1 to 8";
  return success();
}

LogicalResult TensorMapOp::verify() {
  const size_t rank = getSizes().size();
  if (getLower() || getUpper() || getSteps()) {
    if (failed(verifyPixels(*this)))
      return failure();
  } else if (rank < 1 || rank > 5 || getBox().size() != rank) {
    return emitOpError("has ")
           << rank << " sizes and a box of " << getBox().size()
           << "; both are of 1 to 5 dimensions";
  }
  for (int64_t size : getBox())
    if (size < 1 || size > 256)
      return emitOpError("copies boxes of 1 to 256 elements in each dimension, "
                         "not of ")
             << size;
  const Type element = getSource().getType().getElementType();
  if (!element.isIntOrFloat() ||
      (element.getIntOrFloatBitWidth() != 8 && !element.isF16() &&
       !element.isBF16() && !element.isF32() && !element.isInteger(32)))
    return emitOpError("is of 8 bits, f16, bf16, f32 or i32, not of ")
           << element;
  if (getTf32() && !element.isF32())
    return emitOpError("rounds f32 to tf32, not ") << element;
  const int64_t swizzle = getSwizzle(),
                row = getBox()[0] * (element.getIntOrFloatBitWidth() / 8);
  if (swizzle != 0 && swizzle != 32 && swizzle != 64 && swizzle != 128)
    return emitOpError("swizzles rows by 32, 64 or 128 bytes, not by ")
           << swizzle;
  if (row % 16 || (swizzle && row > swizzle))
    return emitOpError("has rows of ")
           << row << " bytes in a box, which are a multiple of 16, and of at "
           << "most as many as they are swizzled by";
  return success();
}

/// Of tiles for warpgroups: instructions have 64 rows and whole rows of tiles,
/// and registers are there for two warpgroups.
static LogicalResult
verifyWarpgroups(llvm::function_ref<InFlightDiagnostic()> emitError,
                 int64_t tileM, int64_t tileN, int64_t partM, int64_t partN) {
  if (partM != 64 || (tileM != 64 && tileM != 128))
    return emitError() << "a warpgroup has 64 rows, and a block one or two of "
                          "them; got "
                       << partM << " of " << tileM;
  if (partN != tileN || tileN < 8 || tileN > 256 || tileN % 8)
    return emitError() << "a warpgroup has all columns, 8 to 256 and several "
                          "times 8; got "
                       << partN << " of " << tileN;
  return success();
}

static LogicalResult
verifyCluster(llvm::function_ref<InFlightDiagnostic()> emitError,
              ProductForm form, int64_t split, int64_t clusterM,
              int64_t clusterN) {
  constexpr int64_t kMost = MatmulPlanAttr::kMostOfCluster;
  if (clusterM < 1 || clusterN < 1 || clusterM > kMost || clusterN > kMost)
    return emitError() << "1 to " << kMost << " blocks are a cluster; got "
                       << clusterM << "x" << clusterN;
  if (clusterM * clusterN == 1)
    return success();
  if (form == ProductForm::Fma)
    return emitError() << "clusters multiply by mma or wgmma";
  if (form == ProductForm::Wgmma && clusterM * clusterN != 2)
    return emitError() << "a cluster of warpgroups is two blocks, along M or "
                          "N; got "
                       << clusterM << "x" << clusterN;
  if (form == ProductForm::Mma && clusterM != 1)
    return emitError() << "the blocks that have whole rows lie along N; got "
                       << clusterM << " along M";
  if (form == ProductForm::Mma && clusterN % split)
    return emitError() << "a cluster of " << clusterN
                       << " blocks is not of tiles that " << split << " share";
  return success();
}

LogicalResult MatmulPlanAttr::verify(
    llvm::function_ref<InFlightDiagnostic()> emitError, ProductForm form,
    int64_t tileM, int64_t tileN, int64_t tileK, int64_t partM, int64_t partN,
    int64_t stages, int64_t split, int64_t clusterM, int64_t clusterN) {
  const int64_t rows = form == ProductForm::Mma ? 16 : 4;
  const int64_t cols = form == ProductForm::Mma ? 16 : 4;
  auto divides = [](int64_t size, int64_t whole) {
    return size > 0 && whole > 0 && whole % size == 0;
  };
  if (form == ProductForm::Wgmma) {
    if (failed(verifyWarpgroups(emitError, tileM, tileN, partM, partN)))
      return failure();
  } else if (!divides(rows, partM) || !divides(cols, partN))
    return emitError() << "parts are of " << rows << "x" << cols
                       << " sums or several; got " << partM << "x" << partN;
  if (!divides(partM, tileM) || !divides(partN, tileN))
    return emitError() << "a tile of " << tileM << "x" << tileN
                       << " sums is not of parts of " << partM << "x" << partN;
  int64_t threads =
      tileM / partM * (tileN / partN) * (form == ProductForm::Mma ? 32 : 1);
  if (form != ProductForm::Wgmma && threads > 1024)
    return emitError() << "a block has at most 1024 threads; got " << threads;
  if (form == ProductForm::Mma && tileN % 64)
    return emitError() << "tiles for tensor cores are 64 columns wide or "
                          "several times that; got "
                       << tileN;
  if (tileK < 4 || tileK % 4)
    return emitError() << "a step is of 4 products or several; got " << tileK;
  if (stages < 2 || stages > 8)
    return emitError() << "2 to 8 stages are possible; got " << stages;
  if (split < 1 || split > 64)
    return emitError() << "1 to 64 blocks can share a tile; got " << split;
  return verifyCluster(emitError, form, split, clusterM, clusterN);
}

LogicalResult
FewRowsPlanAttr::verify(llvm::function_ref<InFlightDiagnostic()> emitError,
                        int64_t lanes) {
  if (lanes < 4 || lanes > 32 || !llvm::isPowerOf2_64(lanes))
    return emitError() << "4, 8, 16 or 32 threads read a row; got " << lanes;
  return success();
}

LogicalResult
AttentionPlanAttr::verify(llvm::function_ref<InFlightDiagnostic()> emitError,
                          ProductForm form, int64_t queries, int64_t keys,
                          int64_t split) {
  const int64_t least = form == ProductForm::Fma   ? 4
                        : form == ProductForm::Mma ? 16
                                                   : 64;
  if (queries < least || queries > 128 || !llvm::isPowerOf2_64(queries))
    return emitError() << "a block has " << least
                       << " to 128 queries, a power of 2; got " << queries;
  if (keys < 16 || keys > 256 || keys % 16)
    return emitError() << "a tile has 16 to 256 keys, several times 16; got "
                       << keys;
  if (split < 0 || split > kMostSplits)
    return emitError() << "1 to " << kMostSplits
                       << " blocks can share keys, 0 as many as are worth it; "
                          "got "
                       << split;
  return success();
}
