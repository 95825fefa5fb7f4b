/*
 * cupti/library: the search for libcupti: candidates, their order, and refusals. The candidates are copies of
 * the injector tests' fake library in a temporary directory; the test skips the machine's other libraries.
 */
#include "cupti/functions.h"
#include "cupti/library.h"
#include "cupti/trusted.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

/* Not in /tmp, since /tmp may be a mount with nosuid. */
static char root[sizeof "/var/tmp/test_cupti_XXXXXX"];

static void copy(const char *file, const char *path)
{
    char command[1024];
    (void)snprintf(command, sizeof command, "mkdir -p $(dirname %s/%s) && cp %s %s/%s", root, path, file,
                   root, path);
    assert_int_equal(system(command), 0);
}

static void put(const char *path)
{
    copy(OCC_FAKE_CUPTI, path);
}

/* Installs a fake library like a toolkit: `link` names the real file beside it. */
static void put_release(const char *link, const char *release)
{
    char path[256], target[64];
    (void)snprintf(path, sizeof path, "%.*s/libcupti.so.%s", (int)(strrchr(link, '/') - link), link, release);
    put(path);
    (void)snprintf(target, sizeof target, "libcupti.so.%s", release);
    (void)snprintf(path, sizeof path, "%s/%s", root, link);
    assert_int_equal(symlink(target, path), 0);
}

static void *map(const char *path, int how)
{
    char full[256];
    (void)snprintf(full, sizeof full, "%s/%s", root, path);
    return dlopen(full, RTLD_LAZY | how);
}

static int set_up(void **state)
{
    char path[64];
    *state = NULL;
    strcpy(root, "/var/tmp/test_cupti_XXXXXX");
    if (!mkdtemp(root) || chmod(root, 0755) != 0)
        return -1;
    (void)snprintf(path, sizeof path, "%s/home", root);
    (void)setenv("CUDA_HOME", path, 1);
    (void)snprintf(path, sizeof path, "%s/path", root);
    (void)setenv("CUDA_PATH", path, 1);
    (void)setenv("PATH", "/bin", 1);
    (void)unsetenv("VIRTUAL_ENV");
    (void)setenv("HOME", root, 1);
    return chmod(root, 0755);
}

static int tear_down(void **state)
{
    char command[64];
    (void)state;
    (void)snprintf(command, sizeof command, "rm -rf %s", root);
    return system(command);
}

/* Returns the next candidate below root, as a path relative to root; "" if there is none. */
static const char *next(struct occ_cupti_search *search, struct occ_cupti *cupti, char *reason)
{
    while (occ_cupti_find(search, cupti, reason))
        if (strncmp(search->name, root, strlen(root)) == 0)
            return search->name + strlen(root) + 1;
    return "";
}

static void each_layout_of_a_toolkit_is_found_in_order(void **state)
{
    (void)state;
    static const char *const files[] = {"home/lib64/libcupti.so.13", "home/lib/libcupti.so.13", /* pip */
                                        "home/extras/CUPTI/lib64/libcupti.so.12", "home/lib64/libcupti.so.12",
                                        "path/lib/libcupti.so.12"};
    size_t n = sizeof files / sizeof files[0];
    char reason[OCC_CUPTI_REASON_BYTES] = "";
    struct occ_cupti_search search = {.configured = ""};
    struct occ_cupti cupti;
    for (size_t i = n; i-- > 0;)
        put(files[i]);
    for (size_t i = 0; i < n; i++) {
        assert_string_equal(next(&search, &cupti, reason), files[i]);
        assert_int_equal(cupti.version, 130001);
        assert_string_equal(occ_cupti_result_text(&cupti, 7), "A_FAKE_ERROR");
    }
    assert_string_equal(next(&search, &cupti, reason), "");
}

