//===- FuseIntoProducts.cpp - What kernels of few rows do besides ---------===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A product of a few rows takes hardly longer than its kernel takes to start.
// Kernels before it that compute little, or read the same rows, become part of
// it: a product whose result nobody else reads, as the two of a gated unit, and
// the normalisation of rows, which each product that reads them then does.
// Kernels behind it that compute of its result alone, head by head, become part
// of it, too: rotations of queries and keys, and what puts keys and values
// behind those of a cache.
//
// Where blocks share the sums of a product, the kernel of the rows behind it
// adds up what they have. Where clusters of blocks have whole rows of sums,
// they reduce them, too.
//
//===----------------------------------------------------------------------===//

#include "Matmul/DequantRows.h"
#include "Matmul/FewRows.h"
#include "Matmul/MatmulPlan.h"
#include "Matmul/ProductKernel.h"

#include "lib/Dispatch/Utils.h"
#include "sardonyx/Targets/NVPTX/Passes.h"

#include "mlir/Dialect/Bufferization/IR/Bufferization.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/IR/SymbolTable.h"
#include "llvm/ADT/MapVector.h"

namespace sardonyx {
#define GEN_PASS_DEF_NVFUSEINTOPRODUCTS
#include "sardonyx/Targets/NVPTX/Passes.h.inc"
} // namespace sardonyx

using namespace mlir;
using namespace sardonyx;
using namespace sardonyx::nv;

/// The most products of a kernel, and the most kernels that compute the same
/// rows.
static constexpr size_t kMostProducts = 2, kMostReaders = 4;

//===----------------------------------------------------------------------===//
// Kernels of few rows
//===----------------------------------------------------------------------===//

/// The products of a kernel that is, or would be, one of few rows.
static SmallVector<Operation *> findFewRows(func::FuncOp kernel) {
  TargetAttr target = getTargetOrDefault(kernel);
  SmallVector<Operation *> found;
  for (auto op : findProducts<sdx::MatmulOp>(kernel))
    if (chooseFewRows(op, target))
      found.push_back(op);
  for (auto op : findProducts<sdx::DequantMatmulOp>(kernel)) {
    const int64_t rows = op.getLhs().getType().getDimSize(0);
    if (!ShapedType::isDynamic(rows) && rows <= kFewPackedRows &&
        hasTiles(op) && llvm::all_of(op.getDpsInputs(), [&](Value operand) {
          return operand == op.getLhs() || KernelBody::hasBuffer(operand);
        }))
      found.push_back(op);
  }
  return found;
}

/// Whether the kernel is lowered as one of few rows.
static bool isPossible(func::FuncOp kernel) {
  TargetAttr target = getTargetOrDefault(kernel);
  KernelBody body(kernel);
  auto products = findProducts<sdx::MatmulOp>(kernel);
  auto packed = findProducts<sdx::DequantMatmulOp>(kernel);
  if (!packed.empty()) {
    const int64_t rows = packed[0].getLhs().getType().getDimSize(0);
    return DequantRows(packed, body, DequantRows::rowsOfBlock(rows), target)
        .isPossible();
  }
  if (products.empty())
    return false;
  std::optional<FewRowsPlanAttr> plan = chooseFewRows(products[0], target);
  const int64_t rows = products[0].getInit().getType().getDimSize(0);
  return plan && FewRows(products, *plan, body, rows).isPossible();
}

/// Whether a kernel is around one product, of matrices of known sizes, whose
/// sums blocks share, or whose rows clusters have.
static bool sharesSums(func::FuncOp kernel) {
  auto op = findProduct<sdx::MatmulOp>(kernel);
  if (!op || !op.getInit().getType().hasStaticShape() || op.isBatched() ||
      !KernelBody::hasBuffer(op.getLhs()) ||
      !KernelBody::hasBuffer(op.getRhs()) ||
      !kernel.getOps<sdx::ObserveOp>().empty())
    return false;
  TargetAttr target = getTargetOrDefault(kernel);
  std::optional<MatmulPlanAttr> plan = choosePlan(op, target);
  return !chooseFewRows(op, target) && plan &&
         (plan->getSplit() > 1 || chooseCluster(op, *plan, target));
}

