/* cache.c - a folder of compiled kernels, see cache.h.
 *
 * A name is the key in hexadecimal; what is being written has ".tmp" and the process behind it. Nothing is locked: a reader
 * sees a whole file or none, writers of one key write the same bytes.
 */
#include "cpu/cache.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

#if defined(__x86_64__)
#include <cpuid.h>
#elif defined(__linux__) && defined(__aarch64__)
#include <sys/auxv.h>
#endif

#define NAME_LENGTH 32
#define MAX_ENTRY ((uint64_t)64 << 20)
#define NOTE_BYTES 128
#define TOUCH_SECONDS 3600     /* an entry's time of use is this exact */
#define STALE_SECONDS 3600     /* a temporary file this old belongs to nobody */
#define SCAN_EVERY 16u         /* one put in so many looks at the folder's size, */
#define SCAN_BYTES (1u << 20)  /* and each of an entry this large: the bound is passed by a few MiB at most */
#define BLOCK ((uint64_t)4096) /* files take whole ones */

struct entry_head {
    char magic[8];
    struct cache_key key;
    uint64_t size;
    struct cache_key checksum; /* of all else */
    char note[NOTE_BYTES];
};
static const char magic[8] = {'s', 'p', 'o', 'r', 'k', 'c', '0', '2'};

/* ---- keys ------------------------------------------------------------------------------------------------------- */

/* Two streams that differ in all constants. A word is mixed before it is added, so that no two words which differ in few bits
 * cancel; the streams depend on each other at the end of each addition, and on its length. About 4 GB/s. */
static uint64_t turn(uint64_t x, unsigned by)
{
    return x << by | x >> (64 - by);
}

static uint64_t mix(uint64_t x, uint64_t a, uint64_t b)
{
    x *= a;
    x = (x ^ x >> 32) * b;
    return x ^ x >> 29;
}

#define ADD(word)                                                                                                      \
    do {                                                                                                               \
        s = turn(s ^ mix((word), 0x9e3779b97f4a7c15u, 0xd6e8feb86659fd93u), 31) * 0xc2b2ae3d27d4eb4fu;                 \
        t = turn(t ^ mix((word), 0xa0761d6478bd642fu, 0xe7037ed1a0b428dbu), 27) * 0x8ebc6af09c88c6e3u;                 \
    } while (0)

void cache_key_init(struct cache_key *k)
{
    k->word[0] = 0x9ae16a3b2f90404f;
    k->word[1] = 0xc3a5c85c97cb3127;
}

void cache_key_add(struct cache_key *k, const void *bytes, size_t n)
{
    const char *p = bytes;
    uint64_t s = k->word[0], t = k->word[1], word = n;
    ADD(word);
    for (; n >= sizeof word; n -= sizeof word, p += sizeof word) {
        memcpy(&word, p, sizeof word);
        ADD(word);
    }
    if (n) {
        word = 0;
        memcpy(&word, p, n);
        ADD(word);
    }
    s = mix(s ^ s >> 31, 0xbf58476d1ce4e5b9u, 0x94d049bb133111ebu);
    t = mix(t ^ t >> 31, 0x94d049bb133111ebu, 0xbf58476d1ce4e5b9u);
    k->word[0] = s + turn(t, 32);
    k->word[1] = t ^ turn(k->word[0], 17);
}

static struct cache_key checksum_of(const struct entry_head *h, const void *bytes)
{
    struct cache_key k;
    cache_key_init(&k);
    cache_key_add(&k, &h->key, sizeof h->key);
    cache_key_add(&k, h->note, sizeof h->note);
    cache_key_add(&k, bytes, (size_t)h->size);
    return k;
}

static bool same_key(const struct cache_key *a, const struct cache_key *b)
{
    return a->word[0] == b->word[0] && a->word[1] == b->word[1];
}

/* ---- the machine ------------------------------------------------------------------------------------------------ */

#if defined(__x86_64__)
/* What LLVM and the system decide by. Of leaf 1, which of the processors this is (EBX) and whether XGETBV is there are left
 * out; of 0x80000008, the sizes of addresses and the number of processors; of 13, the size of what is kept. */
static const struct {
    uint32_t leaf, part, registers; /* bits: EAX, EBX, ECX, EDX */
} leaves[] = {{1, 0, 13},   {7, 0, 15},   {7, 1, 15},          {13, 1, 1},
              {0x19, 0, 2}, {0x24, 0, 2}, {0x80000001, 0, 12}, {0x80000008, 0, 2}};
