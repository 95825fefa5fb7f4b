/* The text of `occq top --advice`; see top_advice_text.h. One thread. */
#include "top_advice_text.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>

#include "cli/fit.h"
#include "cli/screen.h"
#include "support/cleanup.h"
#include "support/text.h"

enum { TEXT = 512, NAME_WIDTH = 32 /* longer names push the other facts to the next line */ };

/* Prints "  69 volta_sgemm_64x64_tn, library: 4.7% of the GPU time, 512 of 640 blocks". */
static void print_subject(const struct top_line *line)
{
    const struct occ_row_kernel *kernel = &line->row.kernel;
    bool is_long = kernel->words && cli_text_width(kernel->short_name) > NAME_WIDTH;
    _cleanup_(occ_freep) char *name = cli_screen_text(is_long ? kernel->words : kernel->short_name);
    char text[TEXT] = "", share[16];
    bool has_gpu_time = !isnan(line->gpu_share);
    if (!name) {
        cli_screen_lose_text();
        return;
    }
    occ_text_append(text, sizeof text, "", "%s of the %s time",
                    cli_percent_text(has_gpu_time ? line->gpu_share : line->share, share, sizeof share),
                    has_gpu_time ? "GPU" : "kernel");
    if (line->why[0])
        occ_text_append(text, sizeof text, "; ", "%s", line->why);
    cli_print("%" PRId64 " %s, %s: %s\n", line->row.kernel.id, name, line->whose ? line->whose : "-", text);
}

void top_advice_print(const struct top_line *lines, const struct show_group *const *groups, size_t n)
{
    char text[TEXT];
    for (size_t i = 0; i < n; i++) {
        print_subject(&lines[i]);
        if (!groups[i])
            continue;
        cli_print("  DO     %s\n", show_change_text(groups[i], text, sizeof text));
        cli_print("  SAVES  %s\n", occ_saving_text(groups[i]->answer, text, sizeof text));
    }
}
