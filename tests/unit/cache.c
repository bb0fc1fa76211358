/* cache.c - compiled kernels on disk: what src/cpu/cache.h promises of folders, entries, damage and bounds.
 *
 * `cache time` prints what a look-up costs.
 */
#include "check.h"
#include "faulty.h"
#include "cpu/cache.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define HEAD 176u /* bytes of an entry before its content */

static struct mem mem;
static char root[512]; /* of this test; each part has a folder in it */
static char folder[600];

/* ---- folders ---------------------------------------------------------------------------------------------------- */

static void use(const char *name) /* a folder that is not there yet */
{
    (void)snprintf(folder, sizeof folder, "%s/%s", root, name);
    (void)setenv("SPORK_CACHE_DIR", folder, 1);
}

static void remove_tree(const char *path)
{
    DIR *const d = opendir(path);
    for (struct dirent *e; d && (e = readdir(d));) {
        char inner[1200];
        struct stat s;
        (void)snprintf(inner, sizeof inner, "%s/%s", path, e->d_name);
        if (strcmp(e->d_name, ".") == 0 || strcmp(e->d_name, "..") == 0 || lstat(inner, &s) != 0)
            continue;
        if (S_ISDIR(s.st_mode))
            remove_tree(inner);
        else
            (void)unlink(inner);
    }
    if (d)
        (void)closedir(d);
    (void)rmdir(path);
}

static void write_file(const char *path, const void *bytes, size_t n, mode_t mode)
{
    const int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, mode);
    CHECK(fd >= 0);
    CHECK_EQ(write(fd, bytes, n), n);
    (void)close(fd);
    (void)chmod(path, mode);
}

static size_t read_file(const char *path, char *bytes, size_t cap)
{
    const int fd = open(path, O_RDONLY);
    const ssize_t n = fd < 0 ? -1 : read(fd, bytes, cap);
    if (fd >= 0)
        (void)close(fd);
    CHECK(n >= 0);
    return n < 0 ? 0 : (size_t)n;
}

/* Files in the folder whose names contain the text; the last one's path. */
static unsigned count(const char *text, char *path, size_t cap)
{
    unsigned n = 0;
    DIR *const d = opendir(folder);
    for (struct dirent *e; d && (e = readdir(d));) {
        if (e->d_name[0] == '.' || !strstr(e->d_name, text))
            continue;
        if (path)
            (void)snprintf(path, cap, "%s/%s", folder, e->d_name);
        n++;
    }
    if (d)
        (void)closedir(d);
    return n;
}

static bool state_says(const char *text)
{
    struct buf b;
    buf_init(&b, &mem);
    (void)cache_state(&b);
    const bool found = strstr(buf_text(&b), text) != NULL;
    if (!found)
        printf("the cache says \"%s\"\n", buf_text(&b));
    buf_free(&b);
    return found;
}

/* ---- entries ---------------------------------------------------------------------------------------------------- */

static struct cache_key key_of(const char *text)
{
    struct cache_key k;
    cache_key_init(&k);
    cache_key_add(&k, text, strlen(text));
    return k;
}

static void put(const char *key, const char *content)
{
    const struct cache_key k = key_of(key);
    cache_put(&mem, &k, content, strlen(content), key);
}

/* Is the entry there with that content? Null: is it not there? */
static bool holds(const char *key, const char *content)
{
    const struct cache_key k = key_of(key);
    size_t n = 0;
    char *const bytes = cache_get(&mem, &k, &n);
    const bool good = bytes ? content && n == strlen(content) && memcmp(bytes, content, n) == 0 : !content;
    if (bytes)
        mem_free(&mem, bytes, n);
    return good;
}

