// Kernels for convolutions and pooling over volumes. Everything is f32, channels last and without gaps.
//
// One thread writes each number, so results do not depend on scheduling. Blocks are as wide as a row is long, up to a warp,
// and as many rows high as fit: where a row lies is worked out once per row and thread, and nothing is divided after that.

typedef unsigned int u32;

// Where a window stands: extents of input, output, kernel, stride and padding before, axes time, height, width.
struct Placed {
    u32 input[3], output[3], kernel[3], stride[3], before[3];
};

// What the window of one output covers: where it begins in the input, negative in the padding, and which of its places,
// from `low` up to and without `high`, lie inside.
struct Reach {
    size_t item;
    int from[3], low[3], high[3];
};

static __device__ __forceinline__ Reach reach(const Placed &p, u32 output) {
    Reach r;
    for (int axis = 2; axis >= 0; axis--) {
        int from = (int)(output % p.output[axis] * p.stride[axis]) - (int)p.before[axis];
        output /= p.output[axis];
        r.from[axis] = from;
        r.low[axis] = max(-from, 0);
        r.high[axis] = min((int)p.kernel[axis], (int)p.input[axis] - from);
    }
    r.item = output;
    return r;
}

// The row of the input at a place of the kernel. Along the last axis it may lie before the line's first.
static __device__ __forceinline__ long long source(const Placed &p, const Reach &r, int kt, int kh, int kw) {
    return ((long long)(r.item * p.input[0] + (r.from[0] + kt)) * p.input[1] + (r.from[1] + kh)) * p.input[2] +
           (r.from[2] + kw);
}

#define EACH_ROW(row, rows)                                                                                            \
    for (u32 row = blockIdx.x * blockDim.y + threadIdx.y; row < rows; row += gridDim.x * blockDim.y)

#define EACH_COLUMN(column, columns) for (u32 column = threadIdx.x; column < columns; column += blockDim.x)

// to[row][channel] = x[row][channel], 0 from `channels` up to `wide`
extern "C" __global__ void volume_widen(const float *x, float *to, u32 rows, u32 channels, u32 wide) {
    EACH_ROW(row, rows) {
        EACH_COLUMN(n, wide) to[(size_t)row * wide + n] = n < channels ? x[(size_t)row * channels + n] : 0.0f;
    }
}

// to[row][place][channel] = x[source of output `first + row` at place][channel], 0 in the padding. `channels` counts four at a time.
// What a line of the kernel reads lies side by side.
extern "C" __global__ void volume_gather(const float4 *x, float4 *to, Placed p, u32 first, u32 rows, u32 channels) {
    u32 line = p.kernel[2] * channels;
    EACH_ROW(row, rows) {
        Reach r = reach(p, first + row);
        u32 low = r.low[2] * channels, high = max(r.high[2], 0) * channels;
        float4 *into = to + (size_t)row * p.kernel[0] * p.kernel[1] * line;
        for (int kt = 0; kt < (int)p.kernel[0]; kt++) {
            for (int kh = 0; kh < (int)p.kernel[1]; kh++, into += line) {
                bool inside = kt >= r.low[0] && kt < r.high[0] && kh >= r.low[1] && kh < r.high[1];
                const float4 *from = x + source(p, r, kt, kh, 0) * (long long)channels;
                EACH_COLUMN(n, line) into[n] = inside && n >= low && n < high ? from[n] : make_float4(0.0f, 0.0f, 0.0f, 0.0f);
            }
        }
    }
}

// y = min(max(y + bias + past, low), high), without `past` unless something `adds`
extern "C" __global__ void volume_finish(float *y, const float *bias, const float *past, u32 adds, u32 rows, u32 channels,
                                         float low, float high) {
    EACH_ROW(row, rows) {
        float *line = y + (size_t)row * channels;
        const float *more = past + (adds ? (size_t)row * channels : 0);
        EACH_COLUMN(channel, channels) {
            float sum = line[channel] + bias[channel] + (adds ? more[channel] : 0.0f);
            line[channel] = fminf(fmaxf(sum, low), high);
        }
    }
}

extern "C" __global__ void volume_depthwise(const float *x, const float *weight, const float *bias, float *y, Placed p,
                                            u32 rows, u32 channels, float low, float high) {
    EACH_ROW(row, rows) {
        Reach r = reach(p, row);
        EACH_COLUMN(channel, channels) {
            float sum = bias[channel];
            for (int kt = r.low[0]; kt < r.high[0]; kt++)
                for (int kh = r.low[1]; kh < r.high[1]; kh++)
                    for (int kw = r.low[2]; kw < r.high[2]; kw++) {
                        u32 place = (kt * p.kernel[1] + kh) * p.kernel[2] + kw;
                        sum += x[source(p, r, kt, kh, kw) * channels + channel] * weight[place * channels + channel];
                    }
            y[(size_t)row * channels + channel] = fminf(fmaxf(sum, low), high);
        }
    }
}

