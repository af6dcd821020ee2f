//===- Forest.cpp - Decision trees as tables ------------------------------===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "ML/Forest.h"
#include "Support/Attributes.h"

#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/StringSwitch.h"

#include <cmath>
#include <limits>

using namespace mlir;

namespace sardonyx {

/// A tree that is deeper has no one trained.
static constexpr int64_t kMaxDepth = 4096;
/// Nodes that a set of values is made of, together.
static constexpr size_t kMaxNodes = size_t(1) << 26;

/// The tables hold places of features as i32.
static bool isFeature(int64_t place) {
  return place >= 0 && place < std::numeric_limits<int32_t>::max();
}

static bool isDoubleTensor(Operation *op, StringRef name) {
  auto tensor = op->getAttrOfType<ElementsAttr>(name);
  return tensor && tensor.getElementType().isF64();
}

static FailureOr<Forest> fail(std::string &error, const Twine &why) {
  error = why.str();
  return failure();
}

//===----------------------------------------------------------------------===//
// Modes
//===----------------------------------------------------------------------===//

void Forest::Node::trackMissing() {
  // Beside a threshold of NaN all features are unordered, but those that are
  // not missing are answered as before.
  if (std::isnan(threshold) && !(yes & Unordered)) {
    yes = 0;
    threshold = 0;
  }
  yes |= Unordered;
}

/// 0 for what is no mode.
static uint8_t outcomesOf(StringRef mode) {
  using F = Forest;
  return llvm::StringSwitch<uint8_t>(mode)
      .Case("BRANCH_LEQ", F::Less | F::Equal)
      .Case("BRANCH_LT", F::Less)
      .Case("BRANCH_GTE", F::Greater | F::Equal)
      .Case("BRANCH_GT", F::Greater)
      .Case("BRANCH_EQ", F::Equal)
      .Case("BRANCH_NEQ", F::Less | F::Greater | F::Unordered)
      .Default(0);
}

static constexpr StringRef kModes[] = {"BRANCH_LEQ", "BRANCH_LT", "BRANCH_GTE",
                                       "BRANCH_GT",  "BRANCH_EQ", "BRANCH_NEQ"};
/// A feature that is one of a set of values.
static constexpr int64_t kMember = 6;

//===----------------------------------------------------------------------===//
// Depths
//===----------------------------------------------------------------------===//

LogicalResult Forest::measureDepths(std::string &error) {
  // -1: not seen, -2: on the way to where we are.
  std::vector<int64_t> depth(nodes.size(), -1);
  std::vector<int64_t> path;
  for (int64_t root : roots) {
    path.push_back(root);
    while (!path.empty()) {
      int64_t at = path.back();
      const Node &node = nodes[at];
      if (depth[at] == -1 && !isLeaf(at)) {
        depth[at] = -2;
        for (int64_t next : node.next) {
          if (depth[next] == -2) {
            error = "its nodes follow each other in a circle";
            return failure();
          }
          if (depth[next] == -1)
            path.push_back(next);
        }
        continue;
      }
      path.pop_back();
      if (isLeaf(at))
        depth[at] = 0;
      else if (depth[at] == -2)
        depth[at] = 1 + std::max(depth[node.next[0]], depth[node.next[1]]);
      if (depth[at] > kMaxDepth) {
        error =
            "a tree is more than " + std::to_string(kMaxDepth) + " nodes deep";
        return failure();
      }
    }
    depths.push_back(depth[root]);
  }
  return success();
}

void Forest::moveLeavesBack() {
  std::vector<int64_t> places(nodes.size());
  int64_t next = 0;
  for (bool leaves : {false, true}) {
    firstLeaf = leaves ? next : 0;
    for (size_t i = 0; i < nodes.size(); ++i)
      if (isLeaf(i) == leaves)
        places[i] = next++;
  }
  std::vector<Node> sortedNodes(nodes.size());
  std::vector<std::vector<Vote>> sortedVotes(nodes.size());
  for (size_t i = 0; i < nodes.size(); ++i) {
    Node node = nodes[i];
    for (int64_t &to : node.next)
      to = places[to];
    sortedNodes[places[i]] = node;
    sortedVotes[places[i]] = std::move(votes[i]);
  }
  nodes = std::move(sortedNodes);
  votes = std::move(sortedVotes);
  for (int64_t &root : roots)
    root = places[root];
}

LogicalResult Forest::finish(std::string &error) {
  if (failed(measureDepths(error)))
    return failure();
  moveLeavesBack();
  return success();
}

std::optional<double> Forest::separateMissing() {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  MutableArrayRef<Node> asking =
      MutableArrayRef<Node>(nodes).take_front(firstLeaf);
  auto tracks = [](const Node &node) { return node.yes & Unordered; };
  if (llvm::all_of(asking, tracks) || llvm::none_of(asking, tracks) ||
      !isFeature(2 * features))
    return std::nullopt;
  uint8_t yes = asking.front().yes & ~Unordered;
  bool isLess = yes == Less || yes == (Less | Equal);
  if (!isLess && yes != Greater && yes != (Greater | Equal))
    return std::nullopt;
  double stand = isLess ? -kInfinity : kInfinity;
  for (const Node &node : asking)
    if ((node.yes & ~Unordered) != yes || std::isnan(node.threshold) ||
        (tracks(node) && !(yes & Equal) && node.threshold == stand))
      return std::nullopt;
  for (Node &node : asking) {
    if (tracks(node))
      node.feature += features;
    node.yes = yes;
  }
  return stand;
}

void Forest::padTrees(size_t multiple) {
  if (roots.size() % multiple == 0)
    return;
  int64_t leaf = nodes.size();
  nodes.push_back({0, 0, 15, {leaf, leaf}});
  votes.emplace_back();
  while (roots.size() % multiple != 0) {
    roots.push_back(leaf);
    depths.push_back(0);
  }
}

bool Forest::votesFor(int64_t count) const {
  for (const std::vector<Vote> &list : votes)
    for (const Vote &vote : list)
      if (vote.target < 0 || vote.target >= count)
        return false;
  return true;
}

//===----------------------------------------------------------------------===//
// TreeEnsembleRegressor, TreeEnsembleClassifier
//===----------------------------------------------------------------------===//

FailureOr<Forest> Forest::ofNodes(Operation *op, StringRef prefix,
                                  std::string &error) {
  ArrayRef<int64_t> trees = getInts(op, "nodes_treeids");
  ArrayRef<int64_t> ids = getInts(op, "nodes_nodeids");
  ArrayRef<int64_t> features = getInts(op, "nodes_featureids");
  ArrayRef<int64_t> yes = getInts(op, "nodes_truenodeids");
  ArrayRef<int64_t> no = getInts(op, "nodes_falsenodeids");
  ArrayRef<int64_t> missing = getInts(op, "nodes_missing_value_tracks_true");
  auto modes = op->getAttrOfType<ArrayAttr>("nodes_modes");
  std::vector<double> values = getNumbers(op, "nodes_values");
  size_t count = trees.size();
  for (size_t size : {ids.size(), features.size(), yes.size(), no.size(),
                      modes ? modes.size() : 0, values.size()})
    if (size != count)
      return fail(error, "its lists of nodes differ in length");
  if (!missing.empty() && missing.size() != count)
    return fail(error, "its lists of nodes differ in length");

  Forest forest;
  forest.isDouble = isDoubleTensor(op, "nodes_values_as_tensor");
  forest.nodes.resize(count);
  forest.votes.resize(count);
  llvm::DenseMap<std::pair<int64_t, int64_t>, int64_t> places;
  llvm::DenseMap<int64_t, bool> seen;
  for (size_t i = 0; i < count; ++i) {
    if (!places.try_emplace({trees[i], ids[i]}, i).second)
      return fail(error, "a tree has two nodes of one number");
    if (seen.try_emplace(trees[i], true).second)
      forest.roots.push_back(i);
  }
  for (size_t i = 0; i < count; ++i) {
    Node &node = forest.nodes[i];
    StringRef mode = cast<StringAttr>(modes[i]).getValue();
    node.next[0] = node.next[1] = i;
    if (mode == "LEAF")
      continue;
    node.yes = outcomesOf(mode);
    if (!node.yes || !isFeature(features[i]))
      return fail(error, "a node has an unknown mode or feature");
    node.feature = features[i];
    node.threshold = values[i];
    if (!missing.empty() && missing[i])
      node.trackMissing();
    forest.features = std::max(forest.features, node.feature + 1);
    for (auto [answer, id] : {std::pair(0, no[i]), std::pair(1, yes[i])}) {
      auto place = places.find({trees[i], id});
      if (place == places.end())
        return fail(error, "a node is followed by one that is not there");
      node.next[answer] = place->second;
    }
  }

  ArrayRef<int64_t> voteTrees = getInts(op, prefix + "_treeids");
  ArrayRef<int64_t> voteNodes = getInts(op, prefix + "_nodeids");
  ArrayRef<int64_t> targets = getInts(op, prefix + "_ids");
  std::vector<double> weights = getNumbers(op, (prefix + "_weights").str());
  if (voteNodes.size() != voteTrees.size() ||
      targets.size() != voteTrees.size() || weights.size() != voteTrees.size())
    return fail(error, "its lists of weights differ in length");
  for (size_t i = 0; i < weights.size(); ++i) {
    auto place = places.find({voteTrees[i], voteNodes[i]});
    if (place == places.end())
      return fail(error, "a weight is that of a node that is not there");
    forest.votes[place->second].push_back({targets[i], weights[i]});
  }
  if (failed(forest.finish(error)))
    return failure();
  return forest;
}

//===----------------------------------------------------------------------===//
// TreeEnsemble
//===----------------------------------------------------------------------===//

FailureOr<Forest> Forest::ofSplits(onnx::MLTreeEnsembleOp op,
                                   std::string &error) {
  ArrayRef<int64_t> features = getInts(op, "nodes_featureids");
  ArrayRef<int64_t> yes = getInts(op, "nodes_truenodeids");
  ArrayRef<int64_t> no = getInts(op, "nodes_falsenodeids");
  ArrayRef<int64_t> yesLeaf = getInts(op, "nodes_trueleafs");
  ArrayRef<int64_t> noLeaf = getInts(op, "nodes_falseleafs");
  ArrayRef<int64_t> missing = getInts(op, "nodes_missing_value_tracks_true");
  ArrayRef<int64_t> targets = getInts(op, "leaf_targetids");
  std::vector<double> modes = getNumbers(op, "nodes_modes");
  std::vector<double> splits = getNumbers(op, "nodes_splits");
  std::vector<double> weights = getNumbers(op, "leaf_weights");
  std::vector<double> members = getNumbers(op, "membership_values");
  int64_t count = features.size(), leaves = targets.size();
  for (size_t size : {yes.size(), no.size(), yesLeaf.size(), noLeaf.size(),
                      modes.size(), splits.size()})
    if (size != static_cast<size_t>(count))
      return fail(error, "its lists of nodes differ in length");
  if ((!missing.empty() && missing.size() != static_cast<size_t>(count)) ||
      weights.size() != targets.size())
    return fail(error, "its lists of nodes or leaves differ in length");

  Forest forest;
  forest.isDouble = isDoubleTensor(op, "nodes_splits");
  // The nodes, then the leaves, then what sets of values need besides.
  forest.nodes.resize(count + leaves);
  forest.votes.resize(count + leaves);
  for (int64_t i = 0; i < leaves; ++i) {
    Node &leaf = forest.nodes[count + i];
    leaf.next[0] = leaf.next[1] = count + i;
    forest.votes[count + i].push_back({targets[i], weights[i]});
  }
  auto placeOf = [&](int64_t id, int64_t isLeaf) {
    int64_t limit = isLeaf ? leaves : count;
    return id < 0 || id >= limit ? -1 : id + (isLeaf ? count : 0);
  };
  size_t member = 0;
  for (int64_t i = 0; i < count; ++i) {
    int64_t next[2] = {placeOf(no[i], noLeaf[i]), placeOf(yes[i], yesLeaf[i])};
    int64_t mode = static_cast<int64_t>(modes[i]);
    if (next[0] < 0 || next[1] < 0)
      return fail(error, "a node is followed by one that is not there");
    if (mode < 0 || mode > kMember || !isFeature(features[i]))
      return fail(error, "a node has an unknown mode or feature");
    forest.features = std::max(forest.features, features[i] + 1);
    Node node{features[i],
              splits[i],
              mode == kMember ? uint8_t(Equal) : outcomesOf(kModes[mode]),
              {next[0], next[1]}};
    auto tracked = [&](Node node) {
      if (!missing.empty() && missing[i])
        node.trackMissing();
      return node;
    };
    if (mode == kMember) {
      // One node for each value, the next where it is not that one.
      std::vector<double> set;
      while (member < members.size() && !std::isnan(members[member]))
        set.push_back(members[member++]);
      if (member++ >= members.size())
        return fail(error, "a node has no set of values");
      int64_t last = next[0];
      for (size_t k = set.size(); k-- > 1;) {
        node.threshold = set[k];
        node.next[0] = last;
        last = forest.nodes.size();
        forest.nodes.push_back(tracked(node));
      }
      if (forest.nodes.size() > kMaxNodes)
        return fail(error, "it has too many nodes");
      node.next[0] = last;
      node.threshold = set.empty() ? NAN : set[0];
    }
    forest.nodes[i] = tracked(node);
  }
  forest.votes.resize(forest.nodes.size());
  for (int64_t root : getInts(op, "tree_roots")) {
    if (root < 0 || root >= count)
      return fail(error, "a tree begins at a node that is not there");
    // A node that leads to one leaf only is that leaf.
    bool isLeaf = yesLeaf[root] && noLeaf[root] && yes[root] == no[root];
    forest.roots.push_back(isLeaf ? placeOf(yes[root], 1) : root);
  }
  if (failed(forest.finish(error)))
    return failure();
  return forest;
}

} // namespace sardonyx
