/* SPDX-License-Identifier: MIT */
#include <sys/auxv.h>

#include "base/bits.h"
#include "os/filter.h"
#include "os/os.h"
#include "os/vdso.h"

size_t os_page_bytes = OS_PAGE_BYTES_MIN;

void os_init(void)
{
    size_t page = getauxval(AT_PAGESZ);
    if (is_power_of_two(page))
        os_page_bytes = page;
    os_vdso_init();
    os_filter_init();
    os_note_standard_error();
}
