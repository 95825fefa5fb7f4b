/* See agent_sides.h. One thread. */
#include "agent_sides.h"

/* Refuses sides that are files: an agent may read only the history that its user named. */
static int parse(const struct agent_question *question, const char *text, struct side *side,
                 struct occ_error *err)
{
    int status = side_parse(side, text, question->place->where, err);
    if (status == 0 && side->where.db != question->place->where->db)
        status = occ_fail(err, OCC_E_INVALID, "a side is run:ID, label:TEXT and so on: no other history");
    side->filter.kernel_regex = question->args->kernel;
    return status;
}

/* Opens the sides before the comparison, so that the watch can stop its statements. */
static int open_sides(const struct agent_question *question, struct sides *sides, struct occ_error *err)
{
    int status = 0;
    for (struct side *side = sides->side; side < sides->side + DIFF_SIDES && status == 0; side++) {
        status = side_open(sides, side, err);
        if (status == 0)
            agent_watch_store(question, side->store);
    }
    return status;
}

int agent_sides_compare(const struct agent_question *question, const char *a, const char *b,
                        struct sides *sides, struct occ_error *err)
{
    int status = parse(question, a, &sides->side[DIFF_A], err);
    if (status == 0)
        status = parse(question, b, &sides->side[DIFF_B], err);
    if (status == 0)
        status = open_sides(question, sides, err);
    return status == 0 ? sides_compare(sides, err) : status;
}
