//===- Linker.cpp - Compiled objects in this process ----------------------===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "lib/Session/Compile/Linker.h"
#include "sardonyx/Runtime/Symbols.h"
#include "llvm/ExecutionEngine/Orc/AbsoluteSymbols.h"
#include "llvm/ExecutionEngine/Orc/Core.h"
#include "llvm/ExecutionEngine/Orc/ExecutionUtils.h"
#include "llvm/ExecutionEngine/Orc/ObjectLinkingLayer.h"
#include "llvm/ExecutionEngine/Orc/SelfExecutorProcessControl.h"
#include "llvm/Support/MemoryBuffer.h"

#include <algorithm>
#include <cstdio>
#include <map>
#include <unistd.h>

using namespace sardonyx;
using namespace llvm::orc;

/// No LLJIT: there is nothing to compile, and a session should start in well
/// under a millisecond.
struct LinkedCode::Jit {
  explicit Jit(std::unique_ptr<ExecutorProcessControl> control)
      : session(std::move(control)), linker(session) {}
  ~Jit() {
    if (llvm::Error error = session.endSession())
      llvm::consumeError(std::move(error));
  }
  ExecutionSession session;
  ObjectLinkingLayer linker;
};

namespace {

/// Writes where each function of the linked objects is, in the form that `perf`
/// reads for code that lies in no file.
class PerfMapWriter : public ObjectLinkingLayer::Plugin {
public:
  void modifyPassConfig(MaterializationResponsibility &,
                        llvm::jitlink::LinkGraph &,
                        llvm::jitlink::PassConfiguration &config) override {
    config.PostFixupPasses.push_back([](llvm::jitlink::LinkGraph &graph) {
      std::string path = "/tmp/perf-" + std::to_string(getpid()) + ".map";
      FILE *file = fopen(path.c_str(), "ae");
      if (!file)
        return llvm::Error::success();
      // Loop bodies have no names: they count as the kernel before them.
      std::map<uint64_t, std::string> names;
      uint64_t end = 0;
      for (auto *symbol : graph.defined_symbols())
        if (symbol->hasName() && symbol->isCallable()) {
          names[symbol->getAddress().getValue()] = (*symbol->getName()).str();
          end = std::max(end, symbol->getBlock().getRange().End.getValue());
        }
      for (auto it = names.begin(); it != names.end(); ++it) {
        auto next = std::next(it);
        uint64_t size = (next == names.end() ? end : next->first) - it->first;
        fprintf(file, "%llx %llx sdx:%s\n",
                static_cast<unsigned long long>(it->first),
                static_cast<unsigned long long>(size), it->second.c_str());
      }
      fclose(file);
      return llvm::Error::success();
    });
  }
  llvm::Error notifyFailed(MaterializationResponsibility &) override {
    return llvm::Error::success();
  }
  llvm::Error notifyRemovingResources(JITDylib &, ResourceKey) override {
    return llvm::Error::success();
  }
  void notifyTransferringResources(JITDylib &, ResourceKey,
                                   ResourceKey) override {}
};

} // namespace

LinkedCode::LinkedCode() = default;
LinkedCode::~LinkedCode() = default;

static Error failure(std::string what, llvm::Error error) {
  return Error(ErrorKind::Failed,
               what + ": " + llvm::toString(std::move(error)));
}

/// The runtime's functions, for all sessions.
static SymbolMap runtimeSymbols(ExecutionSession &session) {
  size_t count = 0;
  const runtime::Symbol *table = runtime::symbols(count);
  SymbolMap map;
  for (size_t i = 0; i < count; ++i)
    map[session.intern(table[i].name)] = {
        ExecutorAddr::fromPtr(table[i].address),
        llvm::JITSymbolFlags::Exported | llvm::JITSymbolFlags::Callable};
  return map;
}

Expected<std::unique_ptr<LinkedCode>>
LinkedCode::link(const std::vector<std::string> &objects, bool needsMain,
                 bool needsInit, bool perfMap, bool callsProcess) {
  auto control = SelfExecutorProcessControl::Create();
  if (!control)
    return failure("cannot set up the linker", control.takeError());
  std::unique_ptr<LinkedCode> code(new LinkedCode);
  code->jit = std::make_unique<Jit>(std::move(*control));
  Jit &jit = *code->jit;
  if (perfMap)
    jit.linker.addPlugin(std::make_shared<PerfMapWriter>());
  std::string reported;
  jit.session.setErrorReporter([&](llvm::Error error) {
    reported +=
        (reported.empty() ? "" : "; ") + llvm::toString(std::move(error));
  });
  auto linkFailure = [&](llvm::Error error) {
    std::string text = llvm::toString(std::move(error));
    if (!reported.empty())
      text += "; " + reported;
    return Error(ErrorKind::Failed, "cannot link the compiled model: " + text);
  };

  JITDylib &dylib = jit.session.createBareJITDylib("model");
  if (llvm::Error error =
          dylib.define(absoluteSymbols(runtimeSymbols(jit.session))))
    return linkFailure(std::move(error));
  if (callsProcess) {
    auto process = DynamicLibrarySearchGenerator::GetForCurrentProcess('\0');
    if (!process)
      return linkFailure(process.takeError());
    dylib.addGenerator(std::move(*process));
  }
  for (size_t i = 0; i < objects.size(); ++i)
    if (llvm::Error error = jit.linker.add(
            dylib, llvm::MemoryBuffer::getMemBufferCopy(
                       objects[i], "kernels" + std::to_string(i))))
      return linkFailure(std::move(error));

  auto find = [&](llvm::StringRef name, sdx_entry_point &entry) -> MaybeError {
    auto symbol = jit.session.lookup({&dylib}, name);
    if (!symbol)
      return linkFailure(symbol.takeError());
    entry = symbol->getAddress().toPtr<sdx_entry_point>();
    return std::nullopt;
  };
  if (needsMain)
    if (MaybeError error = find("sdx_main", code->main))
      return *error;
  if (needsInit)
    if (MaybeError error = find("sdx_init", code->init))
      return *error;
  // Later reports concern nobody.
  jit.session.setErrorReporter(
      [](llvm::Error error) { llvm::consumeError(std::move(error)); });
  return code;
}
