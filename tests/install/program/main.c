/* SPDX-License-Identifier: MIT */
#include <stdio.h>
#include <stdlib.h>
#include <sutler/sutler.h>

int main(void)
{
    free(malloc(100));
    puts(sutler_is_active() ? sutler_version() : "another malloc");
    return 0;
}
