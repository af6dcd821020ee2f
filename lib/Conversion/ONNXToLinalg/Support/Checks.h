//===- Checks.h - What only the run can decide ------------------*- C++ -*-===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Sizes, indices and lists that a model's data decide: the checks that they are
// what the code assumes, and their values as scalars.
//
//===----------------------------------------------------------------------===//

#ifndef SARDONYX_LIB_CONVERSION_ONNXTOLINALG_SUPPORT_CHECKS_H
#define SARDONYX_LIB_CONVERSION_ONNXTOLINALG_SUPPORT_CHECKS_H

#include "Support/Common.h"

#include "dialects/SDX/SDX.h"

namespace sardonyx {

//===----------------------------------------------------------------------===//
// Checks: what only the run can decide
//===----------------------------------------------------------------------===//

/// The name of the ONNX node, if it has one.
std::string getNodeName(mlir::Operation *op);
/// Writes what the node is called into its location, and so into the locations
/// of everything that its lowering creates. Failed checks begin with it.
void nameNode(mlir::Operation *op);

/// The run fails with `message` unless `condition` (i1) holds. {0} to {3} in
/// it stand for the `values`.
void createCheck(mlir::OpBuilder &b, mlir::Location loc, mlir::Value condition,
                 const llvm::Twine &message,
                 llvm::ArrayRef<mlir::OpFoldResult> values = {},
                 sdx::FailureKind kind = sdx::FailureKind::Failed);
/// Checks at run time, unless it is known, that two sizes are equal, or that
/// the first does not exceed the second. The message is completed by both.
void checkSameSize(mlir::OpBuilder &b, mlir::Location loc, mlir::OpFoldResult x,
                   mlir::OpFoldResult y, const llvm::Twine &message,
                   sdx::FailureKind kind = sdx::FailureKind::Failed);
void checkSizeAtMost(mlir::OpBuilder &b, mlir::Location loc,
                     mlir::OpFoldResult x, mlir::OpFoldResult limit,
                     const llvm::Twine &message);
/// Checks low <= value <= high; fails when it is known not to hold.
mlir::LogicalResult checkRange(mlir::OpBuilder &b, mlir::Location loc,
                               mlir::OpFoldResult value, int64_t low,
                               int64_t high, const llvm::Twine &message);
/// The checks that no axis is out of range or occurs twice; fails when one is
/// known to. All become non-negative.
mlir::LogicalResult checkAxes(mlir::OpBuilder &b, mlir::Location loc,
                              llvm::SmallVectorImpl<mlir::OpFoldResult> &axes,
                              int64_t rank);
/// Checks that a list (rank 1, or a scalar) has `count` elements before anybody
/// reads them; fails when it is known not to. `name` is ONNX's of the operand,
/// `kind` OtherRank where a result has as many dimensions as it has elements.
mlir::LogicalResult
checkLength(mlir::OpBuilder &b, mlir::Location loc, mlir::Value list,
            int64_t count, const llvm::Twine &name,
            sdx::FailureKind kind = sdx::FailureKind::Failed);
/// Whether a tensor of these sizes (none negative) can exist: as i1, without
/// wrapping around.
mlir::Value fitsMemory(mlir::OpBuilder &b, mlir::Location loc,
                       llvm::ArrayRef<mlir::OpFoldResult> sizes,
                       mlir::Type elementType);
/// The check of sizes that data decide, not other tensors, before a tensor of
/// that shape is made: none is negative, and the whole fits into an address
/// space.
void checkSizes(mlir::OpBuilder &b, mlir::Location loc,
                llvm::ArrayRef<mlir::OpFoldResult> sizes,
                mlir::Type elementType);

/// Values that data decide are kept within these bounds before sums and
/// products are made of them.
constexpr int64_t kMaxSize = int64_t(1) << 48;

//===----------------------------------------------------------------------===//
// Small integer tensors as scalars
//===----------------------------------------------------------------------===//

/// At most this many elements are handled as scalars.
constexpr int64_t kMaxScalarised = 16;

/// The elements of a converted tensor (rank <= 1, static, small) if they exist
/// as scalars: from tensor.from_elements or a constant. Never emits loads.
std::optional<llvm::SmallVector<mlir::Value>>
getScalarElements(mlir::OpBuilder &b, mlir::Location loc, mlir::Value tensor);

/// The `n` elements of a converted integer tensor of rank <= 1 as index values;
/// loads them at run time when they aren't known as scalars. Its length is
/// checked (see checkLength); fails when it is known to be another.
mlir::FailureOr<llvm::SmallVector<mlir::Value>>
getIntListAsIndices(mlir::OpBuilder &b, mlir::Location loc, mlir::Value tensor,
                    int64_t n, llvm::StringRef name);
/// The same, constants as attributes.
mlir::FailureOr<Sizes>
getIntListAsSizes(mlir::OpBuilder &b, mlir::Location loc, mlir::Value tensor,
                  int64_t n, llvm::StringRef name,
                  sdx::FailureKind kind = sdx::FailureKind::Failed);
/// The only element of a converted tensor, as stored. Another number of
/// elements fails the run.
mlir::Value getScalar(mlir::OpBuilder &b, mlir::Location loc,
                      mlir::Value tensor);

} // namespace sardonyx

#endif // SARDONYX_LIB_CONVERSION_ONNXTOLINALG_SUPPORT_CHECKS_H
