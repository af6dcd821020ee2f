//===- DiagnosticLog.cpp - What a compilation says went wrong -------------===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "lib/Session/Compile/DiagnosticLog.h"
#include "dialects/ONNX/ONNX.h"
#include "mlir/IR/Location.h"
#include "sardonyx/NodeName.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringSet.h"

using namespace sardonyx;
using namespace mlir;

/// Where in a text file, if it is one.
static std::string placeInFile(Location location) {
  std::string place;
  location->walk([&](Location part) {
    auto file = dyn_cast<FileLineColLoc>(part);
    if (!file)
      return WalkResult::advance();
    // A model in memory has no place.
    if (file.getFilename().getValue().starts_with("<"))
      return WalkResult::interrupt();
    place = file.getFilename().str();
    if (file.getLine())
      place += ":" + std::to_string(file.getLine());
    return WalkResult::interrupt();
  });
  return place;
}

static bool containsAny(StringRef text, ArrayRef<StringRef> parts) {
  return llvm::any_of(parts,
                      [&](StringRef part) { return text.contains(part); });
}

/// Names of things that no model holds, outside of quotes.
static bool namesInternals(StringRef text) {
  std::string outside;
  bool quoted = false;
  for (auto [i, c] : llvm::enumerate(text)) {
    bool apostrophe = !quoted && i > 0 && llvm::isAlnum(text[i - 1]);
    if (c == '\'' && !apostrophe)
      quoted = !quoted;
    else if (!quoted)
      outside += c;
  }
  return containsAny(outside,
                     {"sdx.", "scf.", "linalg", "memref", "tensor.", "arith.",
                      "llvm.", "builtin.", "bufferization.", "affine.", "math.",
                      "vector.", "func.", "cf.", "unrealized", "SSA",
                      "dominate", "internal error"});
}

static bool saysUnsupported(StringRef text) {
  return containsAny(text, {"no lowering", "not supported", "makes more than",
                            "larger than any memory", "impossible size"});
}

//===----------------------------------------------------------------------===//
// Types as ONNX writes them
//===----------------------------------------------------------------------===//

static constexpr std::pair<StringLiteral, StringLiteral> elementNames[] = {
    {"f32", "float"},
    {"f64", "double"},
    {"f16", "float16"},
    {"bf16", "bfloat16"},
    {"i1", "bool"},
    {"complex<f32>", "complex64"},
    {"complex<f64>", "complex128"},
    {"!onnx.string", "string"},
    {"!onnx.unknown", "unknown"},
    {"f8E4M3FN", "float8e4m3fn"},
    {"f8E4M3FNUZ", "float8e4m3fnuz"},
    {"f8E5M2", "float8e5m2"},
    {"f8E5M2FNUZ", "float8e5m2fnuz"},
    {"f8E8M0FNU", "float8e8m0"},
    {"f4E2M1FN", "float4e2m1"},
    {"f6E2M3FN", "float6e2m3"},
    {"f6E3M2FN", "float6e3m2"},
    {"i2", "int2"},
    {"i4", "int4"},
    {"i8", "int8"},
    {"i16", "int16"},
    {"i32", "int32"},
    {"i64", "int64"},
    {"ui2", "uint2"},
    {"ui4", "uint4"},
    {"ui8", "uint8"},
    {"ui16", "uint16"},
    {"ui32", "uint32"},
    {"ui64", "uint64"},
};

static StringRef elementName(StringRef type) {
  for (const auto &[spelling, name] : elementNames)
    if (spelling == type)
      return name;
  return type;
}

static std::string inOnnxTerms(StringRef text);

/// `2x?xf32` as `float[2,?]`, `*xf32` as `float`.
static std::string describeTensor(StringRef body) {
  std::string sizes;
  while (true) {
    auto [size, rest] = body.split('x');
    bool isSize = size == "?" || size == "*" ||
                  (!size.empty() && llvm::all_of(size, llvm::isDigit));
    if (!isSize || rest.empty())
      break;
    if (size != "*")
      sizes += (sizes.empty() ? "" : ",") + size.str();
    body = rest;
  }
  std::string name = elementName(body).str();
  return sizes.empty() ? name : name + "[" + sizes + "]";
}

/// The text between the bracket that `text` begins behind and its end, which
/// are taken off.
static StringRef takeBracketed(StringRef &text) {
  size_t end = 0;
  for (int depth = 1; end < text.size(); ++end) {
    depth += text[end] == '<' ? 1 : text[end] == '>' ? -1 : 0;
    if (depth == 0)
      break;
  }
  StringRef inner = text.take_front(end);
  text = text.drop_front(std::min(end + 1, text.size()));
  return inner;
}

/// Replaces types and names of elements by what ONNX calls them. What stands in
/// quotes by itself is a name of the model's.
static std::string inOnnxTerms(StringRef text) {
  std::string result;
  while (!text.empty()) {
    if (text.consume_front("tensor<")) {
      result += describeTensor(takeBracketed(text));
      continue;
    }
    bool wrapped = false;
    for (StringRef kind : {"seq", "opt", "map", "sparse"})
      if (text.starts_with(("!onnx." + kind + "<").str())) {
        text = text.drop_front(kind.size() + strlen("!onnx.<"));
        result += (kind == "opt" ? "optional" : kind).str() + "(" +
                  inOnnxTerms(takeBracketed(text)) + ")";
        wrapped = true;
        break;
      }
    if (wrapped)
      continue;
    size_t end = text.find_first_of(" ,;()'");
    if (end == 0) {
      result += text.front();
      text = text.drop_front();
      continue;
    }
    StringRef word = text.take_front(end);
    // Full stops end sentences and stand in the names of our types.
    StringRef bare = word.rtrim('.');
    bool quoted = !result.empty() && result.back() == '\'';
    result += (quoted ? bare : elementName(bare)).str() +
              word.drop_front(bare.size()).str();
    text = text.drop_front(word.size());
  }
  return result;
}