/// Whether what follows such a product in its kernel reduces its rows.
static bool canReduceSums(func::FuncOp kernel) {
  KernelBody body(kernel);
  PointEvaluator points(body);
  RowsKernel rows(llvm::to_vector(kernel.getOps<linalg::GenericOp>()), body);
  auto op = findProduct<sdx::MatmulOp>(kernel);
  rows.declare(op->getResult(0), {});
  SmallVector<Value> results;
  for (const KernelBody::Output &output : body.getOutputs())
    results.push_back(output.tensor);
  std::optional<MatmulPlanAttr> plan =
      choosePlan(op, getTargetOrDefault(kernel));
  return plan && (plan->getSplit() > 1 || plan->hasWholeRows()) &&
         points.canEvaluate(op.getInit()) && rows.isPossible(results);
}

/// Whether a kernel does nothing but reduce rows and what goes with it.
static bool reducesRows(func::FuncOp kernel) {
  bool hasReduction = false;
  for (Operation &op : kernel.front()) {
    auto generic = dyn_cast<linalg::GenericOp>(op);
    hasReduction |= generic && generic.getNumReductionLoops() != 0;
    if (isComputeOp(&op) && !generic)
      return false;
  }
  return hasReduction;
}

/// Whether a kernel does nothing but compute on elements.
static bool computesElements(func::FuncOp kernel) {
  return llvm::all_of(kernel.front(), [](Operation &op) {
    auto generic = dyn_cast<linalg::GenericOp>(op);
    return generic
               ? generic.getNumReductionLoops() == 0
               : !isComputeOp(&op) && !isa<scf::ForallOp, sdx::ObserveOp>(op);
  });
}

/// The argument of `kernel` for operand number `index` of a call's `ins`, as
/// the tensor that its operations read; null where they read more of it.
static Value findTensor(func::FuncOp kernel, unsigned index) {
  BlockArgument argument = kernel.getArgument(index);
  if (!argument.hasOneUse())
    return {};
  auto toTensor =
      dyn_cast<bufferization::ToTensorOp>(*argument.getUsers().begin());
  return toTensor ? toTensor.getResult() : Value();
}

//===----------------------------------------------------------------------===//
// One kernel of two
//===----------------------------------------------------------------------===//

namespace {

/// A call of whose results another one reads one as `read`: itself, or
/// reshaped.
struct Link {
  sdx::CallOp from, to;
  Value read;
  /// Those that are results of the kernel of both, too.
  SmallVector<unsigned> kept = {};
};

/// Makes the kernel of both calls.
class KernelFuser {
public:
  KernelFuser(Link link, SymbolTable &symbols)
      : link(link), symbols(&symbols), first(find(link.from)),
        second(find(link.to)) {}

  /// Null where a kernel needs more than values of the other's result.
  func::FuncOp run() {
    if (!findStored())
      return {};
    const auto numbers = llvm::to_vector(llvm::make_filter_range(
        llvm::seq<unsigned>(link.to.getIns().size()), [&](unsigned number) {
          return link.to.getIns()[number] == link.read;
        }));
    SmallVector<Value> places; // of the result, in the second kernel
    for (unsigned number : numbers) {
      places.push_back(findTensor(second, number));
      if (!places.back() || places.back().getType() != link.read.getType())
        return {};
    }
    makeFunction();
    OpBuilder b = OpBuilder::atBlockEnd(&fused.front());
    cloneBody(b, first, link.from);
    auto [number, reshapes] = findOrigin();
    Value made = mapping.lookup(stored[number]);
    for (Operation *reshape : reshapes) {
      IRMapping of;
      of.map(reshape->getOperand(0), made);
      made = b.clone(*reshape, of)->getResult(0);
    }
    for (Value place : places)
      mapping.map(place, made);
    cloneBody(b, second, link.to);
    for (auto [i, kept] : llvm::enumerate(link.kept))
      bufferization::MaterializeInDestinationOp::create(
          b, fused.getLoc(), Type(), mapping.lookup(stored[kept]),
          fused.getArgument(ins.size() + link.to.getOuts().size() + i),
          /*restrict=*/true, /*writable=*/true);
    func::ReturnOp::create(b, fused.getLoc());
    return fused;
  }

  /// Calls the kernel in the place of the second call.
  void replaceCall() {
    OpBuilder b(link.to);
    SmallVector<Value> outs(link.to.getOuts());
    for (unsigned kept : link.kept)
      outs.push_back(link.from.getOuts()[kept]);
    auto call = sdx::CallOp::create(b, fused.getLoc(), fused.getName(),
                                    ins.getArrayRef(), outs);
    const unsigned count = link.to->getNumResults();
    for (auto [i, kept] : llvm::enumerate(link.kept))
      link.from->getResult(kept).replaceAllUsesExcept(
          call->getResult(count + i), link.to.getOperation());
    link.to->replaceAllUsesWith(call->getResults().take_front(count));
    link.to.erase();
  }

