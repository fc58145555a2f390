// A malloc for tests, loaded with LD_PRELOAD. Each block that FFmpeg's libraries allocate ends at a page without access,
// so a write or a read past it ends the process at that instruction, in assembly too. A freed block loses its access.
// So do large blocks of everyone, because FFmpeg also writes into memory that Reel allocates.
//
// Blocks end at the guard page except for their alignment (libavutil asks for up to 64 bytes). The bytes around a block
// are checked when it is freed. All other memory comes from the process's own malloc.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <link.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { page = 4096, filler = 0xa5, library_capacity = 16, large = 16 << 10 };

// The addresses of all blocks. None is used twice, so that an access after a free is found too.
static const size_t space_size = (size_t)1 << 44;
static uint8_t *space;
static size_t space_used;

// The code of FFmpeg's libraries.
static struct {
    uintptr_t begin, end;
} libraries[library_capacity];
static int library_count;

// In a page of its own before the block.
typedef struct header {
    size_t size, mapped;
} header;

// The malloc of the process without this file.
static struct {
    void *(*malloc)(size_t);
    void *(*calloc)(size_t, size_t);
    void *(*realloc)(void *, size_t);
    void *(*memalign)(size_t, size_t);
    void (*free)(void *);
    size_t (*usable_size)(void *);
} other;

static void find_other(void)
{
    if (other.usable_size)
        return;
    // dlsym allocates nothing if it succeeds.
    *(void **)&other.malloc = dlsym(RTLD_NEXT, "malloc");
    *(void **)&other.calloc = dlsym(RTLD_NEXT, "calloc");
    *(void **)&other.realloc = dlsym(RTLD_NEXT, "realloc");
    *(void **)&other.memalign = dlsym(RTLD_NEXT, "memalign");
    *(void **)&other.free = dlsym(RTLD_NEXT, "free");
    *(void **)&other.usable_size = dlsym(RTLD_NEXT, "malloc_usable_size");
}

static void fail(const char *text)
{
    (void)!write(STDERR_FILENO, text, strlen(text));
    abort();
}

static int add_library(struct dl_phdr_info *info, size_t size, void *unused)
{
    (void)size, (void)unused;
    const char *name = strrchr(info->dlpi_name, '/');
    if (!name || (strncmp(name, "/libav", 6) && strncmp(name, "/libswscale", 11) && strncmp(name, "/libswresample", 14)))
        return 0;
    for (int i = 0; i < info->dlpi_phnum && library_count < library_capacity; i++) {
        if (info->dlpi_phdr[i].p_type != PT_LOAD || !(info->dlpi_phdr[i].p_flags & PF_X))
            continue;
        libraries[library_count].begin = info->dlpi_addr + info->dlpi_phdr[i].p_vaddr;
        libraries[library_count].end = libraries[library_count].begin + info->dlpi_phdr[i].p_memsz;
        library_count++;
    }
    return 0;
}

__attribute__((constructor)) static void begin(void)
{
    void *memory = mmap(NULL, space_size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (memory == MAP_FAILED)
        fail("guard: no address space\n");
    space = memory;
    dl_iterate_phdr(add_library, NULL);
}

static bool is_guarded(const void *memory)
{
    return space && (const uint8_t *)memory >= space && (const uint8_t *)memory < space + space_size;
}

static bool is_to_be_guarded(size_t size, const void *caller)
{
    find_other();
    if (size >= large)
        return space;
    for (int i = 0; i < library_count; i++) {
        if ((uintptr_t)caller >= libraries[i].begin && (uintptr_t)caller < libraries[i].end)
            return true;
    }
    return false;
}

static header *header_of(void *memory) { return (header *)((uintptr_t)memory / page * page - page); }

static void *guarded(size_t align, size_t size)
{
    if (align > page || size > space_size / 4)
        return other.memalign(align, size);
    size_t room = size ? (size + align - 1) / align * align : align;
    size_t mapped = page + (room + page - 1) / page * page;
    size_t offset = __atomic_fetch_add(&space_used, mapped + page, __ATOMIC_RELAXED);
    if (offset + mapped + page > space_size)
        fail("guard: the address space is used up\n");
    uint8_t *start = space + offset;
    // Fails if the process has too many mappings.
    if (mprotect(start, mapped, PROT_READ | PROT_WRITE))
        return other.memalign(align, size);
    *(header *)start = (header){.size = size, .mapped = mapped};
    uint8_t *block = start + mapped - room;
    memset(start + page, filler, (size_t)(block - start) - page);
    memset(block + size, filler, room - size);
    return block;
}

static void check(const uint8_t *byte, const uint8_t *end)
{
    while (byte < end) {
        if (*byte++ != filler)
            fail("guard: FFmpeg wrote outside of a block\n");
    }
}

static void unguard(void *memory)
{
    header *header = header_of(memory);
    uint8_t *start = (uint8_t *)header;
    check(start + page, memory);
    check((uint8_t *)memory + header->size, start + header->mapped);
    mmap(start, header->mapped, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0);
}

void *malloc(size_t size)
{
    return is_to_be_guarded(size, __builtin_return_address(0)) ? guarded(16, size) : other.malloc(size);
}

void *calloc(size_t count, size_t size)
{
    size_t bytes;
    if (__builtin_mul_overflow(count, size, &bytes) || !is_to_be_guarded(bytes, __builtin_return_address(0)))
        return other.calloc(count, size);
    void *memory = guarded(16, bytes);
    return memory ? memset(memory, 0, bytes) : NULL;
}

void *realloc(void *memory, size_t size)
{
    if (memory && !is_guarded(memory)) {
        find_other();
        return other.realloc(memory, size);
    }
    if (!memory && !is_to_be_guarded(size, __builtin_return_address(0)))
        return other.realloc(memory, size);
    void *moved = guarded(16, size);
    if (moved && memory) {
        size_t old = header_of(memory)->size;
        memcpy(moved, memory, old < size ? old : size);
        unguard(memory);
    }
    return moved;
}

static void *aligned(size_t align, size_t size, const void *caller)
{
    return is_to_be_guarded(size, caller) ? guarded(align, size) : other.memalign(align, size);
}

void *memalign(size_t align, size_t size) { return aligned(align, size, __builtin_return_address(0)); }

void *aligned_alloc(size_t align, size_t size) { return aligned(align, size, __builtin_return_address(0)); }

int posix_memalign(void **memory, size_t align, size_t size)
{
    if (!align || align % sizeof(void *) || align & (align - 1))
        return EINVAL;
    void *made = aligned(align, size, __builtin_return_address(0));
    if (!made)
        return ENOMEM;
    *memory = made;
    return 0;
}

void free(void *memory)
{
    find_other();
    if (is_guarded(memory))
        unguard(memory);
    else
        other.free(memory);
}

// Swift's arrays ask for it.
size_t malloc_usable_size(void *memory)
{
    if (is_guarded(memory))
        return header_of(memory)->size;
    find_other();
    return other.usable_size(memory);
}
