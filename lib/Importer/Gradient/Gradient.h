//===- Gradient.h - Differentiation of graphs -------------------*- C++ -*-===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Gradient (ai.onnx.preview.training) names a part of its own graph by the
// names of values. The importer, which knows them, replaces it by nodes that
// compute the derivatives, by reverse accumulation: each operator has a rule
// that makes, of the derivative with respect to its results, those with respect
// to its inputs. What rules make are ONNX nodes again, so they can be
// differentiated once more.
//
//===----------------------------------------------------------------------===//

#ifndef SARDONYX_LIB_IMPORTER_GRADIENT_GRADIENT_H
#define SARDONYX_LIB_IMPORTER_GRADIENT_GRADIENT_H

#include "lib/Importer/Upgrade.h"
#include "lib/Importer/ValueTypes.h"

#include <variant>

namespace sardonyx::importer {

/// Sizes of a value; each is known, or has a name, or neither.
using Dims = std::vector<::onnx::TensorShapeProto::Dimension>;

/// An attribute of a node that a rule makes.
struct NodeAttribute {
  llvm::StringRef name;
  std::variant<int64_t, std::string, std::vector<int64_t>> value;
};

/// Makes nodes of the latest versions; each function returns the name of the
/// (first) result.
class NodeMaker {
public:
  NodeMaker(FreshNames &names, std::string messageName)
      : names(names), messageName(std::move(messageName)) {}

  using Names = std::vector<std::string>;
  using Attributes = std::vector<NodeAttribute>;

  std::string op(llvm::StringRef type, Names inputs,
                 const Attributes &attributes = {});
  Names ops(llvm::StringRef type, Names inputs, int results,
            const Attributes &attributes = {});

  std::string ints(llvm::ArrayRef<int64_t> values);
  /// A scalar of an ONNX floating-point type.
  std::string scalar(double value, int elementType);

  std::string add(const std::string &a, const std::string &b) {
    return op("Add", {a, b});
  }
  std::string sub(const std::string &a, const std::string &b) {
    return op("Sub", {a, b});
  }
  std::string mul(const std::string &a, const std::string &b) {
    return op("Mul", {a, b});
  }
  std::string div(const std::string &a, const std::string &b) {
    return op("Div", {a, b});
  }
  std::string shapeOf(const std::string &x) { return op("Shape", {x}); }
  /// The size of a dimension, as a list of one.
  std::string size(const std::string &x, int64_t dim) {
    return op("Shape", {x}, {{"start", dim}, {"end", dim + 1}});
  }
  std::string reshapeTo(const std::string &x, const std::string &shape) {
    return op("Reshape", {x, shape}, {{"allowzero", int64_t(1)}});
  }
  std::string expandTo(const std::string &x, const std::string &shape) {
    return op("Expand", {x, shape});
  }
  std::string flat(const std::string &x) {
    return op("Reshape", {x, ints({-1})});
  }

  std::vector<::onnx::NodeProto> made;

private:
  FreshNames &names;
  std::string messageName;
};

/// begin, begin + 1 ... end - 1: axes.
std::vector<int64_t> upTo(int64_t begin, int64_t end);

/// What a rule works on: a node and the derivatives with respect to its
/// results.
class Adjoint : public NodeMaker {
public:
  Adjoint(const ::onnx::NodeProto &node, const ValueTypes &types,
          FreshNames &names, std::string messageName)
      : NodeMaker(names, std::move(messageName)), node(node), types(types),
        results(node.output_size()), wanted(node.input_size()),
        given(node.input_size()) {}

  const ::onnx::NodeProto &node;
  const ValueTypes &types;

  // The node's values; empty where left out.
  std::string x(int i = 0) const {
    return i < node.input_size() ? node.input(i) : std::string();
  }
  std::string y(int i = 0) const {
    return i < node.output_size() ? node.output(i) : std::string();
  }
  /// The derivative with respect to a result; empty where that has no
  /// influence.
  std::string dy(int i = 0) const {
    return i < int(results.size()) ? results[i] : std::string();
  }
  /// Whether anybody asks for the derivative with respect to an input.
  bool wants(int i) const { return i < int(wanted.size()) && wanted[i]; }
  void give(int i, std::string derivative) { given[i] = std::move(derivative); }

  // Attributes.
  const ::onnx::AttributeProto *find(llvm::StringRef name) const;
  int64_t intOf(llvm::StringRef name, int64_t otherwise) const;
  double floatOf(llvm::StringRef name, double otherwise) const;
  std::string stringOf(llvm::StringRef name, llvm::StringRef otherwise) const;
  std::vector<int64_t> intsOf(llvm::StringRef name, int64_t count,
                              int64_t otherwise) const;

  // Types. Those that return no optional refuse where it is not known.
  int64_t rank(const std::string &name) const;
  /// -1 where it is open.
  int64_t knownSize(const std::string &name, int64_t dim) const;
  int64_t axis(int64_t value, int64_t rank) const;

  /// A scalar of the element type of the first input.
  std::string number(double value) { return numberLike(value, x()); }
  std::string numberLike(double value, const std::string &like);
  /// Zeros, or ones, of the shape of `like`.
  std::string zerosLike(const std::string &like);
  std::string onesLike(const std::string &like);
  std::string where(const std::string &condition, const std::string &a,
                    const std::string &b) {
    return op("Where", {condition, a, b});
  }
  /// 1 where the condition holds, else 0.
  std::string indicator(const std::string &condition) {
    return op("CastLike", {condition, x()});
  }
  /// `derivative`, of the shape of `whole`, summed over what broadcasting
  /// repeated of `part`.
  std::string sumTo(const std::string &derivative, const std::string &whole,
                    const std::string &part);
  /// The derivative of taking elements: `positions` tells which element of `x`
  /// each of `derivative` is, row by row.
  std::string scatter(const std::string &derivative,
                      const std::string &positions, const std::string &x);
  /// The positions of the elements of `x`, in its shape.
  std::string positionsOf(const std::string &x);

  [[noreturn]] void refuse(const llvm::Twine &why) const;

  std::vector<std::string> results;
  std::vector<bool> wanted;
  std::vector<std::string> given;

private:
  Dims dims(const std::string &name) const;
};

struct GradientRule {
  llvm::StringLiteral op;
  void (*apply)(Adjoint &);
};

// One function per file of rules.
llvm::ArrayRef<GradientRule> elementwiseGradients();
llvm::ArrayRef<GradientRule> movementGradients();
llvm::ArrayRef<GradientRule> reductionGradients();
llvm::ArrayRef<GradientRule> networkGradients();
llvm::ArrayRef<GradientRule> normalizationGradients();

} // namespace sardonyx::importer

#endif // SARDONYX_LIB_IMPORTER_GRADIENT_GRADIENT_H
