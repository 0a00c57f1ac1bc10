/* SPDX-License-Identifier: MIT
 *
 * Why: programs about two cpus must find two they may run on, and put threads there.
 */
#ifndef BENCH_CPUS_H
#define BENCH_CPUS_H

#include <stdbool.h>
#include <sys/types.h>

/* The first two cpus the process may run on; false if it has one. */
bool cpus_two(int cpus[2]);

/* Puts a thread (0: the calling one) on one cpu; exits with a message if that is refused. */
void cpu_of_thread_set(pid_t thread, int cpu);

#endif
