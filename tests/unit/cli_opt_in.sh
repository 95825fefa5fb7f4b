#!/usr/bin/env bash
# cli_opt_in.sh PACKAGING: Enroot's hook gives a container the variables, once and only if nobody objects; login shells and tasks
# have the same variables; the binds of Apptainer are set and removed once. All run with stand-ins, without Enroot and Apptainer.
set -u
packaging=$1
work=$(mktemp -d)
trap 'rm -rf "$work"; kill $listener 2>/dev/null' EXIT
failed=0
fail() { echo "FAILED: $*"; failed=1; }

for file in enroot-hook.sh enroot-mounts.fstab apptainer-binds profile.sh slurm-task-prolog; do
    sed "s|@plugins@|$work/lib|g; s|@share@|$work/share|g" "$packaging/$file.in" >"$work/$file"
    grep -q '@[a-z]*@' "$work/$file" && fail "$file: a name is left"
done
sed -i "s|/run/occtrace/occtraced.sock|$work/socket|g" "$work/profile.sh" "$work/slurm-task-prolog"
chmod +x "$work/enroot-hook.sh" "$work/apptainer-binds" "$work/slurm-task-prolog"
mkdir -p "$work/lib" "$work/home/.config" "$work/bin"
touch "$work/lib/libocctrace.so"
python3 -c 'import socket, sys, time
s = socket.socket(socket.AF_UNIX); s.bind(sys.argv[1]); s.listen(); time.sleep(600)' "$work/socket" &
listener=$!
for try in $(seq 100); do [ -S "$work/socket" ] && break; sleep 0.1; done

# hook CONTENT NAME=VALUE...: the container's environment file after the hook
hook() {
    printf '%s' "$1" >"$work/environ"
    shift
    env -i "PATH=$PATH" "HOME=$work/home" "OCCTRACE_SOCKET=$work/socket" "ENROOT_ENVIRON=$work/environ" "$@" "$work/enroot-hook.sh" ||
        fail "hook $*: status $?"
    said=$(cat "$work/environ")
}
line=CUDA_INJECTION64_PATH=$work/lib/libocctrace.so
socket=OCCTRACE_SOCKET=$work/socket # a container in a user namespace must name it
is() { [ "$said" = "$2" ] || fail "$1: '$said'"; }
hook $'A=1\n' && is "a container" "A=1
$line
$socket"
hook "$said"$'\n' && is "again" "A=1
$line
$socket"
hook '' "$line" && is "a task that has the variable" "$line
$socket"
hook "$line"$'\n' && is "a container that has the variable" "$line
$socket"
hook $'OCCTRACE_SOCKET=/own.sock\n' && is "a container with a daemon of its own" "OCCTRACE_SOCKET=/own.sock
$line"
hook $'CUDA_INJECTION64_PATH=/other.so\n' && is "an image with a profiler" CUDA_INJECTION64_PATH=/other.so
hook '' CUDA_INJECTION64_PATH=/other.so && is "a job with a profiler" ""
hook '' OCCTRACE_DISABLE=1 && is "a job that is out" ""
hook '' OCCTRACE_SOCKET=/none && is "no daemon" ""
hook '' ENROOT_ENVIRON= && is "no file" ""
mkdir -p "$work/home/.config/occtrace" && touch "$work/home/.config/occtrace/off"
hook '' && is "a user who is out" ""

# Login shells and Slurm's tasks: Apptainer's containers are told the socket, since they may have a user namespace.
shells() { # NAME=VALUE...
    said=$(env -i "PATH=$PATH" "HOME=$work/home2" "$@" sh -euc '. "$0"; env' "$work/profile.sh" | grep -E '^(CUDA|OCCTRACE|APPTAINER)' | sort)
    task=$(env -i "PATH=$PATH" "HOME=$work/home2" "$@" sh -euc 'eval "$("$0")"; env' "$work/slurm-task-prolog" | grep -E '^(CUDA|OCCTRACE|APPTAINER)' | sort)
    [ "$said" = "$task" ] || fail "a login shell has '$said', a task '$task'"
}
told=APPTAINERENV_OCCTRACE_SOCKET=$work/socket
shells && is "a login shell" "$told
$line"
shells OCCTRACE_SOCKET="$work/socket" && is "a shell that names its daemon" "$line
$socket"
shells APPTAINERENV_OCCTRACE_SOCKET=/own.sock && is "a shell that names its containers' daemon" "APPTAINERENV_OCCTRACE_SOCKET=/own.sock
$line"
shells CUDA_INJECTION64_PATH=/other.so && is "a shell with a profiler" CUDA_INJECTION64_PATH=/other.so

# Each line of the mounts has Enroot's four fields, one directory inside and outside, and never stops a container.
while read -r source target type options rest; do
    [ "$source" = "$target" ] && [ "$type" = none ] && [ -z "$rest" ] || fail "mounts: $source $target $type $rest"
    case ,$options, in *,bind,ro,*nofail,*) ;; *) fail "mounts: $options" ;; esac
done <"$work/enroot-mounts.fstab"

# Keeps the paths of "bind path", one a line, as `apptainer config global` does.
cat >"$work/bin/apptainer" <<'S'
#!/bin/sh
[ "$1 $2 $4" = "config global bind path" ] || exit 1
case $3 in
--get) paste -sd, "$BINDS" ;;
--set) echo "$5" >>"$BINDS" ;;
--unset) grep -vxF "$5" "$BINDS" >"$BINDS.new"; mv "$BINDS.new" "$BINDS" ;;
esac
S
chmod +x "$work/bin/apptainer"
binds() { BINDS=$work/binds PATH=$work/bin:$PATH "$work/apptainer-binds" "$@" || fail "apptainer-binds $*: status $?"; said=$(cat "$work/binds"); }
echo /etc/hosts >"$work/binds"
binds && binds && is "binds" "/etc/hosts
$work/lib
/run/occtrace"
binds --remove && binds --remove && is "binds that are removed" /etc/hosts
exit $failed
