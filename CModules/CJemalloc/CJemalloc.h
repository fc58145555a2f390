// The allocator's interface besides malloc. On some systems its names have a prefix (je_mallctl on macOS);
// here they have none.
#ifndef REEL_CJEMALLOC_H
#define REEL_CJEMALLOC_H

#define JEMALLOC_MANGLE
#include <jemalloc/jemalloc.h>

#endif
