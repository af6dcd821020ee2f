// RUN: onnx-opt %s --target=cooperlake -split-input-file -cpu-lower-contractions -canonicalize -cse \
// RUN:   | FileCheck %s --check-prefixes=CHECK,QUADS
// RUN: onnx-opt %s --target=haswell -split-input-file -cpu-lower-contractions -canonicalize -cse \
// RUN:   | FileCheck %s --check-prefixes=CHECK,PAIRS
// RUN: onnx-opt %s -split-input-file -cpu-lower-contractions -canonicalize -cse \
// RUN:   | FileCheck %s --check-prefixes=CHECK,GENERIC
// RUN: onnx-opt %s --target=sapphirerapids -split-input-file -cpu-lower-contractions -canonicalize -cse \
// RUN:   | FileCheck %s --check-prefix=TILES

// Ten values of k: two groups of four, and one of two whose other bytes are not
// read but zero.
// CHECK-LABEL: func.func private @bytes
// CHECK: scf.for %[[K:.*]] = %c0 to %c2 step %c1
// CHECK: %[[AT:.*]] = arith.muli %[[K]], %c4
// CHECK: vector.load %arg0[%{{.*}}, %[[AT]]] : memref<8x10xi8>, vector<4xi8>
// QUADS-COUNT-16: llvm.call_intrinsic "llvm.x86.avx512.vpdpbusd.512"{{.*}} : (vector<16xi32>, vector<64xi8>, vector<64xi8>) -> vector<16xi32>
// GENERIC: arith.muli %{{.*}}, %{{.*}} : vector<32xi32>
// CHECK: scf.yield
// CHECK: memref.load %arg0[%{{.*}}, %c8] : memref<8x10xi8>
// CHECK: memref.load %arg0[%{{.*}}, %c9] : memref<8x10xi8>
// CHECK-NOT: memref.load %arg0[%{{.*}}, %c10]
// CHECK: vector.store {{.*}} : memref<8x64xi32>
func.func private @bytes(%a: memref<8x10xi8>, %b: memref<2x3x128xi8>, %out: memref<8x64xi32>) attributes {sdx.kernel} {
  %ta = bufferization.to_tensor %a restrict : memref<8x10xi8> to tensor<8x10xi8>
  %tb = bufferization.to_tensor %b restrict : memref<2x3x128xi8> to tensor<2x3x128xi8>
  %zero = arith.constant 0 : i32
  %e = tensor.empty() : tensor<8x64xi32>
  %f = linalg.fill ins(%zero : i32) outs(%e : tensor<8x64xi32>) -> tensor<8x64xi32>
  %m = cpu.packed_matmul ins(%ta, %tb : tensor<8x10xi8>, tensor<2x3x128xi8>)
      outs(%f : tensor<8x64xi32>) {packing = #cpu.packing<i8, panel = 32>} -> tensor<8x64xi32>
  bufferization.materialize_in_destination %m in restrict writable %out
      : (tensor<8x64xi32>, memref<8x64xi32>) -> ()
  return
}

// -----

// Bytes that were widened: a product and a sum for two values of k, of each
// register.
// CHECK-LABEL: func.func private @widened
// PAIRS: scf.for %[[K:.*]] = %c0 to %c5 step %c1
// PAIRS: %[[AT:.*]] = arith.muli %[[K]], %c2
// PAIRS: vector.load %arg1[{{.*}}] : memref<2x5x64xi16>, vector<32xi16>
// PAIRS: vector.load %arg0[%{{.*}}, %[[AT]]] : memref<8x10xi16>, vector<2xi16>
// PAIRS-NOT: arith.sh
// PAIRS: llvm.call_intrinsic "llvm.x86.avx2.pmadd.wd"{{.*}} : (vector<16xi16>, vector<16xi16>) -> vector<8xi32>
// PAIRS: arith.addi %{{.*}}, %{{.*}} : vector<8xi32>
// PAIRS-NOT: arith.sh
// PAIRS: scf.yield
// GENERIC: arith.shrsi
// GENERIC: arith.muli %{{.*}}, %{{.*}} : vector<32xi32>
func.func private @widened(%a: memref<8x10xi16>, %b: memref<2x5x64xi16>, %out: memref<8x64xi32>) attributes {sdx.kernel} {
  %ta = bufferization.to_tensor %a restrict : memref<8x10xi16> to tensor<8x10xi16>
  %tb = bufferization.to_tensor %b restrict : memref<2x5x64xi16> to tensor<2x5x64xi16>
  %zero = arith.constant 0 : i32
  %e = tensor.empty() : tensor<8x64xi32>
  %f = linalg.fill ins(%zero : i32) outs(%e : tensor<8x64xi32>) -> tensor<8x64xi32>
  %m = cpu.packed_matmul ins(%ta, %tb : tensor<8x10xi16>, tensor<2x5x64xi16>)
      outs(%f : tensor<8x64xi32>) {packing = #cpu.packing<i16, panel = 32>} -> tensor<8x64xi32>
  bufferization.materialize_in_destination %m in restrict writable %out
      : (tensor<8x64xi32>, memref<8x64xi32>) -> ()
  return
}

// -----

// 56 rows are a block of 32, one of 16, and one whose first eight rows are
// those of the block before; of 138 values of k 128 fill tile registers, eight
// are two groups, and two are left.
// TILES-LABEL: func.func private @blocks
// TILES: %[[SUMS:.*]] = memref.alloc() {alignment = 64 : i64} : memref<32x32xi32>
// TILES-COUNT-4: "llvm.x86.tilezero.internal"
// TILES: scf.for %{{.*}} = %c0 to %c2 step %c1 iter_args({{.*}}) -> (!llvm.x86_amx, !llvm.x86_amx, !llvm.x86_amx, !llvm.x86_amx)
// TILES-COUNT-4: "llvm.x86.tileloadd64.internal"
// TILES-COUNT-4: "llvm.x86.tdpbusd.internal"
// TILES: scf.yield
// TILES-COUNT-4: "llvm.x86.tilestored64.internal"
// TILES: scf.for %{{.*}} = %c0 to %c32 step %c8
// TILES-COUNT-8: vector.load %[[SUMS]]
// TILES: scf.for %{{.*}} = %c0 to %c2 step %c1
// TILES-COUNT-16: vpdpbusd
// TILES: memref.load %arg0[%{{.*}}, %c136]
// TILES: memref.load %arg0[%{{.*}}, %c137]
// TILES-COUNT-2: "llvm.x86.tilezero.internal"
// TILES-COUNT-2: "llvm.x86.tdpbusd.internal"
// TILES-COUNT-2: "llvm.x86.tilezero.internal"
// TILES-COUNT-2: "llvm.x86.tdpbusd.internal"
// TILES-NOT: tdpbusd
// TILES-COUNT-8: vector.load %[[SUMS]]
// TILES: scf.for %{{.*}} = %c0 to %c2 step %c1
// TILES-COUNT-16: vpdpbusd
// TILES: memref.dealloc %[[SUMS]]
func.func private @blocks(%a: memref<56x138xi8>, %b: memref<2x35x128xi8>, %out: memref<56x64xi32>) attributes {sdx.kernel} {
  %ta = bufferization.to_tensor %a restrict : memref<56x138xi8> to tensor<56x138xi8>
  %tb = bufferization.to_tensor %b restrict : memref<2x35x128xi8> to tensor<2x35x128xi8>
  %zero = arith.constant 0 : i32
  %e = tensor.empty() : tensor<56x64xi32>
  %f = linalg.fill ins(%zero : i32) outs(%e : tensor<56x64xi32>) -> tensor<56x64xi32>
  %m = cpu.packed_matmul ins(%ta, %tb : tensor<56x138xi8>, tensor<2x35x128xi8>)
      outs(%f : tensor<56x64xi32>) {packing = #cpu.packing<i8, panel = 32>} -> tensor<56x64xi32>
  bufferization.materialize_in_destination %m in restrict writable %out
      : (tensor<56x64xi32>, memref<56x64xi32>) -> ()
  return
}

// -----

// 35 values of k: a step of tile registers, a pair, and one whose other half is
// not read but zero.
// CHECK-LABEL: func.func private @bf16
// TILES-LABEL: func.func private @bf16
// TILES: memref.alloc() {alignment = 64 : i64} : memref<32x32xf32>
// TILES-COUNT-4: "llvm.x86.tdpbf16ps.internal"
// TILES-COUNT-8: arith.addf {{.*}} : vector<32xf32>
// TILES-COUNT-16: "llvm.x86.avx512bf16.dpbf16ps.512"
// TILES: memref.load %arg0[%{{.*}}, %c34]
// TILES-NOT: memref.load %arg0[%{{.*}}, %c35]
// QUADS: vector.load %arg0[%{{.*}}] : memref<32x35xbf16>, vector<2xbf16>
// QUADS-COUNT-16: "llvm.x86.avx512bf16.dpbf16ps.512"{{.*}} : (vector<16xf32>, vector<32xbf16>, vector<32xbf16>) -> vector<16xf32>
// PAIRS-COUNT-8: vector.fma {{.*}} : vector<16xf32>
// GENERIC: arith.shli %{{.*}}, %{{.*}} : vector<32xi32>
// GENERIC: vector.fma {{.*}} : vector<32xf32>
func.func private @bf16(%a: memref<32x35xbf16>, %b: memref<1x18x64xbf16>, %out: memref<32x32xf32>) attributes {sdx.kernel} {
  %ta = bufferization.to_tensor %a restrict : memref<32x35xbf16> to tensor<32x35xbf16>
  %tb = bufferization.to_tensor %b restrict : memref<1x18x64xbf16> to tensor<1x18x64xbf16>
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<32x32xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<32x32xf32>) -> tensor<32x32xf32>
  %m = cpu.packed_matmul ins(%ta, %tb : tensor<32x35xbf16>, tensor<1x18x64xbf16>)
      outs(%f : tensor<32x32xf32>) {packing = #cpu.packing<bf16, panel = 32>} -> tensor<32x32xf32>
  bufferization.materialize_in_destination %m in restrict writable %out
      : (tensor<32x32xf32>, memref<32x32xf32>) -> ()
  return
}

// -----

// Numbers in three bytes: a row of a panel is six lines of 16 bytes, of which
// each register takes its own, the last from the end of what there is. Four
// numbers go to each lane of 128 bits, where they are spread.
// CHECK-LABEL: func.func private @three_bytes
// GENERIC: scf.for %[[K:.*]] = %c0 to %c10 step
// GENERIC: %[[BYTES:.*]] = vector.load %arg1[%{{.*}}, %[[K]], %c0] : memref<2x10x96xi8>, vector<64xi8>
// GENERIC: %[[WORDS:.*]] = vector.bitcast %[[BYTES]] : vector<64xi8> to vector<16xi32>
// GENERIC: vector.shuffle %[[WORDS]], %[[WORDS]] [0, 1, 2, 2, 3, 4, 5, 5, 6, 7, 8, 8, 9, 10, 11, 11]
// GENERIC: vector.shuffle %{{.*}} [64, 0, 1, 2, 64, 3, 4, 5, 64, 6, 7, 8, 64, 9, 10, 11, 64, 16, 17, 18,
// GENERIC: arith.sitofp %{{.*}} : vector<16xi32> to vector<16xf32>
// GENERIC: vector.load %arg1[%{{.*}}, %[[K]], %c32] : memref<2x10x96xi8>, vector<64xi8>
// GENERIC: vector.fma
// GENERIC: scf.yield
func.func private @three_bytes(%a: memref<1x10xf32>, %b: memref<2x10x96xi8>, %s: memref<2x1x1x32xf32>,
    %out: memref<1x64xf32>) attributes {sdx.kernel} {
  %ta = bufferization.to_tensor %a restrict : memref<1x10xf32> to tensor<1x10xf32>
  %tb = bufferization.to_tensor %b restrict : memref<2x10x96xi8> to tensor<2x10x96xi8>
  %ts = bufferization.to_tensor %s restrict : memref<2x1x1x32xf32> to tensor<2x1x1x32xf32>
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<1x64xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<1x64xf32>) -> tensor<1x64xf32>
  %m = cpu.packed_matmul ins(%ta, %tb, %ts : tensor<1x10xf32>, tensor<2x10x96xi8>, tensor<2x1x1x32xf32>)
      outs(%f : tensor<1x64xf32>) {block = 10 : i64, packing = #cpu.packing<w24, panel = 32>} -> tensor<1x64xf32>
  bufferization.materialize_in_destination %m in restrict writable %out
      : (tensor<1x64xf32>, memref<1x64xf32>) -> ()
  return
}

// -----

// Three numbers in eight bytes: shifts bring two of each to the top of a lane,
// and the third ones of two registers together. A tenth value of k is the rest.
// CHECK-LABEL: func.func private @triples
// GENERIC: scf.for %[[I:.*]] = %c0 to %c3 step
// GENERIC: memref.prefetch %arg1
// GENERIC: %[[LEFT:.*]] = vector.load %arg1[%{{.*}}, %[[I]], %c0] : memref<2x4x32xi64>, vector<8xi64>
// GENERIC: %[[RIGHT:.*]] = vector.load %arg1[%{{.*}}, %[[I]], %c8] : memref<2x4x32xi64>, vector<8xi64>
// GENERIC: arith.shrui %[[LEFT]]
// GENERIC: arith.shli %[[RIGHT]]
// GENERIC: vector.shuffle %{{.*}} [0, 17, 2, 19, 4, 21,
// GENERIC: arith.sitofp %{{.*}} : vector<16xi32> to vector<16xf32>
// GENERIC: vector.fma
// GENERIC: scf.yield
// GENERIC: vector.load %arg1[%{{.*}}, %c3, %c0] : memref<2x4x32xi64>, vector<8xi64>
func.func private @triples(%a: memref<1x10xf32>, %b: memref<2x4x32xi64>, %s: memref<2x1x1x32xf32>,
    %out: memref<1x64xf32>) attributes {sdx.kernel} {
  %ta = bufferization.to_tensor %a restrict : memref<1x10xf32> to tensor<1x10xf32>
  %tb = bufferization.to_tensor %b restrict : memref<2x4x32xi64> to tensor<2x4x32xi64>
  %ts = bufferization.to_tensor %s restrict : memref<2x1x1x32xf32> to tensor<2x1x1x32xf32>
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<1x64xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<1x64xf32>) -> tensor<1x64xf32>
  %m = cpu.packed_matmul ins(%ta, %tb, %ts : tensor<1x10xf32>, tensor<2x4x32xi64>, tensor<2x1x1x32xf32>)
      outs(%f : tensor<1x64xf32>) {block = 10 : i64, packing = #cpu.packing<w21, panel = 32>} -> tensor<1x64xf32>
  bufferization.materialize_in_destination %m in restrict writable %out
      : (tensor<1x64xf32>, memref<1x64xf32>) -> ()
  return
}

// -----

// Of an open number of values of k tile registers take those that fill them,
// and the last group may not be full: bytes past the end are zero.
// CHECK-LABEL: func.func private @open_depth
// CHECK: %[[K:.*]] = memref.dim %arg0, %c2
// CHECK: %[[FULL:.*]] = arith.divui %[[K]], %c4
// CHECK: scf.for %{{.*}} = %c0 to %[[FULL]] step %c1
// CHECK: vector.load %arg0[{{.*}} : memref<3x32x?xi8>, vector<4xi8>
// CHECK: scf.for
// CHECK: %[[THERE:.*]] = arith.cmpi slt, %{{.*}}, %[[K]]
// CHECK: memref.load %arg0
// CHECK: arith.select %[[THERE]]
// TILES-LABEL: func.func private @open_depth
// TILES: %[[K:.*]] = memref.dim %arg0, %c2
// TILES: %[[STEPS:.*]] = arith.divui %[[K]], %c64
// TILES: scf.for %{{.*}} = %c0 to %[[STEPS]]
// TILES: llvm.x86.tdpbusd.internal
// TILES: %[[FIRST:.*]] = arith.muli %[[STEPS]], %c16
// TILES: llvm.x86.avx512.vpdpbusd.512
func.func private @open_depth(%a: memref<3x32x?xi8>, %b: memref<3x2x?x128xi8>, %out: memref<3x32x64xi32>) attributes {sdx.kernel} {
  %ta = bufferization.to_tensor %a restrict : memref<3x32x?xi8> to tensor<3x32x?xi8>
  %tb = bufferization.to_tensor %b restrict : memref<3x2x?x128xi8> to tensor<3x2x?x128xi8>
  %zero = arith.constant 0 : i32
  %e = tensor.empty() : tensor<3x32x64xi32>
  %f = linalg.fill ins(%zero : i32) outs(%e : tensor<3x32x64xi32>) -> tensor<3x32x64xi32>
  %m = cpu.packed_matmul ins(%ta, %tb : tensor<3x32x?xi8>, tensor<3x2x?x128xi8>)
      outs(%f : tensor<3x32x64xi32>) {packing = #cpu.packing<i8, panel = 32>} -> tensor<3x32x64xi32>
  bufferization.materialize_in_destination %m in restrict writable %out
      : (tensor<3x32x64xi32>, memref<3x32x64xi32>) -> ()
  return
}
