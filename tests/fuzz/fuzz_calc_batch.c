/*
 * Fuzzes the calculator's batch: any bytes, read in pieces of any size. The output has a line for every row,
 * with the fields of the heading plus the results, and a row is either refused or has numbers. Input: u8 size
 * of a piece, then the CSV; if the first byte has the top bit set, a valid heading is put in front of the
 * CSV.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/occq/calc/calc.h"

struct input {
    const uint8_t *at;
    size_t left, piece;
};

static ssize_t read_piece(void *cookie, char *room, size_t size)
{
    struct input *input = cookie;
    size_t n = input->left < input->piece ? input->left : input->piece;
    n = n < size ? n : size;
    if (n > 0)
        memcpy(room, input->at, n);
    input->at += n;
    input->left -= n;
    return (ssize_t)n;
}

/* Checks the last cell of each row: the row's error, empty if the row was computed. */
static void check(const char *out, size_t bytes, const struct calc_batch_totals *totals)
{
    uint64_t lines = 0, rows_with_error = 0;
    for (size_t i = 1; i < bytes; i++) {
        bool is_end = out[i] == '\n';
        rows_with_error += is_end && lines > 0 && out[i - 1] != ',';
        lines += is_end;
    }
    if (bytes > 0 && (lines != totals->rows + 1 || rows_with_error != totals->bad_rows))
        abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char heading[] =
        "gpu,cc,sms,threads,regs,static_smem,dynamic_smem,grid,carveout,smem_config,"
        "max_dynamic_smem,barriers,cluster\n";
    char *out = NULL;
    size_t out_bytes = 0;
    struct calc_batch_totals totals = {0};
    struct occ_error err = OCC_ERROR_INIT;
    if (size < 1 || size > 8192)
        return 0;
    size_t head = data[0] & 0x80 ? sizeof heading - 1 : 0;
    uint8_t *text = malloc(head + size);
    memcpy(text, heading, head);
    memcpy(text + head, data + 1, size - 1);
    struct input input = {text, head + size - 1, 1 + (data[0] & 0x7f)};
    FILE *file = open_memstream(&out, &out_bytes), *talk = fopen("/dev/null", "w");
    FILE *in = fopencookie(&input, "r", (cookie_io_functions_t){.read = read_piece});
    if (calc_batch(in, file, talk, &totals, &err) != 0 && !err.message[0])
        abort();
    (void)fclose(in);
    (void)fclose(file);
    (void)fclose(talk);
    check(out, out_bytes, &totals);
    free(out);
    free(text);
    return 0;
}
