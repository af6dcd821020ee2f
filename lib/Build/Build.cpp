//===- Build.cpp - Models as files that need nothing ----------------------===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "sardonyx/Build/Build.h"
#include "DeviceCode.h"
#include "Header.h"
#include "Identifiers.h"
#include "Link.h"
#include "ModelData.h"
#include "OutputNames.h"
#include "WebData.h"
#include "WebModule.h"
#include "WriteStream.h"
#include "sardonyx/Model/FileMap.h"
#include "sardonyx/Model/LoadArtifact.h"
#include "sardonyx/Model/Seal.h"
#include "sardonyx/Session/CompileAhead.h"
#include "sardonyx/Session/NewFiles.h"
#include "llvm/ADT/ScopeExit.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Object/ELFObjectFile.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Path.h"

#include <chrono>
#include <cstdlib>
#include <dlfcn.h>

using namespace sardonyx;
namespace fs = llvm::sys::fs;
namespace path = llvm::sys::path;

static Error failure(const std::string &text) {
  return Error(ErrorKind::Failed, text);
}

//===----------------------------------------------------------------------===//
// The runtime's archive
//===----------------------------------------------------------------------===//

/// The archive lies beside this code, in the build as where it is installed.
static Expected<std::string> findArchive(const Platform &platform) {
  const std::string name =
      "lib/sardonyx/" + std::string(platform.name) + "/libsardonyx-runtime.a";
  std::vector<std::string> folders;
  if (const char *given = getenv("SARDONYX_ROOT"))
    folders.push_back(given);
  Dl_info info;
  if (dladdr(reinterpret_cast<const void *>(&sardonyx::formOf), &info)) {
    llvm::SmallString<256> real;
    if (!info.dli_fname || fs::real_path(info.dli_fname, real) ||
        !fs::is_regular_file(real))
      real = fs::getMainExecutable("sardonyx",
                                   reinterpret_cast<void *>(&findArchive));
    for (int up = 0; up < 4; ++up) {
      path::remove_filename(real);
      folders.push_back(real.str().str());
    }
  }
  for (const std::string &folder : folders)
    if (std::string found = folder + "/" + name; fs::exists(found))
      return found;
  return Error(ErrorKind::NoSuchFile,
               "the runtime that models are linked with, " + name +
                   ", is not there");
}

//===----------------------------------------------------------------------===//
// What cannot be built
//===----------------------------------------------------------------------===//

namespace {
/// A function of the runtime that takes a library beyond the C library, who
/// calls it, and whether that library can be had where it is Unicode's.
struct Unavailable {
  llvm::StringLiteral function, op;
  bool isUnicode;
};
} // namespace

static constexpr Unavailable kUnavailable[] = {
    {"sdx_rt_image_decode", "ImageDecoder", false},
    {"sdx_rt_string_matches", "RegexFullMatch", false},
    {"sdx_rt_string_is_no_stop_word", "StringNormalizer", true},
    {"sdx_rt_string_to_case", "StringNormalizer", true},
    {"sdx_rt_tokenize", "Tokenizer", false}};

/// What an object calls that no file can have, if anything.
static MaybeError checkCalls(const std::string &object,
                             const Platform &platform) {
  auto read = llvm::object::ObjectFile::createObjectFile(
      llvm::MemoryBufferRef(object, "kernels"));
  if (!read)
    return internalError(llvm::toString(read.takeError()));
  for (const llvm::object::SymbolRef &symbol : (*read)->symbols()) {
    auto name = symbol.getName();
    if (!name) {
      llvm::consumeError(name.takeError());
      continue;
    }
    for (const auto &[function, op, isUnicode] : kUnavailable)
      if (*name == function && !(isUnicode && platform.hasUnicode))
        return Error(ErrorKind::Unsupported,
                     "the model cannot be built ahead of time: its operator '" +
                         op.str() +
                         "' needs libraries that only sessions have");
  }
  return std::nullopt;
}

/// Engines agree on a gigabyte for all of a file.
static constexpr uint64_t kMaxWebWeights = uint64_t(1000) << 20;

