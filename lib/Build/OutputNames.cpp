//===- OutputNames.cpp - Names of files that are built --------------------===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "OutputNames.h"
#include "Identifiers.h"
#include "sardonyx/Build/Build.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Path.h"

using namespace sardonyx;
namespace fs = llvm::sys::fs;
namespace path = llvm::sys::path;

/// The extension of a file's name, without what counts versions: ".so" of
/// "libm.so.1.2".
static llvm::StringRef extensionOf(llvm::StringRef output) {
  llvm::StringRef name = path::filename(output), stem = name;
  for (llvm::StringRef last = path::extension(stem);
       last.size() > 1 && llvm::all_of(last.drop_front(), llvm::isDigit);
       last = path::extension(stem))
    stem = stem.drop_back(last.size());
  return path::extension(stem) == ".so" ? llvm::StringRef(".so")
                                        : path::extension(name);
}

ArtifactForm sardonyx::formOf(const std::string &output) {
  llvm::StringRef extension = extensionOf(output);
  return extension == ".so"     ? ArtifactForm::SharedLibrary
         : extension == ".o"    ? ArtifactForm::Object
         : extension == ".a"    ? ArtifactForm::Archive
         : extension == ".wasm" ? ArtifactForm::WebModule
                                : ArtifactForm::Program;
}

/// Extensions of names that say of a file what none that is built is.
static constexpr llvm::StringLiteral kOtherKinds[] = {
    // Programs, libraries and objects of other systems.
    ".dll", ".exe", ".lib", ".obj", ".pyd", ".com", ".sys", ".dylib", ".tbd",
    ".bundle", ".framework", ".app", ".xcframework", ".apk", ".aar", ".jar",
    // WebAssembly, and what goes with it, of which -o names only the first.
    ".wat", ".wast", ".js", ".mjs", ".cjs", ".ts", ".mts", ".html",
    // Texts.
    ".c", ".cc", ".cpp", ".cxx", ".h", ".hh", ".hpp", ".hxx", ".s", ".asm",
    ".ll", ".bc", ".mlir", ".py", ".txt", ".json", ".md", ".yaml", ".yml",
    ".toml",
    // Models and arrays.
    ".onnx", ".onnxtxt", ".ort", ".pb", ".pbtxt", ".prototxt", ".tflite", ".pt",
    ".pth", ".safetensors", ".gguf", ".npy", ".npz", ".data", ".weights",
    // Archives of files.
    ".zip", ".gz", ".xz", ".zst", ".tar", ".tgz", ".whl"};

MaybeError sardonyx::checkName(const std::string &output) {
  auto refuse = [](const std::string &text) {
    return Error(ErrorKind::InvalidArgument, text);
  };
  llvm::StringRef name = path::filename(output);
  if (name.empty() || name == "." || name == ".." || output == "-")
    return refuse("'" + output + "' is no name of a file to build");
  llvm::StringRef extension = path::extension(name);
  const bool isOtherKind =
      llvm::any_of(kOtherKinds, [&](llvm::StringRef other) {
        return extension.equals_insensitive(other);
      });
  // Known extensions in other letters.
  const bool isOtherSpelling =
      formOf(output) == ArtifactForm::Program &&
      formOf(output.substr(0, output.size() - extension.size()) +
             extension.lower()) != ArtifactForm::Program;
  if (isOtherKind || isOtherSpelling)
    return refuse("no file of the kind '" + extension.str() +
                  "' can be built, and '" + output +
                  "' would be a program of Linux: names are NAME.so, NAME.o, "
                  "NAME.a, NAME.wasm, or a program's, without an extension");
  return std::nullopt;
}

MaybeError sardonyx::checkFolder(const std::string &file) {
  llvm::SmallString<256> folder(path::parent_path(file));
  if (folder.empty())
    folder = ".";
  std::error_code code = fs::access(folder, fs::AccessMode::Write);
  if (!code && !fs::is_directory(folder))
    code = std::make_error_code(std::errc::not_a_directory);
  if (!code && fs::is_directory(file))
    code = std::make_error_code(std::errc::is_a_directory);
  if (!code)
    return std::nullopt;
  return Error(ErrorKind::Failed,
               "cannot write '" + file + "': " + code.message());
}

std::string sardonyx::nameFrom(llvm::StringRef output) {
  std::string name = identifierFrom(path::stem(output), "model_");
  return isReservedGlobal(name) ? name + "_model" : name;
}

std::string sardonyx::weightsNameIn(const std::string &weights,
                                    const std::string &output) {
  llvm::SmallString<256> first(path::parent_path(weights)),
      second(path::parent_path(output));
  (void)fs::make_absolute(first);
  (void)fs::make_absolute(second);
  path::remove_dots(first, true);
  path::remove_dots(second, true);
  if (first == second)
    return path::filename(weights).str();
  llvm::SmallString<256> whole(weights);
  (void)fs::make_absolute(whole);
  return whole.str().str();
}
