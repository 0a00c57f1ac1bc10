/* SPDX-License-Identifier: MIT
 *
 * An interruption at every instruction.  For each scene (step_scenes.c) the path of malloc, free and their slow paths
 * is recorded once; then the thread is stopped at each point of it in turn while another thread, or a signal handler,
 * works on the same heap.  After every single stop: no block was handed out twice, none is lost, no transition was
 * missed, and the allocator knew every block from the moment it handed it out.
 */
#include "step.h"

#include "unit.h"

/* Points that the same scene reaches again and again (loops) are stopped at the first few times only. */
#define VISITS_MAX 3

int main(int argc, char **argv)
{
    unit_print_mode();
    unit_watchdog(1500);
    unsigned every = (unsigned)unit_option(argc, argv, "--every", 1);
    unsigned only_scene = (unsigned)unit_option(argc, argv, "--scene", ~0u);
    unsigned only_intruder = (unsigned)unit_option(argc, argv, "--intruder", ~0u);
    step_start();
    static uint8_t visits[1 << 24]; /* by address, folded */
    unsigned turn = 0;
    for (unsigned scene = 0; scene < step_scene_count; scene++) {
        if ((step_scene[scene].needs_rcs && sync_mode != sync_rcs) || (only_scene != ~0u && only_scene != scene))
            continue;
        struct step_path path = step_through(scene, false);
        unsigned in_section = 0, stops = 0, missed = 0;
        memset(visits, 0, sizeof visits);
        for (unsigned k = 0; k < path.length; k++) {
            in_section += path.point[k].in_section;
            if (visits[path.point[k].address % sizeof visits]++ >= VISITS_MAX)
                continue;
            for (unsigned intruder = 0; intruder < step_intruder_count; intruder++)
                for (enum step_way way = step_to_thread; way <= step_to_handler; way++) {
                    if ((way == step_to_handler && !step_intruder[intruder].in_handler) ||
                        (only_intruder != ~0u && only_intruder != intruder))
                        continue;
                    /* Sections are never left out; of the rest, every n-th, another one for each intruder. */
                    if (!path.point[k].in_section && ++turn % every != 0)
                        continue;
                    if (step_stop_at(scene, &path, k, intruder, way))
                        stops++;
                    else
                        missed++;
                }
        }
        unit_say("%-44s %5u instructions, %3u in sections, %6u stops, %4u not reached\n", step_scene[scene].name,
                 path.length, in_section, stops, missed);
        EXPECT(stops > missed);
        EXPECT((in_section >= 3) == (sync_mode == sync_rcs && step_scene[scene].has_sections));
    }
    unit_say("the other thread waited for a lock %u times\n", step_waits);
    step_end();
    return 0;
}