static void test_keys(void)
{
    /* Where parts end counts. */
    struct cache_key a, b;
    cache_key_init(&a);
    cache_key_init(&b);
    cache_key_add(&a, "ab", 2);
    cache_key_add(&a, "c", 1);
    cache_key_add(&b, "a", 1);
    cache_key_add(&b, "bc", 2);
    CHECK(a.word[0] != b.word[0] && a.word[1] != b.word[1]);
    /* Each bit of what is hashed flips about half of each word, and the words differ in which. */
    char text[77];
    unsigned flips[2] = {0}, both = 0, changes = 0;
    memset(text, 'x', sizeof text);
    cache_key_init(&a);
    cache_key_add(&a, text, sizeof text);
    for (unsigned bit = 0; bit < 8 * sizeof text; bit++, changes++) {
        text[bit / 8] = (char)(text[bit / 8] ^ 1 << bit % 8);
        cache_key_init(&b);
        cache_key_add(&b, text, sizeof text);
        text[bit / 8] = (char)(text[bit / 8] ^ 1 << bit % 8);
        const uint64_t x = a.word[0] ^ b.word[0], y = a.word[1] ^ b.word[1];
        flips[0] += (unsigned)__builtin_popcountll(x);
        flips[1] += (unsigned)__builtin_popcountll(y);
        both += (unsigned)__builtin_popcountll(x & y);
        CHECK(__builtin_popcountll(x) > 8 && __builtin_popcountll(y) > 8);
    }
    CHECK_NEAR(flips[0], 32.0 * changes, 1.0 * changes);
    CHECK_NEAR(flips[1], 32.0 * changes, 1.0 * changes);
    CHECK_NEAR(both, 16.0 * changes, 1.0 * changes);
    char one[64], two[64];
    cache_machine(one, sizeof one);
    cache_machine(two, sizeof two);
    CHECK_EQ_STR(one, two);
    CHECK(strlen(one) > 8);
}

static void test_there_and_back(void)
{
    char path[1200];
    struct stat s;
    use("new/below/here");
    CHECK(holds("a", NULL));
    CHECK(stat(folder, &s) != 0); /* a look makes nothing */
    put("a", "content of a");
    CHECK(stat(folder, &s) == 0 && (s.st_mode & 0777) == 0700);
    (void)snprintf(path, sizeof path, "%s/new", root);
    CHECK(stat(path, &s) == 0 && (s.st_mode & 0777) == 0700);
    CHECK_EQ(count("", path, sizeof path), 1);
    CHECK(lstat(path, &s) == 0 && (s.st_mode & 07777) == 0600 && S_ISREG(s.st_mode) &&
          s.st_size == HEAD + strlen("content of a"));
    CHECK(holds("a", "content of a"));
    CHECK(holds("b", NULL));
    put("a", "other content");
    CHECK(holds("a", "other content"));
    CHECK_EQ(count("", NULL, 0), 1);
    put("empty", "");
    CHECK(holds("empty", NULL));
    CHECK(state_says(folder));
    /* Larger than a read gives at once. */
    const size_t n = (size_t)3 << 20;
    char *const big = malloc(n + 1);
    memset(big, 'b', n);
    big[n] = 0;
    put("big", big);
    CHECK(holds("big", big));
    free(big);
    /* Used again: its time of use is renewed once it is an hour old. */
    const struct timespec old[2] = {{time(NULL) - 7200, 0}, {time(NULL) - 7200, 0}};
    CHECK(utimensat(AT_FDCWD, path, old, 0) == 0);
    CHECK(holds("a", "other content"));
    CHECK(stat(path, &s) == 0 && time(NULL) - s.st_mtime < 600);
}

