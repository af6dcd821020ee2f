//===- OutlineKernels.cpp - Kernels of the device of parallel loops -------===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Kernel/TensorMap.h"
#include "dialects/NV/NV.h"
#include "lib/Dispatch/Utils.h"
#include "sardonyx/NodeName.h"
#include "sardonyx/Targets/NVPTX/Passes.h"

#include "mlir/Conversion/GPUCommon/GPUCommonPass.h"
#include "mlir/Conversion/GPUToNVVM/GPUToNVVMPass.h"
#include "mlir/Conversion/LLVMCommon/MemRefBuilder.h"
#include "mlir/Conversion/LLVMCommon/TypeConverter.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/Transforms/RegionUtils.h"

namespace sardonyx {
#define GEN_PASS_DEF_NVOUTLINEKERNELS
#include "sardonyx/Targets/NVPTX/Passes.h.inc"
} // namespace sardonyx

using namespace mlir;
using namespace sardonyx;

namespace {

/// Threads of a block, where iterations are threads.
constexpr int64_t kThreads = 256;
/// Where a piece of shared memory begins, in bytes, and the block's all of it:
/// bulk copies and matrices of tensor cores want that.
constexpr int64_t kSharedAlignment = 128, kBlockAlignment = 1024;
/// The block's shared memory, whose size a launch tells.
constexpr StringLiteral kSharedName = "block_shared";
/// Where a tensor map begins, in bytes.
constexpr int64_t kMapAlignment = 64;
/// The address space of the device's memory in LLVM.
constexpr unsigned kGlobal = 1;

/// Makes a kernel of one loop, and what starts it.
class KernelOutliner {
public:
  KernelOutliner(scf::ParallelOp loop, gpu::GPUModuleOp module,
                 const LLVMTypeConverter &types, StringRef name)
      : loop(loop), loc(loop.getLoc()), types(types), host(loop),
        device(loop.getContext()) {
    // Parameters are added as they are found.
    device.setInsertionPointToEnd(module.getBody());
    kernel = gpu::GPUFuncOp::create(
        device, loc, name, FunctionType::get(loop.getContext(), {}, {}));
    kernel->setAttr(gpu::GPUDialect::getKernelFuncAttrName(),
                    device.getUnitAttr());
    if (auto count = loop->getAttrOfType<IntegerAttr>(nv::kThreadsAttr)) {
      threads = count.getInt();
      hasBlocks = true;
    }
    kernel.setKnownBlockSize(
        ArrayRef<int32_t>{static_cast<int32_t>(threads), 1, 1});
    // ptxas would keep registers for a second block beside it, and spill.
    int64_t blocks = 1;
    if (auto wanted = loop->getAttrOfType<IntegerAttr>(nv::kBlocksAttr))
      blocks = wanted.getInt();
    kernel->setAttr(NVVM::NVVMDialect::getMinctasmAttrName(),
                    device.getI32IntegerAttr(blocks));
    if (auto cluster = loop->getAttrOfType<IntegerAttr>(nv::kClusterAttr))
      kernel->setAttr(NVVM::NVVMDialect::getClusterDimAttrName(),
                      device.getDenseI32ArrayAttr(
                          {static_cast<int32_t>(cluster.getInt()), 1, 1}));
    std::string node = sdx::describeOrigin(loc);
    if (node.empty())
      node = describeNode(loc);
    if (!node.empty())
      kernel->setAttr(nv::kNodeAttr, device.getStringAttr(node));
    device.setInsertionPointToStart(&kernel.front());
  }

  LogicalResult run() {
    if (loop.getNumReductions() != 0)
      return loop.emitOpError("reduces, which threads do not");
    if (kernel->getParentOp()->hasAttr(nv::kWaitsAttr)) {
      // All blocks are there: the next kernel's may come, to wait for these.
      NVVM::GriddepcontrolOp::create(
          device, loc, NVVM::GridDepActionKind::launch_dependents);
      first = NVVM::GriddepcontrolOp::create(device, loc,
                                             NVVM::GridDepActionKind::wait);
    }
    countIterations();
    if (failed(passValues()))
      return failure();
    emitKernel();
    waitAfterPrefetches();
    start();
    return success();
  }

private:
  Attribute space() {
    return gpu::AddressSpaceAttr::get(host.getContext(),
                                      gpu::AddressSpace::Global);
  }

