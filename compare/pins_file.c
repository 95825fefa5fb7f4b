/* Reads the lock file of pins; see pins.h. Pure apart from malloc; any thread. */
#include <ctype.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "pins.h"
#include "support/array.h"
#include "support/cleanup.h"
#include "support/text.h"

enum { LINE_MAX_BYTES = 65536, MAX_SM = 999 };

struct reader {
    const char *file;
    uint32_t line;
    struct pins *pins;
    struct occ_error *err;
};

static int broken(const struct reader *r, int code, const char *message, const char *word)
{
    char safe[64];
    (void)snprintf(safe, sizeof safe, "%s", word);
    occ_text_sanitise(safe);
    return occ_fail(r->err, code, "%s:%u: %s%s%s", r->file, r->line, word[0] ? safe : "", word[0] ? ": " : "",
                    message);
}

/* ---- words ---- */

/* Returns the next word of the line, and moves *rest behind it; "": the line ends. */
static char *next_word(char **rest)
{
    char *word = *rest + strspn(*rest, " \t");
    char *end = word + strcspn(word, " \t");
    *rest = *end ? end + 1 : end;
    *end = '\0';
    return word;
}

static int hex_digit(char c)
{
    const char *digits = "0123456789ABCDEF", *at = c ? strchr(digits, c) : NULL;
    return at ? (int)(at - digits) : -1;
}

/* Replaces "%0A" by its byte, in place. Returns false for other escapes, for escapes of bytes that need none,
 * for a zero byte, and for bytes that need one. */
static bool unescape(char *name)
{
    char *to = name;
    for (const char *from = name; *from; from++) {
        if (*from != '%' && !pin_is_plain(*from))
            return false;
        int high = *from == '%' ? hex_digit(from[1]) : 0;
        int low = *from == '%' && high >= 0 ? hex_digit(from[2]) : 0;
        if (high < 0 || low < 0)
            return false;
        char byte = (char)(*from == '%' ? high << 4 | low : *from);
        if (!byte || (*from == '%' && pin_is_plain(byte)))
            return false;
        from += *from == '%' ? 2 : 0;
        *to++ = byte;
    }
    *to = '\0';
    return true;
}

/* Reads the kernel's name in `word`. */
static int take_kernel(const struct reader *r, char *word, const char **ret_kernel)
{
    if (!word[0])
        return broken(r, OCC_E_INVALID, "the kernel's name is missing", "");
    if (!unescape(word) || strlen(word) > PINS_NAME_MAX)
        return broken(r, OCC_E_INVALID, "not a kernel's name", word);
    *ret_kernel = word;
    return 0;
}

static bool take_number(const char *text, uint32_t max, uint32_t *ret_number)
{
    uint64_t number = 0;
    bool is_number = text[0] && strspn(text, "0123456789") == strlen(text) &&
                     occ_parse_u64(text, 0, max, &number, NULL) == 0;
    *ret_number = (uint32_t)number;
    return is_number;
}

/* ---- pin ---- */

/* "sm_90a" */
static int take_architecture(const struct reader *r, char *word, struct pin *pin)
{
    size_t n = strlen(word);
    char number[8] = "", last = n ? word[n - 1] : '\0';
    pin->suffix = last == 'a' || last == 'f' ? last : '\0';
    if (n > 3 && n < 3 + sizeof number)
        (void)snprintf(number, sizeof number, "%.*s", (int)(n - 3 - (pin->suffix != '\0')), word + 3);
    if (strncmp(word, "sm_", 3) != 0 || !take_number(number, MAX_SM, &pin->sm) || pin->sm == 0)
        return broken(r, OCC_E_INVALID, "an architecture is expected here, as sm_90", word);
    return 0;
}

/* "2/3" */
static bool take_copy(char *text, struct pin *pin)
{
    char *slash = strchr(text, '/');
    if (!slash)
        return false;
    *slash = '\0';
    return take_number(text, PINS_MAX, &pin->copy) && take_number(slash + 1, PINS_MAX, &pin->copies) &&
           pin->copy > 0 && pin->copy <= pin->copies;
}

/* `given`: bits of the resources read before; the function adds the bit of this one. */
static bool take_value(const char *name, const char *text, uint32_t *given, struct pin *pin)
{
    for (int i = 0; i < PIN_RESOURCE_COUNT; i++) {
        if (strcmp(name, pin_resource_word((enum pin_resource)i)) != 0)
            continue;
        bool is_first = !(*given >> i & 1);
        *given |= 1u << i;
        return is_first && (strcmp(text, "-") == 0 ||
                            take_number(text, pin_resource_max((enum pin_resource)i), &pin->value[i]));
    }
    return false;
}

/* "registers=92" */
static int take_resource(const struct reader *r, char *word, uint32_t *given, struct pin *pin)
{
    char *equals = strchr(word, '=');
    *equals = '\0';
    bool is_copy = strcmp(word, "copy") == 0;
    if (is_copy ? take_copy(equals + 1, pin) : take_value(word, equals + 1, given, pin))
        return 0;
    *equals = '=';
    return broken(r, OCC_E_INVALID, "not a resource and its value", word);
}

