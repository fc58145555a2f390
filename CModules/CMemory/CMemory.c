#include "CMemory.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#ifdef __GLIBC__
#include <malloc.h>
#endif

#ifdef REEL_WITHOUT_ARENAS
// Figures are unknown if the process has another malloc.
enum { MALLCTL_ARENAS_ALL = 0 };

static int mallctl(const char *name, void *old, size_t *old_size, void *new, size_t new_size)
{
    (void)name, (void)old, (void)old_size, (void)new, (void)new_size;
    return ENOTSUP;
}

static int mallctlnametomib(const char *name, size_t *mib, size_t *length)
{
    (void)name, (void)mib, (void)length;
    return ENOTSUP;
}

static int mallctlbymib(const size_t *mib, size_t length, void *old, size_t *old_size, void *new, size_t new_size)
{
    (void)mib, (void)length, (void)old, (void)old_size, (void)new, (void)new_size;
    return ENOTSUP;
}
#else
#include "../CJemalloc/CJemalloc.h"
#endif

// jemalloc's settings, unless MALLOC_CONF or the program overrides them. Without thread caches, freed memory leaves its
// account at once, on whatever thread. There are few arenas beside those of accounts. Free pages return to the system
// within a second of the arena's use, and leave the process at once. No huge pages: a player is smaller than two. Small
// objects of one size share one page, not up to seven: an account has few of each.
const char *malloc_conf = "tcache:false,narenas:4,dirty_decay_ms:1000,muzzy_decay_ms:0,oversize_threshold:0,thp:never,"
                          "slab_sizes:1-4096:1";

struct reel_account {
    atomic_size_t references;
    atomic_size_t mapped;
    atomic_size_t stored;
    unsigned arena;
    bool has_arena;
    // Video and audio are read in parallel.
    pthread_mutex_t store_lock;
    // The chunk being filled.
    reel_chunk *chunk;
};

// Large enough for most packets, small enough to be kept for a single remaining packet.
enum { chunk_size = 256 << 10 };

struct reel_chunk {
    // Each piece in the chunk holds a reference.
    reel_account *account;
    uint8_t *memory;
    size_t pieces, used, stored;
};

enum { mib_capacity = 5 };

// The names of figures, looked up once. One place in them has an arena's number.
typedef struct figure {
    size_t mib[mib_capacity];
    size_t length;
} figure;

static struct {
    bool available;
    figure arena_of_thread, cache_of_thread, epoch, create, purge, small, large, resident;
} names;

static pthread_once_t names_once = PTHREAD_ONCE_INIT;

static struct {
    pthread_mutex_t lock;
    unsigned *free;
    size_t free_count, free_capacity;
    unsigned made;
} arenas = {.lock = PTHREAD_MUTEX_INITIALIZER};

static _Thread_local reel_account *current;

static bool look_up(figure *figure, const char *name)
{
    figure->length = mib_capacity;
    return mallctlnametomib(name, figure->mib, &figure->length) == 0;
}

/// jemalloc may be loaded without being the process's malloc: a sanitizer's or a preloaded one comes first.
static bool is_malloc(void)
{
    enum { probe = 1 << 20 };
    uint64_t before = 0, after = 0;
    size_t size = sizeof before;
    // The first call makes jemalloc allocate for itself.
    for (int i = 0; i < 2; i++) {
        if (mallctl("thread.allocated", &before, &size, NULL, 0))
            return false;
    }
    void *volatile memory = malloc(probe);
    bool is_counted = mallctl("thread.allocated", &after, &size, NULL, 0) == 0 && after - before >= probe;
    free(memory);
    return is_counted;
}

static void look_up_names(void)
{
    names.available = is_malloc() && look_up(&names.arena_of_thread, "thread.arena") &&
                      look_up(&names.cache_of_thread, "thread.tcache.enabled") && look_up(&names.epoch, "epoch") &&
                      look_up(&names.create, "arenas.create") && look_up(&names.purge, "arena.0.purge") &&
                      look_up(&names.small, "stats.arenas.0.small.allocated") &&
                      look_up(&names.large, "stats.arenas.0.large.allocated") &&
                      look_up(&names.resident, "stats.arenas.0.resident");
}

bool reel_arenas_available(void)
{
    pthread_once(&names_once, look_up_names);
    return names.available;
}

static size_t figure_of(const figure *name, size_t place, unsigned arena)
{
    figure copy = *name;
    size_t value = 0, size = sizeof value;
    copy.mib[place] = arena;
    return mallctlbymib(copy.mib, copy.length, &value, &size, NULL, 0) ? 0 : value;
}

static size_t live_bytes(unsigned arena)
{
    return figure_of(&names.small, 2, arena) + figure_of(&names.large, 2, arena);
}

static void purge_arena(unsigned arena)
{
    figure copy = names.purge;
    copy.mib[1] = arena;
    mallctlbymib(copy.mib, copy.length, NULL, NULL, NULL, 0);
}

