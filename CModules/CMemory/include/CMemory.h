// Memory by account: a count of the bytes of frames and packets, and, if there are arenas
// (reel_arenas_register), an arena for allocations with malloc. Plain C, because frames are counted in
// FFmpeg's callbacks on any thread, and outlive their decoder.
#ifndef REEL_CMEMORY_H
#define REEL_CMEMORY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct reel_heap_figures {
    /// Bytes in use, as rounded by the allocator.
    size_t live;
    /// Bytes taken from the system, including gaps, memory kept for later, and the allocator's own memory.
    size_t resident;
} reel_heap_figures;

/// The arena and cache of a thread's allocations.
typedef struct reel_thread_heap {
    unsigned arena;
    bool had_cache;
} reel_thread_heap;

/// The operations of an allocator with arenas for accounts. Each function may be called on any thread.
typedef struct reel_arenas {
    /// Takes an arena for an account; false if there is none.
    bool (*take)(unsigned *arena);
    /// Returns an arena that was taken with `take`.
    void (*give_back)(unsigned arena);
    /// Lets the calling thread allocate in an arena; returns its state before, for `leave`.
    reel_thread_heap (*enter)(unsigned arena);
    void (*leave)(reel_thread_heap before);
    /// Gives the calling thread a cache of free memory, or takes it away; returns whether it had one.
    bool (*set_cache)(bool enabled);
    /// Updates the figures.
    void (*refresh)(void);
    reel_heap_figures (*figures)(unsigned arena);
    /// The figures of memory allocated outside all accounts' arenas.
    bool (*shared_figures)(reel_heap_figures *figures);
    /// Returns the memory that an arena keeps for later to the system.
    void (*purge)(unsigned arena);
    void (*purge_all)(void);
} reel_arenas;

/// Gives each account that is created from now on an arena. Call it once.
void reel_arenas_register(const reel_arenas *arenas);

/// Reference-counted: by its holders, and by each mapping counted on it. After the last reference, its arena
/// may be given to another account.
typedef struct reel_account reel_account;

/// NULL if there is no memory.
reel_account *reel_account_create(void);
reel_account *reel_account_retain(reel_account *account);
void reel_account_release(reel_account *account);

/// The account that the calling thread works for, or NULL.
reel_account *reel_account_current(void);

/// The previous state of the calling thread, for reel_account_leave.
typedef struct reel_account_scope {
    reel_account *account;
    const reel_arenas *arenas;
    reel_thread_heap heap;
} reel_account_scope;

/// Counts the calling thread's allocations on `account` from now on. The caller holds the account until it
/// leaves.
reel_account_scope reel_account_enter(reel_account *account);
void reel_account_leave(reel_account_scope scope);

/// Gives the calling thread a cache of free memory, or takes it away; returns whether it had one. For a thread that
/// works for no account.
bool reel_thread_cache(bool enabled);

/// For a thread that works for no other account until it ends. Does nothing if the thread already has one.
void reel_account_adopt_thread(reel_account *account);

/// Updates the figures of all accounts.
void reel_account_refresh(void);

/// The figures of the last refresh; false if the account has no arena.
bool reel_account_heap(const reel_account *account, reel_heap_figures *figures);

/// Memory allocated outside all accounts, as of the last refresh; false if there are no arenas.
bool reel_shared_heap(reel_heap_figures *figures);

/// Bytes currently mapped for the account.
size_t reel_account_mapped(const reel_account *account);

/// Returns the memory that the account's arena keeps for later to the system.
void reel_account_purge(reel_account *account);

/// Limits the arenas of glibc's allocator, which allocates FFmpeg's memory; does nothing on other systems.
/// mallopt is not in Swift's Glibc module.
void reel_limit_allocator_arenas(int count);

/// Like reel_account_purge, for all memory that the process's malloc keeps, inside and outside of accounts.
void reel_memory_purge(void);

/// Zeroed memory for a frame, aligned to 64 bytes; NULL if there is none. With an account, it is counted
/// there and comes from the system, to which it returns at once. Otherwise, if there are arenas, it comes
/// from malloc, which keeps it for a while (reel_frame_memory_trim): frames of the next source then reuse
/// pages. New pages cost more than zeroing old ones.
void *reel_frame_memory_get(reel_account *account, size_t size);
void reel_frame_memory_free(reel_account *account, void *memory, size_t size);

/// Returns the memory that malloc keeps to the system, if frames without an account have been freed since the
/// last call.
void reel_frame_memory_trim(void);

/// A piece of an account's memory for packets; see reel_account_store.
typedef struct reel_chunk reel_chunk;

/// Returns `size` zeroed bytes directly after the previous ones, so that nothing is lost to rounding. `chunk`
/// is set to the value to pass once to reel_chunk_release for them: a chunk returns to the system when all
/// pieces in it have been released. Returns NULL if there is no memory, or if `size` is too large for a
/// chunk.
void *reel_account_store(reel_account *account, size_t size, reel_chunk **chunk);
void reel_chunk_release(reel_chunk *chunk);

/// The used bytes of the account's chunks, in whole pages, including released pieces in chunks that are still in use.
size_t reel_account_stored(const reel_account *account);

#endif
