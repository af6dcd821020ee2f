//===- Decoder.h - Makes a program of the text of a kernel ---- -*- C++ -*-===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef SARDONYX_TOOLS_FAKECUDA_DECODER_H
#define SARDONYX_TOOLS_FAKECUDA_DECODER_H

#include "Interpreter.h"
#include "ModuleText.h"
#include "Program.h"
#include <memory>
#include <unordered_map>

namespace sardonyx::fakecuda {

/// A statement, taken apart.
struct Statement {
  unsigned line = 0;
  std::string guard; ///< Such as "%p1" or "!%p1", or empty.
  std::string opcode;
  std::vector<std::string> parts; ///< The opcode, cut at points.
  std::vector<std::string> operands;
};

/// Decodes kernels. A function that is called is put in the place of the call,
/// with registers of its own; calls that recur are refused.
class Decoder {
public:
  Decoder(const ModuleText &module,
          const std::map<std::string, uint64_t, std::less<>> &globals)
      : module(module), globals(globals) {}

  /// Returns false and a sentence when an instruction isn't known.
  bool decode(const FunctionText &text, Function &function, std::string &error);

  // What follows is for those who decode a family of instructions. They return
  // true when the instruction is theirs and set `instruction`, or call fail().
  bool has(std::string_view part) const;
  /// Whether all parts between the name and the type are among these: what
  /// isn't known must not be passed over.
  bool hasOnly(std::initializer_list<std::string_view> known) const;
  const std::string &base() const { return statement.parts[0]; }
  const std::string &type() const { return statement.parts.back(); }
  size_t operandCount() const { return statement.operands.size(); }
  const std::string &operand(size_t i) const;
  /// Says what is wrong with the instruction. Returns true.
  bool fail(const std::string &what);

  /// Whether arithmetic has as many operands as its name asks for.
  bool checkOperandCount();

  /// The row of a register that is written; "_" is row 0.
  uint32_t destination(std::string_view name);
  /// The row of a register or of a constant of `type`.
  uint32_t source(std::string_view text, std::string_view type);
  uint32_t source(size_t i) { return source(operand(i), type()); }
  /// A predicate; "!" before it sets `negated`, without `negated` it is an
  /// error.
  uint32_t predicate(std::string_view name, bool *negated = nullptr);
  bool isPredicate(std::string_view name);
  /// Sets the row and the offset of an address in brackets.
  bool address(std::string_view text, uint32_t &row, int64_t &offset);
  /// Appends the elements of {a, b, c}, or a alone, to the operands.
  void destinations(std::string_view list);
  void sources(std::string_view list, std::string_view type);
  uint32_t constant(uint64_t value);
  /// Tells how finely accesses of shared memory have to be watched.
  void watch(unsigned bytes);

  Statement statement;
  Instruction instruction;
  Program *program = nullptr;

private:
  struct Symbol {
    enum Kind { Register, Predicate, Shared, ExternShared, Address } kind;
    uint32_t index = kNone; ///< The row or predicate, once it is used.
    uint64_t value = 0;     ///< The address.
  };
  struct Scope {
    Scope *parent = nullptr;
    std::unordered_map<std::string, Symbol> names;
    std::unordered_map<std::string, uint32_t> labels;
    std::unordered_map<std::string, std::vector<std::string>> tables;
  };
  struct Fixup {
    uint32_t at;
    Scope *scope;
    std::string label;
  };

  Scope *makeScope(Scope *parent);
  Symbol *find(std::string_view name);
  bool expand(const FunctionText &text, Scope *outer);
  bool declare(std::string_view text);
  bool declareRegisters(std::string_view text);
  void parse(const Item &item);
  bool decodeStatement();
  bool decodeFlow();
  bool decodeCall();
  bool resolveLabels(std::string &error);
  bool constantOf(std::string_view text, std::string_view type,
                  uint64_t &value);
  uint32_t specialRow(std::string_view name);
  uint32_t symbolRow(Symbol &symbol);
  void finish(Function &function);

  const ModuleText &module;
  const std::map<std::string, uint64_t, std::less<>> &globals;
  std::vector<std::unique_ptr<Scope>> scopes;
  Scope *scope = nullptr;
  std::vector<Fixup> branches, tables;
  std::vector<std::vector<uint32_t>> returns; ///< Of calls, innermost last.
  std::vector<std::string> calls;
  std::string lastLabel, problem;
  unsigned problemLine = 0;
  std::map<uint64_t, uint32_t> constants;
  std::map<std::string, uint32_t> specials, opcodes;
  std::map<std::string, Symbol> shared;
  std::vector<uint32_t> dynamicRows, uses;
  size_t sharedBytes = 0, dynamicAlignment = 0, registers = 0;
};

// The families of instructions.
bool decodeInteger(Decoder &decoder);
bool decodeBits(Decoder &decoder);
bool decodeFloat(Decoder &decoder);
bool decodeConvert(Decoder &decoder);
bool decodeCompare(Decoder &decoder);
bool decodeMove(Decoder &decoder);
bool decodeLoadStore(Decoder &decoder);
bool decodeCluster(Decoder &decoder);
bool decodeAtomic(Decoder &decoder);
bool decodeBarrier(Decoder &decoder);
bool decodeLanes(Decoder &decoder);
bool decodeMatrix(Decoder &decoder);
bool decodeMma(Decoder &decoder);
bool decodeAsyncCopy(Decoder &decoder);
bool decodeMbarrier(Decoder &decoder);
bool decodeBulkCopy(Decoder &decoder);
bool decodeWarpgroup(Decoder &decoder);

} // namespace sardonyx::fakecuda

#endif // SARDONYX_TOOLS_FAKECUDA_DECODER_H
