# The rows of guests.sh, which reads this file. g CASE [ARGUMENT]: the program of this directory.
g=$guests

# ---- ways to end ----
row -l 20 "returns from main, handlers and destructors" "$g" return 0
row -l 20 "exit code 7" "$g" return 7
slow -l 20 "exit code 255" "$g" return 255
row -l 20 "exit() with a handler" "$g" exit 3
row "_exit" "$g" _exit 4
row "the system call exit_group" "$g" exit_group 5
row "quick_exit" "$g" quick_exit 6
row "abort" "$g" abort
row "segmentation fault" "$g" segv
row "SIGPIPE" "$g" sigpipe
for number in $(seq 1 31) 34 64; do
  case $number in
    19|20|21|22) continue ;; # they stop
    9|15) row "kill -$number of itself" "$g" raise "$number" ;;
    *) slow "kill -$number of itself" "$g" raise "$number" ;;
  esac
done
row -l 20 "exit in a thread" "$g" thread_exits 8
row "300 threads that exit at once" "$g" threads_exit 300
row -l 20 "50 threads left behind" "$g" threads_left 2
row -l 20 "pthread_exit in main" "$g" pthread_exit
row -l 20 "pthread_exit in main, another thread goes on" "$g" pthread_exit on
row -l 0 "pthread_exit in main before the first launch" "$g" pthread_exit_early
before=(env OCCSIM_FAULT=late_worker:1) # CUPTI's thread is not the program's, though a thread that launches starts it
row -l 20 "pthread_exit in main, a late thread of CUPTI" "$g" pthread_exit
before=(env OCCSIM_FAULT=slow_enable:200000) # a thread of the program begins while the guest starts CUPTI
row -l 20 "pthread_exit in main, a thread begun beside cuInit works on" "$g" pthread_exit_worker 20000
before=()

# ---- threads and signals ----
slow "1000 threads" "$g" threads 1000
row -l 20 "cuInit and exit in a thread with a stack of 20 KiB" "$g" small_stack 20
slow -l 20 "cuInit and exit in a thread with a stack of 32 KiB" "$g" small_stack 32
row -l 20 "50 cancelled threads" "$g" cancel
row -l 200 "SIGALRM every 0.5 ms" "$g" sigalrm 10
before=(env OCCSIM_FAULT=slow_flush:60000)
row -l 220 "SIGALRM every 0.5 ms at the end, CUPTI takes long" "$g" sigalrm_exit 200
before=()
row -l 40 "a caught segmentation fault" "$g" fault
row -l 20 "errno, mask, handlers, thread name" "$g" signals
row -l 20 "takes signals by sigwait" "$g" sigwait

# ---- children ----
row -l 40 "fork before CUDA" "$g" fork_first 3
row -l 40 "fork after CUDA" "$g" fork_later 3
row -l 20 "fork server, 50 children" "$g" fork_server 50
slow -l 64 "64 children at once, of 64 parents" "$g" tree 6
row -l 40 "vfork and exec" "$g" vfork 3
row -l 40 "posix_spawn" "$g" spawn 3
row -l 20 "a raw clone" "$g" clone 3
row "exec of itself, ten times" "$g" exec 10
row "exec of another program" "$g" exec_other true
row -l 20 "SIGCHLD handler, 30 children" "$g" sigchld 30
row -l 20 "no child that it did not make" "$g" no_children
row -l 20 "daemonises" "$g" daemon
row -l 20 "setsid" "$g" setsid
row -l 60 "a shell with three of them" sh -c '"$0" return 1; "$0" return 2 && echo no; "$0" return 0' "$g"

# ---- environment and libraries ----
row "clears its environment" "$g" clearenv yes
row -l 20 "keeps its environment" "$g" clearenv
row "1 MB of environment" "$g" huge_environment 10
row "an environment that is too large" "$g" huge_environment 30
row -l 20 "2000 variables" "$g" many_variables 2000
row -l 20 "dlclose of the driver" "$g" dlclose
row -l 20 "RTLD_DEEPBIND" "$g" deepbind
before=(env LD_PRELOAD=libm.so.6)
row -l 20 "LD_PRELOAD set" "$g" return 0
row "LD_PRELOAD set, printed" printenv LD_PRELOAD
asan=$(gcc -print-file-name=libasan.so 2>/dev/null)
if [ -f "$(realpath "$asan")" ]; then # its runtime must come first
  before=(env "LD_PRELOAD=$(realpath "$asan")" ASAN_OPTIONS=detect_leaks=0)
  row "LD_PRELOAD of the address sanitizer" "$g" return 3
