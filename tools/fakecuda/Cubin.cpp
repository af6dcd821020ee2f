//===- Cubin.cpp - Images that the fake driver runs -----------------------===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "tools/fakecuda/Cubin.h"
#include <cstdlib>
#include <cstring>
#include <elf.h>

using namespace sardonyx;
using namespace sardonyx::fakecuda;

/// Of ELF files for CUDA, and the section that only these have.
static constexpr Elf64_Half kMachine = 190;
static constexpr Elf64_Word kTextSection = 0x7fab0001;
/// In e_flags, beside the compute capability.
static constexpr Elf64_Word kOwn = 0x10000;
static constexpr size_t kTextAt = sizeof(Elf64_Ehdr) + sizeof(Elf64_Shdr);

std::string Cubin::architecture() const {
  return "sm_" + std::to_string(sm) + (isOwn ? "a" : "");
}

bool Cubin::runsOn(int device) const {
  return isOwn ? sm == device : sm / 10 == device / 10 && sm <= device;
}

bool fakecuda::isElf(const char *image) {
  return strncmp(image, ELFMAG, SELFMAG) == 0;
}

bool fakecuda::readCubin(const char *image, Cubin &cubin) {
  Elf64_Ehdr header;
  memcpy(&header, image, sizeof(header));
  if (header.e_machine != kMachine || header.e_shnum != 1 ||
      header.e_shoff != sizeof(header))
    return false;
  Elf64_Shdr section;
  memcpy(&section, image + sizeof(header), sizeof(section));
  if (section.sh_type != kTextSection || section.sh_offset != kTextAt ||
      section.sh_size == 0 || image[kTextAt + section.sh_size - 1] != 0)
    return false;
  cubin.sm = static_cast<int>(header.e_flags & (kOwn - 1));
  cubin.isOwn = (header.e_flags & kOwn) != 0;
  cubin.text = image + kTextAt;
  return true;
}

std::string fakecuda::makeCubin(const std::string &ptx, int sm, bool isOwn) {
  Elf64_Ehdr header = {};
  memcpy(header.e_ident, ELFMAG, SELFMAG);
  header.e_ident[EI_CLASS] = ELFCLASS64;
  header.e_ident[EI_DATA] = ELFDATA2LSB;
  header.e_ident[EI_VERSION] = EV_CURRENT;
  header.e_type = ET_EXEC;
  header.e_machine = kMachine;
  header.e_version = EV_CURRENT;
  header.e_shoff = sizeof(header);
  header.e_flags = static_cast<Elf64_Word>(sm) | (isOwn ? kOwn : 0);
  header.e_ehsize = sizeof(header);
  header.e_shentsize = sizeof(Elf64_Shdr);
  header.e_shnum = 1;
  Elf64_Shdr section = {};
  section.sh_type = kTextSection;
  section.sh_offset = kTextAt;
  section.sh_size = ptx.size() + 1;
  std::string file(reinterpret_cast<const char *>(&header), sizeof(header));
  file.append(reinterpret_cast<const char *>(&section), sizeof(section));
  return file.append(ptx.c_str(), ptx.size() + 1);
}

std::string fakecuda::checkText(const char *ptx, int sm) {
  if (!strstr(ptx, ".version"))
    return "PTX without a .version";
  const char *at = strstr(ptx, ".target");
  at = at ? strstr(at, "sm_") : nullptr;
  if (!at)
    return "";
  char *end = nullptr;
  long wanted = strtol(at + 3, &end, 10);
  bool isExact = *end == 'a';
  if (isExact ? wanted == sm : wanted <= sm)
    return "";
  return "the PTX is for sm_" + std::to_string(wanted) + (isExact ? "a" : "") +
         ", the device is sm_" + std::to_string(sm);
}
