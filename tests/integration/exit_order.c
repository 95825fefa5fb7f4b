/*
 * exit_order GUEST: opens the guest like the driver and records which libraries register exit handlers. The
 * guest's handler calls CUPTI a last time, so it must be registered after libcupti's own handlers: handlers
 * run in reverse order. Uses NVIDIA's libcupti if $OCCTRACE_CUPTI names it.
 */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef int registration(void (*handler)(void *), void *argument, void *library);

static int guest_after, cupti_handlers;

__attribute__((visibility("default"))) int __cxa_atexit(void (*handler)(void *), void *argument,
                                                        void *library);

/* Interposes glibc's function: an executable's symbols come first. `library` is an address in the registering
 * library. */
int __cxa_atexit(void (*handler)(void *), void *argument, void *library)
{
    registration *real;
    Dl_info info = {0};
    void *symbol = dlsym(RTLD_NEXT, "__cxa_atexit");
    memcpy(&real, &symbol, sizeof real);
    if (library && dladdr(library, &info) && info.dli_fname) {
        if (strstr(info.dli_fname, "libcupti")) {
            cupti_handlers++;
            guest_after = 0;
        } else if (strstr(info.dli_fname, "libocctrace.so")) {
            guest_after = 1;
        }
    }
    return real(handler, argument, library);
}

int main(int argc, char **argv)
{
    int (*initialize)(void);
    void *guest = argc == 2 ? dlopen(argv[1], RTLD_NOW | RTLD_LOCAL) : NULL;
    void *symbol = guest ? dlsym(guest, "InitializeInjection") : NULL;
    if (!symbol) {
        (void)fprintf(stderr, "exit_order: %s\n", dlerror());
        return 2;
    }
    memcpy(&initialize, &symbol, sizeof initialize);
    if (initialize() != 1)
        return 2;
    (void)printf("libcupti registered %d exit handlers; the guest's comes %s\n", cupti_handlers,
                 guest_after ? "after them" : "before one of them");
    if (cupti_handlers == 0) {
        (void)printf("SKIP: no libcupti, or one without exit handlers\n");
        return 77;
    }
    return guest_after ? 0 : 1;
}
