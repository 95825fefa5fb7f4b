/* The operands of a comparison, and the source of a side: a history or the cluster's warehouse; see sides.h.
 * One thread. */
#include <string.h>
#include <unistd.h>

#include "cli/history/cluster.h"
#include "cli/history/known.h"
#include "sides.h"
#include "support/clock.h"
#include "support/text.h"

/* ---- words ---- */

enum word { WORD_RUN, WORD_LAST, WORD_SINCE, WORD_UNTIL, WORD_TEXTS, WORD_LABEL = WORD_TEXTS };
static const char *const words[] = {"run",  "last", "since", "until", "label",
                                    "user", "job",  "rank",  "gpu",   NULL};

static int set_word(struct side *side, size_t word, const char *value, struct occ_error *err)
{
    struct occ_filter *f = &side->filter;
    const char **const texts[] = {&f->label, &f->user, &f->job, &f->rank, &f->gpu};
    bool is_last = word == WORD_RUN && strcmp(value, "last") == 0;
    uint64_t number = is_last ? 1 : 0;
    int status = 0;
    if (word >= WORD_TEXTS) {
        *texts[word - WORD_TEXTS] = value;
        return f->rank == value ? cli_check_rank(value, err) : 0;
    }
    if (word == WORD_SINCE || word == WORD_UNTIL)
        return occ_parse_time_ns(value, occ_now_ns(), word == WORD_SINCE ? &f->since_ns : &f->until_ns, err);
    if (!is_last)
        status = occ_parse_u64(value, 1, word == WORD_RUN ? INT64_MAX : DIFF_RUNS_MAX, &number, err);
    if (word == WORD_RUN && !is_last)
        f->run = (int64_t)number;
    else
        side->last = (uint32_t)number;
    return status;
}

/* Takes a word without a key: a label, if the history has it. */
static int set_alone(struct side *side, const char *text, struct occ_error *err)
{
    const char *nearest = occ_text_nearest(text, words);
    if (!text[0] || nearest || side->given & 1u << WORD_LABEL)
        return cli_fail_unknown("side", "", text, strlen(text), words, err);
    side->given |= 1u << WORD_LABEL;
    side->filter.label = side->alone = text;
    return 0;
}

static int parse_word(struct side *side, char *text, struct occ_error *err)
{
    size_t length = strcspn(text, ":"), word = 0;
    while (words[word] && (strncmp(words[word], text, length) != 0 || words[word][length] != '\0'))
        word++;
    if (text[length] == ':' && words[word]) {
        if (side->given & 1u << word)
            return occ_fail(err, OCC_E_INVALID, "%s: twice in a side, but all that commas join must hold",
                            words[word]);
        side->given |= 1u << word;
        int status = set_word(side, word, text + length + 1, err);
        return status == 0 ? 0 : occ_error_prefix(err, "%s", words[word]);
    }
    bool exists = access(text, F_OK) == 0;
    bool is_run = !exists && text[0] && text[strspn(text, "0123456789")] == '\0';
    if (is_run && !(side->given & 1u << WORD_RUN)) {
        side->given |= 1u << WORD_RUN;
        int status = set_word(side, WORD_RUN, text, err);
        return status == 0 ? 0 : occ_error_prefix(err, "%s", words[WORD_RUN]);
    }
    if (!exists)
        return set_alone(side, text, err);
    side->where.db = text;
    return 0;
}

int side_parse(struct side *side, const char *text, const struct cli_args *where, struct occ_error *err)
{
    int status = 0;
    char *next;
    *side = (struct side){.text = text, .where = *where, .words = text ? strdup(text) : NULL};
    if (text && !side->words)
        return occ_no_memory(err);
    for (char *word = side->words; word && status == 0; word = next) {
        next = access(word, F_OK) == 0 ? NULL : strchr(word, ','); /* a file's name may have commas */
        if (next)
            *next++ = '\0';
        status = parse_word(side, word, err);
    }
    return status;
}

static int check_cluster(const struct sides *sides, const struct side *side, struct occ_error *err)
{
    const struct occ_filter *f = &side->filter;
    if (!sides->cluster)
        return 0;
    if (side->alone)
        return cli_fail_unknown("side", "", side->alone, strlen(side->alone), words, err);
    if (side->where.db != sides->cluster->list.common.db)
        return occ_fail(err, OCC_E_INVALID, "%s: with --cluster both sides are the cluster's", side->text);
    return f->run != 0 || f->label || f->rank || side->last != 0
               ? occ_fail(
                     err, OCC_E_INVALID,
                     "%s: the cluster's minutes are of jobs, not of runs: job, user, since and until choose",
                     side->text)
               : 0;
}

bool sides_option_applies(const struct cli_option *option)
{
    return option->offset == offsetof(struct history_args, filter.kernel_regex) ||
           option->offset == offsetof(struct history_args, filter.exclude_regex);
}

int sides_parse(struct sides *sides, const struct history_args *args, struct occ_error *err)
{
    char *const *operand = args->list.common.operands;
    int status = 0;
    for (struct side *side = sides->side; side < sides->side + DIFF_SIDES && status == 0; side++) {
        status = side_parse(side, *operand++, &args->list.common, err);
        side->filter.kernel_regex = args->filter.kernel_regex;
        side->filter.exclude_regex = args->filter.exclude_regex;
        if (status == 0)
            status = check_cluster(sides, side, err);
    }
    return status;
}

/* Opens the warehouse's answer. The warehouse applies the filters of time, job and user. */
static int ask_cluster(const struct sides *sides, struct side *side, struct occ_error *err)
{
    struct history_args args = *sides->cluster;
    args.asked = side->filter;
    side->filter.since_ns = side->filter.until_ns = 0;
    side->filter.job = side->filter.user = NULL;
    return cluster_open(sides->command, &args, CLUSTER_SUMS, OCC_TOP_BY_MINUTE, &side->store, err);
}

int side_open(const struct sides *sides, struct side *side, struct occ_error *err)
{
    char known[HISTORY_KNOWN_BYTES];
    if (side->store)
        return 0;
    int status = sides->cluster ? ask_cluster(sides, side, err)
                                : cli_open_history(&side->where, OCC_STORE_READ, &side->store, err);
    if (status == 0 && side->alone && !history_has_label(side->store, side->alone))
        return occ_fail(err, sides->is_of_owner ? OCC_E_NOT_FOUND : OCC_E_USAGE,
                        "%.48s: no run, label or file%s", side->alone,
                        sides->is_of_owner ? "" : history_known_text(side->store, side->alone, known));
    return status == 0 ? kernel_names_load(side->store, NULL, &side->names, err) : status;
}
