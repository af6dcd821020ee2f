//===- PlaceBuffers.cpp - Buffers in the host's or a device's memory ------===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// All values that may be one buffer (views, what loops carry, what branches
// yield) have one place. It is the device's memory where a kernel there writes
// it, or reads what the host's operations do not write. Whoever needs a value
// in the other place gets a copy, which serves until somebody writes the value;
// what comes from an argument comes in both places, as two arguments.
//
//===----------------------------------------------------------------------===//

#include "Buffers.h"
#include "sardonyx/Host/Passes.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Interfaces/ViewLikeInterface.h"
#include "llvm/ADT/EquivalenceClasses.h"
#include "llvm/ADT/MapVector.h"

namespace sardonyx {
#define GEN_PASS_DEF_SDXPLACEBUFFERS
#include "sardonyx/Host/Passes.h.inc"
} // namespace sardonyx

using namespace mlir;
using namespace sardonyx;

/// Elements of a buffer that is copied as a whole where one of them is read.
static constexpr int64_t kSmall = 512;

static bool isBuffer(Value value) { return isa<MemRefType>(value.getType()); }

static MemRefType withSpace(MemRefType type, Attribute space) {
  return MemRefType::Builder(type).setMemorySpace(space);
}

namespace {

/// What an operation does to a buffer.
struct Access {
  bool onDevice = false;
  bool reads = false, writes = false;
};

/// The buffers of one host function.
class Placement {
public:
  Placement(func::FuncOp func, SymbolTable &symbols)
      : func(func), symbols(symbols) {}

  LogicalResult run() {
    if (failed(uniteAliases()))
      return failure();
    findAccesses();
    if (!space)
      return success();
    choosePlaces();
    copyInBlock(func.getBody().front());
    moveConstants();
    setTypes();
    return success();
  }

private:
  //===--------------------------------------------------------------------===//
  // Which values may be one buffer
  //===--------------------------------------------------------------------===//

  void unite(Value a, Value b) {
    if (isBuffer(a) && isBuffer(b))
      classes.unionSets(a.getAsOpaquePointer(), b.getAsOpaquePointer());
  }

  template <typename A, typename B> void uniteAll(A &&as, B &&bs) {
    for (auto [a, b] : llvm::zip(as, bs))
      unite(a, b);
  }

  void uniteWhile(scf::WhileOp loop) {
    uniteAll(loop.getInits(), loop.getBeforeArguments());
    uniteAll(loop.getConditionOp().getArgs(), loop.getAfterArguments());
    uniteAll(loop.getConditionOp().getArgs(), loop.getResults());
    uniteAll(loop.getYieldOp().getOperands(), loop.getBeforeArguments());
  }

  void uniteFor(scf::ForOp loop) {
    uniteAll(loop.getInitArgs(), loop.getRegionIterArgs());
    uniteAll(loop.getYieldedValues(), loop.getRegionIterArgs());
    uniteAll(loop.getInitArgs(), loop.getResults());
  }

  void uniteBranches(Operation *branch) {
    for (Region &region : branch->getRegions())
      if (!region.empty())
        uniteAll(branch->getResults(),
                 region.front().getTerminator()->getOperands());
  }

  LogicalResult uniteAliases() {
    WalkResult result = func.walk([&](Operation *op) {
      for (Value value : op->getResults())
        if (isBuffer(value))
          classes.insert(value.getAsOpaquePointer());
      for (Region &region : op->getRegions())
        for (Block &block : region)
          for (Value argument : block.getArguments())
            if (isBuffer(argument))
              classes.insert(argument.getAsOpaquePointer());
      if (auto loop = dyn_cast<scf::ForOp>(op))
        uniteFor(loop);
      else if (auto loop = dyn_cast<scf::WhileOp>(op))
        uniteWhile(loop);
      else if (isa<scf::IfOp, scf::IndexSwitchOp>(op))
        uniteBranches(op);
      else if (auto select = dyn_cast<arith::SelectOp>(op)) {
        unite(select.getTrueValue(), select.getResult());
        unite(select.getFalseValue(), select.getResult());
      } else if (auto view = dyn_cast<ViewLikeOpInterface>(op))
        unite(view.getViewSource(), op->getResult(0));
      else if (op->getNumRegions() && op != func &&
               llvm::any_of(op->getOperands(), isBuffer))
        return WalkResult(op->emitOpError("carries buffers in a way that the "
                                          "host program has no places for"));
      return WalkResult::advance();
    });
    return failure(result.wasInterrupted());
  }