  static bool hasPrefetch(Operation *op) {
    return op->walk([](NVVM::PrefetchOp) { return WalkResult::interrupt(); })
        .wasInterrupted();
  }

  /// Whether `op` may come before the kernel waits for others: it reads and
  /// writes no memory, or only asks for it.
  static bool isEarly(Operation *op) {
    if (isa<NVVM::PrefetchOp>(op) ||
        (op->getNumRegions() == 0 && isMemoryEffectFree(op)))
      return true;
    return isa<scf::IfOp, scf::ForOp>(op) &&
           llvm::all_of(op->getRegions(), [](Region &region) {
             return llvm::all_of(region.getOps(), [](Operation &inner) {
               return isEarly(&inner);
             });
           });
  }

  /// Memory that a kernel asks for before it waits is on its way meanwhile.
  void waitAfterPrefetches() {
    if (!first || !hasPrefetch(kernel))
      return;
    moveWait(kernel.front(), std::next(first->getIterator()));
    first->erase();
  }

  /// Waits in `block`, after what may be done before: at the end of that, or in
  /// each of the branches that it ends with.
  void moveWait(Block &block, Block::iterator from) {
    Block::iterator at = from;
    while (&*at != block.getTerminator() && isEarly(&*at))
      ++at;
    auto branches = dyn_cast<scf::IfOp>(*at);
    if (branches && branches.getNumResults() == 0 && branches.elseBlock() &&
        &*std::next(at) == block.getTerminator() && hasPrefetch(branches)) {
      moveWait(*branches.thenBlock(), branches.thenBlock()->begin());
      moveWait(*branches.elseBlock(), branches.elseBlock()->begin());
      return;
    }
    OpBuilder b(&block, at);
    NVVM::GriddepcontrolOp::create(b, loc, NVVM::GridDepActionKind::wait);
  }

  /// How often each dimension's loop turns, on the host.
  void countIterations() {
    total = arith::ConstantIndexOp::create(host, loc, 1);
    for (auto [from, to, step] : llvm::zip(
             loop.getLowerBound(), loop.getUpperBound(), loop.getStep())) {
      Value extent = to;
      if (!isConstantIntValue(from, 0))
        extent = arith::SubIOp::create(host, loc, to, from);
      if (!isConstantIntValue(step, 1))
        extent = arith::CeilDivSIOp::create(host, loc, extent, step);
      auto low = getConstantIntValue(from), high = getConstantIntValue(to),
           by = getConstantIntValue(step);
      std::optional<int64_t> known;
      if (low && high && by && *by > 0)
        known = std::max<int64_t>(0, llvm::divideCeilSigned(*high - *low, *by));
      if (known)
        extent = arith::ConstantIndexOp::create(host, loc, *known);
      else if (!extent.getDefiningOp<memref::DimOp>())
        extent = arith::MaxSIOp::create(
            host, loc, extent, arith::ConstantIndexOp::create(host, loc, 0));
      extents.push_back(extent);
      total = arith::MulIOp::create(host, loc, total, extent);
      if (knownTotal && known)
        knownTotal = *knownTotal * *known;
      else
        knownTotal = std::nullopt;
    }
    if (knownTotal)
      total = arith::ConstantIndexOp::create(host, loc, *knownTotal);
  }

  Value addParameter(Value value) {
    arguments.push_back(value);
    Type type = value.getType();
    if (auto buffer = dyn_cast<MemRefType>(type))
      type = LLVM::LLVMPointerType::get(type.getContext(), kGlobal);
    return kernel.front().addArgument(type, value.getLoc());
  }

