/* cache.c - spork cache: the compiled kernels kept on disk. */
#include "cli.h"

#include "cpu/cache.h"

static sk_status list(struct mem *mem, struct buf *out)
{
    if (!cache_state(out)) {
        buf_char(out, '\n');
        return SK_OK;
    }
    buf_char(out, '\n');
    cache_list(mem, out);
    return SK_OK;
}

static sk_status clear(struct mem *mem, struct buf *out)
{
    struct buf why;
    buf_init(&why, mem);
    if (cache_state(&why))
        buf_fmt(out, "%llu entries removed from %s\n", (unsigned long long)cache_clear(mem), buf_text(&why));
    else
        buf_fmt(out, "nothing removed: %s\n", buf_text(&why));
    buf_free(&why);
    return SK_OK;
}

static int report(sk_status (*make)(struct mem *mem, struct buf *out))
{
    sk_error err = {0};
    struct mem mem;
    struct buf out;
    sk_status st;
    mem_init(&mem, NULL);
    buf_init(&out, &mem);
    MEM_GUARD(&mem, &err, st, make(&mem, &out));
    if (st == SK_OK)
        MEM_GUARD(&mem, &err, st, (fputs(buf_text(&out), stdout), SK_OK));
    mem_temps_unwind(&mem, NULL);
    buf_free(&out);
    return st == SK_OK ? EXIT_FINE : cli_error(&err);
}

int cli_cache(int argc, char **argv)
{
    bool clears = false;
    for (int i = 1; i < argc; i++) {
        if (cli_is_help(argv[i])) {
            (void)printf(
                "usage: spork cache [--clear]\n\n"
                "Lists the compiled kernels that are kept on disk, so that another process need not compile them: the\n"
                "folder, then for each its size, the hours since it was last used, kernel and threadgroup. --clear\n"
                "removes them; files that are not Spork's stay.\n\n"
                "The folder is SPORK_CACHE_DIR, else $XDG_CACHE_HOME/spork, else ~/.cache/spork; it must be the "
                "user's,\n"
                "and writable by no one else. SPORK_CACHE_DIR=off keeps nothing. Past %u MiB what was used longest "
                "ago\n"
                "goes.\n",
                (unsigned)(CACHE_LIMIT >> 20));
            return EXIT_FINE;
        }
        if (strcmp(argv[i], "--clear") != 0)
            return cli_usage("cache", "no argument '%s'", argv[i]);
        clears = true;
    }
    return report(clears ? clear : list);
}
