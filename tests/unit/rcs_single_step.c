/* SPDX-License-Identifier: MIT
 *
 * A debugger that single-steps: every section is aborted every time it is tried.  Whatever the allocator does must come
 * to an end all the same, because after a bounded number of aborts it takes a way without sections, and the heap must
 * be whole afterwards.
 */
#include "step.h"

#include "unit.h"

/* Times as long as without aborts: a few tries of each section, and then the other way. */
#define FACTOR_MAX 30
/* A path that never leaves the fast one is short; the other way is a refill's, and tried as often. */
#define REFILLS_MAX 4

static unsigned refill_length(void)
{
    unsigned scene = 0;
    while (strcmp(step_scene[scene].name, "malloc: carve") != 0)
        scene++;
    return step_through(scene, false).length;
}

int main(void)
{
    unit_print_mode();
    unit_watchdog(600);
    unit_needs_rcs();
    step_start();
    const unsigned refill = refill_length();
    for (unsigned scene = 0; scene < step_scene_count; scene++) {
        struct step_path straight = step_through(scene, false);
        unsigned length = straight.length;
        struct step_path path = step_through(scene, true);
        unit_say("%-44s %6u instructions, %6u when every section is aborted\n", step_scene[scene].name, length,
                 path.length);
        EXPECT(path.length <= max_size(FACTOR_MAX * length, REFILLS_MAX * refill));
    }
    step_end();
    return 0;
}
