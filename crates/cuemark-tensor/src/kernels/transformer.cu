// Kernels for the parts of a transformer. Everything is f32, row-major and without gaps.
//
// No kernel uses atomics: every number has one thread that writes it, so results do not depend on scheduling.

#include <cstdint>

typedef unsigned int u32;
typedef unsigned long long u64;

static __device__ __forceinline__ size_t here() { return (size_t)blockIdx.x * blockDim.x + threadIdx.x; }

static __device__ __forceinline__ size_t all() { return (size_t)gridDim.x * blockDim.x; }

static __device__ __forceinline__ float warp_sum(float x) {
    for (u32 other = 16; other > 0; other /= 2) x += __shfl_xor_sync(0xffffffff, x, other);
    return x;
}

static __device__ __forceinline__ float warp_max(float x) {
    for (u32 other = 16; other > 0; other /= 2) x = fmaxf(x, __shfl_xor_sync(0xffffffff, x, other));
    return x;
}

// The sum over all threads of a block, given to each. A block has whole warps, at most 32 of them.
static __device__ __forceinline__ float block_sum(float x) {
    __shared__ float parts[32];
    x = warp_sum(x);
    __syncthreads();
    if (threadIdx.x % 32 == 0) parts[threadIdx.x / 32] = x;
    __syncthreads();
    x = 0.0f;
    for (u32 warp = 0; warp < blockDim.x / 32; warp++) x += parts[warp];
    return x;
}

static __device__ __forceinline__ float block_max(float x) {
    __shared__ float parts[32];
    x = warp_max(x);
    __syncthreads();
    if (threadIdx.x % 32 == 0) parts[threadIdx.x / 32] = x;
    __syncthreads();
    for (u32 warp = 0; warp < blockDim.x / 32; warp++) x = fmaxf(x, parts[warp]);
    return x;
}

// Layer norm and softmax have one block per row.

// Mean of a row, and what a distance from it is multiplied by.
static __device__ __forceinline__ float2 spread(const float *row, u32 width, float eps) {
    float sum = 0.0f;
    for (u32 n = threadIdx.x; n < width; n += blockDim.x) sum += row[n];
    float mean = block_sum(sum) / width;
    float squares = 0.0f;
    for (u32 n = threadIdx.x; n < width; n += blockDim.x) squares += (row[n] - mean) * (row[n] - mean);
    return make_float2(mean, 1.0f / sqrtf(block_sum(squares) / width + eps));
}

extern "C" __global__ void layer_norm(const float *x, const float *weight, const float *bias, float *y, u32 width,
                                      float eps) {
    const float *row = x + (size_t)blockIdx.x * width;
    float *to = y + (size_t)blockIdx.x * width;
    float2 at = spread(row, width, eps);
    for (u32 n = threadIdx.x; n < width; n += blockDim.x) to[n] = (row[n] - at.x) * at.y * weight[n] + bias[n];
}

// spreads: mean and factor of every row, for the gradients of weight and bias.
extern "C" __global__ void layer_norm_gradient(const float *x, const float *weight, const float *gradient, float *to,
                                               float *spreads, u32 width, float eps) {
    size_t first = (size_t)blockIdx.x * width;
    const float *row = x + first, *pull = gradient + first;
    float2 at = spread(row, width, eps);
    float common = 0.0f, along = 0.0f;
    for (u32 n = threadIdx.x; n < width; n += blockDim.x) {
        float part = pull[n] * weight[n];
        common += part;
        along += part * (row[n] - at.x) * at.y;
    }
    common = block_sum(common) / width;
    along = block_sum(along) / width;
    for (u32 n = threadIdx.x; n < width; n += blockDim.x)
        to[first + n] = at.y * (pull[n] * weight[n] - common - (row[n] - at.x) * at.y * along);
    if (threadIdx.x == 0) {
        spreads[2 * (size_t)blockIdx.x] = at.x;
        spreads[2 * (size_t)blockIdx.x + 1] = at.y;
    }
}