  void *classOf(Value value) const {
    return *classes.findLeader(value.getAsOpaquePointer());
  }

  //===--------------------------------------------------------------------===//
  // Who reads and writes them
  //===--------------------------------------------------------------------===//

  /// The memory in which a kernel has its operands; null: the host's.
  Attribute spaceOf(sdx::CallOp call) {
    auto kernel = symbols.lookup<func::FuncOp>(call.getCallee());
    auto target = kernel ? sdx::getTarget(kernel) : nullptr;
    return target ? target.getMemorySpace() : Attribute();
  }

  /// Whether an operation only passes buffers on, or copies them from anywhere
  /// to anywhere.
  static bool isNeutral(Operation *op) {
    return isa<ViewLikeOpInterface, memref::DimOp, memref::DeallocOp,
               memref::CopyOp, arith::SelectOp, scf::ForOp, scf::WhileOp,
               scf::IfOp, scf::IndexSwitchOp>(op) ||
           op->hasTrait<OpTrait::IsTerminator>();
  }

  Access accessOf(OpOperand &operand) {
    Operation *op = operand.getOwner();
    if (isNeutral(op))
      return {};
    if (auto call = dyn_cast<sdx::CallOp>(op)) {
      int64_t out =
          int64_t(operand.getOperandNumber()) - int64_t(call.getIns().size());
      return {bool(spaceOf(call)), out < 0 || call.updatesOut(out), out >= 0};
    }
    if (auto call = dyn_cast<sdx::RuntimeCallOp>(op)) {
      bool isOut = operand.getOperandNumber() >= call.getIns().size();
      return {false, !isOut, isOut};
    }
    if (isa<memref::LoadOp>(op))
      return {false, true, false};
    return {false, true, true};
  }

  void findAccesses() {
    func.walk([&](Operation *op) {
      if (auto call = dyn_cast<sdx::CallOp>(op))
        if (Attribute own = spaceOf(call))
          space = own;
      for (OpOperand &operand : op->getOpOperands()) {
        if (!isBuffer(operand.get()))
          continue;
        Access access = accessOf(operand);
        Uses &uses = usesOf[classOf(operand.get())];
        (access.onDevice ? uses.deviceReads : uses.hostReads) |= access.reads;
        (access.onDevice ? uses.deviceWrites : uses.hostWrites) |=
            access.writes;
      }
      // Constants are the host's.
      if (auto global = dyn_cast<memref::GetGlobalOp>(op))
        usesOf[classOf(global)].hostWrites = true;
      if (auto copy = dyn_cast<memref::CopyOp>(op))
        copies.emplace_back(classOf(copy.getSource()),
                            classOf(copy.getTarget()));
    });
  }

  struct Uses {
    bool deviceReads = false, deviceWrites = false;
    bool hostReads = false, hostWrites = false;
    bool any() const {
      return deviceReads || deviceWrites || hostReads || hostWrites;
    }
  };

  /// What is only copied goes where it comes from, or where it goes to.
  void choosePlaces() {
    for (auto &[leader, uses] : usesOf)
      if (uses.deviceWrites || (uses.deviceReads && !uses.hostWrites))
        onDevice.insert(leader);
    for (bool changed = true; changed;) {
      changed = false;
      for (auto [source, target] : copies)
        for (auto [from, to] : {std::pair(source, target), {target, source}})
          if (onDevice.contains(from) && !usesOf[to].any())
            changed |= onDevice.insert(to).second;
    }
  }

  bool isOnDevice(Value value) const {
    return onDevice.contains(classOf(value));
  }

  //===--------------------------------------------------------------------===//
  // Copies from one place to the other
  //===--------------------------------------------------------------------===//

  /// Adds a buffer that is one of its own.
  Value allocate(OpBuilder &b, Location loc, Value like, bool device) {
    Value made = allocateLike(b, loc, like);
    classes.insert(made.getAsOpaquePointer());
    if (device)
      onDevice.insert(classOf(made));
    return made;
  }

  /// A copy from one place to the other is of neighbouring bytes: what has gaps
  /// is copied once more in its own place.
  void copyAcross(OpBuilder &b, Location loc, Value source, Value target) {
    if (!sdx::isContiguous(cast<MemRefType>(source.getType()))) {
      Value dense = allocate(b, loc, source, isOnDevice(source));
      memref::CopyOp::create(b, loc, source, dense);
      source = dense;
    }
    if (sdx::isContiguous(cast<MemRefType>(target.getType()))) {
      memref::CopyOp::create(b, loc, source, target);
      return;
    }
    Value dense = allocate(b, loc, target, isOnDevice(target));
    memref::CopyOp::create(b, loc, source, dense);
    memref::CopyOp::create(b, loc, dense, target);
  }

