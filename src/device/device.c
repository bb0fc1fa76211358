/* device.c - the devices of this machine, and buffers.
 *
 * A back end is added by its row in `backends`, the best first. One that cannot be used here is kept with its reason.
 */
#include "device/objects.h"

#include <stdio.h>
#include <stdlib.h>

static const struct backend *const backends[] = {
    &backend_cpu,
    &backend_interp,
};
#define N_BACKENDS (sizeof backends / sizeof *backends)

struct devices { /* one for each context */
    struct object head;
    size_t n, n_missing;
    sk_device at[N_BACKENDS];
    struct buf reason[N_BACKENDS]; /* of the missing: "name: why" */
    struct buf about[N_BACKENDS];  /* of those that are there */
};

static void destroy_devices(void *object)
{
    struct devices *const d = object;
    for (size_t k = 0; k < N_BACKENDS; k++)
        buf_free(&d->reason[k]), buf_free(&d->about[k]);
}

static sk_status probe_all(struct devices *d)
{
    for (size_t k = 0; k < N_BACKENDS; k++) {
        const struct backend *const b = backends[k];
        struct buf *const reason = &d->reason[d->n_missing];
        buf_fmt(reason, "%s: ", b->name);
        if (b->probe(reason)) {
            buf_free(reason);
            buf_init(reason, &d->head.mem);
            d->at[d->n] = (sk_device){b, d->head.ctx, 0, &d->about[d->n]};
            d->n++;
        } else {
            d->n_missing++;
        }
    }
    return SK_OK;
}

static void *make_devices(sk_context *ctx, sk_error *err)
{
    struct devices *const d = object_new(ctx, sizeof *d, destroy_devices, err);
    if (!d)
        return NULL;
    for (size_t k = 0; k < N_BACKENDS; k++) {
        buf_init(&d->reason[k], &d->head.mem);
        buf_init(&d->about[k], &d->head.mem);
    }
    sk_status st;
    MEM_GUARD(&d->head.mem, err, st, probe_all(d));
    if (st == SK_OK)
        return d;
    object_release(d);
    return NULL;
}

static struct devices *devices_of(sk_context *ctx, sk_error *err)
{
    return context_once(ctx, make_devices, err);
}

size_t sk_device_count(sk_context *ctx)
{
    const struct devices *const d = devices_of(ctx, NULL);
    return d ? d->n : 0;
}

sk_device *sk_device_at(sk_context *ctx, size_t k)
{
    struct devices *const d = devices_of(ctx, NULL);
    return d && k < d->n ? &d->at[k] : NULL;
}

const char *sk_device_missing(sk_context *ctx, size_t k)
{
    struct devices *const d = devices_of(ctx, NULL);
    return d && k < d->n_missing ? d->reason[k].at : NULL;
}

/* What to say after "there is no device called x here": its own reason, or the names there are. */
static void explain_missing(const struct devices *d, const char *name, char *out, size_t cap)
{
    const size_t n = strlen(name);
    for (size_t k = 0; k < d->n_missing; k++)
        if (strncmp(d->reason[k].at, name, n) == 0 && d->reason[k].at[n] == ':') {
            (void)snprintf(out, cap, "%s", d->reason[k].at + n + 2);
            return;
        }
    size_t used = (size_t)snprintf(out, cap, "choose one of:");
    for (size_t k = 0; k < d->n && used < cap; k++)
        used += (size_t)snprintf(out + used, cap - used, " %s", d->at[k].backend->name);
}

sk_status sk_device_get(sk_context *ctx, const char *name, sk_device **out, sk_error *err)
{
    struct devices *const d = devices_of(ctx, err);
    if (!d)
        return SK_ERR_MEMORY;
    if (!name)
        name = getenv("SPORK_DEVICE");
    if (!name || !*name) {
        *out = &d->at[0];
        return SK_OK;
    }
    for (size_t k = 0; k < d->n; k++)
        if (strcmp(d->at[k].backend->name, name) == 0) {
            *out = &d->at[k];
            return SK_OK;
        }
    char why[256];
    explain_missing(d, name, why, sizeof why);
    return ERR(err, NO_SUCH_DEVICE, name, why);
}

