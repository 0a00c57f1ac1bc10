/* SPDX-License-Identifier: MIT
 *
 * Why: MMT's server, as the manager's thread runs it in the designs 1, 2, 5 and 6 (mmt_server.c).
 */
#ifndef ENGINES_MMT_SERVER_H
#define ENGINES_MMT_SERVER_H

void mmt_serve(void); /* returns when it is alone in the process */

#endif