static void the_newest_release_comes_first(void **state)
{
    (void)state;
    static const char *const expected[] = {"path/lib/libcupti.so.13", "ld/libcupti.so.13",
                                           "home/lib/libcupti.so.13", /* the release is unknown */
                                           "home/lib64/libcupti.so.12", "path/lib64/libcupti.so.12"};
    char reason[OCC_CUPTI_REASON_BYTES] = "", path[128];
    struct occ_cupti_search search = {.configured = ""};
    struct occ_cupti cupti;
    put("home/lib/libcupti.so.13");
    put_release("path/lib64/libcupti.so.12", "2024.3.2");
    put_release("path/lib/libcupti.so.13", "2026.1.0");
    put_release("home/lib64/libcupti.so.12", "2025.2.1");
    put_release("ld/libcupti.so.13", "2025.4.1");
    (void)snprintf(path, sizeof path, "relative::%s/ld", root);
    (void)setenv("LD_LIBRARY_PATH", path, 1);
    for (size_t i = 0; i < sizeof expected / sizeof expected[0]; i++)
        assert_string_equal(next(&search, &cupti, reason), expected[i]);
    assert_string_equal(next(&search, &cupti, reason), "");
    (void)unsetenv("LD_LIBRARY_PATH");
}

/* A library that was opened stays in the program, so a release known to be refused is not opened. */
static void releases_that_are_refused_are_not_opened(void **state)
{
    (void)state;
    char reason[OCC_CUPTI_REASON_BYTES] = "";
    struct occ_cupti_search search = {.configured = ""};
    struct occ_cupti cupti;
    put_release("home/lib64/libcupti.so.13", "2025.3.0");
    put_release("home/lib64/libcupti.so.12", "2022.4.1");
    put_release("path/lib64/libcupti.so.12", "2023.2.0");
    assert_string_equal(next(&search, &cupti, reason), "path/lib64/libcupti.so.12");
    assert_string_equal(next(&search, &cupti, reason), "");
    assert_null(map("home/lib64/libcupti.so.13", RTLD_NOLOAD));
    assert_null(map("home/lib64/libcupti.so.12", RTLD_NOLOAD));
    assert_non_null(map("path/lib64/libcupti.so.12", RTLD_NOLOAD));
    assert_non_null(strstr(reason, "home/lib64/libcupti.so.13 is that of CUDA 13.0 without its update 1"));
}

static void a_mapped_one_wins(void **state)
{
    (void)state;
    char reason[OCC_CUPTI_REASON_BYTES] = "", path[128];
    struct occ_cupti cupti;
    put("theirs/libcupti-1a2b3c4d.so.12"); /* name in old wheels of PyTorch */
    put("home/lib64/libcupti.so.13");
    put("mine.so");
    void *theirs = map("theirs/libcupti-1a2b3c4d.so.12", RTLD_LOCAL);
    (void)snprintf(path, sizeof path, "%s/mine.so", root);
    const char *const configured[] = {path, ""};
    for (size_t i = 0; i < 2; i++) {
        struct occ_cupti_search search = {.configured = configured[i]};
        assert_string_equal(next(&search, &cupti, reason), "theirs/libcupti-1a2b3c4d.so.12");
        assert_string_equal(cupti.path + strlen(root) + 1, "theirs/libcupti-1a2b3c4d.so.12");
        assert_string_equal(next(&search, &cupti, reason), i == 0 ? "mine.so" : "home/lib64/libcupti.so.13");
    }
    assert_non_null(theirs);
}

/* A later import of PyTorch binds to the package's libcupti, so the toolkit's library of the same major
 * version is left out. */
static void the_packages_have_their_own(void **state)
{
    (void)state;
    char reason[OCC_CUPTI_REASON_BYTES] = "";
    struct occ_cupti_search search = {.configured = ""};
    struct occ_cupti cupti;
    copy(OCC_FAKE_TORCH, "env/lib/python3.12/site-packages/cupy/_core.so");
    put("env/lib/python3.12/site-packages/nvidia/cuda_cupti/lib/libcupti.so.12");
    put_release("home/lib64/libcupti.so.12", "2025.2.1");
    put_release("home/lib64/libcupti.so.13", "2025.3.1");
    assert_non_null(map("env/lib/python3.12/site-packages/cupy/_core.so", RTLD_LOCAL));
    assert_string_equal(next(&search, &cupti, reason),
                        "env/lib/python3.12/site-packages/nvidia/cuda_cupti/lib/libcupti.so.12");
    assert_string_equal(next(&search, &cupti, reason), "home/lib64/libcupti.so.13");
    assert_string_equal(next(&search, &cupti, reason), "");
}