static void test_no_folder(void)
{
    char path[1200];
    use("off");
    (void)setenv("SPORK_CACHE_DIR", "off", 1);
    put("a", "x");
    CHECK(holds("a", NULL));
    CHECK(state_says("switched off"));
    (void)setenv("SPORK_CACHE_DIR", "", 1);
    put("a", "x");
    CHECK(holds("a", NULL));
    CHECK(state_says("switched off"));
    CHECK(access("off", F_OK) != 0);
    /* XDG_CACHE_HOME, then HOME. */
    (void)unsetenv("SPORK_CACHE_DIR");
    (void)setenv("XDG_CACHE_HOME", root, 1);
    put("a", "x");
    (void)snprintf(path, sizeof path, "%s/spork", root);
    CHECK(access(path, F_OK) == 0);
    CHECK(holds("a", "x"));
    (void)setenv("XDG_CACHE_HOME", "relative", 1);
    (void)snprintf(path, sizeof path, "%s/home", root);
    (void)setenv("HOME", path, 1);
    CHECK(holds("a", NULL));
    put("a", "y");
    (void)snprintf(path, sizeof path, "%s/home/.cache/spork", root);
    CHECK(access(path, F_OK) == 0);
    CHECK(holds("a", "y"));
    (void)unsetenv("XDG_CACHE_HOME");
    CHECK(holds("a", "y"));
    (void)unsetenv("HOME");
    put("a", "z");
    CHECK(holds("a", NULL));
    CHECK(state_says("neither SPORK_CACHE_DIR nor HOME"));
    char *const far = malloc(3000);
    memset(far, 'f', 2999);
    far[2999] = 0;
    (void)setenv("SPORK_CACHE_DIR", far, 1);
    free(far);
    put("a", "z");
    CHECK(holds("a", NULL));
    CHECK(state_says("too long"));
    /* Below a file, and a file. */
    (void)snprintf(path, sizeof path, "%s/file", root);
    write_file(path, "x", 1, 0600);
    use("file");
    put("a", "z");
    CHECK(holds("a", NULL));
    CHECK(state_says("cannot be opened"));
    use("file/below");
    put("a", "z");
    CHECK(holds("a", NULL));
    CHECK(state_says("cannot be opened"));
    CHECK_EQ(cache_clear(&mem), 0);
}

static void test_foreign_folder(void)
{
    use("shared");
    put("a", "x");
    CHECK(holds("a", "x"));
    static const mode_t modes[] = {0770, 0702, 01777, 0720};
    for (unsigned k = 0; k < sizeof modes / sizeof *modes; k++) {
        CHECK(chmod(folder, modes[k]) == 0);
        CHECK(holds("a", NULL));
        put("b", "y");
        CHECK(state_says("others may write"));
        CHECK_EQ(cache_clear(&mem), 0);
    }
    CHECK(chmod(folder, 0755) == 0); /* readers do no harm */
    CHECK(holds("a", "x"));
    CHECK(holds("b", NULL));
    CHECK_EQ(count("", NULL, 0), 1);
    if (geteuid() != 0)
        return;
    CHECK(chown(folder, 12345, 12345) == 0);
    CHECK(holds("a", NULL));
    put("b", "y");
    CHECK(state_says("another user"));
    CHECK(chown(folder, 0, 0) == 0);
    CHECK(holds("a", "x"));
    CHECK(holds("b", NULL));
}

/* As a user who may not write there. */
static void test_read_only(void)
{
    use("readonly");
    put("a", "x");
    CHECK(chmod(folder, 0500) == 0);
    const pid_t child = fork();
    if (child == 0) {
        if (geteuid() == 0 &&
            (chown(folder, 12345, 12345) != 0 || chmod(root, 0755) != 0 || setgid(12345) != 0 || setuid(12345) != 0))
            _exit(2);
        put("b", "y");
        const bool good = holds("b", NULL) && count(".tmp", NULL, 0) == 0;
        use("readonly/below");
        put("b", "y");
        _exit(good && holds("b", NULL) && state_says("cannot be made") ? 0 : 1);
    }
    int status = 0;
    CHECK(waitpid(child, &status, 0) == child);
    CHECK_EQ(WEXITSTATUS(status), 0);
    use("readonly");
    (void)chmod(folder, 0700);
}

