/* SPDX-License-Identifier: MIT
 *
 * Between the tracer and its child: what is to be done next, in memory both see, and how thread A says how far it is.
 */
#ifndef TESTS_UNIT_STEP_CONTROL_H
#define TESTS_UNIT_STEP_CONTROL_H

#include <sys/types.h>

#include "base/compiler.h"

enum job { job_intrude, job_verify };
enum phase { phase_idle, phase_set, phase_performed }; /* the marks of thread A */

struct control {
    pid_t a, b;
    uintptr_t rseq_of_a; /* 0: no sections */
    unsigned scene, intruder;
    enum job job;
    enum phase phase;
    bool without_rseq, quit;
};
extern struct control *volatile control;

/* A trap the tracer knows; the thread is stopped with its instruction pointer behind it. */
void step_mark(void);
extern const char step_mark_after[];

/* The cpu both threads run on. */
int step_cpu(void);

_Noreturn void step_be_child(void);

#endif
