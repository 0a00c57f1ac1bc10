/* SPDX-License-Identifier: MIT
 *
 * The audit beside a program whose superblocks become large blocks, with guards, and superblocks again: it must not
 * read what is guarded.  Linked with the archive, so that the audit can be called without pause, by threads of ours.
 */
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

bool audit_run(uint64_t budget_ns);

enum { AUDITORS = 6, SMALL = 600, SMALLS = 20000, LARGE = 2000000, LARGES = 12, SECONDS = 3 };

static _Atomic bool is_over;

static void *audit(void *unused)
{
    while (!atomic_load(&is_over))
        audit_run(1000000);
    return unused;
}

static void fill_and_free(size_t size, unsigned count)
{
    static char *block[SMALLS];
    for (unsigned i = 0; i < count; i++) {
        if ((block[i] = malloc(size)) == NULL)
            exit(3);
        block[i][0] = block[i][size - 1] = 1;
    }
    for (unsigned i = 0; i < count; i++)
        free(block[i]);
}

int main(void)
{
    pthread_t thread[AUDITORS];
    unsigned rounds = 0;
    const time_t end = time(NULL) + SECONDS;
    for (unsigned i = 0; i < AUDITORS; i++) /* more than processors: some are interrupted between a look and the next */
        if (pthread_create(&thread[i], NULL, audit, NULL) != 0)
            return 3;
    for (; time(NULL) < end; rounds++) {
        fill_and_free(SMALL, SMALLS);
        fill_and_free(LARGE, LARGES);
    }
    atomic_store(&is_over, true);
    for (unsigned i = 0; i < AUDITORS; i++)
        pthread_join(thread[i], NULL);
    printf("%u rounds\n", rounds);
    return 0;
}
