//===- ElfObject.cpp - Data as an object to link --------------------------===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "ElfObject.h"
#include "WriteStream.h"
#include "llvm/BinaryFormat/ELF.h"

using namespace sardonyx;
using namespace llvm::ELF;

/// So many bytes follow to the next multiple of `alignment`.
static uint64_t paddingTo(uint64_t offset, uint64_t alignment) {
  return (alignment - offset % alignment) % alignment;
}

size_t ElfObject::addSection(llvm::StringRef name, uint64_t flags,
                             uint64_t alignment) {
  Section section;
  section.name = name.str();
  section.flags = flags;
  section.alignment = alignment;
  sections.push_back(std::move(section));
  return sections.size() - 1;
}

uint64_t ElfObject::append(size_t number, std::string_view bytes,
                           uint64_t alignment) {
  Section &section = sections[number];
  std::string piece(paddingTo(section.size, alignment), '\0');
  const uint64_t offset = section.size + piece.size();
  piece += bytes;
  section.size += piece.size();
  section.pieces.push_back({std::move(piece), {}});
  return offset;
}

void ElfObject::appendBorrowed(size_t number, std::string_view bytes) {
  Section &section = sections[number];
  section.size += bytes.size();
  section.pieces.push_back({"", bytes});
}

size_t ElfObject::symbolNamed(llvm::StringRef name) {
  for (size_t i = 0; i < symbols.size(); ++i)
    if (symbols[i].name == name)
      return i;
  symbols.push_back({name.str(), 0, 0, 0, false, false});
  return symbols.size() - 1;
}

void ElfObject::define(llvm::StringRef name, size_t section, uint64_t offset,
                       uint64_t size, bool isPublic) {
  symbols[symbolNamed(name)] = {name.str(), section, offset,
                                size,       true,    isPublic};
}

void ElfObject::point(size_t section, uint64_t offset, llvm::StringRef symbol) {
  pointers.push_back({section, offset, symbolNamed(symbol)});
}

namespace {

/// The parts of the file that follow the sections of data, and their headers.
class Layout {
public:
  Layout() { headers.push_back({}); }

  uint32_t addName(llvm::StringRef name) { return addText(names, name); }
  static uint32_t addText(std::string &table, llvm::StringRef text) {
    auto offset = static_cast<uint32_t>(table.size());
    table += text;
    table += '\0';
    return offset;
  }

  /// Places a section of `size` bytes behind the last.
  Elf64_Shdr &place(llvm::StringRef name, uint32_t type, uint64_t flags,
                    uint64_t alignment, uint64_t size) {
    end += paddingTo(end, alignment);
    Elf64_Shdr header = {};
    header.sh_name = addName(name);
    header.sh_type = type;
    header.sh_flags = flags;
    header.sh_offset = end;
    header.sh_size = size;
    header.sh_addralign = alignment;
    end += size;
    headers.push_back(header);
    return headers.back();
  }

  std::vector<Elf64_Shdr> headers;
  std::string names = std::string(1, '\0');
  uint64_t end = sizeof(Elf64_Ehdr);
};

template <typename T> std::string bytesOf(const std::vector<T> &list) {
  return std::string(reinterpret_cast<const char *>(list.data()),
                     list.size() * sizeof(T));
}

} // namespace