/// Writes the weights to a file of their own, which errors call `shown`, and
/// gives its hash.
static Expected<uint64_t> writeWeights(const WeightPool &weights,
                                       const std::string &name,
                                       const std::string &shown) {
  auto write = [&](llvm::raw_fd_ostream &file) {
    for (const WeightPool::Block &block : weights.blocks()) {
      file.write_zeros(block.padding);
      file.write(block.bytes.data(), block.bytes.size());
    }
  };
  if (MaybeError error = writeStream(name, shown, write))
    return *error;
  auto written = FileMap::open(name);
  if (!written)
    return written.error();
  return hashOfMuch((*written)->bytes());
}

//===----------------------------------------------------------------------===//
// Building
//===----------------------------------------------------------------------===//

namespace {

class Builder {
public:
  Builder(const ModelSource &model, std::string output,
          const BuildOptions &options)
      : model(model), output(std::move(output)), options(options),
        session(options.session), form(formOf(this->output)) {}

  Expected<BuildReport> run();

private:
  MaybeError check();
  /// The paths of all files that are written.
  std::vector<std::string> outputs() const;
  std::string beside(const char *extension) const;
  MaybeError checkOutputs(const std::vector<std::string> &inputs) const;
  MaybeError compile();
  MaybeError writeData(const std::string &file);
  MaybeError writeBeside(const char *extension, const std::string &text);
  MaybeError finish(const std::string &written);
  void time(const char *step) {
    auto now = std::chrono::steady_clock::now();
    report.timings.push_back(
        {step, std::chrono::duration<double>(now - last).count()});
    last = now;
  }

  const ModelSource &model;
  std::string output;
  const BuildOptions &options;
  SessionOptions session;
  ArtifactForm form;
  const Platform *platform = nullptr;
  std::string name;
  WeightPool weights;
  std::vector<AheadCode> codes;
  std::vector<std::string> prefixes;
  NewFiles files;
  BuildReport report;
  std::chrono::steady_clock::time_point last = std::chrono::steady_clock::now();
};

} // namespace

MaybeError Builder::check() {
  auto refuse = [](const std::string &text) {
    return Error(ErrorKind::InvalidArgument, text);
  };
  if (output.empty())
    return refuse("no file to build is named");
  if (MaybeError error = checkName(output))
    return error;
  name = options.name.empty() ? nameFrom(output) : options.name;
  if (!isIdentifier(name) || isReservedGlobal(name))
    return refuse("'" + name +
                  "' is no name for a model: it must be an identifier of C "
                  "that its library does not have");
  const bool isWeb = form == ArtifactForm::WebModule;
  if (options.isStatic && form != ArtifactForm::Program)
    return refuse("only a program can be static, and '" + output + "' is none");
  if (options.isStatic && !options.devices.empty())
    return Error(ErrorKind::Unsupported,
                 "a static program cannot load CUDA's driver");
  if (isWeb && !options.devices.empty())
    return Error(ErrorKind::Unsupported,
                 "WebAssembly has no CUDA devices to run kernels on");
  if (isWeb && session.triple.empty())
    session.triple = kWebTriple;
  auto found = platformOf(session.triple);
  if (!found)
    return found.error();
  platform = *found;
  if (isWeb != platform->isWeb())
    return refuse("a file for " + std::string(platform->name) +
                  (isWeb ? " cannot be called .wasm, as '"
                         : " must be called .wasm, and not as '") +
                  output + "'");
  std::vector<std::string> inputs = options.inputs;
  if (!model.bytes)
    inputs.push_back(model.path);
  if (MaybeError error = checkOutputs(inputs))
    return error;
  if (!isWeb)
    return std::nullopt;
  if (!options.weightsFile.empty())
    return Error(ErrorKind::Unsupported,
                 "weights in a file beside are not supported in WebAssembly, "
                 "which has no files");
  if (options.cpus.size() > 1)
    return Error(ErrorKind::Unsupported,
                 "code for several processors is not supported in "
                 "WebAssembly, whose engines cannot be asked for theirs");
  session.intraOpThreads = 1;
  return std::nullopt;
}

