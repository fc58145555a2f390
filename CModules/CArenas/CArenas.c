#include "CArenas.h"

#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>

#include "../CJemalloc/CJemalloc.h"
#include "CMemory.h"

// jemalloc's settings, unless MALLOC_CONF or the program overrides them. Without thread caches, freed memory
// leaves its account at once, on any thread. There are few arenas apart from those of accounts. Free pages
// return to the system within a second of the arena's use, and leave the process at once. No huge pages: a
// player is smaller than two. Small objects of one size share one page, not up to seven: an account has few
// of each.
const char *malloc_conf = "tcache:false,narenas:4,dirty_decay_ms:1000,muzzy_decay_ms:0,oversize_threshold:0,thp:never,"
                          "slab_sizes:1-4096:1";

enum { mib_capacity = 5 };

// The names of figures, looked up once. One position in them is the number of an arena.
typedef struct figure {
    size_t mib[mib_capacity];
    size_t length;
} figure;

static struct {
    figure arena_of_thread, cache_of_thread, epoch, create, purge, small, large, resident;
} names;

static struct {
    pthread_mutex_t lock;
    unsigned *free;
    size_t free_count, free_capacity;
    unsigned made;
} arenas = {.lock = PTHREAD_MUTEX_INITIALIZER};

static bool look_up(figure *figure, const char *name)
{
    figure->length = mib_capacity;
    return mallctlnametomib(name, figure->mib, &figure->length) == 0;
}

/// jemalloc may be loaded without being the process's malloc, because a preloaded one takes precedence.
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

static bool look_up_names(void)
{
    return look_up(&names.arena_of_thread, "thread.arena") &&
           look_up(&names.cache_of_thread, "thread.tcache.enabled") && look_up(&names.epoch, "epoch") &&
           look_up(&names.create, "arenas.create") && look_up(&names.purge, "arena.0.purge") &&
           look_up(&names.small, "stats.arenas.0.small.allocated") &&
           look_up(&names.large, "stats.arenas.0.large.allocated") &&
           look_up(&names.resident, "stats.arenas.0.resident");
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

static void refresh(void)
{
    uint64_t epoch = 1;
    mallctlbymib(names.epoch.mib, names.epoch.length, NULL, NULL, &epoch, sizeof epoch);
}

static reel_heap_figures arena_figures(unsigned arena)
{
    return (reel_heap_figures){.live = live_bytes(arena), .resident = figure_of(&names.resident, 2, arena)};
}

static bool shared_figures(reel_heap_figures *figures)
{
    unsigned count = 0;
    size_t size = sizeof count;
    // The arenas of accounts come after these.
    if (mallctl("opt.narenas", &count, &size, NULL, 0))
        return false;
    *figures = (reel_heap_figures){0};
    for (unsigned arena = 0; arena < count; arena++) {
        figures->live += live_bytes(arena);
        figures->resident += figure_of(&names.resident, 2, arena);
    }
    return true;
}

static void purge(unsigned arena)
{
    figure copy = names.purge;
    copy.mib[1] = arena;
    // MALLOC_CONF may have enabled the caches again.
    mallctl("thread.tcache.flush", NULL, NULL, NULL, 0);
    mallctlbymib(copy.mib, copy.length, NULL, NULL, NULL, 0);
}

static void purge_all(void) { purge(MALLCTL_ARENAS_ALL); }

/// Takes a returned arena, among several the one with the least memory left; otherwise a new one.
static bool take(unsigned *arena)
{
    pthread_mutex_lock(&arenas.lock);
    if (arenas.free_count > 0) {
        refresh();
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

static void give_back(unsigned arena)
{
    purge(arena);
    pthread_mutex_lock(&arenas.lock);
    arenas.free[arenas.free_count++] = arena;
    pthread_mutex_unlock(&arenas.lock);
}

/// Returns the previous arena.
static unsigned bind_thread(unsigned arena)
{
    unsigned before = 0;
    size_t size = sizeof before;
    mallctlbymib(names.arena_of_thread.mib, names.arena_of_thread.length, &before, &size, &arena, sizeof arena);
    return before;
}

static bool set_cache(bool enabled)
{
    bool before = false;
    size_t size = sizeof before;
    mallctlbymib(names.cache_of_thread.mib, names.cache_of_thread.length, &before, &size, &enabled, sizeof enabled);
    return before;
}

/// Without the thread's cache, which would give it memory of the previous account.
static reel_thread_heap enter(unsigned arena)
{
    bool had_cache = set_cache(false);
    return (reel_thread_heap){.arena = bind_thread(arena), .had_cache = had_cache};
}

static void leave(reel_thread_heap before)
{
    bind_thread(before.arena);
    if (before.had_cache)
        set_cache(true);
}

static const reel_arenas table = {
    .take = take,
    .give_back = give_back,
    .enter = enter,
    .leave = leave,
    .set_cache = set_cache,
    .refresh = refresh,
    .figures = arena_figures,
    .shared_figures = shared_figures,
    .purge = purge,
    .purge_all = purge_all,
};

static bool is_registered;

static void register_table(void)
{
    is_registered = is_malloc() && look_up_names();
    if (is_registered)
        reel_arenas_register(&table);
}

bool reel_jemalloc_register(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, register_table);
    return is_registered;
}

unsigned reel_jemalloc_arena_count(void)
{
    pthread_mutex_lock(&arenas.lock);
    unsigned count = arenas.made;
    pthread_mutex_unlock(&arenas.lock);
    return count;
}
