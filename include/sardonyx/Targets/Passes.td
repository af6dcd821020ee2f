//===- Passes.td - The passes of a module's target ----------*- tablegen -*-===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef SARDONYX_TARGETS_PASSES
#define SARDONYX_TARGETS_PASSES

include "mlir/Pass/PassBase.td"

def SDXRunTarget : Pass<"sdx-run-target", "::mlir::ModuleOp"> {
  let summary = "Run the passes that the module's target has for a stage";
  let description = [{
    `sdx.target` of the module says which target's passes they are: those that
    lay out operands (`stage=layout`), plan kernels (`plan`), or make code of
    them (`codegen`), see Targets/Target.h. After the latter, kernels of which
    the target makes images of its own become declarations, and the images
    `sdx.images` of the module. The dialects that the passes make operations of
    are those of upstream's, sdx, and the target's own.

    ```mlir
    module attributes {sdx.target = #cpu.target<cpu = "haswell", ...>} {
      %r = sdx.matmul ins(%a, %b ...) outs(%zero ...)
    // becomes, with stage=layout,
      %p = cpu.pack_rhs ins(%b ...)
      %r = cpu.packed_matmul ins(%a, %p ...) outs(%zero ...)
    ```
  }];
  let options = [
    Option<"stage", "stage", "::sardonyx::TargetStage",
           "::sardonyx::TargetStage::Layout", "Which passes to run",
           [{::llvm::cl::values(
             clEnumValN(::sardonyx::TargetStage::Layout, "layout",
                        "those that lay out operands"),
             clEnumValN(::sardonyx::TargetStage::Fusion, "fusion",
                        "those that make one kernel of several"),
             clEnumValN(::sardonyx::TargetStage::Plan, "plan",
                        "those that plan kernels"),
             clEnumValN(::sardonyx::TargetStage::Codegen, "codegen",
                        "those that make code of kernels"))}]>,
    Option<"numerics", "numerics", "::sardonyx::Numerics",
           "::sardonyx::Numerics::F32", "How exact f32 is",
           [{::sardonyx::getNumericsValues()}]>,
    Option<"precision", "precision", "::sardonyx::Precision",
           "::sardonyx::Precision::F32", "What operands of f32 may be rounded to",
           [{::sardonyx::getPrecisionValues()}]>
  ];
  let dependentDialects = [
    "::sardonyx::sdx::SDXDialect", "::mlir::affine::AffineDialect",
    "::mlir::arith::ArithDialect",
    "::mlir::bufferization::BufferizationDialect", "::mlir::func::FuncDialect",
    "::mlir::linalg::LinalgDialect", "::mlir::LLVM::LLVMDialect",
    "::mlir::math::MathDialect", "::mlir::memref::MemRefDialect",
    "::mlir::scf::SCFDialect", "::mlir::tensor::TensorDialect",
    "::mlir::vector::VectorDialect"
  ];
}

def SDXApplyPlans : Pass<"sdx-apply-plans", "::mlir::ModuleOp"> {
  let summary = "Give kernels the plans that the module has for them";
  let description = [{
    `sdx.plans` of the module has plans by the fingerprints of kernels
    (Targets/Plans.h); each kernel that it has one for gets it, all others get
    the one of `*`, and what no kernel has is told in `sdx.stale_plans`. A target
    that plans kernels runs it before it does.

    ```mlir
    module attributes {sdx.plans = {"03f8a61b2c94d5e7" = #cpu.conv_plan<im2col>}} {
      func.func private @k0_conv(...) attributes {sdx.kernel} { ...
    // becomes
    module {
      func.func private @k0_conv(...)
          attributes {sdx.kernel, cpu.plan = #cpu.conv_plan<im2col>} { ...
    ```
  }];
  let options = [Option<"plan", "plan", "std::string", "\"cpu.plan\"",
                        "The attribute of a kernel that is its plan">];
}

#endif // SARDONYX_TARGETS_PASSES
