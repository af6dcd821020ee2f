//===- ExpandShortFloats.cpp - Floats of 16 bits as integers --------------===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "ExpandShortFloats.h"

#include "llvm/ADT/PostOrderIterator.h"
#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/IntrinsicInst.h"
#include "llvm/IR/Module.h"
#include "llvm/Transforms/Utils/Local.h"

using namespace llvm;

namespace {

bool isShort(Type *type) {
  Type *scalar = type->getScalarType();
  return scalar->isHalfTy() || scalar->isBFloatTy();
}

/// `type` with elements of another kind.
Type *withElements(Type *type, Type *element) {
  auto *vector = dyn_cast<VectorType>(type);
  return vector ? VectorType::get(element, vector->getElementCount()) : element;
}

/// A function's type with integers for short floats.
FunctionType *expandType(FunctionType *type) {
  auto expand = [](Type *type) {
    return isShort(type)
               ? withElements(type, Type::getInt16Ty(type->getContext()))
               : type;
  };
  SmallVector<Type *> parameters;
  for (Type *parameter : type->params())
    parameters.push_back(expand(parameter));
  return FunctionType::get(expand(type->getReturnType()), parameters,
                           type->isVarArg());
}

/// The functions that stand for others.
using Functions = DenseMap<Function *, Function *>;

class Expander {
public:
  Expander(Function &function, const Functions &functions)
      : function(function), functions(functions), b(function.getContext()) {}

  /// Takes the body of `old`, whose arguments are others.
  void takeBody(Function &old) {
    function.splice(function.begin(), &old);
    b.SetInsertPoint(&function.getEntryBlock(),
                     function.getEntryBlock().getFirstInsertionPt());
    for (auto [from, to] : zip(old.args(), function.args())) {
      if (from.getType() == to.getType()) {
        from.replaceAllUsesWith(&to);
        continue;
      }
      Value *cast = b.CreateBitCast(&to, from.getType());
      bits[cast] = &to;
      casts.push_back(cast);
      from.replaceAllUsesWith(cast);
    }
  }

  void run() {
    // Definitions come before their uses, but for those of phis.
    SmallVector<Instruction *> order;
    ReversePostOrderTraversal<Function *> blocks(&function);
    for (BasicBlock *block : blocks)
      for (Instruction &instruction : *block)
        if (isShort(instruction.getType()) ||
            any_of(instruction.operands(),
                   [](Value *v) { return isShort(v->getType()); }))
          order.push_back(&instruction);
    for (Instruction *instruction : order)
      expand(*instruction);
    for (auto [from, to] : phis)
      for (unsigned i = 0; i < from->getNumIncomingValues(); ++i) {
        BasicBlock *block = from->getIncomingBlock(i);
        b.SetInsertPoint(block->getTerminator());
        to->addIncoming(bitsOf(from->getIncomingValue(i)), block);
      }
    for (Instruction *instruction : reverse(order))
      if (replaced.contains(instruction))
        instruction->eraseFromParent();
    RecursivelyDeleteTriviallyDeadInstructionsPermissive(casts);
  }

private:
  /// The integers that a value of short floats stands for.
  Value *bitsOf(Value *value) {
    auto known = bits.find(value);
    if (known != bits.end())
      return known->second;
    return b.CreateBitCast(value,
                           withElements(value->getType(), b.getInt16Ty()));
  }

  /// A value of any type, short floats as float.
  Value *widen(Value *value) {
    return isShort(value->getType())
               ? toFloat(bitsOf(value),
                         value->getType()->getScalarType()->isBFloatTy())
               : value;
  }

  Constant *number(Value *like, uint64_t value) {
    return ConstantInt::get(like->getType(), value);
  }
  Value *asFloats(Value *words) {
    return b.CreateBitCast(words,
                           withElements(words->getType(), b.getFloatTy()));
  }
  Value *asWords(Value *floats) {
    return b.CreateBitCast(floats,
                           withElements(floats->getType(), b.getInt32Ty()));
  }

