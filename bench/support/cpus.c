/* SPDX-License-Identifier: MIT
 *
 * Why: see cpus.h.
 */
#define _GNU_SOURCE
#include "cpus.h"

#include <sched.h>
#include <stdio.h>
#include <stdlib.h>

bool cpus_two(int cpus[2])
{
    cpu_set_t allowed;
    int found = 0;
    sched_getaffinity(0, sizeof(allowed), &allowed);
    for (int cpu = 0; cpu < CPU_SETSIZE && found < 2; cpu++) {
        if (CPU_ISSET(cpu, &allowed))
            cpus[found++] = cpu;
    }
    return found == 2;
}

void cpu_of_thread_set(pid_t thread, int cpu)
{
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(cpu, &one);
    if (sched_setaffinity(thread, sizeof(one), &one)) {
        perror("sched_setaffinity");
        exit(3);
    }
}
