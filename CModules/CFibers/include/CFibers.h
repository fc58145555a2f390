// Stacks of their own for work that waits in a simulation: whoever goes on is chosen by a call, not by the system.
#ifndef REEL_CFIBERS_H
#define REEL_CFIBERS_H

#include <stdbool.h>
#include <stddef.h>

/// A stack, and where the work on it stands. Used by one thread at a time.
typedef struct reel_fiber reel_fiber;

/// False where the system has no contexts (`ucontext.h` of glibc), or a sanitizer would not know of the change of stacks.
bool reel_fibers_available(void);

/// `stack_size` is rounded up to whole pages; one more, below, can't be written to. NULL where there is no memory.
reel_fiber *reel_fiber_create(size_t stack_size);

/// Only where its work has ended, or never began.
void reel_fiber_destroy(reel_fiber *fiber);

/// Begins work on a fiber that has none. Returns as reel_fiber_resume does.
bool reel_fiber_start(reel_fiber *fiber, void (*body)(void *argument), void *argument);

/// Goes on where the work yielded. Returns when it yields again, false, or has ended, true.
bool reel_fiber_resume(reel_fiber *fiber);

/// Called by the work on the fiber: returns with the next reel_fiber_resume.
void reel_fiber_yield(reel_fiber *fiber);

#endif