static void libtorch_has_its_own(void **state)
{
    (void)state;
    static const char *const theirs[] = {"x/nvidia/cu13/lib/libcupti.so.13", "x/on_rpath/libcupti.so.13"};
    char reason[OCC_CUPTI_REASON_BYTES] = "";
    struct occ_cupti_search search = {.configured = ""};
    struct occ_cupti cupti;
    copy(OCC_FAKE_TORCH, "x/torch/lib/libtorch_cpu.so");
    for (size_t i = 0; i < 2; i++)
        put(theirs[i]);
    put_release("home/lib64/libcupti.so.13", "2026.1.0");
    void *torch = map("x/torch/lib/libtorch_cpu.so", RTLD_LOCAL);
    assert_string_equal(next(&search, &cupti, reason), theirs[0]);
    /* dlinfo(3) expands the RPATH's $ORIGIN and keeps its .. */
    assert_string_equal(next(&search, &cupti, reason), "x/torch/lib/../../on_rpath/libcupti.so.13");
    assert_string_equal(next(&search, &cupti, reason), "");
    (void)dlclose(torch);
}

static void a_relative_variable_is_no_place(void **state)
{
    (void)state;
    char reason[OCC_CUPTI_REASON_BYTES] = "";
    struct occ_cupti_search search = {.configured = ""};
    struct occ_cupti cupti;
    put("home/lib/libcupti.so.12");
    assert_int_equal(chdir(root), 0);
    (void)setenv("CUDA_HOME", "home", 1);
    while (occ_cupti_find(&search, &cupti, reason)) {
        assert_int_not_equal(strncmp(search.name, "home/", 5), 0);
        assert_int_not_equal(strncmp(search.name, root, strlen(root)), 0);
    }
    assert_int_equal(chdir("/"), 0);
}

#define SITE12 "lib/python3.12/site-packages/"
#define SITE9  "lib/python3.9/site-packages/"
#define DEBIAN "local/lib/python3.11/dist-packages/"

/* Sets the variable to `before`, a directory below root, and `behind`. */
static void set_place(const char *variable, const char *before, const char *directory, const char *behind)
{
    char value[256];
    (void)snprintf(value, sizeof value, "%s%s/%s%s", before, root, directory, behind);
    (void)setenv(variable, value, 1);
}

/* A C program maps no package; the packages of the Python environment still have a libcupti, one per major
 * version. */
static void pythons_packages_come_last(void **state)
{
    (void)state;
    static const struct {
        const char *file, *found; /* found: the name in the search */
    } expected[] = {
        {"home/lib64/libcupti.so.12", "home/lib64/libcupti.so.12"},
        {"venv/" SITE12 "nvidia/cu13/lib/libcupti.so.13", "venv/" SITE12 "nvidia/cu13/lib/libcupti.so.13"},
        {"py/" DEBIAN "nvidia/cuda_cupti/lib/libcupti.so.12",
         "py/bin/../" DEBIAN "nvidia/cuda_cupti/lib/libcupti.so.12"},
    };
    char reason[OCC_CUPTI_REASON_BYTES] = "";
    struct occ_cupti_search search = {.configured = ""};
    struct occ_cupti cupti;
    for (size_t i = 0; i < sizeof expected / sizeof expected[0]; i++)
        put(expected[i].file);
    copy("/bin/true", "py/bin/python3");
    set_place("VIRTUAL_ENV", "", "venv", "");
    set_place("PATH", "relative/bin::/nowhere:", "py", "/bin:/bin");
    for (size_t i = 0; i < sizeof expected / sizeof expected[0]; i++) {
        assert_string_equal(next(&search, &cupti, reason), expected[i].found);
        assert_string_equal(cupti.path + strlen(root) + 1, expected[i].file);
    }
    assert_string_equal(next(&search, &cupti, reason), "");
}