// Gradients of weight and bias over the rows of each of gridDim.y parts: to[part][weight, bias][column]. A block of 32 x 8
// threads has 32 columns.
extern "C" __global__ void layer_norm_parameters(const float *x, const float *gradient, const float *spreads, float *to,
                                                 size_t rows, u32 width) {
    __shared__ float sums[2][8][33];
    u32 column = blockIdx.x * 32 + threadIdx.x;
    size_t each = (rows + gridDim.y - 1) / gridDim.y;
    size_t begin = each * blockIdx.y, end = min(rows, begin + each);
    float of_weight = 0.0f, of_bias = 0.0f;
    if (column < width)
        for (size_t row = begin + threadIdx.y; row < end; row += 8) {
            float pull = gradient[row * width + column];
            of_weight += pull * (x[row * width + column] - spreads[2 * row]) * spreads[2 * row + 1];
            of_bias += pull;
        }
    sums[0][threadIdx.y][threadIdx.x] = of_weight;
    sums[1][threadIdx.y][threadIdx.x] = of_bias;
    __syncthreads();
    if (threadIdx.y == 0 && column < width) {
        for (u32 n = 1; n < 8; n++) {
            of_weight += sums[0][n][threadIdx.x];
            of_bias += sums[1][n][threadIdx.x];
        }
        to[(size_t)blockIdx.y * 2 * width + column] = of_weight;
        to[((size_t)blockIdx.y * 2 + 1) * width + column] = of_bias;
    }
}

extern "C" __global__ void softmax(const float *x, float *y, u32 width) {
    const float *row = x + (size_t)blockIdx.x * width;
    float *to = y + (size_t)blockIdx.x * width;
    float most = __int_as_float(0xff800000);
    for (u32 n = threadIdx.x; n < width; n += blockDim.x) most = fmaxf(most, row[n]);
    most = block_max(most);
    float sum = 0.0f;
    for (u32 n = threadIdx.x; n < width; n += blockDim.x) {
        to[n] = expf(row[n] - most);
        sum += to[n];
    }
    float scale = 1.0f / block_sum(sum);
    for (u32 n = threadIdx.x; n < width; n += blockDim.x) to[n] *= scale;
}

extern "C" __global__ void softmax_gradient(const float *y, const float *gradient, float *to, u32 width) {
    size_t first = (size_t)blockIdx.x * width;
    float common = 0.0f;
    for (u32 n = threadIdx.x; n < width; n += blockDim.x) common += y[first + n] * gradient[first + n];
    common = block_sum(common);
    for (u32 n = threadIdx.x; n < width; n += blockDim.x) to[first + n] = y[first + n] * (gradient[first + n] - common);
}

// y = max(y + bias, least)
extern "C" __global__ void add_bias(float *y, const float *bias, size_t count, u32 width, float least) {
    for (size_t n = here(); n < count; n += all()) {
        float sum = y[n] + bias[n % width];
        y[n] = sum < least ? least : sum; // not a number stays none
    }
}

extern "C" __global__ void relu_gradient(const float *y, const float *gradient, float *to, size_t count) {
    for (size_t n = here(); n < count; n += all()) to[n] = y[n] > 0.0f ? gradient[n] : 0.0f;
}

extern "C" __global__ void prelu(const float *x, const float *slope, float *y, size_t count) {
    float below = *slope;
    for (size_t n = here(); n < count; n += all()) y[n] = x[n] > 0.0f ? x[n] : below * x[n];
}

// parts: of every block its share of the slope's gradient.
extern "C" __global__ void prelu_gradient(const float *x, const float *slope, const float *gradient, float *to,
                                          float *parts, size_t count) {
    float below = *slope, share = 0.0f;
    for (size_t n = here(); n < count; n += all()) {
        bool above = x[n] > 0.0f;
        to[n] = above ? gradient[n] : below * gradient[n];
        share += above ? 0.0f : x[n] * gradient[n];
    }
    share = block_sum(share);
    if (threadIdx.x == 0) parts[blockIdx.x] = share;
}

// Exact Gaussian error linear unit and its gradient.
extern "C" __global__ void gelu(const float *x, float *y, size_t count) {
    for (size_t n = here(); n < count; n += all()) y[n] = x[n] * normcdff(x[n]);
}

extern "C" __global__ void gelu_gradient(const float *x, const float *gradient, float *to, size_t count) {
    for (size_t n = here(); n < count; n += all()) {
        float density = 0.3989422804014327f * expf(-0.5f * x[n] * x[n]);
        to[n] = gradient[n] * (normcdff(x[n]) + x[n] * density);
    }
}

// Attention. Items of a batch have `queries` and `keys` steps; heads lie beside each other in a step.

struct Heads {
    u32 heads, queries, keys, width, values;
    // Whether there is a bias, and how far apart it lies along items, heads and queries.
    u32 biased, by_item, by_head, by_query;
    float scale;
    // Dropout as in `dropout.rs`; a limit of 0 drops nothing.
    u32 limit;
    float factor;
    u64 seed;
};