  Value *toFloat(Value *shorts, bool isBFloat) {
    Value *words =
        b.CreateZExt(shorts, withElements(shorts->getType(), b.getInt32Ty()));
    if (isBFloat)
      return asFloats(b.CreateShl(words, 16));
    Value *sign = b.CreateShl(b.CreateAnd(words, 0x8000), 16);
    Value *rest = b.CreateShl(b.CreateAnd(words, 0x7fff), 13);
    // The exponent's bias grows by 112; denormal numbers become normal ones.
    Value *scaled = asWords(b.CreateFMul(
        asFloats(rest),
        ConstantFP::get(withElements(rest->getType(), b.getFloatTy()),
                        0x1p112)));
    Value *isSpecial = b.CreateICmpUGE(rest, number(rest, 31 << 23));
    Value *special = b.CreateOr(rest, number(rest, 0x7f800000));
    return asFloats(
        b.CreateOr(b.CreateSelect(isSpecial, special, scaled), sign));
  }

  /// Rounds to the nearest, of two to the even one.
  Value *fromFloat(Value *floats, bool isBFloat) {
    Value *words = asWords(floats);
    Value *result = isBFloat ? bfloatBits(words) : halfBits(words);
    return b.CreateTrunc(result,
                         withElements(words->getType(), b.getInt16Ty()));
  }

  Value *bfloatBits(Value *words) {
    Value *odd = b.CreateAnd(b.CreateLShr(words, 16), 1);
    Value *rounded = b.CreateLShr(
        b.CreateAdd(words, b.CreateAdd(odd, number(odd, 0x7fff))), 16);
    Value *quiet = b.CreateOr(b.CreateLShr(words, 16), number(words, 0x40));
    return b.CreateSelect(isNaN(b.CreateAnd(words, 0x7fffffff)), quiet,
                          rounded);
  }

  /// Of a number without its sign.
  Value *isNaN(Value *words) {
    return b.CreateICmpUGT(words, number(words, 0x7f800000));
  }

  Value *halfBits(Value *words) {
    Value *rest = b.CreateAnd(words, 0x7fffffff);
    Value *sign = b.CreateLShr(b.CreateAnd(words, 0x80000000), 16);
    // The sum with 0.5 has a half's last denormal bit in its last.
    Value *half =
        ConstantFP::get(withElements(words->getType(), b.getFloatTy()), 0.5);
    Value *denormal = b.CreateSub(asWords(b.CreateFAdd(asFloats(rest), half)),
                                  number(rest, 0x3f000000));
    // The bias shrinks by 112; a carry goes into the exponent.
    Value *odd = b.CreateAnd(b.CreateLShr(rest, 13), 1);
    Value *normal =
        b.CreateLShr(b.CreateAdd(b.CreateAdd(rest, odd),
                                 number(rest, uint32_t(-(112 << 23) + 0xfff))),
                     13);
    Value *result = b.CreateSelect(
        b.CreateICmpULT(rest, number(rest, 0x38800000)), denormal, normal);
    result = b.CreateSelect(b.CreateICmpUGE(rest, number(rest, 0x47800000)),
                            number(rest, 0x7c00), result);
    Value *payload = b.CreateAnd(b.CreateLShr(rest, 13), 0x1ff);
    result = b.CreateSelect(isNaN(rest),
                            b.CreateOr(payload, number(rest, 0x7e00)), result);
    return b.CreateOr(result, sign);
  }

  /// A float that rounds to what the double rounds to: cut off, with an odd
  /// last bit where something was.
  Value *toOdd(Value *doubles) {
    Value *floats = b.CreateFPTrunc(
        doubles, withElements(doubles->getType(), b.getFloatTy()));
    Value *again = b.CreateFPExt(floats, doubles->getType());
    Value *words = asWords(floats);
    Value *isLarger =
        b.CreateFCmpOGT(b.CreateUnaryIntrinsic(Intrinsic::fabs, again),
                        b.CreateUnaryIntrinsic(Intrinsic::fabs, doubles));
    Value *cut = b.CreateSub(words, b.CreateZExt(isLarger, words->getType()));
    Value *isInexact = b.CreateFCmpONE(again, doubles);
    return asFloats(b.CreateOr(cut, b.CreateZExt(isInexact, words->getType())));
  }

  /// A short float of type `type` of a float or double, as integers.
  Value *narrow(Value *value, Type *type) {
    Type *from = value->getType()->getScalarType();
    if (from->isDoubleTy())
      value = toOdd(value);
    return fromFloat(value, type->getScalarType()->isBFloatTy());
  }

