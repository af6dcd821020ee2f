// RUN: onnx-opt %s --sdx-decompose-tensor-ops | FileCheck %s

// CHECK-LABEL: @pad
// CHECK: %[[E:.*]] = tensor.empty(%{{.*}}) : tensor<4x?xf32>
// CHECK: %[[F:.*]] = linalg.fill ins(%{{.*}} : f32) outs(%[[E]]
// CHECK: tensor.insert_slice %arg0 into %[[F]][1, 2] [2, %{{.*}}] [1, 1]
func.func @pad(%x: tensor<2x?xf32>, %v: f32) -> tensor<4x?xf32> {
  %0 = tensor.pad %x low[1, 2] high[1, 0] {
  ^bb0(%i: index, %j: index):
    tensor.yield %v : f32
  } : tensor<2x?xf32> to tensor<4x?xf32>
  return %0 : tensor<4x?xf32>
}

// CHECK-LABEL: @others
// CHECK-NOT: tensor.concat
// CHECK: tensor.insert_slice
// CHECK: tensor.insert_slice
// CHECK: linalg.fill
// CHECK: linalg.generic
func.func @others(%a: tensor<2xf32>, %b: tensor<3xf32>, %v: f32) -> (tensor<5xf32>, tensor<7xf32>, tensor<4xindex>) {
  %0 = tensor.concat dim(0) %a, %b : (tensor<2xf32>, tensor<3xf32>) -> tensor<5xf32>
  %1 = tensor.splat %v : tensor<7xf32>
  %2 = tensor.generate {
  ^bb0(%i: index):
    %s = arith.addi %i, %i : index
    tensor.yield %s : index
  } : tensor<4xindex>
  return %0, %1, %2 : tensor<5xf32>, tensor<7xf32>, tensor<4xindex>
}
