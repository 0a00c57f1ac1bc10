/* SPDX-License-Identifier: MIT */
#include "api/replaced.h"

extern "C" void plugin_use_all_forms()
{
    use_all_forms();
}
