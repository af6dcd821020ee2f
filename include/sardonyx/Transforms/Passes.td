//===- Passes.td - From onnx to onnx ----------------------*- tablegen -*-===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef SARDONYX_TRANSFORMS_PASSES
#define SARDONYX_TRANSFORMS_PASSES

include "mlir/Pass/PassBase.td"

def OnnxInlineFunctions : Pass<"onnx-inline-functions", "::mlir::ModuleOp"> {
  let summary = "Put the bodies of the model's functions where they are called";
  let description = [{
    Every `onnx.Call` is replaced by its callee's body until none is left, and the
    functions that are called by nobody any more are erased. A node of the body
    is called after the call: node `n` in call `f` becomes `f/0/n`, where the
    number is that of the call in the order of the program. What the body
    returns has the names that the call gave its results.

    A function that calls itself, directly or through others, is an error, and so
    are more than `max-ops` operations: functions that each call the next one
    twice would double them at each step.

    ```mlir
    %0 = onnx.Call @"local.Twice"(%x) : (tensor<4xf32>) -> tensor<4xf32>
    // becomes
    %0 = onnx.Add(%x, %x) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
    ```
  }];
  let dependentDialects = ["::sardonyx::onnx::ONNXDialect",
                           "::mlir::func::FuncDialect"];
  let options = [
    Option<"maxOps", "max-ops", "uint64_t", /*default=*/"1000000",
           "Bound on the operations that inlining makes">
  ];
}

def OnnxObserve : Pass<"onnx-observe", "::mlir::ModuleOp"> {
  let summary = "Observe tensors of the graph by their names";
  let description = [{
    Puts an `sdx.observe` behind what makes each of `tensors`, which are names of
    the main graph: inputs, results of nodes and initializers. It goes along
    with its value through all passes and becomes a part of the kernel that has
    the value, or a call right behind it; no decision of the compiler hangs on
    it, so that results stay the same bits. A session does the same before the
    phase `onnx` for `SessionOptions::observe`, and reads what is seen.

    For `gram` the product of the transposed tensor and itself is made, its last
    axis being the columns: what a layer's input is to GPTQ.

    ```mlir
    %c = onnx.Conv(%x, %w) {onnx.names = ["c"]} : ...
    // becomes, with tensors=c kinds=range|bits
    %c = onnx.Conv(%x, %w) {onnx.names = ["c"]} : ...
    sdx.observe %c site 0 <range|bits> : tensor<1x4x8x8xf32>
    ```
  }];
  let options = [
    ListOption<"tensors", "tensors", "std::string", "Names of tensors">,
    Option<"allFloats", "all-floats", "bool", "false",
           "Observe all inputs of the graph and results of its nodes that are "
           "floats">,
    Option<"kinds", "kinds", "std::string", "\"range\"",
           "What is kept of them: range, moments, bits, channels, gram, or "
           "several, as in range|bits">,
    Option<"axis", "axis", "int64_t", "1",
           "The axis of the channels; -1 is the last">
  ];
  let dependentDialects = ["::sardonyx::onnx::ONNXDialect",
                           "::sardonyx::sdx::SDXDialect"];
}

def OnnxInferShapes : Pass<"onnx-infer-shapes", "::mlir::ModuleOp"> {
  let summary = "Make the types of all values as precise as can be known";
  let description = [{
    Goes through the ops in order, asks each for its result types
    (`ONNXOpInterface::inferOnnxTypes`), and updates results and function types
    in place. Beyond what a schema's own inference knows, target shapes that are
    computed from other shapes are followed element by element, so that a Reshape
    has a rank, and sizes where some are constants.

    A declared size that contradicts what follows from the inputs is replaced,
    with a warning; an op whose inputs break its schema's rules is an error.

    What types hang on is settled on the way. Small tensors whose elements are
    all known become constants (of at most 1024 integers or booleans, or 64
    floats). An If whose condition is known becomes the branch that is taken.
    Where the branches of another If yield different ranks, what reads them is
    put into both branches until they agree. A branch that breaks a rule becomes
    a check that fails the run, if the other branch is sound.

    ```mlir
    %0 = onnx.Concat(%x, %x) {axis = 0} : (tensor<2x?xf32>, tensor<2x?xf32>) -> tensor<*xf32>
    // becomes
    %0 = onnx.Concat(%x, %x) {axis = 0} : (tensor<2x?xf32>, tensor<2x?xf32>) -> tensor<4x?xf32>
    ```
  }];
  let dependentDialects = ["::sardonyx::onnx::ONNXDialect",
                           "::sardonyx::sdx::SDXDialect",
                           "::mlir::arith::ArithDialect"];
}

