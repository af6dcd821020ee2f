//===- Gates.h - What LSTM, GRU and RNN share -------------------*- C++ -*-===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The products with the input do not depend on the state and are computed for
// all time steps at once. The loop over time then does, for each gate, one
// product with the state whose epilogue is the gate's element-wise part. Gates
// are separate products, because their slices of a common one would not lie
// contiguously.
//
//===----------------------------------------------------------------------===//

#ifndef SARDONYX_LIB_CONVERSION_ONNXTOLINALG_RECURRENT_GATES_H
#define SARDONYX_LIB_CONVERSION_ONNXTOLINALG_RECURRENT_GATES_H

#include "Support/TensorBuilder.h"

namespace sardonyx {

/// An activation function with its parameters.
struct Activation {
  enum Kind {
    Relu,
    Tanh,
    Sigmoid,
    Affine,
    LeakyRelu,
    ThresholdedRelu,
    ScaledTanh,
    HardSigmoid,
    Elu,
    Softsign,
    Softplus
  };
  Kind kind;
  double alpha = 0, beta = 0;

  mlir::Value apply(TensorBuilder &b, mlir::Value x) const;
};

/// `count` functions: those of the attributes, or `defaults` repeated for each
/// direction. Fails on an unknown name or a list that is too short.
mlir::FailureOr<llvm::SmallVector<Activation>>
getActivations(std::optional<mlir::ArrayAttr> names,
               std::optional<llvm::ArrayRef<float>> alphas,
               std::optional<llvm::ArrayRef<float>> betas,
               llvm::ArrayRef<Activation::Kind> defaults, int64_t directions);

/// Converted operands and attributes of a recurrent op; optional ones may be
/// null.
struct RecurrentOperands {
  mlir::Value input, inputWeights, stateWeights, bias, lengths;
  mlir::Value initialHidden, initialCell, peepholes;
  int64_t gates = 1;
  llvm::StringRef direction;
  bool batchFirst = false;
  std::optional<double> clip;
};

class RecurrentBuilder {
public:
  using Value = mlir::Value;
  /// Gets the time index and the states (each [batch, hidden]), the hidden
  /// state first; returns the next states.
  using Step = llvm::function_ref<llvm::SmallVector<Value>(
      TensorBuilder &, Value time, mlir::ValueRange states)>;
  /// Gets scalars and returns scalars.
  using Body = TensorBuilder::Body;

  /// Fails, with a reason in `why`, when shapes are unknown or do not fit.
  static mlir::FailureOr<RecurrentBuilder>
  create(TensorBuilder &b, const RecurrentOperands &operands,
         llvm::StringRef &why);

  int64_t getDirections() const { return directions; }
  /// Input of all time steps times the weights of `count` gates, with the
  /// gates' biases: [time, batch, count * hidden].
  Value getProjection(int64_t direction, int64_t gate, bool withStateBias,
                      int64_t count = 1);
  /// The weights of the state of `count` gates, transposed:
  /// [hidden, count * hidden].
  Value getStateWeights(int64_t direction, int64_t gate, int64_t count = 1);
  /// A gate's part of what gates have beside each other at a time:
  /// [batch, gates * hidden] or [time, batch, gates * hidden].
  Value getGate(TensorBuilder &b, Value gates, int64_t gate, Value time = {});
  /// A gate's bias of the state: [hidden]; null when there is none.
  Value getStateBias(int64_t direction, int64_t gate);
  /// The slice of `count` gates of [directions, gates * hidden]:
  /// [count * hidden].
  Value getGateVector(Value tensor, int64_t direction, int64_t gate,
                      int64_t count = 1);
  /// The state to begin with, zeros if `initial` is null.
  Value getInitialState(Value initial, int64_t direction);

  /// An element-wise computation over [batch, hidden] on `states` of that shape
  /// and `vectors` of shape [hidden], in that order, with `results` results.
  llvm::SmallVector<Value> cellwise(TensorBuilder &b, mlir::ValueRange states,
                                    mlir::ValueRange vectors, int64_t results,
                                    Body body);
  /// The argument of an activation, within the clip threshold.
  Value clip(TensorBuilder &b, Value x);

  /// Steps through time in a direction. Where a sequence has ended, states stay
  /// as they are and the output is zero. A sequence of no steps has no last
  /// state: that is zero, as for onnxruntime.
  void run(int64_t direction, mlir::ValueRange initialStates, Step step);

  /// After all directions ran: the output and the final states in the op's
  /// layout, of `elementType`. `declared` are the op's results, null for those
  /// it does not have; a value is null for one that it has and nobody uses.
  llvm::SmallVector<Value> getResults(llvm::ArrayRef<Value> declared,
                                      mlir::Type elementType);

private:
  Value getOutput(mlir::Type elementType);
  Value getFinalState(int64_t state, mlir::Type elementType);
  explicit RecurrentBuilder(TensorBuilder &b, const RecurrentOperands &operands)
      : b(b), ops(operands) {}
  llvm::SmallVector<Value> keepEnded(TensorBuilder &s, Value time,
                                     mlir::ValueRange before,
                                     mlir::ValueRange after);
  /// The final states, zero for sequences of no steps.
  llvm::SmallVector<Value> clearEmpty(mlir::ValueRange states);

  TensorBuilder &b;
  RecurrentOperands ops;
  mlir::Type type;
  int64_t directions = 1, hidden = 0;
  mlir::OpFoldResult time, batch;
  Value flatInput;
  Value output;
  llvm::SmallVector<llvm::SmallVector<Value>> finalStates;
};

} // namespace sardonyx

#endif // SARDONYX_LIB_CONVERSION_ONNXTOLINALG_RECURRENT_GATES_H
