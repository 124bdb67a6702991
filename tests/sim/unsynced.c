/* Records the data that a power cut could lose, by LD_PRELOAD for a daemon under test.
 *
 * SIGKILL alone cannot show a missing fsync, because the kernel keeps the data. This library therefore writes a
 * journal ($MUNIMENT_UNSYNCED), one line for each operation, with O_APPEND so that it survives the process:
 *   entry <inode of the folder> <inode of the file> <path>     a name was created
 *   sync <inode>                                               a file or a folder was synced
 * tests/sim/power.py then removes each name whose folder was not synced afterwards, and empties each file that was
 * not synced. This is the worst result that ext4 or xfs permits. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static int journal = -1;

__attribute__((constructor)) static void begin(void) {
  const char* path = getenv("MUNIMENT_UNSYNCED");
  if (path) journal = open(path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0644);
  unsetenv("LD_PRELOAD");   /* child processes (Postgres) are not under test */
}

static void note(const char* format, ...) {
  char line[4200];
  va_list arguments;
  if (journal < 0) return;
  va_start(arguments, format);
  const int size = vsnprintf(line, sizeof line, format, arguments);
  va_end(arguments);
  if (size > 0 && write(journal, line, (size_t)size) < 0) abort();   /* an incomplete journal proves nothing */
}

static void note_entry(int folder, const char* name) {
  char link[64], parent[2048], path[4100];
  struct stat above, about;
  ssize_t size = 0;
  if (name[0] != '/') {
    if (folder == AT_FDCWD) {
      size = getcwd(parent, sizeof parent) ? (ssize_t)strlen(parent) : 0;
    } else {
      snprintf(link, sizeof link, "/proc/self/fd/%d", folder);
      size = readlink(link, parent, sizeof parent - 1);
    }
    if (size <= 0) return;
    parent[size] = 0;
    snprintf(path, sizeof path, "%s/%s", parent, name);
  } else {
    snprintf(path, sizeof path, "%s", name);
  }
  if (lstat(path, &about) != 0) return;
  char* slash = strrchr(path, '/');
  *slash = 0;
  const int found = stat(*path ? path : "/", &above);
  *slash = '/';
  if (found == 0) note("entry %llu %llu %s\n", (unsigned long long)above.st_ino, (unsigned long long)about.st_ino, path);
}

static void note_sync(int fd) {
  struct stat about;
  if (fstat(fd, &about) == 0) note("sync %llu\n", (unsigned long long)about.st_ino);
}

#define NEXT(name) ((__typeof__(&name))dlsym(RTLD_NEXT, #name))

int linkat(int from, const char* old, int to, const char* name, int flags) {
  const int result = NEXT(linkat)(from, old, to, name, flags);
  if (result == 0) note_entry(to, name);
  return result;
}

int mkdirat(int folder, const char* name, mode_t mode) {
  const int result = NEXT(mkdirat)(folder, name, mode);
  if (result == 0) note_entry(folder, name);
  return result;
}

int mkdir(const char* name, mode_t mode) {
  const int result = NEXT(mkdir)(name, mode);
  if (result == 0) note_entry(AT_FDCWD, name);
  return result;
}

int renameat2(int from, const char* old, int to, const char* name, unsigned flags) {
  const int result = NEXT(renameat2)(from, old, to, name, flags);
  if (result == 0) note_entry(to, name);
  return result;
}

int renameat(int from, const char* old, int to, const char* name) {
  const int result = NEXT(renameat)(from, old, to, name);
  if (result == 0) note_entry(to, name);
  return result;
}

int rename(const char* old, const char* name) {
  const int result = NEXT(rename)(old, name);
  if (result == 0) note_entry(AT_FDCWD, name);
  return result;
}

int fsync(int fd) {
  const int result = NEXT(fsync)(fd);
  if (result == 0) note_sync(fd);
  return result;
}

int fdatasync(int fd) {
  const int result = NEXT(fdatasync)(fd);
  if (result == 0) note_sync(fd);
  return result;
}
