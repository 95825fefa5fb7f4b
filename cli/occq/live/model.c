/* See model.h. */
#include "model.h"

#include <stdlib.h>
#include <string.h>

void live_sample_free(struct live_sample *sample)
{
    if (!sample)
        return;
    occ_top_free(&sample->kernels);
    occ_top_free(&sample->gpus);
    occ_top_free(&sample->causes);
    occ_layers_free(&sample->layers.tree);
    occ_top_free(&sample->layers.rows);
    occ_arena_free(sample->layers.texts.blocks);
    free(sample->uses);
    occ_arena_free(sample->names.blocks);
    free(sample->lines);
    free(sample);
}

void live_model_release(struct live_model *model)
{
    free(model->kernels);
    free(model->items);
}

/* ---- kernels and their last values ---- */

static int by_id(const void *left, const void *right)
{
    const struct live_kernel *a = left, *b = right;
    return a->id != b->id ? (a->id > b->id) - (a->id < b->id)
                          : (a->device > b->device) - (a->device < b->device);
}

static struct live_kernel *find_kernel(const struct live_model *model, int64_t id, int64_t device)
{
    const struct live_kernel key = {.id = id, .device = device};
    return model->n_kernels ? bsearch(&key, model->kernels, model->n_kernels, sizeof key, by_id) : NULL;
}

/* Shifts the values by one and appends the newest. Returns false if all values are 0. */
static bool push_value(struct live_kernel *kernel, double value)
{
    bool any = value > 0;
    for (size_t i = 0; i + 1 < LIVE_VALUES; i++) {
        kernel->values[i] = kernel->values[i + 1];
        any = any || kernel->values[i] > 0;
    }
    kernel->values[LIVE_VALUES - 1] = value;
    return any;
}

bool live_record(struct live_model *model, const struct occ_top *kernels)
{
    struct live_kernel *all = calloc(model->n_kernels + kernels->n + 1, sizeof *all);
    size_t n = 0;
    if (!all)
        return false;
    for (size_t i = 0; i < kernels->n; i++) {
        const struct occ_row_kernel *k = &kernels->rows[i].kernel;
        struct live_kernel *known = find_kernel(model, k->id, k->device);
        all[n] =
            known ? *known : (struct live_kernel){.id = k->id, .device = k->device, .last_row = SIZE_MAX};
        (void)push_value(&all[n++], top_waste_of(&kernels->rows[i]));
        if (known)
            known->id = 0; /* moved to `all` */
    }
    for (size_t i = 0; i < model->n_kernels; i++) {
        all[n] = model->kernels[i];
        if (all[n].id != 0 && push_value(&all[n], 0))
            n++;
    }
    qsort(all, n, sizeof *all, by_id);
    free(model->kernels);
    model->kernels = all;
    model->n_kernels = n;
    model->n = 0;
    return true;
}

/* ---- order ---- */

static bool matches(const struct live_model *model, const struct occ_row_kernel *kernel)
{
    const char *const texts[] = {kernel->short_name, kernel->words, kernel->demangled};
    bool has_it = !model->filter[0];
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        has_it = has_it || (texts[i] && strcasestr(texts[i], model->filter));
    return has_it;
}

static double number_of(const struct cli_value *value)
{
    return value->type == CLI_INTEGER    ? (double)value->integer
           : value->type == CLI_UNSIGNED ? (double)value->number
           : value->type == CLI_REAL     ? value->real
           : value->type == CLI_BOOL     ? value->boolean
                                         : 0;
}

/* Compares by value; unknown values are last. Ties are broken, so that two samples have the same order. */
static int by_value(const void *left, const void *right, void *inverted)
{
    const struct live_item *a = left, *b = right;
    double x = number_of(&a->value), y = number_of(&b->value);
    int sign = *(const bool *)inverted ? -1 : 1, texts = 0;
    if ((a->value.type == CLI_NONE) != (b->value.type == CLI_NONE))
        return a->value.type == CLI_NONE ? 1 : -1;
    if (a->value.type == CLI_STRING && b->value.type == CLI_STRING)
        texts = strverscmp(a->value.string, b->value.string); /* compares digits as numbers */
    if (x < y || x > y)
        return x < y ? sign : -sign;
    return texts != 0 ? sign * texts : by_id(a->kernel, b->kernel);
}

/* Compares by the row in the last order; kernels without a row follow, by value. */
static int by_last_row(const void *left, const void *right, void *inverted)
{
    size_t a = ((const struct live_item *)left)->kernel->last_row,
           b = ((const struct live_item *)right)->kernel->last_row;
    return a != b ? (a > b) - (a < b) : by_value(left, right, inverted);
}

/* Finds the row of the selected kernel; without one the selection stays at its row. */
static void find_selected(struct live_model *model)
{
    if (model->selected == 0)
        model->at = 0;
    for (size_t i = 0; i < model->n && model->selected != 0; i++)
        if (model->items[i].kernel->id == model->selected &&
            model->items[i].kernel->device == model->selected_device)
            model->at = i;
    if (model->at >= model->n)
        model->at = model->n ? model->n - 1 : 0;
}

/* Numbers the rows, and sets their cumulative share of the waste. */
static void number_rows(struct live_model *model, const struct top_sums *sums)
{
    double running = 0;
    for (size_t i = 0; i < model->n_kernels; i++)
        model->kernels[i].last_row = SIZE_MAX;
    for (size_t i = 0; i < model->n; i++) {
        running += top_waste_of(&model->items[i].line->row);
        model->items[i].line->running_waste_ratio = running / sums->waste;
        model->items[i].kernel->last_row = i;
    }
}

bool live_arrange(struct live_model *model, const struct live_sample *sample, bool held)
{
    free(model->items);
    model->n = 0;
    model->items = calloc(sample->kernels.n + 1, sizeof *model->items);
    if (!model->items)
        return false;
    for (size_t i = 0; i < sample->kernels.n; i++) {
        struct top_line *line = &sample->lines[i];
        struct live_kernel *known = find_kernel(model, line->row.kernel.id, line->row.kernel.device);
        if (known && matches(model, &line->row.kernel))
            model->items[model->n++] = (struct live_item){line, known, model->order->get(model->order, line)};
    }
    qsort_r(model->items, model->n, sizeof *model->items, held ? by_last_row : by_value, &model->inverted);
    number_rows(model, &sample->sums);
    find_selected(model);
    return true;
}

/* ---- selection ---- */

void live_move(struct live_model *model, int64_t rows)
{
    int64_t last = (int64_t)model->n - 1, at = (int64_t)model->at + rows;
    if (last < 0)
        return;
    model->at = (size_t)(at < 0 ? 0 : at > last ? last : at);
    model->selected = model->items[model->at].kernel->id;
    model->selected_device = model->items[model->at].kernel->device;
}

void live_scroll(struct live_model *model, size_t visible)
{
    if (model->first + visible > model->n)
        model->first = model->n > visible ? model->n - visible : 0;
    if (model->at < model->first)
        model->first = model->at;
    if (visible && model->at >= model->first + visible)
        model->first = model->at - visible + 1;
}
