//===- SupportVectors.cpp - Support vector machines of ai.onnx.ml ---------===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Kernels of all rows and support vectors are one matrix; the scores are its
// product with the coefficients.
//
//===----------------------------------------------------------------------===//

#include "ML/PostTransform.h"
#include "ML/Tables.h"
#include "Support/Checks.h"
#include "Support/DataMovement.h"
#include "Support/Patterns.h"
#include "Support/RowLoop.h"
#include "dialects/ONNX/ONNX.h"

using namespace mlir;

namespace sardonyx {
namespace {

Value constantOf(TensorBuilder &b, ArrayRef<int64_t> shape,
                 ArrayRef<double> values) {
  return constantNumbers(b, shape, values, b.getF32Type());
}

/// What attributes say of a machine.
struct Machine {
  StringRef kernel;
  double gamma = 0, coef0 = 0, degree = 0;
  std::vector<double> coefficients, vectors, rho;
  int64_t count = 0; ///< Of support vectors; 0: the model is linear.

  template <typename OpT> static Machine of(Lowering<OpT> &b) {
    Machine machine;
    machine.kernel = b.op.getKernelType();
    std::vector<double> parameters = getNumbers(b.op, "kernel_params");
    if (parameters.size() >= 3) {
      machine.gamma = parameters[0];
      machine.coef0 = parameters[1];
      machine.degree = parameters[2];
    }
    machine.coefficients = getNumbers(b.op, "coefficients");
    machine.vectors = getNumbers(b.op, "support_vectors");
    machine.rho = getNumbers(b.op, "rho");
    return machine;
  }
  bool isKnown() const {
    return llvm::is_contained({"LINEAR", "POLY", "RBF", "SIGMOID"}, kernel);
  }
  /// The kernel of each row of `x` and each of `others` [count, features].
  Value kernels(TensorBuilder &b, Value x, Value others, bool isLinear) const;
};

Value Machine::kernels(TensorBuilder &b, Value x, Value others,
                       bool isLinear) const {
  Type f32 = b.getF32Type();
  bool isDistance = kernel == "RBF" && !isLinear;
  Sizes sizes = {b.dim(x, 0), b.dim(others, 0)};
  using Iterator = utils::IteratorType;
  Value sums =
      b.generic(
           {x, others}, b.zeros(sizes, f32),
           {b.dimsMap(3, {0, 2}), b.dimsMap(3, {1, 2}), b.dimsMap(3, {0, 1})},
           {Iterator::parallel, Iterator::parallel, Iterator::reduction},
           [&](TensorBuilder &s, ValueRange args) {
             Value part = s.mul(args[0], args[1]);
             if (isDistance) {
               Value difference = s.sub(args[0], args[1]);
               part = s.mul(difference, difference);
             }
             return SmallVector<Value>{s.add(args[2], part)};
           })
          .front();
  if (isLinear || kernel == "LINEAR")
    return sums;
  return b.map(sums, f32, [&](TensorBuilder &s, ValueRange args) {
    Value g = s.scalar(f32, isDistance ? -gamma : gamma);
    Value y = s.mul(args[0], g);
    if (isDistance)
      return SmallVector<Value>{math::ExpOp::create(s, y)};
    y = s.add(y, s.scalar(f32, coef0));
    if (kernel == "SIGMOID")
      return SmallVector<Value>{math::TanhOp::create(s, y)};
    Value power = math::PowFOp::create(s, y, s.scalar(f32, degree));
    return SmallVector<Value>{power};
  });
}

/// `kernels` times `weights` [rows of it, columns] plus a number a column.
Value weigh(TensorBuilder &b, Value kernels, ArrayRef<double> weights,
            ArrayRef<double> offsets) {
  int64_t columns = offsets.size(), rows = weights.size() / columns;
  Type f32 = b.getF32Type();
  Sizes sizes = {b.dim(kernels, 0), b.size(columns)};
  Value product =
      linalg::MatmulOp::create(
          b, ValueRange{kernels, constantOf(b, {rows, columns}, weights)},
          b.zeros(sizes, f32))
          .getResult(0);
  return b
      .elementwise(sizes, {product, constantOf(b, columns, offsets)},
                   {b.identityMap(2), b.dimsMap(2, {1})}, {f32},
                   [](TensorBuilder &s, ValueRange args) {
                     return SmallVector<Value>{s.add(args[0], args[1])};
                   })
      .front();
}

/// The input as a matrix of f32; null where it is none, or has not as many
/// features as `count` numbers in `rows` rows.
Value inputOf(TensorBuilder &b, Value x, Type onnxType, int64_t count,
              int64_t rows) {
  if (rankedType(x).getRank() == 1)
    x = b.reshape(x, {b.size(1), b.dim(x, 0)});
  if (rankedType(x).getRank() != 2 || rows < 1 || count == 0 ||
      count % rows != 0 ||
      !b.sameSize(b.dim(x, 1), b.size(count / rows),
                  "the support vectors have not as many features as the input"))
    return {};
  return asFloats(b, x, onnxType);
}

//===----------------------------------------------------------------------===//
// Regression
//===----------------------------------------------------------------------===//

LogicalResult lowerRegressor(Lowering<onnx::MLSVMRegressorOp> &b) {
  if (failed(checkPostTransform(b)))
    return failure();
  Machine machine = Machine::of(b);
  int64_t supports = b.op.getNSupports();
  bool isLinear = supports <= 0;
  ArrayRef<double> coefficients = machine.coefficients;
  ArrayRef<double> others = isLinear ? coefficients : ArrayRef(machine.vectors);
  int64_t rows = isLinear ? 1 : supports;
  if (!machine.isKnown() || machine.rho.empty() ||
      (!isLinear && coefficients.size() != static_cast<size_t>(supports)))
    return b.refuse("its kernel is unknown, or its coefficients do not fit");
  Value x = inputOf(b, b.in.getX(), getOnnxElementType(b.op.getX()),
                    others.size(), rows);
  if (!x)
    return b.refuse("its support vectors do not fit the input");
  int64_t features = static_cast<int64_t>(others.size()) / rows;
  Value kernels =
      machine.kernels(b, x, constantOf(b, {rows, features}, others), isLinear);
  SmallVector<double> one = {1};
  Value y = weigh(b, kernels, isLinear ? ArrayRef<double>(one) : coefficients,
                  machine.rho[0]);
  if (b.op.getOneClass()) {
    Type f32 = b.getF32Type();
    y = b.map(y, f32, [&](TensorBuilder &s, ValueRange args) {
      Value isIn = s.greater(args[0], s.scalar(f32, 0));
      return SmallVector<Value>{
          s.select(isIn, s.scalar(f32, 1), s.scalar(f32, -1))};
    });
  }
  return b.replace(postTransform(b, b.op.getPostTransform(), y));
}

//===----------------------------------------------------------------------===//
// Classification
//===----------------------------------------------------------------------===//

/// The pairs (i, j) of classes, i < j, whose scores are for i where they are
/// positive and for j elsewhere.
struct Pairs {
  int64_t classes;
  SmallVector<std::pair<int64_t, int64_t>> list;

