/* SPDX-License-Identifier: MIT
 *
 * The linker puts this in the place of the real one: nothing is purged but by the test.
 */
void __wrap_decay_in_passing(void);
void __wrap_decay_in_passing(void)
{
}
