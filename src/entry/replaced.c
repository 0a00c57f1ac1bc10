/* SPDX-License-Identifier: MIT
 *
 * A program may replace some of the C++ operators: new and delete, say, to count or to put something before each block,
 * and not new[], nor the delete that is told a size.  The C++ library's own call those that are replaced, so that it
 * need not.  Ours do not call each other: they would take a block to free that is not one, or is one that was not
 * counted.  So where anybody before this library defines one of them, all that would lead to us lead to the C++ library
 * instead, which calls our malloc or the program's.
 *
 * When that is found out, which is before any other library is initialised, many names are bound already: those words
 * are written anew, and our symbol table for what is bound later.  (docs/decisions/0047-operators-replaced-in-part.md)
 *
 * Only in the shared library: among archives the linker sees to it.
 */
#include <dlfcn.h>
#include <string.h>
#include <sys/auxv.h>

#include "base/bits.h"
#include "entry/bindings.h"
#include "options/options.h"
#include "os/os.h"

#if defined(__x86_64__)
#define BINDS(type) ((type) == R_X86_64_JUMP_SLOT || (type) == R_X86_64_GLOB_DAT || (type) == R_X86_64_64)
#else
#define BINDS(type) ((type) == R_AARCH64_JUMP_SLOT || (type) == R_AARCH64_GLOB_DAT || (type) == R_AARCH64_ABS64)
#endif

/* Whether `name` is an operator new or delete, all of which this library defines. */
static bool is_operator(const char *name)
{
    return strncmp(name, "_Znw", 4) == 0 || strncmp(name, "_Zna", 4) == 0 || strncmp(name, "_Zdl", 4) == 0 ||
           strncmp(name, "_Zda", 4) == 0;
}

/* Names that are to lead elsewhere. */
#define MOVES_MAX 32u
struct moves {
    const struct link_map *own;
    unsigned count;
    struct move {
        const char *name;
        ElfW(Addr) here, next;
    } move[MOVES_MAX];
};

static const struct move *move_of(const struct moves *m, const char *name)
{
    for (unsigned i = 0; is_operator(name) && i < m->count; i++)
        if (strcmp(m->move[i].name, name) == 0)
            return &m->move[i];
    return NULL;
}

/* ---- what is bound already ---- */

/* What of a library the loader has made read-only once it was bound. */
struct span_of_pages {
    uintptr_t start, end;
};

static struct span_of_pages sealed_pages(const struct dl_phdr_info *library)
{
    for (unsigned i = 0; i < library->dlpi_phnum; i++) {
        const ElfW(Phdr) *p = &library->dlpi_phdr[i];
        const uintptr_t start = library->dlpi_addr + p->p_vaddr;
        if (p->p_type == PT_GNU_RELRO)
            return (struct span_of_pages){align_down(start, os_page_bytes),
                                          align_down(start + p->p_memsz, os_page_bytes)};
    }
    return (struct span_of_pages){0, 0};
}

static void rebind(const ElfW(Rela) * relocation, size_t bytes, const struct symbols *s, const struct moves *m,
                   struct span_of_pages sealed, struct changes *c)
{
    for (const ElfW(Rela) *end = relocation + bytes / sizeof *relocation; relocation < end; relocation++) {
        if (!BINDS(ELF64_R_TYPE(relocation->r_info)))
            continue;
        const struct move *move = move_of(m, s->names + s->table[ELF64_R_SYM(relocation->r_info)].st_name);
        ElfW(Addr) *word = (ElfW(Addr) *)(s->base + relocation->r_offset);
        if (move == NULL || __atomic_load_n(word, __ATOMIC_RELAXED) != move->here)
            continue;
        if ((uintptr_t)word - sealed.start < sealed.end - sealed.start)
            changes_add(c, word, move->next);
        else
            __atomic_store_n(word, move->next, __ATOMIC_RELAXED);
    }
}