  explicit Pairs(int64_t classes) : classes(classes) {
    for (int64_t i = 0; i < classes; ++i)
      for (int64_t j = i + 1; j < classes; ++j)
        list.push_back({i, j});
  }
  /// The coefficients of each support vector (rows) for each pair (columns).
  /// `coefficients`: [classes - 1, vectors], those of a vector of class i
  /// against j in row j - 1 (i < j) or j (i > j).
  SmallVector<double> weights(ArrayRef<double> coefficients,
                              ArrayRef<int64_t> perClass,
                              int64_t vectors) const {
    SmallVector<double> result(vectors * list.size(), 0);
    int64_t vector = 0;
    for (auto [own, count] : llvm::enumerate(perClass))
      for (int64_t k = 0; k < count; ++k, ++vector)
        for (auto [p, pair] : llvm::enumerate(list)) {
          auto [i, j] = pair;
          int64_t mine = own;
          if (mine == i)
            result[vector * list.size() + p] =
                coefficients[(j - 1) * vectors + vector];
          else if (mine == j)
            result[vector * list.size() + p] =
                coefficients[i * vectors + vector];
        }
    return result;
  }
  Value table(TensorBuilder &b, bool second) const {
    SmallVector<int64_t> classesOf;
    for (auto [i, j] : list)
      classesOf.push_back(second ? j : i);
    return constantIntegers(b, classesOf);
  }
};

/// How many pairs each class has won: [rows, classes].
Value countVotes(TensorBuilder &b, Value scores, const Pairs &pairs) {
  Value firsts = pairs.table(b, false), seconds = pairs.table(b, true);
  Type f32 = b.getF32Type();
  return createIndexed(
      b, b.getLoc(), {b.dim(scores, 0), b.size(pairs.classes)}, f32,
      [&](OpBuilder &builder, Location loc, ValueRange i) -> Value {
        TensorBuilder s(loc, builder);
        Value own = s.convert(i[1], s.getI64Type());
        auto count = [&](TensorBuilder &t, Value p, ValueRange state) {
          Value score = t.extract(scores, {i[0], p});
          Value winner = t.select(t.greater(score, t.scalar(f32, 0)),
                                  t.extract(firsts, p), t.extract(seconds, p));
          Value isOwn = t.compare(arith::CmpIPredicate::eq, winner, own);
          Value next = t.add(state[0], t.scalar(f32, 1));
          return Values{t.select(isOwn, next, state[0])};
        };
        Value number = s.index(static_cast<int64_t>(pairs.list.size()));
        return loop(s, s.index(int64_t(0)), number, s.zero(f32), count).front();
      });
}

/// Probabilities of the pairs, J. C. Platt's sigmoid of their scores, coupled
/// by the second method of T.-F. Wu, C.-J. Lin and R. C. Weng (2004), as libsvm
/// does it.
class Coupling {
public:
  Coupling(TensorBuilder &b, Value scores, const Pairs &pairs,
           ArrayRef<double> a, ArrayRef<double> c)
      : classes(pairs.classes), f32(b.getF32Type()) {
    int64_t count = pairs.list.size();
    Value factors = constantOf(b, count, a), offsets = constantOf(b, count, c);
    Value likely = postTransform(
        b, "LOGISTIC",
        b.elementwise(b.dims(scores), {scores, factors, offsets},
                      {b.identityMap(2), b.dimsMap(2, {1}), b.dimsMap(2, {1})},
                      {f32},
                      [](TensorBuilder &s, ValueRange args) {
                        return SmallVector<Value>{
                            s.add(s.mul(args[0], args[1]), args[2])};
                      })
            .front());
    // Where the pair of two classes is; those below the diagonal mirror it.
    SmallVector<int64_t> places(classes * classes, 0);
    for (auto [p, pair] : llvm::enumerate(pairs.list))
      places[pair.first * classes + pair.second] =
          places[pair.second * classes + pair.first] = p;
    auto type = RankedTensorType::get({classes, classes}, b.getI64Type());
    Value table = arith::ConstantOp::create(
        b, DenseElementsAttr::get(type, ArrayRef<int64_t>(places)));
    auto pairwise = [&](TensorBuilder &s, Value row, Value i, Value j) {
      Value p = s.convert(s.extract(table, {i, j}), s.getIndexType());
      Value other = s.extract(likely, {row, p}); // that the second one wins
      Value r = s.sub(s.scalar(f32, 1), other);
      r = s.minimum(s.maximum(r, s.scalar(f32, 1e-7)), s.scalar(f32, 1 - 1e-7));
      Value isAbove = s.compare(arith::CmpIPredicate::slt, i, j);
      return s.select(isAbove, r, s.sub(s.scalar(f32, 1), r));
    };
    q = createIndexed(
        b, b.getLoc(), {b.dim(scores, 0), b.size(classes), b.size(classes)},
        f32, [&](OpBuilder &builder, Location loc, ValueRange i) -> Value {
          TensorBuilder s(loc, builder);
          auto addSquare = [&](TensorBuilder &t, Value j, ValueRange state) {
            Value r = pairwise(t, i[0], j, i[1]);
            Value isOwn = t.compare(arith::CmpIPredicate::eq, j, i[1]);
            return Values{
                t.select(isOwn, state[0], t.add(state[0], t.mul(r, r)))};
          };
          Value squares = loop(s, s.index(int64_t(0)), s.index(classes),
                               s.zero(f32), addSquare)
                              .front();
          Value product = s.mul(pairwise(s, i[0], i[1], i[2]),
                                pairwise(s, i[0], i[2], i[1]));
          Value isDiagonal = s.compare(arith::CmpIPredicate::eq, i[1], i[2]);
          return s.select(isDiagonal, squares, s.sub(s.zero(f32), product));
        });
  }

