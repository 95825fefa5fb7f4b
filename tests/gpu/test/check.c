/* gpu_report_check FILE: returns 0 if the file is valid JSON with experiments. */
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <yajl/yajl_tree.h>

#define FILE_MOST (4u << 20)

int main(int argc, char **argv)
{
    char *text = calloc(1, FILE_MOST + 1), why[256] = "";
    FILE *file = argc == 2 ? fopen(argv[1], "re") : NULL;
    if (!text || !file)
        return 2;
    size_t n = fread(text, 1, FILE_MOST, file);
    (void)fclose(file);
    text[n] = '\0';
    yajl_val root = yajl_tree_parse(text, why, sizeof why);
    const char *keys[] = {"experiments", NULL};
    yajl_val list = root ? yajl_tree_get(root, keys, yajl_t_array) : NULL;
    bool good = list && YAJL_GET_ARRAY(list)->len > 0;
    if (!good)
        (void)fprintf(stderr, "%s: %s\n", argv[1], root ? "no experiments" : why);
    yajl_tree_free(root);
    free(text);
    return good ? 0 : 1;
}