  /// Says that `value`, integers, stands for a result of short floats.
  void define(Instruction &result, Value *value) {
    bits[&result] = value;
    // For whoever is not expanded yet.
    Value *cast = b.CreateBitCast(value, result.getType());
    if (auto *instruction = dyn_cast<Instruction>(cast)) {
      casts.push_back(instruction);
      bits[instruction] = value;
    }
    result.replaceAllUsesWith(cast);
    replaced.insert(&result);
  }

  void replace(Instruction &old, Value *value) {
    if (isShort(old.getType()))
      return define(old, value);
    if (!old.getType()->isVoidTy())
      old.replaceAllUsesWith(value);
    replaced.insert(&old);
  }

  void expand(Instruction &instruction);
  void expandIntrinsic(IntrinsicInst &call);
  void expandCall(CallInst &call);

  Function &function;
  const Functions &functions;
  IRBuilder<> b;
  DenseMap<Value *, Value *> bits;
  SmallVector<std::pair<PHINode *, PHINode *>> phis;
  SmallVector<WeakTrackingVH> casts;
  SmallPtrSet<Instruction *, 16> replaced;
};

} // namespace

/// Moves of memory, as such of integers.
static bool movesMemory(Intrinsic::ID id) {
  switch (id) {
  case Intrinsic::masked_load:
  case Intrinsic::masked_store:
  case Intrinsic::masked_gather:
  case Intrinsic::masked_scatter:
    return true;
  default:
    return false;
  }
}

void Expander::expandIntrinsic(IntrinsicInst &call) {
  Type *type = call.getType();
  SmallVector<Value *> operands;
  if (movesMemory(call.getIntrinsicID())) {
    SmallVector<Type *> overloads;
    if (!type->isVoidTy())
      overloads.push_back(withElements(type, b.getInt16Ty()));
    for (Value *operand : call.args()) {
      operands.push_back(isShort(operand->getType()) ? bitsOf(operand)
                                                     : operand);
      if (isShort(operand->getType()) && type->isVoidTy())
        overloads.push_back(operands.back()->getType());
    }
    for (Value *operand : call.args())
      if (operand->getType()->isPtrOrPtrVectorTy())
        overloads.push_back(operand->getType());
    CallInst *moved =
        b.CreateIntrinsic(call.getIntrinsicID(), overloads, operands);
    moved->setAttributes(call.getAttributes());
    return replace(call, moved);
  }
  // Functions of numbers, all of one type.
  if (!isShort(type) || any_of(call.args(), [&](Value *operand) {
        return operand->getType() != type;
      }))
    return;
  if (call.getIntrinsicID() == Intrinsic::fabs) {
    Value *value = bitsOf(call.getArgOperand(0));
    return define(call, b.CreateAnd(value, number(value, 0x7fff)));
  }
  for (Value *operand : call.args())
    operands.push_back(widen(operand));
  Value *wide = b.CreateIntrinsic(
      call.getIntrinsicID(), {withElements(type, b.getFloatTy())}, operands);
  define(call, narrow(wide, type));
}

