//===- OpenCompiler.cpp - The compiler's libraries ------------------------===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "OpenCompiler.h"
#include "lib/Session/Compile/LibraryPages.h"
#include "sardonyx/Model/FileMap.h"

#include <algorithm>
#include <cstring>
#include <dlfcn.h>
#include <elf.h>

using namespace sardonyx;

namespace {

/// What the dynamic section of a shared library says of others.
class Needs {
public:
  explicit Needs(std::string_view file);
  std::vector<std::string> names;
  std::string runpath;

private:
  template <typename T> bool read(uint64_t offset, T &to) const {
    if (offset > file.size() || file.size() - offset < sizeof(T))
      return false;
    memcpy(&to, file.data() + offset, sizeof(T));
    return true;
  }
  std::string text(uint64_t offset) const {
    if (offset >= file.size())
      return "";
    std::string_view rest = file.substr(offset);
    return std::string(rest.substr(0, rest.find('\0')));
  }

  std::string_view file;
};

} // namespace

Needs::Needs(std::string_view file) : file(file) {
  ElfW(Ehdr) header;
  if (!read(0, header) || memcmp(header.e_ident, ELFMAG, SELFMAG) != 0)
    return;
  std::vector<ElfW(Phdr)> parts(header.e_phnum);
  for (size_t i = 0; i < parts.size(); ++i)
    if (!read(header.e_phoff + i * sizeof(parts[i]), parts[i]))
      return;
  auto offsetOf = [&](uint64_t address) -> uint64_t {
    for (const ElfW(Phdr) &part : parts)
      if (part.p_type == PT_LOAD && address - part.p_vaddr < part.p_filesz)
        return address - part.p_vaddr + part.p_offset;
    return file.size();
  };
  uint64_t strings = file.size(), path = 0;
  std::vector<uint64_t> needed;
  for (const ElfW(Phdr) &part : parts) {
    ElfW(Dyn) entry;
    if (part.p_type == PT_DYNAMIC)
      for (uint64_t at = part.p_offset; read(at, entry); at += sizeof(entry)) {
        if (entry.d_tag == DT_NULL)
          break;
        if (entry.d_tag == DT_NEEDED)
          needed.push_back(entry.d_un.d_val);
        else if (entry.d_tag == DT_RUNPATH)
          path = entry.d_un.d_val;
        else if (entry.d_tag == DT_STRTAB)
          strings = offsetOf(entry.d_un.d_ptr);
      }
  }
  for (uint64_t name : needed)
    names.push_back(text(strings + name));
  if (path)
    runpath = text(strings + path);
}

void sardonyx::openCompilerLibraries(const std::string &path) {
  auto file = FileMap::open(path);
  if (!file)
    return;
  Needs needs((*file)->bytes());
  // LLVM's, which MLIR's needs, comes first.
  std::sort(needs.names.begin(), needs.names.end());
  for (const std::string &name : needs.names) {
    if (name.rfind("libLLVM", 0) != 0 && name.rfind("libMLIR", 0) != 0)
      continue;
    void *library = nullptr;
    for (size_t begin = 0; !library && begin < needs.runpath.size();) {
      size_t end =
          std::min(needs.runpath.find(':', begin), needs.runpath.size());
      if (end > begin)
        library = dlopen(
            (needs.runpath.substr(begin, end - begin) + "/" + name).c_str(),
            RTLD_NOW | RTLD_LOCAL);
      begin = end + 1;
    }
    if (!library)
      library = dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL);
    link_map *map = nullptr;
    if (library && dlinfo(library, RTLD_DI_LINKMAP, &map) == 0 && map)
      forgetLibraryPages(findLibraryPages(map->l_ld));
  }
}