else
  skip "LD_PRELOAD of the address sanitizer (no libasan)"
fi
before=(env CUDA_INJECTION64_PATH=/opt/nvidia/nsys/libToolsInjection64.so NSYS_PROFILING_SESSION_ID=1)
row -l 0 "injected by nsys" "$g" return 3
row "injected by nsys, printed" printenv CUDA_INJECTION64_PATH
before=(env LD_LIBRARY_PATH=":relative::$LD_LIBRARY_PATH:/nonexistent:/")
row -l 20 "LD_LIBRARY_PATH with empty and relative entries" "$g" return 0
before=(env LD_BIND_NOW=1 MALLOC_PERTURB_=165 GLIBC_TUNABLES=glibc.malloc.check=3)
row -l 20 "LD_BIND_NOW, malloc checks" "$g" return 0
before=()
mkdir -p "a dir/b c" && cp "$g" "a dir/b c/my guest" 
row -l 20 "a relative path with spaces" "./a dir/b c/my guest" return 3
mkdir -p "in stalled/bin" "in stalled/lib" && cp "$build/bin/occtrace" "$build/bin/occtraced" "in stalled/bin" &&
  cp -r "$build/lib/occtrace" "in stalled/lib/"
occtrace="in stalled/bin/occtrace"
row -l 20 "occtrace below a directory with a blank" "$g" return 3
occtrace=$build/bin/occtrace

# ---- descriptors, input and output ----
for n in 4 10 15 20 64; do
  row "RLIMIT_NOFILE $n, all used" "$g" nofile $n
done
row -l 20 "numbers of new descriptors" "$g" fd_numbers
row "closes all descriptors, in a loop" "$g" closefrom 3
row -l 20 "closes stdin" "$g" close_standard 0
row -l 20 "closes stdin, stdout and stderr" "$g" close_standard 012
for which in '<&-' '>&-' '2>&-' '<&- >&- 2>&-'; do
  before=(bash -c "exec \"\$0\" \"\$@\" $which")
  row -l 20 "started with $which" "$g" return 3
done
before=()
head -c 1000000 /dev/urandom >input.bytes
input=input.bytes
row -l 20 "1 MB from stdin to stdout" "$g" copy
input=
row -l 20 "a pipe into it" bash -c 'head -c 300000 /dev/zero | "$0" copy | cksum' "$g"
row -l 20 "stdout is full" bash -c 'exec "$0" return 3 >/dev/full' "$g"
row "its reader is gone" bash -c '"$0" copy </dev/zero | head -c 10; echo "${PIPESTATUS[0]}"' "$g"

# ---- limits ----
for mib in 90 150 250 400; do
  row "RLIMIT_AS of $mib MB" "$g" rlimit_as $mib
done
row "all memory used" "$g" no_memory 600
slow "RLIMIT_DATA of 16 MB" "$g" rlimit_data 16
row "RLIMIT_FSIZE of 4 kB" "$g" rlimit_fsize 4096
row -l 20 "RLIMIT_MEMLOCK 0" "$g" rlimit_memlock 0
for how in 2 3; do
  row "mlockall($how) before CUDA" "$g" mlockall $how
done
row -l 20 "RLIMIT_SIGPENDING 0" "$g" rlimit_sigpending 0
slow -l 20 "RLIMIT_STACK of 64 kB" "$g" rlimit_stack 64
slow "RLIMIT_CPU" "$g" rlimit_cpu
before=(bash -c 'ulimit -n 40 -s 256; exec "$0" "$@"')
row "started with 40 descriptors" "$g" return 3
before=()

# ---- system calls that are refused ----
for call in memfd_create sendmsg; do
  row "seccomp: $call refused" "$g" seccomp_eperm $call
done
row "seccomp: memfd_create missing" "$g" seccomp_enosys memfd_create
for call in socket connect ftruncate getrandom recvfrom madvise munlock mremap uname readlink clone3 sched_setscheduler process_vm_readv; do
  [ $call = clone3 ] && answer=enosys || answer=eperm
  slow "seccomp: $call refused" "$g" seccomp_$answer $call
