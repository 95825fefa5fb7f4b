/* occ_gen_sql_docs: prints the tables of docs/sql.md, made from sql_nouns.c. A build tool: its output is
 * committed, and a test compares it. */
#include <stdio.h>

#include "sql_nouns.h"

static void print_columns(const struct occ_sql_column *column)
{
    for (; column->name; column++)
        (void)printf("| `%s` | %s | %s | %s |\n", column->name, column->type, column->unit, column->help);
}

int main(void)
{
    for (const struct occ_sql_noun *noun = occ_sql_nouns; noun->name; noun++) {
        (void)printf("\n### %s\n\n%s.\n\n| column | type | unit | description |\n|---|---|---|---|\n",
                     noun->name, noun->help);
        for (size_t i = 0; i < sizeof noun->columns / sizeof *noun->columns && noun->columns[i]; i++)
            print_columns(noun->columns[i]);
    }
    return ferror(stdout) != 0 || fflush(stdout) != 0;
}
