/* Marks of rows; see marks.h. No state; any thread. */
#include "marks.h"

#include "names/owners.h"
#include "support/text.h"

static const struct {
    uint32_t bit;
    char letter;
    const char *label, *text;
} marks_table[] = {
    {CLI_MARK_SIMULATED, 's', NULL, "simulated device"},
    {CLI_MARK_ESTIMATED, 'e', NULL, "limits are estimated, since the compute capability is not known here"},
    {CLI_MARK_PARTLY, 'm', NULL, "measured in less than 90 % of the time"},
    {CLI_MARK_LOSS, 'l', NULL, "an unknown number of its last launches is lost"},
    {CLI_MARK_COMMUNICATION, 'c', "communication", "communication, low by design"},
    {OCC_BY_DESIGN_PERSISTENT, 'p', "persistent",
     "maybe a persistent kernel: the grid is a multiple of the SMs"},
    {OCC_BY_DESIGN_ONE_BLOCK_SMEM, 'o', "one_block_shared_memory", "maybe one block per SM by design"},
    {OCC_BY_DESIGN_CLUSTER, 'k', "cluster", "maybe low because of its clusters"},
};
enum { MARKS = sizeof marks_table / sizeof *marks_table };

uint32_t cli_marks(bool simulated, uint32_t by_design, const char *name)
{
    struct occ_kernel_owner owner = {.owner = OCC_OWNER_UNKNOWN};
    if (name)
        occ_kernel_owner(name, &owner);
    return by_design | (simulated ? CLI_MARK_SIMULATED : 0) |
           (owner.owner == OCC_OWNER_COMMUNICATION ? CLI_MARK_COMMUNICATION : 0);
}

const char *cli_marks_letters(uint32_t marks, char letters[CLI_LETTERS_BYTES])
{
    size_t n = 0;
    for (size_t i = 0; i < MARKS; i++)
        if (marks & marks_table[i].bit)
            letters[n++] = marks_table[i].letter;
    letters[n] = '\0';
    return letters;
}

const char *cli_marks_text(uint32_t marks, bool for_people, char buffer[CLI_MARKS_BYTES])
{
    buffer[0] = '\0';
    for (size_t i = 0; i < MARKS; i++)
        if (marks & marks_table[i].bit && marks_table[i].label)
            occ_text_append(buffer, CLI_MARKS_BYTES, for_people ? "; " : " ", "%s",
                            for_people ? marks_table[i].text : marks_table[i].label);
    return buffer;
}

const char *cli_mark_help(char letter)
{
    for (size_t i = 0; i < MARKS; i++)
        if (marks_table[i].letter == letter)
            return marks_table[i].text;
    return NULL;
}