def OnnxFoldShapes : Pass<"onnx-fold-shapes", "::mlir::ModuleOp"> {
  let summary = "Evaluate the arithmetic on shapes that exporters leave behind";
  let description = [{
    Tensors of at most 1024 integers or booleans, or 64 floats, that follow from
    constants and static sizes become constants. A Where whose condition is
    known becomes the branch taken; of a size that is unknown it is still known
    that it is not negative. A target shape of Reshape with one unknown entry
    becomes a constant with -1.

    ```mlir
    %0 = onnx.Shape(%x) : (tensor<2x?x4xf32>) -> tensor<3xi64>
    %1 = onnx.Gather(%0, %two) : (tensor<3xi64>, tensor<i64>) -> tensor<i64>
    // becomes
    %1 = onnx.Constant() {value = dense<4> : tensor<i64>} : () -> tensor<i64>
    ```
  }];
  let dependentDialects = ["::sardonyx::onnx::ONNXDialect"];
}

def OnnxFoldSequences : Pass<"onnx-fold-sequences", "::mlir::ModuleOp"> {
  let summary = "Take tensors from where they were put into a sequence";
  let description = [{
    SequenceAt at a constant position becomes the tensor that SequenceConstruct
    or SequenceInsert put there. So it has a rank of its own, also where tensors
    of one sequence differ in rank.

    ```mlir
    %0 = onnx.SequenceConstruct(%x, %y) : (tensor<2xf32>, tensor<2x3xf32>) -> !onnx.seq<tensor<*xf32>>
    %1 = onnx.SequenceAt(%0, %one) : (!onnx.seq<tensor<*xf32>>, tensor<i64>) -> tensor<*xf32>
    // becomes
    %1 = onnx.Identity(%y) : (tensor<2x3xf32>) -> tensor<*xf32>
    ```
  }];
  let dependentDialects = ["::sardonyx::onnx::ONNXDialect"];
}

def OnnxFoldBatchNorm : Pass<"onnx-fold-batch-norm", "::mlir::ModuleOp"> {
  let summary = "Fold BatchNormalization into the weights of the Conv before it";
  let description = [{
    The new weights and bias are written as operations on the old ones. No
    constant is looked at: what depends on constants only is computed once, when
    the model is loaded, by the code that the compiler makes for it.

    ```mlir
    %0 = onnx.Conv(%x, %w) ...
    %1 = onnx.BatchNormalization(%0, %scale, %b, %mean, %var) ...
    // becomes, with the shapes brought in line by Reshape
    %s = onnx.Div(%scale, onnx.Sqrt(onnx.Add(%var, %epsilon)))
    %1 = onnx.Conv(%x, onnx.Mul(%w, %s), onnx.Sub(%b, onnx.Mul(%mean, %s))) ...
    ```
  }];
  let dependentDialects = ["::sardonyx::onnx::ONNXDialect"];
}

def OnnxRecompose : Pass<"onnx-recompose", "::mlir::ModuleOp"> {
  let summary = "Raise chains of small ops to the operators that they spell out";
  let description = [{
    Exporters write Gelu (by Erf or by Tanh), LayerNormalization,
    RMSNormalization, HardSigmoid and HardSwish as chains of arithmetic. Chains
    that mean the same as the operator become the operator, which has a better
    lowering. A product of dequantised 8-bit integers becomes MatMulInteger, a
    cast and the scales.

    ```mlir
    %0 = onnx.Div(%x, %sqrt2) : (tensor<4xf32>, tensor<f32>) -> tensor<4xf32>
    %1 = onnx.Erf(%0) : (tensor<4xf32>) -> tensor<4xf32>
    %2 = onnx.Add(%1, %one) : (tensor<4xf32>, tensor<f32>) -> tensor<4xf32>
    %3 = onnx.Mul(%x, %2) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
    %4 = onnx.Mul(%3, %half) : (tensor<4xf32>, tensor<f32>) -> tensor<4xf32>
    // becomes
    %4 = onnx.Gelu(%x) : (tensor<4xf32>) -> tensor<4xf32>
    ```
  }];
  let dependentDialects = ["::sardonyx::onnx::ONNXDialect"];
}