/* python3 is a link to another installation, and the packages there count, too. */
static void the_python_behind_a_link_has_packages(void **state)
{
    (void)state;
    char reason[OCC_CUPTI_REASON_BYTES] = "", link[256];
    struct occ_cupti_search search = {.configured = ""};
    struct occ_cupti cupti;
    put("real/" SITE9 "nvidia/cuda_cupti/lib/libcupti.so.12");
    put(".local/" SITE9 "nvidia/cu13/lib/libcupti.so.13");
    copy("/bin/true", "real/bin/python3.9");
    (void)snprintf(link, sizeof link,
                   "mkdir -p %s/py/bin && ln -s ../../real/bin/python3.9 %s/py/bin/python3", root, root);
    assert_int_equal(system(link), 0);
    set_place("PATH", "", "py", "/bin:/bin");
    assert_string_equal(next(&search, &cupti, reason), ".local/" SITE9 "nvidia/cu13/lib/libcupti.so.13");
    assert_string_equal(next(&search, &cupti, reason),
                        "real/bin/../" SITE9 "nvidia/cuda_cupti/lib/libcupti.so.12");
    assert_string_equal(next(&search, &cupti, reason), "");
}

/* A package is refused if others may write the file or a directory on the path to it. */
static void packages_that_others_may_write_are_refused(void **state)
{
    (void)state;
    static const char *const open_places[] = {"venv", "venv/lib", "venv/" SITE12 "nvidia/cu13/lib",
                                              "venv/" SITE12 "nvidia/cu13/lib/libcupti.so.13"};
    struct occ_cupti cupti;
    char path[256], expected[300];
    put("venv/" SITE12 "nvidia/cu13/lib/libcupti.so.13");
    set_place("VIRTUAL_ENV", "", "venv", "");
    for (size_t i = 0; i < sizeof open_places / sizeof open_places[0]; i++) {
        char reason[OCC_CUPTI_REASON_BYTES] = "";
        struct occ_cupti_search search = {.configured = ""};
        (void)snprintf(path, sizeof path, "%s/%s", root, open_places[i]);
        assert_int_equal(chmod(path, 0777), 0);
        assert_string_equal(next(&search, &cupti, reason), "");
        (void)snprintf(expected, sizeof expected, "is not trusted: %s can be written by others", path);
        assert_non_null(strstr(reason, expected));
        assert_int_equal(chmod(path, 0755), 0);
    }
    char reason[OCC_CUPTI_REASON_BYTES] = "";
    struct occ_cupti_search search = {.configured = ""};
    assert_string_not_equal(next(&search, &cupti, reason), "");
}

/* Each refused library is listed with the reason, up to the buffer's size. */
static void all_that_are_refused_are_listed(void **state)
{
    (void)state;
    char reason[OCC_CUPTI_REASON_BYTES] = "", long_one[200];
    struct occ_cupti_search search = {.configured = ""};
    struct occ_cupti cupti;
    put_release("home/lib64/libcupti.so.13", "2025.3.0");
    put_release("home/lib64/libcupti.so.12", "2022.4.1");
    copy("/bin/sh", "venv/" SITE12 "nvidia/cu13/lib/libcupti.so.13");
    set_place("VIRTUAL_ENV", "", "venv", "");
    assert_string_equal(next(&search, &cupti, reason), "");
    assert_non_null(strstr(reason, "home/lib64/libcupti.so.13 is that of CUDA 13.0 without"));
    assert_non_null(strstr(reason, "; "));
    assert_non_null(strstr(reason, "home/lib64/libcupti.so.12 is older than CUDA 12.2"));
    memset(long_one, 'x', sizeof long_one);
    long_one[sizeof long_one - 1] = '\0';
    for (int i = 0; i < 3; i++)
        occ_cupti_refuse(reason, "%s", long_one);
    assert_string_equal(reason + strlen(reason) - 5, "; ...");
}

