//===- Link.cpp - Objects as a file to use --------------------------------===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Link.h"
#include "WriteStream.h"
#include "lld/Common/Driver.h"
#include "sardonyx/Objects/FatalErrors.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/ObjCopy/CommonConfig.h"
#include "llvm/ObjCopy/ELF/ELFConfig.h"
#include "llvm/ObjCopy/ELF/ELFObjcopy.h"
#include "llvm/Object/ArchiveWriter.h"
#include "llvm/Object/ELFObjectFile.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/raw_ostream.h"

#include <cerrno>
#include <cstdlib>
#include <dlfcn.h>
#include <fcntl.h>
#include <link.h>
#include <mutex>
#include <unistd.h>

LLD_HAS_DRIVER(elf)
LLD_HAS_DRIVER(wasm)

using namespace sardonyx;

static Error failure(const std::string &text) {
  return Error(ErrorKind::Failed, text);
}

/// Where this machine's system has found a library, or "".
static std::string loadedLibrary(const char *name) {
  void *handle = dlopen(name, RTLD_LAZY | RTLD_LOCAL);
  link_map *map = nullptr;
  std::string path;
  if (handle && dlinfo(handle, RTLD_DI_LINKMAP, &map) == 0 && map)
    path = map->l_name;
  if (handle)
    dlclose(handle);
  return path;
}

/// A file of the platform's C library, or "". $SARDONYX_SYSROOT is looked at
/// first.
static std::string systemFile(const Platform &platform, const char *name) {
  std::vector<std::string> folders;
  if (const char *root = getenv("SARDONYX_SYSROOT"))
    for (const char *folder : {"/lib/", "/usr/lib/"}) {
      folders.push_back(root + std::string(folder) + platform.name);
      folders.push_back(root + std::string(folder));
    }
  for (const char *folder : {"/usr/lib/", "/lib/"})
    folders.push_back(folder + std::string(platform.name));
  folders.push_back("/usr/" + std::string(platform.name) + "/lib");
  if (platform.isThis())
    for (const char *folder : {"/usr/lib64", "/usr/lib"})
      folders.push_back(folder);
  for (const std::string &folder : folders)
    if (std::string path = folder + "/" + name; llvm::sys::fs::exists(path))
      return path;
  return "";
}

/// The first thing that the linker has said, as a sentence.
static std::string firstError(llvm::StringRef said) {
  llvm::SmallVector<llvm::StringRef> lines;
  said.split(lines, '\n', -1, /*KeepEmpty=*/false);
  for (llvm::StringRef line : lines) {
    size_t at = line.find("error: ");
    if (at != llvm::StringRef::npos)
      return line.substr(at + 7).trim().str();
  }
  return lines.empty() ? "no reason given" : lines[0].trim().str();
}

/// Runs the linker, of which a process has one, under the name of one of its
/// kinds.
static MaybeError runLinker(const LinkJob &job,
                            const std::vector<std::string> &arguments,
                            const char *kind = "ld.lld") {
  static std::mutex mutex;
  static bool isBroken = false;
  std::lock_guard<std::mutex> lock(mutex);
  if (isBroken)
    return failure("the linker has failed before in this process and cannot "
                   "be used again");
  std::vector<const char *> words{kind};
  for (const std::string &argument : arguments)
    words.push_back(argument.c_str());
  std::string said;
  llvm::raw_string_ostream stream(said);
  lld::Result result{1, /*canRunAgain=*/false};
  std::optional<std::string> fatal = recoverLinkerErrors([&] {
    result = lld::lldMain(
        words, stream, stream,
        {{lld::Gnu, &lld::elf::link}, {lld::Wasm, &lld::wasm::link}});
  });
  isBroken = !result.canRunAgain;
  if (!fatal && result.retCode == 0)
    return std::nullopt;
  std::string why = fatal ? *fatal : firstError(said);
  if (size_t at = why.find(job.output); at != std::string::npos)
    why.replace(at, job.output.size(), job.shown);
  return failure("linking failed: " + why);
}

/// What the runtime adds to objects in a file, at most.
static constexpr uint64_t kRuntimeBytes = 4 << 20;

