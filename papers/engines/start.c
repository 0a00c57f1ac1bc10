/* SPDX-License-Identifier: MIT
 *
 * Why: start and fork, for all engines.
 *
 * fork: our handlers are registered after the backend's (it is warmed up first), so our prepare runs before its
 * prepare: the manager is waited for while the backend's locks are still free.  Handlers of others may allocate in
 * between, and may wait for threads that allocate: a forking thread goes around the engine from prepare to parent or
 * child, and so does whoever would have to wait for the paused manager (around.h).
 */
#include "around.h"
#include "backend.h"
#include "checks.h"
#include "engine.h"
#include "manager.h"
#include "say.h"
#include "thread.h"

#include <dlfcn.h>
#include <execinfo.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

static void fork_prepare(void)
{
    engine_bypass++;
    __atomic_fetch_add(&engine_forks, 1, __ATOMIC_SEQ_CST);
    threads_fork_prepare();
    engine.fork_prepare();
    checks_fork_prepare();
}

static void fork_parent(void)
{
    engine.fork_parent();
    __atomic_fetch_sub(&engine_forks, 1, __ATOMIC_SEQ_CST);
    engine_bypass--;
}

static void fork_child(void)
{
    checks_fork_child();
    manager_forget();
    engine.fork_child();
    threads_fork_child();
    STORE(&engine_forks, 0); /* other threads' forks are not ours */
    engine_bypass--;
}

/* A library that takes a backtrace now and then (Scudo does) has libgcc_s loaded for its first one.  On the manager's
 * thread that waits for the loader's lock, which a thread inside dlopen may hold while it waits for the manager.  So
 * the first one is now.  The C library's own malloc takes none. */
static void load_unwinder(void)
{
    Dl_info below;
    void *frame[1], *function = *(void **)&backend.usable;
    if (dladdr(function, &below) != 0 && strstr(below.dli_fname, "/libc.so") == NULL)
        backtrace(frame, 1);
}

void managers_read(void)
{
    const char *value = engine_option("SUTLER_ENGINE_MANAGERS");
    if (value == NULL)
        return;
    char *end;
    unsigned long count = strtoul(value, &end, 10);
    if (*end == '\0' && count >= 1 && count <= MANAGERS_MOST)
        manager_count = (unsigned)count;
    else
        engine_say("SUTLER_ENGINE_MANAGERS: unknown value '%s' (1 to %u); ignored", value, MANAGERS_MOST);
}

static __attribute__((constructor)) void engine_constructor(void)
{
    if (!backend_is_open())
        backend_open(engine.name, checks_over);
    if (!backend_is_open()) /* somebody else is opening it: we are inside of that */
        return;
    engine_bypass++;
    backend.free(backend.malloc(1)); /* the backend's own start, and its atfork handlers, come first */
    if (!threads_start() || pthread_atfork(fork_prepare, fork_parent, fork_child) != 0) {
        engine_say("%s: cannot register with the C library, out of memory", engine.name);
        engine_die();
    }
    load_unwinder();
    engine.start();
    engine_bypass--;
    STORE(&engine_running, true);
}
