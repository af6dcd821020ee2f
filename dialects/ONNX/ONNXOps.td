//===- ONNXOps.td - The ops of the onnx dialect ---------------------------===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef SARDONYX_ONNX_OPS
#define SARDONYX_ONNX_OPS

include "dialects/ONNX/ONNXBase.td"
include "mlir/IR/SymbolInterfaces.td"
include "mlir/Interfaces/CallInterfaces.td"
include "mlir/Interfaces/ControlFlowInterfaces.td"

// The generated ones.
include "dialects/ONNX/ONNXSchemaOps.td"

def ONNX_YieldOp : ONNX_Op<"Yield", [Pure, ReturnLike, Terminator]> {
  let summary = "Ends a graph inside an op and names its outputs";
  let arguments = (ins Variadic<AnyType>:$values);
  let assemblyFormat = "attr-dict ($values^ `:` type($values))?";
}

def ONNX_CustomOp : ONNX_Op<"Custom"> {
  let summary = "An operator that is none of ONNX's own";
  let description = [{
    Keeps a node of another domain as it was. ONNX leaves an input or output out
    by an empty name; `absent_inputs` and `absent_outputs` give the positions, in
    the node's own counting, that are empty. Attributes are in `node_attributes`
    by name, except graphs, which are the regions, named by `region_names`.

    ```mlir
    %1 = onnx.Custom "com.example" "Frobnicate" (%0)
      {node_attributes = {alpha = 0.5 : f32}} : (tensor<4xf32>) -> tensor<4xf32>
    ```
  }];
  let arguments = (ins StrAttr:$domain, StrAttr:$op_type,
    DefaultValuedAttr<SI64Attr, "1">:$op_version,
    Variadic<AnyType>:$inputs,
    OptionalAttr<DictionaryAttr>:$node_attributes,
    OptionalAttr<DenseI64ArrayAttr>:$absent_inputs,
    OptionalAttr<DenseI64ArrayAttr>:$absent_outputs,
    OptionalAttr<StrArrayAttr>:$region_names);
  let results = (outs Variadic<AnyType>:$outputs);
  let regions = (region VariadicRegion<SizedRegion<1>>:$graphs);
  let assemblyFormat = [{
    $domain $op_type `(` $inputs `)` attr-dict `:` functional-type($inputs, $outputs)
    $graphs
  }];
  let hasVerifier = 1;
}

def ONNX_CallOp : ONNX_Op<"Call",
    [CallOpInterface, DeclareOpInterfaceMethods<SymbolUserOpInterface>]> {
  let summary = "A node that calls a function of the model";
  let description = [{
    The callee is a private function of the module: the model's function as it is
    for these types, attributes and left out inputs, so that nothing in it is open
    that the call decides. The importer makes such a function once for all calls
    that agree. What the call leaves out is no operand, and results that it does
    not name are none; `node_attributes` are those that the model gives the node.

    Types of operands may be more precise than those of the callee's arguments.
    `onnx-inline-functions` puts the body in the place of the call.

    ```mlir
    %1 = onnx.Call @"local.Scale"(%0) {node_attributes = {by = 0.5 : f32}}
      : (tensor<4xf32>) -> tensor<4xf32>
    ```
  }];
  let arguments = (ins FlatSymbolRefAttr:$callee,
    Variadic<AnyType>:$inputs,
    OptionalAttr<DictionaryAttr>:$node_attributes,
    OptionalAttr<DictArrayAttr>:$arg_attrs,
    OptionalAttr<DictArrayAttr>:$res_attrs);
  let results = (outs Variadic<AnyType>:$outputs);
  let assemblyFormat = [{
    $callee `(` $inputs `)` attr-dict `:` functional-type($inputs, $outputs)
  }];
  let extraClassDeclaration = [{
    ::mlir::CallInterfaceCallable getCallableForCallee() {
      return getCalleeAttr();
    }
    void setCalleeFromCallable(::mlir::CallInterfaceCallable callee) {
      setCalleeAttr(::llvm::cast<::mlir::FlatSymbolRefAttr>(
          ::llvm::cast<::mlir::SymbolRefAttr>(callee)));
    }
    ::mlir::Operation::operand_range getArgOperands() { return getInputs(); }
    ::mlir::MutableOperandRange getArgOperandsMutable() {
      return getInputsMutable();
    }
  }];
}

#endif // SARDONYX_ONNX_OPS
