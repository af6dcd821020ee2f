//===- LibraryPages.h - Memory of libraries that can be had again -*- C++ -*-=//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef SARDONYX_LIB_SESSION_COMPILE_LIBRARYPAGES_H
#define SARDONYX_LIB_SESSION_COMPILE_LIBRARYPAGES_H

#include <cstdint>
#include <link.h>
#include <sys/mman.h>
#include <unistd.h>
#include <utility>
#include <vector>

namespace sardonyx {

using LibraryPages = std::vector<std::pair<void *, size_t>>;

/// The whole pages of the library, or program, that `address` lies in which
/// nothing has written to: its code and its constants. Relocated data would not
/// come back.
inline LibraryPages findLibraryPages(const void *address) {
  struct Search {
    uintptr_t address;
    LibraryPages pages;
  } search{reinterpret_cast<uintptr_t>(address), {}};
  dl_iterate_phdr(
      [](dl_phdr_info *info, size_t, void *argument) -> int {
        auto &search = *static_cast<Search *>(argument);
        auto forEachPart = [&](auto act) {
          for (int i = 0; i < info->dlpi_phnum; ++i)
            if (info->dlpi_phdr[i].p_type == PT_LOAD)
              act(info->dlpi_phdr[i],
                  info->dlpi_addr + info->dlpi_phdr[i].p_vaddr);
        };
        bool isThis = false;
        forEachPart([&](const ElfW(Phdr) & part, uintptr_t start) {
          isThis |= search.address - start < part.p_memsz;
        });
        if (!isThis)
          return 0;
        const uintptr_t page = sysconf(_SC_PAGESIZE);
        forEachPart([&](const ElfW(Phdr) & part, uintptr_t start) {
          uintptr_t begin = (start + page - 1) & ~(page - 1),
                    end = (start + part.p_filesz) & ~(page - 1);
          if (!(part.p_flags & PF_W) && begin < end)
            search.pages.emplace_back(reinterpret_cast<void *>(begin),
                                      end - begin);
        });
        return 1;
      },
      &search);
  return search.pages;
}

/// Takes them out of this process's memory. They stay in the system's page
/// cache, and come back as they are used.
inline void forgetLibraryPages(const LibraryPages &pages) {
  for (auto [begin, size] : pages)
    (void)madvise(begin, size, MADV_DONTNEED);
}

} // namespace sardonyx

#endif // SARDONYX_LIB_SESSION_COMPILE_LIBRARYPAGES_H