  void eraseKernel() { symbols->erase(fused); }

private:
  func::FuncOp find(sdx::CallOp call) {
    return symbols->lookup<func::FuncOp>(call.getCallee());
  }

  /// Finds what the first kernel leaves, where nothing else is asked of its
  /// outputs.
  bool findStored() {
    for (BlockArgument out :
         first.getArguments().take_back(link.from.getOuts().size())) {
      if (!out.hasOneUse())
        return false;
      auto store = dyn_cast<bufferization::MaterializeInDestinationOp>(
          *out.getUsers().begin());
      if (!store)
        return false;
      stored.push_back(store.getSource());
    }
    return true;
  }

  /// The number of the first call's result that the second reads, and what
  /// reshapes it.
  std::pair<unsigned, SmallVector<Operation *>> findOrigin() {
    SmallVector<Operation *> reshapes;
    Value value = link.read;
    while (value.getDefiningOp() != link.from) {
      reshapes.push_back(value.getDefiningOp());
      value = reshapes.back()->getOperand(0);
    }
    std::reverse(reshapes.begin(), reshapes.end());
    return {cast<OpResult>(value).getResultNumber(), reshapes};
  }

  void makeFunction() {
    SmallVector<Type> types;
    auto add = [&](sdx::CallOp call, func::FuncOp kernel) {
      for (auto [number, in] : llvm::enumerate(call.getIns()))
        if (in != link.read && ins.insert(in))
          types.push_back(kernel.getArgument(number).getType());
    };
    add(link.from, first);
    add(link.to, second);
    for (unsigned number : llvm::seq(link.to.getOuts().size()))
      types.push_back(
          second.getArgument(link.to.getIns().size() + number).getType());
    for (unsigned kept : link.kept)
      types.push_back(
          first.getArgument(link.from.getIns().size() + kept).getType());
    OpBuilder b(second);
    fused = func::FuncOp::create(
        b, b.getFusedLoc({first.getLoc(), second.getLoc()}),
        (first.getName() + "_" + second.getName()).str(),
        b.getFunctionType(types, {}));
    fused.setPrivate();
    fused->setAttr(sdx::kKernelAttr, b.getUnitAttr());
    symbols->insert(fused, Block::iterator(second));
    fused.addEntryBlock();
  }

  /// Clones what a kernel computes; each argument is read as one tensor.
  void cloneBody(OpBuilder &b, func::FuncOp kernel, sdx::CallOp call) {
    for (auto [number, in] : llvm::enumerate(call.getIns()))
      if (in != link.read)
        mapping.map(kernel.getArgument(number),
                    fused.getArgument(llvm::find(ins, in) - ins.begin()));
    if (kernel == second)
      for (unsigned number : llvm::seq(call.getOuts().size()))
        mapping.map(kernel.getArgument(call.getIns().size() + number),
                    fused.getArgument(ins.size() + number));
    for (Operation &op : kernel.front().without_terminator()) {
      if (kernel == first && isa<bufferization::MaterializeInDestinationOp>(op))
        continue;
      auto toTensor = dyn_cast<bufferization::ToTensorOp>(op);
      if (!toTensor) {
        b.clone(op, mapping);
        continue;
      }
      if (mapping.contains(toTensor.getResult()))
        continue;
      Value &tensor = tensors[mapping.lookup(toTensor.getBuffer())];
      if (!tensor || tensor.getType() != toTensor.getType())
        tensor = b.clone(op, mapping)->getResult(0);
      mapping.map(toTensor.getResult(), tensor);
    }
  }

