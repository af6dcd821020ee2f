//===- ReadBroadcasts.cpp - Kernels broadcast what they read --------------===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Whether an operand of open sizes is to be broadcast only the run knows. The
// host program makes it whole where it is, for the one kernel that reads it:
//
//   %whole = scf.if %needed {
//     %made = memref.alloc(...)
//     sdx.call @broadcast(%x, %isOne...) outs(%made)
//     scf.yield %made
//   } else {
//     scf.yield %x
//   }
//   sdx.call @add(%whole, %z) outs(%y)
//
// Instead, a kernel of its own reads the element there is:
//
//   scf.if %needed {
//     sdx.call @add_broadcast(%z, %x, %isOne...) outs(%y)
//   } else {
//     sdx.call @add(%x, %z) outs(%y)
//   }
//
//===----------------------------------------------------------------------===//

#include "Bufferize.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Bufferization/IR/Bufferization.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/IR/SymbolTable.h"

using namespace mlir;
using namespace sardonyx;

namespace {

/// An operand of a call that is made whole where that is needed.
struct Operand {
  unsigned number; // among the call's inputs
  scf::IfOp branch;
  sdx::CallOp broadcast;
};

class BroadcastReader {
public:
  explicit BroadcastReader(ModuleOp module) : symbols(module) {}

  void run(func::FuncOp host) {
    SmallVector<sdx::CallOp> calls;
    host.walk([&](sdx::CallOp call) { calls.push_back(call); });
    for (sdx::CallOp call : calls)
      rewrite(call);
    if (changed)
      eraseUnused();
  }

private:
  /// Erases kernels that made operands whole and are called no more.
  void eraseUnused() {
    auto module = cast<ModuleOp>(symbols.getOp());
    llvm::SmallDenseSet<StringAttr> called;
    module.walk([&](sdx::CallOp call) {
      called.insert(call.getCalleeAttr().getAttr());
    });
    for (auto kernel : llvm::to_vector(module.getOps<func::FuncOp>()))
      if (!called.contains(kernel.getSymNameAttr()) && findRead(kernel))
        symbols.erase(kernel);
  }

  func::FuncOp kernelOf(sdx::CallOp call) {
    return symbols.lookup<func::FuncOp>(call.getCallee());
  }

  /// The only operation of a kernel on tensors, if all its loops are parallel
  /// and it stores what it computes.
  static linalg::GenericOp findOnly(func::FuncOp kernel) {
    if (!kernel || kernel.isDeclaration())
      return nullptr;
    linalg::GenericOp found;
    for (Operation &op : kernel.getBody().front().without_terminator()) {
      if (auto generic = dyn_cast<linalg::GenericOp>(op); generic && !found)
        found = generic;
      else if (!isa<bufferization::ToTensorOp, tensor::EmptyOp, memref::DimOp,
                    arith::ConstantOp,
                    bufferization::MaterializeInDestinationOp>(op))
        return nullptr;
    }
    return found && found.getNumReductionLoops() == 0 ? found : nullptr;
  }

  /// The element that a kernel of a broadcast reads, at positions that follow
  /// from loops and its arguments; null for other kernels.
  static tensor::ExtractOp findRead(func::FuncOp kernel) {
    linalg::GenericOp generic = findOnly(kernel);
    if (!generic || generic.getNumDpsInputs() != 0 ||
        generic.getNumDpsInits() != 1)
      return nullptr;
    auto read = generic.getBlock()
                    ->getTerminator()
                    ->getOperand(0)
                    .getDefiningOp<tensor::ExtractOp>();
    if (!read)
      return nullptr;
    for (Operation &op : generic.getBlock()->without_terminator())
      if (!isa<linalg::IndexOp, arith::SelectOp>(op) && &op != read)
        return nullptr;
    auto source = read.getTensor().getDefiningOp<bufferization::ToTensorOp>();
    return source && source.getBuffer() == kernel.getArgument(0) ? read
                                                                 : nullptr;
  }

  static Value skipCasts(Value memref) {
    while (auto cast = memref.getDefiningOp<memref::CastOp>())
      memref = cast.getSource();
    return memref;
  }

