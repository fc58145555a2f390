// Arenas of jemalloc for the accounts of CMemory. A program that links this has jemalloc as its malloc, with
// the settings in CArenas.c.
#ifndef REEL_CARENAS_H
#define REEL_CARENAS_H

#include <stdbool.h>

/// Gives each account that is created from now on an arena. False if the process's malloc is not jemalloc.
bool reel_jemalloc_register(void);

/// The number of arenas made for accounts since the process began.
unsigned reel_jemalloc_arena_count(void);

#endif
