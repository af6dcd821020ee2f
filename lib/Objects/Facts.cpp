//===- Facts.cpp - What is known of processors ----------------------------===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Every fact that decides which code is made for a processor, with its source.
//
//===----------------------------------------------------------------------===//

#include "sardonyx/Objects/Facts.h"
#include "TargetMachine.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringSwitch.h"
#include "llvm/MC/MCSubtargetInfo.h"
#include "llvm/TargetParser/X86TargetParser.h"

using namespace mlir;

namespace sardonyx {

/// Whether LLVM's name is that of one of AMD's Zens.
static bool isZen(StringRef cpu) { return cpu.starts_with("znver"); }

std::string nameProcessor(StringRef guess,
                          const llvm::StringMap<bool> &features) {
  if (isZen(guess) || !features.lookup("avx512fp16"))
    return guess.str();
  llvm::SmallVector<StringRef> known;
  if (llvm::X86::parseArchX86(guess) != llvm::X86::CK_None)
    llvm::X86::getFeaturesForCPU(guess, known);
  if (llvm::is_contained(known, "avx512fp16"))
    return guess.str();
  return features.lookup("prefetchi") ? "graniterapids" : "sapphirerapids";
}

bool keepsTileRate(StringRef cpu) { return cpu.starts_with("graniterapids"); }

static unsigned vectorBits(const llvm::MCSubtargetInfo &info) {
  if (info.checkFeatures("+avx512f") && info.checkFeatures("+avx512vl") &&
      info.checkFeatures("+avx512bw") && info.checkFeatures("+avx512dq"))
    return 512;
  return info.checkFeatures("+avx2") ? 256 : 128;
}

static cpu::Int8Product int8Product(const llvm::MCSubtargetInfo &info,
                                    unsigned bits) {
  bool hasVnni =
      (info.checkFeatures("+avx512vnni") && info.checkFeatures("+avx512vl")) ||
      (info.checkFeatures("+avxvnni") && bits < 512);
  bool hasTiles =
      info.checkFeatures("+amx-tile") && info.checkFeatures("+amx-int8");
  return !hasVnni   ? cpu::Int8Product::Maddwd
         : hasTiles ? cpu::Int8Product::Amx
                    : cpu::Int8Product::Vnni;
}

static cpu::Bf16Product bf16Product(const llvm::MCSubtargetInfo &info,
                                    unsigned bits) {
  if (!info.checkFeatures("+avx512bf16") || bits < 512)
    return cpu::Bf16Product::Generic;
  bool hasTiles =
      info.checkFeatures("+amx-tile") && info.checkFeatures("+amx-bf16");
  return hasTiles ? cpu::Bf16Product::Amx : cpu::Bf16Product::Dot;
}

/// By name, not from this machine, so that code for a processor is the same
/// wherever it is made.
static unsigned l2KiB(StringRef cpu) {
  return llvm::StringSwitch<unsigned>(cpu)
      .Cases({"sapphirerapids", "emeraldrapids", "graniterapids",
              "graniterapids-d"},
             2048)
      .Cases({"icelake-server", "tigerlake", "alderlake", "raptorlake"}, 1280)
      .Cases(
          {"skylake-avx512", "cascadelake", "cooperlake", "znver4", "znver5"},
          1024)
      .Cases({"znver1", "znver2", "znver3", "icelake-client", "rocketlake"},
             512)
      .Default(256);
}

/// The same; from the makers' manuals.
static unsigned l1KiB(StringRef cpu) {
  return llvm::StringSwitch<unsigned>(cpu)
      .Cases({"icelake-client", "icelake-server", "rocketlake", "tigerlake",
              "alderlake", "raptorlake", "sapphirerapids", "emeraldrapids",
              "graniterapids", "graniterapids-d", "znver5"},
             48)
      .Default(32);
}

static cpu::TargetTraits traitsOf(const llvm::Triple &triple, StringRef cpu) {
  cpu::TargetTraits traits = cpu::TargetTraits::None;
  // On a Zen 5 weights of a product of one row came from L3 at 122 GB/s by
  // prefetcht0, at 99 by prefetcht1 and at 125 without either. Panels of 98 KB
  // and more that few rows use, fetched while memory gives all it can, come
  // through its 48 KB faster, too (9 to 16 rows 0.87 to 0.90 of the time), and
  // not through 32 KB.
  if (isZen(cpu))
    traits |= cpu::TargetTraits::FastL1Prefetch;
  // On a Zen 4 without AVX-512 a row times 4 MB of weights in the L3 cache goes
  // at 70 GB/s in four bytes (35 GFLOP/s) and, computing, at 31 GFLOP/s in
  // three.
  if (isZen(cpu))
    traits |= cpu::TargetTraits::FastL3;
  // A vmaskmovps to memory takes 18 cycles on a Zen 4 without AVX-512, one on
  // Intel's processors. WebAssembly has none, and asks for each lane.
  if (isZen(cpu) || triple.isWasm())
    traits |= cpu::TargetTraits::SlowMaskedStores;
  return traits;
}

cpu::TargetAttr getTargetAttr(MLIRContext *context,
                              const TargetOptions &options) {
  TargetOptions resolved = resolveTarget(options);
  llvm::Triple triple(resolved.triple);
  unsigned bits = 128, registers = 0;
  auto int8 = cpu::Int8Product::Generic;
  auto bf16 = cpu::Bf16Product::Generic;
  cpu::TargetTraits traits = traitsOf(triple, resolved.cpu);
  bool shufflesBytes = true;
  auto machine = makeTargetMachine(resolved);
  if (!machine) {
    llvm::consumeError(machine.takeError()); // compiling will tell it
  } else if (triple.isX86()) {
    const llvm::MCSubtargetInfo &subtarget = *(*machine)->getMCSubtargetInfo();
    bits = vectorBits(subtarget);
    int8 = int8Product(subtarget, bits);
    bf16 = bf16Product(subtarget, bits);
    shufflesBytes = subtarget.checkFeatures("+ssse3");
    traits |=
        cpu::TargetTraits::RoundsToInteger | cpu::TargetTraits::SaturatesBytes;
    if (subtarget.checkFeatures("+f16c"))
      traits |= cpu::TargetTraits::ConvertsHalves;
    if (subtarget.checkFeatures("+fma"))
      traits |= cpu::TargetTraits::FusedMultiplyAdd;
    if (bits == 512 && subtarget.checkFeatures("+avx512vbmi"))
      traits |= cpu::TargetTraits::PermutesBytes;
  } else if (triple.isAArch64()) {
    registers = 32; // NEON
    traits |= cpu::TargetTraits::FusedMultiplyAdd |
              cpu::TargetTraits::RoundsToInteger |
              cpu::TargetTraits::ConvertsHalves;
  }
  if (shufflesBytes)
    traits |= cpu::TargetTraits::ShufflesBytes;
  auto f32 = bf16 == cpu::Bf16Product::Amx ? cpu::F32Product::AmxBf16x6
                                           : cpu::F32Product::Fma;
  return cpu::TargetAttr::get(context, resolved.triple, resolved.cpu,
                              resolved.features, bits, registers,
                              l1KiB(resolved.cpu), l2KiB(resolved.cpu), f32,
                              int8, bf16, traits);
}

TargetOptions getTargetOptions(cpu::TargetAttr target) {
  TargetOptions options;
  options.triple = target.getTriple().str();
  options.cpu = target.getCpu().str();
  options.features = target.getFeatures().str();
  return options;
}

} // namespace sardonyx