#endif

void cache_machine(char *out, size_t cap)
{
#if defined(__x86_64__)
    uint32_t r[4] = {0}, most, most_extended;
    __cpuid(0, most, r[1], r[2], r[3]);
    uint64_t hash = hash_bytes(0, r, sizeof r); /* the maker's name */
    __cpuid(0x80000000, most_extended, r[1], r[2], r[3]);
    for (size_t k = 0; k < sizeof leaves / sizeof leaves[0]; k++) {
        if ((leaves[k].leaf >> 31 ? most_extended : most) < leaves[k].leaf)
            continue;
        __cpuid_count(leaves[k].leaf, leaves[k].part, r[0], r[1], r[2], r[3]);
        if (leaves[k].leaf == 1 && (r[2] & 1u << 27)) { /* which registers the system keeps */
            uint32_t low, high;
            __asm__ volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
            hash = hash_u64(hash, (uint64_t)high << 32 | low);
        }
        for (unsigned j = 0; j < 4; j++)
            hash = hash_u64(hash, leaves[k].registers >> j & 1 ? r[j] : 0);
    }
    (void)snprintf(out, cap, "x86-64 %016llx", (unsigned long long)hash);
#elif defined(__linux__) && defined(__aarch64__)
    /* LLVM goes by the model too, which the first processor stands for. */
    char model[32] = "";
    const int fd = open("/sys/devices/system/cpu/cpu0/regs/identification/midr_el1", O_RDONLY | O_CLOEXEC);
    if (fd >= 0) {
        const ssize_t n = read(fd, model, sizeof model - 1);
        model[n > 0 ? n : 0] = 0;
        model[strcspn(model, "\n")] = 0;
        (void)close(fd);
    }
    (void)snprintf(out, cap, "aarch64 %lx %lx %s", getauxval(AT_HWCAP), getauxval(AT_HWCAP2), model);
#else
    (void)snprintf(out, cap, "unknown");
#endif
}

/* ---- the folder ------------------------------------------------------------------------------------------------- */

struct folder {
    char path[1024];
    int fd;          /* -1: none */
    const char *why; /* there is none */
};

static bool name_folder(struct folder *f)
{
    const char *const own = getenv("SPORK_CACHE_DIR"), *const home = getenv("HOME"),
                      *const xdg = getenv("XDG_CACHE_HOME");
    int n;
    if (geteuid() != getuid() || getegid() != getgid()) { /* whose variables are another user's */
        f->why = "the process has more rights than its user";
        return false;
    }
    if (own && (!*own || strcmp(own, "off") == 0)) {
        f->why = "switched off by SPORK_CACHE_DIR";
        return false;
    }
    if (own)
        n = snprintf(f->path, sizeof f->path, "%s", own);
    else if (xdg && xdg[0] == '/')
        n = snprintf(f->path, sizeof f->path, "%s/spork", xdg);
    else if (home && home[0] == '/')
        n = snprintf(f->path, sizeof f->path, "%s/.cache/spork", home);
    else {
        f->why = "neither SPORK_CACHE_DIR nor HOME is set";
        return false;
    }
    if (n < 0 || (size_t)n >= sizeof f->path) {
        f->why = "its path is too long";
        return false;
    }
    return true;
}

static void make_folders(const char *path)
{
    char part[1024];
    const size_t n = strlen(path);
    for (size_t k = 1; k <= n; k++) {
        if (path[k] != '/' && path[k] != 0)
            continue;
        memcpy(part, path, k);
        part[k] = 0;
        (void)mkdir(part, 0700);
    }
}

/* Ours, and nobody else may write into it. */
static bool is_safe(const struct stat *s)
{
    return s->st_uid == geteuid() && (s->st_mode & (S_IWGRP | S_IWOTH)) == 0;
}

/* `make`: makes it if it is not there. */
static struct folder open_folder(bool make)
{
    struct folder f = {.fd = -1};
    struct stat s;
    if (!name_folder(&f))
        return f;
    const int flags = O_RDONLY | O_DIRECTORY | O_CLOEXEC;
    int fd = open(f.path, flags);
    if (fd < 0 && errno == ENOENT && make) {
        make_folders(f.path);
        fd = open(f.path, flags);
    }
    if (fd < 0) {
        f.why = errno != ENOENT ? "it cannot be opened" : make ? "it cannot be made" : "it does not exist yet";
        return f;
    }
    if (fstat(fd, &s) != 0 || !is_safe(&s)) {
        f.why = "it belongs to another user, or others may write into it";
        (void)close(fd);
        return f;
    }
    f.fd = fd;
    return f;
}

