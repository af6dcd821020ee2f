//===- OutlineKernel.cpp - Make a kernel of a group of operations ---------===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "KernelGroup.h"
#include "Utils.h"

#include "mlir/Dialect/Bufferization/IR/Bufferization.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Dialect/Tensor/Utils/Utils.h"
#include "mlir/IR/IRMapping.h"
#include "llvm/ADT/MapVector.h"

using namespace mlir;
using namespace sardonyx;

static MemRefType bufferOf(Type tensor) {
  auto type = cast<RankedTensorType>(tensor);
  return MemRefType::get(type.getShape(), type.getElementType());
}

/// The sizes of a dynamic tensor, seen through fills and empties.
static SmallVector<OpFoldResult> sizesOf(OpBuilder &b, Value tensor) {
  if (auto fill = tensor.getDefiningOp<linalg::FillOp>())
    return sizesOf(b, fill.getOutputs()[0]);
  if (auto empty = tensor.getDefiningOp<tensor::EmptyOp>())
    return empty.getMixedSizes();
  return tensor::getMixedSizes(b, tensor.getLoc(), tensor);
}

/// Whether the kernel may write `result` into the memory of what it starts
/// from, since nothing else reads that: a program that changes few elements
/// copies none of the others. Arguments and constants must keep their values.
static bool mayUpdate(OpResult result) {
  if (!isa<scf::ForallOp>(result.getOwner()))
    return false;
  Value init = getDestination(result);
  while (isReadOnce(init)) {
    Operation *def = init.getDefiningOp();
    if (!def)
      return !isa<func::FuncOp>(init.getParentBlock()->getParentOp());
    if (!isa<tensor::ExpandShapeOp, tensor::CollapseShapeOp, tensor::CastOp>(
            def))
      return !isa<arith::ConstantOp, tensor::EmptyOp, linalg::FillOp,
                  tensor::ExtractSliceOp>(def);
    init = def->getOperand(0);
  }
  return false;
}

static bool isScalarConstant(Value value) {
  return value.getDefiningOp<arith::ConstantOp>() &&
         !isa<ShapedType>(value.getType());
}

namespace {

class Outliner {
public:
  Outliner(ArrayRef<Operation *> ops, GroupKind kind, SymbolTable &symbols)
      : ops(ops), onOneDomain(kind == GroupKind::Product ||
                              kind == GroupKind::Elementwise),
        mayObserve(kind == GroupKind::Product), symbols(symbols),
        host(ops.front()) {
    for (Operation *op : ops)
      members.insert(op);
  }

  void run(StringRef name) {
    takeObservations();
    for (Operation *op : ops)
      for (OpResult result : op->getResults())
        if (isUsedOutside(result)) {
          if (mayUpdate(result))
            updated[getDestination(result)] = results.size();
          results.push_back(result);
        }
    for (Operation *op : ops) {
      for (OpOperand &operand : op->getOpOperands()) {
        if (readsMemory(operand))
          tensors.insert(operand.get());
        else
          collect(operand.get(), takesOutputSizes(&operand));
      }
      for (Value captured : capturedValues(op))
        collect(captured);
    }
    makeDestinations();
    collectDims();
    func::FuncOp kernel = makeFunction(name);
    fillBody(kernel);
    callKernel(kernel);
    for (sdx::ObserveOp op : observations)
      op.erase();
    for (Operation *op : llvm::reverse(ops))
      op->erase();
  }

private:
  /// A product's kernel has its values in registers when it stores the results
  /// of them: there they are seen. It needs a result to have any loops.
  void takeObservations() {
    if (!mayObserve)
      return;
    bool hasResult = false;
    for (Operation *op : ops)
      for (OpResult result : op->getResults())
        for (Operation *user : result.getUsers()) {
          auto observe = dyn_cast<sdx::ObserveOp>(user);
          if (observe && observe.isUnordered())
            observations.push_back(observe);
          else
            hasResult |= isOutside(user);
        }
    if (!hasResult)
      observations.clear();
  }

