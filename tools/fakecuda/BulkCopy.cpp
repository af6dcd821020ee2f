//===- BulkCopy.cpp - Copies by cp.async.bulk -----------------------------===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Elementwise.h"
#include <functional>

namespace sardonyx::fakecuda {

namespace {

/// 16 bytes of a box, or fewer: where they lie on both sides. Those before
/// `begin` and from `end` on are outside of the tensor.
struct Chunk {
  uint32_t shared;
  uint64_t global; ///< The address of the first byte, were it inside.
  unsigned bytes, begin, end;
};

/// Where a copy begins in a tensor; in one that is an image, how far from the
/// pixels of the bounding box those lie that are copied.
struct Origin {
  std::array<int32_t, 5> at = {};
  std::array<int32_t, 3> offsets = {};
};

/// The box of a tensor that a copy moves.
class Box {
public:
  Box(const TensorMap &map, const Origin &origin, uint32_t shared)
      : map(map), origin(origin), shared(shared) {}

  static unsigned elementBytes(const TensorMap &map) {
    static const uint8_t kBytes[] = {1, 2, 4, 4, 8, 8, 2, 4, 8, 2, 4, 4, 4};
    return map.type < sizeof kBytes ? kBytes[map.type] : 0;
  }
  uint32_t bytes() const {
    uint32_t all = elementBytes(map);
    for (unsigned i = 0; i < (map.isIm2col ? 2u : map.rank); ++i)
      all *= map.box[i];
    return all;
  }
  /// Calls `visit` for all chunks until it returns false.
  bool visit(const std::function<bool(const Chunk &)> &visit) const;

private:
  uint32_t swizzle(uint32_t address) const {
    static const uint32_t kRows[] = {0, 1, 3, 7};
    return address ^ (address >> 7 & kRows[map.swizzle & 3]) << 4;
  }

  /// Of a row of the box: where it is in all dimensions but the first.
  std::array<int64_t, 5> locateTiled(uint32_t row) const;
  std::array<int64_t, 5> locatePixel(uint32_t row) const;

