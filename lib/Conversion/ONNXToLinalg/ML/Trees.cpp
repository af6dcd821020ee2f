//===- Trees.cpp - Tree ensembles -----------------------------------------===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Each row walks through all trees, as many steps as a tree is deep, and adds
// the votes of the leaves that it comes to. Rows are computed in parallel; no
// step branches, so the processor walks through several trees at a time.
//
//===----------------------------------------------------------------------===//

#include "ML/Forest.h"
#include "ML/PostTransform.h"
#include "ML/Tables.h"
#include "Support/Checks.h"
#include "Support/DataMovement.h"
#include "Support/Patterns.h"
#include "Support/RowLoop.h"

#include "llvm/ADT/bit.h"

#include <limits>
#include <utility>

using namespace mlir;

namespace sardonyx {
namespace {

enum class Aggregate { Average, Sum, Min, Max };

/// A constant list.
Value listOf(TensorBuilder &b, ArrayRef<int64_t> values) {
  SmallVector<int32_t> narrow(values.begin(), values.end());
  auto type = RankedTensorType::get(narrow.size(), b.getI32Type());
  return arith::ConstantOp::create(
      b, DenseElementsAttr::get(type, ArrayRef<int32_t>(narrow)));
}

Value listOf(TensorBuilder &b, ArrayRef<double> values, Type type) {
  return constantNumbers(b, static_cast<int64_t>(values.size()), values, type);
}

/// So many trees are walked through at once: the loads of one step wait for
/// those of the step before, but not for those of another tree.
constexpr int64_t kTogether = 8;
/// Up to this depth all paths are walked to the end of the longest; beyond, it
/// is worth while to look whether all trees have come to a leaf.
constexpr int64_t kShort = 7;

/// The tables of a forest in the program. Nodes that are no leaves are records
/// of four i32, so that a step reads one line of the cache: the feature, the
/// bits of the threshold (of f32, others lie apart), and where no and yes lead.
class ForestTables {
public:
  /// `compareType`: of features and thresholds; `scoreType`: of the scores.
  ForestTables(TensorBuilder &b, Forest forest, Type compareType,
               Type scoreType, Aggregate aggregate);

  /// Adds the votes of all trees for row `row` of `x` to `scores`, a row.
  Value addVotes(TensorBuilder &b, Value x, Type onnxType, Value row,
                 Value scores) const;

private:
  static Value asIndex(TensorBuilder &b, Value narrow) {
    return arith::IndexCastUIOp::create(b, b.getIndexType(), narrow);
  }
  static Value load(TensorBuilder &b, Value table, Value i) {
    return asIndex(b, b.extract(table, i));
  }

  void makeVotes(TensorBuilder &b);
  Value answer(TensorBuilder &b, Value node, Value x, Value threshold) const;
  /// Calls `step` for the nodes of some trees until all of them are leaves.
  Values walk(TensorBuilder &b, Value group,
              function_ref<Value(TensorBuilder &, Value)> step) const;
  Value combine(TensorBuilder &b, Value old, Value weight) const;
  Value vote(TensorBuilder &b, Value leaf, Value scores) const;

