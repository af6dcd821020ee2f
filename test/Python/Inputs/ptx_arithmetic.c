// Arithmetic of all widths, branches, loops, calls and local arrays. Compiled
// for the host and for NVPTX, both have to give the same results; `index` is
// the number of the thread.

typedef unsigned char u8;
typedef unsigned short u16;
typedef unsigned int u32;
typedef unsigned long long u64;

#ifdef __NVPTX__
#define index __nvvm_read_ptx_sreg_tid_x()
#define KERNEL __attribute__((nvptx_kernel))
#else
static int index;
#define KERNEL
#endif

__attribute__((noinline)) static double polynomial(double x, int n) {
  double sum = 0;
  for (int i = 0; i < n; ++i)
    sum = sum * x + (i % 3 ? i : -i);
  return sum;
}

__attribute__((noinline)) static u32 mix(u32 a, u32 b, u32 *low) {
  a ^= b << 13 | b >> 19;
  a *= 0x9e3779b1u;
  a ^= a >> 15;
  *low = a & 1023;
  return a;
}

#define ADD(VALUE) sum = sum * 1099511628211ull + (u64)(VALUE)

__attribute__((noinline)) static u64 integers(u64 sum, u32 a, u32 b) {
  int s = (int)a, t = (int)b;
  long long l = ((long long)a << 20) ^ t, m = (long long)t * 3 + 1;
  ADD((long long)s / (t | 1)), ADD((long long)s % (t | 1));
  ADD(a / (b | 1)), ADD(a % (b | 1)), ADD(l / m), ADD(l % m);
  ADD((u64)l / (u64)(m | 1)), ADD((u64)l % (u64)(m | 1));
  ADD((u8)(a + b)), ADD((short)(a * b)), ADD((signed char)(s >> 3));
  ADD((u32)(u16)(b >> 7) * (u16)a), ADD(s >> (b & 31)), ADD(a >> (b & 31));
  ADD(l >> (b & 63)), ADD((u64)l << (b & 63));
  ADD(__builtin_popcount(b)), ADD(__builtin_clz(b | 1)),
      ADD(__builtin_ctz(b | 256));
  ADD(__builtin_popcountll(l)), ADD(__builtin_clzll(l | 1)),
      ADD(__builtin_bswap32(b));
  ADD(__builtin_bitreverse32(b)), ADD(__builtin_bitreverse64(l));
  ADD(__builtin_rotateleft32(a, b & 31)),
      ADD(__builtin_rotateleft64(l, b & 63));
  ADD(s < t), ADD(a < b), ADD(l <= m), ADD(s > t ? l : m);
  ADD(((unsigned __int128)(u64)l * (u64)m) >> 64), ADD((a & 0xff00) >> 8);
  return sum;
}

static u64 bits32(float value) {
  u32 bits;
  __builtin_memcpy(&bits, &value, 4);
  return bits;
}

static u64 bits64(double value) {
  u64 bits;
  __builtin_memcpy(&bits, &value, 8);
  return bits;
}

__attribute__((noinline)) static u64 floats(u64 sum, u32 a, u32 b) {
  float f = (float)(int)a * 1e-3f, g = (float)b + 0.5f;
  long long l = (long long)((u64)a << 20 ^ b);
  double d = (double)l, e = (double)b * 3 + 1;
  ADD(bits32(f + g)), ADD(bits32(f - g)), ADD(bits32(f * g)),
      ADD(bits32(f / g));
  ADD(bits32(__builtin_sqrtf(g))), ADD(bits32(__builtin_fmaf(f, g, f)));
  ADD(bits32(__builtin_floorf(f))), ADD(bits32(__builtin_ceilf(f)));
  ADD(bits32(__builtin_truncf(f))), ADD(bits32(__builtin_rintf(f)));
  ADD(bits32(__builtin_fabsf(f))), ADD(bits32(__builtin_copysignf(g, f)));
  ADD(bits32(__builtin_fminf(f, g))), ADD(bits32(__builtin_fmaxf(f, g)));
  ADD(bits64(d + e)), ADD(bits64(d * e)), ADD(bits64(d / e));
  ADD(bits64(__builtin_sqrt(__builtin_fabs(d)))),
      ADD(bits64(__builtin_fma(d, e, f)));
  ADD(bits64(polynomial(1.0 / (1 + (b & 7)), b & 15)));
  ADD((long long)(f * 0.001f)), ADD((long long)(d * 1e-6)),
      ADD((u32)(g * 0.1f));
  ADD(bits32((float)d)), ADD(bits32((float)(u64)l)), ADD(bits32((float)l));
  ADD(bits64((double)(u64)l)), ADD(bits64(f));
  ADD(f < g), ADD(f != f), ADD(d >= e), ADD(!(f <= g));
  _Float16 h = (_Float16)(f * 1e-3f), k = (_Float16)((b & 1023) * 0.37f);
  ADD(bits32((float)(_Float16)(h + k))), ADD(bits32((float)(_Float16)(h * k)));
  ADD((int)k), ADD(h < k);
  return sum;
}

KERNEL void compute(u64 *out, const u32 *in) {
  int thread = index;
  u64 sum = 0;
  u32 seed = in[thread], low;
  for (int i = 0; i < 20; ++i) {
    seed = mix(seed, i * 77 + thread, &low);
    u32 b = in[low % 256] ^ seed, array[16];
    sum = floats(integers(sum, seed, b), seed, b);
    for (u32 j = 0; j < 16; ++j)
      array[(j * 7 + b) & 15] = j * seed;
    ADD(array[seed & 15]), ADD(array[b & 15]);
    switch (b % 9) {
    case 0:
      sum += 5;
      break;
    case 1:
      sum ^= 77;
      break;
    case 2:
      sum *= 3;
      break;
    case 3:
      sum -= seed;
      break;
    case 4:
      sum += b;
      break;
    case 5:
      sum = ~sum;
      break;
    case 6:
      sum >>= 1;
      break;
    default:
      sum += 9;
    }
    if (b & 64)
      continue;
    while (b > 100000) {
      b = b / 3;
      ADD(b);
      if ((b & 31) == 7)
        break;
    }
  }
  out[thread] = sum;
}

#ifndef __NVPTX__
#include <stdio.h>
int main(void) {
  static u32 in[256];
  static u64 out[256];
  if (fread(in, 4, 256, stdin) != 256)
    return 1;
  for (index = 0; index < 256; ++index)
    compute(out, in);
  return fwrite(out, 8, 256, stdout) != 256;
}
#endif