  bool isOutside(Operation *user) {
    return !llvm::is_contained(observations, user) &&
           llvm::none_of(ops,
                         [&](Operation *op) { return op->isAncestor(user); });
  }

  bool isUsedOutside(Value result) {
    return llvm::any_of(result.getUsers(),
                        [&](Operation *user) { return isOutside(user); });
  }

  /// On one domain all results have the sizes of the kernel's first output;
  /// sizes from elsewhere that say the same in another way aren't needed.
  bool takesOutputSizes(OpOperand *operand) {
    return onOneDomain && isDestination(*operand);
  }

  /// A product reads its operands from memory, so that even one that holds the
  /// same value everywhere, or nothing, is not made inside of the kernel.
  static bool readsMemory(OpOperand &operand) {
    return isa<sdx::DenseOpInterface>(operand.getOwner()) &&
           !isDestination(operand) &&
           isa_and_nonnull<linalg::FillOp, tensor::EmptyOp>(
               operand.get().getDefiningOp());
  }

  /// Finds what the kernel must be given. Empties, fills and scalar constants
  /// are made anew inside.
  void collect(Value value, bool outputSizes = false) {
    Operation *def = value.getDefiningOp();
    if ((def && members.contains(def)) || updated.contains(value))
      return;
    if (auto empty = value.getDefiningOp<tensor::EmptyOp>()) {
      if (!outputSizes)
        for (Value size : empty.getDynamicSizes())
          collect(size);
      return;
    }
    if (auto fill = value.getDefiningOp<linalg::FillOp>()) {
      collect(fill.getInputs()[0]);
      collect(fill.getOutputs()[0], outputSizes);
      return;
    }
    if (isScalarConstant(value))
      return;
    (isa<RankedTensorType>(value.getType()) ? tensors : scalars).insert(value);
  }

  void makeDestinations() {
    for (OpResult result : results) {
      Value init = getDestination(result);
      if (updated.contains(init)) {
        destinations.push_back(init);
        continue;
      }
      auto type = cast<RankedTensorType>(result.getType());
      SmallVector<OpFoldResult> sizes = sizesOf(host, init);
      SmallVector<Value> dynamic;
      for (int64_t i = 0, e = type.getRank(); i < e; ++i) {
        if (!type.isDynamicDim(i))
          continue;
        Value size =
            getValueOrCreateConstantIndexOp(host, result.getLoc(), sizes[i]);
        dynamic.push_back(size);
        if (!isScalarConstant(size))
          dimSources.try_emplace(
              size, std::pair<unsigned, int64_t>(destinations.size(), i));
      }
      destinations.push_back(
          tensor::EmptyOp::create(host, result.getLoc(), type.getShape(),
                                  type.getElementType(), dynamic));
    }
  }

  /// Scalars that are sizes of the kernel's arguments are read off there.
  void collectDims() {
    scalars.remove_if([&](Value value) {
      if (dimSources.count(value))
        return true;
      auto dim = value.getDefiningOp<tensor::DimOp>();
      if (!dim || !dim.getConstantIndex() ||
          (!tensors.contains(dim.getSource()) &&
           !updated.contains(dim.getSource())))
        return false;
      argumentDims[value] = {dim.getSource(), *dim.getConstantIndex()};
      return true;
    });
  }

  func::FuncOp makeFunction(StringRef name) {
    SmallVector<Type> types;
    SmallVector<Location> locs;
    for (Value value : tensors)
      types.push_back(bufferOf(value.getType()));
    for (Value value : scalars)
      types.push_back(value.getType());
    for (OpResult result : results)
      types.push_back(bufferOf(result.getType()));
    for (Operation *op : ops)
      locs.push_back(op->getLoc());
    MLIRContext *context = host.getContext();
    auto kernel = func::FuncOp::create(host.getFusedLoc(locs), name,
                                       FunctionType::get(context, types, {}));
    kernel.setPrivate();
    kernel->setAttr(sdx::kKernelAttr, UnitAttr::get(context));
    symbols.insert(kernel);
    return kernel;
  }

