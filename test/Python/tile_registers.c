/* Tile registers (AMX) and products of bytes in vectors (AVX-VNNI) for
 * processors that have none: a handler of SIGILL does what their instructions
 * do, so that code with them can be tested anywhere. Compiled into a library
 * that a test loads before that code. */

#define _GNU_SOURCE
#include <signal.h>
#include <stdint.h>
#include <string.h>
#include <ucontext.h>

enum { kTiles = 8, kRows = 16, kBytes = 64 };

typedef struct {
  uint8_t rows[kTiles];
  uint16_t bytes[kTiles];
  uint8_t data[kTiles][kRows][kBytes];
} Registers;

static __thread Registers registers;
static struct sigaction before;

/* How many instructions were done. */
unsigned long tile_instructions, vector_instructions;

static int64_t *find_register(ucontext_t *context, unsigned number) {
  static const int kOrder[] = {
      REG_RAX, REG_RCX, REG_RDX, REG_RBX, REG_RSP, REG_RBP, REG_RSI, REG_RDI,
      REG_R8,  REG_R9,  REG_R10, REG_R11, REG_R12, REG_R13, REG_R14, REG_R15};
  return (int64_t *)&context->uc_mcontext.gregs[kOrder[number]];
}

/* A VEX instruction of the map 0F38: C4 [RXBmmmmm] [WvvvvLpp] opcode modrm ...
 */
typedef struct {
  unsigned prefix, opcode, mod, reg, rm, vvvv;
  unsigned is_wide; /* vectors of 256 bits */
  int64_t base,
      index; /* the address without the index, and the index, scaled */
  unsigned length;
} Instruction;

static int decode(const uint8_t *code, ucontext_t *context, Instruction *in) {
  if (code[0] != 0xC4 || (code[1] & 0x1F) != 2 || (code[2] & 0x80) != 0)
    return 0;
  in->is_wide = code[2] >> 2 & 1;
  const unsigned r = !(code[1] >> 7);
  const unsigned x = !(code[1] >> 6 & 1), b = !(code[1] >> 5 & 1);
  in->prefix = code[2] & 3;
  in->vvvv = ~(code[2] >> 3) & 15;
  in->opcode = code[3];
  in->mod = code[4] >> 6;
  in->reg = (code[4] >> 3 & 7) | r << 3;
  in->rm = code[4] & 7;
  const uint8_t *next = code + 5;
  in->base = in->index = 0;
  if (in->mod != 3) {
    unsigned base = in->rm | b << 3;
    int has_base = 1;
    if (in->rm == 4) {
      const unsigned sib = *next++, index = (sib >> 3 & 7) | x << 3;
      base = (sib & 7) | b << 3;
      if (index != 4)
        in->index = *find_register(context, index) << (sib >> 6);
      has_base = !((sib & 7) == 5 && in->mod == 0);
    } else if (in->rm == 5 && in->mod == 0) {
      int32_t distance;
      memcpy(&distance, next, 4);
      in->base = (int64_t)(next + 4) + distance;
      in->length = next + 4 - code;
      return 1;
    }
    if (has_base)
      in->base = *find_register(context, base);
    if (in->mod == 1) {
      in->base += (int8_t)*next++;
    } else if (in->mod == 2 || !has_base) {
      int32_t distance;
      memcpy(&distance, next, 4);
      in->base += distance;
      next += 4;
    }
  }
  in->rm |= b << 3;
  in->length = next - code;
  return 1;
}

/* The bytes of a vector register from 16 * `half` on, in what the signal has
 * saved. */
static uint8_t *find_vector(ucontext_t *context, unsigned number,
                            unsigned half) {
  uint8_t *saved = (uint8_t *)context->uc_mcontext.fpregs;
  enum { kLow = 160, kState = 512, kHigh = 576 };
  if (!half)
    return saved + kLow + 16 * number;
  uint64_t state;
  memcpy(&state, saved + kState, 8);
  if (!(state & 4)) { /* upper halves that are zero were not saved */
    memset(saved + kHigh, 0, 256);
    state |= 4;
    memcpy(saved + kState, &state, 8);
  }
  return saved + kHigh + 16 * number;
}

