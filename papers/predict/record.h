/* SPDX-License-Identifier: MIT
 *
 * Why: the form of a log of arguments, written by log.c, read by replay.c and by papers/tests/predict/replay.py.  One
 * file a thread, PREFIX.PID.TID: a header page, then records in the order of the calls.  A record whose function is 0
 * ends it (the file is made in advance, window by window, so that a thread that is killed leaves all it did).
 */
#ifndef PREDICT_RECORD_H
#define PREDICT_RECORD_H

#include <stdint.h>

#define RECORD_MAGIC     "SUTLARG1"
#define RECORD_HEADER    4096
#define RECORD_FUNCTIONS 32 /* room in the header */

struct record {
    uint32_t function; /* its place in functions.def, from 1 */
    uint32_t environment;
    uint64_t arguments[2]; /* bits; 0 where there is no second */
};

struct record_header {
    char magic[8];
    uint32_t process, thread;
    uint64_t first_ticks, first_ns, last_ticks, last_ns; /* of the thread's calls: the rate of the clock */
    uint64_t calls[RECORD_FUNCTIONS];                    /* more than there are records, where the log was full */
    uint64_t timed_calls[RECORD_FUNCTIONS], timed_ticks[RECORD_FUNCTIONS], least_ticks[RECORD_FUNCTIONS];
    uint64_t clock_ticks[RECORD_FUNCTIONS]; /* of timed_ticks: what reading the clock took, measured each time */
};

#endif
