/* SPDX-License-Identifier: MIT
 *
 * Environments as Kubernetes makes them, of hundreds of kilobytes, variables of every length and one longer than any
 * buffer: an option at the end of it is heard.
 */
#include "again.h"

static size_t pad;

static void make_large(void)
{
    static char name[32], value[130000];
    for (int i = 0; i < 400; i++) {
        snprintf(name, sizeof name, "SERVICE_%d_PORT", i);
        memset(value, 'x', 700);
        value[500 + i % 200] = 0;
        setenv(name, value, 1);
    }
    memset(value, 'y', 20000 + pad);
    value[20000 + pad] = 0;
    setenv("SERVICE_LONG", value, 1);
    setenv("SUTLER_ON_ERROR", "report", 1); /* the last one */
}

int main(int argc, char **argv)
{
    char value[16];
    if (argc > 1 && strcmp(argv[1], "look") == 0)
        return sutler_option_get("on_error", value, sizeof value) == 0 && strcmp(value, "report") == 0 ? 0 : 1;
    test_begin(60);
    if (!test_is_sutler())
        SKIP("another malloc");
    unsetenv("SUTLER_ON_ERROR");
    for (pad = 0; pad < 60; pad++)
        CHECK_MSG(again(make_large, "look") == 0, "an option in an environment of 300 KiB was not heard (pad %zu)",
                  pad);
    return 0;
}
