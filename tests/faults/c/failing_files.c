// Between a program and its files: syncs or writes fail as a file says that they shall. Loaded with LD_PRELOAD.
//
// FAILING_FILES names that file. While it is there its first word says what fails, in files below the directory that
// FAILING_BELOW names: `log` (every sync of the journal is an input/output error), `sync` (every sync is), `prepare` (there is
// no room for a segment of the journal that is being prepared), `blocks-read` (what blocks and their sums hold cannot be read),
// `blocks-write` (it cannot be written), `blocks-slow` (each read and each write of them takes SLOW_US longer).

#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { SLOW_US = 60000 };

#define REAL(type, name, ...) ((type(*)(__VA_ARGS__))dlsym(RTLD_NEXT, #name))

// Not the one below, which would ask here.
static ssize_t real_read(int file, void *bytes, size_t count) {
  return REAL(ssize_t, read, int, void *, size_t)(file, bytes, count);
}

static int fails(const char *what, int file, const char *part) {
  const char *order = getenv("FAILING_FILES"), *below = getenv("FAILING_BELOW");
  char word[16] = "", name[64], path[PATH_MAX];
  int saved = errno, said = order == NULL || below == NULL ? -1 : open(order, O_RDONLY | O_CLOEXEC);
  ssize_t count = said < 0 ? 0 : real_read(said, word, sizeof word - 1);
  if (said >= 0) close(said);
  errno = saved;
  if (count <= 0 || strncmp(word, what, strlen(what)) != 0) return 0;
  snprintf(name, sizeof name, "/proc/self/fd/%d", file);
  count = readlink(name, path, sizeof path - 1);
  errno = saved;
  if (count <= 0) return 0;
  path[count] = 0;
  return strncmp(path, below, strlen(below)) == 0 && strstr(path, part) != NULL;
}

static int no_room(int file) { return fails("prepare", file, "/log/spare"); }

static int no_sync(int file) { return fails("sync", file, "/") || fails("log", file, "/log/"); }

static void wait_if_slow(int file) {
  if (fails("blocks-slow", file, "/blk_")) usleep(SLOW_US);
}

static int no_read(int file) {
  wait_if_slow(file);
  return fails("blocks-read", file, "/blk_");
}

static int no_write(int file) {
  wait_if_slow(file);
  return fails("blocks-write", file, "/blk_");
}

int fsync(int file) {
  if (no_sync(file)) return errno = EIO, -1;
  return REAL(int, fsync, int)(file);
}

int fdatasync(int file) {
  if (no_sync(file)) return errno = EIO, -1;
  return REAL(int, fdatasync, int)(file);
}

ssize_t write(int file, const void *bytes, size_t count) {
  if (no_room(file)) return errno = ENOSPC, -1;
  if (no_write(file)) return errno = EIO, -1;
  return REAL(ssize_t, write, int, const void *, size_t)(file, bytes, count);
}

ssize_t pwrite(int file, const void *bytes, size_t count, off_t at) {
  if (no_room(file)) return errno = ENOSPC, -1;
  if (no_write(file)) return errno = EIO, -1;
  return REAL(ssize_t, pwrite, int, const void *, size_t, off_t)(file, bytes, count, at);
}

ssize_t pwrite64(int file, const void *bytes, size_t count, off64_t at) {
  if (no_room(file)) return errno = ENOSPC, -1;
  if (no_write(file)) return errno = EIO, -1;
  return REAL(ssize_t, pwrite64, int, const void *, size_t, off64_t)(file, bytes, count, at);
}

ssize_t read(int file, void *bytes, size_t count) {
  if (no_read(file)) return errno = EIO, -1;
  return real_read(file, bytes, count);
}

ssize_t pread(int file, void *bytes, size_t count, off_t at) {
  if (no_read(file)) return errno = EIO, -1;
  return REAL(ssize_t, pread, int, void *, size_t, off_t)(file, bytes, count, at);
}

ssize_t pread64(int file, void *bytes, size_t count, off64_t at) {
  if (no_read(file)) return errno = EIO, -1;
  return REAL(ssize_t, pread64, int, void *, size_t, off64_t)(file, bytes, count, at);
}
