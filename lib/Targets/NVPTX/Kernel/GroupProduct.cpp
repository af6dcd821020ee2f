//===- GroupProduct.cpp - Products of warpgroups in flight ----------------===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Kernel/GroupProduct.h"

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"

using namespace mlir;
using namespace sardonyx;
using namespace sardonyx::nv;

/// The constraint of a register of inline PTX.
static StringRef kindOf(Type type) {
  return type.isF32() ? "f" : type.isInteger(32) ? "r" : "l";
}

/// The PTX `text`, whose operands are first its results, of these types, then
/// `before`, what the first of them were, and `others`.
static SmallVector<Value> runPtx(ImplicitLocOpBuilder &b, const Twine &text,
                                 TypeRange results, ValueRange before,
                                 ValueRange others) {
  std::string constraints;
  llvm::raw_string_ostream os(constraints);
  for (Type type : results)
    os << "=" << kindOf(type) << ",";
  for (size_t i = 0; i < before.size(); ++i)
    os << i << ",";
  for (Value value : others)
    os << kindOf(value.getType()) << ",";
  if (!constraints.empty())
    constraints.pop_back();
  SmallVector<Value> operands(before);
  llvm::append_range(operands, others);
  Type type;
  if (results.size() == 1)
    type = results.front();
  else if (results.size() > 1)
    type = LLVM::LLVMStructType::getLiteral(b.getContext(),
                                            SmallVector<Type>(results));
  auto run = LLVM::InlineAsmOp::create(
      b, type, operands, text.str(), constraints, /*has_side_effects=*/true,
      /*is_align_stack=*/false, LLVM::tailcallkind::TailCallKind::None,
      LLVM::AsmDialectAttr::get(b.getContext(), LLVM::AsmDialect::AD_ATT),
      /*operand_attrs=*/ArrayAttr());
  if (results.size() == 1)
    return {run.getRes()};
  SmallVector<Value> values;
  for (size_t i = 0; i < results.size(); ++i)
    values.push_back(LLVM::ExtractValueOp::create(b, run.getRes(), i));
  return values;
}

/// "{$0, $1}".
static std::string listOperands(size_t first, size_t count) {
  std::string list = "{";
  for (size_t i = 0; i < count; ++i)
    list += (i ? ", $" : "$") + std::to_string(first + i);
  return list + "}";
}

StringRef nv::nameOfElement(Type type, bool isUnsigned) {
  if (type.isF16())
    return "f16";
  if (type.isBF16())
    return "bf16";
  if (type.isF32())
    return "tf32";
  if (isa<Float8E4M3FNType>(type))
    return "e4m3";
  if (isa<Float8E5M2Type>(type))
    return "e5m2";
  return isUnsigned ? "u8" : "s8";
}

SmallVector<Value> GroupProduct::start(ImplicitLocOpBuilder &b, ValueRange sums,
                                       ValueRange lhs, Value rhs) const {
  const size_t count = countSums(), first = count + sums.size();
  const bool isInRegisters = lhs.size() > 1;
  const bool isOfBytes = sum.isInteger();
  const bool isOf16Bits = lhsType == "f16" || lhsType == "bf16";
  const int64_t depth = isOf16Bits ? 16 : lhsType == "tf32" ? 8 : 32;
  const std::string left = isInRegisters ? listOperands(first, lhs.size())
                                         : "$" + std::to_string(first);
  std::string text;
  llvm::raw_string_ostream os(text);
  os << "{\n.reg .pred p;\nsetp.ne.b32 p, " << !sums.empty()
     << ", 0;\nwgmma.mma_async.sync.aligned.m64n" << columns << "k" << depth
     << (isOfBytes ? ".s32." : ".f32.") << lhsType << "." << rhsType << " "
     << listOperands(0, count) << ", " << left << ", $" << first + lhs.size()
     << ", p";
  // The factors of both sides, and whether these lie across K.
  if (!isOfBytes)
    os << ", 1, 1";
  if (isOf16Bits)
    os << (isInRegisters ? "" : ", 0") << (isRhsAlongK ? ", 0" : ", 1");
  os << ";\n}\n";
  SmallVector<Value> operands(lhs);
  operands.push_back(rhs);
  return runPtx(b, text, SmallVector<Type>(count, sum), sums, operands);
}

SmallVector<Value> nv::fenceRegisters(ImplicitLocOpBuilder &b,
                                      ValueRange registers) {
  return runPtx(b, "wgmma.fence.sync.aligned;", registers.getTypes(), registers,
                {});
}

void nv::commitProducts(ImplicitLocOpBuilder &b) {
  NVVM::WgmmaGroupSyncAlignedOp::create(b);
}

SmallVector<Value> nv::waitForProducts(ImplicitLocOpBuilder &b, int64_t pending,
                                       ValueRange registers) {
  return runPtx(
      b, "wgmma.wait_group.sync.aligned " + std::to_string(pending) + ";",
      registers.getTypes(), registers, {});
}
