/* The table, the use of CUDA, and the runner; see guests.h. */
#include "guests.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { TIMEOUT_S = 300, GRID = 4, BLOCK = 128 };

const char *guest_self;

/* ---- CUDA ---- */

/* Same order as `names`. */
static struct {
    int (*init)(unsigned int);
    int (*device_get)(int *, int);
    int (*retain)(void **, int);
    int (*set_current)(void *);
    int (*load)(void **, const void *);
    int (*get_function)(void **, void *, const char *);
    int (*alloc)(unsigned long long *, size_t);
    int (*launch)(void *, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, void *,
                  void **, void **);
    int (*synchronize)(void);
} cu;

static const char *const names[] = {"cuInit",          "cuDeviceGet",      "cuDevicePrimaryCtxRetain",
                                    "cuCtxSetCurrent", "cuModuleLoadData", "cuModuleGetFunction",
                                    "cuMemAlloc_v2",   "cuLaunchKernel",   "cuCtxSynchronize"};

static void *image, *context, *kernel;
static unsigned long long memory[3];

static void *read_image(const char *path)
{
    FILE *file = path ? fopen(path, "rb") : NULL;
    if (!file)
        return NULL;
    fseek(file, 0, SEEK_END);
    size_t size = (size_t)ftell(file);
    char *bytes = malloc(size);
    rewind(file);
    if (bytes && fread(bytes, 1, size, file) != size)
        bytes = NULL;
    fclose(file);
    return bytes;
}

void guest_open(void)
{
    void *driver = dlopen("libcuda.so.1", RTLD_NOW);
    if (image || !driver || !(image = read_image(getenv("GUESTS_IMAGE"))))
        return;
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        void *function = dlsym(driver, names[i]);
        memcpy((char *)&cu + i * sizeof function, &function, sizeof function);
    }
}

static void check(int result, const char *what)
{
    if (result == 0)
        return;
    fprintf(stderr, "%s: %d\n", what, result);
    exit(99);
}

static void start(void)
{
    int device = 0;
    void *module = NULL;
    check(cu.init(0), "cuInit");
    check(cu.device_get(&device, 0), "cuDeviceGet");
    check(cu.retain(&context, device), "cuDevicePrimaryCtxRetain");
    check(cu.set_current(context), "cuCtxSetCurrent");
    check(cu.load(&module, image), "cuModuleLoadData");
    check(cu.get_function(&kernel, module, "vector_add"), "cuModuleGetFunction");
    for (int i = 0; i < 3; i++)
        check(cu.alloc(&memory[i], 4096), "cuMemAlloc");
}

void guest_launch(int launches)
{
    unsigned int elements = GRID * BLOCK;
    void *arguments[] = {&memory[0], &memory[1], &memory[2], &elements};
    guest_open();
    if (!image)
        return;
    if (!kernel)
        start();
    check(cu.set_current(context), "cuCtxSetCurrent"); /* for this thread */
    for (int i = 0; i < launches; i++)
        check(cu.launch(kernel, GRID, 1, 1, BLOCK, 1, 1, 0, NULL, arguments, NULL), "cuLaunchKernel");
    check(cu.synchronize(), "cuCtxSynchronize");
}

/* ---- the runner: guests --run FILE COMMAND...: writes stdout, stderr and end of the command to FILE.out,
 * FILE.err, FILE.end ---- */

static void write_end(const char *path, int status)
{
    FILE *file = fopen(path, "w");
    if (!file)
        exit(98);
    if (WIFSIGNALED(status))
        fprintf(file, "signal %d\n", WTERMSIG(status));
    else
        fprintf(file, "exit %d\n", WEXITSTATUS(status));
    fclose(file);
}

static void become_command(char *const *argv, const char *out, const char *err)
{
    int out_fd = open(out, O_WRONLY | O_CREAT | O_TRUNC | O_APPEND, 0666);
    int err_fd = open(err, O_WRONLY | O_CREAT | O_TRUNC | O_APPEND, 0666);
    if (dup2(out_fd, 1) < 0 || dup2(err_fd, 2) < 0)
        _exit(98);
    close(out_fd);
    close(err_fd);
    execvp(argv[0], argv);
    _exit(97);
}

/* Leads the command's process group, so that the command is not a group leader. */
static void lead_command(char **argv)
{
    char out[4096], err[4096], end[4096];
    int status = 0;
    snprintf(out, sizeof out, "%s.out", argv[0]);
    snprintf(err, sizeof err, "%s.err", argv[0]);
    snprintf(end, sizeof end, "%s.end", argv[0]);
    setpgid(0, 0);
    pid_t command = fork();
    if (command == 0)
        become_command(argv + 1, out, err);
    while (waitpid(command, &status, 0) != command)
        ;
    write_end(end, status);
    _exit(0);
}

static pid_t leader;

static void on_timeout(int number)
{
    (void)number;
    kill(-leader, SIGKILL);
}

/* Runs the command until its end or the timeout; after a timeout FILE.end is missing. */
static int run_command(char **argv)
{
    const char *limit = getenv("GUESTS_TIMEOUT_S");
    leader = fork();
    if (leader == 0)
        lead_command(argv);
    signal(SIGALRM, on_timeout);
    alarm(limit ? (unsigned int)atoi(limit) : TIMEOUT_S);
    while (waitpid(leader, NULL, 0) != leader)
        ;
    return 0;
}

/* ---- the table ---- */

void guest_print(const char *format, ...)
{
    char line[512];
    va_list arguments;
    va_start(arguments, format);
    int n = vsnprintf(line, sizeof line - 1, format, arguments);
    va_end(arguments);
    line[n] = '\n';
    ssize_t written = write(1, line, (size_t)n + 1);
    (void)written; /* stdout may be closed or full */
}

static guest_case *find(const struct guest_row *row, const char *name)
{
    while (row->name && strcmp(row->name, name) != 0)
        row++;
    return row->run;
}

int main(int argc, char **argv)
{
    guest_self = argv[0];
    if (argc > 3 && strcmp(argv[1], "--run") == 0)
        return run_command(argv + 2);
    guest_case *run = argc > 1 ? find(guests_that_end, argv[1]) : NULL;
    if (!run && argc > 1)
        run = find(guests_with_children, argv[1]);
    if (!run && argc > 1)
        run = find(guests_with_limits, argv[1]);
    if (run)
        return run(argv[2]);
    fprintf(stderr, "guests: no such case\n");
    return 95;
}