def OnnxPropagateQuantization
    : Pass<"onnx-propagate-quantization", "::mlir::ModuleOp"> {
  let summary = "Compute on integers what lies between quantised tensors";
  let description = [{
    Quantised models compute in floats between DequantizeLinear and
    QuantizeLinear. Where the integers alone give the same result, to the bit:

    - QuantizeLinear of what was dequantised with the same parameters is gone.
    - DequantizeLinear moves down and QuantizeLinear up through what copies
      elements or picks the largest or smallest ones.
    - Bounds before QuantizeLinear (Relu, Clip) become bounds of the integers, or
      nothing where they are the ends of the range.
    - What computes bytes from the bytes of one tensor, element by element,
      becomes a table: Gather from 256 bytes, which are computed once. (Not a few
      instructions on bytes that were floats just before.)

    QuantizeLinear followed by DequantizeLinear rounds, and stays.

    ```mlir
    %0 = onnx.DequantizeLinear(%q, %s, %z) : (tensor<1x8x4x4xui8>, tensor<f32>, tensor<ui8>) -> tensor<1x8x4x4xf32>
    %1 = onnx.MaxPool(%0) {kernel_shape = array<i64: 2, 2>} : (tensor<1x8x4x4xf32>) -> tensor<1x8x3x3xf32>
    %2 = onnx.QuantizeLinear(%1, %s, %z) : (tensor<1x8x3x3xf32>, tensor<f32>, tensor<ui8>) -> tensor<1x8x3x3xui8>
    // becomes
    %2 = onnx.MaxPool(%q) {kernel_shape = array<i64: 2, 2>} : (tensor<1x8x4x4xui8>) -> tensor<1x8x3x3xui8>
    ```
  }];
  let dependentDialects = ["::sardonyx::onnx::ONNXDialect"];
}

//===----------------------------------------------------------------------===//
// Passes that tools choose: no phase runs them. They write what becomes of
// weights as operators on constants, which onnx-materialize-constants computes.
//===----------------------------------------------------------------------===//

def OnnxQuantize : Pass<"onnx-quantize", "::mlir::ModuleOp"> {
  let summary = "Store tensors as integers";
  let description = [{
    With `plan`, a file of sardonyx.quantization (JSON, format QDQ), each tensor
    that the plan names becomes what DequantizeLinear makes of its
    QuantizeLinear, weights and biases too.

    With `type`, without data: `int8-dynamic` has each MatMul and Gemm by
    constants round its input as it comes (DynamicQuantizeLinear,
    MatMulInteger), with a scale for each column of the weights; `int8`, `int4`
    and `int2` store the weights of MatMul and Gemm in blocks of `block` inputs
    (0: one for each column), and int8 those of convolutions, a scale for each
    output. A node that keeps its weights is told in a remark.

    ```mlir
    %0 = onnx.MatMul(%x, %w) : (tensor<1x64xf32>, tensor<64x8xf32>) -> tensor<1x8xf32>
    // becomes, with type=int4
    %q = onnx.QuantizeLinear(%w, %scale, %zero) {axis = 0, block_size = 32} : ... -> tensor<64x8xsi4>
    %d = onnx.DequantizeLinear(%q, %scale, %zero) {axis = 0, block_size = 32} : ... -> tensor<64x8xf32>
    %0 = onnx.MatMul(%x, %d) : (tensor<1x64xf32>, tensor<64x8xf32>) -> tensor<1x8xf32>
    ```
  }];
  let dependentDialects = ["::sardonyx::onnx::ONNXDialect"];
  let options = [
    Option<"plan", "plan", "std::string", "", "A plan of sardonyx.quantization">,
    Option<"type", "type", "std::string", "",
           "int8-dynamic, int8, int4 or int2">,
    Option<"block", "block", "int64_t", "32", "Inputs of a block">,
    ListOption<"exclude", "exclude", "std::string", "Nodes to leave as they are">
  ];
}

