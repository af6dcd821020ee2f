//===- LSTM.cpp - LSTM ----------------------------------------------------===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Contraction/Products.h"
#include "Recurrent/Gates.h"
#include "Support/Lowering.h"
#include "Support/Patterns.h"
#include "dialects/ONNX/ONNX.h"

using namespace mlir;

namespace sardonyx {
namespace {

/// Gates in the order of the weights.
enum Gate { InputGate, OutputGate, ForgetGate, CellGate };

/// What one direction needs in its loop: projections and weights of all gates.
struct Direction {
  Value projections, weights, peepholes[3];
  Activation f, g, h;
};

/// One product for all gates, which threads meet at once for, and one
/// computation for all of the cell.
SmallVector<Value> createStep(TensorBuilder &s, RecurrentBuilder &r,
                              const Direction &direction, bool coupled,
                              Value time, ValueRange states) {
  Value product = createMatMul2D(s, states[0], direction.weights);
  SmallVector<Value> inputs{states[1]}, vectors;
  for (Gate gate : {InputGate, OutputGate, ForgetGate, CellGate}) {
    inputs.push_back(r.getGate(s, product, gate));
    inputs.push_back(r.getGate(s, direction.projections, gate, time));
  }
  bool hasPeepholes = direction.peepholes[0] != nullptr;
  if (hasPeepholes)
    vectors.append(std::begin(direction.peepholes),
                   std::end(direction.peepholes));
  return r.cellwise(
      s, inputs, vectors, 2,
      [&](TensorBuilder &body, ValueRange x) -> SmallVector<Value> {
        auto sum = [&](Gate gate) {
          return body.add(x[1 + 2 * gate], x[2 + 2 * gate]);
        };
        auto apply = [&](Gate gate, Value cell) {
          Value argument = sum(gate);
          if (hasPeepholes)
            argument =
                body.add(argument, body.mul(cell, x[inputs.size() + gate]));
          return direction.f.apply(body, r.clip(body, argument));
        };
        Value cell = x[0], input = apply(InputGate, cell);
        Value forget = coupled
                           ? body.sub(body.scalar(input.getType(), 1), input)
                           : apply(ForgetGate, cell);
        Value candidate = direction.g.apply(body, r.clip(body, sum(CellGate)));
        Value next =
            body.add(body.mul(forget, cell), body.mul(input, candidate));
        // The output gate sees the new cell state.
        Value hidden =
            body.mul(apply(OutputGate, next), direction.h.apply(body, next));
        return {hidden, next};
      });
}

LogicalResult lowerLSTM(Lowering<onnx::LSTMOp> &b) {
  RecurrentOperands operands;
  operands.input = b.in.getX();
  operands.inputWeights = b.in.getW();
  operands.stateWeights = b.in.getR();
  operands.bias = b.in.getB();
  operands.lengths = b.in.getSequenceLens();
  operands.initialHidden = b.in.getInitialH();
  operands.initialCell = b.in.getInitialC();
  operands.peepholes = b.in.getP();
  operands.gates = 4;
  operands.direction = b.op.getDirection();
  operands.batchFirst = b.op.getLayout() != 0;
  if (b.op.getClip())
    operands.clip = b.op.getClip()->convertToFloat();
  StringRef why;
  FailureOr<RecurrentBuilder> r = RecurrentBuilder::create(b, operands, why);
  if (failed(r))
    return b.refuse(why);
  FailureOr<SmallVector<Activation>> activations =
      getActivations(b.op.getActivations(), b.op.getActivationAlpha(),
                     b.op.getActivationBeta(),
                     {Activation::Sigmoid, Activation::Tanh, Activation::Tanh},
                     r->getDirections());
  if (failed(activations))
    return b.refuseAlways("unknown activation function");

  Type element = elementTypeOf(b.in.getX());
  Value peepholes = b.in.getP();
  if (peepholes)
    peepholes = b.convertElements(peepholes, getAccumulatorType(element));
  for (int64_t d = 0; d < r->getDirections(); ++d) {
    Direction direction;
    direction.projections = r->getProjection(d, 0, true, operands.gates);
    direction.weights = r->getStateWeights(d, 0, operands.gates);
    for (int64_t gate = 0; peepholes && gate < 3; ++gate)
      direction.peepholes[gate] = r->getGateVector(peepholes, d, gate);
    direction.f = (*activations)[3 * d];
    direction.g = (*activations)[3 * d + 1];
    direction.h = (*activations)[3 * d + 2];
    bool coupled = b.op.getInputForget() != 0;
    r->run(d,
           {r->getInitialState(b.in.getInitialH(), d),
            r->getInitialState(b.in.getInitialC(), d)},
           [&](TensorBuilder &s, Value time, ValueRange states) {
             return createStep(s, *r, direction, coupled, time, states);
           });
  }
  return b.replace(
      r->getResults({b.op.getY(), b.op.getYH(), b.op.getYC()}, element));
}

} // namespace

void populateLSTMPatterns(const TypeConverter &converter,
                          RewritePatternSet &patterns) {
  addLowering<onnx::LSTMOp, lowerLSTM>(patterns, converter);
}

} // namespace sardonyx
