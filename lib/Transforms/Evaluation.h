//===- Evaluation.h - Operators on small known tensors ----------*- C++ -*-===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// One table from operators to functions that compute their results from what is
// known of the operands. A function says nothing where an operand that it needs
// is not known, or where ONNX leaves the result open.
//
//===----------------------------------------------------------------------===//

#ifndef SARDONYX_LIB_TRANSFORMS_EVALUATION_H
#define SARDONYX_LIB_TRANSFORMS_EVALUATION_H

#include "ShapeValues.h"

namespace sardonyx {

/// One result that is being evaluated.
struct Evaluation {
  ShapeEvaluator &evaluator;
  mlir::OpResult result;

  /// What is known of an operand; null if nothing is, or if it is left out.
  const ShapeTensor *get(mlir::Value operand) const {
    return operand ? evaluator.getTensor(operand) : nullptr;
  }
  /// The elements of an operand if all are known integers.
  std::optional<llvm::SmallVector<int64_t>>
  getIntegers(mlir::Value operand) const;
  /// The one element of an operand, if it has one.
  std::optional<ShapeElement> getSingle(mlir::Value operand) const;
  /// The element type of a value; null if it is no tensor.
  static mlir::Type getElementType(mlir::Value value);
  mlir::Type getResultElementType() const { return getElementType(result); }
};

class EvaluationTable {
public:
  using Function = std::optional<ShapeTensor> (*)(const Evaluation &,
                                                  mlir::Operation *);

  template <typename OpT, auto function> void add() {
    rows[mlir::TypeID::get<OpT>()] = [](const Evaluation &evaluation,
                                        mlir::Operation *op) {
      return function(evaluation, mlir::cast<OpT>(op));
    };
  }
  Function lookup(mlir::Operation *op) const {
    return rows.lookup(op->getName().getTypeID());
  }
  static const EvaluationTable &get();

private:
  llvm::DenseMap<mlir::TypeID, Function> rows;
};

// The families of the table.
void addElementwiseEvaluations(EvaluationTable &table);
void addMovementEvaluations(EvaluationTable &table);
void addIndexedEvaluations(EvaluationTable &table);
void addReductionEvaluations(EvaluationTable &table);

//===----------------------------------------------------------------------===//
// Elements
//===----------------------------------------------------------------------===//

/// The sum, maximum and minimum of integers or booleans.
ShapeElement addElements(ShapeElement a, ShapeElement b);
ShapeElement getLarger(ShapeElement a, ShapeElement b);
ShapeElement getSmaller(ShapeElement a, ShapeElement b);

/// Whether elements of this type are evaluated.
bool isEvaluated(mlir::Type elementType);
/// An element as one of `type`: unknown if an integer does not fit, rounded if
/// it is a float.
ShapeElement fitElement(ShapeElement element, mlir::Type type);
/// An element of type `from` as Cast makes it one of type `to`.
ShapeElement castElement(ShapeElement element, mlir::Type from, mlir::Type to);

//===----------------------------------------------------------------------===//
// Shapes
//===----------------------------------------------------------------------===//

/// `index` from the front; nothing if it is out of range.
std::optional<int64_t> fromFront(int64_t index, int64_t size);
/// The number of elements; nothing if there are more than are evaluated or a
/// size is negative.
std::optional<int64_t> countElements(llvm::ArrayRef<int64_t> shape);
/// The shape that shapes broadcast to.
std::optional<llvm::SmallVector<int64_t>>
broadcastShapes(llvm::ArrayRef<llvm::ArrayRef<int64_t>> shapes);
/// Where each element of a tensor of shape `to` comes from in one of shape
/// `from` that is broadcast to it.
llvm::SmallVector<int64_t> getBroadcastPlaces(llvm::ArrayRef<int64_t> from,
                                              llvm::ArrayRef<int64_t> to);
/// The place of `index` in row-major order.
int64_t getPlace(llvm::ArrayRef<int64_t> index, llvm::ArrayRef<int64_t> shape);
/// Calls `body` for each index in row-major order.
void forEachIndex(llvm::ArrayRef<int64_t> shape,
                  llvm::function_ref<void(llvm::ArrayRef<int64_t>)> body);

/// A tensor of `shape` whose element at each index is what `body` says; nothing
/// if it is too large.
std::optional<ShapeTensor>
makeTensor(llvm::ArrayRef<int64_t> shape,
           llvm::function_ref<ShapeElement(llvm::ArrayRef<int64_t>)> body);

} // namespace sardonyx

#endif // SARDONYX_LIB_TRANSFORMS_EVALUATION_H
