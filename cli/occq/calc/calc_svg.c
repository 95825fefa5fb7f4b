/* `occq calc --svg`: the curves, one panel each. One thread (stdio). */
#include "calc.h"

#include <stdio.h>

#include "cli/file.h"
#include "draw/svg.h"
#include "support/cleanup.h"

enum { HEAD = 80, IN_A_ROW = 2 };

/* Draws "matmul on NVIDIA H200", and below it the launch and its limiters. */
static void put_head(FILE *out, const struct calc_case *c)
{
    const struct occ_launch *l = &c->launch;
    const char *name = c->kernel->name;
    char block[48], shared[24], limiters[128];
    draw_svg_text(out, 16, 24, "head", "%s%s%s: occupancy of a full wave", name ? name : "",
                  name ? " on " : "", c->target->title);
    draw_svg_text(
        out, 16, 43, "", "%s threads per block, %u registers per thread, %s of shared memory per block",
        analysis_dimensions(l->block, block, sizeof block), l->registers_per_thread,
        calc_axis_value(OCC_AXIS_SMEM, l->static_smem_bytes + l->dynamic_smem_bytes, shared, sizeof shared));
    draw_svg_text(out, 16, 59, "", "theoretical occupancy %.1f%%, limited by %s", c->result.theoretical * 100,
                  occ_limiters_text(c->result.limiters, limiters, sizeof limiters));
}

static void put_document(FILE *out, const struct calc_case *c, const struct calc_curves *curves)
{
    size_t rows = (curves->n + IN_A_ROW - 1) / IN_A_ROW;
    draw_svg_begin(out, CALC_PANEL_X * IN_A_ROW, (double)(HEAD + rows * CALC_PANEL_Y));
    put_head(out, c);
    for (size_t i = 0; i < curves->n; i++)
        calc_svg_curve(out, (double)(i % IN_A_ROW * CALC_PANEL_X),
                       (double)(HEAD + i / IN_A_ROW * CALC_PANEL_Y), &curves->list[i]);
    draw_svg_end(out);
}

int calc_svg(const struct calc_case *c, const char *path, struct occ_error *err)
{
    _cleanup_(calc_curves_release) struct calc_curves curves = {.n = 0};
    struct cli_file output;
    int status = calc_curves_new(&c->target->device, &c->launch, &curves, err);
    if (status == 0)
        status = cli_file_open(path, &output, err);
    if (status != 0)
        return occ_error_prefix(err, "--svg");
    put_document(output.out, c, &curves);
    return cli_file_finish(&output, err) == 0 ? 0 : occ_error_prefix(err, "--svg");
}
