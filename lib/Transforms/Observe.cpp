//===- Observe.cpp - Observe tensors by their names -----------------------===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "sardonyx/Transforms/Observe.h"
#include "sardonyx/Transforms/Passes.h"
#include "sardonyx/UnknownName.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "llvm/ADT/StringMap.h"

namespace sardonyx {
#define GEN_PASS_DEF_ONNXOBSERVE
#include "sardonyx/Transforms/Passes.h.inc"
} // namespace sardonyx

using namespace mlir;
using namespace sardonyx;
using sdx::ObservationKinds;

namespace {

/// The tensors of a main graph by their names.
class NamedTensors {
public:
  explicit NamedTensors(ModuleOp module) {
    graph = module.lookupSymbol<func::FuncOp>("main_graph");
    if (!graph)
      for (auto func : module.getOps<func::FuncOp>())
        graph = graph ? graph : func;
    if (!graph || graph.isExternal())
      return;
    for (BlockArgument argument : graph.getArguments())
      if (auto name = graph.getArgAttrOfType<StringAttr>(
              argument.getArgNumber(), "onnx.name"))
        add(name, argument);
    graph.walk([&](Operation *op) {
      auto names = op->getAttrOfType<ArrayAttr>("onnx.names");
      if (!names || names.size() != op->getNumResults())
        return;
      for (auto [name, result] : llvm::zip(names, op->getResults())) {
        auto text = dyn_cast<StringAttr>(name);
        if (!text || text.empty())
          continue;
        if (op->getBlock() == &graph.getBody().front())
          add(text, result);
        else
          inner.try_emplace(text.getValue(), op->getParentOp());
      }
    });
  }

  Value find(StringRef name) const { return values.lookup(name); }
  /// The operation in whose body a tensor is made; null if in none.
  Operation *findBody(StringRef name) const { return inner.lookup(name); }
  const std::vector<std::string> &names() const { return order; }

private:
  void add(StringAttr name, Value value) {
    if (values.try_emplace(name.getValue(), value).second)
      order.push_back(name.str());
  }

  func::FuncOp graph;
  llvm::StringMap<Value> values;
  llvm::StringMap<Operation *> inner;
  std::vector<std::string> order;
};

/// Puts observations of one tensor behind what makes it.
class Observer {
public:
  Observer(Value value, const ObservedName &wanted, int64_t site)
      : b(value.getContext()), value(value), wanted(wanted), site(site) {
    if (Operation *def = value.getDefiningOp())
      b.setInsertionPointAfter(def);
    else
      b.setInsertionPointToStart(value.getParentBlock());
  }

  /// What is wrong with it, or nothing.
  std::string run() {
    auto type = dyn_cast<TensorType>(value.getType());
    if (!type || sdx::getObservedType(type.getElementType()) < 0)
      return refuse("floats of 16, 32 and 64 bits can be, and it is " +
                    describe(value.getType()));
    const ObservationKinds unordered = ObservationKinds::Range |
                                       ObservationKinds::Moments |
                                       ObservationKinds::Bits;
    if ((wanted.kinds & unordered) != ObservationKinds(0))
      observe(value, wanted.kinds & unordered, IntegerAttr());
    if (has(ObservationKinds::Channels)) {
      if (!type.hasRank())
        return refuse("its channels are along no axis that is known");
      int64_t axis =
          wanted.axis < 0 ? wanted.axis + type.getRank() : wanted.axis;
      if (axis < 0 || axis >= type.getRank())
        return refuse("it has no axis " + std::to_string(wanted.axis) + ", " +
                      describe(type));
      observe(value, ObservationKinds::Channels, b.getI64IntegerAttr(axis));
    }
    if (has(ObservationKinds::Gram)) {
      if (!type.hasRank() || type.getRank() == 0)
        return refuse("it is no matrix, " + describe(type));
      observe(makeGram(cast<RankedTensorType>(type)), ObservationKinds::Gram,
              IntegerAttr());
    }
    return "";
  }

private:
  bool has(ObservationKinds kind) const {
    return bitEnumContainsAny(wanted.kinds, kind);
  }

  void observe(Value seen, ObservationKinds kinds, IntegerAttr axis) {
    sdx::ObserveOp::create(b, value.getLoc(), seen, ValueRange(), site, kinds,
                           axis);
  }

