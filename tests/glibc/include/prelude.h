/* SPDX-License-Identifier: MIT
 *
 * Put before every file of glibc's that is compiled here: what its own build would have defined, for code that now
 * stands outside of the C library.
 */
#ifndef TESTS_GLIBC_PRELUDE_H
#define TESTS_GLIBC_PRELUDE_H

#include <features.h>

#define libc_hidden_proto(name)
#define libc_hidden_def(name)
#define attribute_hidden
#define attribute_compat_text_section
#define _LIBC_REENTRANT       1
#define __libc_fatal(message) (fputs(message, stderr), abort())
#define __set_errno(error)    (errno = (error))

#ifndef __attribute_maybe_unused__
#define __attribute_maybe_unused__ __attribute__((unused))
#endif

#endif