static void test_foreign_entries(void)
{
    char path[1200], elsewhere[1200], bytes[4096];
    struct stat s;
    use("entries");
    put("a", "content");
    CHECK_EQ(count("", path, sizeof path), 1);
    const size_t n = read_file(path, bytes, sizeof bytes);
    CHECK_EQ(n, HEAD + 7);
    CHECK(chmod(path, 0660) == 0);
    CHECK(holds("a", NULL));
    CHECK(chmod(path, 0602) == 0);
    CHECK(holds("a", NULL));
    CHECK(chmod(path, 0644) == 0);
    CHECK(holds("a", "content"));
    if (geteuid() == 0) {
        CHECK(chown(path, 12345, 12345) == 0);
        CHECK(holds("a", NULL));
        put("a", "again");
        CHECK(holds("a", "again"));
        CHECK(stat(path, &s) == 0 && s.st_uid == 0 && (s.st_mode & 07777) == 0600);
    }
    /* A link to what would do, one to nowhere, a folder, a pipe. */
    (void)snprintf(elsewhere, sizeof elsewhere, "%s/elsewhere", root);
    write_file(elsewhere, bytes, n, 0600);
    CHECK(unlink(path) == 0 && symlink(elsewhere, path) == 0);
    CHECK(holds("a", NULL));
    put("a", "replaced");
    CHECK(holds("a", "replaced"));
    CHECK(lstat(path, &s) == 0 && S_ISREG(s.st_mode));
    CHECK_EQ(read_file(elsewhere, bytes, sizeof bytes), n);
    CHECK(memcmp(bytes + HEAD, "content", 7) == 0);
    CHECK(unlink(path) == 0 && symlink("/nowhere/at/all", path) == 0);
    CHECK(holds("a", NULL));
    CHECK(unlink(path) == 0 && mkfifo(path, 0600) == 0);
    CHECK(holds("a", NULL)); /* does not wait for a writer */
    put("a", "no pipe");
    CHECK(holds("a", "no pipe"));
    CHECK(unlink(path) == 0 && mkdir(path, 0700) == 0);
    CHECK(holds("a", NULL));
    put("a", "x");
    CHECK(holds("a", NULL));
    CHECK_EQ(count(".tmp", NULL, 0), 0);
    CHECK(rmdir(path) == 0);
    put("a", "x");
    CHECK(holds("a", "x"));
}

static void test_damage(void)
{
    static const char content[] = "forty bytes of a compiled kernel or so..";
    char path[1200], other[1200], bytes[4096];
    use("damage");
    put("a", content);
    CHECK_EQ(count("", path, sizeof path), 1);
    const size_t n = read_file(path, bytes, sizeof bytes);
    for (size_t k = 0; k < n; k++) {
        for (unsigned how = 0; how < 3; how++) {
            const char was = bytes[k];
            bytes[k] = (char)(how == 0 ? was ^ 1 << k % 8 : how == 1 ? ~was : was ^ 0x80);
            write_file(path, bytes, n, 0600);
            if (!holds("a", NULL))
                CHECK_FAIL_("byte %zu changed from %d to %d goes unseen", k, was, bytes[k]);
            check_count++;
            bytes[k] = was;
        }
    }
    for (size_t k = 0; k <= n + 1; k++) {
        bytes[n] = 0;
        write_file(path, bytes, k, 0600);
        CHECK(holds("a", k == n ? content : NULL));
    }
    put("a", content);
    CHECK(holds("a", content));
    /* Under another key's name. */
    put("b", content);
    const struct cache_key b = key_of("b");
    (void)snprintf(other, sizeof other, "%s/%016llx%016llx", folder, (unsigned long long)b.word[0],
                   (unsigned long long)b.word[1]);
    CHECK(access(other, F_OK) == 0);
    write_file(other, bytes, n, 0600);
    CHECK(holds("b", NULL));
    put("b", "new");
    CHECK(holds("b", "new"));
    /* Random bytes, and a head that states a size that is not there. */
    for (unsigned k = 0; k < 200; k++) {
        char junk[300];
        for (size_t j = 0; j < sizeof junk; j++)
            junk[j] = (char)rand();
        if (k % 2)
            memcpy(junk, bytes, k % 64);
        write_file(path, junk, sizeof junk, 0600);
        CHECK(holds("a", NULL));
    }
}

