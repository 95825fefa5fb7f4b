/*
 * The dictionary of a request with profiles (profiles.proto, v1development, of opentelemetry-proto 1.11.0):
 * each text, attribute, function and stack once, referred to by its index. Entry 0 of each table is the zero
 * value and stands for none. One thread.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "support/json.h"

#define OCC_DICTIONARY_FRAMES_MAX 64 /* maximum number of locations in a stack */

struct occ_dictionary;

/* Returns an empty dictionary; NULL: no memory. */
struct occ_dictionary *occ_dictionary_new(void);
void occ_dictionary_free(struct occ_dictionary *dictionary);
/* Returns true if an entry is missing because memory was short. */
bool occ_dictionary_failed(const struct occ_dictionary *dictionary);

/* The functions return indices; 0: no memory, or an empty text. */
uint32_t occ_dictionary_text(struct occ_dictionary *dictionary, const char *text);
uint32_t occ_dictionary_attribute(struct occ_dictionary *dictionary, const char *key, const char *value);
/* A location whose only line is in a function of this name, `n` bytes. */
uint32_t occ_dictionary_location(struct occ_dictionary *dictionary, const char *name, size_t n);
/* locations: the innermost first; n <= OCC_DICTIONARY_FRAMES_MAX. */
uint32_t occ_dictionary_stack(struct occ_dictionary *dictionary, const uint32_t *locations, size_t n);

/* Writes the member "dictionary" of the open object. */
void occ_dictionary_put(const struct occ_dictionary *dictionary, struct occ_json *json);
