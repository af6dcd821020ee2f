//===- Start.S - Where a program of `sardonyx build` begins ---------------===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// In the place of the C library's crt1.o, which users' machines may not have.
//
//===----------------------------------------------------------------------===//

        .text
        .globl  _start
        .hidden _start
        .type   _start, %function
_start:
#if defined(__x86_64__)
        xorl    %ebp, %ebp
        movq    %rdx, %r9               // what the loader wants called at exit
        movq    (%rsp), %rsi            // argc
        leaq    8(%rsp), %rdx           // argv
        andq    $-16, %rsp
        pushq   %rax
        pushq   %rsp                    // the end of the stack
        xorl    %ecx, %ecx              // no init
        xorl    %r8d, %r8d              // no fini
        leaq    sdx_program(%rip), %rdi
        call    *__libc_start_main@GOTPCREL(%rip)
        hlt
#elif defined(__aarch64__)
        mov     x29, #0
        mov     x30, #0
        mov     x5, x0                  // what the loader wants called at exit
        ldr     x1, [sp]                // argc
        add     x2, sp, #8              // argv
        mov     x6, sp                  // the end of the stack
        mov     x3, #0                  // no init
        mov     x4, #0                  // no fini
        adrp    x0, sdx_program
        add     x0, x0, :lo12:sdx_program
        bl      __libc_start_main
        brk     #0
#endif
        .size   _start, .-_start

// What crti.o has for static programs; here there is nothing to do.
        .globl  _init
        .hidden _init
        .globl  _fini
        .hidden _fini
_init:
_fini:
        ret

// A static program is not moved when it is loaded, so nothing is relocated.
        .globl  _dl_relocate_static_pie
        .hidden _dl_relocate_static_pie
        .type   _dl_relocate_static_pie, %function
_dl_relocate_static_pie:
        ret
        .size   _dl_relocate_static_pie, .-_dl_relocate_static_pie

        .section .note.GNU-stack,"",%progbits
