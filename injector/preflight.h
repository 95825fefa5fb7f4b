/*
 * May the guest start in this process? Not where its own system calls could end the program or take what the
 * program needs: a seccomp filter that kills, or a table of descriptors that is nearly full. Keeps nothing,
 * and preserves errno. Thread: the one that initialises CUDA.
 */
#ifndef OCC_INJECTOR_PREFLIGHT_H
#define OCC_INJECTOR_PREFLIGHT_H

/* NULL, or why not: static text. */
const char *occ_preflight_refusal(void);

#endif