  /// X^T X, of at least f32.
  Value makeGram(RankedTensorType type) {
    Location loc = value.getLoc();
    Value x = value;
    Type element = type.getElementType();
    if (element.getIntOrFloatBitWidth() < 32) {
      constexpr int64_t kOnnxFloat = 1; // TensorProto.FLOAT
      element = b.getF32Type();
      x = onnx::CastOp::create(b, loc, type.clone(element), x,
                               /*round_mode=*/"up", /*saturate=*/1, kOnnxFloat);
    }
    const int64_t columns = type.getShape().back();
    int64_t rows = 1;
    for (int64_t size : type.getShape().drop_back())
      rows = ShapedType::isDynamic(size) || ShapedType::isDynamic(rows)
                 ? ShapedType::kDynamic
                 : rows * size;
    x = onnx::FlattenOp::create(b, loc,
                                RankedTensorType::get({rows, columns}, element),
                                x, /*axis=*/type.getRank() - 1);
    Value transposed = onnx::TransposeOp::create(
        b, loc, RankedTensorType::get({columns, rows}, element), x,
        b.getDenseI64ArrayAttr({1, 0}));
    return onnx::MatMulOp::create(
        b, loc, RankedTensorType::get({columns, columns}, element), transposed,
        x);
  }

  std::string refuse(const std::string &why) const {
    return "tensor '" + wanted.name + "' cannot be observed: " + why;
  }

  static std::string describe(Type type) {
    std::string text;
    llvm::raw_string_ostream(text) << type;
    return text;
  }

  OpBuilder b;
  Value value;
  const ObservedName &wanted;
  int64_t site;
};

} // namespace

std::string sardonyx::observeTensors(ModuleOp module,
                                     ArrayRef<ObservedName> tensors) {
  // A module that was imported has ops of onnx only.
  module.getContext()->getOrLoadDialect<sdx::SDXDialect>();
  Builder b(module.getContext());
  NamedTensors named(module);
  SmallVector<Attribute> sites;
  if (auto before = module->getAttrOfType<ArrayAttr>(sdx::kObservationsAttr))
    llvm::append_range(sites, before);
  for (const ObservedName &wanted : tensors) {
    Value value = named.find(wanted.name);
    if (Operation *body = value ? nullptr : named.findBody(wanted.name))
      return "tensor '" + wanted.name +
             "' cannot be observed: it is made in a body of " +
             body->getName().stripDialect().str() +
             ", and only those of the main graph can be";
    if (!value)
      return unknownName("tensor", wanted.name, named.names());
    std::string wrong = Observer(value, wanted, sites.size()).run();
    if (!wrong.empty())
      return wrong;
    NamedAttrList site;
    site.set("name", b.getStringAttr(wanted.name));
    site.set("kinds",
             sdx::ObservationKindsAttr::get(module.getContext(), wanted.kinds));
    sites.push_back(site.getDictionary(module.getContext()));
  }
  if (!sites.empty())
    module->setAttr(sdx::kObservationsAttr, b.getArrayAttr(sites));
  return "";
}

std::vector<std::string> sardonyx::listFloatTensors(ModuleOp module) {
  NamedTensors named(module);
  std::vector<std::string> names;
  for (const std::string &name : named.names()) {
    Value value = named.find(name);
    auto type = dyn_cast<TensorType>(value.getType());
    Operation *def = value.getDefiningOp();
    if (type && sdx::getObservedType(type.getElementType()) >= 0 &&
        !(def && def->hasTrait<OpTrait::ConstantLike>()))
      names.push_back(name);
  }
  return names;
}

namespace {

struct OnnxObservePass : sardonyx::impl::OnnxObserveBase<OnnxObservePass> {
  using Base::Base;

  void runOnOperation() override {
    std::optional<ObservationKinds> wanted =
        sdx::symbolizeObservationKinds(kinds);
    if (!wanted || *wanted == ObservationKinds(0)) {
      getOperation().emitError("'")
          << kinds << "' are no kinds of observations; there are range, "
          << "moments, bits, channels and gram";
      return signalPassFailure();
    }
    std::vector<std::string> names(tensors.begin(), tensors.end());
    if (allFloats)
      llvm::append_range(names, listFloatTensors(getOperation()));
    std::vector<ObservedName> observed;
    for (const std::string &name : names)
      observed.push_back({name, *wanted, axis});
    std::string wrong = observeTensors(getOperation(), observed);
    if (wrong.empty())
      return;
    getOperation().emitError(wrong);
    signalPassFailure();
  }
};

} // namespace
