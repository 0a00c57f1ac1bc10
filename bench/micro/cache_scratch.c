/* SPDX-License-Identifier: MIT
 *
 * Why: passive false sharing (support/cache_main.h).
 */
#include "cache_main.h"

int main(int argc, char **argv)
{
    return cache_main("cache_scratch", true, argc, argv);
}
