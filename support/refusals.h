/*
 * Reasons why a daemon refuses a program or a client. The answer to `status` (control.h) has a line for each
 * cause since the daemon's start: "refused_" and the word, then the count. Users see the refusals of their
 * own programs; users who may command the daemon see all.
 */
#pragma once

/* X(NAME, "word", "text"): messages put a number of programs before the text. */
#define OCC_REFUSALS(X)                                                                                      \
    X(ENDED, "ended", "ended before the daemon knew their owner")                                            \
    X(FULL, "full", "were beyond the user's share of connections, programs or ring memory")                  \
    X(HISTORY, "history", "had a history that could not be opened")                                          \
    X(INVALID, "invalid", "sent what is no valid offer of a ring")

#define OCC_REFUSAL_ENUMERATOR(name, word, text) OCC_REFUSED_##name,
enum occ_refusal { OCC_REFUSALS(OCC_REFUSAL_ENUMERATOR) OCC_REFUSAL_COUNT };