static void close_folder(const struct folder *f)
{
    if (f->fd >= 0)
        (void)close(f->fd);
}

static void entry_name(const struct cache_key *k, char out[NAME_LENGTH + 1])
{
    (void)snprintf(out, NAME_LENGTH + 1, "%016llx%016llx", (unsigned long long)k->word[0],
                   (unsigned long long)k->word[1]);
}

static bool is_hex(const char *s, size_t n)
{
    for (size_t k = 0; k < n; k++)
        if (!((s[k] >= '0' && s[k] <= '9') || (s[k] >= 'a' && s[k] <= 'f')))
            return false;
    return true;
}

static bool is_entry(const char *name)
{
    return strlen(name) == NAME_LENGTH && is_hex(name, NAME_LENGTH);
}

static bool is_temporary(const char *name)
{
    return strlen(name) > NAME_LENGTH + 4 && is_hex(name, NAME_LENGTH) && memcmp(name + NAME_LENGTH, ".tmp", 4) == 0;
}

/* ---- reading ---------------------------------------------------------------------------------------------------- */

static bool read_all(int fd, void *to, size_t n)
{
    char *at = to;
    while (n) {
        const ssize_t got = read(fd, at, n);
        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0)
            return false;
        at += got;
        n -= (size_t)got;
    }
    return true;
}

static bool plausible(const struct entry_head *h, const struct stat *s)
{
    return memcmp(h->magic, magic, sizeof magic) == 0 && h->size <= MAX_ENTRY &&
           (uint64_t)s->st_size == sizeof *h + h->size && memchr(h->note, 0, sizeof h->note);
}

