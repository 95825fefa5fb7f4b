/* See outcome.h. One thread (stdio). */
#include <sys/stat.h>

#include "cli/file.h"
#include "cli/options.h"
#include "judge_print.h"
#include "outcome.h"

typedef void print_judgement(FILE *out, const struct judgement *judgement);

static bool is_same_file(const char *path, const char *other)
{
    struct stat a, b;
    return stat(path, &a) == 0 && stat(other, &b) == 0 && a.st_ino == b.st_ino && a.st_dev == b.st_dev;
}

/* Writes one report; does nothing if `path` is NULL. */
static int write_file(const char *path, const struct judgement *judgement, print_judgement *print,
                      struct occ_error *err)
{
    struct cli_file output;
    if (!path)
        return 0;
    if (is_same_file(path, judgement->file))
        return occ_fail(err, OCC_E_INVALID, "%s has the rules: nothing is written over it", path);
    if (cli_file_open(path, &output, err) != 0)
        return err->code;
    print(output.out, judgement);
    return cli_file_finish(&output, err);
}

int check_write_reports(const struct check_reports *reports, const struct judgement *judgement,
                        struct occ_error *err)
{
    if (reports->github)
        judgement_print_github(stdout, judgement);
    int status = write_file(reports->junit, judgement, judgement_print_junit, err);
    return status == 0 ? write_file(reports->gitlab, judgement, judgement_print_gitlab, err) : status;
}

int check_exit_status(const struct judgement *judgement, bool strict)
{
    const size_t *count = judgement->count;
    bool is_open =
        count[RULE_NOT_JUDGED] > 0 || (strict && (count[RULE_UNDECIDED] > 0 || judgement->has_new));
    return count[RULE_FAILS] > 0               ? CLI_EXIT_RULE_FAILS
           : is_open || count[RULE_HOLDS] == 0 ? CLI_EXIT_NOTHING
                                               : CLI_EXIT_OK;
}