  Value constantIndex(OpBuilder &b, Location loc, int64_t value) {
    return arith::ConstantIndexOp::create(b, loc, value);
  }

  void fillBody(func::FuncOp kernel) {
    Block *entry = kernel.addEntryBlock();
    OpBuilder b = OpBuilder::atBlockEnd(entry);
    Location loc = kernel.getLoc();
    unsigned next = 0;
    for (Value value : tensors) {
      mapping.map(value, bufferization::ToTensorOp::create(
                             b, loc, value.getType(), entry->getArgument(next),
                             /*restrict=*/true));
      bufferOfTensor[value] = entry->getArgument(next++);
    }
    for (Value value : scalars)
      mapping.map(value, entry->getArgument(next++));
    firstOut = next;
    for (auto [value, index] : updated) {
      Value out = entry->getArgument(firstOut + index);
      bufferOfTensor[value] = out;
      mapping.map(value, bufferization::ToTensorOp::create(
                             b, loc, value.getType(), out, /*restrict=*/true,
                             /*writable=*/true));
    }

    for (Operation *op : ops) {
      // An empty that the body reads is this operation's alone, too.
      IRMapping inner = mapping;
      for (Value captured : capturedValues(op))
        inner.map(captured, materialize(b, captured));
      SmallVector<Value> operands;
      for (OpOperand &operand : op->getOpOperands())
        operands.push_back(materializeOperand(b, operand));
      Operation *clone = b.clone(*op, inner);
      clone->setOperands(operands);
      mapping.map(op->getResults(), clone->getResults());
    }
    for (auto [i, result] : llvm::enumerate(results))
      bufferization::MaterializeInDestinationOp::create(
          b, result.getLoc(), Type(), mapping.lookup(result),
          entry->getArgument(firstOut + i), /*restrict=*/true,
          /*writable=*/true);
    for (sdx::ObserveOp op : observations) {
      IRMapping inner;
      inner.map(op.getValue(), mapping.lookup(op.getValue()));
      b.clone(*op, inner);
    }
    func::ReturnOp::create(b, loc);
  }

  /// An init that holds values and is not updated is an input of the kernel,
  /// which must not be written: the operation works on a copy.
  Value materializeOperand(OpBuilder &b, OpOperand &operand) {
    bool isInit = isDestination(operand);
    // The same fill may also be an operand that is read from memory.
    if (isInit && operand.get().getDefiningOp<linalg::FillOp>())
      return materializeFill(b, operand.get(), takesOutputSizes(&operand));
    Value value = materialize(b, operand.get(), takesOutputSizes(&operand));
    Operation *def = operand.get().getDefiningOp();
    if (!isInit || updated.contains(operand.get()) ||
        (def &&
         (members.contains(def) || isa<tensor::EmptyOp, linalg::FillOp>(def))))
      return value;
    Location loc = operand.getOwner()->getLoc();
    auto type = cast<RankedTensorType>(value.getType());
    Value empty =
        tensor::EmptyOp::create(b, loc, type.getShape(), type.getElementType(),
                                tensor::createDynamicDimValues(b, loc, value));
    return linalg::CopyOp::create(b, loc, value, empty).getResult(0);
  }