  /// The input `number` of `call`, if it is made whole for that alone.
  std::optional<Operand> findOperand(sdx::CallOp call, unsigned number) {
    Value whole = call.getIns()[number];
    auto branch = whole.getDefiningOp<scf::IfOp>();
    if (!branch || branch.getNumResults() != 1 || !whole.hasOneUse())
      return std::nullopt;
    Value made = skipCasts(branch.thenYield().getOperand(0));
    auto memory = made.getDefiningOp<memref::AllocOp>();
    if (!memory || memory->getBlock() != branch.thenBlock())
      return std::nullopt;
    sdx::CallOp broadcast;
    for (Operation &op : branch.thenBlock()->without_terminator()) {
      if (auto inner = dyn_cast<sdx::CallOp>(op); inner && !broadcast)
        broadcast = inner;
      else if (!isa<memref::AllocOp, memref::CastOp>(op))
        return std::nullopt;
    }
    if (!broadcast || broadcast.getOuts().size() != 1 ||
        broadcast.getOuts()[0] != made || broadcast.getIns().empty() ||
        skipCasts(broadcast.getIns()[0]) !=
            skipCasts(branch.elseYield().getOperand(0)) ||
        !findRead(kernelOf(broadcast)))
      return std::nullopt;
    for (Operation &op : branch.elseBlock()->without_terminator())
      if (!isa<memref::CastOp>(op))
        return std::nullopt;
    for (Value input : broadcast.getIns())
      if (branch->isAncestor(input.getParentBlock()->getParentOp()))
        return std::nullopt;
    return Operand{number, branch, broadcast};
  }

  /// `kernel` with what makes some of its inputs whole in its body.
  func::FuncOp makeKernel(func::FuncOp kernel, linalg::GenericOp generic,
                          ArrayRef<Operand> operands) {
    func::FuncOp made = kernel.clone();
    made.setName(kernel.getName().str() + "_broadcast");
    symbols.insert(made);
    Block &entry = made.getBody().front();
    linalg::GenericOp old = findOnly(made);
    OpBuilder b = OpBuilder::atBlockBegin(&entry);
    Location loc = old.getLoc();
    // The new arguments stand before those that are written.
    unsigned next = kernel.getNumArguments() - 1;
    llvm::BitVector dropped(kernel.getNumArguments());
    SmallVector<IRMapping> maps;
    for (const Operand &operand : operands) {
      func::FuncOp broadcast = kernelOf(operand.broadcast);
      IRMapping &map = maps.emplace_back();
      for (BlockArgument arg : broadcast.getArguments().drop_back())
        map.map(arg, entry.insertArgument(next++, arg.getType(), loc));
      tensor::ExtractOp read = findRead(broadcast);
      auto source = read.getTensor().getDefiningOp<bufferization::ToTensorOp>();
      map.map(source.getResult(), b.clone(*source, map)->getResult(0));
      dropped.set(operand.number);
    }
    dropped.resize(entry.getNumArguments());

    SmallVector<Value> inputs;
    SmallVector<AffineMap> indexing;
    llvm::BitVector droppedInputs(old.getNumDpsInputs() + 1);
    SmallVector<int64_t> inputOf(operands.size());
    for (OpOperand *input : old.getDpsInputOperands()) {
      auto tensor = input->get().getDefiningOp<bufferization::ToTensorOp>();
      auto arg = tensor ? dyn_cast<BlockArgument>(tensor.getBuffer())
                        : BlockArgument();
      if (arg && dropped[arg.getArgNumber()]) {
        droppedInputs.set(input->getOperandNumber());
        for (auto [i, operand] : llvm::enumerate(operands))
          if (operand.number == arg.getArgNumber())
            inputOf[i] = input->getOperandNumber();
        continue;
      }
      inputs.push_back(input->get());
      indexing.push_back(old.getMatchingIndexingMap(input));
    }
    SmallVector<AffineMap> readMaps;
    for (int64_t input : inputOf)
      readMaps.push_back(old.getIndexingMapsArray()[input]);
    indexing.push_back(old.getMatchingIndexingMap(old.getDpsInitOperand(0)));
    b.setInsertionPoint(old);
    auto fused = linalg::GenericOp::create(b, loc, old.getResultTypes(), inputs,
                                           old.getDpsInits(), indexing,
                                           old.getIteratorTypesArray());
    fused.getRegion().takeBody(old.getRegion());
    Block *body = fused.getBlock();
    b.setInsertionPointToStart(body);
    for (auto [operand, map, input, readMap] :
         llvm::zip_equal(operands, maps, inputOf, readMaps)) {
      func::FuncOp broadcast = kernelOf(operand.broadcast);
      Value read = inlineRead(b, broadcast, readMap, map);
      body->getArgument(input).replaceAllUsesWith(read);
    }
    body->eraseArguments(droppedInputs);
    old.replaceAllUsesWith(fused.getResults());
    old.erase();
    eraseInputs(made, dropped);
    return made;
  }