  /// `value` of the host in the kernel.
  Value pass(Value value) {
    if (Value known = mapping.lookupOrNull(value))
      return known;
    Value passed;
    if (auto dim = value.getDefiningOp<memref::DimOp>();
        dim && dim.getConstantIndex()) {
      passed = passSize(dim.getSource(), *dim.getConstantIndex(), value);
    } else if (auto result = dyn_cast<OpResult>(value);
               result && result.getOwner()->hasTrait<OpTrait::ConstantLike>()) {
      passed = device.clone(*result.getOwner())->getResult(0);
    } else if (value.getType().isInteger(1)) {
      // A parameter is a byte at least.
      Value byte = arith::ExtUIOp::create(host, loc, host.getI8Type(), value);
      passed = arith::TruncIOp::create(device, loc, device.getI1Type(),
                                       addParameter(byte));
    } else if (isa<MemRefType>(value.getType())) {
      passed = passBuffer(cast<TypedValue<MemRefType>>(value));
    } else {
      passed = addParameter(value);
    }
    mapping.map(value, passed);
    return passed;
  }

  /// The host describes the tensor, and the kernel has the map as a parameter.
  void passMap(nv::TensorMapOp map) {
    arguments.push_back(nv::describeTensor(host, map));
    mapping.map(map.getMap(),
                kernel.front().addArgument(map.getMap().getType(), loc));
    auto bytes = LLVM::LLVMArrayType::get(
        device.getI8Type(), sdx::LaunchOp::kMapWords * sizeof(int64_t));
    mapAttributes.push_back(device.getDictionaryAttr(
        {device.getNamedAttr(LLVM::LLVMDialect::getByValAttrName(),
                             TypeAttr::get(bytes)),
         device.getNamedAttr(LLVM::LLVMDialect::getAlignAttrName(),
                             device.getI64IntegerAttr(kMapAlignment))}));
  }

  /// A size of a buffer is passed once.
  Value passSize(Value buffer, int64_t dim, Value size = {}) {
    Value &passed = passedSizes[{buffer, dim}];
    if (!passed)
      passed = addParameter(
          size ? size : memref::DimOp::create(host, loc, buffer, dim));
    return passed;
  }

  /// Whether nothing in the loop asks for the first size of `buffer`, which no
  /// address hangs on.
  bool ignoresFirstSize(Value buffer) {
    return llvm::all_of(buffer.getUsers(), [&](Operation *user) {
      return !loop->isProperAncestor(user) ||
             isa<memref::LoadOp, memref::StoreOp>(user);
    });
  }

  /// A buffer is the address of its first element, and its open sizes and
  /// strides. Where iterations are threads, memory of any space is addressed
  /// alike in the kernel, since threads have buffers of their own beside it;
  /// LLVM finds out which is which.
  Value passBuffer(TypedValue<MemRefType> buffer) {
    MemRefType type = buffer.getType();
    Type i64 = device.getI64Type();
    Value address = addParameter(buffer);
    auto pointer = cast<LLVM::LLVMPointerType>(address.getType());
    MemRefType inside = type;
    if (!hasBlocks) {
      pointer = LLVM::LLVMPointerType::get(device.getContext());
      address = LLVM::AddrSpaceCastOp::create(device, loc, pointer, address);
      inside = MemRefType::Builder(type).setMemorySpace({});
    }
    auto [strides, offset] = type.getStridesAndOffset();
    if (!ShapedType::isDynamic(offset) && offset != 0) {
      // Code counts on the offset that the type has.
      Type element = types.convertType(type.getElementType());
      address = LLVM::GEPOp::create(
          device, loc, pointer, element, address,
          ValueRange{LLVM::ConstantOp::create(device, loc, i64, -offset)});
    }
    auto record =
        MemRefDescriptor::poison(device, loc, types.convertType(inside));
    record.setAllocatedPtr(device, loc, address);
    record.setAlignedPtr(device, loc, address);
    record.setConstantOffset(device, loc,
                             ShapedType::isDynamic(offset) ? 0 : offset);
    memref::ExtractStridedMetadataOp metadata;
    auto asWord = [&](Value value) -> Value {
      return arith::IndexCastOp::create(device, loc, i64, value);
    };
    auto constant = [&](int64_t value) -> Value {
      return LLVM::ConstantOp::create(device, loc, i64, value);
    };
    Value product = constant(1);
    SmallVector<Value> sizes(type.getRank());
    for (int64_t i = 0; i < type.getRank(); ++i)
      if (!type.isDynamicDim(i))
        sizes[i] = constant(type.getDimSize(i));
      else if (i == 0 && ignoresFirstSize(buffer))
        sizes[i] = constant(0);
      else
        sizes[i] = asWord(passSize(buffer, i));
    for (int64_t i = type.getRank() - 1; i >= 0; --i) {
      Value stride;
      if (type.getLayout().isIdentity()) {
        stride = product;
        product = LLVM::MulOp::create(device, loc, product, sizes[i]);
      } else if (!ShapedType::isDynamic(strides[i])) {
        stride = constant(strides[i]);
      } else {
        if (!metadata)
          metadata =
              memref::ExtractStridedMetadataOp::create(host, loc, buffer);
        stride = asWord(pass(metadata.getStrides()[i]));
      }
      record.setSize(device, loc, i, sizes[i]);
      record.setStride(device, loc, i, stride);
    }
    return UnrealizedConversionCastOp::create(device, loc, inside,
                                              Value(record))
        .getResult(0);
  }