/* The libcupti of another process is a last resort, and is refused if others may have written it. */
static void an_offered_one_must_be_trusted(void **state)
{
    (void)state;
    static const struct {
        const char *offered, *text; /* text: expected reason; "": found */
        mode_t directory;
        uid_t owner;
    } cases[] = {
        {"theirs/libcupti.so.13", "", 0755, 0},
        {"link/libcupti.so.13", "", 0755, 0},
        {"link/../theirs/./libcupti.so.13", "", 0755, 0},
        {"theirs/libcupti.so.13", "", 01777, 0},
        {"link/libcupti.so.13", "theirs can be written by others", 0775, 0},
        {"theirs/libcupti.so.13", "theirs can be written by others", 0777, 0},
        {"theirs/libcupti.so.13", "libcupti.so.13 belongs to another user (65534)", 0755, 65534},
        {"theirs/evil.so", "its name is not that of a libcupti", 0755, 0},
        {"theirs/libcupti.so.14", "No such file", 0755, 0},
        {"theirs", "its name is not that of a libcupti", 0755, 0},
        {"link/libcupti.d", "is no file", 0755, 0},
        {"loop/libcupti.so.13", "cannot be followed", 0755, 0},
    };
    struct occ_cupti cupti;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char reason[OCC_CUPTI_REASON_BYTES] = "", path[256], command[512];
        if (geteuid() != 0 && (cases[i].owner != 0 || cases[i].directory == 0775))
            continue; /* needs root; 0775 is valid for a user's own group */
        (void)snprintf(path, sizeof path, "%zu/theirs/libcupti.so.13", i);
        put(path);
        (void)snprintf(
            command, sizeof command,
            "cd %s/%zu && mkdir link theirs/libcupti.d && touch theirs/evil.so && ln -s loop loop && "
            "ln -s ../theirs/libcupti.so.13 ../theirs/libcupti.d link && chown %u "
            "theirs/libcupti.so.13 && chmod %o theirs",
            root, i, geteuid() == 0 ? cases[i].owner : geteuid(), cases[i].directory);
        assert_int_equal(system(command), 0);
        (void)snprintf(path, sizeof path, "%s/%zu/%s", root, i, cases[i].offered);
        struct occ_cupti_search search = {.configured = "", .offered = path};
        bool found = false; /* libraries of earlier cases are mapped, too */
        while (!found && occ_cupti_find(&search, &cupti, reason))
            found = strcmp(search.name, path) == 0;
        if (found != (cases[i].text[0] == '\0') || !strstr(reason, cases[i].text))
            fail_msg("%s: found %d, '%s', not '%s'", path, found, reason, cases[i].text);
        (void)snprintf(command, sizeof command, "%s/%zu/theirs/libcupti.so.13", root, i);
        assert_true(!found || strcmp(cupti.path, command) == 0); /* cupti.path has no links */
    }
}

/* A group made for the user has the user's number; group 100, `users`, has many members. */
static void a_group_of_many_is_not_the_users_own(void **state)
{
    (void)state;
    static const struct {
        gid_t group;
        bool is_trusted;
    } cases[] = {{61007, true}, {100, false}};
    char path[64], resolved[PATH_MAX], reason[OCC_CUPTI_REASON_BYTES];
    if (geteuid() != 0)
        skip(); /* only root can become another user */
    (void)snprintf(path, sizeof path, "%s/libcupti.so.13", root);
    put("libcupti.so.13");
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        int status = -1;
        assert_int_equal(chown(path, 61007, cases[i].group) | chmod(path, 0664), 0);
        (void)fflush(NULL);
        pid_t child = fork();
        assert_true(child >= 0);
        if (child == 0)
            _exit(setresgid(cases[i].group, cases[i].group, cases[i].group) == 0 &&
                          setresuid(61007, 61007, 61007) == 0
                      ? occ_trusted_file(path, resolved, reason, sizeof reason)
                      : 99);
        assert_int_equal(waitpid(child, &status, 0), child);
        assert_true(WIFEXITED(status));
        assert_int_equal(WEXITSTATUS(status), cases[i].is_trusted);
    }
}

