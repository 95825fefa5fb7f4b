/* The checks: possible faults, their meaning and remedy. Sources: CUDA Compatibility, table 1 (drivers);
 * CUPTI, special configurations (MIG, MPS, vGPU); NVIDIA's page on ERR_NVGPUCTRPERM; the container toolkit's
 * page on driver capabilities; docs/decisions/0011 and 0012 (libcupti). */
#include "doctor.h"

#include "support/text.h"

#define OK       DOCTOR_OK
#define NOTE     DOCTOR_NOTE
#define PROBLEM  DOCTOR_PROBLEM
#define RECORD   (DOCTOR_RECORD | DOCTOR_MEASURE)
#define MEASURE  DOCTOR_MEASURE
#define KEEP     DOCTOR_KEEP
#define MPS      "Launches of MPS clients are recorded; CUPTI has no counters for them."
#define NO_MPS   "end MPS where occupancy is to be measured (echo quit | nvidia-cuda-mps-control)"
#define OTHER_DB "name another file with --db FILE (-d)"
#define TOOLKIT  "start it with NVIDIA_DRIVER_CAPABILITIES=compute,utility"

static const struct doctor_check checks[] = {
    {"driver", doctor_driver, NULL, NULL, PROBLEM, RECORD, "No CUDA program can run here.",
     "install NVIDIA's driver; start a container with --gpus all or --device nvidia.com/gpu=all"},
    {"driver", doctor_must_not, "", "^fault\t(.*)", PROBLEM, RECORD, "CUDA programs do not start here.",
     "make the GPU visible (CUDA_VISIBLE_DEVICES, the container's options), or load the driver that belongs "
     "to "
     "this libcuda"},
    {"driver", doctor_driver_not, NULL, "^((..?|[1-4]..|5[01].|52[0-4])\\..*)", PROBLEM, RECORD,
     "libcupti of CUDA 12 needs driver 525 or newer.", "update the driver"},
    {"driver", doctor_driver_not, NULL, "^((52[5-9]|5[3-7].)\\..*)", NOTE, 0,
     "libcupti of CUDA 13 needs driver 580 or newer; one of CUDA 12 is used.", NULL},
    {"sandbox", doctor_must_not, "/proc/version", "(gvisor|Sun Jan 10 15:06:54 PST 2016)", NOTE, MEASURE,
     "gVisor stands between programs and the driver: launches are recorded since its releases of October "
     "2024, "
     "counters only where it passes them.",
     "use runsc of June 2026 or newer, with --nvproxy-allowed-driver-capabilities=compute,utility,profiling"},
    {"device nodes", doctor_node, "/dev/{nvidiactl,nvidia-uvm,nvidia[0-9]*}", NULL, PROBLEM, RECORD,
     "CUDA programs of this user cannot use the GPUs.",
     "run nvidia-modprobe -u -c 0; give the user access; in a batch job, ask for a GPU"},
    {"GPUs", doctor_may, "/proc/driver/nvidia/gpus/*/information", "^Model:[ \t]*(.*)", OK, 0, NULL, NULL},
    {"GPUs", doctor_must_not, "/proc/driver/nvidia/gpus/*/information", "^Model:[ \t]*(.*-[0-9]+[ABCQ])$",
     NOTE, RECORD, "Tools work on a virtual GPU only where its host allows it.",
     "have the host set enable_profiling=1 for this vGPU"},
    {"MIG", doctor_mig, NULL, NULL, NOTE, MEASURE,
     "Compute instances that share a GPU instance have no counters.",
     "give each GPU instance one compute instance of its full size"},
    {"MPS", doctor_must_not, "/proc/[0-9]*/comm", "^(nvidia-cuda-mps)", NOTE, MEASURE, MPS, NO_MPS},
    {"MPS", doctor_must_not, "$CUDA_MPS_PIPE_DIRECTORY", "^(.+)", NOTE, MEASURE, MPS, NO_MPS},
    {"container", doctor_may, "$NVIDIA_DRIVER_CAPABILITIES", "^(.+)", OK, 0, NULL, NULL},
    {"container", doctor_if_set, "$NVIDIA_DRIVER_CAPABILITIES", "(compute|all)", PROBLEM, RECORD,
     "The container has no libcuda: no CUDA program can run in it.", TOOLKIT},
    {"container", doctor_if_set, "$NVIDIA_DRIVER_CAPABILITIES", "(utility|all)", NOTE, MEASURE,
     "The container has no NVML, hence no GPM counters.", TOOLKIT},
    {"container", doctor_must_not, "$NVIDIA_VISIBLE_DEVICES", "^(void|none)$", PROBLEM, RECORD,
     "The container sees no GPU.",
     "start it with NVIDIA_VISIBLE_DEVICES=all, or have the orchestrator give it a GPU"},
    {"libcupti", doctor_must, "", "^cupti\t(.*)", PROBLEM, RECORD,
     "Launches are recorded through libcupti of CUDA 12.2 or newer; occtraced, beside occq, looks for it.",
     "install it (CUDA toolkit, or pip install nvidia-cuda-cupti), or set OCCTRACE_CUPTI to its absolute "
     "path"},
    {"libcupti", doctor_must_not, "", "^cupti\t.*\\((version (..|130[0-2]..)), first", NOTE, DOCTOR_RECORD,
     "Before 13.3 it leaks GPU memory in CUDA graphs; tracing copies and fills as well avoids that, at a "
     "price.",
     "use CUDA 13.3's libcupti or newer where graphs run for long"},
    {"libcupti", doctor_must_not, "", "^refused\t(.*)", NOTE, 0, "It is passed over.", NULL},
    {"injection", doctor_if_set, "$CUDA_INJECTION64_PATH", "(/libocctrace|^none$|^$)", NOTE, RECORD,
     "That tool stays: programs started from here are not recorded.", "unset CUDA_INJECTION64_PATH"},
    {"counters", doctor_counters, NULL, NULL, NOTE, MEASURE,
     "PM sampling is for administrators. Hopper and newer still have GPM: means of a whole GPU.",
     "run occtraced as root or with CAP_SYS_ADMIN (CAP_PERFMON from driver 565 on), or load the driver with "
     "NVreg_RestrictProfilingToAdminUsers=0"},
    {"profilers", doctor_must_not, "", "^profiler\t(.*)", NOTE, MEASURE,
     "Hardware counters serve one tool at a time; occtraced leaves them to this one.",
     "end it where occupancy is to be measured"},
    {"open files", doctor_must_not, "/proc/self/limits", "^Max open files +([0-9]|[1-5][0-9]) ", NOTE, RECORD,
     "A program with few free descriptors is not recorded: it needs them.", "ulimit -n 1024"},
    {"memory files", doctor_memfd, NULL, NULL, PROBLEM, RECORD,
     "Programs hand their launches over in memory files.",
     "allow memfd_create in the container's seccomp profile"},
    {"history", doctor_local, NULL, NULL, PROBLEM, KEEP, "Writers on two hosts would damage a history there.",
     "name a file on a local disk with --db FILE (-d), or set XDG_STATE_HOME"},
    {"history", doctor_readable, NULL, NULL, PROBLEM, KEEP, "This is no history that can be used.", OTHER_DB},
    {"history", doctor_writable, NULL, NULL, PROBLEM, KEEP, "Nothing can be added.", OTHER_DB},
    {"disk space", doctor_space, NULL, NULL, NOTE, KEEP,
     "The disk is full before the history reaches its limit.",
     "lower database.max_size in the settings, or free space"},
    {"settings", doctor_settings, NULL, NULL, PROBLEM, KEEP, "occtraced does not start with them.",
     "correct what the message names"},
    {"daemon", doctor_daemon, NULL, NULL, PROBLEM, RECORD | KEEP,
     "Programs that report to it may lose launches.",
     "restart it (systemctl restart occtraced); its log is in journalctl -u occtraced. If another user has "
     "its "
     "place, set XDG_RUNTIME_DIR"},
    {"service", doctor_unit, NULL, NULL, NOTE, 0, "Only programs that occtrace starts are recorded.",
     "systemctl enable --now occtraced; systemctl status occtraced has the reason of a failure"},
    {"identity", doctor_identity, "SLURM_JOB_ID", "/job_([0-9]+)", NOTE, 0,
     "Runs have no job: it is taken from SLURM_JOB_ID, which is not set.",
     "keep Slurm's variables in the program's environment"},
    {"identity", doctor_identity, "POD_NAME", "[-/]pod([0-9a-f_-]{32,})", NOTE, 0,
     "Runs have the host's name for the pod's.", "pass POD_NAME and POD_NAMESPACE by the downward API"},
    {"identity", doctor_may, "/proc/self/cgroup", "[-/]([0-9a-f]{64})", OK, 0, NULL, NULL},
    {"clock", doctor_clock, NULL, NULL, NOTE, 0, "Times cannot be compared with those of other machines.",
     "switch on time synchronisation (timedatectl set-ntp true, chronyd, ptp4l)"},
};

void doctor_examine(const struct doctor_machine *machine, struct doctor_page *ret_page)
{
    static const char *const words[] = {"ok", "note", "problem"};
    _Static_assert(sizeof checks / sizeof *checks <= DOCTOR_LINES_MAX, "a line for each check");
    ret_page->n = 0;
    for (const struct doctor_check *check = checks; check < checks + sizeof checks / sizeof *checks;
         check++) {
        struct doctor_line line = {.check = check->name, .state = words[DOCTOR_OK]};
        if (!check->look(machine, check, line.found)) {
            line.fault = check;
            line.state = words[check->state];
            line.meaning = check->meaning;
            line.remedy = check->remedy;
        }
        occ_text_sanitise(line.found);
        if (line.found[0])
            ret_page->lines[ret_page->n++] = line;
    }
}