  Link link;
  SymbolTable *symbols;
  func::FuncOp first, second, fused;
  SetVector<Value> ins;
  IRMapping mapping;
  SmallVector<Value> stored;      // what the first kernel leaves
  DenseMap<Value, Value> tensors; // of arguments
};

//===----------------------------------------------------------------------===//
// Which kernels become one
//===----------------------------------------------------------------------===//

struct FuseIntoProductsPass
    : sardonyx::impl::NVFuseIntoProductsBase<FuseIntoProductsPass> {
  using Base::Base;

  void runOnOperation() override {
    ModuleOp module = getOperation();
    SymbolTable table(module);
    symbols = &table;
    SetVector<func::FuncOp> kernels;
    auto findCalls = [&](function_ref<bool(sdx::CallOp)> isWanted) {
      SmallVector<sdx::CallOp> calls;
      for (auto func : module.getOps<func::FuncOp>())
        if (isHostFunction(func))
          func.walk([&](sdx::CallOp call) {
            kernels.insert(kernelOf(call));
            if (isWanted(call))
              calls.push_back(call);
          });
      return calls;
    };
    for (sdx::CallOp call : findCalls([](sdx::CallOp) { return true; }))
      fusePair(call);
    for (sdx::CallOp call : findCalls([&](sdx::CallOp call) {
           return computesElements(kernelOf(call));
         }))
      fuseHeads(call);
    countTogether(module);
    // Those that read the rows are replaced meanwhile.
    for (sdx::CallOp call : findCalls(
             [&](sdx::CallOp call) { return reducesRows(kernelOf(call)); }))
      if (!fuseRows(call))
        fuseBehind(call);
    for (func::FuncOp kernel : kernels)
      if (SymbolTable::symbolKnownUseEmpty(kernel, module))
        table.erase(kernel);
  }

private:
  func::FuncOp kernelOf(sdx::CallOp call) {
    return symbols->lookup<func::FuncOp>(call.getCallee());
  }

  /// Tells kernels of products of the same rows, which start together, how many
  /// they are.
  void countTogether(ModuleOp module) {
    for (auto func : module.getOps<func::FuncOp>()) {
      if (!isHostFunction(func))
        continue;
      llvm::MapVector<std::pair<Value, Block *>, SmallVector<func::FuncOp>>
          readers;
      func.walk([&](sdx::CallOp call) {
        func::FuncOp kernel = kernelOf(call);
        auto op = findProduct<sdx::MatmulOp>(kernel);
        if (!op)
          return;
        if (Value rows = findRows(call, op.getOperation()))
          readers[{rows, call->getBlock()}].push_back(kernel);
      });
      for (auto &[rows, kernels] : readers)
        if (kernels.size() > 1)
          for (func::FuncOp kernel : kernels)
            kernel->setAttr(kTogetherAttr,
                            Builder(kernel).getI64IntegerAttr(kernels.size()));
    }
  }

  /// A kernel with one result of known sizes, which writes no other memory.
  bool isSimple(sdx::CallOp call) {
    return call && call->getNumResults() == 1 && !call.getUpdates() &&
           cast<RankedTensorType>(call->getResult(0).getType())
               .hasStaticShape() &&
           kernelOf(call).getOps<sdx::ObserveOp>().empty();
  }

  /// Makes the kernel of both, if it is one of few rows.
  std::optional<KernelFuser> fuse(Link link) {
    KernelFuser fuser(link, *symbols);
    func::FuncOp fused = fuser.run();
    if (!fused)
      return std::nullopt;
    if (isPossible(fused))
      return fuser;
    fuser.eraseKernel();
    return std::nullopt;
  }

  /// The value of the host that the products of `kernel` read as rows.
  Value findRows(sdx::CallOp call, ArrayRef<Operation *> products) {
    func::FuncOp kernel = kernelOf(call);
    for (auto [number, in] : llvm::enumerate(call.getIns()))
      if (!products.empty() &&
          products[0]->getOperand(0) == findTensor(kernel, number))
        return in;
    return {};
  }

  /// A product before `call`'s, of the same rows, whose result it alone reads.
  void fusePair(sdx::CallOp call) {
    SmallVector<Operation *> products = findFewRows(kernelOf(call));
    Value rows = findRows(call, products);
    if (!rows || call.getUpdates() || products.size() >= kMostProducts)
      return;
    for (Value in : call.getIns()) {
      auto other = in.getDefiningOp<sdx::CallOp>();
      if (in == rows || !isSimple(other) || !in.hasOneUse() ||
          other->getBlock() != call->getBlock())
        continue;
      SmallVector<Operation *> others = findFewRows(kernelOf(other));
      if (others.size() + products.size() > kMostProducts ||
          findRows(other, others) != rows)
        continue;
      if (std::optional<KernelFuser> fuser = fuse({other, call, in})) {
        fuser->replaceCall();
        other.erase();
        return;
      }
    }
  }

  /// Collects who reads `value`, as it is or reshaped; false where that is not
  /// a call.
  static bool findReaders(Value value, sdx::CallOp from,
                          SmallVectorImpl<Link> &readers) {
    for (Operation *user : value.getUsers()) {
      if (isa<tensor::CastOp, tensor::CollapseShapeOp, tensor::ExpandShapeOp>(
              user)) {
        if (!findReaders(user->getResult(0), from, readers))
          return false;
        continue;
      }
      auto call = dyn_cast<sdx::CallOp>(user);
      if (!call)
        return false;
      readers.push_back({from, call, value});
    }
    return true;
  }

  /// What `call` computes of a product of few rows that it alone reads.
  void fuseHeads(sdx::CallOp call) {
    if (call.getUpdates())
      return;
    for (Value in : call.getIns()) {
      Value made = in;
      while (isa_and_nonnull<tensor::CollapseShapeOp, tensor::ExpandShapeOp>(
          made.getDefiningOp()))
        made = made.getDefiningOp()->getOperand(0);
      auto product = made.getDefiningOp<sdx::CallOp>();
      SmallVector<Link> readers;
      if (!isSimple(product) || product->getBlock() != call->getBlock() ||
          findFewRows(kernelOf(product)).size() != 1 ||
          !findReaders(made, product, readers) ||
          llvm::any_of(readers, [&](const Link &link) {
            return link.to != call || link.read != in;
          }))
        continue;
      std::optional<KernelFuser> fuser = fuse({product, call, in});
      if (!fuser)
        continue;
      fuser->replaceCall();
      eraseReshapes(product);
      product.erase();
      return;
    }
  }

  /// Whether `value` is a part of a tensor, of which each kernel that reads it
  /// gets a copy.
  static bool isPart(Value value) {
    Operation *op = value.getDefiningOp();
    if (isa_and_nonnull<tensor::CastOp, tensor::CollapseShapeOp,
                        tensor::ExpandShapeOp>(op))
      return isPart(op->getOperand(0));
    return isa_and_nonnull<tensor::ExtractSliceOp>(op);
  }

  static void eraseReshapes(Operation *op) {
    for (Operation *user : llvm::make_early_inc_range(op->getUsers())) {
      eraseReshapes(user);
      user->erase();
    }
  }

  /// The kernel of rows `call` with the product before it whose sums blocks
  /// share. What else reads that product's results must come behind both.
  void fuseBehind(sdx::CallOp call) {
    for (Value in : call.getIns()) {
      auto product = in.getDefiningOp<sdx::CallOp>();
      if (!product || call.getUpdates() || product.getUpdates() ||
          product->getBlock() != call->getBlock() ||
          !sharesSums(kernelOf(product)) ||
          llvm::count_if(call.getIns(), [&](Value other) {
            return other.getDefiningOp() == product;
          }) != 1)
        continue;
      Link link{product, call, in};
      bool comesFirst = true;
      for (OpResult result : product->getResults())
        for (Operation *user : result.getUsers()) {
          if (user == call)
            continue;
          Operation *inBlock = call->getBlock()->findAncestorOpInBlock(*user);
          comesFirst &= inBlock && call->isBeforeInBlock(inBlock);
          if (link.kept.empty() || link.kept.back() != result.getResultNumber())
            link.kept.push_back(result.getResultNumber());
        }
      if (!comesFirst)
        continue;
      KernelFuser fuser(link, *symbols);
      func::FuncOp fused = fuser.run();
      if (!fused)
        continue;
      if (!canReduceSums(fused)) {
        fuser.eraseKernel();
        continue;
      }
      fuser.replaceCall();
      product.erase();
      return;
    }
  }

  /// Rows that `call` computes, and that products alone read.
  bool fuseRows(sdx::CallOp call) {
    if (!isSimple(call))
      return false;
    SmallVector<Link> readers;
    DenseSet<Operation *> known;
    if (!findReaders(call->getResult(0), call, readers) || readers.empty() ||
        readers.size() > kMostReaders ||
        (readers.size() > 1 && llvm::any_of(call.getIns(), isPart)) ||
        !llvm::all_of(readers, [&](const Link &link) {
          return link.to->getBlock() == call->getBlock() &&
                 known.insert(link.to).second;
        }))
      return false;
    SmallVector<KernelFuser, 0> fusers;
    for (Link &link : readers) {
      SmallVector<Operation *> products = findFewRows(kernelOf(link.to));
      std::optional<KernelFuser> fuser;
      if (findRows(link.to, products) == link.read && !link.to.getUpdates())
        fuser = fuse(link);
      if (!fuser) {
        for (KernelFuser &other : fusers)
          other.eraseKernel();
        return false;
      }
      fusers.push_back(*fuser);
    }
    for (KernelFuser &fuser : fusers)
      fuser.replaceCall();
    eraseReshapes(call);
    call.erase();
    return true;
  }

  SymbolTable *symbols = nullptr;
};

} // namespace
