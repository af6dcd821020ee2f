//===- Error.cpp - Exceptions to diagnostics ------------------------------===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "lib/Importer/Error.h"

#include "mlir/IR/BuiltinAttributes.h"
#include "mlir/IR/Diagnostics.h"
#include "mlir/IR/MLIRContext.h"
#include "llvm/Support/JSON.h"

#include <onnx/onnx_pb.h>

#include <new>

using namespace mlir;

namespace sardonyx::importer {

void fail(const llvm::Twine &message) { throw ImportError(message, ""); }

void failAt(const ::onnx::NodeProto &node, const llvm::Twine &message) {
  throw ImportError(describe(node) + ": " + message, displayName(node));
}

std::string displayName(const ::onnx::NodeProto &node) {
  if (!node.name().empty())
    return node.name();
  for (const std::string &output : node.output())
    if (!output.empty())
      return output;
  return node.op_type();
}

std::string describe(const ::onnx::NodeProto &node) {
  // The inliner marks nodes that keep another version as "Op@7".
  llvm::StringRef op = llvm::StringRef(node.op_type()).split('@').first;
  return "node '" + displayName(node) + "' (" +
         (node.domain().empty() ? "" : node.domain() + ".") + op.str() + ")";
}

/// libonnx appends contexts on new lines; a diagnostic is one sentence. Names
/// in a damaged file can be any bytes; a diagnostic is text.
static std::string oneLine(llvm::StringRef text) {
  std::string result;
  for (char c : llvm::json::fixUTF8(text.trim())) {
    bool space = (c >= 0 && c <= ' ') || c == 0x7f;
    if (!space)
      result += c;
    else if (!result.empty() && result.back() != ' ')
      result += ' ';
  }
  return result;
}

LogicalResult reportErrors(Location loc, llvm::function_ref<void()> body) {
  try {
    body();
    return success();
  } catch (const ImportError &error) {
    if (!error.node.empty())
      loc = NameLoc::get(StringAttr::get(loc.getContext(), oneLine(error.node)),
                         loc);
    return emitError(loc) << oneLine(error.what());
  } catch (const std::bad_alloc &) {
    return emitError(loc) << "not enough memory for this model";
  } catch (const std::exception &error) {
    return emitError(loc) << oneLine(error.what());
  } catch (...) {
    return emitError(loc) << "unknown error in the ONNX library";
  }
}

} // namespace sardonyx::importer
