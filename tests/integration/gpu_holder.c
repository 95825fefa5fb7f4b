/* gpu_holder LIBRARY: maps a file with the name of the driver's library, as a CUDA program does, says so, and
 * waits for a signal. It needs no library, so that it can be linked in any way. */
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

int main(int argc, char **argv)
{
    int fd = argc == 2 ? open(argv[1], O_RDONLY) : -1;
    if (fd < 0 || mmap(0, 1, PROT_READ, MAP_PRIVATE, fd, 0) == MAP_FAILED || write(1, "ready\n", 6) != 6)
        return 1;
    for (;;)
        (void)pause();
}
