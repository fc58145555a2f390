// The allocator's interface beside malloc. Its names have a prefix on some systems (je_mallctl on macOS): here they
// have none.
#ifndef REEL_CJEMALLOC_H
#define REEL_CJEMALLOC_H

#define JEMALLOC_MANGLE
#include <jemalloc/jemalloc.h>

#endif
