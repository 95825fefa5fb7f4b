/* See program.h. One thread. */
#include "program.h"

#include <dlfcn.h>
#include <elf.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "support/cleanup.h"

/* SCRIPTS_MAX: the kernel's limit of nested interpreters. */
enum { SCRIPTS_MAX = 5, START_BYTES = 4 << 20, DRIVER_PATIENCE_S = 10 };

/* ---- the program's path ---- */

static bool is_program(const char *path)
{
    struct stat status;
    return stat(path, &status) == 0 && S_ISREG(status.st_mode) && access(path, X_OK) == 0;
}

static bool search(const char *name, char *path, size_t size)
{
    const char *at = getenv("PATH");
    if (!at)
        at = "/bin:/usr/bin"; /* the default of execvp(3) */
    for (;;) {
        int length = (int)strcspn(at, ":");
        int n = snprintf(path, size, "%.*s%s%s", length, at, length ? "/" : "./", name);
        if (n > 0 && (size_t)n < size && is_program(path))
            return true;
        if (at[length] == '\0')
            return false;
        at += length + 1;
    }
}

static void find(const char *name, char *path, size_t size)
{
    char found[PATH_MAX], full[PATH_MAX];
    bool is_there = strchr(name, '/') ? snprintf(found, sizeof found, "%s", name) < (int)sizeof found
                                      : search(name, found, sizeof found);
    (void)snprintf(path, size, "%s", is_there ? (realpath(found, full) ? full : found) : "");
}

/* ---- the kind of file ---- */

/* The ELF header of occtrace itself. */
extern const Elf64_Ehdr __ehdr_start __attribute__((visibility("hidden")));

/* Reads the start of a file into `text`, which has START_BYTES and a NUL. Returns the number of bytes. */
static size_t read_start(const char *path, char *text)
{
    _cleanup_(occ_closep) int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    ssize_t n = fd >= 0 ? pread(fd, text, START_BYTES, 0) : 0;
    text[n > 0 ? n : 0] = '\0';
    return n > 0 ? (size_t)n : 0;
}

/* Replaces `path` by the interpreter of a script. Returns false, with `path` unchanged, if the file is not a
 * script. */
static bool follow_script(const char *text, char path[PATH_MAX])
{
    if (strncmp(text, "#!", 2) != 0)
        return false;
    const char *name = text + 2 + strspn(text + 2, " \t");
    size_t length = strcspn(name, " \t\n");
    if (length >= PATH_MAX)
        return false;
    memcpy(path, name, length);
    path[length] = '\0';
    return true;
}

/* True if the file has no segment that names a dynamic linker. */
static bool is_static(const char *text, size_t n, const Elf64_Ehdr *header)
{
    for (size_t i = 0; i < header->e_phnum; i++) {
        Elf64_Phdr segment;
        size_t at = i * sizeof segment;
        if (header->e_phoff > n || n - header->e_phoff < at + sizeof segment)
            return false;
        memcpy(&segment, text + header->e_phoff + at, sizeof segment);
        if (segment.p_type == PT_INTERP)
            return false;
    }
    return true;
}

/* True for a program with the address sanitizer, whose runtime ends the program unless its library is the
 * first. The names of libraries and symbols are near the start of a file. A program that only mentions these
 * names is recorded too, by the environment variable. */
static bool needs_asan(const char *text, size_t n)
{
    return memmem(text, n, "__asan_init", 11) || memmem(text, n, "libasan.so", 10);
}

static void inspect_start(const char *text, size_t n, struct program *program)
{
    Elf64_Ehdr header = {.e_type = ET_NONE};
    memcpy(&header, text, n < sizeof header ? n : sizeof header);
    if (memcmp(header.e_ident, ELFMAG, SELFMAG) != 0)
        program->takes_preload = true; /* unreadable, or a script for the shell */
    else if (header.e_ident[EI_CLASS] == ELFCLASS32)
        program->obstacle = "the program is a 32-bit one, for which there is no CUDA";
    else if (header.e_machine != __ehdr_start.e_machine)
        program->obstacle = "the program is one for another kind of processor";
    else if (is_static(text, n, &header))
        program->obstacle = "the program is statically linked: no library can be loaded into it";
    else
        program->takes_preload = !needs_asan(text, n);
}

/* True for a program that gains rights when it is executed; the dynamic linker ignores its LD_PRELOAD. */
static bool gains_rights(const char *path)
{
    struct stat status;
    if (stat(path, &status) != 0)
        return false;
    bool other_user = (status.st_mode & S_ISUID) && status.st_uid != getuid();
    bool other_group =
        (status.st_mode & (S_ISGID | S_IXGRP)) == (S_ISGID | S_IXGRP) && status.st_gid != getgid();
    return other_user || other_group || getxattr(path, "security.capability", NULL, 0) > 0;
}

void program_inspect(const char *name, const char *library, struct program *program)
{
    const char *injected = getenv("CUDA_INJECTION64_PATH");
    _cleanup_(occ_freep) char *text = malloc(START_BYTES + 1);
    char path[PATH_MAX];
    *program = (struct program){.obstacle = NULL};
    find(name, program->path, sizeof program->path);
    (void)snprintf(path, sizeof path, "%s", program->path);
    size_t n = text ? read_start(path, text) : 0;
    for (int i = 0; i < SCRIPTS_MAX && n > 0 && follow_script(text, path); i++)
        n = read_start(path, text);
    if (gains_rights(path))
        program->obstacle =
            "the program is setuid, setgid or has capabilities: no library can be loaded into it";
    else if (text)
        inspect_start(text, n, program);
    (void)snprintf(program->other_tool, sizeof program->other_tool,
                   "another tool is injected: CUDA_INJECTION64_PATH=%s", injected ? injected : "");
    if (injected && library && strcmp(injected, library) != 0)
        program->obstacle = program->other_tool;
}

/* ---- the reason of a run without launches ---- */

/* Loads the driver in a child, since loading it has effects (threads, memory, device files) that occtrace
 * must avoid. */
static void try_driver(void)
{
    int null = open("/dev/null", O_RDWR | O_CLOEXEC);
    if (null >= 0) {
        (void)dup2(null, STDOUT_FILENO);
        (void)dup2(null, STDERR_FILENO);
    }
    (void)alarm(DRIVER_PATIENCE_S);
    _exit(dlopen("libcuda.so.1", RTLD_LAZY) ? 0 : 1);
}

static bool driver_loads(void)
{
    int status = 0;
    pid_t pid = fork();
    if (pid == 0)
        try_driver();
    return pid > 0 && waitpid(pid, &status, 0) == pid && WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

const char *program_no_launches_reason(const struct program *program)
{
    const char *disabled = getenv("OCCTRACE_DISABLE");
    if (disabled && strcmp(disabled, "1") == 0)
        return "OCCTRACE_DISABLE=1 is in the environment";
    if (program->obstacle)
        return program->obstacle;
    if (!driver_loads())
        return "no CUDA driver: libcuda.so.1 cannot be loaded";
    return "the program did not initialise CUDA, or did so where occtrace stays out (see occtrace(1))";
}