  /// Whether `value` is a constant, an argument of the function, or a view of
  /// one: it can be had in any place from the beginning.
  bool isGiven(Value value) {
    while (auto view = value.getDefiningOp<ViewLikeOpInterface>())
      value = view.getViewSource();
    auto argument = dyn_cast<BlockArgument>(value);
    return value.getDefiningOp<memref::GetGlobalOp>() ||
           (argument && argument.getOwner() == &func.getBody().front());
  }

  /// A new argument that is what `attrs` say.
  Value addArgument(Type type, DictionaryAttr attrs, Location loc) {
    unsigned index = func.getNumArguments();
    (void)func.insertArgument(index, type, attrs, loc);
    return func.getArgument(index);
  }

  /// A constant of the program as one of its arguments.
  Value addConstant(memref::GetGlobalOp op) {
    auto global = symbols.lookup<memref::GlobalOp>(op.getName());
    Builder b(func.getContext());
    return addArgument(op.getType(),
                       b.getDictionaryAttr(b.getNamedAttr(
                           sdx::kConstantAttr, global.getInitialValueAttr())),
                       op.getLoc());
  }

  /// What isGiven() is true of, in the other place.
  Value twinOf(Value value) {
    if (Value known = twins.lookup(value))
      return known;
    Value twin;
    if (auto argument = dyn_cast<BlockArgument>(value)) {
      twin = addArgument(argument.getType(),
                         func.getArgAttrDict(argument.getArgNumber()),
                         argument.getLoc());
    } else if (auto global = value.getDefiningOp<memref::GetGlobalOp>()) {
      twin = addConstant(global);
    } else {
      Operation *view = value.getDefiningOp();
      Value source = cast<ViewLikeOpInterface>(view).getViewSource();
      Value base = twinOf(source);
      OpBuilder b(view->getContext());
      b.setInsertionPointAfter(view);
      Operation *made = b.clone(*view);
      made->replaceUsesOfWith(source, base);
      twin = made->getResult(0);
      unite(base, twin);
    }
    classes.insert(twin.getAsOpaquePointer());
    if (!isOnDevice(value))
      onDevice.insert(classOf(twin));
    twins[value] = twin;
    return twin;
  }

  /// A copy of the one element that `load` reads, in the host's memory.
  void copyElement(memref::LoadOp load) {
    OpBuilder b(load);
    Location loc = load.getLoc();
    int64_t rank = load.getMemRefType().getRank();
    SmallVector<OpFoldResult> offsets(load.getIndices()),
        ones(rank, b.getIndexAttr(1));
    for (OpFoldResult &offset : offsets)
      if (std::optional<int64_t> known = getConstantIntValue(offset))
        offset = b.getIndexAttr(*known);
    Value element = memref::SubViewOp::create(b, loc, load.getMemRef(), offsets,
                                              ones, ones);
    unite(load.getMemRef(), element);
    Value copy = allocate(b, loc, element, /*device=*/false);
    copyAcross(b, loc, element, copy);
    Value zero = arith::ConstantIndexOp::create(b, loc, 0);
    load.getMemrefMutable().assign(copy);
    load.getIndicesMutable().assign(SmallVector<Value>(rank, zero));
  }

  static bool isLarge(MemRefType type) {
    return !type.hasStaticShape() || type.getNumElements() > kSmall;
  }

  using Copies = llvm::MapVector<Value, Value>;

  /// Copies of `written` are old.
  void forget(Value written, Copies &known) {
    void *leader = classOf(written);
    known.remove_if([&](auto &pair) { return classOf(pair.first) == leader; });
  }

  void fetch(OpOperand &operand, Copies &known) {
    Value value = operand.get();
    Operation *op = operand.getOwner();
    const Access access = accessOf(operand);
    if (!access.writes && isGiven(value)) {
      operand.set(twinOf(value));
      return;
    }
    auto load = dyn_cast<memref::LoadOp>(op);
    if (load && isLarge(load.getMemRefType()))
      return copyElement(load);
    OpBuilder b(op);
    Location loc = op->getLoc();
    Value copy = known.lookup(value);
    if (!copy || access.writes) {
      copy = allocate(b, loc, value, access.onDevice);
      // What an operation writes, it may write in part.
      copyAcross(b, loc, value, copy);
      known[value] = copy;
    }
    operand.set(copy);
    if (!access.writes)
      return;
    forget(value, known);
    b.setInsertionPointAfter(op);
    copyAcross(b, loc, copy, value);
  }