def OnnxEqualize : Pass<"onnx-equalize", "::mlir::ModuleOp"> {
  let summary = "Give channels equal ranges from layer to layer";
  let description = [{
    Cross-layer equalisation (arXiv:1906.04721): where a layer alone reads
    another's channels, through nothing that a positive factor does not pass
    (Relu, LeakyRelu, pools, Flatten, an Add of a constant), the first's weights
    and bias are divided by sqrt(r1 / r2) channel by channel, and the second's
    multiplied by it; r1 and r2 are the largest magnitudes of the two. The model
    computes the same, but for rounding. BatchNormalization should be folded
    before (`onnx-fold-batch-norm`).

    ```mlir
    %0 = onnx.Conv(%x, %w1) ...
    %1 = onnx.Relu(%0) ...
    %2 = onnx.Conv(%1, %w2) ...
    // becomes
    %0 = onnx.Conv(%x, onnx.Div(%w1, %s)) ...
    %1 = onnx.Relu(%0) ...
    %2 = onnx.Conv(%1, onnx.Mul(%w2, %s)) ...
    ```
  }];
  let dependentDialects = ["::sardonyx::onnx::ONNXDialect"];
  let options = [
    Option<"iterations", "iterations", "unsigned", "1",
           "How often to go through the layers">
  ];
}

def OnnxPrune : Pass<"onnx-prune", "::mlir::ModuleOp"> {
  let summary = "Put zeros in the place of small weights";
  let description = [{
    `kind=magnitude`: of each layer's weights (Conv, ConvTranspose, MatMul, Gemm)
    as many as `amount` says, those of the smallest magnitudes. `kind=2:4`: two
    of each four in a row of those that are summed up. `kind=block`: whole blocks
    of outputs by inputs, those of the smallest sums of magnitudes. What comes
    out is dense and holds zeros.

    ```mlir
    %0 = onnx.MatMul(%x, %w) : (tensor<1x64xf32>, tensor<64x8xf32>) -> tensor<1x8xf32>
    // becomes, with %marks of 0 and 1 made by TopK and ScatterElements
    %0 = onnx.MatMul(%x, onnx.Mul(%w, %marks)) : (tensor<1x64xf32>, tensor<64x8xf32>) -> tensor<1x8xf32>
    ```
  }];
  let dependentDialects = ["::sardonyx::onnx::ONNXDialect"];
  let options = [
    Option<"kind", "kind", "std::string", "\"magnitude\"",
           "magnitude, 2:4 or block">,
    Option<"amount", "amount", "double", "0.5", "Share of zeros, 0 to 1">,
    ListOption<"block", "block", "int64_t", "Outputs and inputs of a block">,
    ListOption<"exclude", "exclude", "std::string", "Nodes to leave as they are">
  ];
}

def OnnxConvertPrecision : Pass<"onnx-convert-precision", "::mlir::ModuleOp"> {
  let summary = "Compute on floats of 16 bits";
  let description = [{
    Convolutions and products of f32 take operands of 16 bits, and so does what
    moves numbers or computes each from a few, where its operands have 16 bits
    already. Sums over many numbers, exponentials and quotients stay f32. A
    constant with numbers beyond f16 keeps its node in f32, with a remark.

    ```mlir
    %0 = onnx.MatMul(%x, %w) : (tensor<1x64xf32>, tensor<64x8xf32>) -> tensor<1x8xf32>
    // becomes
    %1 = onnx.Cast(%x) {to = 10} : (tensor<1x64xf32>) -> tensor<1x64xf16>
    %2 = onnx.Cast(%w) {to = 10} : (tensor<64x8xf32>) -> tensor<64x8xf16>
    %3 = onnx.MatMul(%1, %2) : (tensor<1x64xf16>, tensor<64x8xf16>) -> tensor<1x8xf16>
    %0 = onnx.Cast(%3) {to = 1} : (tensor<1x8xf16>) -> tensor<1x8xf32>
    ```
  }];
  let dependentDialects = ["::sardonyx::onnx::ONNXDialect"];
  let options = [
    Option<"type", "type", "std::string", "\"f16\"", "f16 or bf16">,
    Option<"keepIo", "keep-io", "bool", "true",
           "Leave the model's inputs and results in f32">,
    ListOption<"exclude", "exclude", "std::string", "Nodes to leave in f32">,
    ListOption<"excludeOps", "exclude-ops", "std::string",
               "Operators to leave in f32">
  ];
}

#endif // SARDONYX_TRANSFORMS_PASSES
