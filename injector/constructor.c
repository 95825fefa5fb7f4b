/* What LD_PRELOAD costs a program that never uses CUDA: one setenv. The driver does the rest in cuInit.
 *
 * If CUDA_INJECTION64_PATH already names another tool, it stays: that tool is loaded, we are not. A program
 * that did use CUDA then reports the reason to the daemon as it ends, so that the history can explain why it
 * has no launches.
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

/* The process has loaded CUDA's driver. */
static bool has_driver(void)
{
    void *driver = dlopen("libcuda.so.1", RTLD_LAZY | RTLD_LOCAL | RTLD_NOLOAD);
    if (!driver)
        return false;
    (void)dlclose(driver);
    return true;
}

static void report_the_reason(void)
{
    /* if the program changed its environment since, there is nothing to report and no reason to start now */
    if (occ_coexist_is_displaced(getenv(injection), occ_guest_path()) && has_driver())
        occ_guest_start(); /* finds the other tool in the environment and becomes QUIET */
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
            (void)atexit(report_the_reason);
    }
    errno = saved;
}