  /// Gives each operation of a block its operands where it can reach them.
  void copyInBlock(Block &block) {
    Copies known;
    for (Operation &op : llvm::make_early_inc_range(block)) {
      if (op.getNumRegions()) {
        for (Region &region : op.getRegions())
          for (Block &inner : region)
            copyInBlock(inner);
        // What it writes is not looked at.
        known.clear();
        continue;
      }
      if (auto copy = dyn_cast<memref::CopyOp>(op)) {
        forget(copy.getTarget(), known);
        if (isOnDevice(copy.getSource()) != isOnDevice(copy.getTarget())) {
          OpBuilder b(copy);
          copyAcross(b, copy.getLoc(), copy.getSource(), copy.getTarget());
          copy.erase();
        }
        continue;
      }
      if (isNeutral(&op))
        continue;
      for (OpOperand &operand : op.getOpOperands()) {
        if (!isBuffer(operand.get()))
          continue;
        Access access = accessOf(operand);
        if (access.onDevice != isOnDevice(operand.get()))
          fetch(operand, known);
        else if (access.writes)
          forget(operand.get(), known);
      }
    }
  }

  /// A constant that may be a loop's state or a branch's value on the device is
  /// there, too.
  void moveConstants() {
    SmallVector<memref::GetGlobalOp> globals;
    func.walk([&](memref::GetGlobalOp op) {
      if (isOnDevice(op.getResult()))
        globals.push_back(op);
    });
    for (memref::GetGlobalOp op : globals) {
      Value argument = addConstant(op);
      unite(op.getResult(), argument);
      op.replaceAllUsesWith(argument);
      op.erase();
    }
  }

  //===--------------------------------------------------------------------===//
  // Types
  //===--------------------------------------------------------------------===//

  void setTypes() {
    auto set = [&](Value value) {
      if (isBuffer(value) && isOnDevice(value))
        value.setType(withSpace(cast<MemRefType>(value.getType()), space));
    };
    func.walk([&](Operation *op) {
      llvm::for_each(op->getResults(), set);
      for (Region &region : op->getRegions())
        for (Block &block : region)
          llvm::for_each(block.getArguments(), set);
    });
    func.setFunctionType(FunctionType::get(func.getContext(),
                                           func.getBody().getArgumentTypes(),
                                           func.getResultTypes()));
  }

  func::FuncOp func;
  SymbolTable &symbols;
  /// The device's memory; null where nothing is done there.
  Attribute space;
  llvm::EquivalenceClasses<void *> classes;
  llvm::MapVector<void *, Uses> usesOf;
  SmallVector<std::pair<void *, void *>> copies; // of the program itself
  DenseSet<void *> onDevice;
  DenseMap<Value, Value> twins;
};

struct PlaceBuffersPass
    : sardonyx::impl::SDXPlaceBuffersBase<PlaceBuffersPass> {
  void runOnOperation() override {
    ModuleOp module = getOperation();
    SymbolTable symbols(module);
    for (auto func : module.getOps<func::FuncOp>()) {
      if (!isHostFunction(func))
        continue;
      if (failed(Placement(func, symbols).run()))
        return signalPassFailure();
      gatherDownloads(func);
    }
    for (auto func : module.getOps<func::FuncOp>())
      if (func->hasAttr(sdx::kKernelAttr))
        moveArguments(func);
  }

private:
  /// A kernel takes buffers in the memory of its machine.
  static void moveArguments(func::FuncOp kernel) {
    sdx::TargetAttrInterface target = sdx::getTarget(kernel);
    Attribute space = target ? target.getMemorySpace() : Attribute();
    if (!space)
      return;
    SmallVector<Type> types;
    for (Type type : kernel.getArgumentTypes()) {
      auto buffer = dyn_cast<MemRefType>(type);
      types.push_back(buffer ? withSpace(buffer, space) : type);
    }
    if (!kernel.isExternal())
      for (auto [argument, type] : llvm::zip(kernel.getArguments(), types))
        argument.setType(type);
    kernel.setFunctionType(
        FunctionType::get(kernel.getContext(), types, kernel.getResultTypes()));
  }
};

} // namespace
