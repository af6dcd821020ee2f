//===- Recurrent.cpp - DynamicQuantizeLSTM --------------------------------===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "lib/Contrib/Body.h"

#include "llvm/ADT/STLExtras.h"

using ::onnx::TensorProto;

namespace sardonyx::contrib {
namespace {

/// An activation of gates, with its parameters.
struct Activation {
  std::string name;
  float alpha, beta;
};

/// What an activation takes from the lists of parameters where these go on, and
/// otherwise.
struct ActivationForm {
  llvm::StringLiteral name;
  bool hasAlpha, hasBeta;
  float alpha, beta;
};

constexpr ActivationForm kForms[] = {
    {"affine", true, true, 1, 0},
    {"elu", true, false, 1, 0},
    {"hardsigmoid", true, true, 0.2f, 0.5f},
    {"leakyrelu", true, false, 0.01f, 0},
    {"relu", false, false, 0, 0},
    {"scaledtanh", true, true, 1, 1},
    {"sigmoid", false, false, 0, 0},
    {"softplus", false, false, 0, 0},
    {"softsign", false, false, 0, 0},
    {"tanh", false, false, 0, 0},
    {"thresholdedrelu", true, false, 1, 0},
};

class QuantizedLSTM {
public:
  explicit QuantizedLSTM(Body &b) : b(b), hidden(b.getInt("hidden_size")) {
    std::string direction = b.getString("direction");
    if (direction != "forward" && direction != "reverse" &&
        direction != "bidirectional")
      b.refuse("direction '" + llvm::Twine(direction) + "' is not known");
    directions = direction == "bidirectional" ? 2 : 1;
    isReverse = direction == "reverse";
    if (hidden < 1 || hidden > (1 << 28))
      b.refuse("hidden_size is " + llvm::Twine(hidden));
    if (b.given("clip") && !(b.getFloat("clip") > 0))
      b.refuse("clip is not positive");
    for (auto [input, rank] :
         {std::pair("X", 3), std::pair("W", 3), std::pair("R", 3)})
      if (b.requireRank(input) != rank)
        b.refuse("input '" + llvm::Twine(input) + "' has rank " +
                 llvm::Twine(b.requireRank(input)) + ", not " +
                 llvm::Twine(rank));
    takeActivations();
  }

  void build() {
    Name x = b.in("X");
    if (b.has("sequence_lens")) {
      lengths = b.cast(b.in("sequence_lens"), TensorProto::INT64);
      steps = b.iota(b.sizeOf(x, 0));
      // What lies behind the longest sequence has no part in the range of X.
      Name longest = b.op("ReduceMax", {lengths}, {{"keepdims", 0}});
      Name isRead = b.unsqueeze(b.op("Less", {steps, longest}), {1, 2});
      x = b.op("Where", {isRead, x, zero()});
    }
    Names quantized = b.op(3, "DynamicQuantizeLinear", {x});
    Names outputs[3];
    for (int64_t d = 0; d < directions; ++d) {
      Names results = buildDirection(d, quantized);
      for (int i = 0; i < 3; ++i)
        outputs[i].push_back(b.unsqueeze(results[i], {i == 0 ? 1 : 0}));
    }
    const char *names[] = {"Y", "Y_h", "Y_c"};
    for (int i = 0; i < 3; ++i)
      if (b.wants(names[i]))
        b.give(names[i], b.concat(outputs[i], i == 0 ? 1 : 0));
  }

private:
  void takeActivations() {
    std::vector<std::string> names = b.getStrings("activations");
    if (names.empty())
      for (int64_t d = 0; d < directions; ++d)
        names.insert(names.end(), {"sigmoid", "tanh", "tanh"});
    if (int64_t(names.size()) != 3 * directions)
      b.refuse("there are " + llvm::Twine(names.size()) + " activations for " +
               llvm::Twine(directions) + " directions");
    std::vector<float> alphas = b.getFloats("activation_alpha"),
                       betas = b.getFloats("activation_beta");
    size_t nextAlpha = 0, nextBeta = 0;
    for (const std::string &given : names) {
      std::string name = llvm::StringRef(given).lower();
      auto form = llvm::find_if(
          kForms, [&](const ActivationForm &f) { return f.name == name; });
      if (form == std::end(kForms))
        b.refuse("activation '" + llvm::Twine(given) + "' is not known");
      Activation activation{name, form->alpha, form->beta};
      if (form->hasAlpha && nextAlpha < alphas.size())
        activation.alpha = alphas[nextAlpha++];
      if (form->hasBeta && nextBeta < betas.size())
        activation.beta = betas[nextBeta++];
      activations.push_back(activation);
    }
  }

