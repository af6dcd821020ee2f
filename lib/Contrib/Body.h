//===- Body.h - Writing the function body of an operator --------*- C++ -*-===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// What a builder works with: the node that is to be replaced, as far as it is
// known, and the nodes that replace it. Values are names; an empty one is left
// out. A builder throws, by refuse(), for what it has no body for.
//
//===----------------------------------------------------------------------===//

#ifndef SARDONYX_LIB_CONTRIB_BODY_H
#define SARDONYX_LIB_CONTRIB_BODY_H

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/STLFunctionalExtras.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/ADT/Twine.h"

#include <onnx/defs/schema.h>

#include <optional>
#include <string>
#include <vector>

namespace sardonyx::contrib {

using Name = std::string;
using Names = std::vector<Name>;
using Ints = std::vector<int64_t>;

/// An attribute of a node that a builder makes.
struct Attr {
  Attr(const char *name, int64_t value);
  Attr(const char *name, int value) : Attr(name, int64_t(value)) {}
  Attr(const char *name, float value);
  Attr(const char *name, const char *value);
  Attr(const char *name, const Ints &values);
  Attr(const char *name, ::onnx::GraphProto graph);
  ::onnx::AttributeProto proto;
};
using Attrs = std::vector<Attr>;

/// The type of a graph's input: a tensor, sizes of -1 are open. Where the node
/// tells it, 0.
struct GraphInput {
  int elementType = 0;
  Ints sizes;
};

class Body {
public:
  Body(const ::onnx::FunctionBodyBuildContext &context,
       const ::onnx::OpSchema &schema, ::onnx::FunctionProto &function);

  //===--------------------------------------------------------------------===//
  // The node
  //===--------------------------------------------------------------------===//

  bool is(llvm::StringRef op) const { return op == schema.Name(); }
  /// Of an input, by its name in the schema or, for one of a variadic tail, by
  /// its position.
  Name in(llvm::StringRef name) const;
  bool has(llvm::StringRef name) const { return !in(name).empty(); }
  unsigned numInputs() const { return function.input_size(); }
  Name inputAt(unsigned position) const;
  /// Whether somebody asks for the output.
  bool wants(llvm::StringRef name) const;

  /// Number of the element type, which must be known.
  int elementType(llvm::StringRef input) const;
  std::optional<int64_t> rank(llvm::StringRef input) const;
  /// The rank, which must be known.
  int64_t requireRank(llvm::StringRef input) const;
  /// A size, negative axes from the end; -1 where it is open.
  int64_t size(llvm::StringRef input, int64_t axis) const;

  /// Attributes: what the node or the schema's default says.
  bool given(llvm::StringRef attribute) const;
  int64_t getInt(llvm::StringRef attribute, int64_t otherwise = 0) const;
  float getFloat(llvm::StringRef attribute, float otherwise = 0) const;
  std::string getString(llvm::StringRef attribute) const;
  Ints getInts(llvm::StringRef attribute) const;
  std::vector<float> getFloats(llvm::StringRef attribute) const;
  /// A graph of the node's; null where it is left out.
  const ::onnx::GraphProto *getGraph(llvm::StringRef attribute) const;
  std::vector<std::string> getStrings(llvm::StringRef attribute) const;
  /// The node's attribute, with its name, for a node of the body; nothing where
  /// it is left out.
  void pass(Attrs &attrs, llvm::ArrayRef<const char *> names) const;

  [[noreturn]] void refuse(const llvm::Twine &why) const;
  /// Refuses what is not known of the inputs, and a run's inputs may tell.
  [[noreturn]] void refuseUnknown(const llvm::Twine &what) const;
  /// Refuses an input, output or an integer attribute other than `only`.
  void refuseInput(llvm::StringRef name) const;
  void refuseOutput(llvm::StringRef name) const;
  void refuseUnless(llvm::StringRef attribute, int64_t only) const;

  //===--------------------------------------------------------------------===//
  // New nodes
  //===--------------------------------------------------------------------===//