  LogicalResult passValues() {
    SetVector<Value> used;
    getUsedValuesDefinedAbove(loop.getRegion(), used);
    // They come before all else.
    for (Value value : used)
      if (auto map = value.getDefiningOp<nv::TensorMapOp>())
        passMap(map);
    for (Value value : used) {
      if (mapping.contains(value))
        continue;
      Type type = value.getType();
      auto buffer = dyn_cast<MemRefType>(type);
      if (!type.isIntOrIndexOrFloat() && !buffer)
        return loop.emitOpError("uses a value of type ")
               << type << ", which no kernel takes";
      if (buffer && buffer.getMemorySpace() != space())
        return loop.emitOpError("uses a buffer of type ")
               << type << ", to which the device has no access";
      if (buffer && failed(buffer.getStridesAndOffset(strides, offset)))
        return loop.emitOpError("uses a buffer of type ")
               << type << ", whose layout has no strides";
    }
    for (Value value : used)
      pass(value);
    bool checks =
        loop.walk([](sdx::CheckOp) { return WalkResult::interrupt(); })
            .wasInterrupted();
    if (checks)
      passFailureRecord();
    return success();
  }

  void passFailureRecord() {
    Value record = sdx::FailureRecordOp::create(
        host, loc,
        MemRefType::get({sdx::FailureRecordOp::kWords}, host.getI64Type(),
                        AffineMap(),
                        gpu::AddressSpaceAttr::get(host.getContext(),
                                                   gpu::AddressSpace::Global)));
    addParameter(record);
    recordIndex = arguments.size() - 1;
  }

  /// The number of a thread, if there is an iteration for it, gives the
  /// position of that.
  void emitKernel() {
    SmallVector<Value> lengths, froms, steps;
    // Of the first dimension what is left of the number is the position.
    lengths.push_back({});
    for (Value extent : ArrayRef<Value>(extents).drop_front())
      lengths.push_back(pass(extent));
    for (Value from : loop.getLowerBound())
      froms.push_back(pass(from));
    for (Value step : loop.getStep())
      steps.push_back(pass(step));
    Value block = gpu::BlockIdOp::create(device, loc, gpu::Dimension::x);
    if (hasBlocks) {
      emitPosition(block, lengths, froms, steps);
      emitBlock();
    } else {
      emitThread(block, pass(total), lengths, froms, steps);
    }
    SmallVector<Type> parameters(kernel.front().getArgumentTypes());
    kernel.setFunctionType(
        FunctionType::get(kernel.getContext(), parameters, {}));
    for (auto [i, attributes] : llvm::enumerate(mapAttributes))
      kernel.setArgAttrs(i, attributes);
    if (recordIndex)
      kernel.setArgAttr(*recordIndex, nv::kFailureRecordAttr,
                        device.getUnitAttr());
    for (auto [i, argument] : llvm::enumerate(arguments))
      if (auto buffer = dyn_cast<MemRefType>(argument.getType()))
        describeBuffer(i, buffer);
  }

