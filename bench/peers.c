/* The kernels of bench/forms in plain C with OpenMP: what one writes first who knows the language and wants it fast.
   bench/cpu.py compiles this twice, -O3 -march=native -fopenmp with and without -ffast-math, and calls it by ctypes. */
#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

void vector_add(float *restrict out, const float *restrict a, const float *restrict b, long n)
{
#pragma omp parallel for simd schedule(static)
    for (long i = 0; i < n; i++)
        out[i] = a[i] + b[i];
}

void saxpy(float *restrict y, const float *restrict x, float a, long n)
{
#pragma omp parallel for simd schedule(static)
    for (long i = 0; i < n; i++)
        y[i] = a * x[i] + y[i];
}

void mandelbrot(int32_t *restrict out, float step, long n)
{
#pragma omp parallel for schedule(dynamic, 8)
    for (long row = 0; row < n; row++)
        for (long column = 0; column < n; column++) {
            float cx = (float)column * step - 2.0f, cy = (float)row * step - 1.5f, x = 0, y = 0;
            int32_t count = 0;
            while (x * x + y * y <= 4.0f && count < 256) {
                float t = x * x - y * y + cx;
                y = 2.0f * x * y + cy;
                x = t;
                count++;
            }
            out[row * n + column] = count;
        }
}

/* Blocked for the caches; the inner loop runs along rows of B and C, so that compilers vectorise it. */
void matmul(float *restrict c, const float *restrict a, const float *restrict b, long n)
{
    enum { ROWS = 32, DEPTH = 64, COLUMNS = 512 };
#pragma omp parallel for schedule(static)
    for (long i0 = 0; i0 < n; i0 += ROWS) {
        memset(c + i0 * n, 0, sizeof(float) * (size_t)(ROWS * n));
        for (long j0 = 0; j0 < n; j0 += COLUMNS)
            for (long k0 = 0; k0 < n; k0 += DEPTH)
                for (long i = i0; i < i0 + ROWS; i++)
                    for (long k = k0; k < k0 + DEPTH && k < n; k += 4) {
                        float a0 = a[i * n + k], a1 = a[i * n + k + 1], a2 = a[i * n + k + 2], a3 = a[i * n + k + 3];
                        const float *restrict row = b + k * n;
                        long end = j0 + COLUMNS < n ? j0 + COLUMNS : n;
                        for (long j = j0; j < end; j++)
                            c[i * n + j] += a0 * row[j] + a1 * row[j + n] + a2 * row[j + 2 * n] + a3 * row[j + 3 * n];
                    }
    }
}

void softmax(float *restrict out, const float *restrict x, long rows, long columns)
{
#pragma omp parallel for schedule(static)
    for (long r = 0; r < rows; r++) {
        const float *restrict from = x + r * columns;
        float *restrict to = out + r * columns;
        float top = from[0], sum = 0;
#pragma omp simd reduction(max : top)
        for (long j = 0; j < columns; j++)
            top = from[j] > top ? from[j] : top;
#pragma omp simd reduction(+ : sum)
        for (long j = 0; j < columns; j++) {
            to[j] = expf(from[j] - top);
            sum += to[j];
        }
        float scale = 1.0f / sum;
        for (long j = 0; j < columns; j++)
            to[j] *= scale;
    }
}

void histogram(uint32_t *restrict bins, const uint8_t *restrict x, long n)
{
    memset(bins, 0, 256 * sizeof *bins);
#pragma omp parallel
    {
        uint32_t mine[256] = {0};
#pragma omp for schedule(static) nowait
        for (long i = 0; i < n; i++)
            mine[x[i]]++;
#pragma omp critical
        for (int k = 0; k < 256; k++)
            bins[k] += mine[k];
    }
}

/* The same with four counters for each value: neighbours that are equal do not wait for each other. */
void histogram_four(uint32_t *restrict bins, const uint8_t *restrict x, long n)
{
    memset(bins, 0, 256 * sizeof *bins);
#pragma omp parallel
    {
        uint32_t mine[4][256] = {{0}};
#pragma omp for schedule(static) nowait
        for (long i = 0; i < n; i += 4) {
            mine[0][x[i]]++;
            mine[1][x[i + 1]]++;
            mine[2][x[i + 2]]++;
            mine[3][x[i + 3]]++;
        }
#pragma omp critical
        for (int k = 0; k < 256; k++)
            bins[k] += mine[0][k] + mine[1][k] + mine[2][k] + mine[3][k];
    }
}

void nbody(float *restrict ax, float *restrict ay, float *restrict az, const float *restrict x, const float *restrict y,
           const float *restrict z, const float *restrict mass, long n)
{
#pragma omp parallel for schedule(static)
    for (long i = 0; i < n; i++) {
        float sx = 0, sy = 0, sz = 0;
#pragma omp simd reduction(+ : sx, sy, sz)
        for (long j = 0; j < n; j++) {
            float dx = x[j] - x[i], dy = y[j] - y[i], dz = z[j] - z[i];
            float inverse = 1.0f / sqrtf(dx * dx + dy * dy + dz * dz + 1e-3f);
            float s = mass[j] * inverse * inverse * inverse;
            sx += dx * s;
            sy += dy * s;
            sz += dz * s;
        }
        ax[i] = sx;
        ay[i] = sy;
        az[i] = sz;
    }
}

