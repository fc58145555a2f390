// A checked _longjmp takes another stack for a mistake.
#undef _FORTIFY_SOURCE

#include "CFibers.h"

#include <stdint.h>
#include <stdlib.h>

#if defined(__has_feature)
#if __has_feature(thread_sanitizer) || __has_feature(address_sanitizer)
#define REEL_SANITIZED 1
#endif
#endif

#if defined(__GLIBC__) && !defined(REEL_SANITIZED) && !defined(__SANITIZE_THREAD__) && !defined(__SANITIZE_ADDRESS__)

#include <setjmp.h>
#include <sys/mman.h>
#include <ucontext.h>
#include <unistd.h>

// A context is made once for each stack. From then on _longjmp changes stacks: swapcontext has the kernel change the
// signal mask each time.
struct reel_fiber {
    jmp_buf own, caller;
    ucontext_t first;
    void *memory;
    size_t size;
    void (*body)(void *);
    void *argument;
    bool has_begun, has_ended;
};

bool reel_fibers_available(void) { return true; }

reel_fiber *reel_fiber_create(size_t stack_size)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    size_t size = (stack_size + page - 1) / page * page + page;
    reel_fiber *fiber = calloc(1, sizeof *fiber);
    if (!fiber)
        return NULL;
    void *memory = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (memory == MAP_FAILED || mprotect(memory, page, PROT_NONE)) {
        if (memory != MAP_FAILED)
            munmap(memory, size);
        free(fiber);
        return NULL;
    }
    fiber->memory = memory;
    fiber->size = size;
    return fiber;
}

void reel_fiber_destroy(reel_fiber *fiber)
{
    munmap(fiber->memory, fiber->size);
    free(fiber);
}

// One piece of work after the other. makecontext passes ints only.
static void enter(unsigned high, unsigned low)
{
    reel_fiber *fiber = (reel_fiber *)(((uintptr_t)high << 16 << 16) | (uintptr_t)low);
    while (true) {
        fiber->body(fiber->argument);
        fiber->has_ended = true;
        reel_fiber_yield(fiber);
    }
}

static bool begin(reel_fiber *fiber)
{
    if (getcontext(&fiber->first))
        abort();
    fiber->first.uc_stack.ss_sp = fiber->memory;
    fiber->first.uc_stack.ss_size = fiber->size;
    fiber->first.uc_link = NULL;
    uintptr_t address = (uintptr_t)fiber;
    makecontext(&fiber->first, (void (*)(void))enter, 2, (unsigned)(address >> 16 >> 16), (unsigned)address);
    fiber->has_begun = true;
    if (_setjmp(fiber->caller) == 0)
        setcontext(&fiber->first);
    return fiber->has_ended;
}

bool reel_fiber_start(reel_fiber *fiber, void (*body)(void *), void *argument)
{
    fiber->body = body;
    fiber->argument = argument;
    fiber->has_ended = false;
    return fiber->has_begun ? reel_fiber_resume(fiber) : begin(fiber);
}

bool reel_fiber_resume(reel_fiber *fiber)
{
    if (_setjmp(fiber->caller) == 0)
        _longjmp(fiber->own, 1);
    return fiber->has_ended;
}

void reel_fiber_yield(reel_fiber *fiber)
{
    if (_setjmp(fiber->own) == 0)
        _longjmp(fiber->caller, 1);
}

#else

bool reel_fibers_available(void) { return false; }

reel_fiber *reel_fiber_create(size_t stack_size)
{
    (void)stack_size;
    return NULL;
}

void reel_fiber_destroy(reel_fiber *fiber) { (void)fiber; }

bool reel_fiber_start(reel_fiber *fiber, void (*body)(void *), void *argument)
{
    (void)fiber, (void)body, (void)argument;
    return true;
}

bool reel_fiber_resume(reel_fiber *fiber)
{
    (void)fiber;
    return true;
}

void reel_fiber_yield(reel_fiber *fiber) { (void)fiber; }

#endif
