/* See accounts.h. */
#include "accounts.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include "schema/schema.h"
#include "support/array.h"
#include "support/cleanup.h"
#include "support/sha256.h"
#include "support/text.h"

#define NODES_MAX      100000u
#define NAME_MAX_BYTES 253 /* longest name of a host */
#define FILE_BYTES_MAX (16u << 20)
#define PASSWORD_BYTES 16 /* random */
#define SECRET_BYTES   1024
/* In the templates: the parts from the first to the last line with NODE are printed for each node. */
#define NODE     "occ_node_NODE"
#define HASH_XML "SHA256"
#define HASH_SQL "sha256_password BY 'PASSWORD'"

/* ---- names of nodes ---- */

struct nodes {
    char *text; /* text of the file; names are parts of the text */
    char **names;
    size_t n, allocated;
    bool is_xml; /* the format of users.d */
};

static void nodes_release(struct nodes *nodes)
{
    free(nodes->text);
    free(nodes->names);
}

/* A name is part of statements, of XML and of a file's path. is_xml: of an element's name, too; 18.16 does
 * not start if there is a '.' in one of users.d, since the '.' ends a key of the settings. */
static bool is_name(const char *name, bool is_xml)
{
    static const char letters[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._";
    size_t n = strlen(name);
    return n > 0 && n <= NAME_MAX_BYTES && name[strspn(name, letters)] == '\0' && name[0] != '.' &&
           name[0] != '-' && !(is_xml && strchr(name, '.'));
}

static int read_text(const char *path, char **ret_text, size_t *ret_n, struct occ_error *err)
{
    _cleanup_(occ_fclosep) FILE *file = fopen(path, "re");
    char *text = file ? malloc(FILE_BYTES_MAX + 1) : NULL;
    if (!file || !text)
        return file ? occ_no_memory(err) : occ_fail_errno(err, errno, "cannot read %s", path);
    size_t n = fread(text, 1, FILE_BYTES_MAX + 1, file);
    int rc = ferror(file)         ? occ_fail_errno(err, errno, "cannot read %s", path)
             : n > FILE_BYTES_MAX ? occ_fail(err, OCC_E_INVALID, "%s: larger than 16 MiB", path)
                                  : 0;
    if (rc != 0) {
        free(text);
        return rc;
    }
    text[n] = '\0';
    *ret_text = text;
    *ret_n = n;
    return 0;
}

/* Adds the name of a line, without blanks around it and a comment behind it. */
static int add_line(struct nodes *nodes, char *line, const char *path, size_t number, struct occ_error *err)
{
    char shown[64];
    line[strcspn(line, "#")] = '\0';
    line += strspn(line, " \t\r");
    for (size_t n = strlen(line); n > 0 && strchr(" \t\r", line[n - 1]); n--)
        line[n - 1] = '\0';
    if (*line == '\0')
        return 0;
    (void)snprintf(shown, sizeof shown, "%s", line);
    occ_text_sanitise(shown);
    if (!is_name(line, nodes->is_xml))
        return occ_fail(err, OCC_E_INVALID, "%s:%zu: '%s' is no name of a node: letters, digits, -%s and _",
                        path, number, shown, nodes->is_xml ? "" : ", .");
    if (!occ_grow((void **)&nodes->names, &nodes->allocated, nodes->n, NODES_MAX, sizeof *nodes->names))
        return nodes->n >= NODES_MAX ? occ_fail(err, OCC_E_INVALID, "%s: more than %u nodes", path, NODES_MAX)
                                     : occ_no_memory(err);
    nodes->names[nodes->n++] = line;
    return 0;
}

static int compare(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

static int read_nodes(const char *path, struct nodes *nodes, struct occ_error *err)
{
    size_t n = 0, number = 0;
    int rc = read_text(path, &nodes->text, &n, err);
    if (rc == 0 && memchr(nodes->text, '\0', n))
        rc = occ_fail(err, OCC_E_INVALID, "%s: is no text", path);
    char *rest = nodes->text;
    for (char *line; rc == 0 && (line = strsep(&rest, "\n"));)
        rc = add_line(nodes, line, path, ++number, err);
    if (rc == 0 && nodes->n == 0)
        rc = occ_fail(err, OCC_E_INVALID, "%s: names no node", path);
    if (rc == 0)
        qsort(nodes->names, nodes->n, sizeof *nodes->names, compare);
    for (size_t i = 1; rc == 0 && i < nodes->n; i++)
        if (strcmp(nodes->names[i - 1], nodes->names[i]) == 0)
            rc = occ_fail(err, OCC_E_INVALID, "%s: names %s twice", path, nodes->names[i]);
    return rc;
}

/* ---- passwords ---- */

/* Makes the directory if it is missing. Whoever may write it can give a node a password that he knows. */
static int open_directory(const char *path, struct occ_error *err)
{
    struct stat status;
    if (mkdir(path, 0700) != 0 && errno != EEXIST)
        return occ_fail_errno(err, errno, "cannot make %s", path);
    _cleanup_(occ_closep) int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0 || fstat(fd, &status) != 0)
        return occ_fail(err, OCC_E_INVALID, "cannot read %s: %s", path, strerror(errno));
    if (status.st_uid != geteuid() && status.st_uid != 0)
        return occ_fail(err, OCC_E_INVALID,
                        "%s belongs to uid %u, who may replace passwords in it: use a directory of your own",
                        path, status.st_uid);
    if (status.st_mode & (S_IRWXG | S_IRWXO))
        return occ_fail(err, OCC_E_INVALID,
                        "%s: a directory that others may read or write keeps no passwords: chmod 700 it",
                        path);
    return 0;
}

static int fail_password(const char *path, struct occ_error *err)
{
    int code = errno;
    (void)unlink(path); /* half a password */
    return occ_fail_errno(err, code, "cannot write %s", path);
}

/* Makes a password in a new file. */
static int make_password(const char *path, char password[SECRET_BYTES], struct occ_error *err)
{
    uint8_t bytes[PASSWORD_BYTES];
    if (getrandom(bytes, sizeof bytes, 0) != sizeof bytes)
        return occ_fail_errno(err, errno, "no random numbers");
    occ_hex_encode(bytes, sizeof bytes, password);
    int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (fd < 0)
        return occ_fail_errno(err, errno, "cannot write %s", path);
    ssize_t n = dprintf(fd, "%s\n", password);
    bool is_written = n == 2 * PASSWORD_BYTES + 1 && fsync(fd) == 0;
    bool is_closed = close(fd) == 0;
    return is_written && is_closed ? 0 : fail_password(path, err);
}

/* The hash of a node's password: of its file, which is made if it is missing. */
static int hash_password(const char *directory, const char *node, char hash[OCC_SHA256_HEX_BYTES],
                         struct occ_error *err)
{
    _cleanup_(occ_freep) char *path = NULL;
    char password[SECRET_BYTES] = "";
    uint8_t bytes[OCC_SHA256_BYTES];
    struct stat status;
    int rc = occ_format_text(&path, err, "%s/%s", directory, node);
    if (rc == 0)
        rc = lstat(path, &status) == 0 ? occ_warehouse_read_secret(path, password, sizeof password, err)
             : errno == ENOENT         ? make_password(path, password, err)
                                       : occ_fail_errno(err, errno, "cannot read %s", path);
    if (rc == 0 && password[0] == '\0')
        rc = occ_fail(err, OCC_E_INVALID, "%s: is empty", path);
    occ_sha256(password, strlen(password), bytes);
    occ_hex_encode(bytes, sizeof bytes, hash);
    return rc;
}

/* ---- printing ---- */

/* Prints a part of a template; each `from` becomes `to`. */
static void put(const char *text, size_t n, const char *const replaced[][2], size_t n_replaced, FILE *out)
{
    for (const char *at = text, *end = text + n; at < end;) {
        size_t i = 0;
        while (i < n_replaced && strncmp(at, replaced[i][0], strlen(replaced[i][0])) != 0)
            i++;
        if (i == n_replaced) {
            (void)fputc(*at++, out);
            continue;
        }
        (void)fputs(replaced[i][1], out);
        at += strlen(replaced[i][0]);
    }
}

static int put_node(const struct occ_accounts_options *options, const char *name, const char *text, size_t n,
                    FILE *out, struct occ_error *err)
{
    char account[NAME_MAX_BYTES + 16], hash[OCC_SHA256_HEX_BYTES] = HASH_XML,
                                       sql[OCC_SHA256_HEX_BYTES + 32] = HASH_SQL;
    int rc = options->passwords ? hash_password(options->passwords, name, hash, err) : 0;
    if (options->passwords)
        (void)snprintf(sql, sizeof sql, "sha256_hash BY '%s'", hash);
    (void)snprintf(account, sizeof account, "occ_node_%s", name);
    const char *const replaced[][2] = {
        {NODE, account}, {HASH_XML, hash}, {HASH_SQL, sql}, {"$db", options->database}};
    if (rc == 0)
        put(text, n, replaced, sizeof replaced / sizeof *replaced, out);
    return rc;
}

/* Start of the line of `at`. */
static const char *line_of(const char *text, const char *at)
{
    while (at > text && at[-1] != '\n')
        at--;
    return at;
}

int occ_accounts_print(const struct occ_accounts_options *options, FILE *out, struct occ_error *err)
{
    _cleanup_(nodes_release) struct nodes nodes = {.is_xml = options->dialect == OCC_DIALECT_OLD};
    const char *text =
        options->dialect == OCC_DIALECT_OLD ? occ_schema_accounts_xml : occ_schema_accounts_sql;
    const char *begin = line_of(text, strstr(text, NODE)), *end = begin;
    const char *const database[][2] = {{"$db", options->database}};
    for (const char *at = begin; (at = strstr(at, NODE)); at = end)
        end = at + strcspn(at, "\n") + 1;
    int rc = options->nodes ? read_nodes(options->nodes, &nodes, err) : 0;
    if (rc == 0 && options->passwords)
        rc = open_directory(options->passwords, err);
    if (rc != 0)
        return rc;
    put(text, (size_t)(begin - text), database, 1, out);
    for (size_t i = 0; rc == 0 && i < nodes.n; i++)
        rc = put_node(options, nodes.names[i], begin, (size_t)(end - begin), out, err);
    if (!options->nodes)
        put(begin, (size_t)(end - begin), database, 1, out);
    put(end, strlen(end), database, 1, out);
    return rc;
}
