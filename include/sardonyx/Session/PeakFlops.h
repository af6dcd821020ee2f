//===- PeakFlops.h - What this machine could do -----------------*- C++ -*-===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef SARDONYX_SESSION_PEAKFLOPS_H
#define SARDONYX_SESSION_PEAKFLOPS_H

namespace sardonyx {

/// The rate of independent f32 fused multiply-adds in registers on `threads`
/// threads (0, and at most: one for each core of the process), in GFLOP/s, a
/// multiply-add being two operations. Takes about a quarter of a second.
double measurePeakGflops(unsigned threads);

/// The rate at which `threads` threads, counted as above, read memory that is
/// in no cache, in GB/s (10^9 bytes). Takes some 0.3 seconds and 256 MiB.
double measureMemoryBandwidth(unsigned threads);

} // namespace sardonyx

#endif // SARDONYX_SESSION_PEAKFLOPS_H