/* A regular file of ours, or -1. */
static int open_entry(int folder, const char *name, struct stat *s)
{
    const int fd = openat(folder, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    if (fd < 0)
        return -1;
    if (fstat(fd, s) == 0 && S_ISREG(s->st_mode) && is_safe(s))
        return fd;
    (void)close(fd);
    return -1;
}

/* Head and bytes at once: most entries take one call. */
static bool read_entry(int fd, struct entry_head *h, char *bytes, size_t n)
{
    const struct iovec to[2] = {{h, sizeof *h}, {bytes, n}};
    const ssize_t got = readv(fd, to, 2);
    if (got < (ssize_t)sizeof *h)
        return false;
    const size_t had = (size_t)got - sizeof *h;
    return read_all(fd, bytes + had, n - had);
}

/* The size is asked for first, because asking for memory may jump, and nothing is open then. */
char *cache_get(struct mem *mem, const struct cache_key *k, size_t *size)
{
    struct folder f;
    char name[NAME_LENGTH + 1], path[sizeof f.path + NAME_LENGTH + 2];
    struct stat s;
    struct entry_head h;
    entry_name(k, name);
    if (!name_folder(&f))
        return NULL;
    (void)snprintf(path, sizeof path, "%s/%s", f.path, name);
    if (stat(path, &s) != 0 || s.st_size <= (off_t)sizeof h || (uint64_t)s.st_size > MAX_ENTRY + sizeof h)
        return NULL;
    const size_t n = (size_t)s.st_size - sizeof h;
    char *const bytes = mem_alloc(mem, n);
    f = open_folder(false);
    const int fd = f.fd < 0 ? -1 : open_entry(f.fd, name, &s);
    const bool good = fd >= 0 && (uint64_t)s.st_size == sizeof h + n && read_entry(fd, &h, bytes, n) &&
                      plausible(&h, &s) && same_key(&h.key, k);
    /* A clock that was wrong once must not keep an entry for ever, hence both ways. */
    const int64_t age = good ? (int64_t)time(NULL) - (int64_t)s.st_mtime : 0;
    if (age > TOUCH_SECONDS || age < -TOUCH_SECONDS)
        (void)futimens(fd, NULL);
    if (fd >= 0)
        (void)close(fd);
    close_folder(&f);
    const struct cache_key sum = good ? checksum_of(&h, bytes) : (struct cache_key){0};
    if (!good || !same_key(&sum, &h.checksum)) {
        mem_free(mem, bytes, n);
        return NULL;
    }
    *size = n;
    return bytes;
}

/* ---- writing ---------------------------------------------------------------------------------------------------- */

struct listed {
    char name[NAME_LENGTH + 1];
    int64_t used;
    uint64_t bytes;
};

static int by_use(const void *a, const void *b)
{
    const struct listed *const x = a, *const y = b;
    return (x->used > y->used) - (x->used < y->used);
}

/* Removes what was used longest ago until the rest fits, and temporary files that nobody finishes. */
static void trim(int folder)
{
    const int fd = openat(folder, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *const d = fd < 0 ? NULL : fdopendir(fd);
    if (!d) {
        if (fd >= 0)
            (void)close(fd);
        return;
    }
    struct listed *all = NULL;
    size_t n = 0, cap = 0;
    uint64_t sum = 0;
    const time_t now = time(NULL);
    for (struct dirent *e; (e = readdir(d));) {
        struct stat s;
        if ((!is_entry(e->d_name) && !is_temporary(e->d_name)) ||
            fstatat(folder, e->d_name, &s, AT_SYMLINK_NOFOLLOW) != 0)
            continue;
        if (is_temporary(e->d_name)) {
            if (now - s.st_mtime > STALE_SECONDS)
                (void)unlinkat(folder, e->d_name, 0);
            continue;
        }
        if (n == cap) {
            struct listed *const more = realloc(all, (cap ? 2 * cap : 256) * sizeof *all);
            if (!more)
                break;
            all = more;
            cap = cap ? 2 * cap : 256;
        }
        memcpy(all[n].name, e->d_name, NAME_LENGTH + 1);
        all[n].used = (int64_t)s.st_mtime;
        all[n].bytes = ((uint64_t)s.st_size + BLOCK - 1) & ~(BLOCK - 1);
        sum += all[n++].bytes;
    }
    (void)closedir(d);
    if (sum > CACHE_LIMIT) {
        qsort(all, n, sizeof *all, by_use);
        for (size_t k = 0; k < n && sum > CACHE_LIMIT / 4 * 3; k++)
            if (unlinkat(folder, all[k].name, 0) == 0)
                sum -= all[k].bytes;
    }
    free(all);
}

static bool write_all(int fd, const void *from, size_t n)
{
    const char *at = from;
    while (n) {
        const ssize_t put = write(fd, at, n);
        if (put < 0 && errno == EINTR)
            continue;
        if (put <= 0)
            return false;
        at += put;
        n -= (size_t)put;
    }
    return true;
}

void cache_put(struct mem *mem, const struct cache_key *k, const void *bytes, size_t size, const char *note)
{
    (void)mem;
    if (!size || size > MAX_ENTRY)
        return;
    const struct folder f = open_folder(true);
    if (f.fd < 0)
        return;
    struct entry_head h = {.key = *k, .size = size};
    memcpy(h.magic, magic, sizeof magic);
    for (size_t j = 0; note && note[j] && j + 1 < sizeof h.note; j++) /* it is shown on terminals */
        h.note[j] = (unsigned char)note[j] >= ' ' && note[j] != 0x7f ? note[j] : ' ';
    h.checksum = checksum_of(&h, bytes);
    char name[NAME_LENGTH + 1], temporary[96];
    entry_name(k, name);
    (void)snprintf(temporary, sizeof temporary, "%s.tmp%ld-%llx", name, (long)getpid(),
                   (unsigned long long)os_nanoseconds() ^ (unsigned long long)(uintptr_t)&h);
    const int fd = openat(f.fd, temporary, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (fd >= 0) {
        bool good = write_all(fd, &h, sizeof h) && write_all(fd, bytes, size);
        good = close(fd) == 0 && good;
        if (!good || renameat(f.fd, temporary, f.fd, name) != 0)
            (void)unlinkat(f.fd, temporary, 0);
        if (size >= SCAN_BYTES || h.checksum.word[0] % SCAN_EVERY == 0)
            trim(f.fd);
    }
    close_folder(&f);
}

/* ---- for people ------------------------------------------------------------------------------------------------- */

bool cache_state(struct buf *out)
{
    struct folder f = open_folder(true);
    struct statvfs room;
    if (f.fd >= 0 && faccessat(f.fd, ".", W_OK | X_OK, AT_EACCESS) != 0)
        f.why = "it cannot be written, what it holds is used";
    else if (f.fd >= 0 && fstatvfs(f.fd, &room) == 0 && (room.f_bavail == 0 || (room.f_files && room.f_favail == 0)))
        f.why = "its file system is full, what it holds is used";
    const bool there = f.fd >= 0;
    close_folder(&f); /* before the text, which may jump */
    buf_str(out, f.path[0] ? f.path : "no cache");
    if (f.why)
        buf_fmt(out, ": %s", f.why);
    return there;
}

static DIR *open_list(struct folder *f)
{
    *f = open_folder(false);
    const int fd = f->fd < 0 ? -1 : openat(f->fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *const d = fd < 0 ? NULL : fdopendir(fd);
    if (!d && fd >= 0)
        (void)close(fd);
    return d;
}

static const char *age_text(int64_t seconds, char out[32])
{
    static const struct {
        int64_t seconds;
        const char *name;
    } units[] = {{86400, "d"}, {3600, "h"}, {60, "min"}, {0, "s"}};
    size_t k = 0;
    seconds = seconds > 0 ? seconds : 0;
    while (seconds < 2 * units[k].seconds)
        k++;
    (void)snprintf(out, 32, "%lld %s", (long long)(seconds / (units[k].seconds ? units[k].seconds : 1)), units[k].name);
    return out;
}

struct line {
    int64_t used;
    uint64_t bytes;
    char note[NOTE_BYTES];
};

static int last_first(const void *a, const void *b)
{
    const struct line *const x = a, *const y = b;
    return x->used != y->used ? (x->used < y->used) - (x->used > y->used) : strcmp(x->note, y->note);
}

static bool read_line(int folder, const char *name, struct line *l)
{
    struct entry_head h;
    struct stat s;
    const int fd = is_entry(name) ? open_entry(folder, name, &s) : -1;
    const bool good = fd >= 0 && read_all(fd, &h, sizeof h) && plausible(&h, &s);
    if (fd >= 0)
        (void)close(fd);
    if (good) {
        l->used = (int64_t)s.st_mtime;
        l->bytes = (uint64_t)s.st_size;
        memcpy(l->note, h.note, sizeof l->note);
    }
    return good;
}

/* Lines are gathered by malloc: no jump may pass the open folder. */
static struct line *read_lines(size_t *n)
{
    struct folder f;
    DIR *const d = open_list(&f);
    struct line *all = NULL;
    size_t cap = 0;
    *n = 0;
    for (struct dirent *e; d && (e = readdir(d));) {
        struct line l;
        if (!read_line(f.fd, e->d_name, &l))
            continue;
        if (*n == cap) {
            struct line *const more = realloc(all, (cap ? 2 * cap : 64) * sizeof *all);
            if (!more)
                break;
            all = more;
            cap = cap ? 2 * cap : 64;
        }
        all[(*n)++] = l;
    }
    if (d)
        (void)closedir(d);
    close_folder(&f);
    if (*n)
        qsort(all, *n, sizeof *all, last_first);
    return all;
}

/* Lines move to memory that no jump loses. */
static struct line *keep_lines(struct mem *mem, struct mem *temp, struct line *read, size_t bytes)
{
    struct line *volatile all = NULL;
    sk_status st;
    struct mem *root = mem;
    while (root->parent)
        root = root->parent;
    MEM_GUARD(root, NULL, st, (all = mem_alloc(temp, bytes), SK_OK));
    if (st == SK_OK && bytes)
        memcpy(all, read, bytes);
    free(read);
    if (st != SK_OK)
        mem_out_of_memory(mem);
    return all;
}

void cache_list(struct mem *mem, struct buf *out)
{
    size_t n;
    struct mem *const temp = mem_temp(mem);
    struct line *const read = read_lines(&n);
    const struct line *const all = keep_lines(mem, temp, read, n * sizeof *read);
    uint64_t sum = 0;
    const int64_t now = (int64_t)time(NULL);
    for (size_t k = 0; k < n; k++) {
        char age[32];
        const struct line *const l = &all[k];
        buf_fmt(out, "%10llu bytes  %6s  %s\n", (unsigned long long)l->bytes, age_text(now - l->used, age), l->note);
        sum += l->bytes;
    }
    mem_temp_end(temp);
    buf_fmt(out, "%zu %s, %llu bytes\n", n, n == 1 ? "entry" : "entries", (unsigned long long)sum);
}

uint64_t cache_clear(struct mem *mem)
{
    (void)mem;
    struct folder f;
    DIR *const d = open_list(&f);
    uint64_t n = 0;
    for (struct dirent *e; d && (e = readdir(d));) {
        if (is_entry(e->d_name) && unlinkat(f.fd, e->d_name, 0) == 0)
            n++;
        else if (is_temporary(e->d_name))
            (void)unlinkat(f.fd, e->d_name, 0);
    }
    if (d)
        (void)closedir(d);
    close_folder(&f);
    return n;
}