  /// `value` inside of the kernel. Empties and fills are made for each use, as
  /// they become the destinations of different operations.
  Value materialize(OpBuilder &b, Value value, bool outputSizes = false) {
    if (Value mapped = mapping.lookupOrNull(value))
      return mapped;
    Location loc = value.getLoc();
    if (auto empty = value.getDefiningOp<tensor::EmptyOp>()) {
      SmallVector<Value> sizes;
      auto type = cast<RankedTensorType>(empty.getType());
      for (int64_t i = 0, e = type.getRank(); i < e; ++i)
        if (type.isDynamicDim(i))
          sizes.push_back(outputSizes
                              ? memref::DimOp::create(b, loc, firstOutput(b),
                                                      constantIndex(b, loc, i))
                              : materialize(b, empty.getDynamicSize(i)));
      return tensor::EmptyOp::create(b, loc, type.getShape(),
                                     type.getElementType(), sizes);
    }
    if (value.getDefiningOp<linalg::FillOp>())
      return materializeFill(b, value, outputSizes);
    Value inside;
    Block *entry = b.getInsertionBlock();
    if (isScalarConstant(value)) {
      inside = b.clone(*value.getDefiningOp())->getResult(0);
    } else if (auto it = dimSources.find(value); it != dimSources.end()) {
      Value out = entry->getArgument(firstOut + it->second.first);
      inside = memref::DimOp::create(b, loc, out,
                                     constantIndex(b, loc, it->second.second));
    } else {
      auto [tensor, dim] = argumentDims.lookup(value);
      inside = memref::DimOp::create(b, loc, bufferOfTensor.lookup(tensor),
                                     constantIndex(b, loc, dim));
    }
    mapping.map(value, inside);
    return inside;
  }

  Value materializeFill(OpBuilder &b, Value value, bool outputSizes) {
    auto fill = value.getDefiningOp<linalg::FillOp>();
    Value scalar = materialize(b, fill.getInputs()[0]);
    Value into = materialize(b, fill.getOutputs()[0], outputSizes);
    return linalg::FillOp::create(b, value.getLoc(), scalar, into).getResult(0);
  }

  Value firstOutput(OpBuilder &b) {
    return b.getInsertionBlock()->getArgument(firstOut);
  }

  void callKernel(func::FuncOp kernel) {
    SmallVector<Value> ins(tensors.begin(), tensors.end());
    ins.append(scalars.begin(), scalars.end());
    auto call = sdx::CallOp::create(
        host, kernel.getLoc(), kernel.getName(), ins, destinations,
        llvm::to_vector(llvm::make_second_range(updated)));
    for (auto [result, replacement] : llvm::zip(results, call->getResults()))
      result.replaceAllUsesWith(replacement);
  }

  ArrayRef<Operation *> ops;
  bool onOneDomain, mayObserve;
  SymbolTable &symbols;
  OpBuilder host;
  DenseSet<Operation *> members;
  SmallVector<sdx::ObserveOp> observations; // that the kernel makes
  llvm::SetVector<Value> tensors, scalars;
  SmallVector<OpResult> results;
  SmallVector<Value> destinations;
  /// What results are written into and start from, and the results' numbers.
  llvm::MapVector<Value, int64_t> updated;
  DenseMap<Value, std::pair<unsigned, int64_t>> dimSources; // of destinations
  DenseMap<Value, std::pair<Value, int64_t>> argumentDims;
  DenseMap<Value, Value> bufferOfTensor;
  IRMapping mapping;
  unsigned firstOut = 0;
};

} // namespace

/// A word for people who read profiles.
static StringRef describe(ArrayRef<Operation *> ops, GroupKind kind) {
  switch (kind) {
  case GroupKind::Product:
    return cast<sdx::DenseOpInterface>(ops.front()).getKernelName();
  case GroupKind::Rows:
    return "rows";
  case GroupKind::Elementwise:
    return "elementwise";
  case GroupKind::Single:
    return ops.front()->getName().stripDialect();
  }
  return "";
}

void sardonyx::outlineKernel(ArrayRef<Operation *> ops, GroupKind kind,
                             SymbolTable &symbols, unsigned number) {
  std::string name = ("k" + Twine(number) + "_" + describe(ops, kind)).str();
  Outliner(ops, kind, symbols).run(name);
}
