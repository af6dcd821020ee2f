//===- Decoder.cpp - Makes a program of the text of a kernel --------------===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Decoder.h"
#include "Numbers.h"
#include <algorithm>

namespace sardonyx::fakecuda {

bool Decoder::has(std::string_view part) const {
  return std::find(statement.parts.begin(), statement.parts.end(), part) !=
         statement.parts.end();
}

bool Decoder::hasOnly(std::initializer_list<std::string_view> known) const {
  for (size_t i = 1; i + 1 < statement.parts.size(); ++i)
    if (std::find(known.begin(), known.end(), statement.parts[i]) ==
        known.end())
      return false;
  return true;
}

const std::string &Decoder::operand(size_t i) const {
  static const std::string kNothing;
  return i < statement.operands.size() ? statement.operands[i] : kNothing;
}

bool Decoder::fail(const std::string &what) {
  if (problem.empty()) {
    problem = what;
    problemLine = statement.line;
  }
  return true;
}

bool Decoder::checkOperandCount() {
  static const std::map<std::string_view, size_t> kCounts = {
      {"neg", 2},  {"abs", 2},  {"not", 2},   {"cnot", 2},  {"popc", 2},
      {"clz", 2},  {"brev", 2}, {"bfind", 2}, {"cvt", 2},   {"mov", 2},
      {"cvta", 2}, {"rcp", 2},  {"sqrt", 2},  {"rsqrt", 2}, {"ex2", 2},
      {"lg2", 2},  {"sin", 2},  {"cos", 2},   {"tanh", 2},  {"mad", 4},
      {"fma", 4},  {"sad", 4},  {"bfe", 4},   {"shf", 4},   {"prmt", 4},
      {"dp2a", 4}, {"dp4a", 4}, {"lop3", 5},  {"bfi", 5}};
  auto known = kCounts.find(base());
  size_t expected = known == kCounts.end() ? 3 : known->second;
  // Pairs are converted from two operands.
  if (base() == "cvt" && statement.opcode.find("x2.") != std::string::npos)
    expected = 3;
  if (operandCount() == expected)
    return true;
  fail("it has " + std::to_string(operandCount()) + " operands, where " +
       std::to_string(expected) + " are known");
  return false;
}

Decoder::Scope *Decoder::makeScope(Scope *parent) {
  scopes.push_back(std::make_unique<Scope>());
  scopes.back()->parent = parent;
  return scopes.back().get();
}

uint32_t Decoder::constant(uint64_t value) {
  auto [it, isNew] = constants.try_emplace(value, program->rows);
  if (isNew)
    program->constants.push_back({program->rows++, value});
  return it->second;
}

void Decoder::watch(unsigned bytes) {
  program->granule = std::min(program->granule, std::max(bytes, 1u));
}

// Registers are declared as %r<5> or by their names.
bool Decoder::declareRegisters(std::string_view text) {
  size_t end = text.find_first_of(" \t\n");
  bool isPredicate = text.substr(0, end) == ".pred";
  if (end == text.npos || sizeOfType(text.substr(1, end - 1)) == 0 ||
      text.substr(0, end) == ".b128")
    return fail("registers of type " + std::string(text.substr(0, end)) +
                " aren't known");
  auto kind = isPredicate ? Symbol::Predicate : Symbol::Register;
  for (const std::string &name : splitList(text.substr(end))) {
    size_t open = name.find('<');
    long long count = 0;
    if (open == name.npos) {
      scope->names[name] = {kind};
      ++registers;
      continue;
    }
    if (!parseInteger(name.substr(open + 1, name.find('>') - open - 1),
                      count) ||
        count < 0 || count > 1000000)
      return fail("the declaration of registers " + name + " isn't understood");
    for (long long i = 0; i < count; ++i)
      scope->names[name.substr(0, open) + std::to_string(i)] = {kind};
    registers += size_t(count);
  }
  return true;
}

bool Decoder::declare(std::string_view text) {
  size_t end = text.find_first_of(" \t\n");
  std::string_view word = text.substr(0, end);
  std::string_view rest = end == text.npos ? "" : trim(text.substr(end));
  if (word == ".reg")
    return declareRegisters(rest);
  if (word == ".pragma")
    return true;
  if (word == ".branchtargets") {
    scope->tables[lastLabel] = splitList(rest);
    return true;
  }
  Variable variable;
  std::string error;
  if (word != ".local" && word != ".param" && word != ".shared")
    return fail("'" + std::string(word) + "' isn't known");
  if (!parseVariable(rest, variable, error))
    return fail(error);
  size_t &size = word == ".shared" ? sharedBytes : program->localBytes;
  size =
      (size + variable.alignment - 1) / variable.alignment * variable.alignment;
  if (word == ".shared")
    scope->names[variable.name] = {Symbol::Shared, kNone, size};
  else
    scope->names[variable.name] = {Symbol::Address, kNone, kLocalWindow + size};
  size += variable.bytes;
  return true;
}

Decoder::Symbol *Decoder::find(std::string_view name) {
  std::string key(name);
  for (Scope *at = scope; at; at = at->parent)
    if (auto it = at->names.find(key); it != at->names.end())
      return &it->second;
  if (auto it = shared.find(key); it != shared.end())
    return &it->second;
  if (auto it = globals.find(key); it != globals.end())
    return &(shared[key] = {Symbol::Address, kNone, it->second});
  for (const Variable &variable : module.variables) {
    if (variable.name != name || variable.space != "shared")
      continue;
    if (variable.isExtern) {
      dynamicAlignment =
          std::max({dynamicAlignment, variable.alignment, size_t(16)});
      return &(shared[key] = {Symbol::ExternShared});
    }
    sharedBytes = (sharedBytes + variable.alignment - 1) / variable.alignment *
                  variable.alignment;
    Symbol symbol = {Symbol::Shared, kNone, sharedBytes};
    sharedBytes += variable.bytes;
    return &(shared[key] = symbol);
  }
  return nullptr;
}

uint32_t Decoder::symbolRow(Symbol &symbol) {
  if (symbol.index != kNone)
    return symbol.index;
  if (symbol.kind == Symbol::Register || symbol.kind == Symbol::ExternShared)
    symbol.index = program->rows++;
  else
    symbol.index = constant(symbol.value);
  if (symbol.kind == Symbol::ExternShared)
    dynamicRows.push_back(symbol.index);
  return symbol.index;
}

uint32_t Decoder::destination(std::string_view name) {
  name = trim(name);
  if (name == "_")
    return 0;
  Symbol *symbol = find(name);
  if (!symbol || symbol->kind != Symbol::Register) {
    fail("'" + std::string(name) + "' isn't a register");
    return 0;
  }
  return symbolRow(*symbol);
}

uint32_t Decoder::specialRow(std::string_view name) {
  static const std::map<std::string_view, Special> kSpecials = {
      {"%tid.x", Special::TidX},
      {"%tid.y", Special::TidY},
      {"%tid.z", Special::TidZ},
      {"%ntid.x", Special::NtidX},
      {"%ntid.y", Special::NtidY},
      {"%ntid.z", Special::NtidZ},
      {"%ctaid.x", Special::CtaidX},
      {"%ctaid.y", Special::CtaidY},
      {"%ctaid.z", Special::CtaidZ},
      {"%nctaid.x", Special::NctaidX},
      {"%nctaid.y", Special::NctaidY},
      {"%nctaid.z", Special::NctaidZ},
      {"%clusterid.x", Special::ClusterId},
      {"%clusterid.y", Special::CtaidY},
      {"%clusterid.z", Special::CtaidZ},
      {"%nclusterid.x", Special::NClusterId},
      {"%nclusterid.y", Special::NctaidY},
      {"%nclusterid.z", Special::NctaidZ},
      {"%laneid", Special::LaneId},
      {"%warpid", Special::WarpId},
      {"%nwarpid", Special::NWarpId},
      {"%lanemask_eq", Special::LaneMaskEq},
      {"%lanemask_le", Special::LaneMaskLe},
      {"%lanemask_lt", Special::LaneMaskLt},
      {"%lanemask_ge", Special::LaneMaskGe},
      {"%lanemask_gt", Special::LaneMaskGt},
      {"%dynamic_smem_size", Special::DynamicShared},
      {"%total_smem_size", Special::TotalShared},
      {"%smid", Special::Zero},
      {"%nsmid", Special::One},
      {"%gridid", Special::Zero},
      {"%cluster_ctaid.x", Special::ClusterRank},
      {"%cluster_ctaid.y", Special::Zero},
      {"%cluster_ctaid.z", Special::Zero},
      {"%cluster_nctaid.x", Special::ClusterSize},
      {"%cluster_nctaid.y", Special::One},
      {"%cluster_nctaid.z", Special::One},
      {"%cluster_ctarank", Special::ClusterRank},
      {"%cluster_nctarank", Special::ClusterSize}};
  auto known = kSpecials.find(name);
  if (known == kSpecials.end())
    return kNone;
  auto [it, isNew] = specials.try_emplace(std::string(name), program->rows);
  if (isNew)
    program->specials.push_back({program->rows++, known->second});
  return it->second;
}

bool Decoder::constantOf(std::string_view text, std::string_view type,
                         uint64_t &value) {
  if (text == "WARP_SZ") {
    value = kLanes;
    return true;
  }
  bool isHexFloat = text.size() > 2 && text[0] == '0' &&
                    std::string_view("fFdD").find(text[1]) != text.npos;
  long long integer = 0;
  if (!isHexFloat && parseInteger(text, integer)) {
    value = uint64_t(integer);
    return true;
  }
  double number;
  if (isHexFloat) {
    if (!parseInteger("0x" + std::string(text.substr(2)), integer))
      return false;
    bool isDouble = text[1] == 'd' || text[1] == 'D';
    value = uint64_t(integer);
    if (isDouble == (type == "f64" || type == "b64"))
      return true;
    number = isDouble ? bitCast<double>(value)
                      : double(bitCast<float>(uint32_t(value)));
  } else {
    std::string copy(text);
    char *end = nullptr;
    number = strtod(copy.c_str(), &end);
    if (copy.empty() || *end)
      return false;
  }
  value = type == "f64" ? bitCast<uint64_t>(number)
                        : bitCast<uint32_t>(float(number));
  return true;
}

uint32_t Decoder::source(std::string_view text, std::string_view type) {
  text = trim(text);
  if (text.empty()) {
    fail("an operand is missing");
    return 0;
  }
  if (uint32_t row = specialRow(text); row != kNone)
    return row;
  Symbol *symbol = find(text);
  if (symbol && symbol->kind == Symbol::Predicate) {
    fail("'" + std::string(text) + "' is a predicate");
    return 0;
  }
  if (symbol) {
    uint32_t row = symbolRow(*symbol);
    uses.resize(program->rows);
    ++uses[row];
    return row;
  }
  uint64_t value = 0;
  if (!constantOf(text, type, value))
    fail("'" + std::string(text) + "' isn't an operand that is known");
  return constant(value);
}

bool Decoder::isPredicate(std::string_view name) {
  Symbol *symbol = find(trim(name));
  return symbol && symbol->kind == Symbol::Predicate;
}

uint32_t Decoder::predicate(std::string_view name, bool *negated) {
  name = trim(name);
  if (!name.empty() && name[0] == '!' && negated) {
    *negated = true;
    name = trim(name.substr(1));
  }
  if (name == "_")
    return 0;
  Symbol *symbol = find(name);
  if (!symbol || symbol->kind != Symbol::Predicate) {
    fail("'" + std::string(name) + "' isn't a predicate");
    return 0;
  }
  if (symbol->index == kNone)
    symbol->index = program->predicates++;
  return symbol->index;
}

bool Decoder::address(std::string_view text, uint32_t &row, int64_t &offset) {
  text = trim(text);
  if (text.size() > 1 && text.front() == '[' && text.back() == ']')
    text = trim(text.substr(1, text.size() - 2));
  offset = 0;
  size_t plus = text.find('+');
  long long value = 0;
  if (plus != text.npos) {
    if (!parseInteger(text.substr(plus + 1), value))
      return !fail("the address " + std::string(text) + " isn't understood");
    offset = value;
    text = trim(text.substr(0, plus));
  }
  row = source(text, "b64");
  return problem.empty();
}

// The elements in braces, or one without.
static std::vector<std::string> elementsOf(std::string_view list) {
  list = trim(list);
  if (!list.empty() && list.front() == '{')
    list = list.substr(1, list.rfind('}') - 1);
  return splitList(list);
}

void Decoder::destinations(std::string_view list) {
  for (const std::string &element : elementsOf(list))
    program->operands.push_back(destination(element));
}

void Decoder::sources(std::string_view list, std::string_view type) {
  for (const std::string &element : elementsOf(list))
    program->operands.push_back(source(element, type));
}

void Decoder::parse(const Item &item) {
  statement = Statement();
  statement.line = item.line;
  std::string_view text = item.text;
  if (text[0] == '@') {
    size_t end = text.find_first_of(" \t\n");
    statement.guard = trim(text.substr(1, end - 1));
    text = end == text.npos ? "" : trim(text.substr(end));
  }
  size_t end = text.find_first_of(" \t\n{");
  statement.opcode = text.substr(0, end);
  statement.operands =
      splitList(end == text.npos ? "" : trim(text.substr(end)));
  for (size_t at = 0; at <= statement.opcode.size();) {
    size_t point =
        std::min(statement.opcode.find('.', at), statement.opcode.size());
    statement.parts.push_back(statement.opcode.substr(at, point - at));
    at = point + 1;
  }
  instruction = Instruction();
  instruction.line = item.line;
  instruction.first = uint32_t(program->operands.size());
  auto [it, isNew] =
      opcodes.try_emplace(statement.opcode, uint32_t(program->opcodes.size()));
  if (isNew)
    program->opcodes.push_back(statement.opcode);
  instruction.opcode = it->second;
}

} // namespace sardonyx::fakecuda
