//===- MaterializeConstants.cpp - Compute what follows from constants -----===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "sardonyx/Exporter/Exporter.h"
#include "sardonyx/Session/Passes.h"
#include "sardonyx/Session/Session.h"
#include "sardonyx/Transforms/ConstantOnly.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/AsmState.h"
#include "mlir/IR/DialectResourceBlobManager.h"

namespace sardonyx {
#define GEN_PASS_DEF_ONNXMATERIALIZECONSTANTS
#include "sardonyx/Session/Passes.h.inc"
} // namespace sardonyx

using namespace mlir;
using namespace sardonyx;

/// Bytes of a tensor, a byte for each number of fewer than 8 bits.
static int64_t countBytes(Type type) {
  auto tensor = cast<RankedTensorType>(type);
  const int64_t bits =
      std::max<int64_t>(tensor.getElementType().getIntOrFloatBitWidth(), 8);
  return tensor.getNumElements() * bits / 8;
}

namespace {

/// Whether runs give tensors of such a type.
bool isComputed(Value value) {
  auto type = dyn_cast<RankedTensorType>(value.getType());
  return type && type.hasStaticShape() && type.getElementType().isIntOrFloat();
}

/// Some values that are computed in one run.
struct Batch {
  SmallVector<Value> values;
  /// What makes them.
  SetVector<Operation *> makers;
  int64_t bytes = 0;
};

class Materializer {
public:
  explicit Materializer(ModuleOp module) : module(module) {}

  LogicalResult run() {
    for (func::FuncOp function : module.getOps<func::FuncOp>())
      collect(function);
    for (Batch &batch : batches)
      if (failed(compute(batch)))
        return failure();
    return success();
  }

private:
  /// DequantizeLinear makes large constants of small ones.
  static bool isKept(Operation *op) {
    return isa<onnx::DequantizeLinearOp>(op);
  }

  /// Finds the values to compute: those that something else than an operator on
  /// constants reads.
  void collect(func::FuncOp function) {
    function.walk([&](Operation *op) {
      if (op->hasTrait<OpTrait::ConstantLike>() || op->getNumResults() == 0 ||
          isKept(op) || !isFoldable(op->getResult(0)))
        return;
      for (Value result : op->getResults())
        if (isComputed(result) &&
            llvm::any_of(result.getUsers(),
                         [&](Operation *user) { return !isFoldableOp(user); }))
          add(result);
    });
  }
  bool isFoldableOp(Operation *op) {
    return op->getNumResults() && !isKept(op) && isFoldable(op->getResult(0));
  }
  bool isFoldable(Value value) {
    auto [known, isNew] = foldable.try_emplace(value.getDefiningOp(), false);
    if (!isNew)
      return known->second;
    SetVector<Operation *> makers;
    const bool result =
        collectConstantMakers(value, makers) && llvm::none_of(makers, isKept);
    return foldable[value.getDefiningOp()] = result;
  }

  void add(Value value) {
    // What is exported for one run.
    constexpr int64_t kMostBytes = 256 << 20, kSmall = 1024;
    SetVector<Operation *> makers;
    collectConstantMakers(value, makers);
    int64_t bytes = 0;
    for (Operation *maker : makers)
      if (maker->hasTrait<OpTrait::ConstantLike>() && maker->getNumResults() &&
          isComputed(maker->getResult(0)))
        bytes += countBytes(maker->getResult(0).getType());
    if (countBytes(value.getType()) > 2 * bytes + kSmall)
      return;
    if (batches.empty() || batches.back().bytes + bytes > kMostBytes)
      batches.emplace_back();
    Batch &batch = batches.back();
    batch.values.push_back(value);
    batch.makers.insert(makers.begin(), makers.end());
    batch.bytes += bytes;
  }

