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

// to[row][place][channel] = x[source of output `first + row` at place][channel], 0 in the padding; rows of `to` are `apart`
// long, with zeros at their end. T is float4 where the channels allow; `channels` and `apart` count Ts. What a line of the kernel reads lies side by side.
template <typename T>
static __device__ __forceinline__ void gather(const T *x, T *to, const Placed &p, u32 first, u32 rows, u32 channels,
                                              u32 apart, T zero) {
    u32 line = p.kernel[2] * channels;
    EACH_ROW(row, rows) {
        Reach r = reach(p, first + row);
        u32 low = r.low[2] * channels, high = max(r.high[2], 0) * channels;
        T *into = to + (size_t)row * apart;
        for (int kt = 0; kt < (int)p.kernel[0]; kt++) {
            for (int kh = 0; kh < (int)p.kernel[1]; kh++, into += line) {
                bool inside = kt >= r.low[0] && kt < r.high[0] && kh >= r.low[1] && kh < r.high[1];
                const T *from = x + source(p, r, kt, kh, 0) * (long long)channels;
                EACH_COLUMN(n, line) into[n] = inside && n >= low && n < high ? from[n] : zero;
            }
        }
        EACH_COLUMN(n, (u32)(to + (size_t)(row + 1) * apart - into)) into[n] = zero;
    }
}

extern "C" __global__ void volume_gather(const float *x, float *to, Placed p, u32 first, u32 rows, u32 channels,
                                         u32 apart) {
    gather<float>(x, to, p, first, rows, channels, apart, 0.0f);
}

extern "C" __global__ void volume_gather_4(const float4 *x, float4 *to, Placed p, u32 first, u32 rows, u32 channels,
                                           u32 apart) {
    gather<float4>(x, to, p, first, rows, channels, apart, make_float4(0.0f, 0.0f, 0.0f, 0.0f));
}

// y = min(max(y + bias, low), high)
extern "C" __global__ void volume_finish(float *y, const float *bias, u32 rows, u32 channels, float low, float high) {
    EACH_ROW(row, rows) {
        float *line = y + (size_t)row * channels;
        EACH_COLUMN(channel, channels) line[channel] = fminf(fmaxf(line[channel] + bias[channel], low), high);
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

extern "C" __global__ void volume_max_pool(const float *x, float *y, Placed p, u32 rows, u32 channels) {
    EACH_ROW(row, rows) {
        Reach r = reach(p, row);
        EACH_COLUMN(channel, channels) {
            float largest = -INFINITY;
            for (int kt = r.low[0]; kt < r.high[0]; kt++)
                for (int kh = r.low[1]; kh < r.high[1]; kh++)
                    for (int kw = r.low[2]; kw < r.high[2]; kw++)
                        largest = fmaxf(largest, x[source(p, r, kt, kh, kw) * channels + channel]);
            y[(size_t)row * channels + channel] = largest;
        }
    }
}