MaybeError ElfObject::write(const std::string &path) const {
  // Relocations, symbols and their names.
  const uint32_t pointerType =
      machine == EM_X86_64 ? R_X86_64_64 : R_AARCH64_ABS64;
  std::vector<std::vector<Elf64_Rela>> relocations(sections.size());
  for (const Pointer &pointer : pointers) {
    Elf64_Rela entry = {};
    entry.r_offset = pointer.offset;
    entry.setSymbolAndType(static_cast<uint32_t>(pointer.symbol + 1),
                           pointerType);
    relocations[pointer.section].push_back(entry);
  }
  std::string symbolNames(1, '\0');
  std::vector<Elf64_Sym> table(1, Elf64_Sym{});
  for (const Symbol &symbol : symbols) {
    Elf64_Sym entry = {};
    entry.st_name = Layout::addText(symbolNames, symbol.name);
    entry.setBindingAndType(STB_GLOBAL,
                            symbol.isDefined ? STT_OBJECT : STT_NOTYPE);
    entry.st_other = symbol.isPublic ? STV_DEFAULT : STV_HIDDEN;
    entry.st_shndx =
        symbol.isDefined ? static_cast<uint16_t>(symbol.section + 1) : 0;
    entry.st_value = symbol.offset;
    entry.st_size = symbol.size;
    table.push_back(entry);
  }

  Layout layout;
  for (const Section &section : sections)
    layout.place(section.name, SHT_PROGBITS, section.flags, section.alignment,
                 section.size);
  std::vector<std::string> rest; // in the order of their headers
  const auto symbolTable = static_cast<uint32_t>(
      1 + sections.size() + llvm::count_if(relocations, [](const auto &list) {
        return !list.empty();
      }));
  for (size_t i = 0; i < sections.size(); ++i) {
    if (relocations[i].empty())
      continue;
    rest.push_back(bytesOf(relocations[i]));
    Elf64_Shdr &header = layout.place(".rela" + sections[i].name, SHT_RELA,
                                      SHF_INFO_LINK, 8, rest.back().size());
    header.sh_link = symbolTable;
    header.sh_info = static_cast<uint32_t>(i + 1);
    header.sh_entsize = sizeof(Elf64_Rela);
  }
  rest.push_back(bytesOf(table));
  Elf64_Shdr &header =
      layout.place(".symtab", SHT_SYMTAB, 0, 8, rest.back().size());
  header.sh_link = symbolTable + 1;
  header.sh_info = 1; // none is local
  header.sh_entsize = sizeof(Elf64_Sym);
  rest.push_back(symbolNames);
  layout.place(".strtab", SHT_STRTAB, 0, 1, rest.back().size());
  layout.place(".note.GNU-stack", SHT_PROGBITS, 0, 1, 0);
  rest.push_back("");
  uint32_t nameOfNames = layout.addName(".shstrtab");
  rest.push_back(layout.names);
  layout.place("", SHT_STRTAB, 0, 1, layout.names.size()).sh_name = nameOfNames;
  rest.back().resize(layout.headers.back().sh_size, '\0');

  Elf64_Ehdr elf = {};
  memcpy(elf.e_ident, ElfMagic, 4);
  elf.e_ident[EI_CLASS] = ELFCLASS64;
  elf.e_ident[EI_DATA] = ELFDATA2LSB;
  elf.e_ident[EI_VERSION] = EV_CURRENT;
  elf.e_type = ET_REL;
  elf.e_machine = machine;
  elf.e_version = EV_CURRENT;
  elf.e_ehsize = sizeof(Elf64_Ehdr);
  elf.e_shentsize = sizeof(Elf64_Shdr);
  elf.e_shnum = static_cast<uint16_t>(layout.headers.size());
  elf.e_shstrndx = static_cast<uint16_t>(layout.headers.size() - 1);
  elf.e_shoff = layout.end + paddingTo(layout.end, 8);

  return writeStream(path, path, [&](llvm::raw_fd_ostream &file) {
    auto padTo = [&](uint64_t offset) {
      file.write_zeros(offset - file.tell());
    };
    file.write(reinterpret_cast<const char *>(&elf), sizeof(elf));
    for (size_t i = 0; i < sections.size(); ++i) {
      padTo(layout.headers[i + 1].sh_offset);
      for (const auto &[own, borrowed] : sections[i].pieces) {
        file.write(own.data(), own.size());
        file.write(borrowed.data(), borrowed.size());
      }
    }
    for (size_t i = 0; i < rest.size(); ++i) {
      padTo(layout.headers[1 + sections.size() + i].sh_offset);
      file << rest[i];
    }
    padTo(elf.e_shoff);
    file << bytesOf(layout.headers);
  });
}
