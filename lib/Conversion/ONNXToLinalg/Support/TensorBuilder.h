//===- TensorBuilder.h - Builds linalg on tensors tersely -------*- C++ -*-===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A fluent front of Common.h for conversions that are long computations rather
// than one loop nest (contractions, convolutions, pools, recurrent cells,
// resampling): the builder knows its location, sizes fold, bodies are lambdas.
//
//===----------------------------------------------------------------------===//

#ifndef SARDONYX_LIB_CONVERSION_ONNXTOLINALG_SUPPORT_TENSORBUILDER_H
#define SARDONYX_LIB_CONVERSION_ONNXTOLINALG_SUPPORT_TENSORBUILDER_H

#include "Support/Common.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Utils/ReshapeOpsUtils.h"
#include "mlir/Dialect/Utils/StructuredOpsUtils.h"
#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"

namespace sardonyx {

class TensorBuilder : public mlir::ImplicitLocOpBuilder {
public:
  using Value = mlir::Value;
  using Type = mlir::Type;
  using OpFoldResult = mlir::OpFoldResult;
  using Body = llvm::function_ref<llvm::SmallVector<Value>(TensorBuilder &,
                                                           mlir::ValueRange)>;
  using mlir::ImplicitLocOpBuilder::ImplicitLocOpBuilder;

  //===--- Sizes ----------------------------------------------------------===//

  OpFoldResult size(int64_t value) { return getIndexAttr(value); }
  Value index(OpFoldResult size);
  Value index(int64_t value) { return index(size(value)); }
  OpFoldResult dim(Value tensor, int64_t dim);
  Sizes dims(Value tensor);
  OpFoldResult plus(OpFoldResult a, OpFoldResult b);
  OpFoldResult plus(OpFoldResult a, int64_t b) { return plus(a, size(b)); }
  OpFoldResult minus(OpFoldResult a, OpFoldResult b);
  OpFoldResult times(OpFoldResult a, OpFoldResult b);
  OpFoldResult times(OpFoldResult a, int64_t b) { return times(a, size(b)); }
  /// Division that rounds towards minus infinity, or up; `b` is positive.
  OpFoldResult floorDiv(OpFoldResult a, OpFoldResult b);
  OpFoldResult ceilDiv(OpFoldResult a, OpFoldResult b);
  OpFoldResult atLeast(OpFoldResult a, int64_t b);
  OpFoldResult product(llvm::ArrayRef<OpFoldResult> sizes);
  /// The run fails with `message` unless the sizes are equal. Returns the one
  /// that is known when compiling, or null when they are known to differ, which
  /// is noted as a contradiction.
  OpFoldResult sameSize(OpFoldResult a, OpFoldResult b,
                        const llvm::Twine &message);
  /// The size that numpy broadcasting makes of two. The run fails with
  /// `message` unless they are equal or one of them is 1; null when it is known
  /// that it would, which is noted as a contradiction.
  OpFoldResult broadcastSize(OpFoldResult a, OpFoldResult b,
                             const llvm::Twine &message);

  /// What is known when compiling and can be in no sound model, as a sentence
  /// without its full stop; empty if there is nothing.
  const std::string &contradiction() const { return contradictionText; }
  void contradict(const llvm::Twine &what) { contradictionText = what.str(); }

  //===--- Scalars --------------------------------------------------------===//

  Value scalar(Type type, double value);
  Value integer(Type type, int64_t value);
  Value zero(Type type);
  /// The least value of a type: -inf for floats.
  Value lowest(Type type, bool isUnsigned);
  Value add(Value a, Value b);
  Value sub(Value a, Value b);
  Value mul(Value a, Value b);
  Value maximum(Value a, Value b, bool isUnsigned = false);
  Value minimum(Value a, Value b, bool isUnsigned = false);
  /// Comparison of index or signed integer values.
  Value compare(mlir::arith::CmpIPredicate predicate, Value a, Value b);
  /// Ordered comparison of floats, signed or unsigned comparison of integers.
  Value greater(Value a, Value b, bool isUnsigned = false);
  Value select(Value condition, Value a, Value b);
  /// Widens, narrows, or converts between index, integers and floats.
  Value convert(Value value, Type type, bool isUnsigned = false);
  Value extract(Value tensor, mlir::ValueRange indices);

