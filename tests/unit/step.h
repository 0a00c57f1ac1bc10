/* SPDX-License-Identifier: MIT
 *
 * Stopping a thread at any instruction of the allocator, and letting another one (or a signal handler) loose on the
 * same heap meanwhile.
 *
 * The tracer forks a child with two threads on one cpu.  Thread A sets a scene and performs an operation; thread B, the
 * intruder, does what the scene's author feared.  What the two do is in step_scenes.c and step_intruders.c and runs in
 * the child; the tracer (step_tracer.c) only starts, stops and resumes.  A and B tell it where they are by executing
 * step_mark().
 *
 * Single-stepping would not do to get a thread into a restartable section: every step is an interruption, and the
 * kernel restarts the section.  So the path is first recorded with the thread's rseq area unregistered, when sections
 * are nothing special; then, registered again, the thread runs at full speed to a breakpoint at the k-th instruction of
 * that path, for every k.  When it is resumed the kernel finds it inside the section and sends it to the abort handler:
 * just what an interrupt at that instruction would have done.
 */
#ifndef TESTS_UNIT_STEP_H
#define TESTS_UNIT_STEP_H

#include <sys/types.h>

#include "base/compiler.h"

/* ---- the child's side ---- */

struct step_scene {
    const char *name;
    void (*set)(void);     /* nobody else runs */
    void (*perform)(void); /* what is stopped half-way */
    bool needs_rcs;        /* makes no sense without sections */
    bool has_sections;     /* its path leads through some */
};

struct step_intruder {
    const char *name;
    void (*run)(void);
    bool in_handler; /* may also run as a signal handler of A */
};

extern const struct step_scene step_scene[];
extern const struct step_intruder step_intruder[];
extern const unsigned step_scene_count, step_intruder_count;

/* In thread A, before it performs: what there is now may grow by a few superblocks only. */
void step_is_set(void);

/* Both are done: all blocks are sound, none is doubled, none lost.  Then frees everything for the next round. */
void step_verify(void);

/* Once, in the child, before the threads are made. */
void step_prepare(void);

/* ---- the tracer's side ---- */

struct step_path {
    unsigned length;
    struct step_point {
        uintptr_t address;
        bool in_section;
        bool is_first; /* the first time it comes to this address */
    } * point;
};

enum step_way { step_to_thread, step_to_handler };

/* Forks the child; skips the test if tracing is not permitted. */
void step_start(void);
void step_end(void);

/* Thread A sets scene `scene` and performs it under single-stepping: with `registered` every section is aborted every
 * time, else none is.  Returns the path it took through the program's own code. */
struct step_path step_through(unsigned scene, bool registered);

/* Thread A sets the scene, performs it up to point `k` of `path`, and stays there while `intruder` runs on thread B or
 * in a signal handler of A; then it goes on.  False if A never came there (its path can depend on the clock). */
bool step_stop_at(unsigned scene, const struct step_path *path, unsigned k, unsigned intruder, enum step_way way);

/* How often thread B had to wait for a lock of the stopped thread A. */
extern unsigned step_waits;

#endif
