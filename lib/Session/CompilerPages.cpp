//===- CompilerPages.cpp - Memory that only a compiler needs --------------===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "CompilerPages.h"
#include "CompileStoppably.h"

#include "sardonyx/Runtime/ForkSafeMutex.h"

#include <cstdint>
#include <cstring>
#include <link.h>
#include <mutex>
#include <sys/mman.h>
#include <unistd.h>
#include <utility>
#include <vector>

using namespace sardonyx;

namespace {

/// The parts of LLVM's and MLIR's libraries that nothing has written to:
/// relocated data would not come back.
struct CompilerPages {
  runtime::ForkSafeMutex mutex;
  bool areKnown = false;
  std::vector<std::pair<void *, size_t>> parts;

  void find();
};

} // namespace

static bool isCompiler(const char *path) {
  const char *slash = std::strrchr(path, '/');
  const char *name = slash ? slash + 1 : path;
  for (const char *prefix : {"libLLVM", "libMLIR"})
    if (std::strncmp(name, prefix, std::strlen(prefix)) == 0)
      return true;
  return false;
}

static int addLibrary(dl_phdr_info *info, size_t, void *pages) {
  if (!isCompiler(info->dlpi_name))
    return 0;
  const uintptr_t page = sysconf(_SC_PAGESIZE);
  for (int i = 0; i < info->dlpi_phnum; ++i) {
    const ElfW(Phdr) &part = info->dlpi_phdr[i];
    if (part.p_type != PT_LOAD || (part.p_flags & PF_W))
      continue;
    uintptr_t start = info->dlpi_addr + part.p_vaddr;
    uintptr_t begin = (start + page - 1) & ~(page - 1),
              end = (start + part.p_filesz) & ~(page - 1);
    if (begin < end)
      static_cast<CompilerPages *>(pages)->parts.emplace_back(
          reinterpret_cast<void *>(begin), end - begin);
  }
  return 0;
}

/// Once, and never while the process forks: a child whose parent holds the lock
/// of the list of libraries meanwhile would wait for it for ever.
void CompilerPages::find() {
  std::lock_guard<runtime::ForkSafeMutex> lock(mutex);
  if (!std::exchange(areKnown, true))
    dl_iterate_phdr(addLibrary, this);
}

/// Made while the program loads, as its mutex must be. Never destroyed: other
/// threads may outlive the statics.
static CompilerPages &pages = *new CompilerPages;

void sardonyx::forgetCompilerPages() {
  if (!LoadScope::isOnly())
    return; // another thread would read them again at once
  pages.find();
  for (auto [begin, size] : pages.parts)
    (void)madvise(begin, size, MADV_DONTNEED);
}
