//===- ResultTypes.h - Types that follow for results ------------*- C++ -*-===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef SARDONYX_LIB_TRANSFORMS_RESULTTYPES_H
#define SARDONYX_LIB_TRANSFORMS_RESULTTYPES_H

#include "dialects/ONNX/ONNX.h"

#include <optional>

namespace sardonyx {

/// The most precise type that has all values of both; null if there is none.
mlir::Type joinOnnxTypes(mlir::Type a, mlir::Type b);

/// `declared` made more precise by `inferred`. A contradiction in a size is
/// settled for `inferred` and noted.
mlir::Type refine(mlir::Type declared, mlir::Type inferred,
                  bool &contradiction);

/// Sizes that only the run knows change one dimension.
mlir::Type inferSplit(onnx::SplitOp op);
/// Of Pad, Squeeze and Unsqueeze: axes that only the run knows change no rank,
/// or change it by their number.
mlir::Type inferAxes(mlir::Operation *op);

/// `axes[index]` from the front, 0 without `axes`; nothing if out of range.
std::optional<int64_t> getScanAxis(std::optional<llvm::ArrayRef<int64_t>> axes,
                                   unsigned index, int64_t rank);

/// A result of Scan from the body's output: a state is what it is, of the
/// others there is one for each step.
mlir::Type inferScanned(onnx::ScanOp op, mlir::Type type, unsigned index);

/// All types inside of `op`, to go back to.
class Snapshot {
public:
  explicit Snapshot(mlir::Operation *op) {
    for (mlir::Region &region : op->getRegions())
      region.walk<mlir::WalkOrder::PreOrder>([&](mlir::Block *block) {
        add(block->getArguments());
        for (mlir::Operation &inner : *block)
          add(inner.getResults());
      });
  }
  void restore() {
    for (auto [value, type] : types)
      value.setType(type);
  }

private:
  template <typename Range> void add(Range values) {
    for (mlir::Value value : values)
      types.push_back({value, value.getType()});
  }
  llvm::SmallVector<std::pair<mlir::Value, mlir::Type>> types;
};

} // namespace sardonyx

#endif // SARDONYX_LIB_TRANSFORMS_RESULTTYPES_H
