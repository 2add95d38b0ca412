/* Preloaded into a broker: its reads, writes and syncs wait while a file is there, so that a test
 * decides when the disk has something. SLOW_DISK_READS, _WRITES and _SYNCS name the three files. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdlib.h>
#include <sys/types.h>
#include <unistd.h>

static void wait_for(const char *gate) {
    const char *path = getenv(gate);
    while (path && access(path, F_OK) == 0)
        usleep(1000);
}

int fdatasync(int fd) {
    int (*real)(int) = (int (*)(int))dlsym(RTLD_NEXT, "fdatasync");
    wait_for("SLOW_DISK_SYNCS");
    return real(fd);
}

ssize_t pread64(int fd, void *bytes, size_t count, off_t offset) {
    ssize_t (*real)(int, void *, size_t, off_t) =
        (ssize_t (*)(int, void *, size_t, off_t))dlsym(RTLD_NEXT, "pread64");
    wait_for("SLOW_DISK_READS");
    return real(fd, bytes, count, offset);
}

ssize_t pwrite64(int fd, const void *bytes, size_t count, off_t offset) {
    ssize_t (*real)(int, const void *, size_t, off_t) =
        (ssize_t (*)(int, const void *, size_t, off_t))dlsym(RTLD_NEXT, "pwrite64");
    wait_for("SLOW_DISK_WRITES");
    return real(fd, bytes, count, offset);
}
