/* See node.h. */
#include "node.h"

#include <errno.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cluster.h"
#include "support/cleanup.h"
#include "support/regexp.h"
#include "support/text.h"

enum { WORDS_MAX = 256 };

static char **given; /* the process's arguments from the command's name on, before parsing */

void node_keep_arguments(char **argv)
{
    size_t n = 0;
    while (argv[n])
        n++;
    given = calloc(n + 1, sizeof *given);
    if (given)
        memcpy(given, argv, n * sizeof *given);
}

int node_check(void *history_args, struct occ_error *err)
{
    struct history_args *args = history_args;
    if (args->cluster && !args->node)
        return occ_fail(err, OCC_E_INVALID, "the warehouse has no single launches: --node NAME asks a node");
    if (args->node) /* the node chooses its own histories */
        args->list.common.all_users = NULL;
    return cli_check_history(args, err);
}

/* Checks that the name is a host's name: no option of ssh, no character that a shell interprets. Returns
 * OCC_E_INVALID for another name, OCC_E_DENIED for a host that the pattern does not allow. */
static int node_check_name(const char *name, const char *pattern, struct occ_error *err)
{
    static const char rule[] = "^[A-Za-z0-9][A-Za-z0-9.-]{0,253}$";
    struct occ_regexp *host = NULL, *nodes = NULL;
    char anchored[1100];
    (void)snprintf(anchored, sizeof anchored, "^(%s)$", pattern);
    int status = occ_regexp_compile(rule, &host, err);
    if (status != 0)
        return status;
    bool is_host = occ_regexp_matches(host, name);
    occ_regexp_free(host);
    if (!is_host)
        return occ_fail(err, OCC_E_INVALID, "'%.64s' is no host's name", name);
    if (occ_regexp_compile(anchored, &nodes, err) != 0)
        return occ_error_prefix(err, "cluster.nodes");
    bool is_node = occ_regexp_matches(nodes, name);
    occ_regexp_free(nodes);
    return is_node ? 0 : occ_fail(err, OCC_E_DENIED, "node '%.64s' does not match cluster.nodes", name);
}

/* Returns the next argument for the node; skips --node and --cluster with their values. NULL: the end. */
static char *next_argument(char ***at)
{
    static const char *const ours[] = {"--node", "--cluster"};
    while (**at) {
        char *word = *(*at)++;
        bool is_ours = false;
        for (size_t i = 0; i < sizeof ours / sizeof *ours; i++) {
            size_t n = strlen(ours[i]);
            if (strncmp(word, ours[i], n) != 0 || (word[n] && word[n] != '='))
                continue;
            *at += !word[n] && **at;
            is_ours = true;
        }
        if (!is_ours)
            return word;
    }
    return NULL;
}

/* Returns "occq COMMAND ARGUMENT..." quoted for the remote shell; NULL: no memory. */
static char *command_line(const struct cli_command *command)
{
    char *text = NULL;
    size_t size = 0;
    FILE *out = open_memstream(&text, &size);
    char **at = given;
    bool is_whole = true;
    if (!out)
        return NULL;
    (void)fputs(cli_program(command), out);
    for (char *word; at && (word = next_argument(&at));) {
        _cleanup_(occ_freep) char *quoted = occ_text_quote(word);
        is_whole &= quoted != NULL;
        (void)fprintf(out, " %s", quoted ? quoted : "");
    }
    is_whole &= !ferror(out);
    is_whole &= fclose(out) == 0;
    if (!is_whole) /* an incomplete command would be another command */
        free(text);
    return is_whole ? text : NULL;
}

/* Splits the setting into words and replaces {node}, {command} and {arguments}. */
static void make_words(const struct cli_command *command, const char *node, char *setting, char *line,
                       char **words)
{
    size_t n = 0;
    for (char *word; (word = strsep(&setting, " ")) && n + 3 < WORDS_MAX;) {
        char **at = given;
        if (strcmp(word, "{node}") == 0)
            words[n++] = (char *)(uintptr_t)node;
        else if (strcmp(word, "{command}") == 0)
            words[n++] = line;
        else if (strcmp(word, "{arguments}") == 0) {
            words[n++] = (char *)(uintptr_t)cli_program(command);
            for (char *next; at && n + 1 < WORDS_MAX && (next = next_argument(&at));)
                words[n++] = next;
        } else if (word[0])
            words[n++] = word;
    }
    words[n] = NULL;
}

/* Runs the words as a program; its output goes to the pager if there is one. Returns its exit status. */
static int run_words(char **words, struct occ_error *err)
{
    int status = 0;
    pid_t child;
    (void)fflush(NULL);
    int failed = posix_spawnp(&child, words[0], NULL, NULL, words, environ);
    if (failed != 0)
        return occ_fail_errno(err, failed, "cannot run %s", words[0]);
    while (waitpid(child, &status, 0) < 0)
        if (errno != EINTR)
            return occ_fail_errno(err, errno, "cannot wait for %s", words[0]);
    return WIFEXITED(status) ? WEXITSTATUS(status) : CLI_EXIT_FAILURE;
}

int node_run(const struct cli_command *command, const char *node)
{
    static struct occ_config config;
    char *words[WORDS_MAX];
    struct occ_error err = OCC_ERROR_INIT;
    _cleanup_(occ_freep) char *line = command_line(command);
    int rc = line ? cluster_settings(&config, &err) : occ_no_memory(&err);
    if (rc == 0)
        rc = node_check_name(node, config.cluster_nodes, &err);
    if (rc == 0) {
        make_words(command, node, config.cluster_command, line, words);
        rc = run_words(words, &err);
    }
    return rc < 0 ? cli_failure(command, &err) : rc;
}
