/*
 * May the guest start in this process? Not where it could end the program, take what the program needs, or be
 * reported: a seccomp filter that kills, a table of descriptors that is nearly full, a thread sanitizer.
 * Keeps nothing, and preserves errno. Thread: the one that initialises CUDA.
 */
#ifndef OCC_INJECTOR_PREFLIGHT_H
#define OCC_INJECTOR_PREFLIGHT_H

/* NULL, or why not: static text. */
const char *occ_preflight_refusal(void);

#endif