done
for call in madvise socket sendmsg recvfrom uname readlink; do
  slow "seccomp: $call refused later" "$g" seccomp_later $call
done
row -l 20 "seccomp: a filter that allows all" "$g" seccomp_allow 0
row -l 0 "seccomp: killed by memfd_create" "$g" seccomp_kill memfd_create
row -l 0 "seccomp: killed by socket" "$g" seccomp_kill socket
for call in ftruncate getrandom connect sendmsg recvfrom sched_setscheduler munlock mremap process_vm_readv; do
  slow "seccomp: killed by $call" "$g" seccomp_kill $call
done

# ---- rights, as root ----
chmod 777 "$work"
if [ -n "$root" ]; then
  row "setuid() before CUDA" "$g" setuid
  row "setuid() after CUDA" "$g" setuid later
  mkdir empty
  row "chroot before CUDA" "$g" chroot "$work/empty"
  row -l 40 "chroot after CUDA" "$g" chroot "later:$work/empty"
  slow "RLIMIT_NPROC, as nobody" "$g" rlimit_nproc 1
  before=(setpriv --reuid=65534 --regid=65534 --clear-groups)
  if "${before[@]}" test -x "$g"; then
    row -l 20 "as nobody" "$g" return 3
    cp "$g" setuid_guests && chmod 4755 setuid_guests
    row -l 0 "a set-user-ID program" ./setuid_guests return 3
    chmod 2755 setuid_guests
    slow -l 0 "a set-group-ID program" ./setuid_guests return 3
  else
    skip "as nobody, set-user-ID (another user cannot reach the build)"
  fi
  before=()
else
  skip "setuid(), chroot(), another user, set-user-ID (not root)"
fi

# ---- a machine that lacks something: a mount namespace of its own, around occtrace too ----
mounted() { # what is mounted; title
  before=(unshare -m bash -c "$1 && exec \"\$0\" \"\$@\"")
  if "${before[@]}" true 2>/dev/null; then
    row "${@:3}" "$2" "$g" return 3
  else
    skip "$2 (nothing can be mounted)"
  fi
  before=()
}
mounted "mount -t tmpfs tmpfs /proc" "no /proc" -n
mounted "mount -t tmpfs -o ro tmpfs /dev/shm" "no /dev/shm" -l 20
mounted "mount -o remount,bind,ro /" "a read-only root" -n
before=(unshare -p -f)
"${before[@]}" true 2>/dev/null && row -l 20 "a process namespace of its own" "$g" return 3
before=(unshare -n)
"${before[@]}" true 2>/dev/null && row -l 20 "no network" "$g" return 3
before=()

# ---- wrappers ----
row -l 0 "env -i" env -i "LD_LIBRARY_PATH=$LD_LIBRARY_PATH" "GUESTS_IMAGE=$GUESTS_IMAGE" "$g" return 3
row -l 20 "nohup" nohup "$g" return 3
row -l 20 "setsid(1)" setsid -w "$g" return 3
row -l 20 "nice" nice -n 10 "$g" return 3
row -l 20 "timeout, in time" timeout 60 "$g" return 3
slow "timeout, too late" timeout 1 "$g" rlimit_cpu
slow -l 20 "one processor" taskset -c 0 "$g" return 3
slow -l 60 "xargs" bash -c 'seq 3 | xargs -n 1 -P 1 "$0" return' "$g"
printf '#!%s return\n' "$g" >script.sh; chmod +x script.sh
row -l 20 "a script that names it as interpreter" ./script.sh
printf 'exit 9\n' >bare.sh; chmod +x bare.sh
row "a script without #!" ./bare.sh
if [ -n "$all" ]; then
  have strace "strace" && row -l 20 "strace" strace -f -o strace.log "$g" return 3
  have gdb "gdb" && row -l 20 "gdb" bash -c 'gdb -q -batch -nx -ex "set startup-with-shell off" -ex run --args "$0" return 3 2>&1 |
    grep -vE "Thread|process"' "$g"
  have valgrind "valgrind" && row "valgrind" valgrind -q --error-exitcode=0 --log-file=/dev/null "$g" return 3
  have python3 "python3" && row -l 20 "python3 that opens the driver later" python3 -c '
