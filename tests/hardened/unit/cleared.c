/* SPDX-License-Identifier: MIT
 *
 * Large blocks that are zeroed for whoever asks: all that was asked for, and not the canary behind it, whose loss would
 * end this program.  And a span that realloc shortens by a slice is copied: what it leaves goes through quarantine.
 */
#include <dlfcn.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ZERO   0x40 /* MALLOCX_ZERO */
#define ROUNDS 40u  /* more than quarantine keeps: blocks come again that had other bytes */

static bool is_zero(const char *p, size_t bytes)
{
    return p[0] == 0 && memcmp(p, p + 1, bytes - 1) == 0;
}

static bool come_again_zero(void *(*zeroed)(size_t bytes), size_t bytes)
{
    for (unsigned i = 0; i < ROUNDS; i++) {
        char *p = zeroed(bytes);
        if (p == NULL || !is_zero(p, bytes))
            return false;
        memset(p, 0x5a, bytes);
        free(p);
    }
    return true;
}

static void *(*mallocx_found)(size_t, int);

static void *by_mallocx(size_t bytes)
{
    return mallocx_found(bytes, ZERO);
}

static void *by_calloc(size_t bytes)
{
    return calloc(1, bytes);
}

static bool is_copied_when_a_slice_is_less(void)
{
    char *p = malloc(300000);
    memset(p, 0x5a, 300000);
    char *volatile before = p, *q = realloc(p, 240000);
    const bool is_copied = q != before && q[0] == 0x5a && q[239999] == 0x5a;
    free(q);
    return is_copied;
}

int main(void)
{
    static const size_t bytes[] = {200001, (1 << 20) + 100, (3 << 20) - 1, (20 << 20) + 5000};
    *(void **)&mallocx_found = dlsym(RTLD_DEFAULT, "mallocx");
    if (mallocx_found == NULL)
        return 3;
    for (size_t i = 0; i < sizeof bytes / sizeof *bytes; i++)
        if (!come_again_zero(by_mallocx, bytes[i]) || !come_again_zero(by_calloc, bytes[i])) {
            fprintf(stderr, "FAILED: %zu bytes are not zero\n", bytes[i]);
            return 1;
        }
    if (!is_copied_when_a_slice_is_less()) {
        fprintf(stderr, "FAILED: the end of a span was given away\n");
        return 1;
    }
    return 0;
}