  const TensorMap &map;
  Origin origin;
  uint32_t shared;
};

} // namespace

std::array<int64_t, 5> Box::locateTiled(uint32_t row) const {
  std::array<int64_t, 5> at = {};
  for (unsigned i = 1; i < map.rank; ++i) {
    at[i] = origin.at[i] + int64_t(row % map.box[i]) *
                               std::max<unsigned>(map.elementStrides[i], 1);
    row /= map.box[i];
  }
  return at;
}

/// From the first pixel on each step leads to the next one of the bounding box,
/// then of its next row and image.
std::array<int64_t, 5> Box::locatePixel(uint32_t row) const {
  std::array<int64_t, 5> at = {};
  int64_t steps = row;
  for (unsigned i = 1; i + 1 < map.rank; ++i) {
    const int64_t lower = map.lower[i - 1], step = map.elementStrides[i];
    const int64_t length = int64_t(map.sizes[i]) + map.upper[i - 1] - lower;
    const int64_t count = (length + step - 1) / step;
    steps += (origin.at[i] - lower) / step;
    at[i] = lower + steps % count * step + origin.offsets[i - 1];
    steps /= count;
  }
  at[map.rank - 1] = origin.at[map.rank - 1] + steps;
  return at;
}

bool Box::visit(const std::function<bool(const Chunk &)> &visit) const {
  unsigned element = elementBytes(map);
  uint32_t rowBytes = map.box[0] * element, rows = bytes() / rowBytes;
  for (uint32_t row = 0; row < rows; ++row) {
    uint64_t address = map.address;
    bool inside = true;
    const std::array<int64_t, 5> place =
        map.isIm2col ? locatePixel(row) : locateTiled(row);
    for (unsigned i = 1; i < map.rank; ++i) {
      inside = inside && place[i] >= 0 && place[i] < int64_t(map.sizes[i]);
      address += uint64_t(place[i]) * map.strides[i - 1];
    }
    for (uint32_t at = 0; at < rowBytes; at += 16) {
      int64_t first = int64_t(origin.at[0]) * element + at;
      int64_t end = int64_t(map.sizes[0]) * element - first;
      Chunk chunk = {swizzle(shared + row * rowBytes + at),
                     address + uint64_t(first), std::min(16u, rowBytes - at), 0,
                     0};
      auto limit = [&](int64_t byte) {
        return unsigned(byte < 0 ? 0 : byte > chunk.bytes ? chunk.bytes : byte);
      };
      if (inside) {
        chunk.begin = limit(-first);
        chunk.end = limit(end);
      }
      if (!visit(chunk))
        return false;
    }
  }
  return true;
}

// Fills a chunk of shared memory from the tensor.
static void loadChunk(const TensorMap &map, const Chunk &chunk, char *memory) {
  // NaN of all floats is 0xff in each byte, near enough to what is filled.
  memset(memory, map.fill ? 0xff : 0, chunk.bytes);
  if (chunk.begin >= chunk.end)
    return;
  memcpy(memory + chunk.begin,
         reinterpret_cast<const char *>(chunk.global + chunk.begin),
         chunk.end - chunk.begin);
  if (map.type != 11 && map.type != 12)
    return;
  for (unsigned at = 0; at + 4 <= chunk.bytes; at += 4) {
    uint32_t bits;
    memcpy(&bits, memory + at, 4);
    if ((bits & 0x7f800000) != 0x7f800000)
      bits = (bits + 0xfff + (bits >> 13 & 1)) & 0xffffe000;
    memcpy(memory + at, &bits, 4);
  }
}

/// Whether there is a bounding box to go over.
static bool hasPixels(const TensorMap &map) {
  if (map.rank < 3 || map.box[1] == 0)
    return false;
  for (unsigned i = 1; i + 1 < map.rank; ++i)
    if (map.elementStrides[i] == 0 ||
        int64_t(map.sizes[i]) + map.upper[i - 1] <= map.lower[i - 1])
      return false;
  return true;
}

static bool readMap(Warp &warp, unsigned lane, uint64_t address,
                    TensorMap &map) {
  char *memory =
      warp.access(Space::Generic, lane, address, sizeof(TensorMap), false);
  if (!memory)
    return false;
  memcpy(&map, memory, sizeof map);
  if (map.magic == TensorMap::kMagic && map.rank >= 1 && map.rank <= 5 &&
      Box::elementBytes(map) && map.swizzle <= 3 && map.box[0] > 0 &&
      (!map.isIm2col || hasPixels(map)))
    return true;
  warp.fault(lane, "the parameter isn't a tensor map");
  return false;
}

// The coordinates are the operands of the instruction. b: the tensor map; a:
// the address in shared memory; c: the mbarrier, whose offset is in target.
static bool prepare(Warp &warp, const Instruction &instruction, unsigned lane,
                    TensorMap &map, Origin &origin, uint32_t &shared) {
  if (!readMap(warp, lane, warp.get(instruction.b, lane), map) ||
      !warp.mayTouchDevice(lane, /*writes=*/false))
    return false;
  const bool isIm2col = instruction.flag;
  if (bool(map.isIm2col) != isIm2col) {
    warp.fault(lane, "the tensor map is of another mode");
    return false;
  }
  if (map.rank + (isIm2col ? map.rank - 2u : 0u) != instruction.count) {
    warp.fault(lane, "the tensor map has rank " + std::to_string(map.rank));
    return false;
  }
  auto operand = [&](unsigned i) {
    return warp.get(warp.program.operands[instruction.first + i], lane);
  };
  for (unsigned i = 0; i < map.rank; ++i)
    origin.at[i] = int32_t(operand(i));
  for (unsigned i = 0; isIm2col && i + 2u < map.rank; ++i) {
    origin.offsets[i] = uint16_t(operand(map.rank + i));
    const int64_t start = origin.at[i + 1] - map.lower[i];
    if (start < 0 || start % map.elementStrides[i + 1] ||
        origin.at[i + 1] >= int64_t(map.sizes[i + 1]) + map.upper[i]) {
      warp.fault(lane, "the first pixel is none of the bounding box");
      return false;
    }
  }
  shared =
      uint32_t(warp.get(instruction.a, lane) + uint64_t(instruction.offset));
  if (shared % 128) {
    warp.fault(lane, "its place in shared memory isn't aligned to 128 bytes");
    return false;
  }
  return true;
}

// Copies a box to the shared memory of a block, whose mbarrier at `where`
// counts its bytes.
static void loadBox(Warp &warp, unsigned lane, Block &block,
                    const TensorMap &map, const Origin &origin, uint32_t shared,
                    uint64_t where) {
  Mbarrier *barrier = warp.findMbarrier(lane, block, where);
  if (!barrier)
    return;
  bool good = Box(map, origin, shared).visit([&](const Chunk &chunk) {
    // All blocks have as much.
    if (!warp.access(Space::Shared, lane, chunk.shared, chunk.bytes, true) ||
        !block.mayOverwrite(warp, lane, chunk.shared, chunk.bytes) ||
        (chunk.begin < chunk.end &&
         !warp.access(Space::Global, lane, chunk.global + chunk.begin,
                      chunk.end - chunk.begin, false)))
      return false;
    memset(block.shared.data() + chunk.shared, 0xff, chunk.bytes);
    block.markPending(chunk.shared, chunk.bytes, 1);
    return true;
  });
  if (!good)
    return;
  barrier->copies.push_back([&block, map, origin, shared, where] {
    Box box(map, origin, shared);
    box.visit([&](const Chunk &chunk) {
      loadChunk(map, chunk, block.shared.data() + chunk.shared);
      block.markPending(chunk.shared, chunk.bytes, -1);
      return true;
    });
    block.mbarriers[where].bytes -= box.bytes();
    return true;
  });
  block.wakeMbarrier(where);
}

// bytes: whether d is the mask of the blocks of the cluster that have a copy
// each, where this block would have it.
static void runLoad(Warp &warp, const Instruction &instruction) {
  forLanes(warp.mask, [&](unsigned lane) {
    TensorMap map;
    Origin origin;
    uint32_t shared = 0;
    if (!warp.block.fault.empty() ||
        !prepare(warp, instruction, lane, map, origin, shared))
      return;
    uint64_t where = uint32_t(warp.get(instruction.c, lane) +
                              uint64_t(int64_t(int32_t(instruction.target))));
    if (!instruction.bytes)
      return loadBox(warp, lane, warp.block, map, origin, shared, where);
    const uint32_t blocks = uint16_t(warp.get(instruction.d, lane));
    if (blocks == 0)
      return warp.fault(lane, "is for no block of the cluster");
    forLanes(blocks, [&](unsigned rank) {
      if (!warp.block.fault.empty())
        return;
      if (Block *block = warp.reach(lane, rank))
        loadBox(warp, lane, *block, map, origin, shared, where);
    });
  });
}

// A store lands when its thread waits for it, not before: until then nobody may
// write what it reads.
static void addStore(Warp &warp, unsigned lane, BulkStore store) {
  warp.block.markReading(store.pieces, 1);
  warp.block.stores[warp.thread(lane)].open.push_back(std::move(store));
}

static void runStore(Warp &warp, const Instruction &instruction) {
  forLanes(warp.mask, [&](unsigned lane) {
    TensorMap map;
    Origin origin;
    uint32_t shared = 0;
    if (!warp.block.fault.empty() ||
        !prepare(warp, instruction, lane, map, origin, shared) ||
        !warp.mayTouchDevice(lane, /*writes=*/true))
      return;
    BulkStore store;
    Block &block = warp.block;
    bool good = Box(map, origin, shared).visit([&](const Chunk &chunk) {
      store.pieces.push_back({chunk.shared, chunk.bytes});
      return warp.access(Space::Shared, lane, chunk.shared, chunk.bytes,
                         false) &&
             block.touch(warp, lane, chunk.shared, chunk.bytes, Touch::Read) &&
             (chunk.begin >= chunk.end ||
              warp.access(Space::Global, lane, chunk.global + chunk.begin,
                          chunk.end - chunk.begin, true));
    });
    if (!good)
      return;
    store.land = [&block, map, origin, shared] {
      Box(map, origin, shared).visit([&](const Chunk &chunk) {
        if (chunk.begin < chunk.end)
          memcpy(reinterpret_cast<char *>(chunk.global + chunk.begin),
                 block.shared.data() + chunk.shared + chunk.begin,
                 chunk.end - chunk.begin);
        return true;
      });
    };
    addStore(warp, lane, std::move(store));
  });
}

static void runCommit(Warp &warp, const Instruction &) {
  forLanes(warp.mask, [&](unsigned lane) {
    ThreadStores &stores = warp.block.stores[warp.thread(lane)];
    stores.groups.push_back(std::move(stores.open));
    stores.open.clear();
  });
}

// Waits until all but so many groups are done, or have been read.
static void runWait(Warp &warp, const Instruction &instruction) {
  forLanes(warp.mask, [&](unsigned lane) {
    ThreadStores &stores = warp.block.stores[warp.thread(lane)];
    while (stores.groups.size() > size_t(instruction.offset)) {
      for (BulkStore &store : stores.groups.front()) {
        store.land();
        warp.block.markReading(store.pieces, -1);
      }
      stores.groups.pop_front();
    }
  });
}

// Copies of bytes that follow each other. a: the address in shared memory; b:
// that in device memory, whose offset is in q; d: the number of bytes.
struct Bytes {
  uint32_t shared = 0, count = 0;
  char *sharedMemory = nullptr, *globalMemory = nullptr;
};

static bool prepareBytes(Warp &warp, const Instruction &instruction,
                         unsigned lane, bool stores, Bytes &bytes) {
  bytes.count = uint32_t(warp.get(instruction.d, lane));
  bytes.shared =
      uint32_t(warp.get(instruction.a, lane) + uint64_t(instruction.offset));
  uint64_t global =
      warp.get(instruction.b, lane) + uint64_t(int64_t(int32_t(instruction.q)));
  if (bytes.count % 16 || bytes.shared % 16 || global % 16) {
    warp.fault(lane, "its addresses and its size aren't multiples of 16 bytes");
    return false;
  }
  bytes.sharedMemory =
      warp.access(Space::Shared, lane, bytes.shared, 16, !stores);
  if (bytes.sharedMemory && bytes.count > 16)
    warp.access(Space::Shared, lane, uint64_t(bytes.shared) + bytes.count - 16,
                16, !stores);
  // In device memory all of it lies in one allocation.
  if (!warp.block.fault.empty() || !warp.mayTouchDevice(lane, stores))
    return false;
  bytes.globalMemory = warp.block.grid.resolve(global, bytes.count);
  if (!bytes.globalMemory)
    warp.fault(lane, std::string(stores ? "writes " : "reads ") +
                         std::to_string(bytes.count) +
                         " bytes out of bounds, " +
                         warp.block.grid.describe(global));
  return bytes.globalMemory != nullptr;
}

static void runLoadBytes(Warp &warp, const Instruction &instruction) {
  forLanes(warp.mask, [&](unsigned lane) {
    Bytes bytes;
    if (!warp.block.fault.empty() ||
        !prepareBytes(warp, instruction, lane, false, bytes))
      return;
    uint64_t where = uint32_t(warp.get(instruction.c, lane) +
                              uint64_t(int64_t(int32_t(instruction.target))));
    Mbarrier *barrier = warp.findMbarrier(lane, warp.block, where);
    if (!barrier ||
        !warp.block.mayOverwrite(warp, lane, bytes.shared, bytes.count))
      return;
    Block &block = warp.block;
    memset(bytes.sharedMemory, 0xff, bytes.count);
    block.markPending(bytes.shared, bytes.count, 1);
    barrier->copies.push_back([&block, bytes, where] {
      memcpy(bytes.sharedMemory, bytes.globalMemory, bytes.count);
      block.markPending(bytes.shared, bytes.count, -1);
      block.mbarriers[where].bytes -= bytes.count;
      return true;
    });
    block.wakeMbarrier(where);
  });
}

static void runStoreBytes(Warp &warp, const Instruction &instruction) {
  forLanes(warp.mask, [&](unsigned lane) {
    Bytes bytes;
    if (!warp.block.fault.empty() ||
        !prepareBytes(warp, instruction, lane, true, bytes) ||
        !warp.block.touch(warp, lane, bytes.shared, bytes.count, Touch::Read))
      return;
    BulkStore store;
    store.pieces.push_back({bytes.shared, bytes.count});
    store.land = [bytes] {
      memcpy(bytes.globalMemory, bytes.sharedMemory, bytes.count);
    };
    addStore(warp, lane, std::move(store));
  });
}

// cp.async.bulk without a tensor.
static bool decodeBytes(Decoder &decoder) {
  Instruction &instruction = decoder.instruction;
  const std::string &to = decoder.statement.parts[3];
  bool stores = to == "global";
  if ((!stores && to != "shared::cluster" && to != "shared::cta") ||
      decoder.has("multicast::cluster") || decoder.has("L2::cache_hint") ||
      decoder.has("cp_mask") || !decoder.has(stores ? "shared::cta" : "global"))
    return false;
  decoder.program->checksRaces = false;
  int64_t offset = 0;
  instruction.run = stores ? runStoreBytes : runLoadBytes;
  decoder.address(decoder.operand(stores ? 0 : 1), instruction.b, offset);
  if (offset != int32_t(offset))
    return decoder.fail("the offset is too large");
  instruction.q = uint32_t(int32_t(offset));
  instruction.d = decoder.source(decoder.operand(2), "b32");
  if (!stores) {
    decoder.address(decoder.operand(3), instruction.c, offset);
    instruction.target = uint32_t(int32_t(offset));
  }
  decoder.address(decoder.operand(stores ? 1 : 0), instruction.a,
                  instruction.offset);
  return true;
}

static void runNothing(Warp &, const Instruction &) {}

// "[%map, {%x, %y}]": the row of the map and the coordinates.
static bool decodeTensor(Decoder &decoder, const std::string &text) {
  Instruction &instruction = decoder.instruction;
  if (text.size() < 2 || text.front() != '[')
    return decoder.fail("'" + text + "' isn't a place in a tensor");
  auto parts = splitList(std::string_view(text).substr(1, text.size() - 2));
  int64_t offset = 0;
  if (parts.size() != 2)
    return decoder.fail("'" + text + "' isn't a place in a tensor");
  decoder.address(parts[0], instruction.b, offset);
  if (offset)
    return decoder.fail("a tensor map at an offset isn't known");
  decoder.sources(parts[1], "s32");
  return true;
}

bool decodeBulkCopy(Decoder &decoder) {
  const auto &parts = decoder.statement.parts;
  Instruction &instruction = decoder.instruction;
  if (decoder.base() != "cp" || parts.size() < 4 || parts[1] != "async" ||
      parts[2] != "bulk")
    return false;
  if (parts[3] == "prefetch") {
    instruction.run = runNothing;
    return true;
  }
  if (parts[3] == "commit_group") {
    instruction.run = runCommit;
    return true;
  }
  if (parts[3] == "wait_group") {
    long long value = 0;
    if (!parseInteger(decoder.operand(0), value) || value < 0)
      return decoder.fail("the number of groups isn't a constant");
    instruction.run = runWait;
    instruction.offset = value;
    return true;
  }
  if (parts[3] != "tensor")
    return decodeBytes(decoder);
  const bool isIm2col = decoder.has("im2col");
  if (decoder.has("tile::gather4") || parts.size() < 7 ||
      (isIm2col && parts[5] == "global"))
    return false;
  decoder.program->checksRaces = false;
  if (parts[5] == "global") {
    instruction.run = runStore;
    decoder.address(decoder.operand(1), instruction.a, instruction.offset);
    return decodeTensor(decoder, decoder.operand(0));
  }
  int64_t offset = 0;
  instruction.run = runLoad;
  decoder.address(decoder.operand(2), instruction.c, offset);
  instruction.target = uint32_t(int32_t(offset));
  decoder.address(decoder.operand(0), instruction.a, instruction.offset);
  instruction.flag = isIm2col;
  if (!decodeTensor(decoder, decoder.operand(1)))
    return false;
  if (isIm2col)
    decoder.sources(decoder.operand(3), "u16");
  if (decoder.has("multicast::cluster")) {
    instruction.bytes = 1;
    instruction.d = decoder.source(decoder.operand(isIm2col ? 4 : 3), "b16");
  }
  return true;
}

} // namespace sardonyx::fakecuda