  /// A model that has the batch's values for results.
  OwningOpRef<ModuleOp> makeModel(const Batch &batch) {
    OpBuilder b(module.getContext());
    OwningOpRef<ModuleOp> model = ModuleOp::create(b, module.getLoc());
    (*model)->setAttrs(module->getAttrDictionary());
    b.setInsertionPointToStart(model->getBody());
    auto function = func::FuncOp::create(
        b, module.getLoc(), "main_graph",
        b.getFunctionType({}, ValueRange(batch.values).getTypes()));
    b.setInsertionPointToStart(function.addEntryBlock());
    // In the order in which they stand, which operators of a block have.
    IRMapping mapping;
    SetVector<Operation *> done;
    for (Value value : batch.values)
      clone(b, value.getDefiningOp(), mapping, done);
    SmallVector<Value> results;
    for (Value value : batch.values)
      results.push_back(mapping.lookup(value));
    func::ReturnOp::create(b, module.getLoc(), results);
    return model;
  }
  void clone(OpBuilder &b, Operation *op, IRMapping &mapping,
             SetVector<Operation *> &done) {
    if (done.contains(op))
      return;
    for (Value operand : op->getOperands())
      clone(b, operand.getDefiningOp(), mapping, done);
    done.insert(op);
    b.clone(*op, mapping)->removeAttr("onnx.names");
  }

  LogicalResult compute(const Batch &batch) {
    OwningOpRef<ModuleOp> model = makeModel(batch);
    std::string bytes;
    if (failed(exportOnnxBytes(*model, bytes)))
      return failure();
    SessionOptions options;
    options.cache = false;
    auto session = Session::loadBytes(bytes.data(), bytes.size(), options);
    if (!session)
      return fail(session.error().message());
    auto results = (*session)->run({});
    if (!results)
      return fail(results.error().message());
    for (auto [value, result] : llvm::zip_equal(batch.values, *results))
      replace(value, result);
    return success();
  }
  LogicalResult fail(const std::string &why) {
    return emitError(module.getLoc(), "onnx-materialize-constants: ") << why;
  }

  void replace(Value value, const Tensor &result) {
    auto type = cast<RankedTensorType>(value.getType());
    Operation *op = value.getDefiningOp();
    OpBuilder b(op);
    auto constant = onnx::createConstant(
        b, op->getLoc(),
        makeAttribute(type, {static_cast<const char *>(result.data),
                             size_t(result.bytes())}));
    auto names = op->getAttrOfType<ArrayAttr>("onnx.names");
    const unsigned number = cast<OpResult>(value).getResultNumber();
    if (names && number < names.size())
      constant->setAttr("onnx.names", b.getArrayAttr(names[number]));
    value.replaceAllUsesWith(constant);
    eraseUnread(op);
  }

  static ElementsAttr makeAttribute(RankedTensorType type,
                                    ArrayRef<char> bytes) {
    constexpr size_t kDense = 256; // bytes that the IR shows
    const unsigned bits = type.getElementType().getIntOrFloatBitWidth();
    if (bits == 1) {
      SmallVector<bool> values;
      for (char byte : bytes)
        values.push_back(byte != 0);
      return DenseElementsAttr::get(type, values);
    }
    SmallVector<char> stored(bytes);
    const bool isSmall = bytes.size() <= kDense;
    if (bits < 8) {
      const unsigned mask = (1u << bits) - 1;
      for (char &byte : stored)
        byte = char(uint8_t(byte) & mask);
      // Numbers of a resource share bytes, the first in the lowest bits.
      const size_t share = 8 / bits;
      if (!isSmall) {
        SmallVector<char> packed(llvm::divideCeil(stored.size(), share), 0);
        for (auto [i, byte] : llvm::enumerate(stored))
          packed[i / share] |= char(uint8_t(byte) << (i % share * bits));
        stored = std::move(packed);
      }
    }
    if (isSmall)
      return DenseElementsAttr::getFromRawBuffer(type, stored);
    return cast<ElementsAttr>(Attribute(DenseResourceElementsAttr::get(
        type, "constant",
        HeapAsmResourceBlob::allocateAndCopyWithAlign(stored, 64))));
  }

  /// Erases an operator that nothing reads, and then what it alone read.
  void eraseUnread(Operation *op) {
    if (!op || !op->use_empty() || !isPure(op))
      return;
    SmallVector<Value> operands(op->getOperands());
    op->erase();
    for (Value operand :
         llvm::SetVector<Value>(operands.begin(), operands.end()))
      eraseUnread(operand.getDefiningOp());
  }

  ModuleOp module;
  SmallVector<Batch> batches;
  llvm::DenseMap<Operation *, bool> foldable;
};

struct OnnxMaterializeConstantsPass
    : sardonyx::impl::OnnxMaterializeConstantsBase<
          OnnxMaterializeConstantsPass> {
  void runOnOperation() override {
    if (failed(Materializer(getOperation()).run()))
      signalPassFailure();
  }
};

} // namespace
