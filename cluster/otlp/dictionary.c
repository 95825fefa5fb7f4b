/* See dictionary.h. Each table maps the bytes of an entry to its index; a function is its text's index, a
 * stack the indices of its locations. */
#include "dictionary.h"

#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

#include "support/arena.h"
#include "support/array.h"
#include "support/map.h"

struct entry {
    const char *bytes;
    size_t n;
};

struct table {
    struct entry *entries; /* entry 0 is not used */
    size_t n, allocated;
    struct occ_map index; /* hash -> entry; the next free hash if two entries have one hash */
};

struct occ_dictionary {
    struct occ_arena bytes;
    struct table texts, attributes, functions, stacks;
    bool failed;
};

struct occ_dictionary *occ_dictionary_new(void)
{
    return calloc(1, sizeof(struct occ_dictionary));
}

static void free_table(struct table *table)
{
    occ_map_free(&table->index);
    free(table->entries);
}

void occ_dictionary_free(struct occ_dictionary *d)
{
    if (!d)
        return;
    free_table(&d->texts);
    free_table(&d->attributes);
    free_table(&d->functions);
    free_table(&d->stacks);
    occ_arena_free(d->bytes.blocks);
    free(d);
}

bool occ_dictionary_failed(const struct occ_dictionary *d)
{
    return d->failed || d->bytes.failed;
}

/* ---- entries ---- */

static uint32_t add(struct occ_dictionary *d, struct table *table, const void *bytes, size_t n, uint64_t key)
{
    uint32_t at = table->n > 0 ? (uint32_t)table->n : 1;
    bool has_room =
        occ_grow((void **)&table->entries, &table->allocated, at, INT32_MAX, sizeof *table->entries);
    if (!has_room || occ_map_put(&table->index, key, at) == OCC_MAP_NONE) {
        d->failed = true;
        return 0;
    }
    table->entries[at] = (struct entry){occ_arena_part(&d->bytes, bytes, n), n};
    table->n = (size_t)at + 1;
    return at;
}

static uint32_t find(struct occ_dictionary *d, struct table *table, const void *bytes, size_t n)
{
    uint64_t key = XXH3_64bits(bytes, n);
    for (uint32_t at; (at = occ_map_get(&table->index, key)) != OCC_MAP_NONE; key++)
        if (table->entries[at].n == n && memcmp(table->entries[at].bytes, bytes, n) == 0)
            return at;
    return occ_dictionary_failed(d) ? 0 : add(d, table, bytes, n, key);
}

static uint32_t find_text(struct occ_dictionary *d, const char *text, size_t n)
{
    return n > 0 ? find(d, &d->texts, text, n) : 0;
}

uint32_t occ_dictionary_text(struct occ_dictionary *d, const char *text)
{
    return find_text(d, text, strlen(text));
}

uint32_t occ_dictionary_attribute(struct occ_dictionary *d, const char *key, const char *value)
{
    const uint32_t pair[] = {occ_dictionary_text(d, key), occ_dictionary_text(d, value)};
    return find(d, &d->attributes, pair, sizeof pair);
}

uint32_t occ_dictionary_location(struct occ_dictionary *d, const char *name, size_t n)
{
    uint32_t text = find_text(d, name, n);
    return find(d, &d->functions, &text, sizeof text);
}

uint32_t occ_dictionary_stack(struct occ_dictionary *d, const uint32_t *locations, size_t n)
{
    return find(d, &d->stacks, locations, n * sizeof *locations);
}

/* ---- writing ---- */

static uint32_t number(const struct table *table, size_t entry, size_t i)
{
    uint32_t value;
    memcpy(&value, table->entries[entry].bytes + i * sizeof value, sizeof value);
    return value;
}

static void put_zero(struct occ_json *json)
{
    occ_json_object(json, NULL, true);
    occ_json_close(json);
}

static void put_locations(const struct occ_dictionary *d, struct occ_json *json)
{
    occ_json_array(json, "locationTable", false);
    put_zero(json);
    for (size_t i = 1; i < d->functions.n; i++) {
        occ_json_object(json, NULL, true);
        occ_json_array(json, "lines", true);
        occ_json_object(json, NULL, true);
        occ_json_unsigned(json, "functionIndex", i);
        occ_json_close(json);
        occ_json_close(json);
        occ_json_close(json);
    }
    occ_json_close(json);
}

static void put_functions(const struct occ_dictionary *d, struct occ_json *json)
{
    occ_json_array(json, "functionTable", false);
    put_zero(json);
    for (size_t i = 1; i < d->functions.n; i++) {
        occ_json_object(json, NULL, true);
        occ_json_unsigned(json, "nameStrindex", number(&d->functions, i, 0));
        occ_json_close(json);
    }
    occ_json_close(json);
}

/* Some codecs expect the full length of the ids; in OTLP's JSON they are hexadecimal. */
static void put_links(struct occ_json *json)
{
    occ_json_array(json, "linkTable", false);
    occ_json_object(json, NULL, true);
    occ_json_string(json, "traceId", "00000000000000000000000000000000");
    occ_json_string(json, "spanId", "0000000000000000");
    occ_json_close(json);
    occ_json_close(json);
}

static void put_texts(const struct occ_dictionary *d, struct occ_json *json)
{
    occ_json_array(json, "stringTable", false);
    occ_json_string(json, NULL, "");
    for (size_t i = 1; i < d->texts.n; i++)
        occ_json_string(json, NULL, d->texts.entries[i].bytes);
    occ_json_close(json);
}

static void put_attributes(const struct occ_dictionary *d, struct occ_json *json)
{
    occ_json_array(json, "attributeTable", false);
    put_zero(json);
    for (size_t i = 1; i < d->attributes.n; i++) {
        uint32_t value = number(&d->attributes, i, 1);
        occ_json_object(json, NULL, true);
        occ_json_unsigned(json, "keyStrindex", number(&d->attributes, i, 0));
        occ_json_object(json, "value", true);
        occ_json_string(json, "stringValue", value > 0 ? d->texts.entries[value].bytes : "");
        occ_json_close(json);
        occ_json_close(json);
    }
    occ_json_close(json);
}

static void put_stacks(const struct occ_dictionary *d, struct occ_json *json)
{
    occ_json_array(json, "stackTable", false);
    put_zero(json);
    for (size_t i = 1; i < d->stacks.n; i++) {
        occ_json_object(json, NULL, true);
        occ_json_array(json, "locationIndices", true);
        for (size_t k = 0; k < d->stacks.entries[i].n / sizeof(uint32_t); k++)
            occ_json_unsigned(json, NULL, number(&d->stacks, i, k));
        occ_json_close(json);
        occ_json_close(json);
    }
    occ_json_close(json);
}

void occ_dictionary_put(const struct occ_dictionary *d, struct occ_json *json)
{
    occ_json_object(json, "dictionary", false);
    occ_json_array(json, "mappingTable", true);
    put_zero(json);
    occ_json_close(json);
    put_locations(d, json);
    put_functions(d, json);
    put_links(json);
    put_texts(d, json);
    put_attributes(d, json);
    put_stacks(d, json);
    occ_json_close(json);
}
