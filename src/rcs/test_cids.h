/* SPDX-License-Identifier: MIT
 *
 * Synthetic cids: a build of the library for tests and benches (SUTLER_TEST_CIDS: libsutler_cids.so, never installed)
 * that shows on two cpus what it does on a thousand.  Everything is as in rcs mode, sections and all, but the cid is read
 * from a thread-local variable that the program sets.
 *
 * The program guarantees what the kernel does elsewhere: of all threads bound to a cid at most one is in the library at a
 * time, and a cid is handed over by something that orders memory (a lock, a join).  A thread binds itself before its
 * first malloc or free; the first thread begins on cid 0.
 */
#ifndef SUTLER_RCS_TEST_CIDS_H
#define SUTLER_RCS_TEST_CIDS_H

#include "base/compiler.h"

#ifdef SUTLER_TEST_CIDS
/* Binds the caller to cid 0; how far the variable is from the thread pointer. */
ptrdiff_t test_cids_start(void);
/* The cid of the caller, from here on. */
void test_cids_bind(unsigned cid);
/* Any number below SLOT_MAX will do. */
#define CID_LIMIT() SLOT_MAX
#define CID_OFFSET(of_kernel) ((void)(of_kernel), test_cids_start())
#else
#define CID_LIMIT() os_cpu_limit()
#define CID_OFFSET(of_kernel) (of_kernel)
#endif

#endif