  /// The probabilities of the classes: [rows, classes].
  Value solve(TensorBuilder &b) {
    Sizes sizes = {b.dim(q, 0), b.size(classes)};
    Value p = b.filled(sizes, b.scalar(f32, 1.0 / classes));
    Value qp = b.zeros(sizes, f32);
    return forEachRow(b, {p, qp},
                      [&](TensorBuilder &s, Value row, ValueRange state) {
                        return iterate(s, row, state);
                      })
        .front();
  }

private:
  Values
  forClasses(TensorBuilder &b, ValueRange state,
             function_ref<Values(TensorBuilder &, Value, ValueRange)> body) {
    return loop(b, b.index(int64_t(0)), b.index(classes), state, body);
  }

  /// p, q p -> the same after up to so many sweeps over the classes.
  Values iterate(TensorBuilder &b, Value row, ValueRange state) {
    Value sweeps = b.index(std::max<int64_t>(100, classes));
    Value no = arith::ConstantOp::create(b, b.getBoolAttr(false));
    Values done = loop(b, b.index(int64_t(0)), sweeps, {state[0], state[1], no},
                       [&](TensorBuilder &s, Value, ValueRange state) {
                         Value open = arith::XOrIOp::create(
                             s, state[2],
                             arith::ConstantOp::create(s, s.getBoolAttr(true)));
                         return when(s, open, state, [&](TensorBuilder &t) {
                           return sweep(t, row, state[0], state[1]);
                         });
                       });
    return {done[0], done[1]};
  }

