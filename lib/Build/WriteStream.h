//===- WriteStream.h - Files, or why they cannot be written -----*- C++ -*-===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef SARDONYX_LIB_BUILD_WRITESTREAM_H
#define SARDONYX_LIB_BUILD_WRITESTREAM_H

#include "sardonyx/Model/Error.h"
#include "llvm/ADT/STLFunctionalExtras.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/raw_ostream.h"
#include <string>

namespace sardonyx {

/// Has `write` write a file, which a stream that fails does not leave unsaid;
/// errors call it `shown`.
inline MaybeError
writeStream(const std::string &path, const std::string &shown,
            llvm::function_ref<void(llvm::raw_fd_ostream &)> write,
            llvm::sys::fs::OpenFlags flags = llvm::sys::fs::OF_None) {
  std::error_code code;
  llvm::raw_fd_ostream file(path, code, flags);
  if (!code) {
    write(file);
    file.close();
    code = file.error();
    file.clear_error();
  }
  if (code)
    return Error(ErrorKind::Failed,
                 "cannot write '" + shown + "': " + code.message());
  return std::nullopt;
}

} // namespace sardonyx

#endif // SARDONYX_LIB_BUILD_WRITESTREAM_H
