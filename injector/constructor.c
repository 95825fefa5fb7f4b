/*
 * What LD_PRELOAD costs a program that never uses CUDA: one setenv. The driver does the rest, if ever it
 * comes.
 *
 * If CUDA_INJECTION64_PATH already names another tool, it stays: that tool is loaded, we are not. Then there
 * is one more thing to do: a program that did use CUDA leaves the reason with the daemon as it ends, so that
 * the history can say why it knows nothing.
 */
#include <dlfcn.h>
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>

#include "coexist.h"
#include "guest.h"

static const char *const injection = "CUDA_INJECTION64_PATH";

/* CUDA's driver is in this process. */
static bool has_driver(void)
{
    void *driver = dlopen("libcuda.so.1", RTLD_LAZY | RTLD_LOCAL | RTLD_NOLOAD);
    if (!driver)
        return false;
    (void)dlclose(driver);
    return true;
}

static void leave_the_reason(void)
{
    /* the program may have changed its environment: then there is no reason to leave, and none to begin now
     */
    if (occ_coexist_is_displaced(getenv(injection), occ_guest_path()) && has_driver())
        occ_guest_start(); /* finds the other tool in the environment and stays quiet */
    occ_guest_finish();
}

__attribute__((constructor)) static void on_load(void)
{
    int saved = errno;
    const char *disabled = secure_getenv("OCCTRACE_DISABLE");
    const char *self = occ_guest_path();
    bool wanted = !disabled || disabled[0] == '\0' || strcmp(disabled, "0") == 0;
    if (wanted && !getauxval(AT_SECURE) && self[0] == '/') {
        (void)setenv(injection, self, 0);
        if (occ_coexist_is_displaced(getenv(injection), self))
            (void)atexit(leave_the_reason);
    }
    errno = saved;
}