/* Reads and writes of one key by several processes: what is found is whole, always. */
static void test_processes(void)
{
    enum { WRITERS = 4, ROUNDS = 150 };
    char content[2][20001];
    for (unsigned k = 0; k < 2; k++) {
        memset(content[k], 'A' + (int)k, sizeof content[k] - 1);
        content[k][20000] = 0;
    }
    use("processes");
    put("k", content[0]);
    pid_t child[WRITERS];
    for (unsigned k = 0; k < WRITERS; k++) {
        child[k] = fork();
        if (child[k] == 0) {
            bool good = true;
            for (unsigned j = 0; j < ROUNDS; j++) {
                put("k", content[k % 2]);
                good = good && (holds("k", content[0]) || holds("k", content[1]) || holds("k", content[0]));
            }
            _exit(good ? 0 : 1);
        }
    }
    for (unsigned k = 0; k < WRITERS; k++) {
        int status = -1;
        CHECK(waitpid(child[k], &status, 0) == child[k]);
        CHECK_EQ(status, 0);
    }
    CHECK_EQ(count("", NULL, 0), 1);
}

/* A disk that is full, as the limit of a file's size has it. */
static void test_full(void)
{
    use("full");
    put("small", "x");
    const pid_t child = fork();
    if (child == 0) {
        const struct rlimit l = {100, 100};
        (void)signal(SIGXFSZ, SIG_IGN);
        if (setrlimit(RLIMIT_FSIZE, &l) != 0)
            _exit(2);
        put("large", "some bytes");
        put("small", "other bytes");
        _exit(holds("large", NULL) && holds("small", "x") ? 0 : 1);
    }
    int status = -1;
    CHECK(waitpid(child, &status, 0) == child);
    CHECK_EQ(status, 0);
    CHECK_EQ(count("", NULL, 0), 1);
}

static void set_age(const char *path, long seconds)
{
    const struct timespec t[2] = {{time(NULL) - seconds, 0}, {time(NULL) - seconds, 0}};
    CHECK(utimensat(AT_FDCWD, path, t, 0) == 0);
}

static uint64_t bytes_in_folder(void)
{
    uint64_t sum = 0;
    DIR *const d = opendir(folder);
    for (struct dirent *e; d && (e = readdir(d));) {
        struct stat s;
        if (fstatat(dirfd(d), e->d_name, &s, AT_SYMLINK_NOFOLLOW) == 0 && S_ISREG(s.st_mode))
            sum += (uint64_t)s.st_size;
    }
    if (d)
        (void)closedir(d);
    return sum;
}

/* Entries past the limit go, those used longest ago first; so do temporary files that nobody finishes. Large entries are
 * files with holes. */