static __device__ __forceinline__ float kept(const Heads &heads, u64 place) {
    if (heads.limit == 0) return 1.0f;
    u64 x = heads.seed + (place + 1) * 0x9E3779B97F4A7C15ull;
    x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9ull;
    x = (x ^ (x >> 27)) * 0x94D049BB133111EBull;
    return (u32)((x ^ (x >> 31)) >> 32) < heads.limit ? 0.0f : heads.factor;
}

// Where a block works: one head of one item, several queries. Keys and values of the head lie in shared memory, rows one
// number longer than they need, so that lanes with neighbouring keys read different banks.
struct Head {
    u32 item, head;
    float *keys, *values;
    // Of this warp: its query, scaled; its gradient; two rows over the keys.
    float *query, *pull, *weights, *second;
};

static __device__ __forceinline__ Head enter(const Heads &size, const float *k, const float *v) {
    extern __shared__ float memory[];
    Head at;
    at.item = blockIdx.x / size.heads;
    at.head = blockIdx.x % size.heads;
    at.keys = memory;
    at.values = at.keys + size.keys * (size.width + 1);
    u32 warp = threadIdx.x / 32;
    at.query = at.values + size.keys * (size.values + 1) + warp * (size.width + size.values + 2 * size.keys);
    at.pull = at.query + size.width;
    at.weights = at.pull + size.values;
    at.second = at.weights + size.keys;
    size_t first = (size_t)at.item * size.keys;
    for (u32 n = threadIdx.x; n < size.keys * size.width; n += blockDim.x) {
        u32 key = n / size.width, channel = n % size.width;
        at.keys[key * (size.width + 1) + channel] =
            k[((first + key) * size.heads + at.head) * size.width + channel];
    }
    for (u32 n = threadIdx.x; n < size.keys * size.values; n += blockDim.x) {
        u32 key = n / size.values, channel = n % size.values;
        at.values[key * (size.values + 1) + channel] =
            v[((first + key) * size.heads + at.head) * size.values + channel];
    }
    __syncthreads();
    return at;
}

// The weights of one query, before dropout, by one warp.
static __device__ __forceinline__ void weigh(const Heads &size, const Head &at, const float *q, const float *bias,
                                             u32 query) {
    u32 lane = threadIdx.x % 32;
    const float *from = q + (((size_t)at.item * size.queries + query) * size.heads + at.head) * size.width;
    for (u32 n = lane; n < size.width; n += 32) at.query[n] = from[n] * size.scale;
    __syncwarp();
    const float *added =
        bias + (size_t)at.item * size.by_item + (size_t)at.head * size.by_head + (size_t)query * size.by_query;
    float most = __int_as_float(0xff800000);
    for (u32 key = lane; key < size.keys; key += 32) {
        const float *row = at.keys + key * (size.width + 1);
        float logit = 0.0f;
        for (u32 n = 0; n < size.width; n++) logit += at.query[n] * row[n];
        if (size.biased) logit += added[key];
        at.weights[key] = logit;
        most = fmaxf(most, logit);
    }
    most = warp_max(most);
    float sum = 0.0f;
    for (u32 key = lane; key < size.keys; key += 32) {
        float power = expf(at.weights[key] - most);
        at.weights[key] = power;
        sum += power;
    }
    float scale = 1.0f / warp_sum(sum);
    for (u32 key = lane; key < size.keys; key += 32) at.weights[key] *= scale;
}

// The first weight of a query among all, as dropout counts them.
static __device__ __forceinline__ u64 place_of(const Heads &size, u32 query) {
    return ((u64)blockIdx.x * size.queries + query) * size.keys;
}

// Blocks along x have heads of items, along y queries.
extern "C" __global__ void attention(const float *q, const float *k, const float *v, const float *bias, float *y,
                                     Heads size) {
    Head at = enter(size, k, v);
    u32 lane = threadIdx.x % 32, warps = blockDim.x / 32;
    for (u32 query = blockIdx.y * warps + threadIdx.x / 32; query < size.queries; query += gridDim.y * warps) {
        weigh(size, at, q, bias, query);
        u64 first = place_of(size, query);
        for (u32 key = lane; key < size.keys; key += 32) at.weights[key] *= kept(size, first + key);
        __syncwarp();
        float *to = y + (((size_t)at.item * size.queries + query) * size.heads + at.head) * size.values;
        for (u32 n = lane; n < size.values; n += 32) {
            float sum = 0.0f;
            for (u32 key = 0; key < size.keys; key++) sum += at.weights[key] * at.values[key * (size.values + 1) + n];
            to[n] = sum;
        }
        __syncwarp();
    }
}