const char *sk_device_name(const sk_device *device)
{
    return device->backend->name;
}

const char *sk_device_description(const sk_device *device)
{
    return device->backend->description;
}

static sk_status describe(const sk_device *device, struct buf *about, sk_error *err)
{
    if (!device->backend->details) {
        buf_str(about, device->backend->description);
        return SK_OK;
    }
    return device->backend->details(about->mem, about, err);
}

sk_status sk_device_details(sk_device *device, const char **out, sk_error *err)
{
    struct buf *const about = device->about;
    sk_status st;
    buf_free(about);
    MEM_GUARD(about->mem, err, st, describe(device, about, err));
    if (st == SK_OK)
        MEM_GUARD(about->mem, err, st, (*out = buf_text(about), SK_OK));
    return st;
}

void sk_device_set_threads(sk_device *device, uint32_t n)
{
    __atomic_store_n(&device->threads, n, __ATOMIC_RELAXED);
}

uint32_t sk_device_threads(const sk_device *device)
{
    if (!device->backend->threads)
        return 1;
    uint32_t n = __atomic_load_n(&device->threads, __ATOMIC_RELAXED);
    if (n)
        return n;
    n = device->backend->threads();
    __atomic_store_n(&((sk_device *)(uintptr_t)device)->threads, n, __ATOMIC_RELAXED); /* asked for once */
    return n;
}

bool sk_device_unchecked(const sk_device *device)
{
    return device->backend->unchecked;
}

void sk_device_expect(sk_device *device, const void *source, size_t size)
{
    if (!device->backend->expect)
        return;
    struct mem mem;
    sk_status st;
    context_mem(device->ctx, &mem);
    MEM_GUARD(&mem, NULL, st, (device->backend->expect(&mem, source, size), SK_OK));
    (void)st; /* only time was to be won */
}

/* ---- queues: every device so far completes a launch before it returns, so a queue keeps nothing ----------------------- */

sk_status sk_queue_create(sk_device *device, sk_queue **out, sk_error *err)
{
    sk_queue *const q = object_new(device->ctx, sizeof *q, NULL, err);
    if (!q)
        return SK_ERR_MEMORY;
    q->device = device;
    *out = q;
    return SK_OK;
}

void sk_queue_release(sk_queue *queue)
{
    object_release(queue);
}

/* ---- buffers -------------------------------------------------------------------------------------------------------- */

static void destroy_buffer(void *object)
{
    sk_buffer *const b = object;
    if (!b->owned || !b->memory)
        return;
    if (b->device->backend->deallocate)
        b->device->backend->deallocate(b->memory, b->size);
    else
        mem_free(&b->head.mem, b->memory, b->size);
}

static sk_status allocate(sk_buffer *b, size_t size)
{
    const struct backend *const e = b->device->backend;
    b->memory = e->allocate ? e->allocate(size) : mem_zalloc(&b->head.mem, size);
    if (!b->memory && size)
        mem_out_of_memory(&b->head.mem);
    b->size = size;
    return SK_OK;
}

sk_status sk_buffer_create(sk_device *device, size_t size, sk_buffer **out, sk_error *err)
{
    sk_buffer *const b = object_new(device->ctx, sizeof *b, destroy_buffer, err);
    if (!b)
        return SK_ERR_MEMORY;
    b->device = device;
    b->owned = true;
    sk_status st;
    MEM_GUARD(&b->head.mem, err, st, allocate(b, size));
    if (st != SK_OK) {
        object_release(b);
        return st;
    }
    *out = b;
    return SK_OK;
}

sk_status sk_buffer_wrap(sk_device *device, void *memory, size_t size, sk_buffer **out, sk_error *err)
{
    sk_buffer *const b = object_new(device->ctx, sizeof *b, destroy_buffer, err);
    if (!b)
        return SK_ERR_MEMORY;
    b->device = device;
    b->memory = memory;
    b->size = size;
    *out = b;
    return SK_OK;
}

void sk_buffer_release(sk_buffer *buffer)
{
    object_release(buffer);
}

void *sk_buffer_contents(sk_buffer *buffer)
{
    return buffer->memory;
}

size_t sk_buffer_size(const sk_buffer *buffer)
{
    return buffer->size;
}
