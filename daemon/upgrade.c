/* See upgrade.h. */
#include "upgrade.h"

#include <glob.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "store/upgrade.h"
#include "support/cleanup.h"
#include "support/text.h"

static int upgrade(const char *path, bool backup, FILE *out, struct occ_error *err)
{
    struct occ_upgrade done;
    struct occ_error why = OCC_ERROR_INIT;
    int status = occ_store_upgrade(path, backup, &done, &why);
    if (status != 0)
        (void)fprintf(out, "failed: %s", why.message);
    else if (done.from == done.to)
        (void)fprintf(out, "%s: has schema %d already", path, done.to);
    else
        (void)fprintf(out, "%s: schema %d is now %d", path, done.from, done.to);
    if (done.backup)
        (void)fprintf(out, "; as it was: %s", done.backup);
    (void)fputc('\n', out);
    free(done.backup);
    return status == 0 ? 0 : occ_fail(err, status, "%s", why.message);
}

/* Upgrades the histories that match and returns their number; *first is the first failure. */
static int upgrade_all(const char *directory, const char *pattern, bool backup, FILE *out,
                       struct occ_error *first)
{
    _cleanup_(occ_freep) char *path = NULL;
    glob_t found = {0};
    if (occ_format_text(&path, first, "%s/%s", directory, pattern) != 0)
        return 0;
    if (glob(path, 0, NULL, &found) == 0)
        for (size_t i = 0; i < found.gl_pathc; i++)
            (void)upgrade(found.gl_pathv[i], backup, out, first->code ? NULL : first);
    int n = (int)found.gl_pathc;
    globfree(&found);
    return n;
}

int occ_upgrade_histories(const char *path, bool backup, FILE *out, struct occ_error *err)
{
    struct stat status;
    struct occ_error first = OCC_ERROR_INIT;
    if (stat(path, &status) != 0 || !S_ISDIR(status.st_mode))
        return upgrade(path, backup, out, err);
    int n = upgrade_all(path, "history.db", backup, out, &first);
    n += upgrade_all(path, "*/history.db", backup, out, &first);
    if (first.code != 0)
        return occ_fail(err, first.code, "%s", first.message);
    return n > 0 ? 0
                 : occ_fail(err, OCC_E_NOT_FOUND, "%s: no history.db is in it or in its directories", path);
}