/// A returned arena, of several the one with the least memory left; otherwise a new one.
static bool take_arena(unsigned *arena)
{
    if (!reel_arenas_available())
        return false;
    pthread_mutex_lock(&arenas.lock);
    if (arenas.free_count > 0) {
        reel_account_refresh();
        size_t best = 0, least = SIZE_MAX;
        for (size_t i = arenas.free_count; i-- > 0 && least > 0;) {
            size_t live = live_bytes(arenas.free[i]);
            if (live < least) {
                best = i;
                least = live;
            }
        }
        *arena = arenas.free[best];
        arenas.free[best] = arenas.free[--arenas.free_count];
        pthread_mutex_unlock(&arenas.lock);
        return true;
    }
    // Reserve room for its return, which then can't fail.
    bool done = arenas.made < arenas.free_capacity;
    if (!done) {
        size_t capacity = arenas.free_capacity ? 2 * arenas.free_capacity : 16;
        unsigned *room = realloc(arenas.free, capacity * sizeof *room);
        if (room) {
            arenas.free = room;
            arenas.free_capacity = capacity;
            done = true;
        }
    }
    size_t size = sizeof *arena;
    done = done && mallctlbymib(names.create.mib, names.create.length, arena, &size, NULL, 0) == 0;
    arenas.made += done;
    pthread_mutex_unlock(&arenas.lock);
    return done;
}

unsigned reel_arena_count(void)
{
    pthread_mutex_lock(&arenas.lock);
    unsigned count = arenas.made;
    pthread_mutex_unlock(&arenas.lock);
    return count;
}

reel_account *reel_account_create(void)
{
    reel_account *account = calloc(1, sizeof *account);
    if (!account)
        return NULL;
    atomic_init(&account->references, 1);
    pthread_mutex_init(&account->store_lock, NULL);
    account->has_arena = take_arena(&account->arena);
    return account;
}

reel_account *reel_account_retain(reel_account *account)
{
    atomic_fetch_add_explicit(&account->references, 1, memory_order_relaxed);
    return account;
}

void reel_account_release(reel_account *account)
{
    if (atomic_fetch_sub_explicit(&account->references, 1, memory_order_acq_rel) != 1)
        return;
    if (account->has_arena) {
        purge_arena(account->arena);
        pthread_mutex_lock(&arenas.lock);
        arenas.free[arenas.free_count++] = account->arena;
        pthread_mutex_unlock(&arenas.lock);
    }
    pthread_mutex_destroy(&account->store_lock);
    free(account);
}

reel_account *reel_account_current(void) { return current; }

/// Returns the previous arena.
static unsigned bind_thread(unsigned arena)
{
    unsigned before = 0;
    size_t size = sizeof before;
    mallctlbymib(names.arena_of_thread.mib, names.arena_of_thread.length, &before, &size, &arena, sizeof arena);
    return before;
}

/// Returns whether there was one. A thread's cache would give it memory of the account that it worked for before.
static bool set_cache(bool enabled)
{
    bool before = false;
    size_t size = sizeof before;
    mallctlbymib(names.cache_of_thread.mib, names.cache_of_thread.length, &before, &size, &enabled, sizeof enabled);
    return before;
}

bool reel_thread_cache(bool enabled) { return reel_arenas_available() && set_cache(enabled); }

reel_account_scope reel_account_enter(reel_account *account)
{
    reel_account_scope scope = {.account = current, .has_arena = account->has_arena};
    if (account == current) {
        scope.has_arena = false;
        return scope;
    }
    current = account;
    if (scope.has_arena) {
        scope.had_cache = set_cache(false);
        scope.arena = bind_thread(account->arena);
    }
    return scope;
}

void reel_account_leave(reel_account_scope scope)
{
    current = scope.account;
    if (!scope.has_arena)
        return;
    bind_thread(scope.arena);
    if (scope.had_cache)
        set_cache(true);
}

void reel_account_adopt_thread(reel_account *account)
{
    if (!current)
        (void)reel_account_enter(account);
}

void reel_account_refresh(void)
{
    if (!reel_arenas_available())
        return;
    uint64_t epoch = 1;
    mallctlbymib(names.epoch.mib, names.epoch.length, NULL, NULL, &epoch, sizeof epoch);
}

bool reel_account_heap(const reel_account *account, reel_heap_figures *figures)
{
    if (!account->has_arena)
        return false;
    figures->live = live_bytes(account->arena);
    figures->resident = figure_of(&names.resident, 2, account->arena);
    return true;
}

bool reel_shared_heap(reel_heap_figures *figures)
{
    unsigned count = 0;
    size_t size = sizeof count;
    // The arenas of accounts come after these.
    if (!reel_arenas_available() || mallctl("opt.narenas", &count, &size, NULL, 0))
        return false;
    *figures = (reel_heap_figures){0};
    for (unsigned arena = 0; arena < count; arena++) {
        figures->live += live_bytes(arena);
        figures->resident += figure_of(&names.resident, 2, arena);
    }
    return true;
}

