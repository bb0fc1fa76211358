/* What the machine can do: memory (triad) and arithmetic (fused multiply-adds), on all threads that OpenMP has. */
#if defined(__AVX512F__) || defined(__AVX__)
#include <immintrin.h>
#endif

void triad(float *restrict a, const float *restrict b, const float *restrict c, float s, long n)
{
#pragma omp parallel for simd schedule(static)
    for (long i = 0; i < n; i++)
        a[i] = b[i] + s * c[i];
}

/* The same with stores that go past the caches: a must be on a multiple of 64 bytes, n a multiple of 16. */
void triad_streaming(float *restrict a, const float *restrict b, const float *restrict c, float s, long n)
{
#if defined(__AVX512F__)
    __m512 factor = _mm512_set1_ps(s);
#pragma omp parallel for schedule(static)
    for (long i = 0; i < n; i += 16)
        _mm512_stream_ps(a + i, _mm512_fmadd_ps(factor, _mm512_loadu_ps(c + i), _mm512_loadu_ps(b + i)));
#elif defined(__AVX__)
    __m256 factor = _mm256_set1_ps(s);
#pragma omp parallel for schedule(static)
    for (long i = 0; i < n; i += 8)
        _mm256_stream_ps(a + i, _mm256_add_ps(_mm256_mul_ps(factor, _mm256_loadu_ps(c + i)), _mm256_loadu_ps(b + i)));
#else
    triad(a, b, c, s, n);
#endif
}

#if defined(__AVX512F__)
enum { LANES = 16 };
#else
enum { LANES = 8 };
#endif
typedef float lanes __attribute__((vector_size(LANES * sizeof(float))));
enum { CHAINS = 12 };

/* At least `flops` operations; what was computed, so that nobody leaves it out. */
float fma_peak(double flops)
{
    enum { PARTS = 64 };
    long rounds = (long)(flops / (2.0 * CHAINS * LANES * PARTS)) + 1;
    float total = 0;
#pragma omp parallel for schedule(static) reduction(+ : total)
    for (int part = 0; part < PARTS; part++) {
        lanes x[CHAINS], a, b;
        for (int i = 0; i < LANES; i++) {
            a[i] = 0.999f;
            b[i] = 0.001f * (float)(i + part);
        }
        for (int k = 0; k < CHAINS; k++)
            x[k] = b + (float)k;
        for (long r = 0; r < rounds; r++) {
#pragma GCC unroll 12
            for (int k = 0; k < CHAINS; k++)
                x[k] = x[k] * a + b;
        }
        for (int k = 0; k < CHAINS; k++)
            total += x[k][0];
    }
    return total;
}
