//===- ONNXOps.td - The ops of the onnx dialect ---------------------------===//

#ifndef SARDONYX_ONNX_OPS
#define SARDONYX_ONNX_OPS

include "dialects/ONNX/ONNXBase.td"
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

#endif // SARDONYX_ONNX_OPS
