// DSV4_CPU_CLONES builds a function for AVX-512, AVX2 and the base instruction set and picks at load time. It changes
// speed, never results: the loops it marks have fixed lanes and no fused multiply-add.
#pragma once

#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__) && !defined(__SANITIZE_THREAD__) &&                \
    !defined(__SANITIZE_ADDRESS__)
#define DSV4_CPU_CLONES __attribute__((target_clones("arch=x86-64-v4", "arch=x86-64-v3", "default")))
#else
#define DSV4_CPU_CLONES
#endif
#define DSV4_CPU_INLINE inline __attribute__((always_inline))
