/*
 * Users in rows of the warehouse, in the form of ship.users (support/pseudonym.h), and in the forms that the
 * setting had when earlier rows were sent. A user is part of a minute's key: after a change of the setting
 * the rows of the earlier form are replaced by rows without launches, so that no launch counts twice. The
 * state keeps the hash of each user by each key, since a former key is unknown. One thread.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "support/error.h"
#include "support/pseudonym.h"

#define OCC_USER_FORMS_MAX 8 /* earlier forms of a history; the oldest are forgotten */

struct sqlite3;

struct occ_user_forms {
    const struct occ_pseudonym *pseudonym;
    struct sqlite3 *db; /* the state's file */
    int64_t identity;   /* identity of the history */
    bool has_changed;   /* the present form differs from the form at the last occ_user_forms_store() */
    char now[OCC_PSEUDONYM_FORM_MAX]; /* the present form */
    size_t n_earlier;
    struct {
        char form[OCC_PSEUDONYM_FORM_MAX];
        int64_t until_minute; /* rows of minutes up to this one may have the form */
    } earlier[OCC_USER_FORMS_MAX];
};

/* Makes the tables in a state file. */
int occ_user_forms_prepare(struct sqlite3 *db, struct occ_error *err);
/* Drops the marks of histories that were sent whole if the form has changed since the last call, so that each
 * history is opened. A state without a form had names. */
int occ_user_forms_begin(struct sqlite3 *db, const struct occ_pseudonym *pseudonym, struct occ_error *err);

/* Reads the forms of a history; pseudonym, db and identity are set. is_known: the state has a position in the
 * history; without forms its rows have names then. newest_minute: rows up to here may have been sent. */
int occ_user_forms_read(struct occ_user_forms *forms, bool is_known, int64_t newest_minute,
                        struct occ_error *err);
/* Stores the forms, after the position from which the history is sent again. */
int occ_user_forms_store(struct occ_user_forms *forms, struct occ_error *err);

/* A user's texts, in the present form and in earlier forms; NULL: never sent in that form, or the same text
 * as `now`. */
struct occ_user_texts {
    char *now, *earlier[OCC_USER_FORMS_MAX];
};
/* Makes the texts of a user; keeps a new hash in the state. forms NULL: the texts are names. The caller calls
 * occ_user_texts_free(), also after an error. */
int occ_user_texts_make(const struct occ_user_forms *forms, const char *user,
                        struct occ_user_texts *ret_texts, struct occ_error *err);
void occ_user_texts_free(struct occ_user_texts *texts);
