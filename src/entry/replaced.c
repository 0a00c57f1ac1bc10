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
#include "base/bits.h"
#include "entry/bindings.h"
#include "options/options.h"
#include "os/line.h"
#include "os/os.h"

#if defined(__x86_64__)
#define BINDS(type) ((type) == R_X86_64_JUMP_SLOT || (type) == R_X86_64_GLOB_DAT || (type) == R_X86_64_64)
#else
#define BINDS(type) ((type) == R_AARCH64_JUMP_SLOT || (type) == R_AARCH64_GLOB_DAT || (type) == R_AARCH64_ABS64)
#endif

/* Whether `name` is an operator new or delete, all of which this library defines. */
static bool is_operator(const char *name)
{
    return text_begins(name, "_Znw") || text_begins(name, "_Zna") || text_begins(name, "_Zdl") ||
           text_begins(name, "_Zda");
}

/* Names that are to lead elsewhere. */
#define MOVES_MAX 32u
struct moves {
    const struct link_map *own;
    unsigned count;
    struct move {
        const char *name;
        ElfW(Sym) * symbol;
        ElfW(Addr) here, next;
    } move[MOVES_MAX];
};

static const struct move *move_of(const struct moves *m, const char *name)
{
    for (unsigned i = 0; is_operator(name) && i < m->count; i++)
        if (text_equal(m->move[i].name, name))
            return &m->move[i];
    return NULL;
}

/* ---- what is bound already ---- */

/* Where a word of a library lies: the loader has made some read-only once they were bound. */
enum place { place_writable, place_sealed, place_of_code };

static enum place place_of(const struct dl_phdr_info *library, const ElfW(Addr) * word)
{
    enum place place = place_of_code;
    for (unsigned i = 0; i < library->dlpi_phnum; i++) {
        const ElfW(Phdr) *p = &library->dlpi_phdr[i];
        const uintptr_t start = library->dlpi_addr + p->p_vaddr, end = start + p->p_memsz;
        if (p->p_type == PT_LOAD && (p->p_flags & PF_W) != 0 && (uintptr_t)word - start < end - start)
            place = place_writable;
        if (p->p_type == PT_GNU_RELRO && (uintptr_t)word >= align_down(start, os_page_bytes) &&
            (uintptr_t)word < align_down(end, os_page_bytes))
            return place_sealed;
    }
    return place;
}

static void rebind_word(const struct dl_phdr_info *library, ElfW(Addr) * word, ElfW(Addr) next, struct changes *c)
{
    const enum place place = place_of(library, word);
    if (place == place_writable)
        __atomic_store_n(word, next, __ATOMIC_RELAXED);
    else if (place == place_sealed)
        changes_add(c, word, next);
}

/* Of the relocations whose table, and its length, the dynamic section has under these tags. */
static void rebind_table(const struct dl_phdr_info *library, const struct symbols *s, const ElfW(Dyn) * dynamic,
                         int table_tag, int bytes_tag, const struct moves *m)
{
    const ElfW(Rela) *relocation = NULL;
    size_t bytes = 0;
    for (; dynamic->d_tag != DT_NULL; dynamic++) {
        if (dynamic->d_tag == table_tag)
            relocation = symbols_address(dynamic, s->base);
        else if (dynamic->d_tag == bytes_tag)
            bytes = dynamic->d_un.d_val;
    }
    struct changes c = {0};
    for (size_t i = 0; relocation != NULL && i < bytes / sizeof *relocation; i++) {
        if (!BINDS(ELF64_R_TYPE(relocation[i].r_info)))
            continue;
        const struct move *move = move_of(m, s->names + s->table[ELF64_R_SYM(relocation[i].r_info)].st_name);
        ElfW(Addr) *word = (ElfW(Addr) *)(s->base + relocation[i].r_offset);
        if (move != NULL && __atomic_load_n(word, __ATOMIC_RELAXED) == move->here)
            rebind_word(library, word, move->next, &c);
    }
    changes_make(&c);
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
    if (dynamic == NULL || dynamic == m->own->l_ld || !symbols_read(dynamic, library->dlpi_addr, &s))
        return 0;
    rebind_table(library, &s, dynamic, DT_RELA, DT_RELASZ, m);
    rebind_table(library, &s, dynamic, DT_JMPREL, DT_PLTRELSZ, m);
    return 0;
}

/* ---- which names ---- */

/* Whether somebody before us defines an operator that others are made of. */
static bool is_any_replaced(const struct link_map *own)
{
    static const char *const basic[] = {"_Znwm",
                                        "_ZdlPv",
                                        "_Znam",
                                        "_ZdaPv",
                                        "_ZnwmSt11align_val_t",
                                        "_ZdlPvSt11align_val_t",
                                        "_ZnamSt11align_val_t",
                                        "_ZdaPvSt11align_val_t"};
    for (unsigned i = 0; i < ARRAY_LEN(basic); i++)
        if (bindings_definer_before(own, basic[i]) != NULL)
            return true;
    return false;
}

/* Whether the library after us that would be asked defines an operator, and lacks one that is made of it: it may be
 * bound so that its own new leads to itself. */
static bool is_next_incomplete(const struct link_map *own)
{
    const struct link_map *plain = NULL, *sized = NULL;
    return bindings_defined_after(own, "_ZdlPv", &plain) != 0 && bindings_defined_after(own, "_ZdlPvm", &sized) != 0 &&
           plain != sized;
}

/* Of the operators that would lead to us, those that another library defines as well. */
static void find_moves(struct moves *m)
{
    struct symbols ours;
    const struct link_map *where;
    if (!symbols_of(m->own, &ours))
        return;
    for (size_t i = ours.first, count = symbols_count(&ours); i < count && m->count < MOVES_MAX; i++) {
        const char *name = ours.names + ours.table[i].st_name;
        const ElfW(Addr) next = is_operator(name) ? bindings_defined_after(m->own, name, &where) : 0;
        if (next != 0 && bindings_definer_before(m->own, name) == NULL)
            m->move[m->count++] = (struct move){name, &ours.table[i], ours.base + ours.table[i].st_value, next};
    }
}

/* ---- at the start ---- */

extern ElfW(Dyn) _DYNAMIC[] __attribute__((visibility("hidden"))); /* of this library */

/* NULL in a namespace of dlmopen. */
static const struct link_map *own_library(void)
{
    const struct link_map *library = _r_debug.r_map;
    while (library != NULL && library->l_ld != _DYNAMIC)
        library = library->l_next;
    return library;
}

static NOINLINE void give_way(const struct link_map *own)
{
    static struct moves m;
    struct changes c;
    c.count = 0;
    m.own = own;
    find_moves(&m);
    for (unsigned i = 0; i < m.count; i++)
        changes_add(&c, &m.move[i].symbol->st_value, m.move[i].next - own->l_addr);
    changes_make(&c);
    if (m.count != 0)
        dl_iterate_phdr(rebind_library, &m);
}

/* Where nobody replaces any this leaves nothing on the stack that a sweep would take for a pointer.  Where all are
 * replaced, as by a sanitizer that is not ready yet, no function of libc is called: hence nothing large is cleared. */
static __attribute__((constructor)) void give_way_to_replaced_operators(void)
{
    const struct link_map *own = own_library();
    if (own != NULL && option_get(option_deepbind) == deepbind_on &&
        (is_any_replaced(own) || is_next_incomplete(own)))
        give_way(own);
}
