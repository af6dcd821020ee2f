// RUN: sed 's/attributes {sdx.target.*}/{/; s/{ *{/{/' %S/products-of-parts.mlir > %t
// RUN: onnx-opt %t -split-input-file -nv-prepare-products | FileCheck %s

// A module without a target is one for the default one.
// CHECK: module {
// CHECK-LABEL: func.func @parts
// CHECK: sdx.matmul
