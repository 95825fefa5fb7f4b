/* Recognises names of tensor-core kernels; see analysis.h. Pure. */
#include <ctype.h>
#include <stdbool.h>
#include <string.h>

#include "analysis.h"

enum { WORDS = 1024 };

/* Returns the length of a name up to its parameters, which may have misleading words: "void
 * f(cutlass::bfloat16_t*)". */
static size_t length_without_parameters(const char *name)
{
    static const char anonymous[] = "(anonymous namespace)";
    const char *end = strchr(name, '(');
    while (end && strncmp(end, anonymous, sizeof anonymous - 1) == 0)
        end = strchr(end + 1, '(');
    return end ? (size_t)(end - name) : strlen(name);
}

static bool starts_word(unsigned char before, unsigned char c)
{
    bool is_hump = isupper(c) && islower(before);
    return !isalnum(before) || is_hump || (isdigit(c) != 0) != (isdigit(before) != 0);
}

/* Splits a name into lower-case words between blanks, with numbers as words: " s 1688 gemm 64 x 64 ". */
static void split_words(const char *name, char words[WORDS])
{
    size_t used = 1, n = length_without_parameters(name);
    unsigned char before = '_';
    words[0] = ' ';
    for (size_t i = 0; i < n && used + 2 < WORDS; i++) {
        unsigned char c = (unsigned char)name[i];
        if (isalnum(c) && starts_word(before, c) && words[used - 1] != ' ')
            words[used++] = ' ';
        if (isalnum(c))
            words[used++] = (char)tolower(c);
        before = c;
    }
    words[used] = '\0';
    if (used > 1 && used + 1 < WORDS)
        memcpy(words + used, " ", 2);
}

static bool has_any(const char *words, const char *const *list, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (strstr(words, list[i]))
            return true;
    return false;
}

#define HAS_ANY(words, list) has_any(words, list, sizeof(list) / sizeof *(list))

/* The words are from names of cuBLAS, cuDNN, CUTLASS, FlashAttention, TensorRT-LLM and Triton. */
bool analysis_names_tensor_cores(const char *name)
{
    static const char *const tensor[] = {" tensorop ", " nvjet ",     " xmma ",        " wgmma ",
                                         " gmma ",     " hmma ",      " imma ",        " fmha ",
                                         " flash fwd", " flash bwd ", " flash attn",   " gemm ",
                                         " bgemm ",    " conv ",      " convolution ", " convolve "};
    /* FP32 without tensor cores: SGEMM, CUTLASS's SIMT kernels, cuDNN's SCUDNN, depthwise convolutions */
    static const char *const other[] = {" sgemm ", " simt ", " scudnn ", " ffma ", " fp 32 ", " depthwise "};
    char words[WORDS];
    if (!name)
        return false;
    split_words(name, words);
    return HAS_ANY(words, tensor) && !HAS_ANY(words, other);
}
