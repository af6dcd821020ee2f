// A product of [16, 64] and [64, 8] in f16 with sums in f32, by one warp: tiles
// come by cp.async into shared memory and from there by ldmatrix to mma.sync.
module attributes {gpu.container_module} {
  gpu.module @kernels {
    memref.global "private" @left : memref<16x16xf16, 3>
    memref.global "private" @right : memref<16x8xf16, 3>
    gpu.func @product(%a: memref<16x64xf16>, %b: memref<64x8xf16>, %c: memref<16x8xf32>) kernel attributes {known_block_size = array<i32: 32, 1, 1>} {
      %c0 = arith.constant 0 : index
      %c1 = arith.constant 1 : index
      %c2 = arith.constant 2 : index
      %c4 = arith.constant 4 : index
      %c8 = arith.constant 8 : index
      %c16 = arith.constant 16 : index
      %c64 = arith.constant 64 : index
      %zero = arith.constant dense<0.0> : vector<2x2xf32>
      %left = memref.get_global @left : memref<16x16xf16, 3>
      %right = memref.get_global @right : memref<16x8xf16, 3>
      %lane = gpu.thread_id x
      %half = arith.divui %lane, %c2 : index
      %odd = arith.remui %lane, %c2 : index
      %chunk = arith.muli %odd, %c8 : index
      %row = arith.remui %lane, %c16 : index
      %upper = arith.divui %lane, %c16 : index
      %column = arith.muli %upper, %c8 : index
      %first = arith.cmpi ult, %lane, %c16 : index
      %sums = scf.for %k = %c0 to %c64 step %c16 iter_args(%sum = %zero) -> (vector<2x2xf32>) {
        %from = arith.addi %k, %chunk : index
        %t0 = nvgpu.device_async_copy %a[%half, %from], %left[%half, %chunk], 8 : memref<16x64xf16> to memref<16x16xf16, 3>
        scf.if %first {
          %r = arith.addi %k, %lane : index
          %t1 = nvgpu.device_async_copy %b[%r, %c0], %right[%lane, %c0], 8 : memref<64x8xf16> to memref<16x8xf16, 3>
        }
        %group = nvgpu.device_async_create_group %t0
        nvgpu.device_async_wait %group
        gpu.barrier
        %x = nvgpu.ldmatrix %left[%row, %column] {numTiles = 4 : i32, transpose = false} : memref<16x16xf16, 3> -> vector<4x2xf16>
        %y = nvgpu.ldmatrix %right[%row, %c0] {numTiles = 2 : i32, transpose = true} : memref<16x8xf16, 3> -> vector<2x2xf16>
        %next = nvgpu.mma.sync(%x, %y, %sum) {mmaShape = [16, 8, 16]} : (vector<4x2xf16>, vector<2x2xf16>, vector<2x2xf32>) -> vector<2x2xf32>
        gpu.barrier
        scf.yield %next : vector<2x2xf32>
      }
      %g = arith.divui %lane, %c4 : index
      %below = arith.addi %g, %c8 : index
      %t = arith.remui %lane, %c4 : index
      %n = arith.muli %t, %c2 : index
      %upperSums = vector.extract %sums[0] : vector<2xf32> from vector<2x2xf32>
      %lowerSums = vector.extract %sums[1] : vector<2xf32> from vector<2x2xf32>
      vector.store %upperSums, %c[%g, %n] : memref<16x8xf32>, vector<2xf32>
      vector.store %lowerSums, %c[%below, %n] : memref<16x8xf32>, vector<2xf32>
      gpu.return
    }
  }
}
