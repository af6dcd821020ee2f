//===- LSTM.cpp - LSTM ----------------------------------------------------===//

#include "Contraction/Products.h"
#include "Patterns.h"
#include "Recurrent/Gates.h"
#include "Support/Lowering.h"
#include "dialects/ONNX/ONNX.h"

using namespace mlir;

namespace sardonyx {
namespace {

/// Gates in the order of the weights.
enum Gate { InputGate, OutputGate, ForgetGate, CellGate };

/// What one direction needs in its loop.
struct Direction {
  Value projections[4], weights[4], peepholes[3];
  Activation f, g, h;
};

/// A gate's argument without peephole: the state's product and the projection.
struct GateTerms {
  Value product, projection;
};

GateTerms createTerms(TensorBuilder &s, const Direction &direction, Gate gate,
                      Value time, Value hiddenState) {
  return {createMatMul2D(s, hiddenState, direction.weights[gate]),
          s.subTensor(direction.projections[gate], 0, time)};
}

/// A gate that looks at the state of the cell only through its peephole.
Value createGate(TensorBuilder &s, RecurrentBuilder &r,
                 const Direction &direction, Gate gate, Value time,
                 Value hiddenState, Value cellState) {
  GateTerms terms = createTerms(s, direction, gate, time, hiddenState);
  Value peephole = direction.peepholes[gate];
  SmallVector<Value> states{terms.product, terms.projection}, vectors;
  if (peephole) {
    states.push_back(cellState);
    vectors.push_back(peephole);
  }
  return r
      .cellwise(s, states, vectors, 1,
                [&](TensorBuilder &body, ValueRange x) -> SmallVector<Value> {
                  Value sum = body.add(x[0], x[1]);
                  if (peephole)
                    sum = body.add(sum, body.mul(x[2], x[3]));
                  return {direction.f.apply(body, r.clip(body, sum))};
                })
      .front();
}

SmallVector<Value> createStep(TensorBuilder &s, RecurrentBuilder &r,
                              const Direction &direction, bool coupled,
                              Value time, ValueRange states) {
  Value hiddenState = states[0], cellState = states[1];
  Value input =
      createGate(s, r, direction, InputGate, time, hiddenState, cellState);
  SmallVector<Value> inputs{cellState, input};
  if (!coupled)
    inputs.push_back(
        createGate(s, r, direction, ForgetGate, time, hiddenState, cellState));
  GateTerms cell = createTerms(s, direction, CellGate, time, hiddenState);
  inputs.insert(inputs.begin(), {cell.product, cell.projection});
  Value nextCell =
      r.cellwise(s, inputs, {}, 1,
                 [&](TensorBuilder &body, ValueRange x) -> SmallVector<Value> {
                   Value candidate = direction.g.apply(
                       body, r.clip(body, body.add(x[0], x[1])));
                   Value forget =
                       coupled ? body.sub(body.scalar(x[3].getType(), 1), x[3])
                               : x[4];
                   return {body.add(body.mul(forget, x[2]),
                                    body.mul(x[3], candidate))};
                 })
          .front();

  // The output gate sees the new cell state.
  GateTerms terms = createTerms(s, direction, OutputGate, time, hiddenState);
  Value peephole = direction.peepholes[OutputGate];
  SmallVector<Value> vectors;
  if (peephole)
    vectors.push_back(peephole);
  Value nextHidden =
      r.cellwise(s, {terms.product, terms.projection, nextCell}, vectors, 1,
                 [&](TensorBuilder &body, ValueRange x) -> SmallVector<Value> {
                   Value sum = body.add(x[0], x[1]);
                   if (peephole)
                     sum = body.add(sum, body.mul(x[2], x[3]));
                   Value gate = direction.f.apply(body, r.clip(body, sum));
                   return {body.mul(gate, direction.h.apply(body, x[2]))};
                 })
          .front();
  return {nextHidden, nextCell};
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
    return b.refuse("unknown activation function");

  Type element = elementTypeOf(b.in.getX());
  Value peepholes = b.in.getP();
  if (peepholes)
    peepholes = b.convertElements(peepholes, getAccumulatorType(element));
  for (int64_t d = 0; d < r->getDirections(); ++d) {
    Direction direction;
    for (int64_t gate = 0; gate < 4; ++gate) {
      direction.projections[gate] = r->getProjection(d, gate, true);
      direction.weights[gate] = r->getStateWeights(d, gate);
      if (gate < 3)
        direction.peepholes[gate] =
            peepholes ? r->getGateVector(peepholes, d, gate) : Value();
    }
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