  Values sweep(TensorBuilder &b, Value row, Value p, Value qp) {
    Values products = forClasses(
        b, {qp, b.zero(f32)}, [&](TensorBuilder &s, Value t, ValueRange state) {
          Value sum =
              forClasses(s, s.zero(f32),
                         [&](TensorBuilder &u, Value j, ValueRange sum) {
                           return Values{
                               u.add(sum[0], u.mul(u.extract(q, {row, t, j}),
                                                   u.extract(p, j)))};
                         })
                  .front();
          return Values{put(s, sum, state[0], t),
                        s.add(state[1], s.mul(s.extract(p, t), sum))};
        });
    qp = products[0];
    Value pqp = products[1];
    Value error = forClasses(b, b.zero(f32),
                             [&](TensorBuilder &s, Value t, ValueRange most) {
                               Value gap = math::AbsFOp::create(
                                   s, s.sub(s.extract(qp, t), pqp));
                               return Values{s.maximum(most[0], gap)};
                             })
                      .front();
    Value yes = arith::ConstantOp::create(b, b.getBoolAttr(true));
    Value goesOn = arith::CmpFOp::create(b, arith::CmpFPredicate::OGE, error,
                                         b.scalar(f32, 0.005 / classes));
    return when(b, goesOn, {p, qp, yes},
                [&](TensorBuilder &s) { return update(s, row, p, qp, pqp); });
  }

