// Memory by account: an arena of jemalloc for what is allocated with malloc, and a count of the bytes of pictures.
// Plain C, as the pictures are counted in FFmpeg's callbacks on any thread, and outlive their decoder.
#ifndef REEL_CMEMORY_H
#define REEL_CMEMORY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/// Counted by reference: whoever holds one, and each mapping that is counted on it. With the last one its arena may be
/// given to another account.
typedef struct reel_account reel_account;

/// NULL where there is no memory.
reel_account *reel_account_create(void);
reel_account *reel_account_retain(reel_account *account);
void reel_account_release(reel_account *account);

/// The account that the calling thread works for, or NULL.
reel_account *reel_account_current(void);

/// What the calling thread did before; for reel_account_leave.
typedef struct reel_account_scope {
    reel_account *account;
    unsigned arena;
    bool has_arena;
    bool had_cache;
} reel_account_scope;

/// What the calling thread allocates belongs to `account` from now on, which the caller holds until it leaves.
reel_account_scope reel_account_enter(reel_account *account);
void reel_account_leave(reel_account_scope scope);

/// For a thread that works for no other account until it ends. Does nothing on one that works for one already.
void reel_account_adopt_thread(reel_account *account);

/// Brings the figures of all accounts up to date.
void reel_account_refresh(void);

typedef struct reel_heap_figures {
    /// Bytes that are in use, as the allocator rounds them.
    size_t live;
    /// Bytes that they take from the system: with the gaps between them, what is kept for later, and the allocator's own.
    size_t resident;
} reel_heap_figures;

/// As of the last refresh; false where the process's malloc can't tell accounts apart.
bool reel_account_heap(const reel_account *account, reel_heap_figures *figures);

/// What is allocated outside of all accounts, as of the last refresh; false where the process's malloc can't tell.
bool reel_shared_heap(reel_heap_figures *figures);

/// Bytes that are mapped for the account now.
size_t reel_account_mapped(const reel_account *account);

/// Gives what the account's arena keeps for later back to the system; without arenas, what all of malloc keeps.
void reel_account_purge(reel_account *account);

/// As reel_account_purge, for all that the process's malloc keeps, of accounts and of others.
void reel_memory_purge(void);

/// Zeroed memory from the system, counted on `account` (which may be NULL); NULL where there is none. `size` is rounded
/// up to whole pages.
void *reel_memory_map(reel_account *account, size_t size);
void reel_memory_unmap(reel_account *account, void *memory, size_t size);

/// A piece of an account's memory for packets; see reel_account_store.
typedef struct reel_chunk reel_chunk;

/// `size` zeroed bytes, one behind the other with those that were asked for before, so that nothing is lost to rounding.
/// `chunk` gets what is to be given to reel_chunk_release once for them: a chunk is the system's again when all that is
/// in it has been released. NULL where there is no memory, or `size` is too large to be kept that way.
void *reel_account_store(reel_account *account, size_t size, reel_chunk **chunk);
void reel_chunk_release(reel_chunk *chunk);

/// Bytes of the account's chunks that have been used, whole pages: those that were released in a chunk with others that
/// were not are among them.
size_t reel_account_stored(const reel_account *account);

/// Arenas that were made for accounts since the process began.
unsigned reel_arena_count(void);

/// True where the process's malloc tells accounts apart.
bool reel_arenas_available(void);

#endif