std::string Builder::beside(const char *extension) const {
  llvm::SmallString<256> file(output);
  path::replace_extension(file, extension);
  return file.str().str();
}

std::vector<std::string> Builder::outputs() const {
  std::vector<std::string> all{output};
  if (!options.weightsFile.empty())
    all.push_back(options.weightsFile);
  std::vector<const char *> extensions;
  if (form == ArtifactForm::WebModule)
    extensions = {".mjs", ".d.mts"};
  else if (form != ArtifactForm::Program)
    extensions = {".h", ".hpp"};
  for (const char *extension : extensions)
    all.push_back(beside(extension));
  return all;
}

MaybeError Builder::checkOutputs(const std::vector<std::string> &inputs) const {
  for (const std::string &file : outputs()) {
    if (MaybeError error = checkOutput(file, inputs))
      return error;
    if (MaybeError error = checkFolder(file))
      return error;
  }
  return std::nullopt;
}

MaybeError Builder::compile() {
  std::vector<std::string> cpus = options.cpus, devices = options.devices;
  if (cpus.empty())
    cpus.push_back(session.cpu);
  session.device.cuda = !devices.empty();
  if (devices.empty())
    devices.emplace_back();
  const size_t count = cpus.size() * devices.size();
  for (size_t i = 0; i < count; ++i) {
    session.cpu = cpus[i % cpus.size()];
    session.device.architecture = devices[i / cpus.size()];
    prefixes.push_back(name + (count > 1 ? std::to_string(i) : "") + "_");
    auto code =
        compileAhead(model, session, prefixes[i], weights, report.timings);
    if (!code)
      return code.error();
    const bool keepsText = session.device.architecture == findOldest(devices);
    if (MaybeError error = assembleImages(code->description.images,
                                          options.assembler, keepsText))
      return error;
    if (MaybeError error = checkOutputs(code->files))
      return error;
    for (const std::string &object : code->objects)
      if (MaybeError error = checkCalls(object, *platform))
        return error;
    codes.push_back(std::move(*code));
  }
  report.weightBytes = weights.size();
  if (platform->isWeb() && weights.size() > kMaxWebWeights)
    return Error(ErrorKind::Unsupported,
                 "the model has " + std::to_string(weights.size()) +
                     " bytes of weights, and engines of WebAssembly take files "
                     "of less than a gigabyte");
  last = std::chrono::steady_clock::now();
  return std::nullopt;
}

MaybeError Builder::writeData(const std::string &file) {
  if (platform->isWeb()) {
    Artifact description = codes[0].description;
    description.weightsBytes = weights.size();
    return writeWebData({name, prefixes[0] + "sdx_main",
                         pack(description, "ahead of time"), codes[0].processor,
                         codes[0].features, weights},
                        file);
  }
  ModelData data{
      name,   platform->elfMachine, session.intraOpThreads, codes, prefixes,
      weights};
  if (!options.weightsFile.empty()) {
    auto written = files.add(options.weightsFile);
    if (!written)
      return written.error();
    auto hash = writeWeights(weights, *written, options.weightsFile);
    if (!hash)
      return hash.error();
    data.weightsFile = weightsNameIn(options.weightsFile, output);
    data.weightsHash = *hash;
    report.files.push_back(options.weightsFile);
  }
  return writeModelData(data, file);
}

/// Where a shared library holds its weights, if it does.
static Expected<uint64_t> findWeights(std::string_view file, uint64_t bytes) {
  auto read = llvm::object::ObjectFile::createObjectFile(
      llvm::MemoryBufferRef(llvm::StringRef(file.data(), file.size()), ""));
  if (!read)
    return internalError(llvm::toString(read.takeError()));
  for (const llvm::object::SectionRef &section : (*read)->sections()) {
    auto name = section.getName();
    if (!name)
      llvm::consumeError(name.takeError());
    else if (name->starts_with(kWeightsSection) && section.getSize() == bytes)
      return llvm::object::ELFSectionRef(section).getOffset();
  }
  return internalError("the linked model has no section of its weights");
}

