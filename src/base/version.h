/* SPDX-License-Identifier: MIT */
#ifndef SUTLER_BASE_VERSION_H
#define SUTLER_BASE_VERSION_H

#include <sutler/sutler.h>

#define TEXT_OF(x) #x
#define VERSION_TEXT_OF(major, minor, patch) TEXT_OF(major) "." TEXT_OF(minor) "." TEXT_OF(patch)

/* "major.minor.patch" */
#define VERSION_TEXT VERSION_TEXT_OF(SUTLER_VERSION_MAJOR, SUTLER_VERSION_MINOR, SUTLER_VERSION_PATCH)

#endif