//===----------------------------------------------------------------------===//
// The log
//===----------------------------------------------------------------------===//

void DiagnosticLog::nameOperators(ModuleOp module) {
  module.walk([&](Operation *op) {
    auto name = dyn_cast<NameLoc>(op->getLoc());
    if (!name || !isa<onnx::ONNXDialect>(op->getDialect()) ||
        isa<onnx::ConstantOp, onnx::CallOp>(op))
      return;
    auto custom = dyn_cast<onnx::CustomOp>(op);
    operators.try_emplace(name.getName().getValue(),
                          custom ? custom.getOpType().str()
                                 : op->getName().stripDialect().str());
  });
}

/// Takes "'onnx.Add' op " off the front; the name of the op, or nothing.
static std::string takeOp(StringRef &text) {
  if (!text.consume_front("'"))
    return "";
  auto [name, rest] = text.split("' op ");
  if (rest.empty() || name.contains(' ') || !name.contains('.')) {
    text = StringRef(text.data() - 1, text.size() + 1);
    return "";
  }
  text = rest;
  return name.str();
}

static std::string describe(StringRef node, StringRef kind) {
  std::string text = "node '" + node.str() + "'";
  return kind.empty() ? text : text + " (" + kind.str() + ")";
}

std::string DiagnosticLog::describeNode(Location location) const {
  std::string node = nodeName(location);
  return node.empty() ? "" : describe(node, operators.lookup(node));
}

void DiagnosticLog::add(Diagnostic &diagnostic) {
  std::string whole = diagnostic.str();
  for (Diagnostic &note : diagnostic.getNotes())
    whole += " (" + note.str() + ")";
  const std::string said = diagnostic.str();
  StringRef text = said;
  std::string op = takeOp(text);
  bool ofOnnx = StringRef(op).starts_with("onnx.");

  ErrorKind kind = ErrorKind::Failed;
  if (stage == Stage::Import ? text.contains("not supported")
                             : stage == Stage::Graph && saysUnsupported(text))
    kind = ErrorKind::Unsupported;
  else if (stage == Stage::Import || (stage == Stage::Graph && ofOnnx))
    kind = ErrorKind::InvalidModel;
  bool internal = kind == ErrorKind::Failed || (!op.empty() && !ofOnnx) ||
                  namesInternals(text);

  std::string node = nodeName(diagnostic.getLocation());
  std::string where = placeInFile(diagnostic.getLocation());
  if (!node.empty()) {
    std::string kindOfNode = ofOnnx && op != "onnx.Custom"
                                 ? op.substr(strlen("onnx."))
                                 : operators.lookup(node);
    where = describe(node, kindOfNode);
  } else if (ofOnnx) {
    where = op.substr(strlen("onnx."));
  }
  // What a person has given for a kernel, and no fault of the compiler.
  if (stage == Stage::Backend && text.starts_with("the plan ")) {
    entries.push_back({ErrorKind::InvalidArgument,
                       node.empty() ? said : where + ": " + said, ""});
    return;
  }
  if (internal) {
    bool known = !node.empty() || ofOnnx;
    entries.push_back({ErrorKind::Unsupported,
                       (known ? where + ": this form of the operator is "
                              : std::string("this form of the model is ")) +
                           "not supported by the compiler yet",
                       placeInFile(diagnostic.getLocation()) + ": " + whole});
    return;
  }
  std::string sentence = inOnnxTerms(text);
  // The importer and the lowerings name the node themselves.
  bool named = text.starts_with("node '") || text.starts_with("no lowering");
  entries.push_back(
      {kind, named || where.empty() ? sentence : where + ": " + sentence, ""});
}

void DiagnosticLog::addWarning(Diagnostic &diagnostic) {
  if (stage == Stage::Import)
    allWarnings.push_back(diagnostic.str());
}

Error DiagnosticLog::toError(const std::string &otherwise) const {
  if (entries.empty())
    return internalError(otherwise);
  // A wrong model may well trip the compiler; that is the lesser news.
  auto rank = [](const Entry &entry) {
    return !entry.detail.empty()                  ? 2
           : entry.kind == ErrorKind::Unsupported ? 1
                                                  : 0;
  };
  int worst = rank(*llvm::min_element(
      entries, [&](auto &a, auto &b) { return rank(a) < rank(b); }));
  std::string text, detail;
  ErrorKind kind = ErrorKind::Unsupported;
  llvm::StringSet<> said;
  for (const Entry &entry : entries) {
    if (rank(entry) != worst)
      continue;
    kind = entry.kind;
    if (!entry.detail.empty() && said.size() < 8)
      detail += (detail.empty() ? "" : "\n") + entry.detail;
    if (said.insert(entry.sentence).second && said.size() <= 8)
      text += (text.empty() ? "" : "\n") + entry.sentence;
  }
  if (said.size() > 8)
    text += "\n... and " + std::to_string(said.size() - 8) + " more";
  return Error(kind, text, detail);
}

std::vector<std::string> DiagnosticLog::sentences() const {
  std::vector<std::string> result;
  for (const Entry &entry : entries)
    result.push_back(Error(entry.kind, entry.sentence).message());
  return result;
}