/* The edges apart, so that the loop over a row has no condition. */
void stencil(float *restrict out, const float *restrict a, long n)
{
#pragma omp parallel for schedule(static)
    for (long y = 0; y < n; y++) {
        const float *restrict row = a + y * n;
        float *restrict to = out + y * n;
        if (y == 0 || y == n - 1) {
            memcpy(to, row, sizeof(float) * (size_t)n);
            continue;
        }
        to[0] = row[0];
#pragma omp simd
        for (long x = 1; x < n - 1; x++)
            to[x] = 0.5f * row[x] + 0.125f * (row[x - 1] + row[x + 1] + row[x - n] + row[x + n]);
        to[n - 1] = row[n - 1];
    }
}

/* The statements of the kernel: the edge is a condition. */
void life(uint8_t *restrict out, const uint8_t *restrict a, long n)
{
#pragma omp parallel for schedule(static)
    for (long y = 0; y < n; y++)
        for (long x = 0; x < n; x++) {
            const uint8_t *p = a + y * n + x;
            if (x > 0 && x < n - 1 && y > 0 && y < n - 1) {
                int count = p[-n - 1] + p[-n] + p[-n + 1] + p[-1] + p[1] + p[n - 1] + p[n] + p[n + 1];
                out[y * n + x] = (uint8_t)((count == 3) | ((count == 2) & *p));
            } else {
                out[y * n + x] = 0;
            }
        }
}

/* The same, helped by hand: edges apart, sums of bytes, no branch, so that compilers vectorise it. */
void life_by_hand(uint8_t *restrict out, const uint8_t *restrict a, long n)
{
#pragma omp parallel for schedule(static)
    for (long y = 0; y < n; y++) {
        uint8_t *restrict to = out + y * n;
        if (y == 0 || y == n - 1) {
            memset(to, 0, (size_t)n);
            continue;
        }
        const uint8_t *restrict row = a + y * n, *restrict above = row - n, *restrict below = row + n;
        to[0] = 0;
#pragma omp simd
        for (long x = 1; x < n - 1; x++) {
            uint8_t count = (uint8_t)(above[x - 1] + above[x] + above[x + 1] + row[x - 1] + row[x + 1] + below[x - 1] +
                                      below[x] + below[x + 1]);
            to[x] = (uint8_t)((count == 3) | ((count == 2) & row[x]));
        }
        to[n - 1] = 0;
    }
}

void sigmoid(float *restrict out, const float *restrict x, long n)
{
#pragma omp parallel for simd schedule(static)
    for (long i = 0; i < n; i++)
        out[i] = 1.0f / (1.0f + expf(-x[i]));
}

void gelu(float *restrict out, const float *restrict x, long n)
{
#pragma omp parallel for simd schedule(static)
    for (long i = 0; i < n; i++) {
        float v = x[i];
        out[i] = 0.5f * v * (1.0f + tanhf(0.7978845608f * (v + 0.044715f * v * v * v)));
    }
}

/* Chunks that fit a cache: their sums, the sums of these, then each chunk again from there. */
void prefix_sum(int32_t *restrict out, const int32_t *restrict x, int32_t *restrict sums, long n)
{
    enum { CHUNK = 16384 };
    long chunks = n / CHUNK;
#pragma omp parallel for schedule(static)
    for (long c = 0; c < chunks; c++) {
        int32_t sum = 0;
        for (long i = c * CHUNK; i < (c + 1) * CHUNK; i++)
            sum += x[i];
        sums[c] = sum;
    }
    int32_t before = 0;
    for (long c = 0; c < chunks; c++) {
        int32_t sum = sums[c];
        sums[c] = before;
        before += sum;
    }
#pragma omp parallel for schedule(static)
    for (long c = 0; c < chunks; c++) {
        int32_t sum = sums[c];
        for (long i = c * CHUNK; i < (c + 1) * CHUNK; i++) {
            sum += x[i];
            out[i] = sum;
        }
    }
}

void transpose(float *restrict out, const float *restrict a, long n)
{
    enum { T = 32 };
#pragma omp parallel for collapse(2) schedule(static)
    for (long i0 = 0; i0 < n; i0 += T)
        for (long j0 = 0; j0 < n; j0 += T)
            for (long i = i0; i < i0 + T; i++)
                for (long j = j0; j < j0 + T; j++)
                    out[i * n + j] = a[j * n + i];
}

/* For the rows of launches: one group's work, and that of a thousand. */
void add_one(float *x, long n)
{
    for (long i = 0; i < n; i++)
        x[i] += 1.0f;
}

void add_one_parallel(float *x, long n)
{
#pragma omp parallel for simd schedule(static)
    for (long i = 0; i < n; i++)
        x[i] += 1.0f;
}
