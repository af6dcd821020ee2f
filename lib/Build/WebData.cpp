//===- WebData.cpp - A model's data as an object of WebAssembly -----------===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// By LLVM, which knows the layout of structs there. Weights are copied several
// times on the way; all of a model fits into four gigabytes.
//
//===----------------------------------------------------------------------===//

#include "WebData.h"
#include "Platform.h"
#include "WriteStream.h"
#include "sardonyx-c/Artifact.h"
#include "sardonyx/Model/LoadArtifact.h"
#include "sardonyx/Objects/Objects.h"
#include "llvm/IR/Constants.h"
#include "llvm/IR/DerivedTypes.h"
#include "llvm/IR/GlobalVariable.h"
#include "llvm/IR/Module.h"

using namespace sardonyx;

namespace {

/// Constants in a module.
class WebDataBuilder {
public:
  WebDataBuilder() : module("sardonyx", context) {}

  llvm::Constant *bytes(llvm::StringRef data, llvm::Align alignment) {
    auto *global = define(
        "data" + std::to_string(count++),
        llvm::ConstantDataArray::getString(context, data, /*AddNull=*/false),
        llvm::GlobalValue::PrivateLinkage);
    global->setAlignment(alignment);
    return global;
  }
  llvm::Constant *text(const std::string &words) {
    return bytes({words.c_str(), words.size() + 1}, llvm::Align(1));
  }
  llvm::Constant *number(uint64_t value) {
    return llvm::ConstantInt::get(llvm::Type::getInt64Ty(context), value);
  }
  llvm::Constant *null() {
    return llvm::ConstantPointerNull::get(
        llvm::PointerType::getUnqual(context));
  }
  /// Something that another object defines.
  llvm::Constant *external(const std::string &name) {
    return new llvm::GlobalVariable(
        module, llvm::Type::getInt8Ty(context), /*isConstant=*/true,
        llvm::GlobalValue::ExternalLinkage, nullptr, name);
  }
  llvm::Constant *function(const std::string &name) {
    auto *pointer = llvm::PointerType::getUnqual(context);
    auto *type = llvm::FunctionType::get(llvm::Type::getVoidTy(context),
                                         {pointer}, /*isVarArg=*/false);
    return llvm::Function::Create(type, llvm::GlobalValue::ExternalLinkage,
                                  name, module);
  }
  llvm::Constant *record(llvm::ArrayRef<llvm::Constant *> fields) {
    return llvm::ConstantStruct::getAnon(context, fields);
  }
  llvm::GlobalVariable *define(const std::string &name, llvm::Constant *value,
                               llvm::GlobalValue::LinkageTypes linkage) {
    return new llvm::GlobalVariable(module, value->getType(),
                                    /*isConstant=*/true, linkage, value, name);
  }

  llvm::LLVMContext context;
  llvm::Module module;

private:
  unsigned count = 0;
};

} // namespace

MaybeError sardonyx::writeWebData(const WebData &data,
                                  const std::string &file) {
  std::string weights;
  weights.reserve(data.weights.size());
  for (const WeightPool::Block &block : data.weights.blocks()) {
    weights.append(block.padding, '\0');
    weights.append(block.bytes);
  }
  WebDataBuilder b;
  const llvm::Align kDescriptionAlign(16), kWeightsAlign(64);
  llvm::Constant *code =
      b.define("sdx_codes",
               b.record({b.text(data.processor), b.text(data.features),
                         b.function(data.main),
                         b.bytes(data.description, kDescriptionAlign),
                         b.number(data.description.size())}),
               llvm::GlobalValue::PrivateLinkage);
  llvm::Constant *magic = llvm::ConstantDataArray::getString(
      b.context, SDX_ARTIFACT_MAGIC, /*AddNull=*/false);
  b.define(kArtifactSymbol,
           b.record({magic, b.external("sdx_artifact_functions"),
                     b.text(data.name), /*threads=*/b.number(1),
                     b.bytes(weights, kWeightsAlign), /*weights_file=*/b.null(),
                     b.number(weights.size()), /*weights_hash=*/b.number(0),
                     code, /*code_count=*/b.number(1), /*devices=*/b.null(),
                     /*device_codes=*/b.null(),
                     /*device_code_count=*/b.number(0)}),
           llvm::GlobalValue::ExternalLinkage);
  TargetOptions target;
  target.triple = kWebTriple;
  auto object = compileData(b.module, target);
  if (!object)
    return Error(ErrorKind::Unsupported,
                 "LLVM makes no file for WebAssembly of the model's data: " +
                     llvm::toString(object.takeError()));
  return writeStream(file, file, [&](llvm::raw_fd_ostream &stream) {
    stream << (*object)->getBuffer();
  });
}
