// RUN: onnx-opt %s --canonicalize | FileCheck %s

// CHECK-LABEL: @checks
// CHECK-NOT: holds
// CHECK: sdx.check %{{.*}}, "may not hold"
// CHECK: sdx.check %{{.*}}, "never holds"
func.func @checks(%c: i1) {
  %true = arith.constant true
  %false = arith.constant false
  sdx.check %true, "holds"
  sdx.check %c, "may not hold"
  sdx.check %false, "never holds"
  return
}