static void test_bound(void)
{
    enum { EACH = 24 << 20, COUNT = 14, CONTENT = 2 << 20 };
    char path[1200];
    use("bound");
    char *const bytes = malloc(CONTENT + 1);
    memset(bytes, 'b', CONTENT);
    bytes[CONTENT] = 0;
    put("keep", "x");
    CHECK_EQ(count("", path, sizeof path), 1);
    set_age(path, 10); /* used last */
    (void)snprintf(path, sizeof path, "%s/%032d.tmp1-2", folder, 0);
    write_file(path, "x", 1, 0600);
    set_age(path, 8000);
    (void)snprintf(path, sizeof path, "%s/%032d.tmp3-4", folder, 0);
    write_file(path, "x", 1, 0600);
    (void)snprintf(path, sizeof path, "%s/notes.txt", folder);
    write_file(path, "x", 1, 0600);
    set_age(path, 80000);
    for (int k = 0; k < COUNT; k++) {
        (void)snprintf(path, sizeof path, "%s/%032x", folder, (unsigned)(k * 5 % COUNT) + 1);
        write_file(path, "x", 1, 0600);
        CHECK(truncate(path, EACH) == 0);
        set_age(path, 7000 - 100 * k);
    }
    CHECK(bytes_in_folder() > CACHE_LIMIT);
    put("last", bytes);
    CHECK(bytes_in_folder() <= CACHE_LIMIT);
    CHECK(bytes_in_folder() > CACHE_LIMIT / 2);
    CHECK(holds("keep", "x"));
    CHECK(holds("last", bytes));
    for (int k = 0, left = 0; k < COUNT; k++) {
        (void)snprintf(path, sizeof path, "%s/%032x", folder, (unsigned)(k * 5 % COUNT) + 1);
        const bool there = access(path, F_OK) == 0;
        CHECK(there || !left); /* once one is left, all used later are */
        left += there;
    }
    CHECK_EQ(count("tmp1-2", NULL, 0), 0); /* an hour old */
    CHECK_EQ(count("tmp3-4", NULL, 0), 1); /* somebody may be writing it */
    CHECK_EQ(count("notes.txt", NULL, 0), 1);
    free(bytes);
    /* Small ones too, sooner or later. */
    for (int k = 0; k < COUNT; k++) {
        (void)snprintf(path, sizeof path, "%s/%032x", folder, (unsigned)k + 1);
        write_file(path, "x", 1, 0600);
        CHECK(truncate(path, EACH) == 0);
        set_age(path, 7000 - 100 * k);
    }
    for (int k = 0; k < 400 && bytes_in_folder() > CACHE_LIMIT; k++) {
        char key[32];
        (void)snprintf(key, sizeof key, "small %d", k);
        put(key, key);
    }
    CHECK(bytes_in_folder() <= CACHE_LIMIT);
}

static void test_list_and_clear(void)
{
    char path[1200];
    struct buf b;
    buf_init(&b, &mem);
    use("list");
    cache_list(&mem, &b);
    CHECK_EQ_STR(buf_text(&b), "0 entries, 0 bytes\n");
    buf_free(&b);
    put("kernel \x1b[31m with\nmany lines", "0123456789");
    char want[400], want_sum[200];
    (void)snprintf(want, sizeof want, "%10u bytes     0 s  kernel  [31m with many lines\n", HEAD + 10);
    (void)snprintf(want_sum, sizeof want_sum, "1 entry, %u bytes\n", HEAD + 10);
    buf_init(&b, &mem);
    cache_list(&mem, &b);
    CHECK(strstr(buf_text(&b), want) == buf_text(&b));
    CHECK_EQ_STR(buf_text(&b) + strlen(want), want_sum);
    buf_free(&b);
    CHECK_EQ(count("", path, sizeof path), 1);
    set_age(path, 3 * 3600 + 5);
    for (int k = 0; k < 40; k++) {
        char key[32], note[300];
        (void)snprintf(key, sizeof key, "k%d", k);
        memset(note, 'n', sizeof note);
        note[sizeof note - 1] = 0;
        const struct cache_key key_ = key_of(key);
        cache_put(&mem, &key_, "x", 1, k % 2 ? note : NULL);
    }
    buf_init(&b, &mem);
    cache_list(&mem, &b);
    CHECK(strstr(buf_text(&b), "   3 h  kernel"));
    CHECK(strstr(buf_text(&b), "41 entries, "));
    buf_free(&b);
    /* What is not ours stays: other names, folders, what only looks like a temporary file. */
    static const char *const others[] = {"notes.txt", "0123456789abcdef0123456789abcde",
                                         "0123456789ABCDEF0123456789ABCDEF", "x.tmp12345678901234567890123456789",
                                         "0123456789abcdef0123456789abcdef.txt"};
    for (unsigned k = 0; k < 5; k++) {
        (void)snprintf(path, sizeof path, "%s/%s", folder, others[k]);
        write_file(path, "x", 1, 0600);
    }
    (void)snprintf(path, sizeof path, "%s/0123456789abcdef0123456789abcdef", folder);
    CHECK(mkdir(path, 0700) == 0);
    (void)snprintf(path, sizeof path, "%s/%032d.tmp3-4", folder, 0);
    write_file(path, "x", 1, 0600);
    CHECK_EQ(cache_clear(&mem), 41);
    CHECK_EQ(count("", NULL, 0), 6);
    CHECK_EQ(cache_clear(&mem), 0);
    buf_init(&b, &mem);
    cache_list(&mem, &b);
    CHECK_EQ_STR(buf_text(&b), "0 entries, 0 bytes\n");
    buf_free(&b);
}

