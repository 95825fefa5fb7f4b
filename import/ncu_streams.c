/* The kind of ncu's output in a file, and the ranks that printed it (ncu_lines.h). One thread. */
#include <stdlib.h>
#include <string.h>

#include "ncu.h"
#include "ncu_lines.h"
#include "support/cleanup.h"

#define LINE_BYTES     (1u << 20)
#define OWN_OUTPUT_MAX (64u << 20) /* bytes before the first result */

enum print { NO_PRINT, PRINT_TEXT, PRINT_CSV };

static enum print print_of(const char *line)
{
    static const char csv[] = "\"ID\",\"";
    struct occ_ncu_heading h;
    if (strncmp(line, csv, strlen(csv)) == 0)
        return PRINT_CSV;
    return occ_ncu_parse_heading(line, &h) && (h.has_sizes || h.has_date) ? PRINT_TEXT : NO_PRINT;
}

static bool has_stream(const struct occ_ncu_streams *s, const char *prefix)
{
    for (size_t i = 0; i < s->n; i++)
        if (strcmp(s->prefix[i], prefix) == 0)
            return true;
    return false;
}

/* The kind of output that begins with this line, with or without a prefix. */
static enum print read_line(char *line, char prefix[OCC_NCU_PREFIX_BYTES])
{
    size_t blanks = strspn(line, " \t"), end = strlen(line);
    while (end > 0 && strchr(" \t\r\n", line[end - 1]))
        line[--end] = '\0';
    prefix[0] = '\0';
    size_t n = occ_ncu_prefix(line, prefix);
    enum print behind = n > 0 && prefix[0] ? print_of(line + n) : NO_PRINT;
    if (behind != NO_PRINT)
        return behind;
    prefix[0] = '\0';
    return blanks < end ? print_of(line + blanks) : NO_PRINT;
}

/* Finds the kind of output by the first result's heading. `ret_streams`, if not NULL: a single stream with
 * prefix "" if that heading has no prefix, else all streams with headings. */
static enum print find_print(FILE *file, struct occ_ncu_streams *ret_streams)
{
    _cleanup_(occ_freep) char *line = malloc(LINE_BYTES);
    struct occ_ncu_lines lines = {.file = file, .prefix = ""};
    struct occ_ncu_streams streams = {.rank = -1};
    enum print found = NO_PRINT;
    bool is_done = !line || !occ_ncu_first_line(&lines);
    while (!is_done && occ_ncu_next_line(&lines, line, LINE_BYTES)) {
        char prefix[OCC_NCU_PREFIX_BYTES];
        enum print print = read_line(line, prefix);
        found = found == NO_PRINT ? print : found;
        if (print == found && print != NO_PRINT && !has_stream(&streams, prefix)) {
            streams.has_more = streams.n == OCC_NCU_STREAMS_MAX;
            if (!streams.has_more)
                memcpy(streams.prefix[streams.n++], prefix, sizeof prefix);
        }
        is_done = found == NO_PRINT ? ftello(file) >= (off_t)OWN_OUTPUT_MAX
                                    : !ret_streams || streams.has_more || !streams.prefix[0][0];
    }
    if (streams.n == 1 && streams.prefix[0][0])
        streams.rank = occ_ncu_rank(streams.prefix[0]);
    if (ret_streams)
        *ret_streams = streams;
    return found;
}

bool occ_ncu_has_print(FILE *file)
{
    return find_print(file, NULL) != NO_PRINT;
}

int occ_ncu_read_print(FILE *file, struct occ_import_sink *sink, struct occ_error *err)
{
    static const struct occ_ncu_streams whole = {.n = 1, .rank = -1};
    struct occ_ncu_streams streams;
    enum print print = find_print(file, &streams);
    if (streams.has_more)
        return occ_fail(err, OCC_E_FULL, "ncu printed for more than %d ranks; import the output of each",
                        OCC_NCU_STREAMS_MAX);
    return print == PRINT_TEXT ? occ_ncu_read_text(file, &streams, sink, err)
                               : occ_ncu_read_csv(file, print == PRINT_CSV ? &streams : &whole, sink, err);
}
