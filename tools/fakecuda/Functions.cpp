//===- Functions.cpp - Decodes functions, their calls and branches --------===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Decoder.h"
#include "Warp.h"
#include <algorithm>

namespace sardonyx::fakecuda {

/// What a function may have in each space that isn't device memory.
constexpr size_t kMostBytes = size_t(1) << 20;

static void runBranch(Warp &warp, const Instruction &instruction) {
  warp.branch(instruction.target);
}

static void runEnd(Warp &warp, const Instruction &) { warp.endLanes(); }

static void runTrap(Warp &warp, const Instruction &) {
  warp.fault(unsigned(__builtin_ctz(warp.mask)), "the kernel gave up");
}

// brx.idx: each lane goes where its index says.
static void runIndexedBranch(Warp &warp, const Instruction &instruction) {
  uint32_t all = warp.mask, left = all;
  while (left && warp.block.fault.empty()) {
    unsigned lane = unsigned(__builtin_ctz(left));
    auto index = uint32_t(warp.get(instruction.a, lane));
    if (index >= instruction.count)
      return warp.fault(lane, "branches to entry " + std::to_string(index) +
                                  " of " + std::to_string(instruction.count));
    uint32_t same = 0;
    forLanes(left, [&](unsigned other) {
      if (uint32_t(warp.get(instruction.a, other)) == index)
        same |= 1u << other;
    });
    warp.mask = same;
    warp.branch(warp.program.operands[instruction.first + index]);
    left &= ~same;
  }
}

bool Decoder::decodeFlow() {
  const std::string &name = base();
  if (name == "bra") {
    instruction.run = runBranch;
    branches.push_back({uint32_t(program->code.size()), scope, operand(0)});
  } else if (name == "brx") {
    instruction.run = runIndexedBranch;
    instruction.a = source(operand(0), "u32");
    tables.push_back({uint32_t(program->code.size()), scope, operand(1)});
  } else if (name == "exit" || (name == "ret" && returns.empty())) {
    instruction.run = runEnd;
  } else if (name == "ret") {
    instruction.run = runBranch;
    returns.back().push_back(uint32_t(program->code.size()));
  } else if (name == "trap") {
    instruction.run = runTrap;
  } else {
    return false;
  }
  return true;
}

// call (result), function, (arguments)
bool Decoder::decodeCall() {
  std::vector<std::string> operands = statement.operands, results, arguments;
  auto inside = [](const std::string &text) {
    return splitList(std::string_view(text).substr(1, text.size() - 2));
  };
  size_t at = 0;
  if (at < operands.size() && operands[at][0] == '(')
    results = inside(operands[at++]);
  std::string name = at < operands.size() ? operands[at++] : "";
  if (at < operands.size() && operands[at][0] == '(')
    arguments = inside(operands[at++]);
  auto called = module.functions.find(name);
  if (at != operands.size() || called == module.functions.end())
    return fail("a call through a pointer isn't known");
  const FunctionText &text = called->second;
  if (!text.isDefined)
    return fail("the function " + name + " isn't defined in this module");
  if (std::find(calls.begin(), calls.end(), name) != calls.end())
    return fail("the function " + name + " calls itself, which isn't known");
  if (!statement.guard.empty())
    return fail("a call under a predicate isn't known");
  if (results.size() != text.results.size() ||
      arguments.size() != text.parameters.size())
    return fail("the call of " + name + " has another number of arguments");
  Scope *inner = makeScope(nullptr);
  auto bind = [&](const std::vector<Variable> &formal,
                  const std::vector<std::string> &actual) {
    for (size_t i = 0; i < formal.size(); ++i) {
      Symbol *symbol = find(actual[i]);
      if (!symbol || symbol->kind != Symbol::Address)
        return !fail("the argument " + actual[i] + " isn't a .param variable");
      inner->names[formal[i].name] = *symbol;
    }
    return true;
  };
  if (!bind(text.results, results) || !bind(text.parameters, arguments))
    return true;
  returns.emplace_back();
  calls.push_back(name);
  expand(text, inner);
  for (uint32_t branch : returns.back())
    program->code[branch].target = uint32_t(program->code.size());
  returns.pop_back();
  calls.pop_back();
  return true;
}

bool Decoder::decodeStatement() {
  if (base() == "call")
    return decodeCall();
  if (!statement.guard.empty())
    instruction.guard = predicate(statement.guard, &instruction.guardNegated);
  using Family = bool (*)(Decoder &);
  static const Family kFamilies[] = {
      decodeInteger,  decodeBits,      decodeFloat,     decodeConvert,
      decodeCompare,  decodeMove,      decodeLoadStore, decodeAtomic,
      decodeCluster,  decodeBarrier,   decodeLanes,     decodeMatrix,
      decodeMma,      decodeAsyncCopy, decodeMbarrier,  decodeBulkCopy,
      decodeWarpgroup};
  bool known = decodeFlow();
  for (Family family : kFamilies)
    known = known || family(*this);
  if (!known || (problem.empty() && !instruction.run))
    return fail("the interpreter doesn't know this instruction");
  if (base() != "brx")
    instruction.count = uint32_t(program->operands.size()) - instruction.first;
  program->code.push_back(instruction);
  return true;
}

bool Decoder::expand(const FunctionText &text, Scope *outer) {
  Scope *before = scope;
  scope = outer;
  for (const Item &item : text.body) {
    if (item.kind == Item::Open) {
      scope = makeScope(scope);
    } else if (item.kind == Item::Close) {
      scope = scope->parent;
    } else if (item.kind == Item::Label) {
      lastLabel = item.text;
      scope->labels[item.text] = uint32_t(program->code.size());
    } else {
      parse(item);
      if (item.text[0] == '.')
        declare(item.text);
      else
        decodeStatement();
    }
    if (!problem.empty())
      break;
  }
  scope = before;
  return problem.empty();
}

bool Decoder::resolveLabels(std::string &error) {
  auto target = [&](Scope *from, const std::string &label) {
    for (Scope *at = from; at; at = at->parent)
      if (auto it = at->labels.find(label); it != at->labels.end())
        return it->second;
    error = "the label " + label + " isn't in the function";
    return uint32_t(0);
  };
  for (const Fixup &fixup : branches)
    program->code[fixup.at].target = target(fixup.scope, fixup.label);
  for (const Fixup &fixup : tables) {
    const std::vector<std::string> *table = nullptr;
    for (Scope *at = fixup.scope; at && !table; at = at->parent)
      if (auto it = at->tables.find(fixup.label); it != at->tables.end())
        table = &it->second;
    if (!table) {
      error = "the table " + fixup.label + " isn't in the function";
      return false;
    }
    Instruction &branch = program->code[fixup.at];
    branch.first = uint32_t(program->operands.size());
    branch.count = uint32_t(table->size());
    for (const std::string &label : *table)
      program->operands.push_back(target(fixup.scope, label));
  }
  return error.empty();
}

void Decoder::finish(Function &function) {
  if (dynamicAlignment)
    sharedBytes = (sharedBytes + dynamicAlignment - 1) / dynamicAlignment *
                  dynamicAlignment;
  for (uint32_t row : dynamicRows)
    program->constants.push_back({row, sharedBytes});
  program->staticSharedBytes = function.staticSharedBytes = sharedBytes;
  program->localBytes = (program->localBytes + 15) / 16 * 16;
  function.registers = unsigned(registers);
  uses.resize(program->rows);
  // LLVM widens loads of vectors over gaps: what goes into registers that
  // nobody reads doesn't count as read.
  for (Instruction &instruction : program->code) {
    if (!instruction.used || instruction.count == 1)
      continue;
    uint32_t elements = instruction.count;
    while (elements &&
           !uses[program->operands[instruction.first + elements - 1]])
      --elements;
    instruction.used = elements * instruction.bytes;
  }
  function.program.reset(program);
  program = nullptr;
}

bool Decoder::decode(const FunctionText &text, Function &function,
                     std::string &error) {
  auto owned = std::make_unique<Program>();
  program = owned.get();
  program->name = function.name = text.name;
  function.maxThreads = text.maxThreads;
  function.clusterBlocks = text.clusterBlocks;
  Scope *outer = makeScope(nullptr);
  size_t offset = 0;
  for (const Variable &parameter : text.parameters) {
    offset = (offset + parameter.alignment - 1) / parameter.alignment *
             parameter.alignment;
    function.parameters.push_back(
        {offset, parameter.bytes, parameter.alignment});
    outer->names[parameter.name] = {Symbol::Address, kNone,
                                    kParamWindow + offset};
    offset += parameter.bytes;
  }
  function.parameterBytes = offset;
  if (expand(text, outer) &&
      std::max({offset, sharedBytes, program->localBytes}) > kMostBytes)
    fail("the function has more than a megabyte of parameters, of shared or of "
         "local memory");
  if (!problem.empty()) {
    error = "line " + std::to_string(problemLine) + " of the PTX, " +
            statement.opcode + ": " + problem;
    return false;
  }
  parse({Item::Statement, text.line, "exit"});
  decodeStatement();
  if (!resolveLabels(error))
    return false;
  owned.release();
  finish(function);
  return true;
}

std::unique_ptr<Module> Module::parse(std::string_view ptx, Memory &memory,
                                      std::string &error) {
  ModuleText text;
  error.clear();
  if (!parseText(ptx, text, error))
    return nullptr;
  std::unique_ptr<Module> module(new Module(memory));
  std::map<std::string, uint64_t, std::less<>> addresses;
  for (const Variable &variable : text.variables) {
    if (variable.space == "shared")
      continue;
    uint64_t address = memory.allocate(
        variable.bytes, std::max(variable.alignment, size_t(256)));
    if (!address) {
      error = "there is no memory for the variable " + variable.name;
      return nullptr;
    }
    module->globals[variable.name] = {address, variable.bytes};
    addresses[variable.name] = address;
    // Variables without a value are zero.
    char *bytes = reinterpret_cast<char *>(address);
    std::fill_n(bytes, variable.bytes, 0);
    std::copy(variable.initial.begin(), variable.initial.end(), bytes);
  }
  for (const auto &[name, function] : text.functions) {
    if (!function.isEntry || !function.isDefined)
      continue;
    Decoder decoder(text, addresses);
    if (!decoder.decode(function, module->kernels[name], error))
      return nullptr;
  }
  return module;
}

Module::~Module() {
  for (auto &[name, global] : globals)
    memory.release(global.address);
}

const Function *Module::find(std::string_view name) const {
  auto it = kernels.find(name);
  return it == kernels.end() ? nullptr : &it->second;
}

uint64_t Module::findGlobal(std::string_view name, size_t &bytes) const {
  auto it = globals.find(name);
  if (it == globals.end())
    return 0;
  bytes = it->second.bytes;
  return it->second.address;
}

} // namespace sardonyx::fakecuda
