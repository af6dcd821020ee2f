//===- Tensors.h - Tensor data without copies -------------------*- C++ -*-===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef SARDONYX_LIB_IMPORTER_TENSORS_H
#define SARDONYX_LIB_IMPORTER_TENSORS_H

#include "lib/Importer/Model.h"

#include "mlir/IR/BuiltinAttributes.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/StringMap.h"

#include <onnx/onnx_pb.h>

#include <utility>

namespace sardonyx::importer {

/// A tensor as an attribute. `source` ({path, offset, length}) is null unless
/// the bytes lie in a file as they are in the attribute.
struct TensorValue {
  mlir::ElementsAttr value;
  mlir::DictionaryAttr source;
};

/// Reads the tensors of one model. Data of more than `denseLimit` bytes becomes
/// a resource that refers to the mapped file; of elements of 2 or 4 bits it has
/// the file's bytes, which several share. Other elements of less than 8 bits
/// are unpacked to one a byte.
class TensorReader {
public:
  TensorReader(mlir::MLIRContext *context, const Model &model,
               uint64_t denseLimit)
      : context(context), model(model), denseLimit(denseLimit) {}

  TensorValue read(const ::onnx::TensorProto &tensor, llvm::StringRef name);
  /// A sparse tensor becomes a dense one.
  mlir::ElementsAttr readSparse(const ::onnx::SparseTensorProto &tensor,
                                llvm::StringRef name);

  /// Whether equal tensors are to be one attribute: a constant of a function is
  /// the same one in all of its instances. Returns what was set before.
  bool setSharing(bool sharing) { return std::exchange(share, sharing); }

  /// The files of external data that were read, in the order of their names.
  std::vector<std::string> filesRead() const;

private:
  struct Bytes {
    llvm::StringRef data;
    std::shared_ptr<void> owner;
    /// Empty where the bytes lie in no file.
    std::string path;
    uint64_t offset = 0;
  };
  Bytes locate(const ::onnx::TensorProto &tensor, llvm::StringRef name,
               uint64_t size);
  Bytes external(const ::onnx::TensorProto &tensor, llvm::StringRef name,
                 uint64_t size);
  Bytes typedData(const ::onnx::TensorProto &tensor, llvm::StringRef name,
                  uint64_t count);
  mlir::ElementsAttr strings(const ::onnx::TensorProto &tensor,
                             llvm::StringRef name, mlir::ShapedType type);
  mlir::ElementsAttr attribute(mlir::ShapedType type, const Bytes &bytes,
                               llvm::StringRef name);
  mlir::ElementsAttr resource(mlir::ShapedType type, const Bytes &bytes,
                              llvm::StringRef name);

  mlir::MLIRContext *context;
  const Model &model;
  uint64_t denseLimit;
  llvm::StringMap<std::shared_ptr<MappedFile>> files;
  /// Resources that may be asked for again, by their place in a file or by a
  /// hash of their bytes.
  llvm::DenseMap<std::pair<uint64_t, mlir::Type>, mlir::ElementsAttr> shared;
  bool share = false;
};

/// The bytes of a constant as ONNX stores them in raw_data.
std::string rawData(mlir::ElementsAttr value);

} // namespace sardonyx::importer

#endif // SARDONYX_LIB_IMPORTER_TENSORS_H
