/* Conditions of virtual tables, as ranges. */
#include "table_range.h"

#ifdef OCC_SQLITE_EXTENSION
SQLITE_EXTENSION_INIT3
#endif

char occ_range_letter(int op)
{
    switch (op) {
    case SQLITE_INDEX_CONSTRAINT_EQ:
        return '=';
    case SQLITE_INDEX_CONSTRAINT_GT:
        return '>';
    case SQLITE_INDEX_CONSTRAINT_GE:
        return 'g';
    case SQLITE_INDEX_CONSTRAINT_LT:
        return '<';
    case SQLITE_INDEX_CONSTRAINT_LE:
        return 'l';
    default:
        return 0;
    }
}

static void at_least(struct occ_range *r, int64_t v)
{
    r->low = v > r->low ? v : r->low;
}

static void at_most(struct occ_range *r, int64_t v)
{
    r->high = v < r->high ? v : r->high;
}

static void make_empty(struct occ_range *r)
{
    r->low = 1;
    r->high = 0;
}

static void narrow_integer(struct occ_range *r, char op, int64_t v)
{
    if ((op == '>' && v == INT64_MAX) || (op == '<' && v == INT64_MIN)) {
        make_empty(r);
        return;
    }
    if (op == '=' || op == 'g' || op == '>')
        at_least(r, op == '>' ? v + 1 : v);
    if (op == '=' || op == 'l' || op == '<')
        at_most(r, op == '<' ? v - 1 : v);
}

/* A real compares with integers by value: "> 1.5" is ">= 2". */
static void narrow_real(struct occ_range *r, char op, double v)
{
    const double limit = 9223372036854775808.0; /* 2^63 */
    if (v >= limit || v < -limit) {
        bool above = v >= limit;
        if (op == '=' || (above ? op == '>' || op == 'g' : op == '<' || op == 'l'))
            make_empty(r);
        return;
    }
    int64_t whole = (int64_t)v; /* towards zero */
    if ((double)whole == v) {
        narrow_integer(r, op, whole);
    } else if (op == '=') {
        make_empty(r);
    } else {
        int64_t below = v < 0 ? whole - 1 : whole;
        narrow_integer(r, op == '>' || op == 'g' ? '>' : 'l', below);
    }
}

/* The comparison of an integer column with any value, as SQL defines it. */
void occ_range_narrow(struct occ_range *r, char op, sqlite3_value *value)
{
    switch (sqlite3_value_numeric_type(value)) {
    case SQLITE_INTEGER:
        narrow_integer(r, op, sqlite3_value_int64(value));
        break;
    case SQLITE_FLOAT:
        narrow_real(r, op, sqlite3_value_double(value));
        break;
    case SQLITE_NULL:
        make_empty(r);
        break;
    default: /* text and blobs are larger than every number */
        if (op == '=' || op == '>' || op == 'g')
            make_empty(r);
    }
}
