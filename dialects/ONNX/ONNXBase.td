//===- ONNXBase.td - The onnx dialect, its types and op classes -----------===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef SARDONYX_ONNX_BASE
#define SARDONYX_ONNX_BASE

include "dialects/ONNX/ONNXInterfaces.td"
include "mlir/IR/AttrTypeBase.td"
include "mlir/IR/OpBase.td"
include "mlir/Interfaces/InferTypeOpInterface.td"
include "mlir/Interfaces/SideEffectInterfaces.td"

def ONNX_Dialect : Dialect {
  let name = "onnx";
  let cppNamespace = "::sardonyx::onnx";
  let summary = "Every operator of ONNX, in the form of its latest opset";
  let description = [{
    One op for each operator of `ai.onnx` (`onnx.Conv`), `ai.onnx.ml`
    (`onnx.ml.Scaler`), `ai.onnx.preview.training` (`onnx.training.Adam`) and
    `ai.onnx.preview` (`onnx.preview.FlexAttention`), generated at build time
    from the schemas of the onnx package, and for many of `com.microsoft`
    (`onnx.ms.FusedMatMul`), from contrib/. Other operators are `onnx.Custom`.
  }];
  let useDefaultTypePrinterParser = 1;
  let hasConstantMaterializer = 1;
}

//===----------------------------------------------------------------------===//
// Types
//===----------------------------------------------------------------------===//

class ONNX_Type<string name, string typeMnemonic> : TypeDef<ONNX_Dialect, name> {
  let mnemonic = typeMnemonic;
}

def ONNX_StringType : ONNX_Type<"String", "string"> {
  let summary = "Element type of string tensors";
}

def ONNX_UnknownType : ONNX_Type<"Unknown", "unknown"> {
  let summary = "Type of a value about which nothing is known";
  let description = [{
    What an `onnx.Custom` op returns when the model does not say. Type inference
    may replace it; every verifier lets it pass.
  }];
}

def ONNX_SeqType : ONNX_Type<"Seq", "seq"> {
  let summary = "Sequence of values of one type";
  let parameters = (ins "::mlir::Type":$elementType);
  let assemblyFormat = "`<` $elementType `>`";
  let builders = [TypeBuilderWithInferredContext<(ins "::mlir::Type":$elementType), [{
    return $_get(elementType.getContext(), elementType);
  }]>];
}

def ONNX_OptType : ONNX_Type<"Opt", "opt"> {
  let summary = "A value or nothing";
  let parameters = (ins "::mlir::Type":$elementType);
  let assemblyFormat = "`<` $elementType `>`";
  let builders = [TypeBuilderWithInferredContext<(ins "::mlir::Type":$elementType), [{
    return $_get(elementType.getContext(), elementType);
  }]>];
}

def ONNX_MapType : ONNX_Type<"Map", "map"> {
  let summary = "Map from integers or strings to values";
  let parameters = (ins "::mlir::Type":$keyType, "::mlir::Type":$valueType);
  let assemblyFormat = "`<` $keyType `,` $valueType `>`";
  let genVerifyDecl = 1;
  let builders = [TypeBuilderWithInferredContext<
      (ins "::mlir::Type":$keyType, "::mlir::Type":$valueType), [{
    return $_get(keyType.getContext(), keyType, valueType);
  }]>];
}

def ONNX_SparseType : ONNX_Type<"Sparse", "sparse"> {
  let summary = "Sparse tensor, with the type of the dense one that it stands for";
  let parameters = (ins "::mlir::TensorType":$denseType);
  let assemblyFormat = "`<` $denseType `>`";
  let builders = [TypeBuilderWithInferredContext<(ins "::mlir::TensorType":$denseType), [{
    return $_get(denseType.getContext(), denseType);
  }]>];
}

//===----------------------------------------------------------------------===//
// Op classes
//===----------------------------------------------------------------------===//

// Which types an operand may have is checked by ONNXOpInterface's verifier, from
// the schema tables, for the sake of its sentences. Here stands the text only.
class ONNX_Value<string text> : Type<CPred<"true">, text>;

// A fact of facts.py.
class ONNX_Fact<string name> : NativeOpTrait<name> {
  let cppNamespace = "::sardonyx::onnx";
}

class ONNX_Op<string mnemonic, list<Trait> traits = []>
    : Op<ONNX_Dialect, mnemonic, traits>;

// An op generated from a schema: `index` is its row in the schema table.
class ONNX_SchemaOp<string mnemonic, int index, list<Trait> traits>
    : ONNX_Op<mnemonic, !listconcat(traits, [DeclareOpInterfaceMethods<ONNXOpInterface, ["getSchema"]>])> {
  let hasCustomAssemblyFormat = 1;
  let extraClassDefinition = [{
    const ::sardonyx::onnx::OpSchema &$cppClass::getSchema() {
      return ::sardonyx::onnx::getSchemas()[}] # index # [{];
    }
    ::mlir::ParseResult $cppClass::parse(::mlir::OpAsmParser &parser,
                                         ::mlir::OperationState &result) {
      return ::sardonyx::onnx::parseSchemaOp(parser, result, getSchema());
    }
    void $cppClass::print(::mlir::OpAsmPrinter &printer) {
      ::sardonyx::onnx::printSchemaOp(printer, getOperation(), getSchema());
    }
  }];
}

#endif // SARDONYX_ONNX_BASE