/* True if another word follows, so that the present one is a resource: the last word is the kernel's name,
 * which may have '=' too. */
static bool has_more(const char *rest)
{
    return rest[strspn(rest, " \t")] != '\0';
}

/* All resources must be there: a line that lacks one may be cut, and its last word is then no kernel's name.
 */
static int read_pin(struct reader *r, char *rest)
{
    struct pin pin = {.copy = 1, .copies = 1, .line = r->line};
    uint32_t given = 0;
    for (int i = 0; i < PIN_RESOURCE_COUNT; i++)
        pin.value[i] = PIN_UNKNOWN;
    int status = take_architecture(r, next_word(&rest), &pin);
    char *word = next_word(&rest);
    for (; status == 0 && has_more(rest); word = next_word(&rest))
        status = strchr(word, '=') ? take_resource(r, word, &given, &pin)
                                   : broken(r, OCC_E_INVALID, "a resource is expected here", word);
    if (status == 0 && given != (1u << PIN_RESOURCE_COUNT) - 1)
        status = broken(r, OCC_E_INVALID, "the pin lacks a resource or its kernel", "");
    if (status == 0)
        status = take_kernel(r, word, &pin.kernel);
    return status == 0 ? pins_add(r->pins, &pin, r->err) : status;
}

/* ---- launch ---- */

/* "256", "256+4096" */
static bool take_launch(char *word, struct pin_launch *launch)
{
    char *plus = strchr(word, '+');
    if (plus)
        *plus++ = '\0';
    return take_number(word, pin_resource_max(PIN_BOUNDS), &launch->threads) && launch->threads > 0 &&
           (!plus || take_number(plus, pin_resource_max(PIN_SHARED), &launch->dynamic_bytes));
}

static int read_launch(struct reader *r, char *rest)
{
    const char *kernel = "";
    struct pins *pins = r->pins;
    int status = take_kernel(r, next_word(&rest), &kernel);
    if (status != 0)
        return status;
    if (!occ_grow((void **)&pins->launches, &pins->launches_allocated, pins->n_launches, PINS_MAX_STATEMENTS,
                  sizeof *pins->launches))
        return broken(r, OCC_E_FULL, "too many launch statements, or no memory", "");
    struct pin_launches *launches = &pins->launches[pins->n_launches++];
    *launches = (struct pin_launches){.kernel = occ_arena_copy(&pins->texts, kernel), .line = r->line};
    do {
        char *word = next_word(&rest);
        if (launches->n == PIN_LAUNCHES || !take_launch(word, &launches->list[launches->n]))
            return broken(r, OCC_E_INVALID, "up to 8 block sizes are expected here, as 256 or 256+4096",
                          word);
        launches->n++;
    } while (has_more(rest));
    return pins->texts.failed ? occ_no_memory(r->err) : 0;
}

/* ---- allow ---- */

/* "2027-01-31": the seconds from 1970 to the beginning of that day in UTC. */
static bool take_day(const char *text, struct pin_allowance *allowance)
{
    struct tm day = {0}, back = {0};
    char again[sizeof allowance->until];
    const char *end = strlen(text) == 10 ? strptime(text, "%Y-%m-%d", &day) : NULL;
    if (!end || *end)
        return false;
    time_t seconds = timegm(&day);
    (void)gmtime_r(&seconds, &back); /* 2027-02-30 comes back as 2027-03-02 */
    (void)strftime(again, sizeof again, "%Y-%m-%d", &back);
    (void)snprintf(allowance->until, sizeof allowance->until, "%s", text);
    allowance->until_s = seconds;
    return strcmp(again, text) == 0;
}

static bool take_rule(const char *word, enum pin_rule *ret_rule)
{
    for (int i = 0; i < PIN_RULE_COUNT; i++)
        if (strcmp(word, pin_rule_word((enum pin_rule)i)) == 0) {
            *ret_rule = (enum pin_rule)i;
            return true;
        }
    return false;
}

static int read_allowance(struct reader *r, char *rest)
{
    struct pin_allowance allowance = {.line = r->line};
    struct pins *pins = r->pins;
    char *rule = next_word(&rest);
    if (!take_rule(rule, &allowance.rule))
        return broken(r, OCC_E_INVALID, "a rule is expected here: blocks, stack, spills, bounds or gone",
                      rule);
    int status = take_kernel(r, next_word(&rest), &allowance.kernel);
    if (status != 0)
        return status;
    char *until = next_word(&rest), *day = next_word(&rest);
    if (strcmp(until, "until") != 0 || !take_day(day, &allowance))
        return broken(r, OCC_E_INVALID, "a day is expected here, as until 2027-01-31", day);
    rest += strspn(rest, " \t");
    if (!rest[0] || strlen(rest) > PINS_REASON_MAX)
        return broken(r, OCC_E_INVALID, "a reason of 1 to 200 bytes is expected at the end", "");
    if (!occ_grow((void **)&pins->allowances, &pins->allowances_allocated, pins->n_allowances,
                  PINS_MAX_STATEMENTS, sizeof *pins->allowances))
        return broken(r, OCC_E_FULL, "too many allowances, or no memory", "");
    occ_text_sanitise(rest);
    allowance.kernel = occ_arena_copy(&pins->texts, allowance.kernel);
    allowance.reason = occ_arena_copy(&pins->texts, rest);
    pins->allowances[pins->n_allowances++] = allowance;
    return pins->texts.failed ? occ_no_memory(r->err) : 0;
}