  Values update(TensorBuilder &b, Value row, Value p, Value qp, Value pqp) {
    Values next = forClasses(
        b, {p, qp, pqp}, [&](TensorBuilder &s, Value t, ValueRange state) {
          Value diagonal = s.extract(q, {row, t, t});
          Value own = s.extract(state[1], t);
          Value d = arith::DivFOp::create(s, s.sub(state[2], own), diagonal);
          Value whole = s.add(s.scalar(f32, 1), d);
          Value twice = s.add(own, own);
          Value sum =
              s.add(state[2], s.mul(d, s.add(s.mul(d, diagonal), twice)));
          Value moved = put(s, s.add(s.extract(state[0], t), d), state[0], t);
          Values scaled =
              forClasses(s, {moved, state[1]},
                         [&](TensorBuilder &u, Value j, ValueRange both) {
                           Value part = arith::DivFOp::create(
                               u, u.extract(both[0], j), whole);
                           Value change = u.mul(d, u.extract(q, {row, t, j}));
                           Value product = arith::DivFOp::create(
                               u, u.add(u.extract(both[1], j), change), whole);
                           return Values{put(u, part, both[0], j),
                                         put(u, product, both[1], j)};
                         });
          return Values{scaled[0], scaled[1],
                        arith::DivFOp::create(s, sum, s.mul(whole, whole))};
        });
    Value no = arith::ConstantOp::create(b, b.getBoolAttr(false));
    return {next[0], next[1], no};
  }

  int64_t classes;
  Type f32;
  Value q;
};

LogicalResult lowerClassifier(Lowering<onnx::MLSVMClassifierOp> &b) {
  if (failed(checkPostTransform(b)))
    return failure();
  SmallVector<Value> labels = getLabels(b, "classlabels_ints");
  int64_t classes = labels.size();
  Machine machine = Machine::of(b);
  ArrayRef<int64_t> perClass = getInts(b.op, "vectors_per_class");
  int64_t vectors = 0;
  for (int64_t count : perClass)
    vectors = count < 0 || vectors < 0 ? -1 : vectors + count;
  if (classes < 2 || !machine.isKnown() || vectors < 0)
    return b.refuse("it has fewer than two classes, or an unknown kernel");
  bool isLinear = vectors == 0;
  Pairs pairs(classes);
  ArrayRef<double> others =
      isLinear ? ArrayRef(machine.coefficients) : ArrayRef(machine.vectors);
  int64_t rows = isLinear ? classes : vectors, count = pairs.list.size();
  std::vector<double> a = getNumbers(b.op, "prob_a");
  std::vector<double> c = getNumbers(b.op, "prob_b");
  bool fits = isLinear ? !machine.rho.empty()
                       : machine.coefficients.size() ==
                                 static_cast<size_t>((classes - 1) * vectors) &&
                             machine.rho.size() == static_cast<size_t>(count) &&
                             perClass.size() == static_cast<size_t>(classes);
  if (!fits || a.size() != c.size() ||
      (!a.empty() && a.size() != static_cast<size_t>(count)))
    return b.refuse("its coefficients do not fit its classes");
  Value x = inputOf(b, b.in.getX(), getOnnxElementType(b.op.getX()),
                    others.size(), rows);
  if (!x)
    return b.refuse("its support vectors do not fit the input");
  int64_t features = static_cast<int64_t>(others.size()) / rows;
  Value kernels =
      machine.kernels(b, x, constantOf(b, {rows, features}, others), isLinear);
  Value scores, best;
  if (isLinear) {
    // One product for each class, and the first offset for all of them.
    SmallVector<double> unit(classes * classes, 0);
    for (int64_t i = 0; i < classes; ++i)
      unit[i * classes + i] = 1;
    scores =
        weigh(b, kernels, unit, SmallVector<double>(classes, machine.rho[0]));
    best = findLargest(b, scores);
  } else {
    scores = weigh(b, kernels,
                   pairs.weights(machine.coefficients, perClass, vectors),
                   machine.rho);
    best = findLargest(b, countVotes(b, scores, pairs));
  }
  Value y = labelPlaces(b, best, labels);
  if (!isLinear && !a.empty()) {
    scores = Coupling(b, scores, pairs, a, c).solve(b);
  } else if (!isLinear && classes == 2) {
    // One score is for the second class and against the first.
    scores = weigh(b, scores, {-1, 1}, {0, 0});
  }
  return b.replace({y, postTransform(b, b.op.getPostTransform(), scores)});
}

} // namespace

void populateMLSupportVectorPatterns(const TypeConverter &converter,
                                     RewritePatternSet &patterns) {
  addLowering<onnx::MLSVMRegressorOp, lowerRegressor>(patterns, converter);
  addLowering<onnx::MLSVMClassifierOp, lowerClassifier>(patterns, converter);
}

} // namespace sardonyx
