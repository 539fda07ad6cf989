/* Loaded into the program under test, so that a kill can be made to look like a loss of power: before a file below POWER_ROOT is
 * changed, what stood there is written to a file in POWER_UNDO; when the file is flushed, that is forgotten. Whoever kills the
 * program takes back as much of what was not flushed as it likes. See loss.rs for the form of the records. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

struct record {
    uint64_t offset, written, kept, size_before;
};

static pthread_mutex_t turn = PTHREAD_MUTEX_INITIALIZER;

static ssize_t raw_write(int fd, const void *bytes, size_t count) { return syscall(SYS_write, fd, bytes, count); }

/* The file of a descriptor, if it is one that can be lost. */
static int tracked(int fd, char *path, size_t room) {
    const char *root = getenv("POWER_ROOT");
    char link[64];
    if (!root || !getenv("POWER_UNDO")) return 0;
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    ssize_t length = readlink(link, path, room - 1);
    if (length <= 0) return 0;
    path[length] = 0;
    size_t rooted = strlen(root);
    if (strncmp(path, root, rooted) != 0 || path[rooted] != '/') return 0;
    /* Memory shared by processes is gone with them, and locks are nothing but their names. */
    const char *dash = strrchr(path, '-'), *dot = strrchr(path, '.');
    if (dash && strcmp(dash, "-shm") == 0) return 0;
    if (dot && (strcmp(dot, ".lock") == 0 || strcmp(dot, ".sock") == 0)) return 0;
    struct stat about;
    return fstat(fd, &about) == 0 && S_ISREG(about.st_mode);
}

static int undo_of(const char *path, int flags) {
    char name[4200];
    int length = snprintf(name, sizeof name, "%s/", getenv("POWER_UNDO"));
    for (const char *at = path + strlen(getenv("POWER_ROOT")) + 1; *at && length < (int)sizeof name - 1; at++)
        name[length++] = *at == '/' ? '%' : *at;
    name[length] = 0;
    return syscall(SYS_openat, AT_FDCWD, name, flags | O_CLOEXEC, 0600);
}

/* Writes down what a change is about to replace. */
static void before(int fd, uint64_t offset, uint64_t written) {
    char path[4096];
    int saved = errno;
    struct stat about;
    if (tracked(fd, path, sizeof path) && fstat(fd, &about) == 0) {
        uint64_t size = about.st_size, end = offset + written;
        uint64_t kept = offset >= size ? 0 : (end < size ? end : size) - offset;
        struct record record = {offset, written, kept, size};
        char *bytes = malloc(sizeof record + kept);
        int reads = syscall(SYS_openat, AT_FDCWD, path, O_RDONLY | O_CLOEXEC, 0);
        if (bytes && reads >= 0) {
            memcpy(bytes, &record, sizeof record);
            if (syscall(SYS_pread64, reads, bytes + sizeof record, kept, offset) == (ssize_t)kept) {
                int undo = undo_of(path, O_WRONLY | O_CREAT | O_APPEND);
                if (undo >= 0) {
                    raw_write(undo, bytes, sizeof record + kept);
                    syscall(SYS_close, undo);
                }
            }
        }
        if (reads >= 0) syscall(SYS_close, reads);
        free(bytes);
    }
    errno = saved;
}

static void flushed(int fd) {
    char path[4096];
    int saved = errno;
    if (tracked(fd, path, sizeof path)) {
        int undo = undo_of(path, O_WRONLY | O_TRUNC);
        if (undo >= 0) syscall(SYS_close, undo);
    }
    errno = saved;
}

static uint64_t position(int fd) {
    if (fcntl(fd, F_GETFL) & O_APPEND) {
        struct stat about;
        return fstat(fd, &about) == 0 ? about.st_size : 0;
    }
    off_t at = lseek(fd, 0, SEEK_CUR);
    return at < 0 ? 0 : at;
}

#define LOCKED(change)                    \
    pthread_mutex_lock(&turn);            \
    change;                               \
    pthread_mutex_unlock(&turn)

ssize_t write(int fd, const void *bytes, size_t count) {
    ssize_t done;
    if (fd <= 2) return raw_write(fd, bytes, count);
    LOCKED(before(fd, position(fd), count); done = raw_write(fd, bytes, count));
    return done;
}

ssize_t writev(int fd, const struct iovec *parts, int count) {
    ssize_t done;
    size_t total = 0;
    for (int part = 0; part < count; part++) total += parts[part].iov_len;
    LOCKED(before(fd, position(fd), total); done = syscall(SYS_writev, fd, parts, count));
    return done;
}

ssize_t pwrite64(int fd, const void *bytes, size_t count, off64_t offset) {
    ssize_t done;
    LOCKED(before(fd, offset, count); done = syscall(SYS_pwrite64, fd, bytes, count, offset));
    return done;
}
ssize_t pwrite(int fd, const void *bytes, size_t count, off_t offset) { return pwrite64(fd, bytes, count, offset); }

int ftruncate64(int fd, off64_t length) {
    int done;
    struct stat about;
    uint64_t size = fstat(fd, &about) == 0 ? about.st_size : 0;
    uint64_t gone = size > (uint64_t)length ? size - length : 0;
    LOCKED(before(fd, length, gone); done = syscall(SYS_ftruncate, fd, length));
    return done;
}
int ftruncate(int fd, off_t length) { return ftruncate64(fd, length); }

int fdatasync(int fd) {
    LOCKED(flushed(fd));
    return 0;
}
int fsync(int fd) { return fdatasync(fd); }
