/* SPDX-License-Identifier: MIT
 *
 * Nothing: prelude.h has what is needed of it.
 */