/* ---- when memory runs out --------------------------------------------------------------------------------------- */

static unsigned open_files(void)
{
    unsigned n = 0;
    for (int fd = 0; fd < 256; fd++)
        n += fcntl(fd, F_GETFD) >= 0;
    return n;
}

static sk_status get_and_list(struct mem *m)
{
    const struct cache_key k = key_of("a");
    size_t n;
    char *const bytes = cache_get(m, &k, &n);
    CHECK(bytes);
    mem_free(m, bytes, n);
    struct mem *const t = mem_temp(m);
    struct buf b;
    buf_init(&b, t);
    cache_list(m, &b);
    (void)cache_state(&b);
    mem_temp_end(t);
    return SK_OK;
}

static void test_memory(void)
{
    use("memory");
    put("a", "content");
    const unsigned files = open_files();
    sk_status status = SK_ERR_MEMORY;
    for (long k = 0; status != SK_OK && k < 100; k++) {
        struct faulty f = {.left = k, .for_good = k % 2 == 1};
        const sk_allocator failing = faulty_allocator(&f);
        struct mem m;
        sk_error err = {0};
        mem_init(&m, &failing);
        MEM_GUARD(&m, &err, status, get_and_list(&m));
        CHECK(status == SK_OK || status == SK_ERR_MEMORY);
        CHECK(faulty_clean(&f));
        CHECK_EQ(open_files(), files);
        sk_error_clear(&err);
    }
    CHECK_EQ(status, SK_OK);
}

/* ----------------------------------------------------------------------------------------------------------------- */

static void measure(void)
{
    static char bytes[1 << 16];
    static const size_t sizes[] = {4096, 16384, 65536};
    use("time");
    memset(bytes, 7, sizeof bytes);
    for (unsigned k = 0; k < 3; k++) {
        const struct cache_key key = key_of(k == 0 ? "a" : k == 1 ? "b" : "c");
        cache_put(&mem, &key, bytes, sizes[k], "time");
        uint64_t best = UINT64_MAX, best_key = UINT64_MAX;
        for (unsigned j = 0; j < 1000; j++) {
            size_t n;
            uint64_t t = os_nanoseconds();
            char *const got = cache_get(&mem, &key, &n);
            t = os_nanoseconds() - t;
            best = t < best ? t : best;
            mem_free(&mem, got, n);
            struct cache_key h;
            cache_key_init(&h);
            t = os_nanoseconds();
            cache_key_add(&h, bytes, sizes[k]);
            t = os_nanoseconds() - t;
            best_key = t < best_key ? t : best_key;
        }
        printf("%zu bytes: found in %.1f us; a key of as many in %.1f us\n", sizes[k], (double)best / 1e3,
               (double)best_key / 1e3);
    }
}

int main(int argc, char **argv)
{
    const char *const tmp = getenv("TMPDIR");
    mem_init(&mem, NULL);
    (void)snprintf(root, sizeof root, "%s/spork-cache-XXXXXX", tmp ? tmp : "/tmp");
    if (!mkdtemp(root)) {
        CHECK_FAIL_("no folder for the test");
        return check_done();
    }
    (void)umask(022);
    if (argc > 1 && strcmp(argv[1], "time") == 0) {
        measure();
    } else {
        test_keys();
        test_there_and_back();
        test_no_folder();
        test_foreign_folder();
        test_read_only();
        test_foreign_entries();
        test_damage();
        test_processes();
        test_full();
        test_bound();
        test_list_and_clear();
        test_memory();
    }
    remove_tree(root);
    CHECK_EQ(mem.live, 0);
    return check_done();
}
