/* SPDX-License-Identifier: MIT
 *
 * Hot paths with one flaw each, for the test of count_instructions.py itself.
 */
#if defined(__x86_64__)
    .macro function name
    .globl \name
    .type \name, @function
\name:
    .endm

    .text
    function good
    endbr64
    mov %rdi, %rax
    test %rax, %rax
    je 1f
    jmp 2f
    ud2
2:  add $1, %rax
    ret
1:  call slow
    ret

    function long_one
    .rept 40
    add $1, %rax
    .endr
    ret

    function calls
    call slow
    ret

    function locks
    lock addq $1, (%rdi)
    ret

    function exchanges
    xchg %rax, (%rdi)
    ret

    function leaves
    jmp *%rax

slow:
    ret
#endif
    .section .note.GNU-stack, "", %progbits
