// RUN: onnx-opt %s --target=sapphirerapids -cpu-lower-rows -cse | FileCheck %s --check-prefix=VBMI
// RUN: onnx-opt %s --target=haswell -cpu-lower-rows -cse | FileCheck %s --check-prefix=AVX2
// RUN: onnx-opt %s --target=x86-64 -cpu-lower-rows -cse | FileCheck %s --check-prefix=SSE2

// A table of 256 bytes stays in registers: 64 elements by two instructions that
// pick from 128 bytes each, 32 by 16 that pick from 16 bytes. Without such
// instructions each element is a load.

// VBMI-LABEL:   func.func private @table
// VBMI-COUNT-4:   vector.load %arg0[%{{.*}}] : memref<256xi8>, vector<64xi8>
// VBMI:           scf.for
// VBMI:             vector.load %arg1{{.*}} vector<64xi8>
// VBMI-NOT:         vector<{{.*}}xindex>
// VBMI-COUNT-2:     llvm.call_intrinsic "llvm.x86.avx512.vpermi2var.qi.512"
// VBMI:             arith.select {{.*}} : vector<64xi1>, vector<64xi8>

// AVX2-LABEL:   func.func private @table
// AVX2-COUNT-16:  vector.load %arg0[%{{.*}}] : memref<256xi8>, vector<16xi8>
// AVX2:           scf.for
// AVX2:             vector.load %arg1{{.*}} vector<32xi8>
// AVX2:             llvm.call_intrinsic "llvm.x86.avx2.pshuf.b"
// AVX2-COUNT-7:     llvm.intr.ssub.sat
// AVX2:             arith.xori {{.*}} : vector<32xi8>

// SSE2-LABEL:   func.func private @table
// SSE2:           scf.for
// SSE2-COUNT-16:    memref.load %arg0
func.func private @table(%table: memref<256xi8>, %x: memref<4096xi8>, %out: memref<4096xi8>) attributes {sdx.kernel} {
  %t = bufferization.to_tensor %table restrict : memref<256xi8> to tensor<256xi8>
  %a = bufferization.to_tensor %x restrict : memref<4096xi8> to tensor<4096xi8>
  %e = tensor.empty() : tensor<4096xi8>
  %y = linalg.generic {
    indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> (i)>],
    iterator_types = ["parallel"]}
    ins(%a : tensor<4096xi8>) outs(%e : tensor<4096xi8>) {
  ^bb0(%b: i8, %o: i8):
    %i = arith.index_castui %b : i8 to index
    %v = tensor.extract %t[%i] : tensor<256xi8>
    linalg.yield %v : i8
  } -> tensor<4096xi8>
  bufferization.materialize_in_destination %y in restrict writable %out : (tensor<4096xi8>, memref<4096xi8>) -> ()
  return
}