size_t reel_account_mapped(const reel_account *account)
{
    return atomic_load_explicit(&account->mapped, memory_order_relaxed);
}

void reel_account_purge(reel_account *account)
{
    if (account->has_arena) {
        // MALLOC_CONF has enabled the caches again.
        mallctl("thread.tcache.flush", NULL, NULL, NULL, 0);
        purge_arena(account->arena);
        return;
    }
#ifdef __GLIBC__
    if (!reel_arenas_available())
        malloc_trim(0);
#endif
}

void reel_memory_purge(void)
{
    if (reel_arenas_available()) {
        mallctl("thread.tcache.flush", NULL, NULL, NULL, 0);
        purge_arena(MALLCTL_ARENAS_ALL);
        return;
    }
#ifdef __GLIBC__
    malloc_trim(0);
#endif
}

static size_t whole_pages(size_t size)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    return size > SIZE_MAX - page ? 0 : (size + page - 1) / page * page;
}

/// Zeroed memory from the system; NULL if there is none.
static void *map(size_t size)
{
    size = whole_pages(size);
    if (size == 0)
        return NULL;
    void *memory = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED)
        return NULL;
#ifdef MADV_NOHUGEPAGE
    // Adjacent mappings might get a huge page together.
    madvise(memory, size, MADV_NOHUGEPAGE);
#endif
    return memory;
}

static void unmap(void *memory, size_t size) { munmap(memory, whole_pages(size)); }

// Set when a frame without an account is freed: malloc may keep its memory.
static atomic_bool keeps_frames;

void *reel_frame_memory_get(reel_account *account, size_t size)
{
    enum { align = 64 };
    if (!account && reel_arenas_available()) {
        void *memory = NULL;
        if (size == 0 || posix_memalign(&memory, align, size) != 0)
            return NULL;
        return memset(memory, 0, size);
    }
    void *memory = map(size);
    if (memory && account)
        atomic_fetch_add_explicit(&reel_account_retain(account)->mapped, whole_pages(size), memory_order_relaxed);
    return memory;
}

void reel_frame_memory_free(reel_account *account, void *memory, size_t size)
{
    if (!account && reel_arenas_available()) {
        free(memory);
        atomic_store_explicit(&keeps_frames, true, memory_order_relaxed);
        return;
    }
    unmap(memory, size);
    if (!account)
        return;
    atomic_fetch_sub_explicit(&account->mapped, whole_pages(size), memory_order_relaxed);
    reel_account_release(account);
}

void reel_frame_memory_trim(void)
{
    if (atomic_exchange_explicit(&keeps_frames, false, memory_order_relaxed))
        reel_memory_purge();
}

static void chunk_free(reel_chunk *chunk)
{
    if (!chunk)
        return;
    atomic_fetch_sub_explicit(&chunk->account->stored, chunk->stored, memory_order_relaxed);
    unmap(chunk->memory, chunk_size);
    free(chunk);
}

static reel_chunk *make_chunk(reel_account *account)
{
    reel_chunk *chunk = calloc(1, sizeof *chunk);
    if (!chunk)
        return NULL;
    chunk->account = account;
    chunk->memory = map(chunk_size);
    if (!chunk->memory) {
        free(chunk);
        return NULL;
    }
    return chunk;
}

void *reel_account_store(reel_account *account, size_t size, reel_chunk **result)
{
    enum { align = 16 };
    if (size == 0 || size > chunk_size)
        return NULL;
    size = (size + align - 1) / align * align;
    void *memory = NULL;
    pthread_mutex_lock(&account->store_lock);
    // A full chunk is referenced only by its pieces.
    reel_chunk *chunk = account->chunk;
    if (!chunk || size > chunk_size - chunk->used)
        chunk = account->chunk = make_chunk(account);
    if (chunk) {
        memory = chunk->memory + chunk->used;
        chunk->used += size;
        chunk->pieces++;
        // The unused end of a chunk is never touched, so it takes no memory.
        size_t stored = whole_pages(chunk->used);
        atomic_fetch_add_explicit(&account->stored, stored - chunk->stored, memory_order_relaxed);
        chunk->stored = stored;
        *result = chunk;
        reel_account_retain(account);
    }
    pthread_mutex_unlock(&account->store_lock);
    return memory;
}

void reel_chunk_release(reel_chunk *chunk)
{
    reel_account *account = chunk->account;
    pthread_mutex_lock(&account->store_lock);
    bool is_empty = --chunk->pieces == 0;
    if (is_empty && account->chunk == chunk)
        account->chunk = NULL;
    pthread_mutex_unlock(&account->store_lock);
    if (is_empty)
        chunk_free(chunk);
    reel_account_release(account);
}

size_t reel_account_stored(const reel_account *account)
{
    return atomic_load_explicit(&account->stored, memory_order_relaxed);
}