/// Whether a file of the job's objects has room where `output` is to be. The
/// linker maps the file that it writes: where there is none, the system would
/// end the process.
static MaybeError checkRoom(const LinkJob &job, const std::string &output) {
  uint64_t bytes = kRuntimeBytes;
  for (const std::string &object : job.objects) {
    uint64_t size = 0;
    if (!llvm::sys::fs::file_size(object, size))
      bytes += size;
  }
  const std::string file = output + ".room";
  const int descriptor =
      open(file.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
  int reason = descriptor < 0 ? errno : 0;
  // A file system that cannot keep room does not say whether it has some.
  if (!reason && fallocate(descriptor, 0, 0, static_cast<off_t>(bytes)) != 0)
    reason = errno == ENOSPC || errno == EDQUOT || errno == EFBIG ? errno : 0;
  if (descriptor >= 0) {
    close(descriptor);
    unlink(file.c_str());
  }
  if (!reason)
    return std::nullopt;
  return failure("cannot write '" + job.shown +
                 "': " + std::generic_category().message(reason));
}

static MaybeError addSystem(const Platform &platform,
                            std::vector<std::string> &arguments) {
  const std::string loader = llvm::sys::path::filename(platform.loader).str();
  for (const char *name : {"libc.so.6", "libm.so.6", loader.c_str()}) {
    std::string path = platform.isThis() ? loadedLibrary(name) : "";
    if (path.empty())
      path = systemFile(platform, name);
    if (path.empty())
      return Error(ErrorKind::NoSuchFile,
                   std::string("this system has no ") + name + " for " +
                       platform.name +
                       ", which models are linked with (Debian has one in "
                       "libc6-ARCHITECTURE-cross)");
    arguments.push_back(path);
  }
  return std::nullopt;
}

static MaybeError addStaticSystem(const Platform &platform,
                                  std::vector<std::string> &arguments) {
  arguments.push_back("--start-group");
  for (const char *name : {"libc.a", "libm.a"}) {
    std::string path = systemFile(platform, name);
    if (path.empty())
      return Error(ErrorKind::NoSuchFile,
                   std::string("a static program needs ") + name +
                       ", which this system does not have (Debian: apt-get "
                       "install libc6-dev)");
    arguments.push_back(path);
  }
  arguments.push_back("--end-group");
  return std::nullopt;
}

/// The pool's threads then fail to start, and loops run in the caller's.
static void addOneThread(std::vector<std::string> &arguments) {
  llvm::append_range(arguments, std::vector<std::string>{
                                    "--wrap=pthread_create", "--undefined",
                                    "__wrap_pthread_create"});
}

static MaybeError linkLoadable(const LinkJob &job) {
  std::string script = job.temporary + "/exported.map";
  auto writeScript = [&](llvm::raw_fd_ostream &file) {
    file << "{ global: ";
    for (const std::string &name : job.exported)
      file << name << "; ";
    file << "local: *; };\n";
  };
  if (MaybeError error = writeStream(script, script, writeScript))
    return error;
  const bool isProgram = job.form == ArtifactForm::Program;
  std::vector<std::string> arguments{
      "-o",          job.output,   "--gc-sections",
      "--as-needed", "-z",         "now",
      "-z",          "relro",      "-z",
      "noexecstack", "--build-id", "--eh-frame-hdr",
      "-z",          "defs",       "--hash-style=gnu",
      "--strip-all", "--icf=none"};
  if (!isProgram)
    llvm::append_range(
        arguments,
        std::vector<std::string>{"-shared", "-z", "nodelete", "-soname",
                                 llvm::sys::path::filename(job.output).str(),
                                 "--version-script", script});
  else if (job.isStatic)
    llvm::append_range(arguments,
                       std::vector<std::string>{"-static", "--entry=_start"});
  else
    llvm::append_range(arguments,
                       std::vector<std::string>{"-pie", "--entry=_start",
                                                "--dynamic-linker",
                                                job.platform->loader});
  if (job.hasOneThread)
    addOneThread(arguments);
  llvm::append_range(arguments, job.objects);
  arguments.push_back(job.archive);
  if (MaybeError error = isProgram && job.isStatic
                             ? addStaticSystem(*job.platform, arguments)
                             : addSystem(*job.platform, arguments))
    return error;
  return runLinker(job, arguments);
}

/// Makes all names of an object its own but for those that are exported, so
/// that programs may link several, each with a runtime.
static MaybeError hideSymbols(const std::string &from, const LinkJob &job,
                              const std::string &to) {
  auto fail = [&](llvm::Error error) {
    return failure("cannot write '" + job.shown +
                   "': " + llvm::toString(std::move(error)));
  };
  auto input = llvm::object::ObjectFile::createObjectFile(from);
  if (!input)
    return fail(input.takeError());
  llvm::objcopy::CommonConfig config;
  config.InputFilename = from;
  config.OutputFilename = to;
  config.StripDebug = true;
  for (const std::string &name : job.exported) {
    auto matcher = llvm::objcopy::NameOrPattern::create(
        name, llvm::objcopy::MatchStyle::Literal,
        [](llvm::Error error) { return error; });
    if (llvm::Error error =
            config.SymbolsToKeepGlobal.addMatcher(std::move(matcher)))
      return fail(std::move(error));
  }
  std::error_code code;
  llvm::raw_fd_ostream output(to, code);
  if (code)
    return fail(llvm::errorCodeToError(code));
  if (llvm::Error error = llvm::objcopy::elf::executeObjcopyOnBinary(
          config, {},
          llvm::cast<llvm::object::ELFObjectFileBase>(*input->getBinary()),
          output))
    return fail(std::move(error));
  output.close();
  if (output.has_error()) {
    code = output.error();
    output.clear_error();
    return fail(llvm::errorCodeToError(code));
  }
  return std::nullopt;
}

static MaybeError linkObject(const LinkJob &job) {
  const std::string whole = job.temporary + "/whole.o";
  if (MaybeError error = checkRoom(job, whole))
    return error;
  std::vector<std::string> arguments{"-r", "-o", whole,
                                     "--force-group-allocation"};
  if (job.hasOneThread)
    addOneThread(arguments);
  llvm::append_range(arguments, job.objects);
  arguments.push_back(job.archive);
  if (MaybeError error = runLinker(job, arguments))
    return error;
  if (job.form == ArtifactForm::Object)
    return hideSymbols(whole, job, job.output);
  const std::string member =
      job.temporary + "/" + llvm::sys::path::stem(job.output).str() + ".o";
  if (MaybeError error = hideSymbols(whole, job, member))
    return error;
  auto read = llvm::NewArchiveMember::getFile(member, /*Deterministic=*/true);
  if (!read)
    return failure("cannot write '" + job.shown +
                   "': " + llvm::toString(read.takeError()));
  llvm::NewArchiveMember members[] = {std::move(*read)};
  std::string problem;
  std::optional<std::string> fatal = recoverFatalErrors([&] {
    problem = llvm::toString(llvm::writeArchive(
        job.output, members, llvm::SymtabWritingMode::NormalSymtab,
        llvm::object::Archive::K_GNU, /*Deterministic=*/true, /*Thin=*/false));
  });
  if (!fatal && problem.empty())
    return std::nullopt;
  return failure("cannot write '" + job.shown +
                 "': " + (fatal ? *fatal : problem));
}

/// What a page loads has memory of its own, which grows up to four gigabytes.
/// The stack lies before all data, so that whoever leaves it is stopped.
static MaybeError linkWeb(const LinkJob &job) {
  std::vector<std::string> arguments{"-o",
                                     job.output,
                                     "--no-entry",
                                     "--gc-sections",
                                     "--strip-all",
                                     "--fatal-warnings",
                                     "--stack-first",
                                     "-z",
                                     "stack-size=4194304",
                                     "--max-memory=4294967296",
                                     "--export-table",
                                     "--export=__wasm_call_ctors",
                                     "--export=malloc",
                                     "--export=free"};
  for (const std::string &name : job.exported)
    arguments.push_back("--export=" + name);
  llvm::append_range(arguments, job.objects);
  arguments.push_back(job.archive);
  return runLinker(job, arguments, "wasm-ld");
}

MaybeError sardonyx::link(const LinkJob &job) {
  if (MaybeError error = checkRoom(job, job.output))
    return error;
  if (job.form == ArtifactForm::WebModule)
    return linkWeb(job);
  return job.form == ArtifactForm::SharedLibrary ||
                 job.form == ArtifactForm::Program
             ? linkLoadable(job)
             : linkObject(job);
}