  Name zero() { return number(0); }
  Name number(float value) { return b.scalar(value, TensorProto::FLOAT); }

  Name activate(const Activation &activation, const Name &x) {
    llvm::StringRef name = activation.name;
    Name alpha = number(activation.alpha), beta = number(activation.beta);
    if (name == "affine")
      return b.add(b.mul(alpha, x), beta);
    if (name == "scaledtanh")
      return b.mul(alpha, b.op("Tanh", {b.mul(beta, x)}));
    if (name == "hardsigmoid")
      return b.op("HardSigmoid", {x},
                  {{"alpha", activation.alpha}, {"beta", activation.beta}});
    if (name == "elu")
      return b.op("Elu", {x}, {{"alpha", activation.alpha}});
    if (name == "leakyrelu")
      return b.op("LeakyRelu", {x}, {{"alpha", activation.alpha}});
    if (name == "thresholdedrelu")
      return b.op("ThresholdedRelu", {x}, {{"alpha", activation.alpha}});
    if (name == "relu")
      return b.op("Relu", {x});
    if (name == "sigmoid")
      return b.op("Sigmoid", {x});
    if (name == "softplus")
      return b.op("Softplus", {x});
    if (name == "softsign")
      return b.op("Softsign", {x});
    return b.op("Tanh", {x});
  }

  Name clip(const Name &x) {
    if (!b.given("clip"))
      return x;
    float most = b.getFloat("clip");
    return b.op("Clip", {x, number(-most), number(most)});
  }

  /// Of one direction: an input's part, empty where the input is left out.
  Name part(llvm::StringRef input, int64_t direction) {
    return b.has(input) ? b.op("Gather", {b.in(input), b.integer(direction)})
                        : Name();
  }

  /// A quarter or third of the last axis.
  Name gate(const Name &value, int64_t index) {
    return b.slice(value, index * hidden, (index + 1) * hidden, -1);
  }

  /// The products of numbers that DynamicQuantizeLinear made with the weights,
  /// whose scale and zero point are one or one for each column.
  Name product(const Names &quantized, const Name &weights, const Name &scale,
               const Name &zeroPoint) {
    Name sums =
        b.op("MatMulInteger", {quantized[0], weights, quantized[2], zeroPoint});
    return b.mul(b.cast(sums, TensorProto::FLOAT), b.mul(quantized[1], scale));
  }

  Name initialState(llvm::StringRef input, int64_t direction) {
    if (b.has(input))
      return part(input, direction);
    Name shape = b.concat({b.sizeOf(b.in("X"), 1), b.ints({hidden})}, 0);
    return b.op("Expand", {zero(), shape});
  }

  /// Turns the part of each sequence that counts the other way round.
  Name turn(const Name &value) {
    Name counted = b.op("Max", {lengths, b.integer(1)});
    return b.op("ReverseSequence", {value, counted},
                {{"time_axis", 0}, {"batch_axis", 1}});
  }

  /// Weights and the like that all steps of a direction share.
  struct Shared {
    Name weights, scale, zeroPoint, bias, peepholes[3];
    const Activation *functions;
  };