/* A user who has made the mount controls root's files on it. Only root's daemon refuses such files. */
static void an_offered_one_lies_on_no_mount_of_a_user(void **state)
{
    (void)state;
    static const struct {
        const char *root, *options, *text; /* options NULL: the mount is not listed; text "": trusted file */
    } cases[] = {{"/", "rw,relatime", ""},
                 {"/", "rw,nosuid,nodev", "lies on a mount with nosuid"},
                 {"/", "ro,nodev,nosuid", "lies on a mount with nosuid"},
                 {"/a\fb", "rw,nosuid,nodev", "lies on a mount with nosuid"}, /* the kernel keeps \f */
                 {"/a\vb\rc", "rw,nosuid,nodev", "lies on a mount with nosuid"},
                 {"/", NULL, "lies on a mount whose options are not known"}};
    char directory[] = "/dev/shm/test_cupti_library_XXXXXX", path[64], mounts[64], resolved[PATH_MAX];
    struct stat top, other;
    struct statx status, parent;
    if (stat("/", &top) != 0 || stat("/dev/shm", &other) != 0 || top.st_dev == other.st_dev ||
        !mkdtemp(directory))
        skip(); /* a container's /dev/shm may be a plain directory */
    assert_int_equal(chmod(directory, 0755), 0);
    (void)snprintf(path, sizeof path, "%s/libcupti.so.13", directory);
    (void)snprintf(mounts, sizeof mounts, "%s/mounts", directory);
    FILE *file = fopen(path, "we");
    assert_non_null(file);
    assert_int_equal(fclose(file), 0);
    assert_int_equal(statx(AT_FDCWD, path, 0, STATX_MNT_ID, &status), 0);
    assert_int_equal(statx(AT_FDCWD, "/dev", 0, STATX_MNT_ID, &parent), 0);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        unsigned long long id = status.stx_mask & STATX_MNT_ID ? status.stx_mnt_id : 0;
        char reason[OCC_CUPTI_REASON_BYTES] = "";
        bool is_root = geteuid() == 0, is_good = cases[i].text[0] == '\0' && (status.stx_mask & STATX_MNT_ID);
        file = fopen(mounts, "we");
        assert_non_null(file);
        (void)fprintf(file, "%llu 1 0:98 / /a\\040b rw,relatime shared:1 - tmpfs tmpfs rw,nosuid\n",
                      (unsigned long long)parent.stx_mnt_id);
        if (cases[i].options)
            (void)fprintf(file, "%llu 1 0:99 %s /mnt %s - tmpfs tmpfs rw,nosuid\n", id, cases[i].root,
                          cases[i].options);
        assert_int_equal(fclose(file), 0);
        if (occ_trusted_offered(path, mounts, resolved, reason, sizeof reason) != (is_good || !is_root) ||
            (is_root && !is_good && !strstr(reason, "lies on a mount")))
            fail_msg("case %zu: '%s'", i, reason);
        if (is_root && (status.stx_mask & STATX_MNT_ID) && !strstr(reason, cases[i].text))
            fail_msg("'%s', not '%s'", reason, cases[i].text);
        assert_true(occ_trusted_file(path, resolved, reason, sizeof reason));
    }
    assert_int_equal(unlink(mounts) | unlink(path) | rmdir(directory), 0);
}

/* Files behind closed directories belong to containers: the container's root wrote them. */
static void a_file_behind_a_closed_directory_is_not_open(void **state)
{
    (void)state;
    static const struct {
        mode_t directory, file;
        bool is_open;
    } cases[] = {{0755, 0644, true},
                 {0711, 0755, true},
                 {0710, 0644, false},
                 {0700, 0644, false},
                 {0755, 0640, false}};
    char directory[64], path[96], resolved[PATH_MAX];
    (void)snprintf(directory, sizeof directory, "%s/closed", root);
    (void)snprintf(path, sizeof path, "%s/libcupti.so.13", directory);
    assert_int_equal(mkdir(directory, 0755), 0);
    FILE *file = fopen(path, "we");
    assert_non_null(file);
    assert_int_equal(fclose(file), 0);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char reason[OCC_CUPTI_REASON_BYTES] = "";
        assert_int_equal(chmod(directory, cases[i].directory) | chmod(path, cases[i].file), 0);
        assert_true(occ_trusted_file(path, resolved, reason, sizeof reason));
        assert_int_equal(occ_trusted_open(path), cases[i].is_open);
    }
    assert_int_equal(unlink(path) | rmdir(directory), 0);
}