  Forest forest;
  Type compareType, scoreType;
  Aggregate aggregate;
  Value nodes, thresholds, answers, roots, depths;
  /// By node where no one has more than a vote and what has none may add zero;
  /// else by vote, the first of each node in `voteBegins`.
  Value voteBegins, targets, weights;
  int64_t together = kTogether;
  uint8_t commonYes = 15;
  bool isMixed = false, hasOneTarget = true;
};

ForestTables::ForestTables(TensorBuilder &b, Forest given, Type compareType,
                           Type scoreType, Aggregate aggregate)
    : forest(std::move(given)), compareType(compareType), scoreType(scoreType),
      aggregate(aggregate) {
  together =
      std::min<int64_t>(kTogether, std::max<size_t>(forest.roots.size(), 1));
  forest.padTrees(together);
  SmallVector<int64_t> records, yes, groupDepths;
  SmallVector<double> threshold;
  for (const Forest::Node &node : forest.nodes) {
    float narrow = static_cast<float>(node.threshold);
    records.append({node.feature, llvm::bit_cast<int32_t>(narrow), node.next[0],
                    node.next[1]});
    threshold.push_back(node.threshold);
    yes.push_back(node.yes);
  }
  for (const Forest::Node &node :
       ArrayRef(forest.nodes).take_front(forest.firstLeaf)) {
    isMixed |= commonYes != 15 && node.yes != commonYes;
    commonYes = node.yes;
  }
  for (size_t i = 0; i < forest.depths.size(); i += together)
    groupDepths.push_back(
        *llvm::max_element(ArrayRef(forest.depths).slice(i, together)));
  nodes = listOf(b, records);
  if (compareType.isF64())
    thresholds = listOf(b, threshold, compareType);
  if (isMixed)
    answers = listOf(b, yes);
  roots = listOf(b, forest.roots);
  depths = listOf(b, groupDepths);
  makeVotes(b);
}

void ForestTables::makeVotes(TensorBuilder &b) {
  bool isSum = aggregate == Aggregate::Sum || aggregate == Aggregate::Average;
  bool isByNode = isSum && llvm::all_of(forest.votes, [](const auto &list) {
                    return list.size() <= 1;
                  });
  SmallVector<int64_t> begins, target;
  SmallVector<double> weight;
  for (const std::vector<Forest::Vote> &list : forest.votes) {
    begins.push_back(target.size());
    for (const Forest::Vote &vote : list) {
      target.push_back(vote.target);
      weight.push_back(vote.weight);
      hasOneTarget &= vote.target == 0;
    }
    if (isByNode && list.empty()) {
      target.push_back(0);
      weight.push_back(0);
    }
  }
  begins.push_back(target.size());
  if (!isByNode)
    voteBegins = listOf(b, begins);
  targets = listOf(b, target);
  weights = listOf(b, weight, scoreType);
}

static arith::CmpFPredicate predicateOf(uint8_t yes) {
  using P = arith::CmpFPredicate;
  // By the bits of Outcome: less, equal, greater, unordered.
  static constexpr P predicates[16] = {
      P::AlwaysFalse, P::OLT, P::OEQ, P::OLE,       P::OGT, P::ONE,
      P::OGE,         P::ORD, P::UNO, P::ULT,       P::UEQ, P::ULE,
      P::UGT,         P::UNE, P::UGE, P::AlwaysTrue};
  return predicates[yes];
}

/// Whether the answer at `node` is yes for the feature `x`.
Value ForestTables::answer(TensorBuilder &b, Value node, Value x,
                           Value threshold) const {
  auto compare = [&](arith::CmpFPredicate predicate) -> Value {
    return arith::CmpFOp::create(b, predicate, x, threshold);
  };
  if (!isMixed)
    return compare(predicateOf(commonYes));
  Type i32 = b.getI32Type();
  auto bit = [&](int64_t value) { return b.integer(i32, value); };
  Value outcome = b.select(compare(arith::CmpFPredicate::OGT),
                           bit(Forest::Greater), bit(Forest::Unordered));
  outcome =
      b.select(compare(arith::CmpFPredicate::OEQ), bit(Forest::Equal), outcome);
  outcome =
      b.select(compare(arith::CmpFPredicate::OLT), bit(Forest::Less), outcome);
  Value both = arith::AndIOp::create(b, b.extract(answers, node), outcome);
  return b.compare(arith::CmpIPredicate::ne, both, bit(0));
}

Values
ForestTables::walk(TensorBuilder &b, Value group,
                   function_ref<Value(TensorBuilder &, Value)> step) const {
  Values state;
  Value first = b.mul(group, b.index(together));
  for (int64_t i = 0; i < together; ++i)
    state.push_back(load(b, roots, b.add(first, b.index(i))));
  auto stepAll = [&](TensorBuilder &s, ValueRange state) {
    Values next;
    for (Value node : state)
      next.push_back(step(s, node));
    return next;
  };
  if (llvm::all_of(forest.depths, [](int64_t d) { return d <= kShort; }))
    return loop(b, b.index(int64_t(0)), load(b, depths, group), state,
                [&](TensorBuilder &s, Value, ValueRange state) {
                  return stepAll(s, state);
                });
  Value leaves = b.index(forest.firstLeaf);
  SmallVector<Type> types(together, b.getIndexType());
  auto op = scf::WhileOp::create(
      b, types, state,
      [&](OpBuilder &builder, Location loc, ValueRange state) {
        TensorBuilder s(loc, builder);
        Value least = state[0];
        for (Value node : state.drop_front())
          least = arith::MinUIOp::create(s, least, node);
        Value goesOn = s.compare(arith::CmpIPredicate::ult, least, leaves);
        scf::ConditionOp::create(s, goesOn, state);
      },
      [&](OpBuilder &builder, Location loc, ValueRange state) {
        TensorBuilder s(loc, builder);
        scf::YieldOp::create(s, stepAll(s, state));
      });
  return Values(op.getResults());
}

Value ForestTables::combine(TensorBuilder &b, Value old, Value weight) const {
  switch (aggregate) {
  case Aggregate::Min:
    return b.minimum(old, weight);
  case Aggregate::Max:
    return b.maximum(old, weight);
  default:
    return b.add(old, weight);
  }
}

/// `scores` with the votes of a leaf.
Value ForestTables::vote(TensorBuilder &b, Value leaf, Value scores) const {
  auto one = [&](TensorBuilder &s, Value place, Value scores) {
    Value target = hasOneTarget ? s.index(int64_t(0)) : load(s, targets, place);
    Value old = s.extract(scores, target);
    return put(s, combine(s, old, s.extract(weights, place)), scores, target);
  };
  if (!voteBegins)
    return one(b, leaf, scores);
  Value begin = load(b, voteBegins, leaf);
  Value end = load(b, voteBegins, b.add(leaf, b.index(1)));
  return loop(b, begin, end, scores,
              [&](TensorBuilder &s, Value place, ValueRange state) {
                return Values{one(s, place, state[0])};
              })
      .front();
}

Value ForestTables::addVotes(TensorBuilder &b, Value x, Type onnxType,
                             Value row, Value scores) const {
  auto step = [&](TensorBuilder &s, Value node) {
    Value record = s.mul(node, s.index(4));
    auto field = [&](int64_t i) {
      return s.extract(nodes, s.add(record, s.index(i)));
    };
    Value stored = s.extract(x, {row, asIndex(s, field(0))});
    Value feature = loadScalar(s, s.getLoc(), stored, onnxType);
    feature = castScalar(s, s.getLoc(), feature, onnxType, compareType);
    Value threshold =
        thresholds
            ? s.extract(thresholds, node)
            : arith::BitcastOp::create(s, compareType, field(1)).getResult();
    Value yes = s.convert(answer(s, node, feature, threshold), s.getI32Type(),
                          /*isUnsigned=*/true);
    Value side = s.add(asIndex(s, yes), s.index(2));
    return load(s, nodes, s.add(record, side));
  };
  Value groups = b.index(static_cast<int64_t>(forest.roots.size()) / together);
  return loop(b, b.index(int64_t(0)), groups, scores,
              [&](TensorBuilder &s, Value group, ValueRange state) {
                Value scores = state[0];
                for (Value leaf : walk(s, group, step))
                  scores = vote(s, leaf, scores);
                return Values{scores};
              })
      .front();
}

/// `x` [rows, features] beside itself with `stand` where it is missing:
/// [rows, 2 * `features`].
Value besideWithout(TensorBuilder &b, Value x, Type onnxType, int64_t features,
                    double stand) {
  Type type = elementTypeOf(x);
  OpFoldResult rows = b.dim(x, 0), none = b.size(0), count = b.size(features);
  Value read = b.slice(x, {none, none}, {rows, count});
  Value filled = b.map(read, type, [&](TensorBuilder &s, ValueRange args) {
    Value value = loadScalar(s, s.getLoc(), args[0], onnxType);
    Value isMissing =
        arith::CmpFOp::create(s, arith::CmpFPredicate::UNO, value, value);
    Value infinity =
        storeScalar(s, s.getLoc(), s.scalar(value.getType(), stand), onnxType);
    return Values{s.select(isMissing, infinity, args[0])};
  });
  Value both = b.empty({rows, b.size(2 * features)}, type);
  both = b.insert(read, both, {none, none}, {rows, count});
  return b.insert(filled, both, {none, count}, {rows, count});
}

/// The scores [rows, targets] that a forest gives for `x` [rows, features].
struct Scores {
  const Forest &forest;
  int64_t targets;
  Aggregate aggregate = Aggregate::Sum;
  std::vector<double> base;

