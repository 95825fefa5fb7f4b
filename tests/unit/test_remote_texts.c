/* Texts of users in statements for ClickHouse: whatever they hold, they stay one literal; long ones are
 * refused. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cluster/ask/remote.h"

#define TEXT_MAX 64

static void check_quoted(const char *text, const char *expected)
{
    char quoted[2 * TEXT_MAX + 4];
    occ_warehouse_quote(text, quoted, sizeof quoted);
    assert_string_equal(quoted, expected);
}

static void quotes_and_backslashes_are_escaped(void **state)
{
    (void)state;
    check_quoted("", "''");
    check_quoted("ada", "'ada'");
    check_quoted("o'brien", "'o\\'brien'");
    check_quoted("a\\", "'a\\\\'");
    check_quoted("x\\' OR 1=1 -- ", "'x\\\\\\' OR 1=1 -- '");
    check_quoted("\\n", "'\\\\n'");
}

/* The promised room of twice the length + 3 holds the text, even if each byte is escaped. A longer text is
 * cut between its bytes. */
static void the_promised_room_is_enough(void **state)
{
    char quoted[2 * 3 + 3];
    (void)state;
    occ_warehouse_quote("'''", quoted, sizeof quoted);
    assert_string_equal(quoted, "'\\'\\'\\''");
    occ_warehouse_quote("''''", quoted, sizeof quoted);
    assert_string_equal(quoted, "'\\'\\'\\''");
    occ_warehouse_quote("abcdefgh", quoted, sizeof quoted);
    assert_string_equal(quoted, "'abcdef'");
    occ_warehouse_quote("abcde'", quoted, sizeof quoted);
    assert_string_equal(quoted, "'abcde'");
}

/* Reads a literal like ClickHouse: a backslash takes the next byte, a quote ends the literal. Returns NULL if
 * the literal does not end at `end`. */
static const char *read_literal(const char *at, const char *end, char *out)
{
    if (*at++ != '\'')
        return NULL;
    while (at < end && *at != '\'') {
        at += *at == '\\';
        *out++ = *at++;
    }
    *out = '\0';
    return at == end - 1 && *at == '\'' ? out : NULL;
}

static void any_text_is_one_literal(void **state)
{
    static const char bytes[] = "\\\\\\'''\"ab -;)\n\t%\xc3";
    (void)state;
    srand(1);
    for (int i = 0; i < 100000; i++) {
        char text[TEXT_MAX] = "", quoted[2 * TEXT_MAX + 4], read[2 * TEXT_MAX];
        size_t n = (size_t)rand() % (TEXT_MAX - 1);
        for (size_t k = 0; k < n; k++)
            text[k] = bytes[(size_t)rand() % (sizeof bytes - 1)];
        occ_warehouse_quote(text, quoted, sizeof quoted);
        assert_non_null(read_literal(quoted, quoted + strlen(quoted), read));
        assert_string_equal(read, text);
    }
}

/* A shorter text would be another user, job or node. The warehouse is not asked. */
static void a_text_above_the_limit_is_refused(void **state)
{
    static const char *const names[] = {"user", "job", "node"};
    char text[OCC_REMOTE_TEXT_MAX + 2];
    (void)state;
    memset(text, 'x', sizeof text - 1);
    text[sizeof text - 1] = '\0';
    for (int i = 0; i < 3; i++) {
        const struct occ_remote_question question = {
            .user = i == 0 ? text : "u", .job = i == 1 ? text : NULL, .node = i == 2 ? text : NULL};
        struct occ_error err = OCC_ERROR_INIT;
        struct occ_remote_state remote = {0};
        struct occ_store *store = NULL;
        char expected[128];
        (void)snprintf(expected, sizeof expected,
                       "the %s has 1023 bytes: the warehouse is asked for at most 1022", names[i]);
        assert_int_equal(occ_remote_ask(NULL, &question, &remote, &store, &err), OCC_E_INVALID);
        assert_string_equal(err.message, expected);
        assert_null(store);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(quotes_and_backslashes_are_escaped),
        cmocka_unit_test(the_promised_room_is_enough),
        cmocka_unit_test(any_text_is_one_literal),
        cmocka_unit_test(a_text_above_the_limit_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
