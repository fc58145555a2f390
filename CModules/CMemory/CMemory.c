#include "CMemory.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#ifdef __GLIBC__
#include <malloc.h>
#endif

struct reel_account {
    atomic_size_t references;
    atomic_size_t mapped;
    atomic_size_t stored;
    unsigned arena;
    // The owner of the arena; NULL if the account has none.
    const reel_arenas *arenas;
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

// Set once.
static _Atomic(const reel_arenas *) registered;

static const reel_arenas *arenas(void) { return atomic_load_explicit(&registered, memory_order_acquire); }

void reel_arenas_register(const reel_arenas *table)
{
    atomic_store_explicit(&registered, table, memory_order_release);
}

static _Thread_local reel_account *current;

reel_account *reel_account_create(void)
{
    reel_account *account = calloc(1, sizeof *account);
    if (!account)
        return NULL;
    atomic_init(&account->references, 1);
    pthread_mutex_init(&account->store_lock, NULL);
    const reel_arenas *table = arenas();
    account->arenas = table && table->take(&account->arena) ? table : NULL;
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
    if (account->arenas)
        account->arenas->give_back(account->arena);
    pthread_mutex_destroy(&account->store_lock);
    free(account);
}

reel_account *reel_account_current(void) { return current; }

bool reel_thread_cache(bool enabled)
{
    const reel_arenas *table = arenas();
    return table && table->set_cache(enabled);
}

reel_account_scope reel_account_enter(reel_account *account)
{
    reel_account_scope scope = {.account = current};
    if (account == current)
        return scope;
    current = account;
    scope.arenas = account->arenas;
    if (scope.arenas)
        scope.heap = scope.arenas->enter(account->arena);
    return scope;
}

void reel_account_leave(reel_account_scope scope)
{
    current = scope.account;
    if (scope.arenas)
        scope.arenas->leave(scope.heap);
}

void reel_account_adopt_thread(reel_account *account)
{
    if (!current)
        (void)reel_account_enter(account);
}

void reel_account_refresh(void)
{
    if (arenas())
        arenas()->refresh();
}

bool reel_account_heap(const reel_account *account, reel_heap_figures *figures)
{
    if (!account->arenas)
        return false;
    *figures = account->arenas->figures(account->arena);
    return true;
}

bool reel_shared_heap(reel_heap_figures *figures) { return arenas() && arenas()->shared_figures(figures); }

size_t reel_account_mapped(const reel_account *account)
{
    return atomic_load_explicit(&account->mapped, memory_order_relaxed);
}

void reel_account_purge(reel_account *account)
{
    if (account->arenas)
        account->arenas->purge(account->arena);
}

void reel_limit_allocator_arenas(int count)
{
#ifdef __GLIBC__
    mallopt(M_ARENA_MAX, count);
#else
    (void)count;
#endif
}

void reel_memory_purge(void)
{
    if (arenas()) {
        arenas()->purge_all();
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

// True if frames without an account come from malloc. Decided once, because each must be freed as it was
// allocated.
static bool frames_are_allocated;
static pthread_once_t frames_once = PTHREAD_ONCE_INIT;

static void decide_frames(void) { frames_are_allocated = arenas() != NULL; }

// Set when a frame without an account is freed: malloc may keep its memory.
static atomic_bool keeps_frames;

void *reel_frame_memory_get(reel_account *account, size_t size)
{
    enum { align = 64 };
    pthread_once(&frames_once, decide_frames);
    if (!account && frames_are_allocated) {
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
    if (!account && frames_are_allocated) {
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