static void a_configured_one_is_the_only_one(void **state)
{
    (void)state;
    char reason[OCC_CUPTI_REASON_BYTES] = "", path[128];
    struct occ_cupti cupti;
    put("home/lib64/libcupti.so.13");
    put("mine.so");
    (void)snprintf(path, sizeof path, "%s/mine.so", root);
    struct occ_cupti_search search = {.configured = path};
    assert_string_equal(next(&search, &cupti, reason), "mine.so");
    assert_string_equal(next(&search, &cupti, reason), "");
    search = (struct occ_cupti_search){.configured = "/nowhere/libcupti.so"};
    assert_string_equal(next(&search, &cupti, reason), "");
    assert_non_null(strstr(reason, "cannot be opened: /nowhere/libcupti.so"));
}

/* A version is refused with a reason; the same fake library is accepted with a newer version. */
static void versions_are_refused_with_a_reason(void **state)
{
    (void)state;
    static const struct {
        const char *version, *text;
    } bad[] = {{"19", "(version 19) is older than CUDA 12.2"}, {"130000", "13.0 without its update 1"}};
    struct occ_cupti cupti;
    char path[128];
    put("mine.so");
    (void)snprintf(path, sizeof path, "%s/mine.so", root);
    for (size_t i = 0; i < 2; i++) {
        char reason[OCC_CUPTI_REASON_BYTES] = "";
        struct occ_cupti_search search = {.configured = path};
        (void)setenv("FAKE_CUPTI_VERSION", bad[i].version, 1);
        assert_string_equal(next(&search, &cupti, reason), "");
        assert_non_null(strstr(reason, bad[i].text));
        assert_null(cupti.handle);
    }
    (void)setenv("FAKE_CUPTI_VERSION", "140000", 1);
    struct occ_cupti_search search = {.configured = path};
    char reason[OCC_CUPTI_REASON_BYTES] = "";
    assert_string_equal(next(&search, &cupti, reason), "mine.so");
    (void)unsetenv("FAKE_CUPTI_VERSION");
}

static void the_first_missing_function_is_named(void **state)
{
    (void)state;
    static const char *const names[] = {"cuptiGetVersion", "cuptiNoSuchThing", "cuptiActivityEnable",
                                        "cuptiNorThis"};
    char reason[OCC_CUPTI_REASON_BYTES] = "", path[128];
    void *calls[4];
    struct occ_cupti cupti;
    put("mine.so");
    (void)snprintf(path, sizeof path, "%s/mine.so", root);
    struct occ_cupti_search search = {.configured = path};
    assert_string_equal(next(&search, &cupti, reason), "mine.so");
    assert_int_equal(occ_library_bind(cupti.handle, names, 4, calls), 1);
    assert_true(calls[0] && !calls[1] && calls[2] && !calls[3]);
    assert_int_equal(occ_library_bind(cupti.handle, names, 1, calls), 1);
}

int main(void)
{
#define T(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        T(each_layout_of_a_toolkit_is_found_in_order),
        T(the_newest_release_comes_first),
        T(releases_that_are_refused_are_not_opened),
        T(a_mapped_one_wins),
        T(the_packages_have_their_own),
        T(libtorch_has_its_own),
        T(a_relative_variable_is_no_place),
        T(pythons_packages_come_last),
        T(the_python_behind_a_link_has_packages),
        T(packages_that_others_may_write_are_refused),
        T(all_that_are_refused_are_listed),
        T(an_offered_one_must_be_trusted),
        T(a_group_of_many_is_not_the_users_own),
        T(an_offered_one_lies_on_no_mount_of_a_user),
        T(a_file_behind_a_closed_directory_is_not_open),
        T(a_configured_one_is_the_only_one),
        T(versions_are_refused_with_a_reason),
        T(the_first_missing_function_is_named),
    };
#undef T
    return cmocka_run_group_tests_name("cupti_library", tests, NULL, NULL);
}
