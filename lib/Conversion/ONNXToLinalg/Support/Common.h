//===- Common.h - What all families of lowerings share ----------*- C++ -*-===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Words used here: an *original* value or type is one of the onnx dialect; a
// *converted* one is what a lowering works on (bool is stored as i8,
// ui8 as i8 and so on). A *computed* scalar is what a body works on: i1 for
// bool, f32 for f16 and bf16, everything else as it is stored. Signedness is
// known from original types only.
//
//===----------------------------------------------------------------------===//

#ifndef SARDONYX_LIB_CONVERSION_ONNXTOLINALG_SUPPORT_COMMON_H
#define SARDONYX_LIB_CONVERSION_ONNXTOLINALG_SUPPORT_COMMON_H

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/BuiltinAttributes.h"
#include "mlir/Transforms/DialectConversion.h"
#include "llvm/ADT/StringMap.h"
#include <optional>

namespace sardonyx {

//===----------------------------------------------------------------------===//
// Types
//===----------------------------------------------------------------------===//

/// The element type in which `onnxElementType` is stored; null when it has no
/// lowering.
mlir::Type convertElementType(mlir::Type onnxElementType);

/// Whether an original element type is that of strings, which are stored as
/// handles: equal ones are equal, and that is all they can be asked.
bool isStringType(mlir::Type onnxElementType);

/// The strings that a module contains, and the handles that stand for them.
class StringLiterals {
public:
  /// 0 for the empty string, else the string's place in the list, from 1 on.
  int64_t handleOf(llvm::StringRef text);
  llvm::ArrayRef<mlir::Attribute> list() const { return texts; }

private:
  llvm::StringMap<int64_t> handles;
  llvm::SmallVector<mlir::Attribute> texts;
  friend class ONNXTypeConverter;
  mlir::MLIRContext *context = nullptr;
};

/// Converts ranked tensors of convertible element types, and sequences and
/// optionals of tensors to tensor<i64>, which holds their handle; refuses all
/// others. It also keeps what the patterns of one conversion share.
class ONNXTypeConverter : public mlir::TypeConverter {
public:
  ONNXTypeConverter();