  //===--- Tensors --------------------------------------------------------===//

  Value empty(llvm::ArrayRef<OpFoldResult> sizes, Type elementType);
  Value filled(llvm::ArrayRef<OpFoldResult> sizes, Value scalar);
  Value zeros(llvm::ArrayRef<OpFoldResult> sizes, Type elementType) {
    return filled(sizes, zero(elementType));
  }
  Value cast(Value tensor, Type type);
  Value collapse(Value tensor,
                 llvm::ArrayRef<mlir::ReassociationIndices> groups);
  Value expand(Value tensor, llvm::ArrayRef<mlir::ReassociationIndices> groups,
               llvm::ArrayRef<OpFoldResult> sizes);
  /// A unit-stride slice without the dimensions in `dropped` (of size 1).
  Value slice(Value tensor, llvm::ArrayRef<OpFoldResult> offsets,
              llvm::ArrayRef<OpFoldResult> sizes,
              llvm::ArrayRef<int64_t> dropped = {});
  /// `tensor[index]` along `dim`, without that dimension.
  Value subTensor(Value tensor, int64_t dim, OpFoldResult index);
  Value insert(Value part, Value into, llvm::ArrayRef<OpFoldResult> offsets,
               llvm::ArrayRef<OpFoldResult> sizes);
  /// Low and high borders of `value`; returns `tensor` when all are zero.
  Value pad(Value tensor, llvm::ArrayRef<OpFoldResult> low,
            llvm::ArrayRef<OpFoldResult> high, Value value);
  Value transpose(Value tensor, llvm::ArrayRef<int64_t> permutation);
  Value reshape(Value tensor, llvm::ArrayRef<OpFoldResult> sizes);
  Value broadcast(Value tensor, llvm::ArrayRef<OpFoldResult> sizes);
  /// The tensor with element type `type`, computed element by element.
  Value convertElements(Value tensor, Type type, bool isUnsigned = false);

  llvm::SmallVector<Value>
  generic(mlir::ValueRange inputs, mlir::ValueRange inits,
          llvm::ArrayRef<mlir::AffineMap> maps,
          llvm::ArrayRef<mlir::utils::IteratorType> iterators, Body body);
  /// An all-parallel generic over `sizes` whose results have identity maps.
  /// Each input comes with its map.
  llvm::SmallVector<Value>
  elementwise(llvm::ArrayRef<OpFoldResult> sizes, mlir::ValueRange inputs,
              llvm::ArrayRef<mlir::AffineMap> inputMaps,
              llvm::ArrayRef<Type> elementTypes, Body body);
  /// The same when all inputs have the result's shape.
  Value map(mlir::ValueRange inputs, Type elementType, Body body);

  mlir::AffineMap identityMap(int64_t rank) {
    return getMultiDimIdentityMap(rank);
  }
  /// (d0 ... d(rank-1)) -> (dims...)
  mlir::AffineMap dimsMap(int64_t rank, llvm::ArrayRef<int64_t> dims);

private:
  std::string contradictionText;
};

/// The ranked type of a tensor value.
inline mlir::RankedTensorType rankedType(mlir::Value value) {
  return llvm::cast<mlir::RankedTensorType>(value.getType());
}
inline mlir::Type elementTypeOf(mlir::Value value) {
  return rankedType(value).getElementType();
}
/// Whether an op has its `index`-th result and somebody reads it.
inline bool isResultUsed(mlir::Operation *op, unsigned index) {
  return index < op->getNumResults() && !op->getResult(index).use_empty();
}
/// {{first ... first + count - 1}} appended to `groups` as one group.
void appendGroup(llvm::SmallVectorImpl<mlir::ReassociationIndices> &groups,
                 int64_t first, int64_t count);

} // namespace sardonyx

#endif // SARDONYX_LIB_CONVERSION_ONNXTOLINALG_SUPPORT_TENSORBUILDER_H
