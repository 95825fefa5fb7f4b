/* Prints results of rules as text, for GitHub, for GitLab and as JUnit XML; see judge.h. Names of kernels and
 * rules are data and cannot break out of their field. One thread (stdio). */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "cli/screen.h"
#include "cli/json.h"
#include "judge_print.h"
#include "compare/names.h"
#include "support/cleanup.h"

enum { SHOWN = 10 }; /* printed findings of a rule; GitHub's limit of annotations in a step */

/* Prints a rule's summary without its name: "12 judged, 1 allowed; fewer than ...". */
static void print_summary(FILE *out, const struct rule_result *r)
{
    (void)fprintf(out, "%zu judged", r->judged);
    if (r->n_findings)
        (void)fprintf(out, ", %zu fail", r->n_findings);
    if (r->undecided)
        (void)fprintf(out, ", %zu undecided", r->undecided);
    if (r->without_baseline)
        (void)fprintf(out, ", %zu new", r->without_baseline);
    if (r->allowed)
        (void)fprintf(out, ", %zu allowed", r->allowed);
    (void)fprintf(out, "%s%s", r->reason[0] ? "; " : "", r->reason);
}

/* Prints the summary of a rule, its worst findings, and the number of further findings; of an undecided rule
 * the largest undecided changes. */
static void describe(FILE *out, const struct rule_result *r, const char *line)
{
    print_summary(out, r);
    for (size_t i = 0; i < r->n_findings && i < SHOWN; i++)
        (void)fprintf(out, "%s%s", line, r->findings[i].text);
    if (r->n_findings > SHOWN)
        (void)fprintf(out, "%sand %zu more", line, r->n_findings - SHOWN);
    for (size_t i = 0; i < r->n_open && r->state == RULE_UNDECIDED; i++)
        (void)fprintf(out, "%sundecided: %s", line, r->open[i].text);
}

/* Returns the text of describe(), freed by the caller; NULL: no memory. */
static char *description(const struct rule_result *r)
{
    char *text = NULL;
    size_t size = 0;
    FILE *out = open_memstream(&text, &size);
    if (out)
        describe(out, r, "\n");
    bool is_whole = out && !ferror(out);
    is_whole &= out && fclose(out) == 0;
    if (is_whole)
        return text;
    cli_screen_lose_text();
    free(text);
    return NULL;
}

/* ---- text ---- */

typedef void put_char(FILE *out, char c);

static void put_text(FILE *out, const char *text, put_char *put)
{
    for (; *text; text++)
        put(out, *text);
}

static void put_safe(FILE *out, char c)
{
    (void)fputc((unsigned char)c < ' ' || c == 0x7f ? '?' : c, out);
}

void judgement_print(FILE *out, const struct judgement *j)
{
    static const enum cli_tone tones[RULE_STATE_COUNT] = {[RULE_FAILS] = CLI_TONE_BAD,
                                                          [RULE_HOLDS] = CLI_TONE_GOOD,
                                                          [RULE_SKIPPED] = CLI_TONE_UNSURE,
                                                          [RULE_UNDECIDED] = CLI_TONE_UNSURE};
    for (size_t i = 0; i < j->n; i++) {
        const struct rule_result *r = &j->results[i];
        cli_put_word(out, tones[r->state], rule_state_word(r->state), 12);
        put_text(out, r->rule->name, put_safe);
        (void)fputs(": ", out);
        describe(out, r, "\n          - "); /* GitHub runs a line that begins with "::" */
        (void)fputc('\n', out);
    }
}

/* ---- GitHub ---- */

static void put_github(FILE *out, char c)
{
    bool is_special = strchr("%\r\n:,", c) != NULL;
    (void)fprintf(out, is_special ? "%%%02X" : "%c", c);
}

/* Escapes a character of a message, which may have ":" and ","; a property may not. */
static void put_github_message(FILE *out, char c)
{
    (void)fprintf(out, strchr("%\r\n", c) ? "%%%02X" : "%c", c);
}

static double worst_share(const struct rule_result *r)
{
    return r->n_findings ? r->findings[0].share : 0;
}

static int worst_first(const void *left, const void *right)
{
    const struct rule_result *a = *(const struct rule_result *const *)left;
    const struct rule_result *b = *(const struct rule_result *const *)right;
    double x = worst_share(a), y = worst_share(b);
    return x < y ? 1 : x > y ? -1 : (a > b) - (a < b);
}

/* Prints the line in the file of rules. Built-in rules have none. */
static void put_github_location(FILE *out, const struct judgement *j, const struct rule_result *r)
{
    if (!j->file)
        return;
    (void)fputs("file=", out);
    put_text(out, j->file, put_github);
    (void)fprintf(out, ",line=%zu,",
                  r->n_findings && r->findings[0].line ? r->findings[0].line : r->rule->line);
}