/* vpdpbusd: sums of four products of unsigned by signed bytes. */
static void multiply_vectors(const Instruction *in, ucontext_t *context) {
  for (unsigned half = 0; half <= in->is_wide; ++half) {
    uint8_t *sum = find_vector(context, in->reg, half),
            *lhs = find_vector(context, in->vvvv, half);
    uint8_t *rhs = in->mod == 3 ? find_vector(context, in->rm, half)
                                : (uint8_t *)in->base + in->index + 16 * half;
    for (int lane = 0; lane < 16; lane += 4) {
      uint32_t total;
      memcpy(&total, sum + lane, 4);
      for (int j = 0; j < 4; ++j)
        total += lhs[lane + j] * (int8_t)rhs[lane + j];
      memcpy(sum + lane, &total, 4);
    }
  }
  for (unsigned half = in->is_wide + 1; half < 2; ++half)
    memset(find_vector(context, in->reg, half), 0, 16);
}

static void configure(const uint8_t *from) {
  memset(&registers, 0, sizeof registers);
  for (int t = 0; from && t < kTiles; ++t) {
    memcpy(&registers.bytes[t], from + 16 + 2 * t, 2);
    registers.rows[t] = from[48 + t];
  }
}

static void move(const Instruction *in, int is_store) {
  const unsigned t = in->reg;
  if (!is_store)
    memset(registers.data[t], 0, sizeof registers.data[t]);
  for (int row = 0; row < registers.rows[t]; ++row) {
    uint8_t *memory = (uint8_t *)(in->base + row * in->index);
    memcpy(is_store ? memory : registers.data[t][row],
           is_store ? registers.data[t][row] : memory, registers.bytes[t]);
  }
}

static float widen(uint16_t bits) {
  uint32_t word = (uint32_t)bits << 16;
  float number;
  memcpy(&number, &word, 4);
  return number;
}

/* sum += lhs * rhs, of groups of 32 bits. */
static void multiply(const Instruction *in, int are_floats, int lhs_signed,
                     int rhs_signed) {
  const unsigned sum = in->reg, lhs = in->rm, rhs = in->vvvv & 7;
  for (int m = 0; m < registers.rows[sum]; ++m)
    for (int k = 0; k < registers.bytes[lhs] / 4; ++k)
      for (int n = 0; n < registers.bytes[sum] / 4; ++n) {
        const uint8_t *a = registers.data[lhs][m] + 4 * k,
                      *b = registers.data[rhs][k] + 4 * n;
        uint8_t *to = registers.data[sum][m] + 4 * n;
        if (are_floats) {
          uint16_t x[2], y[2];
          float total;
          memcpy(x, a, 4), memcpy(y, b, 4), memcpy(&total, to, 4);
          for (int j = 0; j < 2; ++j)
            total += widen(x[j]) * widen(y[j]);
          memcpy(to, &total, 4);
        } else {
          uint32_t total;
          memcpy(&total, to, 4);
          for (int j = 0; j < 4; ++j)
            total += (lhs_signed ? (int8_t)a[j] : a[j]) *
                     (rhs_signed ? (int8_t)b[j] : b[j]);
          memcpy(to, &total, 4);
        }
      }
}

static int run(const Instruction *in, ucontext_t *context) {
  enum { kNone, k66, kF3, kF2 };
  if (in->opcode == 0x50 && in->prefix == k66) {
    multiply_vectors(in, context);
    ++vector_instructions;
    return 1;
  }
  ++tile_instructions;
  switch (in->opcode) {
  case 0x49:
    if (in->prefix == kNone)
      configure(in->mod == 3 ? 0 : (const uint8_t *)in->base);
    else if (in->prefix == kF2 && in->mod == 3)
      memset(registers.data[in->reg], 0, sizeof registers.data[in->reg]);
    else
      return 0;
    return 1;
  case 0x4B:
    if (in->mod == 3 || in->prefix == kNone)
      return 0;
    move(in, in->prefix == kF3);
    return 1;
  case 0x5C:
    if (in->prefix != kF3)
      return 0;
    multiply(in, 1, 0, 0);
    return 1;
  case 0x5E:
    multiply(in, 0, in->prefix == kF2 || in->prefix == kF3,
             in->prefix == kF2 || in->prefix == k66);
    return 1;
  }
  return 0;
}

static void handle(int signal, siginfo_t *info, void *context) {
  ucontext_t *at = context;
  Instruction in;
  if (decode((const uint8_t *)at->uc_mcontext.gregs[REG_RIP], at, &in) &&
      run(&in, at)) {
    at->uc_mcontext.gregs[REG_RIP] += in.length;
    return;
  }
  sigaction(SIGILL, &before,
            0); /* no instruction of theirs: as it would have ended */
}

__attribute__((constructor)) static void begin(void) {
  struct sigaction action;
  memset(&action, 0, sizeof action);
  action.sa_sigaction = handle;
  action.sa_flags = SA_SIGINFO | SA_NODEFER;
  sigaction(SIGILL, &action, &before);
}
