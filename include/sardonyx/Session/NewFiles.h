//===- NewFiles.h - Files of which nobody sees half -------------*- C++ -*-===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
//   NewFiles files;
//   auto name = files.add("model.so");     // ".sardonyx-1f2e3d/model.so"
//   ... write a file of this name ...
//   if (MaybeError error = files.commit()) // "model.so" is there, and whole
//
//===----------------------------------------------------------------------===//

#ifndef SARDONYX_SESSION_NEWFILES_H
#define SARDONYX_SESSION_NEWFILES_H

#include "sardonyx/Model/Error.h"
#include "sardonyx/Model/Export.h"
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace sardonyx {

/// Refuses to write `output` where it is one of the files that are read, be it
/// through links. Paths of files that are not there are no obstacle.
SARDONYX_API MaybeError checkOutput(const std::string &output,
                                    const std::vector<std::string> &inputs);

/// Files that are written in a folder of their own beside their places, and
/// take these when all are whole. What is at a place before stays until then.
class SARDONYX_API NewFiles {
public:
  NewFiles() = default;
  /// Removes what has not taken its place.
  ~NewFiles();
  NewFiles(const NewFiles &) = delete;
  NewFiles &operator=(const NewFiles &) = delete;

  /// The name under which to write the file that will be `path`; its last part
  /// is that of `path`. A link at `path` stays one: what it leads to is
  /// replaced. Fails where `path` is a folder or lies in none.
  Expected<std::string> add(const std::string &path);

  /// Has all files take their places. What is at a place and no regular file (a
  /// terminal, a pipe, /dev/null) is given the bytes.
  MaybeError commit();

private:
  struct File {
    std::string path, written, place;
    bool isRegular;
  };
  Expected<std::string> folderIn(const std::string &parent);

  std::vector<File> files;
  /// The folders of files that are written, by those of their places.
  std::map<std::string, std::string> folders;
};

/// A file of these bytes.
SARDONYX_API MaybeError writeFile(const std::string &path,
                                  std::string_view bytes);

} // namespace sardonyx

#endif // SARDONYX_SESSION_NEWFILES_H
