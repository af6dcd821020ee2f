//===- MappedFile.h - Read-only file mappings -------------------*- C++ -*-===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef SARDONYX_LIB_IMPORTER_MAPPEDFILE_H
#define SARDONYX_LIB_IMPORTER_MAPPEDFILE_H

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringRef.h"

#include <memory>
#include <string>

namespace sardonyx::importer {

/// A regular file, mapped read-only for as long as somebody holds it.
class MappedFile {
public:
  /// Throws ImportError for whatever is no readable regular file.
  static std::shared_ptr<MappedFile> open(llvm::StringRef path);
  ~MappedFile();
  MappedFile(const MappedFile &) = delete;
  MappedFile &operator=(const MappedFile &) = delete;

  llvm::StringRef bytes() const { return {data, size}; }
  llvm::StringRef path() const { return filePath; }

private:
  MappedFile(llvm::StringRef path, const char *data, size_t size)
      : filePath(path), data(data), size(size) {}
  std::string filePath;
  const char *data;
  size_t size;
};

/// The folder of the file that `path` is, or is a link to, without links; empty
/// where there is no such file.
std::string realFolderOf(llvm::StringRef path);

/// Path of an external data file. `location` comes from the model: it must be
/// relative to `dir`, and the file it names must really (links followed) lie in
/// `dir`, in `linkedDir` (without links itself, or empty) or, where `dir` is in
/// a snapshot of the Hugging Face hub's cache, in the blobs of the same
/// repository.
std::string resolveExternalData(llvm::StringRef dir, llvm::StringRef linkedDir,
                                llvm::StringRef location,
                                llvm::StringRef tensor);

} // namespace sardonyx::importer

#endif // SARDONYX_LIB_IMPORTER_MAPPEDFILE_H
