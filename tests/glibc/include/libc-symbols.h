/* SPDX-License-Identifier: MIT
 *
 * Nothing: prelude.h has what the tests need of it.
 */