/* ---- the file ---- */

static const struct {
    const char *word;
    int (*read)(struct reader *r, char *rest);
} statements[] = {{"pin", read_pin}, {"launch", read_launch}, {"allow", read_allowance}};

static int read_statement(struct reader *r, char *line)
{
    char *rest = line, *word = next_word(&rest);
    if (!word[0] || word[0] == '#')
        return 0;
    for (size_t i = 0; i < sizeof statements / sizeof *statements; i++)
        if (strcmp(word, statements[i].word) == 0)
            return statements[i].read(r, rest);
    return broken(r, OCC_E_INVALID, "pin, launch or allow is expected here", word);
}

static int read_header(struct reader *r, char *line)
{
    char *rest = line;
    uint32_t version;
    if (strcmp(next_word(&rest), PINS_HEADER) != 0 || !take_number(next_word(&rest), 1u << 30, &version) ||
        has_more(rest))
        return broken(r, OCC_E_INVALID, "not a file of pins: its first line is 'occq-pins 1'", "");
    if (version != PINS_VERSION)
        return broken(r, OCC_E_VERSION, "pins of another version, only version 1 is read", "");
    return 0;
}

static int read_line(struct reader *r, const char *line, size_t n)
{
    _cleanup_(occ_freep) char *copy = NULL;
    r->line++;
    if (n > 0 && line[n - 1] == '\r')
        n--;
    if (n > LINE_MAX_BYTES || memchr(line, '\0', n))
        return broken(r, OCC_E_INVALID, "a line of up to 65536 bytes of text is expected here", "");
    if (!(copy = strndup(line, n)))
        return occ_no_memory(r->err);
    return r->line == 1 ? read_header(r, copy) : read_statement(r, copy);
}

static int fail_twice(const struct reader *r, const char *what, uint32_t first, uint32_t second)
{
    uint32_t later = first > second ? first : second, earlier = first > second ? second : first;
    return occ_fail(r->err, OCC_E_INVALID, "%s:%u: %s as in line %u (a merge?)", r->file, later, what,
                    earlier);
}

static int by_line_of_kernel(const void *left, const void *right)
{
    const struct pin_launches *a = left, *b = right;
    int order = strcmp(a->kernel, b->kernel);
    return order ? order : (a->line > b->line) - (a->line < b->line);
}

static int by_copy(const void *left, const void *right)
{
    const struct pin *a = left, *b = right;
    int order = pin_compare(a, b);
    return order ? order : (a->copy > b->copy) - (a->copy < b->copy);
}

/* Sorts the statements. A repeated statement is a mistake of a merge, and would weaken the gate. */
static int sort_and_check(struct reader *r)
{
    struct pins *pins = r->pins;
    if (pins->n > 1)
        qsort(pins->list, pins->n, sizeof *pins->list, by_copy);
    for (size_t i = 1; i < pins->n; i++)
        if (by_copy(&pins->list[i - 1], &pins->list[i]) == 0)
            return fail_twice(r, "the same kernel and architecture", pins->list[i - 1].line,
                              pins->list[i].line);
    if (pins->n_launches > 1)
        qsort(pins->launches, pins->n_launches, sizeof *pins->launches, by_line_of_kernel);
    for (size_t i = 1; i < pins->n_launches; i++)
        if (strcmp(pins->launches[i - 1].kernel, pins->launches[i].kernel) == 0)
            return fail_twice(r, "launches of the same kernel", pins->launches[i - 1].line,
                              pins->launches[i].line);
    pins_sort_statements(pins);
    for (size_t i = 1; i < pins->n_allowances; i++) {
        const struct pin_allowance *a = &pins->allowances[i - 1], *b = &pins->allowances[i];
        if (a->rule == b->rule && strcmp(a->kernel, b->kernel) == 0)
            return fail_twice(r, "an allowance of the same rule for the same kernel", a->line, b->line);
    }
    return 0;
}

int pins_parse(const char *file, const char *text, size_t size, struct pins *ret_pins, struct occ_error *err)
{
    struct pins pins = {0};
    struct reader r = {.file = file, .pins = &pins, .err = err};
    int status = 0;
    for (const char *end = text + size; text < end && status == 0;) {
        const char *newline = memchr(text, '\n', (size_t)(end - text));
        size_t n = (size_t)((newline ? newline : end) - text);
        status = read_line(&r, text, n);
        text += n + (newline != NULL);
    }
    if (status == 0 && r.line == 0)
        status = read_line(&r, "", 0);
    if (status == 0)
        status = sort_and_check(&r);
    if (status == 0)
        *ret_pins = pins;
    else
        pins_free(&pins);
    return status;
}