  StringLiterals &literals(mlir::MLIRContext *context) const {
    strings.context = context;
    return strings;
  }

private:
  mutable StringLiterals strings;
};

/// The original element type of an original tensor value; null otherwise.
mlir::Type getOnnxElementType(mlir::Value original);

/// Whether an original element type is bool / an unsigned integer (bool isn't).
bool isBoolType(mlir::Type onnxElementType);
bool isUnsignedType(mlir::Type onnxElementType);

/// The type of computed scalars of an original element type.
mlir::Type getComputeType(mlir::Type onnxElementType);

/// The converted type of an original value's type; null when there is none.
mlir::RankedTensorType getConvertedType(mlir::Value original);

//===----------------------------------------------------------------------===//
// Scalars
//===----------------------------------------------------------------------===//

/// Stored scalar (element of a converted tensor) -> computed scalar. A null
/// original element type here and in createMapped means: pass it as stored.
mlir::Value loadScalar(mlir::OpBuilder &b, mlir::Location loc,
                       mlir::Value stored, mlir::Type onnxElementType);
/// Computed scalar -> stored scalar.
mlir::Value storeScalar(mlir::OpBuilder &b, mlir::Location loc,
                        mlir::Value computed, mlir::Type onnxElementType);

/// A constant of a float, integer or index type, rounded to that type.
mlir::Value createConstant(mlir::OpBuilder &b, mlir::Location loc,
                           mlir::Type type, double value);
mlir::Value createIntConstant(mlir::OpBuilder &b, mlir::Location loc,
                              mlir::Type type, int64_t value);
mlir::Value createIndex(mlir::OpBuilder &b, mlir::Location loc, int64_t value);

/// The lowest / highest value of a computed type; infinities for floats.
mlir::Value createLowest(mlir::OpBuilder &b, mlir::Location loc,
                         mlir::Type onnxElementType);
mlir::Value createHighest(mlir::OpBuilder &b, mlir::Location loc,
                          mlir::Type onnxElementType);

/// ONNX Cast from one original element type to another, on computed scalars.
/// Floats to integers truncate; out of range saturates, NaN gives 0.
mlir::Value castScalar(mlir::OpBuilder &b, mlir::Location loc,
                       mlir::Value computed, mlir::Type fromOnnx,
                       mlir::Type toOnnx);

//===----------------------------------------------------------------------===//
// Constants. All take an original or a converted value.
//===----------------------------------------------------------------------===//

/// The attribute of the onnx.Constant or arith.constant behind `value`.
mlir::ElementsAttr getConstantElements(mlir::Value value);
/// All elements, when they are known and not more than `limit`; also through
/// tensor.from_elements. Booleans are 0 and 1.
std::optional<llvm::SmallVector<int64_t>> getConstantInts(mlir::Value value,
                                                          int64_t limit = 4096);
std::optional<llvm::SmallVector<double>>
getConstantFloats(mlir::Value value, int64_t limit = 4096);
/// The scalar that fills the whole constant `value`, as stored; else null.
mlir::TypedAttr getConstantSplat(mlir::Value value);

//===----------------------------------------------------------------------===//
// Sizes. A size is an index attribute or an index value.
//===----------------------------------------------------------------------===//

using Size = mlir::OpFoldResult;
using Sizes = llvm::SmallVector<mlir::OpFoldResult>;

/// The size of one dimension of a converted tensor, traced back as far as
/// possible (through casts, destinations, equal dim_params of the function's
/// arguments), so that equal sizes are equal values more often.
Size getSize(mlir::OpBuilder &b, mlir::Location loc, mlir::Value tensor,
             int64_t dim);
Sizes getSizes(mlir::OpBuilder &b, mlir::Location loc, mlir::Value tensor);

/// True when both are certainly equal; false means unknown or different.
bool isSameSize(Size a, Size b);
/// The same value said more simply, using that no size is negative.
mlir::Value simplifySize(mlir::Value value);
/// Whether `a` is the minimum of `b` and a constant of at least 1. Then `a` is
/// 1 wherever `b` is, and broadcasting them gives `b`.
bool isMinimumWith(Size a, Size b);
/// The value if it is static.
std::optional<int64_t> getStaticSize(Size size);
/// Whether one of the sizes is known to be 0.
bool isEmptyBox(llvm::ArrayRef<mlir::OpFoldResult> sizes);
mlir::Value asIndex(mlir::OpBuilder &b, mlir::Location loc, Size size);
Size asSize(mlir::OpBuilder &b, int64_t value);

/// Arithmetic that folds constants.
Size addSizes(mlir::OpBuilder &b, mlir::Location loc, Size x, Size y);
Size subSizes(mlir::OpBuilder &b, mlir::Location loc, Size x, Size y);
Size mulSizes(mlir::OpBuilder &b, mlir::Location loc, Size x, Size y);
/// Rounds towards minus infinity; the divisor must be positive.
Size floorDivSizes(mlir::OpBuilder &b, mlir::Location loc, Size x, Size y);
Size ceilDivSizes(mlir::OpBuilder &b, mlir::Location loc, Size x, Size y);
Size productOfSizes(mlir::OpBuilder &b, mlir::Location loc,
                    llvm::ArrayRef<mlir::OpFoldResult> sizes);

/// `sizes` with each dimension replaced that `declared` states as static.
Sizes refineSizes(mlir::OpBuilder &b, llvm::ArrayRef<mlir::OpFoldResult> sizes,
                  mlir::RankedTensorType declared);

mlir::RankedTensorType getTensorType(llvm::ArrayRef<mlir::OpFoldResult> sizes,
                                     mlir::Type elementType);
/// tensor.empty of these sizes.
mlir::Value createEmpty(mlir::OpBuilder &b, mlir::Location loc,
                        llvm::ArrayRef<mlir::OpFoldResult> sizes,
                        mlir::Type elementType);
/// tensor.empty + linalg.fill with a stored scalar.
mlir::Value createFilled(mlir::OpBuilder &b, mlir::Location loc,
                         llvm::ArrayRef<mlir::OpFoldResult> sizes,
                         mlir::Value stored);

//===----------------------------------------------------------------------===//
// Whole tensors (all converted)
//===----------------------------------------------------------------------===//

/// tensor.cast when the types differ; the identity when they don't.
mlir::Value castTo(mlir::OpBuilder &b, mlir::Location loc, mlir::Value tensor,
                   mlir::Type type);
/// Looks through tensor.cast that only forgets static sizes.
mlir::Value stripCast(mlir::Value tensor);

/// The same elements in row-major order under other sizes. Constants are
/// reshaped in place; equal leading and trailing sizes stay untouched, so that
/// [B,S,768] -> [B,S,12,64] is one expand_shape.
mlir::Value reshape(mlir::OpBuilder &b, mlir::Location loc, mlir::Value tensor,
                    llvm::ArrayRef<mlir::OpFoldResult> sizes);
/// Collapses dimensions [begin, end) to one (adds a 1 when the range is empty).
mlir::Value collapseRange(mlir::OpBuilder &b, mlir::Location loc,
                          mlir::Value tensor, int64_t begin, int64_t end);
/// Adds size-1 dimensions at these positions of the result (ascending).
mlir::Value unsqueeze(mlir::OpBuilder &b, mlir::Location loc,
                      mlir::Value tensor, llvm::ArrayRef<int64_t> axes);
/// Drops dimensions, which must be of size 1 (ascending).
mlir::Value squeeze(mlir::OpBuilder &b, mlir::Location loc, mlir::Value tensor,
                    llvm::ArrayRef<int64_t> axes);
/// linalg.transpose; the operand itself for the identity permutation.
mlir::Value transpose(mlir::OpBuilder &b, mlir::Location loc,
                      mlir::Value tensor, llvm::ArrayRef<int64_t> permutation);
/// Materialises the numpy broadcast to `sizes`; the operand when nothing
/// changes.
mlir::Value broadcastTo(mlir::OpBuilder &b, mlir::Location loc,
                        mlir::Value tensor,
                        llvm::ArrayRef<mlir::OpFoldResult> sizes);
/// Copies out a box with unit or other positive static or dynamic steps.
mlir::Value slice(mlir::OpBuilder &b, mlir::Location loc, mlir::Value tensor,
                  llvm::ArrayRef<mlir::OpFoldResult> offsets,
                  llvm::ArrayRef<mlir::OpFoldResult> sizes,
                  llvm::ArrayRef<mlir::OpFoldResult> strides = {});
/// `into` with `part` in the box of `sizes` at `offsets`.
mlir::Value insertSlice(mlir::OpBuilder &b, mlir::Location loc,
                        mlir::Value part, mlir::Value into,
                        llvm::ArrayRef<mlir::OpFoldResult> offsets,
                        llvm::ArrayRef<mlir::OpFoldResult> sizes);

//===----------------------------------------------------------------------===//
// Structured bodies
//===----------------------------------------------------------------------===//

/// A converted tensor with the original element type it stands for.
struct TypedTensor {
  mlir::Value value;
  mlir::Type onnxElementType;
};

/// Original operand + its converted value.
TypedTensor getTyped(mlir::Value original, mlir::Value converted);

/// Receives and returns computed scalars.
using ScalarBody = llvm::function_ref<mlir::Value(
    mlir::OpBuilder &, mlir::Location, mlir::ValueRange)>;

/// The sizes numpy broadcasting gives, with run-time checks where two sizes may
/// disagree. Static sizes of `declared` (may be null) are trusted.
mlir::FailureOr<Sizes> broadcastSizes(mlir::OpBuilder &b, mlir::Location loc,
                                      mlir::ValueRange tensors,
                                      mlir::RankedTensorType declared);

/// The check that `tensor` broadcasts to `sizes` and makes nothing larger of
/// them; fails when it is known not to.
mlir::LogicalResult checkBroadcastsTo(mlir::OpBuilder &b, mlir::Location loc,
                                      mlir::Value tensor,
                                      llvm::ArrayRef<mlir::OpFoldResult> sizes);

/// An all-parallel linalg.generic over the numpy broadcast of `inputs`. Splat
/// constants become scalars inside the body. Fails when static sizes disagree.
/// The result's type may be more static than `declared` (may be null): use
/// replaceOp below. In the result's dimensions `sameDims` sizes that aren't
/// known to be 1 are equal.
mlir::FailureOr<mlir::Value> createElementwise(
    mlir::OpBuilder &b, mlir::Location loc, llvm::ArrayRef<TypedTensor> inputs,
    mlir::Type resultOnnxElementType, mlir::RankedTensorType declared,
    ScalarBody body, llvm::ArrayRef<int64_t> sameDims = {});

/// Like createElementwise on inputs that all have the result's sizes already,
/// or are projections of it: `maps[i]` (projected permutations of the result's
/// dims) says how to read input i.
mlir::Value createMapped(mlir::OpBuilder &b, mlir::Location loc,
                         llvm::ArrayRef<TypedTensor> inputs,
                         llvm::ArrayRef<mlir::AffineMap> maps,
                         llvm::ArrayRef<mlir::OpFoldResult> sizes,
                         mlir::Type resultOnnxElementType, ScalarBody body);

/// Reduces the `axes` (ascending) of `input`, which disappear. `body` gets the
/// loaded element and the accumulator, both of `accumulatorType`'s compute type
/// (elements are passed through `castScalar` first), and returns the next
/// accumulator. The result's elements are of `accumulatorType` as stored.
mlir::Value createReduction(mlir::OpBuilder &b, mlir::Location loc,
                            TypedTensor input, llvm::ArrayRef<int64_t> axes,
                            mlir::Type accumulatorType, mlir::Value init,
                            ScalarBody body);

//===----------------------------------------------------------------------===//
// Patterns
//===----------------------------------------------------------------------===//

/// Replaces `op`, casting each value to the converted type of its result (null
/// values are allowed for results without uses). Fails when a value's shape
/// contradicts the declared one.
mlir::LogicalResult replaceOp(mlir::ConversionPatternRewriter &rewriter,
                              const mlir::TypeConverter &converter,
                              mlir::Operation *op, mlir::ValueRange values);

/// Fails, and notes on the op why there is no lowering for this form of it:
/// what the user is told when no other pattern takes it. `isForGood`: no sizes
/// and values of inputs could help.
mlir::LogicalResult refuse(mlir::Operation *op, const llvm::Twine &why,
                           bool isForGood = false);
/// Notes on an op that no pattern has taken yet that the model is wrong, and
/// why, or if `what` is empty that it is not. That is what the user is told
/// then.
void noteContradiction(mlir::Operation *op, llvm::StringRef what);

/// A negative axis counted from the end; fails when out of range.
mlir::FailureOr<int64_t> normalizeAxis(int64_t axis, int64_t rank);
mlir::FailureOr<llvm::SmallVector<int64_t>>
normalizeAxes(llvm::ArrayRef<int64_t> axes, int64_t rank);

} // namespace sardonyx

#endif // SARDONYX_LIB_CONVERSION_ONNXTOLINALG_SUPPORT_COMMON_H