static __device__ __forceinline__ float larger(float a, float b) { return fmaxf(a, b); }

static __device__ __forceinline__ float4 larger(float4 a, float4 b) {
    return make_float4(fmaxf(a.x, b.x), fmaxf(a.y, b.y), fmaxf(a.z, b.z), fmaxf(a.w, b.w));
}

// T is float4 where the channels allow; `channels` counts Ts.
template <typename T>
static __device__ __forceinline__ void max_pool(const T *x, T *y, const Placed &p, u32 rows, u32 channels, T least) {
    EACH_ROW(row, rows) {
        Reach r = reach(p, row);
        EACH_COLUMN(channel, channels) {
            T largest = least;
            for (int kt = r.low[0]; kt < r.high[0]; kt++)
                for (int kh = r.low[1]; kh < r.high[1]; kh++)
                    for (int kw = r.low[2]; kw < r.high[2]; kw++)
                        largest = larger(largest, x[source(p, r, kt, kh, kw) * channels + channel]);
            y[(size_t)row * channels + channel] = largest;
        }
    }
}

extern "C" __global__ void volume_max_pool(const float *x, float *y, Placed p, u32 rows, u32 channels) {
    max_pool<float>(x, y, p, rows, channels, -INFINITY);
}

extern "C" __global__ void volume_max_pool_4(const float4 *x, float4 *y, Placed p, u32 rows, u32 channels) {
    max_pool<float4>(x, y, p, rows, channels, make_float4(-INFINITY, -INFINITY, -INFINITY, -INFINITY));
}

// A convolution as one product, rounded to TF32, whose left factor is gathered from the volume while it is multiplied.
//
// A block of four warps has ROWS outputs and COLUMNS of their channels, and goes through the inner axis (places of the kernel, channels of
// each) DEPTH at a time: while one stage is multiplied, the next two are on their way. Rows of both stages are as long as lets
// the threads of a warp read from different banks.
static const u32 ROWS = 128, DEPTH = 16, STAGES = 3;

// Sixteen bytes, or as many zeros, which arrive when they are waited for.
static __device__ __forceinline__ void fetch(float *to, const float *from, bool inside) {
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"((u32)__cvta_generic_to_shared(to)), "l"(from),
                 "r"(inside ? 16 : 0));
}

// The nearest number that a product of TF32 reads: it drops the last 13 bits.
static __device__ __forceinline__ u32 rounded(float x) { return __float_as_uint(x) + 0x1000; }

// sums[16][8] += left[16][8] * right[8][8], spread over the lanes of a warp.
static __device__ __forceinline__ void multiply(float (&sums)[4], const u32 (&left)[4], const u32 (&right)[2]) {
    asm volatile("mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
                 : "+f"(sums[0]), "+f"(sums[1]), "+f"(sums[2]), "+f"(sums[3])
                 : "r"(left[0]), "r"(left[1]), "r"(left[2]), "r"(left[3]), "r"(right[0]), "r"(right[1]));
}