  Name op(llvm::StringRef type, Names inputs, Attrs attrs = {});
  /// One of several outputs.
  Names op(unsigned outputs, llvm::StringRef type, Names inputs,
           Attrs attrs = {});
  /// An operator of the domain of the one that this is the body of.
  Name ownOp(llvm::StringRef type, Names inputs, Attrs attrs = {});
  Name ints(llvm::ArrayRef<int64_t> values);
  Name integer(int64_t value);
  /// A list of f32.
  Name numbers(llvm::ArrayRef<float> values);
  /// A scalar of an element type.
  Name scalar(double value, int elementType);
  /// A scalar of the type of an input.
  Name scalarLike(double value, llvm::StringRef input) {
    return scalar(value, elementType(input));
  }
  void give(llvm::StringRef output, const Name &value);
  /// Nodes in ONNX's text syntax.
  void addText(const char *nodes);
  /// A Scan over the first axis of `sequences`. `step` gets the states and one
  /// element of each sequence; what it makes are the next states, and behind
  /// them an element of each output. Results are the states behind the last
  /// step, then the outputs, stacked along a new first axis. Backwards, the
  /// last element comes first, and the outputs' first step is their last
  /// element.
  Names scan(const Names &states, const Names &sequences, bool backwards,
             llvm::function_ref<Names(llvm::ArrayRef<Name> states,
                                      llvm::ArrayRef<Name> elements)>
                 step);
  /// An If, whose branches make equally many values of equal types.
  Names branch(const Name &condition, llvm::function_ref<Names()> then,
               llvm::function_ref<Names()> otherwise);

  /// A graph for an attribute of a node. `make` gets the names of its inputs,
  /// makes its nodes, which may use what is outside of it, and gives its
  /// outputs.
  ::onnx::GraphProto
  graph(llvm::ArrayRef<GraphInput> inputs,
        llvm::function_ref<Names(llvm::ArrayRef<Name>)> make);
  /// The nodes of a graph of the node's, with `inputs` for its inputs. Returns
  /// its outputs. To be asked once for each graph.
  Names call(const ::onnx::GraphProto &graph, const Names &inputs);

  // What many bodies need.
  Name add(const Name &a, const Name &b) { return op("Add", {a, b}); }
  Name sub(const Name &a, const Name &b) { return op("Sub", {a, b}); }
  Name mul(const Name &a, const Name &b) { return op("Mul", {a, b}); }
  /// `a` plus `b` where that is there.
  Name addIfThere(const Name &a, const Name &b) {
    return b.empty() ? a : add(a, b);
  }
  Name cast(const Name &value, int elementType) {
    return op("Cast", {value}, {{"to", elementType}});
  }
  Name transpose(const Name &value, const Ints &perm) {
    return op("Transpose", {value}, {{"perm", perm}});
  }
  /// To a shape with 0 for a size that stays and -1 for what is left.
  Name reshape(const Name &value, llvm::ArrayRef<int64_t> shape) {
    return op("Reshape", {value, ints(shape)});
  }
  Name unsqueeze(const Name &value, llvm::ArrayRef<int64_t> axes) {
    return op("Unsqueeze", {value, ints(axes)});
  }
  Name concat(const Names &values, int64_t axis) {
    return op("Concat", values, {{"axis", axis}});
  }
  /// A part of one axis; bounds are lists of one element.
  Name slice(const Name &value, const Name &from, const Name &to, int64_t axis);
  Name slice(const Name &value, int64_t from, int64_t to, int64_t axis) {
    return slice(value, ints({from}), ints({to}), axis);
  }
  /// A size at run time, as a list of one element.
  Name sizeOf(const Name &value, int64_t axis);
  /// 0, 1, ... up to a size given as a list of one element.
  Name iota(const Name &size);

private:
  int find(llvm::StringRef input) const;
  const ::onnx::AttributeProto *attribute(llvm::StringRef name) const;
  ::onnx::NodeProto &node(llvm::StringRef type, const Names &inputs);
  Name constant(::onnx::TensorProto tensor);
  Name newName(llvm::StringRef what);

  const ::onnx::FunctionBodyBuildContext &context;
  const ::onnx::OpSchema &schema;
  ::onnx::FunctionProto &function;
  /// Where new nodes go: the function, or the graph of a node of it.
  google::protobuf::RepeatedPtrField<::onnx::NodeProto> *nodes;
  unsigned counter = 0;
};

} // namespace sardonyx::contrib

#endif // SARDONYX_LIB_CONTRIB_BODY_H