  /// Buffers lie at multiples of 256 bytes, and pieces of them that have no
  /// layout of their own at multiples of 16. None is written that another
  /// parameter reads.
  void describeBuffer(unsigned parameter, MemRefType type) {
    if (type.getLayout().isIdentity())
      kernel.setArgAttr(parameter, LLVM::LLVMDialect::getAlignAttrName(),
                        device.getI64IntegerAttr(16));
  }

  void emitThread(Value block, Value count, ArrayRef<Value> lengths,
                  ArrayRef<Value> froms, ArrayRef<Value> steps) {
    Value thread = gpu::ThreadIdOp::create(device, loc, gpu::Dimension::x);
    Value size = arith::ConstantIndexOp::create(device, loc, threads);
    Value number = arith::AddIOp::create(
        device, loc, arith::MulIOp::create(device, loc, block, size), thread);
    Value isInside = arith::CmpIOp::create(
        device, loc, arith::CmpIPredicate::ult, number, count);
    auto ifOp = scf::IfOp::create(device, loc, isInside, /*withElse=*/false);
    gpu::ReturnOp::create(device, loc);
    device.setInsertionPointToStart(ifOp.thenBlock());
    emitPosition(number, lengths, froms, steps);
    for (Operation &op : loop.getBody()->without_terminator())
      device.clone(op, mapping);
    // Memory of any space is addressed alike from here on.
    dropMemorySpaces(ifOp);
  }

  /// The block's shared memory, pieces one after the other.
  void emitBlock() {
    for (Operation &op : loop.getBody()->without_terminator())
      device.clone(op, mapping);
    gpu::ReturnOp::create(device, loc);
    SmallVector<nv::SharedMemoryOp> pieces;
    kernel.walk([&](nv::SharedMemoryOp piece) { pieces.push_back(piece); });
    if (pieces.empty())
      return;
    LLVM::GlobalOp global = findSharedMemory();
    for (nv::SharedMemoryOp piece : pieces) {
      OpBuilder b(piece);
      auto type = cast<MemRefType>(piece.getBytes().getType());
      Value address = LLVM::AddressOfOp::create(b, loc, global);
      address = LLVM::GEPOp::create(
          b, loc, address.getType(), b.getI8Type(), address,
          ArrayRef<LLVM::GEPArg>{static_cast<int32_t>(shared)});
      piece.getBytes().replaceAllUsesWith(describeBytes(b, type, address));
      shared += llvm::alignTo(type.getNumElements(), kSharedAlignment);
      piece.erase();
    }
    kernel->setAttr(nv::kSharedAttr, device.getI64IntegerAttr(shared));
  }

  Value describeBytes(OpBuilder &b, MemRefType type, Value address) {
    auto record =
        MemRefDescriptor::fromStaticShape(b, loc, types, type, address);
    return UnrealizedConversionCastOp::create(b, loc, type, Value(record))
        .getResult(0);
  }

  LLVM::GlobalOp findSharedMemory() {
    auto module = kernel->getParentOfType<gpu::GPUModuleOp>();
    if (auto known = module.lookupSymbol<LLVM::GlobalOp>(kSharedName))
      return known;
    auto b = OpBuilder::atBlockBegin(module.getBody());
    auto type = LLVM::LLVMArrayType::get(b.getI8Type(), 0);
    return LLVM::GlobalOp::create(
        b, module.getLoc(), type, /*isConstant=*/false, LLVM::Linkage::External,
        kSharedName, Attribute(), kBlockAlignment,
        static_cast<unsigned>(NVVM::NVVMMemorySpace::Shared));
  }

