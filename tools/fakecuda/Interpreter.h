//===- Interpreter.h - Runs PTX without a GPU -------------------*- C++ -*-===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Kernels in PTX are run on the CPU, by the definition of PTX: for tests on
// machines that have no GPU. Rules that a GPU leaves unchecked are checked here
// (bounds, alignment, races on shared memory, copies that nobody waited for),
// and what the interpreter doesn't know it refuses by name.
//
//===----------------------------------------------------------------------===//

#ifndef SARDONYX_TOOLS_FAKECUDA_INTERPRETER_H
#define SARDONYX_TOOLS_FAKECUDA_INTERPRETER_H

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <shared_mutex>
#include <string>
#include <string_view>
#include <vector>

namespace sardonyx::fakecuda {

/// Device memory. Its addresses are host addresses, so that copies are memcpy.
/// Around each allocation lie 4096 bytes that belong to nobody, and all bytes
/// are 0xff (NaN in each float type) when they are allocated and before they
/// are released. All functions may be called from several threads; a launch
/// holds off allocate and release until it ends.
class Memory {
public:
  Memory() = default;
  ~Memory();
  Memory(const Memory &) = delete;
  Memory &operator=(const Memory &) = delete;

  /// Returns 0 when there is no memory. `alignment` is a power of two. An
  /// allocation of 0 bytes has an address of its own.
  uint64_t allocate(size_t bytes, size_t alignment = 256);
  /// Returns false unless `address` is the start of an allocation.
  bool release(uint64_t address);
  /// Returns nullptr unless [address, address + bytes) lies in one allocation.
  void *resolve(uint64_t address, size_t bytes) const;
  /// Tells the allocation that holds `address`, if one does.
  bool find(uint64_t address, uint64_t &begin, size_t &bytes) const;
  size_t allocatedBytes() const;
  size_t countAllocations() const;
  /// Returns a sentence on the first allocation around which someone wrote, or
  /// an empty string.
  std::string checkGuards() const;

private:
  friend class Grid;
  struct Allocation {
    size_t bytes;
    char *memory;
    size_t memoryBytes;
  };

  mutable std::shared_mutex mutex;
  std::map<uint64_t, Allocation> allocations;
  size_t allocated = 0;
};

/// What cuTensorMapEncodeTiled and cuTensorMapEncodeIm2col make: it describes a
/// tensor in device memory to the copies by cp.async.bulk.tensor. Kernels take
/// it as a parameter of 128 bytes, or read it from device memory.
struct alignas(64) TensorMap {
  static constexpr uint32_t kMagic = 0x70616d74;

  uint32_t magic = kMagic;
  uint8_t type = 0; ///< A CUtensorMapDataType, such as 6 for FLOAT16.
  uint8_t rank = 0;
  uint8_t swizzle = 0; ///< A CUtensorMapSwizzle: none, 32, 64 or 128 bytes.
  uint8_t fill = 0;    ///< Elements outside are 0: zero; 1: NaN.
  uint64_t address = 0;
  std::array<uint64_t, 4> strides = {}; ///< Bytes; of the dimensions from 1 on.
  std::array<uint32_t, 5> sizes = {};   ///< Elements; the innermost first.
  std::array<uint16_t, 5> box = {};     ///< Elements that a copy moves.
  std::array<uint8_t, 5> elementStrides = {};
  /// Copies are of box[0] channels of box[1] pixels, which follow each other in
  /// the bounding box of an image that begins at `lower` and ends at `upper`
  /// from its size on; the image's innermost dimension first.
  uint8_t isIm2col = 0;
  std::array<int16_t, 3> lower = {}, upper = {};
};
static_assert(sizeof(TensorMap) == 128);

/// Where a parameter of a kernel lies in the bytes of a launch.
struct Parameter {
  size_t offset, size, alignment;
};

struct Program;

/// A kernel (.entry) of a module.
class Function {
public:
  std::string name;
  std::vector<Parameter> parameters;
  /// Bytes that the parameters take together.
  size_t parameterBytes = 0;
  size_t staticSharedBytes = 0;
  /// The product of .maxntid or .reqntid; 1024 where neither is written.
  unsigned maxThreads = 1024;
  /// The first number of .reqnctapercluster: blocks that run at the same time,
  /// neighbours along the first dimension.
  unsigned clusterBlocks = 1;
  /// Registers that the PTX declares; an assembler needs fewer.
  unsigned registers = 0;
  std::shared_ptr<const Program> program;
};

/// A parsed module. Its global variables live in the device memory that it was
/// parsed for, which must outlive it.
class Module {
public:
  ~Module();
  Module(const Module &) = delete;
  Module &operator=(const Module &) = delete;

  /// Returns null and a sentence with the line when the text isn't PTX or has
  /// an instruction that the interpreter doesn't know.
  static std::unique_ptr<Module> parse(std::string_view ptx, Memory &memory,
                                       std::string &error);

  /// Returns null where there is no such kernel. It lives as long as the
  /// module.
  const Function *find(std::string_view name) const;
  /// Returns the address of a global variable, or 0.
  uint64_t findGlobal(std::string_view name, size_t &bytes) const;
  const std::map<std::string, Function, std::less<>> &functions() const {
    return kernels;
  }

private:
  friend class ModuleParser;
  struct Global {
    uint64_t address;
    size_t bytes;
  };

  explicit Module(Memory &memory) : memory(memory) {}

  Memory &memory;
  std::map<std::string, Function, std::less<>> kernels;
  std::map<std::string, Global, std::less<>> globals;
};

/// The sizes and arguments of a launch.
struct Launch {
  std::array<uint32_t, 3> grid = {1, 1, 1}, block = {1, 1, 1};
  size_t dynamicSharedBytes = 0;
  /// Laid out by Function::parameters.
  std::vector<char> parameters;
  /// It may begin before what comes before it has ended: no thread touches
  /// device memory, or ends, before it waits for that (griddepcontrol.wait).
  bool isDependent = false;
};

/// Runs all blocks of a kernel to their end, one after the other, or those of a
/// cluster in turns. Returns an
/// empty string, or a sentence on the fault: kernel, block, thread, line of the
/// PTX, and what happened. The memory is then as the fault left it.
std::string launch(const Function &function, const Launch &launch,
                   Memory &memory);

} // namespace sardonyx::fakecuda

#endif // SARDONYX_TOOLS_FAKECUDA_INTERPRETER_H
