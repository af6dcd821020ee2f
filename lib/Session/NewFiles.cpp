//===- NewFiles.cpp - Files of which nobody sees half ---------------------===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "sardonyx/Session/NewFiles.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/raw_ostream.h"

using namespace sardonyx;
namespace fs = llvm::sys::fs;
namespace path = llvm::sys::path;

static Error cannotWrite(const std::string &file, const std::string &why) {
  return Error(ErrorKind::Failed, "cannot write '" + file + "': " + why);
}

/// Writes to what is there, or makes it; nothing of LLVM ends the process where
/// there is no room.
static std::error_code put(const std::string &file, llvm::StringRef bytes) {
  std::error_code code;
  llvm::raw_fd_ostream stream(file, code);
  if (code)
    return code;
  stream << bytes;
  stream.close();
  code = stream.error();
  stream.clear_error();
  return code;
}

MaybeError sardonyx::checkOutput(const std::string &output,
                                 const std::vector<std::string> &inputs) {
  for (const std::string &input : inputs)
    if (bool isSame = false;
        !input.empty() && !fs::equivalent(output, input, isSame) && isSame)
      return Error(ErrorKind::InvalidArgument,
                   "'" + output + "' is not written: it is the file '" + input +
                       "', which is read");
  return std::nullopt;
}

NewFiles::~NewFiles() {
  for (const auto &[parent, folder] : folders)
    (void)fs::remove_directories(folder);
}

Expected<std::string> NewFiles::folderIn(const std::string &parent) {
  std::string &folder = folders[parent];
  if (!folder.empty())
    return folder;
  llvm::SmallString<256> made;
  if (std::error_code code =
          fs::createUniqueDirectory(parent + "/.sardonyx", made)) {
    folders.erase(parent);
    return Error(ErrorKind::Failed, code.message());
  }
  folder = made.str().str();
  return folder;
}

Expected<std::string> NewFiles::add(const std::string &path) {
  File file{path, "", path, true};
  fs::file_status status;
  if (!path.empty() && !fs::status(path, status)) {
    if (fs::is_directory(status))
      return cannotWrite(path, "it is a folder");
    file.isRegular = fs::is_regular_file(status);
    llvm::SmallString<256> real;
    if (file.isRegular && !fs::real_path(path, real))
      file.place = real.str().str();
  }
  llvm::SmallString<256> parent(path::parent_path(file.place));
  if (!file.isRegular) {
    parent.clear();
    path::system_temp_directory(/*ErasedOnReboot=*/true, parent);
  }
  llvm::StringRef name = path::filename(path);
  if (name.empty() || name == "." || name == "..")
    return cannotWrite(path, "it is no name of a file");
  // A relative name would be one in the folder of temporary files.
  (void)fs::make_absolute(parent);
  auto folder = folderIn(parent.str().str());
  if (!folder)
    return cannotWrite(path, folder.error().message());
  file.written = *folder + "/" + name.str();
  for (const File &other : files)
    if (other.written == file.written || other.place == file.place)
      return cannotWrite(path, "two files of this name are to be written");
  files.push_back(file);
  return file.written;
}

MaybeError NewFiles::commit() {
  for (const File &file : files) {
    std::error_code code;
    if (file.isRegular) {
      code = fs::rename(file.written, file.place);
    } else {
      auto bytes =
          llvm::MemoryBuffer::getFile(file.written, /*IsText=*/false,
                                      /*RequiresNullTerminator=*/false);
      code = bytes ? put(file.place, (*bytes)->getBuffer()) : bytes.getError();
    }
    if (code)
      return cannotWrite(file.path, code.message());
  }
  files.clear();
  return std::nullopt;
}

MaybeError sardonyx::writeFile(const std::string &path,
                               std::string_view bytes) {
  NewFiles files;
  auto name = files.add(path);
  if (!name)
    return name.error();
  if (std::error_code code = put(*name, bytes))
    return cannotWrite(path, code.message());
  return files.commit();
}
