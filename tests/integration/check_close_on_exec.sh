#!/bin/sh
# Every descriptor of the product is closed by exec: a program that one of our processes starts, or that a traced program starts,
# inherits none. Fails with each call that makes a descriptor without saying so. dup2 is not looked at: it makes the standard
# descriptors of a child; injector/old_glibc/wrappers.c defines memfd_create(), whose callers are checked.
#
#   check_close_on_exec.sh SOURCE
cd "$1" || exit 1
find attribution cli cluster config cupti daemon image import injector occupancy ring store support -name '*.[ch]' ! -path injector/old_glibc/wrappers.c -print | LC_ALL=C sort | xargs awk '
    # Calls that cannot, or that have to name a flag (stdio: the letter e).
    BEGIN {
        split("dup accept pipe epoll_create inotify_init tmpfile", no, " ")
        for (i in no) forbidden[no[i]] = 1
        split("open openat socket socketpair accept4 pipe2 memfd_create epoll_create1 eventfd signalfd timerfd_create inotify_init1 mkostemp", f, " ")
        for (i in f) flag[f[i]] = "CLOEXEC"
        split("fopen fdopen freopen popen", s, " ")
        for (i in s) flag[s[i]] = "\"[a-z+]*e[a-z+]*\""
    }
    function check(call, name,    at) {
        if (name in forbidden || call !~ flag[name]) { print FILENAME ":" FNR ": " call; wrong = 1 }
    }
    FNR == 1 { text = "" }
    { sub(/\/\/.*|\/\*.*\*\//, ""); if ($0 !~ /^ \*|^\/\*/) text = text " " $0 }
    /[;{}]/ {
        while (match(text, /[A-Za-z0-9_>.]+\(/)) {
            name = substr(text, RSTART, RLENGTH - 1)
            call = text = substr(text, RSTART)
            sub(/[;{].*/, "", call)
            text = substr(text, RLENGTH + 1)
            if ((name in forbidden || name in flag) && name != "fdopen") check(call, name)
        }
        text = ""
    }
    END { exit wrong }' && exit 0
echo "These calls make descriptors that a started program would inherit."
exit 1
