//===- ImporterFuzzer.cpp - Hostile models through the importer -----------===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "ModelMutator.h"
#include "mlir/IR/Diagnostics.h"
#include "mlir/IR/MLIRContext.h"
#include "sardonyx/Importer/Importer.h"
#include <cstring>

using namespace mlir;
using namespace sardonyx;

extern "C" size_t LLVMFuzzerMutate(uint8_t *data, size_t size, size_t maxSize);

/// A model is imported or refused with a sentence; nothing else.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  static const DialectRegistry *registry = [] {
    auto *result = new DialectRegistry;
    registerImporterDialects(*result);
    return result;
  }();
  MLIRContext context(*registry, MLIRContext::Threading::DISABLED);
  bool told = false;
  context.getDiagEngine().registerHandler([&](Diagnostic &diagnostic) {
    told |= diagnostic.getSeverity() == DiagnosticSeverity::Error;
    return success();
  });
  ImportOptions options;
  options.maxExpandedNodes = 2000;
  auto module = importOnnxBytes(
      StringRef(reinterpret_cast<const char *>(data), size), context, options);
  if (!module && !told)
    __builtin_trap(); // refused without a word
  return 0;
}

static size_t write(const onnx::ModelProto &model, uint8_t *data,
                    size_t maxSize) {
  size_t size = model.ByteSizeLong();
  if (size > maxSize)
    return 0;
  model.SerializeToArray(data, size);
  return size;
}

extern "C" size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size,
                                          size_t maxSize, unsigned seed) {
  onnx::ModelProto model;
  if (seed % 16 == 0 || !model.ParseFromArray(data, size))
    return LLVMFuzzerMutate(data, size, maxSize);
  fuzz::ModelMutator(seed).mutate(model);
  size_t written = write(model, data, maxSize);
  return written ? written : LLVMFuzzerMutate(data, size, maxSize);
}

extern "C" size_t LLVMFuzzerCustomCrossOver(const uint8_t *data, size_t size,
                                            const uint8_t *other,
                                            size_t otherSize, uint8_t *out,
                                            size_t maxOut, unsigned seed) {
  onnx::ModelProto model, second;
  if (model.ParseFromArray(data, size) &&
      second.ParseFromArray(other, otherSize))
    fuzz::ModelMutator(seed).mix(model, second);
  return write(model, out, maxOut);
}