  /// The next hidden and cell states [B, hidden] of `gates` [B, 4 * hidden].
  std::pair<Name, Name> cell(const Shared &shared, const Name &gates,
                             const Name &before) {
    enum { Input, Output, Forget, Cell };
    const Activation *f = shared.functions;
    auto apply = [&](int which, const Activation &function, const Name &seen) {
      Name sum = gate(gates, which);
      if (which != Cell && !shared.peepholes[which].empty())
        sum = b.add(sum, b.mul(seen, shared.peepholes[which]));
      return activate(function, clip(sum));
    };
    Name input = apply(Input, f[0], before);
    Name forget = b.getInt("input_forget") ? b.sub(number(1), input)
                                           : apply(Forget, f[0], before);
    Name candidate = apply(Cell, f[1], "");
    Name next = b.add(b.mul(forget, before), b.mul(input, candidate));
    // The output gate sees the new cell state.
    Name hiddenState = b.mul(apply(Output, f[0], next), activate(f[2], next));
    return {hiddenState, next};
  }

  /// Y [T, B, hidden], Y_h and Y_c [B, hidden].
  Names buildDirection(int64_t d, Names quantized) {
    bool isBackwards = isReverse || d == 1, hasLengths = !lengths.empty();
    if (isBackwards && hasLengths)
      quantized[0] = turn(quantized[0]);
    Shared shared;
    shared.weights = part("R", d);
    shared.scale = part("R_scale", d);
    shared.zeroPoint = part("R_zero_point", d);
    shared.functions = &activations[3 * d];
    Name gates = product(quantized, part("W", d), part("W_scale", d),
                         part("W_zero_point", d));
    if (b.has("B")) {
      Name both = part("B", d);
      gates = b.add(gates, b.add(b.slice(both, 0, 4 * hidden, 0),
                                 b.slice(both, 4 * hidden, 8 * hidden, 0)));
    }
    for (int i = 0; b.has("P") && i < 3; ++i)
      shared.peepholes[i] = gate(part("P", d), i);

    // States are h, c and, where sequences end before the last step, the last
    // h: there h goes on as 0, which no range notices, and c as it is.
    Names states = {initialState("initial_h", d), initialState("initial_c", d)};
    Names sequences = {gates};
    if (hasLengths) {
      states.push_back(b.sub(states[0], states[0]));
      sequences.push_back(steps);
    }
    Names results = b.scan(
        states, sequences, isBackwards && !hasLengths,
        [&](llvm::ArrayRef<Name> before, llvm::ArrayRef<Name> now) -> Names {
          Names h = b.op(3, "DynamicQuantizeLinear", {before[0]});
          Name sum = b.add(now[0], product(h, shared.weights, shared.scale,
                                           shared.zeroPoint));
          auto [next, nextCell] = cell(shared, sum, before[1]);
          if (!hasLengths)
            return {next, nextCell, next};
          Name goesOn = b.unsqueeze(b.op("Less", {now[1], lengths}), {1});
          Name shown = b.op("Where", {goesOn, next, zero()});
          return {shown, b.op("Where", {goesOn, nextCell, before[1]}),
                  b.op("Where", {goesOn, next, before[2]}), shown};
        });
    // Without a step nothing else tells the sizes.
    Name shape = b.concat(
        {b.sizeOf(b.in("X"), 0), b.sizeOf(b.in("X"), 1), b.ints({hidden})}, 0);
    Name all = b.op("Reshape", {results.back(), shape}, {{"allowzero", 1}});
    if (!hasLengths)
      return {all, results[0], results[1]};
    Name isAny = b.unsqueeze(b.op("Greater", {lengths, b.integer(0)}), {1});
    Name last = b.op("Where", {isAny, results[1], zero()});
    return {isBackwards ? turn(all) : all, results[2], last};
  }

  Body &b;
  int64_t hidden, directions;
  bool isReverse;
  std::vector<Activation> activations;
  /// Of each sequence, and the numbers of the steps; empty where all are whole.
  Name lengths, steps;
};

} // namespace

void buildDynamicQuantizeLSTM(Body &b) { QuantizedLSTM(b).build(); }

} // namespace sardonyx::contrib
