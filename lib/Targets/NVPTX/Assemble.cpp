//===- Assemble.cpp - PTX to machine code by ptxas ------------------------===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Assemble.h"
#include "RunProgram.h"

#include "llvm/ADT/ScopeExit.h"
#include "llvm/ADT/SmallString.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/raw_ostream.h"

#include <cstdlib>
#include <dlfcn.h>

using namespace sardonyx;
using llvm::StringRef;
namespace fs = llvm::sys::fs;
namespace path = llvm::sys::path;

/// Kernels of a large model take ptxas some seconds.
static constexpr double kSeconds = 600, kSecondsForVersion = 20;

/// No assembler, where it is named so.
static constexpr char kNone[] = "none";

static llvm::Error failure(const std::string &text) {
  return llvm::createStringError(llvm::inconvertibleErrorCode(), text);
}

static bool isProgram(const std::string &file) {
  return fs::can_execute(file) && !fs::is_directory(file);
}

static std::string environment(const char *name) {
  const char *value = getenv(name);
  return value ? value : "";
}

/// Where ptxas may be, beside where it is named, the first that counts first.
static std::vector<std::string> listPlaces() {
  std::vector<std::string> places;
  for (const char *name : {"CUDA_HOME", "CUDA_PATH"})
    if (std::string home = environment(name); !home.empty())
      places.push_back(home + "/bin/ptxas");
  const std::string list = environment("PATH");
  llvm::SmallVector<StringRef> folders;
  StringRef(list).split(folders, ':', -1, /*KeepEmpty=*/false);
  for (StringRef folder : folders)
    places.push_back((folder + "/ptxas").str());
  // In a Python environment this code is SITE/sardonyx/_sardonyx.so.
  Dl_info info;
  llvm::SmallString<256> file;
  if (dladdr(reinterpret_cast<void *>(&listPlaces), &info) && info.dli_fname &&
      !fs::real_path(info.dli_fname, file))
    for (const char *wheel : {"cu13", "cuda_nvcc"}) {
      const StringRef site = path::parent_path(path::parent_path(file));
      places.push_back((site + "/nvidia/" + wheel + "/bin/ptxas").str());
    }
  return places;
}

/// The assembler's file; nothing where there is none.
static llvm::Expected<std::string> find(const std::string &named) {
  std::string tool = named.empty() ? environment("SARDONYX_PTXAS") : named;
  if (tool == kNone)
    return "";
  if (!tool.empty()) {
    if (!isProgram(tool))
      return failure("the assembler '" + tool + "' is no program");
    return tool;
  }
  for (const std::string &place : listPlaces())
    if (isProgram(place))
      return place;
  return "";
}

/// "release 13.0, V13.0.88" in what ptxas says of itself: 13; 0: it says
/// nothing of the kind.
static int readMajorVersion(const std::string &tool) {
  const nv::ProgramResult said =
      nv::runProgram({tool, "--version"}, kSecondsForVersion);
  StringRef rest = StringRef(said.output).split("release ").second;
  int major = 0;
  rest.consumeInteger(10, major);
  return major;
}

/// What is wrong, in one line of what ptxas has written.
static std::string firstError(StringRef said) {
  llvm::SmallVector<StringRef> lines;
  said.split(lines, '\n', -1, /*KeepEmpty=*/false);
  for (StringRef line : lines)
    if (line.contains("error") || line.contains("fatal"))
      return line.trim().str();
  return lines.empty() ? "it says nothing" : lines[0].trim().str();
}

static llvm::Error write(const std::string &file, const std::string &bytes) {
  std::error_code code;
  llvm::raw_fd_ostream stream(file, code);
  if (!code) {
    stream << bytes;
    stream.close();
    code = stream.error();
    stream.clear_error();
  }
  return code ? failure("cannot write '" + file + "': " + code.message())
              : llvm::Error::success();
}

/// Has the assembler make machine code of PTX, in a folder of its own.
static llvm::Expected<std::string> runAssembler(const std::string &tool,
                                                const Image &image) {
  llvm::SmallString<128> folder;
  if (std::error_code code = fs::createUniqueDirectory("sardonyx-ptx", folder))
    return failure("cannot make a folder for temporary files: " +
                   code.message());
  auto remove = llvm::scope_exit([&] { (void)fs::remove_directories(folder); });
  const std::string text = (folder + "/kernels.ptx").str(),
                    code = (folder + "/kernels.cubin").str();
  if (llvm::Error error = write(text, image.bytes))
    return error;
  const nv::ProgramResult done = nv::runProgram(
      {tool, "-arch=" + image.architecture, "-O3", "-o", code, text}, kSeconds);
  if (done.status != 0)
    return failure(
        "'" + tool + "' makes no code for " + image.architecture + ": " +
        (done.problem.empty() ? firstError(done.output) : done.problem));
  auto made = llvm::MemoryBuffer::getFile(code);
  if (!made)
    return failure("'" + tool +
                   "' has written no code: " + made.getError().message());
  return (*made)->getBuffer().str();
}

llvm::Expected<std::optional<Image>>
nv::assemble(const Image &image, const AssembleOptions &options) {
  llvm::Expected<std::string> tool = find(options.tool);
  if (!tool)
    return tool.takeError();
  if (tool->empty())
    return std::nullopt;
  // Drivers load what earlier versions of CUDA have made, and that of their own
  // major version.
  constexpr int kMajor = 1000;
  if (options.driverVersion &&
      readMajorVersion(*tool) > options.driverVersion / kMajor)
    return std::nullopt;
  llvm::Expected<std::string> code = runAssembler(*tool, image);
  if (!code)
    return code.takeError();
  Image made = image;
  made.kind = ImageKind::Cubin;
  made.bytes = std::move(*code);
  return std::optional<Image>(std::move(made));
}
