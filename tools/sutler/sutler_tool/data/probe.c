/* SPDX-License-Identifier: MIT
 *
 * Prints the file that serves malloc() in this process, after using it a little.  A preload that was ignored, or a
 * library that defines no malloc, is found out here and not in a table of equal times.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int main(void)
{
    Dl_info info;
    void *server = dlsym(RTLD_DEFAULT, "malloc");
    enum { COUNT = 300 };
    char *block[COUNT];
    for (size_t i = 0; i < COUNT; i++) {
        size_t size = 1 + i * i;
        block[i] = malloc(size);
        if (!block[i])
            return 1;
        memset(block[i], (int)i, size);
    }
    for (size_t i = 0; i < COUNT; i++) {
        if (block[i][i * i] != (char)i)
            return 1;
        block[i] = realloc(block[i], 2 + i * i / 2);
        free(block[i]);
    }
    if (!server || !dladdr(server, &info) || !info.dli_fname)
        return 1;
    puts(info.dli_fname);
    return 0;
}
