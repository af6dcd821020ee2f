//===- ElfObject.h - Data as an object to link ------------------*- C++ -*-===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef SARDONYX_LIB_BUILD_ELFOBJECT_H
#define SARDONYX_LIB_BUILD_ELFOBJECT_H

#include "sardonyx/Model/Error.h"
#include "llvm/ADT/StringRef.h"
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace sardonyx {

/// A relocatable ELF object for a processor with 64 bits, little endian, that
/// holds data and pointers into it, made without a compiler.
class ElfObject {
public:
  /// `machine`: EM_X86_64 or EM_AARCH64.
  explicit ElfObject(uint16_t machine) : machine(machine) {}

  /// Adds a section of SHT_PROGBITS and gives its number. `flags` are of SHF_.
  size_t addSection(llvm::StringRef name, uint64_t flags, uint64_t alignment);
  /// Appends bytes to a section, which holds a copy, and gives their place.
  uint64_t append(size_t section, std::string_view bytes,
                  uint64_t alignment = 1);
  /// Appends bytes that the caller keeps until write().
  void appendBorrowed(size_t section, std::string_view bytes);
  /// Gives a place a name that other objects see, the linked file's users only
  /// where `isPublic`.
  void define(llvm::StringRef name, size_t section, uint64_t offset,
              uint64_t size, bool isPublic);
  /// Puts the address of `symbol`, defined here or elsewhere, at a place.
  void point(size_t section, uint64_t offset, llvm::StringRef symbol);

  MaybeError write(const std::string &path) const;

private:
  struct Section {
    std::string name;
    uint64_t flags, alignment, size = 0;
    /// What append() took, a piece for each call.
    std::vector<std::pair<std::string, std::string_view>> pieces;
  };
  struct Symbol {
    std::string name;
    size_t section;
    uint64_t offset, size;
    bool isDefined, isPublic;
  };
  struct Pointer {
    size_t section;
    uint64_t offset;
    size_t symbol;
  };
  size_t symbolNamed(llvm::StringRef name);

  uint16_t machine;
  std::vector<Section> sections;
  std::vector<Symbol> symbols;
  std::vector<Pointer> pointers;
};

} // namespace sardonyx

#endif // SARDONYX_LIB_BUILD_ELFOBJECT_H
