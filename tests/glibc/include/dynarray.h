/* SPDX-License-Identifier: MIT */
#include <stdlib.h>

#include <malloc/dynarray.h>