/// Appends the seal, behind what the system loads, to a file that errors call
/// `shown`.
static MaybeError sealFile(const std::string &name, const std::string &shown,
                           uint64_t weightBytes) {
  std::string seal;
  {
    auto file = FileMap::open(name);
    if (!file)
      return file.error();
    uint64_t offset = 0;
    if (weightBytes) {
      auto found = findWeights((*file)->bytes(), weightBytes);
      if (!found)
        return found.error();
      offset = *found;
    }
    seal = sealOf((*file)->bytes(), offset, weightBytes);
  }
  return writeStream(
      name, shown, [&](llvm::raw_fd_ostream &file) { file << seal; },
      fs::OF_Append);
}

/// Writes what belongs to the output, and has its name otherwise.
MaybeError Builder::writeBeside(const char *extension,
                                const std::string &text) {
  const std::string file = beside(extension);
  auto written = files.add(file);
  if (!written)
    return written.error();
  report.files.push_back(file);
  return writeStream(*written, file,
                     [&](llvm::raw_fd_ostream &stream) { stream << text; });
}

MaybeError Builder::finish(const std::string &written) {
  if (form == ArtifactForm::SharedLibrary)
    if (MaybeError error = sealFile(
            written, output, options.weightsFile.empty() ? weights.size() : 0))
      return error;
  report.files.insert(report.files.begin(), output);
  (void)fs::file_size(written, report.fileBytes);
  const Artifact &description = codes.front().description;
  MaybeError error;
  if (form == ArtifactForm::WebModule) {
    const std::string file = path::filename(output).str();
    error = writeBeside(".mjs", webModuleOf(name, file, description));
    if (!error)
      error = writeBeside(".d.mts", webTypesOf(name, description));
  } else if (form != ArtifactForm::Program) {
    error = writeBeside(".h", headerOf(name, description));
    if (!error)
      error = writeBeside(".hpp", cppHeaderOf(name, description));
  }
  return error ? error : files.commit();
}

Expected<BuildReport> Builder::run() {
  if (MaybeError error = check())
    return *error;
  auto archive = findArchive(*platform);
  if (!archive)
    return archive.error();
  llvm::SmallString<256> temporary;
  if (std::error_code code = fs::createUniqueDirectory("sardonyx", temporary))
    return failure("cannot make a folder for temporary files: " +
                   code.message());
  auto remove =
      llvm::scope_exit([&] { (void)fs::remove_directories(temporary); });
  if (MaybeError error = compile())
    return *error;
  auto written = files.add(output);
  if (!written)
    return written.error();
  LinkJob job;
  job.platform = platform;
  job.form = form;
  job.isStatic = options.isStatic;
  job.hasOneThread = session.intraOpThreads == 1;
  job.archive = *archive;
  job.output = *written;
  job.shown = output;
  job.temporary = temporary.str().str();
  if (form != ArtifactForm::WebModule)
    job.exported.push_back(name);
  if (form == ArtifactForm::SharedLibrary || form == ArtifactForm::WebModule)
    job.exported.push_back(kArtifactSymbol);
  job.objects.push_back(job.temporary + "/data.o");
  if (MaybeError error = writeData(job.objects[0]))
    return *error;
  for (const AheadCode &code : codes)
    for (const std::string &object : code.objects) {
      std::string file =
          job.temporary + "/" + std::to_string(job.objects.size()) + ".o";
      if (MaybeError error =
              writeStream(file, file, [&](llvm::raw_fd_ostream &stream) {
                stream << object;
              }))
        return *error;
      job.objects.push_back(file);
    }
  time("write");
  if (MaybeError error = link(job))
    return *error;
  time("link");
  if (MaybeError error = finish(*written))
    return *error;
  return std::move(report);
}

Expected<BuildReport> sardonyx::build(const ModelSource &model,
                                      const std::string &output,
                                      const BuildOptions &options) {
  return Builder(model, output, options).run();
}