void Expander::expand(Instruction &instruction) {
  b.SetInsertPoint(&instruction);
  Type *type = instruction.getType();
  Type *integers = isShort(type) ? withElements(type, b.getInt16Ty()) : nullptr;
  auto operand = [&](unsigned i) { return instruction.getOperand(i); };
  if (auto *phi = dyn_cast<PHINode>(&instruction)) {
    PHINode *made = b.CreatePHI(integers, phi->getNumIncomingValues());
    phis.push_back({phi, made});
    b.SetInsertPoint(phi->getParent(), phi->getParent()->getFirstInsertionPt());
    return define(*phi, made);
  }
  if (auto *load = dyn_cast<LoadInst>(&instruction)) {
    auto *made = b.CreateAlignedLoad(integers, load->getPointerOperand(),
                                     load->getAlign(), load->isVolatile());
    made->copyMetadata(*load);
    return define(*load, made);
  }
  if (auto *store = dyn_cast<StoreInst>(&instruction)) {
    store->setOperand(0, bitsOf(store->getValueOperand()));
    return;
  }
  if (isa<FPExtInst>(instruction)) {
    Value *wide = widen(operand(0));
    return replace(instruction, type->getScalarType()->isDoubleTy()
                                    ? b.CreateFPExt(wide, type)
                                    : wide);
  }
  if (isa<FPTruncInst>(instruction))
    return define(instruction, narrow(operand(0), type));
  if (auto *cast = dyn_cast<CastInst>(&instruction);
      cast && !isa<BitCastInst>(cast)) {
    if (!integers) // to an integer
      return replace(instruction,
                     b.CreateCast(cast->getOpcode(), widen(operand(0)), type));
    // By way of double, which holds all numbers of 32 bits.
    Value *wide = b.CreateCast(cast->getOpcode(), operand(0),
                               withElements(type, b.getDoubleTy()));
    return define(instruction, narrow(wide, type));
  }
  if (isa<BitCastInst>(instruction)) {
    Value *from =
        isShort(operand(0)->getType()) ? bitsOf(operand(0)) : operand(0);
    return replace(instruction,
                   b.CreateBitCast(from, integers ? integers : type));
  }
  if (auto *compare = dyn_cast<FCmpInst>(&instruction))
    return replace(instruction,
                   b.CreateFCmp(compare->getPredicate(), widen(operand(0)),
                                widen(operand(1))));
  if (isa<SelectInst>(instruction))
    return define(instruction, b.CreateSelect(operand(0), bitsOf(operand(1)),
                                              bitsOf(operand(2))));
  if (auto *shuffle = dyn_cast<ShuffleVectorInst>(&instruction))
    return define(instruction,
                  b.CreateShuffleVector(bitsOf(operand(0)), bitsOf(operand(1)),
                                        shuffle->getShuffleMask()));
  if (isa<InsertElementInst>(instruction))
    return define(instruction,
                  b.CreateInsertElement(bitsOf(operand(0)), bitsOf(operand(1)),
                                        operand(2)));
  if (isa<ExtractElementInst>(instruction))
    return define(instruction,
                  b.CreateExtractElement(bitsOf(operand(0)), operand(1)));
  if (isa<FreezeInst>(instruction))
    return define(instruction, b.CreateFreeze(bitsOf(operand(0))));
  if (instruction.getOpcode() == Instruction::FNeg) {
    Value *value = bitsOf(operand(0));
    return define(instruction, b.CreateXor(value, number(value, 0x8000)));
  }
  if (auto *binary = dyn_cast<BinaryOperator>(&instruction))
    return define(instruction,
                  narrow(b.CreateBinOp(binary->getOpcode(), widen(operand(0)),
                                       widen(operand(1))),
                         type));
  if (auto *call = dyn_cast<IntrinsicInst>(&instruction))
    expandIntrinsic(*call);
  else if (auto *call = dyn_cast<CallInst>(&instruction))
    expandCall(*call);
  else if (auto *leave = dyn_cast<ReturnInst>(&instruction))
    leave->setOperand(0, bitsOf(operand(0)));
}

void Expander::expandCall(CallInst &call) {
  Function *callee = functions.lookup(call.getCalledFunction());
  if (!callee)
    return;
  SmallVector<Value *> operands;
  for (Value *operand : call.args())
    operands.push_back(isShort(operand->getType()) ? bitsOf(operand) : operand);
  CallInst *made = b.CreateCall(callee, operands);
  made->setAttributes(call.getAttributes());
  made->setCallingConv(call.getCallingConv());
  replace(call, made);
}

void sardonyx::expandShortFloats(Module &module) {
  Functions functions;
  for (Function &function : make_early_inc_range(module)) {
    FunctionType *type = expandType(function.getFunctionType());
    if (function.isIntrinsic() || type == function.getFunctionType())
      continue;
    Function *made = Function::Create(type, function.getLinkage(), "", module);
    made->copyAttributesFrom(&function);
    made->takeName(&function);
    functions[&function] = made;
  }
  for (Function &function : module) {
    // Those that are called without a change, and those that others became.
    if (functions.contains(&function))
      continue;
    Expander expander(function, functions);
    for (auto [old, made] : functions)
      if (made == &function && !old->isDeclaration())
        expander.takeBody(*old);
    if (!function.isDeclaration())
      expander.run();
  }
  for (auto [old, made] : functions)
    old->eraseFromParent();
}
