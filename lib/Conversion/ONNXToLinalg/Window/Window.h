//===- Window.h - Sliding windows -------------------------------*- C++ -*-===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef SARDONYX_LIB_CONVERSION_ONNXTOLINALG_WINDOW_WINDOW_H
#define SARDONYX_LIB_CONVERSION_ONNXTOLINALG_WINDOW_WINDOW_H

#include "Support/TensorBuilder.h"

namespace sardonyx {

/// The attributes that Conv and the pools share. Absent lists are ones (zeros
/// for the pads).
struct WindowAttributes {
  llvm::SmallVector<int64_t> kernel;
  std::optional<llvm::ArrayRef<int64_t>> strides, dilations, pads;
  llvm::StringRef autoPad = "NOTSET";
  bool ceilMode = false;
};

/// A window that slides over the spatial dimensions of [N,C,D...]: output
/// position o and kernel position k see input position
/// o * stride + k * dilation - padBegin.
struct Window {
  llvm::SmallVector<int64_t> kernel, strides, dilations;
  Sizes padsBegin, padsEnd;
  /// Whether no window reaches beyond the pads, as some do in ceil mode.
  bool withinPads = true;
  /// Spatial sizes of the input and of the output.
  Sizes inputs, outputs;

  int64_t rank() const { return kernel.size(); }
  /// The input positions from a window's first to its last.
  int64_t span(int64_t dim) const {
    return (kernel[dim] - 1) * dilations[dim] + 1;
  }
  bool hasPads() const;
  /// Whether the operations that pool planes take it: two spatial dimensions,
  /// no dilations, known pads that are not negative, and each window is small
  /// and sees some of the input.
  bool isPlain() const;
  /// The pads before the input, all known.
  llvm::SmallVector<int64_t> knownPadsBegin() const;
};

/// Fails when the attributes do not fit the input's rank or are not positive.
mlir::FailureOr<Window> getWindow(TensorBuilder &b, mlir::Value input,
                                  const WindowAttributes &attributes);

/// `input` with borders of `value` wherever a window reaches beyond it.
mlir::Value padForWindow(TensorBuilder &b, mlir::Value input,
                         const Window &window, mlir::Value value);

/// (n, c, o..., k...) -> (n, c, o * stride + k * dilation ...)
mlir::AffineMap getWindowMap(TensorBuilder &b, const Window &window);

/// `input` padded with `value` for a window, which has no pads then.
mlir::Value padInput(TensorBuilder &b, mlir::Value input, Window &window,
                     mlir::Value value);

/// What a convolution of 8-bit integers takes them for, and what positions in
/// its pads hold.
struct ConvBytes {
  bool isInputUnsigned = false, areWeightsUnsigned = false;
  int64_t padding = 0;
};

/// Cross-correlation of [N,C,S...] with [OC,C/G,k...], as sdx.conv: both of one
/// element type, in which it is accumulated, or of 8-bit integers with sums in
/// i32, if `bytes` tells what they mean. Fails when static sizes disagree or
/// the number of spatial dimensions is not supported.
mlir::FailureOr<mlir::Value>
createConv(TensorBuilder &b, mlir::Value input, mlir::Value weights,
           const Window &window, int64_t group,
           std::optional<ConvBytes> bytes = std::nullopt);

/// `product` [N,C,S...], in the type in which it was accumulated, plus `bias`
/// [C] (may be null), as `element`, which is the bias' type. Fails when static
/// sizes disagree.
mlir::FailureOr<mlir::Value> addBias(TensorBuilder &b, mlir::Value product,
                                     mlir::Value bias, mlir::Type element);

/// The kernel's sizes: the attribute's, or those of `weights`, which then have
/// to be static. `weights` gets a type in which they are static.
mlir::FailureOr<llvm::SmallVector<int64_t>>
getKernelShape(TensorBuilder &b, mlir::Value &weights,
               std::optional<llvm::ArrayRef<int64_t>> attribute);

/// [C] as [C,1,...] with `spatialRank` ones, which broadcasts over [N,C,S...];
/// a scalar or a single element stays as it is.
mlir::Value alignChannels(TensorBuilder &b, mlir::Value tensor,
                          int64_t spatialRank);

/// Windows from the attributes of an op class that has all of them.
template <typename OpT> WindowAttributes getWindowAttributes(OpT op) {
  WindowAttributes attributes;
  attributes.strides = op.getStrides();
  attributes.dilations = op.getDilations();
  attributes.pads = op.getPads();
  attributes.autoPad = op.getAutoPad();
  return attributes;
}

} // namespace sardonyx

#endif // SARDONYX_LIB_CONVERSION_ONNXTOLINALG_WINDOW_WINDOW_H
