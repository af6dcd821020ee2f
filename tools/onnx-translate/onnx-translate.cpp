//===- onnx-translate.cpp - Between ONNX files and the onnx dialect -------===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "sardonyx/Exporter/Exporter.h"
#include "sardonyx/Importer/Importer.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/AsmState.h"
#include "mlir/IR/MLIRContext.h"
#include "mlir/Parser/Parser.h"
#include "mlir/Support/FileUtilities.h"
#include "mlir/Support/ToolUtilities.h"
#include "llvm/Support/CommandLine.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/InitLLVM.h"
#include "llvm/Support/SourceMgr.h"
#include "llvm/Support/ToolOutputFile.h"

using namespace mlir;
using namespace llvm;

namespace {

enum class Direction { OnnxToMlir, MlirToOnnx };

struct Options {
  cl::OptionCategory category{"onnx-translate"};
  cl::opt<Direction> direction{
      cl::desc("What to do:"), cl::Required, cl::cat(category),
      cl::values(clEnumValN(Direction::OnnxToMlir, "onnx-to-mlir",
                            "import an ONNX model (binary or text)"),
                 clEnumValN(Direction::MlirToOnnx, "mlir-to-onnx",
                            "export a module of the onnx dialect"))};
  cl::opt<std::string> input{cl::Positional, cl::desc("<model file>"),
                             cl::init("-"), cl::cat(category)};
  cl::opt<std::string> output{"o", cl::desc("Output file"), cl::init("-"),
                              cl::cat(category)};
  cl::opt<std::string> dataDir{
      "external-data-dir",
      cl::desc("Folder of external data (default: the model's)"),
      cl::cat(category)};
  cl::opt<bool> keepMetadata{
      "keep-node-metadata",
      cl::desc("Keep doc strings and metadata_props of nodes"),
      cl::cat(category)};
  cl::opt<bool> noInference{
      "no-type-inference",
      cl::desc("Leave values untyped that the model does not declare"),
      cl::cat(category)};
  cl::opt<bool> externalData{"external-data",
                             cl::desc("Export large tensors to <output>.data"),
                             cl::cat(category)};
  cl::opt<bool> checkOnly{"check-only",
                          cl::desc("Import and verify, but print nothing"),
                          cl::cat(category)};
  cl::opt<bool> split{
      "split-input-file",
      cl::desc("Import each piece of a text file between '# -----' lines"),
      cl::cat(category)};
};

/// Diagnostics on stderr, a line each.
void report(Diagnostic &diagnostic) {
  errs() << diagnostic.getLocation() << ": "
         << (diagnostic.getSeverity() == DiagnosticSeverity::Error ? "error: "
             : diagnostic.getSeverity() == DiagnosticSeverity::Warning
                 ? "warning: "
                 : "note: ")
         << diagnostic << "\n";
  for (Diagnostic &note : diagnostic.getNotes())
    report(note);
}

LogicalResult importOne(StringRef bytes, bool isFile, const Options &options,
                        raw_ostream &os) {
  MLIRContext context;
  context.getDiagEngine().registerHandler(
      [](Diagnostic &diagnostic) { report(diagnostic); });
  sardonyx::ImportOptions import;
  import.externalDataDir = options.dataDir;
  import.keepNodeMetadata = options.keepMetadata;
  import.inferTypes = !options.noInference;
  OwningOpRef<ModuleOp> module =
      isFile ? sardonyx::importOnnxFile(options.input, context, import)
             : sardonyx::importOnnxBytes(bytes, context, import);
  if (!module)
    return failure();
  if (options.checkOnly)
    return success();
  module->print(os);
  os << "\n";
  return success();
}

LogicalResult onnxToMlir(const Options &options, raw_ostream &os) {
  if (!options.split && options.input != "-")
    return importOne("", /*isFile=*/true, options, os);
  std::string error;
  std::unique_ptr<MemoryBuffer> buffer = openInputFile(options.input, &error);
  if (!buffer) {
    errs() << error << "\n";
    return failure();
  }
  return splitAndProcessBuffer(
      std::move(buffer),
      [&](std::unique_ptr<MemoryBuffer> chunk, raw_ostream &os) {
        return importOne(chunk->getBuffer(), /*isFile=*/false, options, os);
      },
      os, options.split ? "# -----" : "", "// -----");
}

/// Gives the output to the system.
LogicalResult finish(raw_fd_ostream &os, const Options &options) {
  os.flush();
  std::error_code code = os.error();
  os.clear_error();
  if (!code)
    return success();
  errs() << "cannot write '" << options.output << "': " << code.message()
         << "\n";
  return failure();
}

LogicalResult mlirToOnnx(const Options &options) {
  DialectRegistry registry;
  sardonyx::registerImporterDialects(registry);
  MLIRContext context(registry);
  SourceMgr sources;
  SourceMgrDiagnosticHandler handler(sources, &context);
  OwningOpRef<ModuleOp> module =
      parseSourceFile<ModuleOp>(options.input, sources, &context);
  if (!module)
    return failure();
  if (options.output != "-") {
    sardonyx::ExportOptions exporting;
    exporting.externalData = options.externalData;
    return sardonyx::exportOnnxFile(*module, options.output, exporting);
  }
  std::string bytes;
  if (failed(sardonyx::exportOnnxBytes(*module, bytes)))
    return failure();
  outs() << bytes;
  return finish(outs(), options);
}

} // namespace

int main(int argc, char **argv) {
  InitLLVM init(argc, argv);
  Options options;
  registerAsmPrinterCLOptions();
  registerMLIRContextCLOptions();
  cl::ParseCommandLineOptions(
      argc, argv, "Translates between ONNX files and the onnx dialect\n");
  if (bool isSame = false;
      !sys::fs::equivalent(options.input, options.output, isSame) && isSame) {
    errs() << "'" << options.output << "' is not written: it is the input\n";
    return 1;
  }
  if (options.direction == Direction::MlirToOnnx)
    return failed(mlirToOnnx(options));
  std::string error;
  auto output = openOutputFile(options.output, &error);
  if (!output) {
    errs() << error << "\n";
    return 1;
  }
  if (failed(onnxToMlir(options, output->os())) ||
      failed(finish(output->os(), options)))
    return 1;
  output->keep();
  return 0;
}