/* Prints the worst rules first: GitHub shows the first ten errors and the first ten warnings of a step. */
void judgement_print_github(FILE *out, const struct judgement *j)
{
    const struct rule_result *ordered[RULES_MAX];
    for (size_t i = 0; i < j->n; i++)
        ordered[i] = &j->results[i];
    qsort(ordered, j->n, sizeof *ordered, worst_first);
    for (size_t i = 0; i < j->n; i++) {
        const struct rule_result *r = ordered[i];
        _cleanup_(occ_freep) char *text = description(r);
        bool holds = r->state == RULE_HOLDS;
        if ((holds && r->without_baseline == 0) || r->state == RULE_SKIPPED || !text)
            continue;
        (void)fprintf(out, "::%s ", r->state == RULE_FAILS ? "error" : holds ? "notice" : "warning");
        put_github_location(out, j, r);
        (void)fputs("title=", out);
        put_text(out, r->rule->name, put_github);
        (void)fprintf(out, "::%s%%0A", rule_state_word(r->state));
        put_text(out, text, put_github_message);
        (void)fputc('\n', out);
    }
}

/* ---- GitLab ---- */

static uint64_t hash(uint64_t hash, const char *text)
{
    for (; *text; text++)
        hash = (hash ^ (unsigned char)*text) * UINT64_C(0x100000001b3); /* FNV-1a */
    return hash;
}

static void print_finding(struct occ_json *json, const char *file, const struct rule *rule,
                          const struct finding *finding)
{
    const char *name = finding->kernel;
    _cleanup_(occ_freep) char *normalised = malloc(strlen(name) + 1);
    char fingerprint[24];
    if (normalised)
        diff_normalise_name(name, false, normalised);
    else
        cli_screen_lose_text(); /* another fingerprint would be another finding */
    (void)snprintf(fingerprint, sizeof fingerprint, "%016" PRIx64,
                   hash(hash(UINT64_C(0xcbf29ce484222325), rule->name), normalised ? normalised : name));
    occ_json_object(json, NULL, false);
    occ_json_string(json, "description", finding->text);
    occ_json_string(json, "check_name", rule->name);
    occ_json_string(json, "fingerprint", fingerprint);
    occ_json_string(json, "severity", rule->class == RULE_CONFIG ? "major" : "minor");
    occ_json_object(json, "location", true);
    occ_json_string(json, "path", file);
    occ_json_object(json, "lines", true);
    occ_json_unsigned(json, "begin", finding->line ? finding->line : rule->line);
    occ_json_close(json);
    occ_json_close(json);
    occ_json_close(json);
}

void judgement_print_gitlab(FILE *out, const struct judgement *j)
{
    struct occ_json json = {.out = out};
    occ_json_array(&json, NULL, false);
    for (size_t i = 0; i < j->n; i++)
        for (size_t k = 0; k < j->results[i].n_findings; k++)
            print_finding(&json, j->file ? j->file : JUDGE_BUILT_IN, j->results[i].rule,
                          &j->results[i].findings[k]);
    cli_json_end(&json);
}

/* ---- JUnit ---- */

/* Escapes a character, and drops control characters except newlines: XML 1.0 forbids most of them. */
static void put_xml(FILE *out, char c)
{
    const char *entity = c == '&'    ? "&amp;"
                         : c == '<'  ? "&lt;"
                         : c == '>'  ? "&gt;"
                         : c == '"'  ? "&quot;"
                         : c == '\n' ? "&#10;"
                                     : NULL;
    if (entity)
        (void)fputs(entity, out);
    else if ((unsigned char)c >= ' ')
        (void)fputc(c, out);
}

static void print_case(FILE *out, const struct rule_result *r)
{
    _cleanup_(occ_freep) char *text = description(r);
    const char *element = r->state == RULE_HOLDS ? NULL : r->state == RULE_FAILS ? "failure" : "skipped";
    (void)fputs("  <testcase classname=\"occq check\" name=\"", out);
    put_text(out, r->rule->name, put_xml);
    if (!element && r->without_baseline == 0) {
        (void)fputs("\"/>\n", out);
        return;
    }
    (void)fprintf(out, element ? "\"><%s message=\"" : "\"><%s>", element ? element : "system-out");
    put_text(out, text ? text : "", put_xml);
    (void)fputs(element ? "\"/></testcase>\n" : "</system-out></testcase>\n", out);
}

void judgement_print_junit(FILE *out, const struct judgement *j)
{
    (void)fprintf(out,
                  "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n"
                  "<testsuite name=\"occq check\" tests=\"%zu\" failures=\"%zu\" skipped=\"%zu\">\n",
                  j->n, j->count[RULE_FAILS], j->n - j->count[RULE_FAILS] - j->count[RULE_HOLDS]);
    for (size_t i = 0; i < j->n; i++)
        print_case(out, &j->results[i]);
    (void)fputs("</testsuite>\n", out);
}
