//===- OptFuzzer.cpp - Hostile MLIR through the phases --------------------===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// What onnx-opt reads: text of the onnx and sdx dialects. Parsed, verified and
// taken down to kernels. Text of MLIR's own dialects is left alone: their
// parsers trust what they read (linalg.transpose, for one, dies of a
// permutation of large numbers), and no file that a user has is made of them.
//
//===----------------------------------------------------------------------===//

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/Diagnostics.h"
#include "mlir/IR/MLIRContext.h"
#include "mlir/Parser/Parser.h"
#include "mlir/Pass/PassManager.h"
#include "sardonyx/InitAll.h"
#include "sardonyx/Pipelines/Pipelines.h"
#include "llvm/ADT/STLExtras.h"
#include <cstring>
#include <random>

using namespace mlir;
using namespace sardonyx;

extern "C" size_t LLVMFuzzerMutate(uint8_t *data, size_t size, size_t maxSize);

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  static const DialectRegistry *registry = [] {
    auto *result = new DialectRegistry;
    registerAllDialects(*result);
    return result;
  }();
  std::string text(reinterpret_cast<const char *>(data), size);
  static const std::string own[] = {"onnx", "sdx", "func", "builtin", "arith"};
  for (StringRef dialect : registry->getDialectNames())
    if (!llvm::is_contained(own, dialect) &&
        StringRef(text).contains((dialect + ".").str()))
      return -1;
  MLIRContext context(*registry, MLIRContext::Threading::DISABLED);
  context.getDiagEngine().registerHandler(
      [](Diagnostic &) { return success(); });
  auto module = parseSourceString<ModuleOp>(text, ParserConfig(&context));
  if (!module)
    return 0;
  PassManager pm(&context);
  PipelineOptions options;
  for (const PhaseInfo &info : getPhases())
    if (info.phase > Phase::Import && info.phase <= Phase::Kernels)
      info.build(pm, options);
  (void)pm.run(*module);
  return 0;
}

namespace {

/// Changes text by lines and by the words that mean something in it.
class TextMutator {
public:
  explicit TextMutator(unsigned seed) : engine(seed) {}

  std::string mutate(std::string text) {
    switch (engine() % 6) {
    case 0:
      return changeLine(std::move(text));
    case 1:
    case 2:
      return replace(std::move(text), "0123456789",
                     {"0", "1", "-1", "2", "7", "17", "1024", "4294967296",
                      "9223372036854775807"});
    case 3:
      return replaceWord(std::move(text));
    default:
      return swapWords(std::move(text));
    }
  }

private:
  size_t below(size_t end) { return end ? engine() % end : 0; }

  std::string changeLine(std::string text) {
    size_t begin = text.rfind('\n', below(text.size() + 1));
    begin = begin == std::string::npos ? 0 : begin + 1;
    size_t end = text.find('\n', begin);
    end = end == std::string::npos ? text.size() : end + 1;
    std::string line = text.substr(begin, end - begin);
    if (below(2))
      return text.erase(begin, end - begin);
    return text.insert(begin, line);
  }

  /// A run of `set` at some place becomes one of `with`.
  std::string replace(std::string text, const char *set,
                      std::vector<const char *> with) {
    size_t begin = text.find_first_of(set, below(text.size() + 1));
    if (begin == std::string::npos)
      return text;
    size_t end = text.find_first_not_of(set, begin);
    end = end == std::string::npos ? text.size() : end;
    return text.replace(begin, end - begin, with[below(with.size())]);
  }

  std::string replaceWord(std::string text) {
    static const char *const words[][2] = {{"f32", "f16"},
                                           {"f32", "i64"},
                                           {"i64", "i32"},
                                           {"f32", "bf16"},
                                           {"x", "x0x"},
                                           {"?", "3"},
                                           {"3", "?"},
                                           {"4x", "?x"},
                                           {"i1", "ui8"},
                                           {"= 1", "= -1"},
                                           {"si", "ui"},
                                           {"tensor<", "tensor<?x"},
                                           {"tensor<4x", "tensor<"},
                                           {"axis", "axes"},
                                           {"dense<", "dense<-"}};
    const auto &pair = words[below(std::size(words))];
    size_t at = text.find(pair[0], below(text.size() + 1));
    if (at == std::string::npos)
      return text;
    return text.replace(at, strlen(pair[0]), pair[1]);
  }

  /// One word takes another's place: operands, types, names of operations.
  std::string swapWords(std::string text) {
    auto word = [&](size_t &begin, size_t &end) {
      static const char *const letters =
          "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
          "0123456789_.%@<>?!";
      begin = text.find_first_of(letters, below(text.size() + 1));
      if (begin == std::string::npos)
        return false;
      end = text.find_first_not_of(letters, begin);
      end = end == std::string::npos ? text.size() : end;
      return true;
    };
    size_t a, b, c, d;
    if (!word(a, b) || !word(c, d))
      return text;
    return text.replace(a, b - a, text.substr(c, d - c));
  }

  std::mt19937 engine;
};

} // namespace

extern "C" size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size,
                                          size_t maxSize, unsigned seed) {
  std::string text(reinterpret_cast<const char *>(data), size);
  TextMutator mutator(seed);
  for (unsigned count = 1 + seed % 3; count--;)
    text = mutator.mutate(std::move(text));
  if (seed % 32 == 0 || text.empty() || text.size() > maxSize)
    return LLVMFuzzerMutate(data, size, maxSize);
  memcpy(data, text.data(), text.size());
  return text.size();
}