  Value compute(TensorBuilder &b, Value x, Type onnxType, Type scoreType) const;
};

Value Scores::compute(TensorBuilder &b, Value x, Type onnxType,
                      Type scoreType) const {
  checkSizeAtMost(b, b.getLoc(), b.size(forest.features), b.dim(x, 1),
                  "the trees read more features than the input has");
  bool isDouble = forest.isDouble || onnxType.isF64();
  Type compareType = isDouble ? Type(b.getF64Type()) : b.getF32Type();
  Forest walked = forest;
  // Integers are never missing.
  if (isa<FloatType>(onnxType))
    if (std::optional<double> stand = walked.separateMissing())
      x = besideWithout(b, x, onnxType, forest.features, *stand);
  ForestTables tables(b, std::move(walked), compareType, scoreType, aggregate);
  double most = scoreType.isF64() ? std::numeric_limits<double>::max()
                                  : std::numeric_limits<float>::max();
  double init = aggregate == Aggregate::Min   ? most
                : aggregate == Aggregate::Max ? -most
                                              : 0;
  Value scores =
      b.filled({b.dim(x, 0), b.size(targets)}, b.scalar(scoreType, init));
  scores =
      forEachRow(b, scores, [&](TensorBuilder &s, Value row, ValueRange rows) {
        return Values{tables.addVotes(s, x, onnxType, row, rows[0])};
      }).front();
  // A target that nobody has voted for.
  if (init != 0)
    scores = b.map(scores, scoreType, [&](TensorBuilder &s, ValueRange args) {
      Value isNone = arith::CmpFOp::create(s, arith::CmpFPredicate::OEQ,
                                           args[0], s.scalar(scoreType, init));
      return Values{s.select(isNone, s.scalar(scoreType, 0), args[0])};
    });
  bool isAverage = aggregate == Aggregate::Average;
  if (base.empty() && !isAverage)
    return scores;
  std::vector<double> offsets = base;
  offsets.resize(targets, base.size() == 1 ? base[0] : 0);
  Value offset = listOf(b, offsets, scoreType);
  double trees = std::max<double>(forest.roots.size(), 1);
  return b
      .elementwise(b.dims(scores), {scores, offset},
                   {b.identityMap(2), b.dimsMap(2, {1})}, {scoreType},
                   [&](TensorBuilder &s, ValueRange args) {
                     Value sum = args[0];
                     if (isAverage)
                       sum = arith::DivFOp::create(s, sum,
                                                   s.scalar(scoreType, trees));
                     return SmallVector<Value>{s.add(sum, args[1])};
                   })
      .front();
}

/// Scores are summed in the type in which trees and input are.
Type scoreTypeFor(TensorBuilder &b, const Forest &forest, Type onnxType) {
  bool isDouble = forest.isDouble || onnxType.isF64();
  return isDouble ? Type(b.getF64Type()) : b.getF32Type();
}

//===----------------------------------------------------------------------===//
// Regression
//===----------------------------------------------------------------------===//

template <typename OpT>
LogicalResult checkForest(Lowering<OpT> &b, FailureOr<Forest> &forest,
                          const std::string &error, int64_t targets) {
  if (failed(forest))
    return b.refuse(error);
  if (b.rank(b.in.getX()) != 2)
    return b.refuse("the input must be a matrix");
  if (targets < 1 || targets > kMaxSize)
    return b.refuseAlways("it has no targets");
  if (!forest->votesFor(targets))
    return b.refuseAlways("a weight is for a target that is not there");
  int64_t features = rankedType(b.in.getX()).getDimSize(1);
  if (!ShapedType::isDynamic(features) && forest->features > features)
    return b.reject("the trees read more features than the input has: " +
                    Twine(forest->features) + " and " + Twine(features));
  return success();
}

LogicalResult lowerRegressor(Lowering<onnx::MLTreeEnsembleRegressorOp> &b) {
  if (failed(checkPostTransform(b)))
    return failure();
  std::string error;
  FailureOr<Forest> forest = Forest::ofNodes(b.op, "target", error);
  int64_t targets = b.op.getNTargets().value_or(1);
  if (failed(checkForest(b, forest, error, targets)))
    return failure();
  StringRef name = b.op.getAggregateFunction();
  static constexpr StringRef kNames[] = {"AVERAGE", "SUM", "MIN", "MAX"};
  const auto *found = llvm::find(kNames, name);
  if (found == std::end(kNames))
    return b.refuseAlways("there is no aggregate_function '" + name + "'");
  std::vector<double> base = getNumbers(b.op, "base_values");
  if (base.size() > 1 && base.size() != static_cast<size_t>(targets))
    return b.refuseAlways(
        "it has another number of base values than of targets");
  Scores scores{*forest, targets, static_cast<Aggregate>(found - kNames), base};
  Type onnxType = getOnnxElementType(b.op.getX());
  Value y = scores.compute(b, b.in.getX(), onnxType,
                           scoreTypeFor(b, *forest, onnxType));
  y = b.convertElements(y, b.getF32Type());
  return b.replace(postTransform(b, b.op.getPostTransform(), y));
}

LogicalResult lowerEnsemble(Lowering<onnx::MLTreeEnsembleOp> &b) {
  std::string error;
  FailureOr<Forest> forest = Forest::ofSplits(b.op, error);
  int64_t targets = b.op.getNTargets().value_or(1);
  if (failed(checkForest(b, forest, error, targets)))
    return failure();
  int64_t aggregate = b.op.getAggregateFunction();
  int64_t transform = b.op.getPostTransform();
  static constexpr StringRef kTransforms[] = {"NONE", "SOFTMAX", "LOGISTIC",
                                              "SOFTMAX_ZERO", "PROBIT"};
  if (aggregate < 0 || aggregate > 3 || transform < 0 || transform > 4)
    return b.refuseAlways(
        "its aggregate_function or post_transform is unknown");
  Scores scores{*forest, targets, static_cast<Aggregate>(aggregate), {}};
  Type onnxType = getOnnxElementType(b.op.getX());
  Value y = scores.compute(b, b.in.getX(), onnxType,
                           scoreTypeFor(b, *forest, onnxType));
  if (transform != 0)
    y = postTransform(b, kTransforms[transform], y);
  return b.replace(b.convertElements(y, elementTypeOf(b.in.getX())));
}

//===----------------------------------------------------------------------===//
// Classification
//===----------------------------------------------------------------------===//

/// Whether all votes are for one class.
bool votesForOneClass(const Forest &forest) {
  std::optional<int64_t> target;
  for (const std::vector<Forest::Vote> &list : forest.votes)
    for (const Forest::Vote &vote : list)
      if (target.value_or(vote.target) != vote.target)
        return false;
      else
        target = vote.target;
  return target.has_value();
}

bool areAllPositive(const Forest &forest) {
  for (const std::vector<Forest::Vote> &list : forest.votes)
    for (const Forest::Vote &vote : list)
      if (vote.weight < 0)
        return false;
  return true;
}

/// What a sum for the second of two classes means: its own score, that of the
/// first, and from where on it wins. As onnxruntime has it.
struct BinaryScores {
  Value scores, isSecond;