// The gradient of the queries. For those of keys and values: `left`, the weights after dropout, and `of_logits`, the gradients
// of the logits with their scale, both [items, heads, queries, keys].
extern "C" __global__ void attention_queries(const float *q, const float *k, const float *v, const float *bias,
                                             const float *gradient, float *to, float *left, float *of_logits,
                                             Heads size) {
    Head at = enter(size, k, v);
    u32 lane = threadIdx.x % 32, warps = blockDim.x / 32;
    for (u32 query = blockIdx.y * warps + threadIdx.x / 32; query < size.queries; query += gridDim.y * warps) {
        weigh(size, at, q, bias, query);
        size_t step = ((size_t)at.item * size.queries + query) * size.heads + at.head;
        for (u32 n = lane; n < size.values; n += 32) at.pull[n] = gradient[step * size.values + n];
        __syncwarp();
        u64 first = place_of(size, query);
        float common = 0.0f;
        for (u32 key = lane; key < size.keys; key += 32) {
            const float *row = at.values + key * (size.values + 1);
            float of_weight = 0.0f;
            for (u32 n = 0; n < size.values; n++) of_weight += at.pull[n] * row[n];
            float factor = kept(size, first + key);
            left[first + key] = at.weights[key] * factor;
            of_weight *= factor;
            at.second[key] = of_weight;
            common += at.weights[key] * of_weight;
        }
        common = warp_sum(common);
        for (u32 key = lane; key < size.keys; key += 32) {
            float of_logit = size.scale * at.weights[key] * (at.second[key] - common);
            at.second[key] = of_logit;
            of_logits[first + key] = of_logit;
        }
        __syncwarp();
        for (u32 n = lane; n < size.width; n += 32) {
            float sum = 0.0f;
            for (u32 key = 0; key < size.keys; key++) sum += at.second[key] * at.keys[key * (size.width + 1) + n];
            to[step * size.width + n] = sum;
        }
        __syncwarp();
    }
}

// The gradients of keys and values. Blocks along x have heads of items, along y 32 keys: a warp of the eight has four of them,
// a lane two channels of each, of at most 64.
extern "C" __global__ void attention_keys(const float *q, const float *gradient, const float *left,
                                          const float *of_logits, float *to_keys, float *to_values, Heads size) {
    __shared__ float pulls[32][32], weights[32][32], queries[32][64], seen[32][64];
    u32 item = blockIdx.x / size.heads, head = blockIdx.x % size.heads;
    u32 lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    u32 first_key = blockIdx.y * 32;
    float of_key[4][2] = {}, of_value[4][2] = {};
    for (u32 first = 0; first < size.queries; first += 32) {
        u32 count = min(32u, size.queries - first);
        __syncthreads();
        for (u32 n = warp; n < 32; n += 8) {
            bool real = n < count && first_key + lane < size.keys;
            size_t from = ((size_t)blockIdx.x * size.queries + first + n) * size.keys + first_key + lane;
            pulls[n][lane] = real ? of_logits[from] : 0.0f;
            weights[n][lane] = real ? left[from] : 0.0f;
            size_t step = ((size_t)item * size.queries + first + n) * size.heads + head;
            for (u32 channel = lane; channel < 64; channel += 32) {
                queries[n][channel] = n < count && channel < size.width ? q[step * size.width + channel] : 0.0f;
                seen[n][channel] = n < count && channel < size.values ? gradient[step * size.values + channel] : 0.0f;
            }
        }
        __syncthreads();
        for (u32 n = 0; n < count; n++)
            for (u32 key = 0; key < 4; key++) {
                float pull = pulls[n][warp * 4 + key], weight = weights[n][warp * 4 + key];
                of_key[key][0] += pull * queries[n][lane];
                of_key[key][1] += pull * queries[n][lane + 32];
                of_value[key][0] += weight * seen[n][lane];
                of_value[key][1] += weight * seen[n][lane + 32];
            }
    }
    for (u32 key = 0; key < 4; key++) {
        u32 number = first_key + warp * 4 + key;
        if (number >= size.keys) continue;
        size_t step = ((size_t)item * size.keys + number) * size.heads + head;
        for (u32 half = 0; half < 2; half++) {
            u32 channel = lane + half * 32;
            if (channel < size.width) to_keys[step * size.width + channel] = of_key[key][half];
            if (channel < size.values) to_values[step * size.values + channel] = of_value[key][half];
        }
    }
}