template <u32 COLUMNS>
static __device__ void convolve(const float *x, const float *weight, const float *bias, const float *past, u32 adds, float *y,
                                const Placed &p, u32 rows, u32 channels, u32 inner, u32 columns, float low, float high) {
    __shared__ __align__(16) float left[STAGES][ROWS][DEPTH + 4];
    __shared__ __align__(16) float right[STAGES][DEPTH][COLUMNS + 8];
    const u32 ACROSS = COLUMNS / 32, DOWN = 4 / ACROSS;          // warps
    const u32 HIGH = ROWS / DOWN / 16, WIDE = 4;                 // small products of a warp
    const u32 PARTS = DEPTH / 4, APART = 128 / PARTS;            // threads that fetch a row of `left`, rows that are fetched at once
    u32 thread = threadIdx.x, lane = thread % 32, warp = thread / 32, group = lane / 4, member = lane % 4;
    u32 blocks_across = (columns + COLUMNS - 1) / COLUMNS;
    u32 first_row = blockIdx.x / blocks_across * ROWS, first_column = blockIdx.x % blocks_across * COLUMNS;
    u32 warp_row = warp / ACROSS * (HIGH * 16), warp_column = warp % ACROSS * (WIDE * 8);

    // Where the windows of the rows that this thread fetches begin.
    int from[ROWS / APART][3], start[ROWS / APART];
#pragma unroll
    for (u32 n = 0; n < ROWS / APART; n++) {
        u32 row = first_row + thread / PARTS + n * APART;
        Reach r = reach(p, min(row, rows - 1));
        start[n] = (int)source(p, r, 0, 0, 0);
#pragma unroll
        for (u32 axis = 0; axis < 3; axis++) from[n][axis] = r.from[axis];
        if (row >= rows) from[n][0] = -(1 << 30); // before any volume
    }
    // The place of the kernel and the channel that it fetches next.
    u32 channel = thread % PARTS * 4, depth = 0;
    int kt = 0, kh = 0, kw = 0;
    auto settle = [&]() {
        while (channel >= channels) {
            channel -= channels;
            if (++kw == (int)p.kernel[2]) {
                kw = 0;
                if (++kh == (int)p.kernel[1]) kh = 0, kt++;
            }
        }
    };
    settle();
    auto fetch_stage = [&](u32 stage) {
        int ahead = (kt * (int)p.input[1] + kh) * (int)p.input[2] + kw;
#pragma unroll
        for (u32 n = 0; n < ROWS / APART; n++) {
            bool inside = kt < (int)p.kernel[0] && (u32)(from[n][0] + kt) < p.input[0] &&
                          (u32)(from[n][1] + kh) < p.input[1] && (u32)(from[n][2] + kw) < p.input[2];
            const float *source = inside ? x + (long long)(start[n] + ahead) * channels + channel : x;
            fetch(&left[stage][thread / PARTS + n * APART][thread % PARTS * 4], source, inside);
        }
#pragma unroll
        for (u32 n = 0; n < DEPTH * COLUMNS / 4 / 128; n++) {
            u32 piece = thread + n * 128, row = piece / (COLUMNS / 4), column = piece % (COLUMNS / 4) * 4;
            bool inside = depth + row < inner && first_column + column < columns;
            const float *source = inside ? weight + (size_t)(depth + row) * columns + first_column + column : weight;
            fetch(&right[stage][row][column], source, inside);
        }
        channel += DEPTH;
        depth += DEPTH;
        settle();
    };

    float sums[HIGH][WIDE][4];
#pragma unroll
    for (u32 h = 0; h < HIGH; h++)
#pragma unroll
        for (u32 w = 0; w < WIDE; w++)
#pragma unroll
            for (u32 n = 0; n < 4; n++) sums[h][w][n] = 0.0f;
    u32 stages = (inner + DEPTH - 1) / DEPTH;
#pragma unroll
    for (u32 stage = 0; stage < STAGES - 1; stage++) {
        if (stage < stages) fetch_stage(stage);
        asm volatile("cp.async.commit_group;");
    }
    for (u32 n = 0; n < stages; n++) {
        asm volatile("cp.async.wait_group %0;" ::"n"(STAGES - 2) : "memory");
        __syncthreads();
        if (n + STAGES - 1 < stages) fetch_stage((n + STAGES - 1) % STAGES);
        asm volatile("cp.async.commit_group;");
        u32 stage = n % STAGES;
#pragma unroll
        for (u32 k = 0; k < DEPTH; k += 8) {
            u32 of_left[HIGH][4], of_right[WIDE][2];
#pragma unroll
            for (u32 h = 0; h < HIGH; h++) {
                const float(*at)[DEPTH + 4] = &left[stage][warp_row + h * 16 + group];
                of_left[h][0] = rounded(at[0][k + member]);
                of_left[h][1] = rounded(at[8][k + member]);
                of_left[h][2] = rounded(at[0][k + member + 4]);
                of_left[h][3] = rounded(at[8][k + member + 4]);
            }
#pragma unroll
            for (u32 w = 0; w < WIDE; w++) {
                u32 column = warp_column + w * 8 + group;
                of_right[w][0] = rounded(right[stage][k + member][column]);
                of_right[w][1] = rounded(right[stage][k + member + 4][column]);
            }
#pragma unroll
            for (u32 h = 0; h < HIGH; h++)
#pragma unroll
                for (u32 w = 0; w < WIDE; w++) multiply(sums[h][w], of_left[h], of_right[w]);
        }
    }
#pragma unroll
    for (u32 w = 0; w < WIDE; w++) {
        u32 column = first_column + warp_column + w * 8 + member * 2;
        if (column >= columns) continue;
        float2 add = *(const float2 *)(bias + column);
#pragma unroll
        for (u32 h = 0; h < HIGH; h++)
#pragma unroll
            for (u32 half = 0; half < 2; half++) {
                u32 row = first_row + warp_row + h * 16 + half * 8 + group;
                if (row >= rows) continue;
                size_t at = (size_t)row * columns + column;
                float2 more = adds ? *(const float2 *)(past + at) : make_float2(0.0f, 0.0f);
                float2 result = make_float2(fminf(fmaxf(sums[h][w][half * 2] + add.x + more.x, low), high),
                                            fminf(fmaxf(sums[h][w][half * 2 + 1] + add.y + more.y, low), high));
                *(float2 *)(y + at) = result;
            }
    }
}

#define CONVOLVE(COLUMNS)                                                                                                 \
    extern "C" __global__ void __launch_bounds__(128, 3)                                                                  \
        volume_convolve_##COLUMNS(const float *x, const float *weight, const float *bias, const float *past, u32 adds,    \
                                  float *y, Placed p, u32 rows, u32 channels, u32 inner, u32 columns, float low,          \
                                  float high) {                                                                           \
        convolve<COLUMNS>(x, weight, bias, past, adds, y, p, rows, channels, inner, columns, low, high);                  \
    }

CONVOLVE(32)
CONVOLVE(64)
