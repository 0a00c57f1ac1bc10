/* SPDX-License-Identifier: MIT
 *
 * operator new (nothrow): NULL where the others throw.  Without memory it must call the new_handler and swallow what
 * that throws, which C cannot: then the C++ library's own nothrow form is called, which does it around our operator
 * new.
 *
 * Only in the shared library: in a static program the C++ library's form is the one that is linked.
 */
#include <dlfcn.h>

#include "core/core.h"
#ifdef SUTLER_HARDENED
#include "hardened/hardened.h"
#define TAKE(size, alignment, family) harden_allocate(size, alignment, &(bool){false}, family)
#else
#define TAKE(size, alignment, family) allocate_aligned(size, alignment)
#endif

/* std::nothrow_t arrives as a reference, std::align_val_t as a size. */
#define NOTHROW(name, family, alignment, parameters, arguments)                                                        \
    EXPORT void *name parameters;                                                                                      \
    EXPORT void *name parameters                                                                                       \
    {                                                                                                                  \
        void *block = TAKE(size, alignment, family);                                                                   \
        if (likely(block != NULL))                                                                                     \
            return block;                                                                                              \
        void *(*next) parameters = (void *(*)parameters)dlsym(RTLD_NEXT, #name);                                       \
        return next != NULL ? next arguments : NULL;                                                                   \
    }

NOTHROW(_ZnwmRKSt9nothrow_t, family_new, BLOCK_ALIGNMENT, (size_t size, const void *tag), (size, tag))
NOTHROW(_ZnamRKSt9nothrow_t, family_array, BLOCK_ALIGNMENT, (size_t size, const void *tag), (size, tag))
NOTHROW(_ZnwmSt11align_val_tRKSt9nothrow_t, family_new, align, (size_t size, size_t align, const void *tag),
        (size, align, tag))
NOTHROW(_ZnamSt11align_val_tRKSt9nothrow_t, family_array, align, (size_t size, size_t align, const void *tag),
        (size, align, tag))
