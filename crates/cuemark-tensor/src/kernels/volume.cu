// Kernels for convolutions and pooling over volumes. Everything is f32, channels last and without gaps.
//
// One thread writes each number, so results do not depend on scheduling.

typedef unsigned int u32;

// Where a window stands: extents of input, output, kernel, stride and padding before, axes time, height, width.
struct Placed {
    u32 input[3], output[3], kernel[3], stride[3], before[3];
};

static __device__ __forceinline__ size_t here() { return (size_t)blockIdx.x * blockDim.x + threadIdx.x; }

static __device__ __forceinline__ size_t all() { return (size_t)gridDim.x * blockDim.x; }

// The row of the input that `output` (an output row of any item) reads at `place` of the kernel, or -1 in the padding.
static __device__ __forceinline__ long long source(const Placed &p, size_t output, u32 place) {
    u32 w = output % p.output[2], h = output / p.output[2] % p.output[1];
    size_t rest = output / p.output[2] / p.output[1];
    u32 t = rest % p.output[0];
    size_t item = rest / p.output[0];
    int kw = place % p.kernel[2], kh = place / p.kernel[2] % p.kernel[1], kt = place / p.kernel[2] / p.kernel[1];
    int from_t = (int)(t * p.stride[0]) + kt - (int)p.before[0];
    int from_h = (int)(h * p.stride[1]) + kh - (int)p.before[1];
    int from_w = (int)(w * p.stride[2]) + kw - (int)p.before[2];
    if (from_t < 0 || from_h < 0 || from_w < 0 || from_t >= (int)p.input[0] || from_h >= (int)p.input[1] ||
        from_w >= (int)p.input[2])
        return -1;
    return (long long)(((item * p.input[0] + from_t) * p.input[1] + from_h) * p.input[2] + from_w);
}

// to[row][place][channel] = x[source of row `first + row` at place][channel], 0 in the padding. T is float4 where the
// channels allow; `channels` counts Ts.
template <typename T>
static __device__ __forceinline__ void gather(const T *x, T *to, const Placed &p, size_t first, size_t rows,
                                              u32 channels, T zero) {
    u32 places = p.kernel[0] * p.kernel[1] * p.kernel[2];
    size_t count = rows * places * channels;
    for (size_t n = here(); n < count; n += all()) {
        u32 channel = n % channels;
        size_t row = n / channels;
        long long from = source(p, first + row / places, row % places);
        to[n] = from < 0 ? zero : x[from * channels + channel];
    }
}

extern "C" __global__ void volume_gather(const float *x, float *to, Placed p, size_t first, size_t rows, u32 channels) {
    gather<float>(x, to, p, first, rows, channels, 0.0f);
}

extern "C" __global__ void volume_gather_4(const float4 *x, float4 *to, Placed p, size_t first, size_t rows,
                                           u32 channels) {
    gather<float4>(x, to, p, first, rows, channels, make_float4(0.0f, 0.0f, 0.0f, 0.0f));
}

// y = min(max(y + bias, low), high)
extern "C" __global__ void volume_finish(float *y, const float *bias, size_t count, u32 channels, float low,
                                         float high) {
    for (size_t n = here(); n < count; n += all())
        y[n] = fminf(fmaxf(y[n] + bias[n % channels], low), high);
}

extern "C" __global__ void volume_depthwise(const float *x, const float *weight, const float *bias, float *y, Placed p,
                                            size_t count, u32 channels, float low, float high) {
    u32 places = p.kernel[0] * p.kernel[1] * p.kernel[2];
    for (size_t n = here(); n < count; n += all()) {
        u32 channel = n % channels;
        float sum = bias[channel];
        for (u32 place = 0; place < places; place++) {
            long long from = source(p, n / channels, place);
            if (from >= 0)
                sum += x[from * channels + channel] * weight[(size_t)place * channels + channel];
        }
        y[n] = fminf(fmaxf(sum, low), high);
    }
}

extern "C" __global__ void volume_max_pool(const float *x, float *y, Placed p, size_t count, u32 channels) {
    u32 places = p.kernel[0] * p.kernel[1] * p.kernel[2];
    for (size_t n = here(); n < count; n += all()) {
        u32 channel = n % channels;
        float largest = -INFINITY;
        for (u32 place = 0; place < places; place++) {
            long long from = source(p, n / channels, place);
            if (from >= 0)
                largest = fmaxf(largest, x[from * channels + channel]);
        }
        y[n] = largest;
    }
}
