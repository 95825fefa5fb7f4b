/* The staging file: see sink_state.h. One thread. */
#include "sink_state.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "spool.h"

#define BUFFER_BYTES (256u * 1024u)

struct occ_stage {
    FILE *file;
    char *buffer;
    _Alignas(16) unsigned char record[OCC_STAGE_RECORD_MAX];
};

struct head {
    uint32_t kind, size;
};

/* A file without a name in the temporary directory. */
static FILE *open_unnamed(void)
{
    int fd = occ_spool_unnamed(NULL);
    FILE *file = fd >= 0 ? fdopen(fd, "w+") : NULL;
    if (!file && fd >= 0)
        (void)close(fd);
    return file;
}

int occ_stage_new(struct occ_stage **ret_stage, struct occ_error *err)
{
    struct occ_stage *stage = malloc(sizeof *stage);
    if (!stage)
        return occ_no_memory(err);
    stage->file = open_unnamed();
    stage->buffer = malloc(BUFFER_BYTES);
    if (!stage->file || !stage->buffer) {
        int status = occ_fail_errno(err, errno, "cannot create a temporary file in TMPDIR");
        occ_stage_free(stage);
        return status;
    }
    (void)setvbuf(stage->file, stage->buffer, _IOFBF, BUFFER_BYTES);
    *ret_stage = stage;
    return 0;
}

void occ_stage_free(struct occ_stage *stage)
{
    if (!stage)
        return;
    if (stage->file)
        (void)fclose(stage->file);
    free(stage->buffer);
    free(stage);
}

int occ_stage_put(struct occ_stage *stage, enum occ_stage_kind kind, const void *data, size_t size,
                  struct occ_error *err)
{
    /* functions in parentheses: glibc's macros of that name warn */
    const struct head head = {.kind = kind, .size = (uint32_t)size};
    if ((fwrite_unlocked)(&head, sizeof head, 1, stage->file) != 1 ||
        (size > 0 && (fwrite_unlocked)(data, size, 1, stage->file) != 1))
        return occ_fail_errno(err, errno, "cannot write the temporary file");
    return 0;
}

int occ_stage_rewind(struct occ_stage *stage, struct occ_error *err)
{
    if (fflush(stage->file) != 0 || fseek(stage->file, 0, SEEK_SET) != 0)
        return occ_fail_errno(err, errno, "cannot write the temporary file");
    return 0;
}

int occ_stage_next(struct occ_stage *stage, enum occ_stage_kind *ret_kind, const void **ret_data,
                   size_t *ret_size, struct occ_error *err)
{
    struct head head;
    if ((fread_unlocked)(&head, sizeof head, 1, stage->file) != 1) {
        if (ferror(stage->file))
            return occ_fail_errno(err, errno, "cannot read the temporary file");
        *ret_size = SIZE_MAX;
        return 0;
    }
    if (head.size > sizeof stage->record ||
        (head.size > 0 && (fread_unlocked)(stage->record, head.size, 1, stage->file) != 1))
        return occ_fail(err, OCC_E_IO, "the temporary file is damaged");
    *ret_kind = (enum occ_stage_kind)head.kind;
    *ret_data = stage->record;
    *ret_size = head.size;
    return 0;
}
