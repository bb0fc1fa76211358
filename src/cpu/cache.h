/* cache.h - compiled kernels on disk.
 *
 * One file for each entry in a folder of the user's: SPORK_CACHE_DIR, else XDG_CACHE_HOME/spork, else ~/.cache/spork. "off" or an empty
 * SPORK_CACHE_DIR: none. Entries are written to a temporary name and renamed, carry a checksum and their key, belong to the user and
 * are readable by no one else; a file that is damaged, foreign (another owner, writable by others) or of another version is
 * ignored and replaced. A cache that cannot be used (read-only, full, missing, not ours) is no error: kernels are compiled
 * each time, and cache_state says why. The folder is bounded: past CACHE_LIMIT bytes the entries used longest ago go.
 */
#ifndef SK_CPU_CACHE_H
#define SK_CPU_CACHE_H

#include "base/base.h"

#define CACHE_LIMIT ((uint64_t)256 << 20)

struct cache_key {
    uint64_t word[2];
};
/* Hashes everything that decides the object: the caller feeds text and options. */
void cache_key_init(struct cache_key *k);
void cache_key_add(struct cache_key *k, const void *bytes, size_t n);

/* Identity of this machine's instruction set, without LLVM: the same string if and only if the same code may run. */
void cache_machine(char *out, size_t cap);

/* The entry's bytes (memory of `mem`, mem_free with *size), or null: not there, or not usable. Never fails. */
char *cache_get(struct mem *mem, const struct cache_key *k, size_t *size);
/* Keeps the bytes, if it can. `note` is a line for `spork cache`: kernel and shape. Never fails. */
void cache_put(struct mem *mem, const struct cache_key *k, const void *bytes, size_t size, const char *note);

/* The folder in use and how it fares: "…/spork", or why there is none. */
bool cache_state(struct buf *out);
/* For `spork cache`: a line an entry (bytes, age, note), and the sum. Clearing removes our own files only. */
void cache_list(struct mem *mem, struct buf *out);
uint64_t cache_clear(struct mem *mem); /* number of entries removed */

#endif