static int rebind_library(struct dl_phdr_info *library, size_t size, void *moves)
{
    (void)size;
    const struct moves *m = moves;
    const ElfW(Dyn) *dynamic = NULL;
    for (unsigned i = 0; i < library->dlpi_phnum; i++)
        if (library->dlpi_phdr[i].p_type == PT_DYNAMIC)
            dynamic = (const ElfW(Dyn) *)(library->dlpi_addr + library->dlpi_phdr[i].p_vaddr);
    struct symbols s;
    const bool is_of_kernel = library->dlpi_addr != 0 && library->dlpi_addr == getauxval(AT_SYSINFO_EHDR);
    if (dynamic == NULL || dynamic == m->own->l_ld || is_of_kernel ||
        !symbols_read(dynamic, library->dlpi_addr, true, &s))
        return 0;
    const ElfW(Rela) *table = NULL, *jumps = NULL;
    size_t table_bytes = 0, jumps_bytes = 0;
    for (; dynamic->d_tag != DT_NULL; dynamic++) {
        if (dynamic->d_tag == DT_RELA)
            table = (const ElfW(Rela) *)dynamic->d_un.d_ptr;
        else if (dynamic->d_tag == DT_RELASZ)
            table_bytes = dynamic->d_un.d_val;
        else if (dynamic->d_tag == DT_JMPREL)
            jumps = (const ElfW(Rela) *)dynamic->d_un.d_ptr;
        else if (dynamic->d_tag == DT_PLTRELSZ)
            jumps_bytes = dynamic->d_un.d_val;
    }
    struct changes c = {0};
    rebind(table, table == NULL ? 0 : table_bytes, &s, m, sealed_pages(library), &c);
    rebind(jumps, jumps == NULL ? 0 : jumps_bytes, &s, m, sealed_pages(library), &c);
    changes_make(&c);
    return 0;
}

/* ---- which names ---- */

/* Whether somebody before us defines an operator that others are made of. */
static bool is_any_replaced(const struct link_map *own)
{
    static const char *const basic[] = {"_Znwm", "_ZdlPv", "_ZnwmSt11align_val_t", "_ZdlPvSt11align_val_t",
                                        "_Znam", "_ZdaPv"};
    for (unsigned i = 0; i < ARRAY_LEN(basic); i++)
        if (bindings_defined_before(own, basic[i]))
            return true;
    return false;
}

/* Those that would lead to us, and what the C++ library defines. */
static void find_moves(const struct symbols *ours, struct moves *m)
{
    for (size_t i = ours->first, count = symbols_count(ours); i < count && m->count < MOVES_MAX; i++) {
        const char *name = ours->names + ours->table[i].st_name;
        if (!is_operator(name) || bindings_defined_before(m->own, name))
            continue;
        const ElfW(Addr) next = (ElfW(Addr))dlsym(RTLD_NEXT, name);
        if (next != 0)
            m->move[m->count++] = (struct move){name, ours->base + ours->table[i].st_value, next};
    }
}

extern ElfW(Dyn) _DYNAMIC[] __attribute__((visibility("hidden"))); /* of this library */

/* NULL in a namespace of dlmopen. */
static const struct link_map *own_library(void)
{
    const struct link_map *library = _r_debug.r_map;
    while (library != NULL && library->l_ld != _DYNAMIC)
        library = library->l_next;
    return library;
}

static __attribute__((constructor)) void give_way_to_replaced_operators(void)
{
    struct moves m = {.own = own_library()};
    struct changes c = {0};
    struct symbols ours;
    if (m.own == NULL || option_get(option_deepbind) != deepbind_on || !is_any_replaced(m.own) ||
        !bindings_symbols(m.own, &ours))
        return;
    find_moves(&ours, &m);
    for (unsigned i = 0; i < m.count; i++) {
        ElfW(Sym) *symbol = bindings_find(&ours, m.move[i].name, NULL);
        changes_add(&c, &symbol->st_value, m.move[i].next - ours.base);
    }
    changes_make(&c);
    dl_iterate_phdr(rebind_library, &m);
}