  /// Where the votes name the second class, the first has the score 0.
  static BinaryScores of(TensorBuilder &b, Value sums, StringRef transform,
                         bool allPositive, bool isForSecond) {
    // Positive weights are probabilities, but for a logistic function.
    bool isProbability = allPositive && transform != "LOGISTIC";
    Type type = elementTypeOf(sums);
    OpFoldResult rows = b.dim(sums, 0);
    Value sum = b.subTensor(sums, 1, b.size(0));
    BinaryScores result;
    result.isSecond =
        b.map(sum, b.getI1Type(), [&](TensorBuilder &s, ValueRange x) {
          return SmallVector<Value>{
              s.greater(x[0], s.scalar(type, allPositive ? 0.5 : 0))};
        });
    Value pair = createIndexed(
        b, b.getLoc(), {rows, b.size(2)}, type,
        [&](OpBuilder &builder, Location loc, ValueRange i) -> Value {
          TensorBuilder s(loc, builder);
          Value second = s.extract(sum, i[0]);
          Value none = s.scalar(type, isProbability && !isForSecond ? 1 : 0);
          Value first = isForSecond ? none : s.sub(none, second);
          Value isFirst =
              s.compare(arith::CmpIPredicate::eq, i[1], s.index(int64_t(0)));
          return s.select(isFirst, first, second);
        });
    // Scores that are probabilities already are left alone.
    bool isPlain = isProbability && !isForSecond;
    result.scores = isPlain ? pair : postTransform(b, transform, pair);
    return result;
  }
};

LogicalResult lowerClassifier(Lowering<onnx::MLTreeEnsembleClassifierOp> &b) {
  if (failed(checkPostTransform(b)))
    return failure();
  SmallVector<Value> labels = getLabels(b, "classlabels_int64s");
  int64_t classes = labels.size();
  if (classes < 2)
    return b.refuseAlways("it has fewer than two classes");
  std::string error;
  FailureOr<Forest> forest = Forest::ofNodes(b.op, "class", error);
  if (failed(checkForest(b, forest, error, classes)))
    return failure();
  std::vector<double> base = getNumbers(b.op, "base_values");
  if (base.size() > 1 && base.size() != static_cast<size_t>(classes))
    return b.refuseAlways(
        "it has another number of base values than of classes");
  Type onnxType = getOnnxElementType(b.op.getX());
  Type scoreType = scoreTypeFor(b, *forest, onnxType);
  Value x = b.in.getX();
  StringRef transform = b.op.getPostTransform();
  if (classes == 2 && votesForOneClass(*forest)) {
    bool isForSecond = false;
    for (std::vector<Forest::Vote> &list : forest->votes)
      for (Forest::Vote &vote : list)
        isForSecond |= std::exchange(vote.target, 0) == 1;
    if (base.size() == 2)
      base = {base[1]};
    Scores scores{*forest, 1, Aggregate::Sum, base};
    Value sums = scores.compute(b, x, onnxType, scoreType);
    sums = b.convertElements(sums, b.getF32Type());
    auto binary = BinaryScores::of(b, sums, transform, areAllPositive(*forest),
                                   isForSecond);
    Value places = b.convertElements(binary.isSecond, b.getI64Type(),
                                     /*isUnsigned=*/true);
    Value label = labelPlaces(b, places, labels);
    return b.replace({label, binary.scores});
  }
  Scores scores{*forest, classes, Aggregate::Sum, base};
  Value sums = scores.compute(b, x, onnxType, scoreType);
  Value label = labelPlaces(b, findLargest(b, sums), labels);
  Value z =
      postTransform(b, transform, b.convertElements(sums, b.getF32Type()));
  return b.replace({label, z});
}

} // namespace

void populateMLTreePatterns(const TypeConverter &converter,
                            RewritePatternSet &patterns) {
  addLowering<onnx::MLTreeEnsembleRegressorOp, lowerRegressor>(patterns,
                                                               converter);
  addLowering<onnx::MLTreeEnsembleOp, lowerEnsemble>(patterns, converter);
  addLowering<onnx::MLTreeEnsembleClassifierOp, lowerClassifier>(patterns,
                                                                 converter);
}

} // namespace sardonyx