import subprocess, sys, threading
t = threading.Thread(target=lambda: None); t.start(); t.join()
r = subprocess.run([sys.argv[1], "return", "3"], capture_output=True)
sys.stdout.write(r.stdout.decode()); sys.exit(r.returncode)' "$g"
fi

# ---- programs of other kinds: what they print shows what was preloaded and which children ran ----
cat >kind.c <<'C'
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
int main(int argc, char **argv)
{
    const char *list = getenv("LD_PRELOAD");
    char *kept = malloc(100);
    printf("[%s] %d\n", list ? list : "-", kept ? (int)strlen(strcpy(kept, "text")) : 0);
    fflush(stdout);
    if (argc > 2 && fork() == 0) {
        execvp(argv[1], argv + 1);
        _exit(9);
    }
    int status = 0;
    if (argc > 2 && wait(&status) > 0)
        printf("child %d\n", status);
    free(kept);
    fprintf(stderr, "on stderr\n");
    return 4;
}
C
kind() { # title, file, compiler and options: alone, as a child, and with a child that is recorded
  local title=$1 file=$2
  shift 2
  if ! command -v "$1" >/dev/null || ! "$@" -o "$file" kind.c 2>/dev/null || ! "./$file" >/dev/null 2>&1; [ $? -ne 4 ] && [ ! -x "$file" ]; then
    skip "$title"
    return
  fi
  row "$title" "./$file"
  row "$title, as a child" sh -c "./$file; echo \$?"
  row -l 20 "$title, with a child that uses CUDA" "./$file" "$g" return 3
  case $file in asan|bits32) return ;; esac # whose loaders complain of what --preload=all leaves
  options+=(--preload=all)
  slow "$title, as a child, --preload=all" sh -c "./$file >/dev/null; echo \$?"
  options=(-q --counters=none)
}
kind "a program of musl" musl musl-gcc
kind "a static program of musl" musl_static musl-gcc -static
kind "a static program" static cc -static
kind "a static-pie program" static_pie cc -static-pie
kind "a 32-bit program" bits32 cc -m32
kind "gcc's address sanitizer" asan gcc -fsanitize=address
kind "gcc's address sanitizer, linked statically" asan_static gcc -fsanitize=address -static-libasan
kind "clang's address sanitizer" asan_clang clang -fsanitize=address
kind "gcc's thread sanitizer" tsan gcc -fsanitize=thread
kind "gcc's undefined-behaviour sanitizer" ubsan gcc -fsanitize=undefined
sanitized() { # title, launches, compiler and options
  local title=$1 launches=$2
  shift 2
  if command -v "$1" >/dev/null && "$@" -g -D_GNU_SOURCE -o sanitized "$here"/tests/integration/guests/*.c -ldl -lpthread 2>/dev/null; then
    before=(env ASAN_OPTIONS=detect_leaks=0)
    row -l "$launches" "$title, uses CUDA" ./sanitized return 3
    before=()
  else
    skip "$title, uses CUDA"
  fi
}
[ -z "$all" ] || sanitized "gcc's address sanitizer" 20 gcc -fsanitize=address
[ -z "$all" ] || sanitized "clang's address sanitizer" 20 clang -fsanitize=address
[ -z "$all" ] || sanitized "gcc's thread sanitizer" 0 gcc -fsanitize=thread
[ -z "$all" ] || sanitized "clang's thread sanitizer" 0 clang -fsanitize=thread
if [ -x asan ]; then
  printf '#!%s/asan\n' "$work" >asan.sh; chmod +x asan.sh
  row "a script for a program with gcc's address sanitizer" ./asan.sh
fi

# ---- occtrace says once why nothing was recorded ----
says() { # the text; the command
  local text=$1
  shift
  "$build/bin/occtrace" --counters=none -d "$work/why.db" "$@" >says.out 2>says.err
  sed -i -e :a -e '$!N; s/\n  / /; ta' -e 'P; D' says.err # joins what was wrapped
  [ "$(grep -c '^occtrace: nothing was recorded: .*'"$text" says.err)" = 1 ] && [ "$(grep -vc '^on stderr$' says.err)" = 1 ] ||
    { echo "FAILED: not one line with \"$text\": $(cat says.err)"; failed=1; }
}
[ -x bits32 ] && says "32-bit" ./bits32
[ -x static ] && says "statically linked" ./static
CUDA_INJECTION64_PATH=/other.so says "another tool is injected" "$g" raise 17