  /// What `broadcast` reads, where `readMap` says which loops its are.
  static Value inlineRead(OpBuilder &b, func::FuncOp broadcast,
                          AffineMap readMap, IRMapping &map) {
    linalg::GenericOp generic = findOnly(broadcast);
    for (Operation &op : generic.getBlock()->without_terminator()) {
      for (Value operand : op.getOperands())
        if (auto constant = operand.getDefiningOp<arith::ConstantOp>();
            constant && !map.contains(operand))
          map.map(operand, b.clone(*constant)->getResult(0));
      auto index = dyn_cast<linalg::IndexOp>(op);
      if (!index) {
        b.clone(op, map);
        continue;
      }
      auto loop = cast<AffineDimExpr>(readMap.getResult(index.getDim()));
      map.map(index.getResult(),
              linalg::IndexOp::create(b, op.getLoc(), loop.getPosition())
                  .getResult());
    }
    return map.lookup(generic.getBlock()->getTerminator()->getOperand(0));
  }

  /// Erases arguments, and the tensors that they were.
  static void eraseInputs(func::FuncOp kernel, const llvm::BitVector &inputs) {
    Block &entry = kernel.getBody().front();
    for (unsigned i : inputs.set_bits())
      for (Operation *user :
           llvm::make_early_inc_range(entry.getArgument(i).getUsers()))
        user->erase();
    entry.eraseArguments(inputs);
    kernel.setFunctionType(FunctionType::get(
        kernel.getContext(), entry.getArgumentTypes(), TypeRange()));
  }

  /// Beside functions of math it is nothing to make operands whole, and loops
  /// that read whole tensors, as one long row, are faster.
  static bool computesFunctions(linalg::GenericOp generic) {
    return llvm::any_of(*generic.getBlock(), [](Operation &op) {
      return isa<math::MathDialect>(op.getDialect());
    });
  }

  void rewrite(sdx::CallOp call) {
    SmallVector<Operand> operands;
    for (unsigned i = 0; i < call.getIns().size(); ++i)
      if (std::optional<Operand> operand = findOperand(call, i))
        operands.push_back(*operand);
    func::FuncOp kernel = kernelOf(call);
    linalg::GenericOp generic = findOnly(kernel);
    if (!generic || computesFunctions(generic) ||
        generic.getNumDpsInits() != 1 || call.getUpdates() ||
        call.getOuts().size() != 1 ||
        kernel.getNumArguments() != call.getIns().size() + 1)
      return;
    llvm::erase_if(operands, [&](const Operand &operand) {
      return !isReadByLoops(kernel.getArgument(operand.number), generic);
    });
    if (operands.empty())
      return;
    func::FuncOp fused = makeKernel(kernel, generic, operands);

    OpBuilder b(call);
    Location loc = call.getLoc();
    Value needed;
    SmallVector<Value> whole(call.getIns()), inputs;
    for (Operand &operand : operands) {
      Value condition = operand.branch.getCondition();
      needed =
          needed ? arith::OrIOp::create(b, loc, needed, condition) : condition;
      whole[operand.number] = Value();
    }
    for (Value input : whole)
      if (input)
        inputs.push_back(input);
    for (Operand &operand : operands)
      llvm::append_range(inputs, operand.broadcast.getIns());
    auto branch = scf::IfOp::create(b, loc, needed, /*withElseRegion=*/true);
    b.setInsertionPoint(branch.thenYield());
    auto broadcast = cast<sdx::CallOp>(b.clone(*call));
    broadcast.setCallee(fused.getName());
    broadcast.getInsMutable().assign(inputs);
    call->moveBefore(branch.elseYield());
    b.setInsertionPoint(call);
    for (Operand &operand : operands) {
      OpOperand &input = call.getInsMutable()[operand.number];
      Value part = operand.broadcast.getIns()[0];
      if (part.getType() != input.get().getType())
        part = memref::CastOp::create(b, loc, input.get().getType(), part);
      input.set(part);
    }
    for (Operand &operand : operands)
      operand.branch->erase();
    changed = true;
  }

  /// Whether all that reads `arg` is one input of `generic`, at positions of
  /// loops.
  static bool isReadByLoops(BlockArgument arg, linalg::GenericOp generic) {
    if (!arg.hasOneUse())
      return false;
    auto tensor = dyn_cast<bufferization::ToTensorOp>(*arg.user_begin());
    if (!tensor || !tensor.getResult().hasOneUse() ||
        *tensor.getResult().user_begin() != generic)
      return false;
    OpOperand &use = *tensor.getResult().use_begin();
    if (!generic.isDpsInput(&use))
      return false;
    AffineMap map = generic.getMatchingIndexingMap(&use);
    return map.isProjectedPermutation() &&
           !generic.getMatchingBlockArgument(&use).use_empty();
  }

  SymbolTable symbols;
  bool changed = false;
};

} // namespace

void sardonyx::readBroadcasts(ModuleOp module) {
  BroadcastReader reader(module);
  for (auto func : llvm::to_vector(module.getOps<func::FuncOp>()))
    if (isHostFunction(func) && func.getName() != "init")
      reader.run(func);
}