  /// Divisions of 32 bits are a fraction of those of 64.
  void emitPosition(Value number, ArrayRef<Value> lengths,
                    ArrayRef<Value> froms, ArrayRef<Value> steps) {
    const bool isShort = knownTotal && *knownTotal < INT32_MAX;
    Type i32 = device.getI32Type(), index = device.getIndexType();
    auto shorten = [&](Value value) -> Value {
      return isShort ? arith::IndexCastOp::create(device, loc, i32, value)
                     : value;
    };
    Value rest = shorten(number);
    for (int i = lengths.size() - 1; i >= 0; --i) {
      Value at = rest;
      if (i > 0) {
        Value length = shorten(lengths[i]);
        at = arith::RemUIOp::create(device, loc, rest, length);
        rest = arith::DivUIOp::create(device, loc, rest, length);
      }
      if (isShort)
        at = arith::IndexCastUIOp::create(device, loc, index, at);
      if (!isConstantIntValue(steps[i], 1))
        at = arith::MulIOp::create(device, loc, at, steps[i]);
      if (!isConstantIntValue(froms[i], 0))
        at = arith::AddIOp::create(device, loc, at, froms[i]);
      mapping.map(loop.getInductionVars()[i], at);
    }
  }

  void start() {
    Value one = arith::ConstantIndexOp::create(host, loc, 1);
    Value blocks = total;
    if (!hasBlocks) {
      Value size = arith::ConstantIndexOp::create(host, loc, threads);
      blocks = arith::CeilDivUIOp::create(host, loc, total, size);
    }
    auto launch = sdx::LaunchOp::create(host, loc, kernel.getName(),
                                        ValueRange{blocks, one, one}, arguments,
                                        ArrayRef<int64_t>{threads, 1, 1});
    launch.setShared(shared);
    loop.erase();
  }

  scf::ParallelOp loop;
  /// Where the kernel waits for those before it; null: it starts after them.
  Operation *first = nullptr;
  const Location loc;
  const LLVMTypeConverter &types;
  OpBuilder host, device;
  gpu::GPUFuncOp kernel;
  SmallVector<Value> arguments, extents;
  /// Of the parameters that are tensor maps, which come first.
  SmallVector<DictionaryAttr> mapAttributes;
  Value total;
  std::optional<int64_t> knownTotal = 1;
  std::optional<unsigned> recordIndex;
  /// Of a block; whether iterations are blocks; bytes of their shared memory.
  int64_t threads = kThreads;
  bool hasBlocks = false;
  int64_t shared = 0;
  IRMapping mapping;
  DenseMap<std::pair<Value, int64_t>, Value> passedSizes;
  SmallVector<int64_t> strides;
  int64_t offset = 0;
};

struct OutlineKernelsPass
    : sardonyx::impl::NVOutlineKernelsBase<OutlineKernelsPass> {
  using Base::Base;

  void runOnOperation() override {
    ModuleOp module = getOperation();
    LLVMTypeConverter types(&getContext());
    configureGpuToNVVMTypeConverter(types);
    gpu::GPUModuleOp device;
    for (auto func : module.getOps<func::FuncOp>()) {
      if (!func->hasAttr(sdx::kKernelAttr) || func.isDeclaration())
        continue;
      SmallVector<scf::ParallelOp> loops(
          func.front().getOps<scf::ParallelOp>());
      for (auto [i, loop] : llvm::enumerate(loops)) {
        if (!device)
          device = makeModule(module);
        std::string name = func.getName().str();
        if (loops.size() > 1) {
          auto step = loop->getAttrOfType<StringAttr>(nv::kStepAttr);
          name += "_" + std::to_string(i) + "_" +
                  (step ? step.getValue().str() : "loop");
        }
        if (failed(KernelOutliner(loop, device, types, name).run()))
          return signalPassFailure();
      }
    }
  }

private:
  static gpu::GPUModuleOp makeModule(ModuleOp module) {
    auto b = OpBuilder::atBlockEnd(module.getBody());
    auto device = gpu::GPUModuleOp::create(b, module.getLoc(), "device");
    if (nv::getTargetOrDefault(module).hasEarlyStarts())
      device->setAttr(nv::kWaitsAttr, b.getUnitAttr());
    return device;
  }
};

} // namespace
