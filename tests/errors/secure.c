/* SPDX-License-Identifier: MIT
 *
 * A set-id program must not take orders from its caller's environment.  Linked with libsutler.a (the loader ignores
 * LD_PRELOAD here), installed set-uid by the runner, started with SUTLER_ variables that would show if anybody read
 * them.
 */
#include "support/family.h"
#include <sys/auxv.h>

int main(void)
{
    test_watchdog(60);
    if (getauxval(AT_SECURE) == 0)
        SKIP("AT_SECURE is not set for this program (a nosuid mount, or not root)");
    CHECK(test_is_sutler());
    free(malloc(100));
    char value[32];
    CHECK(sutler_option_get("on_error", value, sizeof value) == 0);
    CHECK_MSG(strcmp(value, "abort") == 0, "SUTLER_ON_ERROR was read although AT_SECURE is set: '%s'", value);
    test_say("survived\n");
    return 0;
}
