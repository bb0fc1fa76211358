/* find.c - where LLVM's shared library lies. */
#include "llvm/library.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#if defined(__x86_64__)
#define MULTIARCH "x86_64-linux-gnu"
#elif defined(__aarch64__)
#define MULTIARCH "aarch64-linux-gnu"
#else
#define MULTIARCH "."
#endif

/* In order of preference: what is tested, then what is new. */
static const unsigned versions[] = {19, 22, 21, 20, 18, 17, 16, 23, 24, 25, 26, 27, 28, 29, 30};
static const unsigned old_versions[] = {15, 14, 13, 12, 11, 10, 9, 8, 7};

/* What follows "libLLVM" in the names that distributions give. */
static const char *const names[] = {".so.%u.1", "-%u.so.1", "-%u.so"};

/* After those of LD_LIBRARY_PATH. */
static const char *const folders[] = {
    "/usr/local/lib", "/usr/lib/" MULTIARCH, "/lib/" MULTIARCH, "/usr/lib64", "/usr/lib", "/lib64"};
/* Folders of one version, where the name may lack it. */
static const char *const version_folders[] = {"/usr/lib/llvm-%u/lib", "/usr/lib64/llvm%u/lib", "/usr/lib/llvm%u/lib",
                                              "/usr/lib/llvm/%u/lib64"};

#define N(array) (sizeof(array) / sizeof(array)[0])

/* The tables above are the only formats, each with one %u. */
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
static void with_version(char *out, size_t cap, const char *fmt, unsigned version)
{
    (void)snprintf(out, cap, fmt, version);
}
#pragma GCC diagnostic pop

static bool try_file(char *path, size_t cap, const char *folder, size_t n_folder, const char *name)
{
    const int n = snprintf(path, cap, "%.*s/libLLVM%s", (int)n_folder, folder, name);
    return n > 0 && (size_t)n < cap && access(path, R_OK) == 0;
}

static bool try_folder(char *path, size_t cap, const char *folder, size_t n_folder, unsigned version)
{
    for (size_t k = 0; k < N(names); k++) {
        char name[32];
        with_version(name, sizeof name, names[k], version);
        if (try_file(path, cap, folder, n_folder, name))
            return true;
    }
    return false;
}

static bool try_version(char *path, size_t cap, unsigned version)
{
    const char *list = getenv("LD_LIBRARY_PATH");
    while (list && *list) {
        const size_t n = strcspn(list, ":;");
        if (n && n < cap && try_folder(path, cap, list, n, version))
            return true;
        list += n + (list[n] != 0);
    }
    for (size_t k = 0; k < N(folders); k++)
        if (try_folder(path, cap, folders[k], strlen(folders[k]), version))
            return true;
    for (size_t k = 0; k < N(version_folders); k++) {
        char folder[64];
        with_version(folder, sizeof folder, version_folders[k], version);
        if (try_folder(path, cap, folder, strlen(folder), version) ||
            try_file(path, cap, folder, strlen(folder), ".so"))
            return true;
    }
    return false;
}

unsigned llvm_named_version(const char *path)
{
    const char *const slash = strrchr(path, '/');
    const char *name = slash ? slash + 1 : path;
    if (strncmp(name, "libLLVM", 7) != 0)
        return 0;
    name += 7;
    name += strncmp(name, ".so.", 4) == 0 ? 4 : *name == '-';
    unsigned version = 0;
    while (*name >= '0' && *name <= '9' && version < 1000)
        version = version * 10 + (unsigned)(*name++ - '0');
    return version;
}

static sk_status too_old(unsigned version, const char *path, sk_error *err)
{
    char number[16];
    (void)snprintf(number, sizeof number, "%u", version);
    return ERR(err, LLVM_OLD, number, path, LLVM_OLDEST);
}

static sk_status named(const char *name, char *path, size_t cap, sk_error *err)
{
    if (strcmp(name, "off") == 0)
        return ERR(err, LLVM_OFF);
    if (!strchr(name, '/') || strlen(name) >= cap)
        return ERR(err, LLVM_PATH, name, "is no path");
    if (access(name, R_OK) != 0)
        return ERR(err, LLVM_PATH, name, "cannot be read");
    const unsigned version = llvm_named_version(name);
    if (version && version < LLVM_OLDEST)
        return too_old(version, name, err);
    memcpy(path, name, strlen(name) + 1);
    return SK_OK;
}

sk_status llvm_search(char *path, size_t cap, sk_error *err)
{
    const char *const name = getenv("SPORK_LLVM");
    if (name && *name)
        return named(name, path, cap, err);
    for (size_t k = 0; k < N(versions); k++)
        if (try_version(path, cap, versions[k]))
            return SK_OK;
    for (size_t k = 0; k < N(old_versions); k++)
        if (try_version(path, cap, old_versions[k]))
            return too_old(old_versions[k], path, err);
    return ERR(err, LLVM_ABSENT);
}

bool llvm_find(char *path, size_t cap, struct buf *reason)
{
    sk_error err = {0};
    if (llvm_search(path, cap, &err) == SK_OK)
        return true;
    if (reason)
        buf_str(reason, err.message);
    return false;
}
