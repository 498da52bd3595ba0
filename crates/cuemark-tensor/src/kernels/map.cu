// Kernels for maps of spans, for dropout and for the optimiser. Everything is f32, row-major and without gaps.
//
// No kernel uses atomics: every number has one thread that writes it, so results do not depend on scheduling.

#include <cstdint>

typedef unsigned int u32;

static __device__ __forceinline__ size_t here() { return (size_t)blockIdx.x * blockDim.x + threadIdx.x; }

static __device__ __forceinline__ size_t all() { return (size_t)gridDim.x * blockDim.x; }

// Convolution weights between their published form and one with the channels of a place side by side.
//
// A block moves up to `blockDim.x` neighbours along the `lanes` axis, for one `row` of the other axis and one group; each
// lane has `area` numbers in a row on the published side. On the placed side, lanes are neighbours.
static __device__ __forceinline__ void move_weights(const float *from, float *to, bool placing, u32 area, u32 lanes,
                                                    u32 published_lane, u32 published_row, size_t published_group,
                                                    size_t placed_place, size_t placed_row, size_t placed_group) {
    extern __shared__ float tile[];
    u32 first = blockIdx.x * blockDim.x, row = blockIdx.y, group = blockIdx.z;
    u32 count = min(blockDim.x, lanes - first);
    size_t published = group * published_group + (size_t)row * published_row;
    size_t placed = group * placed_group + row * placed_row + first;
    if (placing) {
        for (u32 n = threadIdx.x; n < count * area; n += blockDim.x)
            tile[n] = from[published + (size_t)(first + n / area) * published_lane + n % area];
        __syncthreads();
        if (threadIdx.x < count)
            for (u32 place = 0; place < area; place++)
                to[placed + place * placed_place + threadIdx.x] = tile[threadIdx.x * area + place];
    } else {
        if (threadIdx.x < count)
            for (u32 place = 0; place < area; place++)
                tile[threadIdx.x * area + place] = from[placed + place * placed_place + threadIdx.x];
        __syncthreads();
        for (u32 n = threadIdx.x; n < count * area; n += blockDim.x)
            to[published + (size_t)(first + n / area) * published_lane + n % area] = tile[n];
    }
}

extern "C" __global__ void place_weights(const float *from, float *to, u32 area, u32 lanes, u32 published_lane,
                                         u32 published_row, size_t published_group, size_t placed_place,
                                         size_t placed_row, size_t placed_group) {
    move_weights(from, to, true, area, lanes, published_lane, published_row, published_group, placed_place, placed_row,
                 placed_group);
}

extern "C" __global__ void publish_weights(const float *from, float *to, u32 area, u32 lanes, u32 published_lane,
                                           u32 published_row, size_t published_group, size_t placed_place,
                                           size_t placed_row, size_t placed_group) {
    move_weights(from, to, false, area, lanes, published_lane, published_row, published_group, placed_place, placed_row,
                 placed_group);
}

// The kernels below have one block per row; its threads share the row's channels.

// to[group][row][place][channel of the group] = from[neighbour of row at place][channel], 0 where there is none.
//
// Rows are maps of `to_cells` each, one item after the other; places run from `first` for `places`. T is float4 where
// widths allow.
template <typename T>
static __device__ __forceinline__ void gather(const T *from, const u32 *list, T *to, u32 to_cells, u32 from_cells,
                                              u32 area, u32 first, u32 places, u32 width, u32 groups, T zero) {
    size_t rows = gridDim.x, row = blockIdx.x;
    u32 in_group = width / groups;
    const u32 *neighbours = list + (size_t)(blockIdx.x % to_cells) * area + first;
    const T *item = from + (size_t)(blockIdx.x / to_cells) * from_cells * width;
    for (u32 channel = threadIdx.x; channel < width; channel += blockDim.x) {
        T *into = to + ((size_t)(channel / in_group) * rows + row) * places * in_group + channel % in_group;
#pragma unroll 4
        for (u32 place = 0; place < places; place++) {
            u32 neighbour = neighbours[place];
            into[(size_t)place * in_group] = neighbour ? item[(size_t)(neighbour - 1) * width + channel] : zero;
        }
    }
}

extern "C" __global__ void gather_rows(const float *from, const u32 *list, float *to, u32 to_cells, u32 from_cells,
                                       u32 area, u32 first, u32 places, u32 width, u32 groups) {
    gather<float>(from, list, to, to_cells, from_cells, area, first, places, width, groups, 0.0f);
}

extern "C" __global__ void gather_rows_4(const float4 *from, const u32 *list, float4 *to, u32 to_cells, u32 from_cells,
                                         u32 area, u32 first, u32 places, u32 width, u32 groups) {
    gather<float4>(from, list, to, to_cells, from_cells, area, first, places, width, groups,
                   make_float4(0.0f, 0.0f, 0.0f, 0.0f));
}

static __device__ __forceinline__ float add(float a, float b) { return a + b; }

static __device__ __forceinline__ float4 add(float4 a, float4 b) {
    return make_float4(a.x + b.x, a.y + b.y, a.z + b.z, a.w + b.w);
}

// to[row][channel] (+)= the sum over places of from[neighbour of row at place][place][channel].
template <typename T>
static __device__ __forceinline__ void sum_gathered(const T *from, const u32 *list, T *to, u32 to_cells, u32 from_cells,
                                                    u32 area, u32 first, u32 places, u32 width, u32 more, T zero) {
    const u32 *neighbours = list + (size_t)(blockIdx.x % to_cells) * area + first;
    const T *item = from + (size_t)(blockIdx.x / to_cells) * from_cells * places * width;
    for (u32 channel = threadIdx.x; channel < width; channel += blockDim.x) {
        T *into = to + (size_t)blockIdx.x * width + channel;
        T sum = more ? *into : zero;
#pragma unroll 4
        for (u32 place = 0; place < places; place++) {
            u32 neighbour = neighbours[place];
            T value = neighbour ? item[((size_t)(neighbour - 1) * places + place) * width + channel] : zero;
            sum = add(sum, value);
        }
        *into = sum;
    }
}

extern "C" __global__ void gather_sum(const float *from, const u32 *list, float *to, u32 to_cells, u32 from_cells,
                                      u32 area, u32 first, u32 places, u32 width, u32 more) {
    sum_gathered<float>(from, list, to, to_cells, from_cells, area, first, places, width, more, 0.0f);
}

extern "C" __global__ void gather_sum_4(const float4 *from, const u32 *list, float4 *to, u32 to_cells, u32 from_cells,
                                        u32 area, u32 first, u32 places, u32 width, u32 more) {
    sum_gathered<float4>(from, list, to, to_cells, from_cells, area, first, places, width, more,
                         make_float4(0.0f, 0.0f, 0.0f, 0.0f));
}

// y = y + bias, and where asked for max(y, 0) * weight of the cell.
extern "C" __global__ void finish(float *y, const float *bias, const float *weights, u32 cells, u32 width, u32 relu) {
    float *row = y + (size_t)blockIdx.x * width;
    float weight = weights[blockIdx.x % cells];
    for (u32 channel = threadIdx.x; channel < width; channel += blockDim.x) {
        float value = row[channel] + bias[channel];
        row[channel] = relu ? fmaxf(value, 0.0f) * weight : value;
    }
}

// The gradient before `finish` with relu.
extern "C" __global__ void unfinish(const float *y, const float *gradient, const float *weights, float *to, u32 cells,
                                    u32 width) {
    size_t row = (size_t)blockIdx.x * width;
    float weight = weights[blockIdx.x % cells];
    for (u32 channel = threadIdx.x; channel < width; channel += blockDim.x)
        to[row + channel] = y[row + channel] > 0.0f ? gradient[row + channel] * weight : 0.0f;
}

// cells: start and end of each, by start, then end.
extern "C" __global__ void span_max(const float *clips, const u32 *cells, float *to, u32 count, u32 clip_count,
                                    u32 width) {
    u32 cell = blockIdx.x % count;
    const float *item = clips + (size_t)(blockIdx.x / count) * clip_count * width;
    u32 start = cells[2 * cell], end = cells[2 * cell + 1];
    for (u32 channel = threadIdx.x; channel < width; channel += blockDim.x) {
        float largest = item[(size_t)start * width + channel];
        for (u32 clip = start + 1; clip <= end; clip++) {
            float value = item[(size_t)clip * width + channel];
            if (value > largest) largest = value;
        }
        to[(size_t)blockIdx.x * width + channel] = largest;
    }
}

// Sums over the rows of each of gridDim.y parts: to[part][column]. A block of 32 x 8 threads has 32 columns.
extern "C" __global__ void sum_rows(const float *from, float *to, size_t rows, u32 width) {
    __shared__ float sums[8][33];
    u32 column = blockIdx.x * 32 + threadIdx.x;
    size_t each = (rows + gridDim.y - 1) / gridDim.y;
    size_t begin = each * blockIdx.y, end = min(rows, begin + each);
    float sum = 0.0f;
    if (column < width)
        for (size_t row = begin + threadIdx.y; row < end; row += 8) sum += from[row * width + column];
    sums[threadIdx.y][threadIdx.x] = sum;
    __syncthreads();
    if (threadIdx.y == 0 && column < width) {
        for (u32 n = 1; n < 8; n++) sum += sums[n][threadIdx.x];
        to[(size_t)blockIdx.y * width + column] = sum;
    }
}

// One thread has one channel of one item, so no two write the same number. `to` starts as zeros.
extern "C" __global__ void span_max_gradient(const float *clips, const u32 *cells, const float *gradient, float *to,
                                             u32 batch, u32 count, u32 clip_count, u32 width) {
    size_t total = (size_t)batch * width;
    for (size_t n = here(); n < total; n += all()) {
        u32 channel = n % width;
        size_t item = n / width;
        const float *from = clips + item * clip_count * width + channel;
        const float *pull = gradient + item * count * width + channel;
        float *into = to + item * clip_count * width + channel;
        u32 row = 0xffffffff, next = 0, at = 0;
        float largest = 0.0f;
        for (u32 cell = 0; cell < count; cell++) {
            u32 start = cells[2 * cell], end = cells[2 * cell + 1];
            if (start != row) {
                row = at = start;
                next = start + 1;
                largest = from[(size_t)start * width];
            }
            for (; next <= end; next++) {
                float value = from[(size_t)next * width];
                if (value > largest) {
                    largest = value;
                    at = next;
                }
            }
            into[(size_t)at * width] += pull[(size_t)cell * width];
        }
    }
}

// Numbers of one tensor among many.
struct Numbers {
    const float *from;
    size_t count;
};

// The squares of several tensors, one along y: a sum per block along x, in double precision.
extern "C" __global__ void sums_of_squares(const Numbers *tensors, double *to) {
    __shared__ double sums[256];
    Numbers of = tensors[blockIdx.y];
    double sum = 0.0;
    for (size_t n = here(); n < of.count; n += all()) sum += (double)of.from[n] * (double)of.from[n];
    sums[threadIdx.x] = sum;
    __syncthreads();
    for (u32 half = 128; half > 0; half /= 2) {
        if (threadIdx.x < half) sums[threadIdx.x] += sums[threadIdx.x + half];
        __syncthreads();
    }
    if (threadIdx.x == 0) to[(size_t)blockIdx.y * gridDim.x + blockIdx.x] = sums[0];
}

// One parameter's step. `means` are of the gradients, then of their squares.
struct AdamStep {
    float *parameter;
    const float *gradient;
    float *means;
    size_t count;
    float factor, decay, mean_share, square_keep, square_share;
    float keep, size, correction, eps;
};

// The steps of several parameters, one along y.
extern "C" __global__ void adam_steps(const AdamStep *steps) {
    AdamStep step = steps[blockIdx.y];
    float *squares = step.means + step.count;
    for (size_t n = here(); n < step.count; n += all()) {
        float value = step.parameter[n];
        float g = step.gradient[n] * step.factor + step.decay * value;
        float mean = step.means[n] + (g - step.means[n]) * step.mean_share;
        float square = squares[n] * step.square_keep + step.square_share * g * g;
        step.means[n] = mean;
        squares[n] = square;
        step.parameter[n] = value * step.keep - step.size * (mean / (sqrtf(square) / step.correction + step.eps));
    }
}

// Recurrent layers. `step` and `before` number steps; `before` is 0xffffffff where a sequence begins.

static __device__ __forceinline__ float squash(float x) { return 1.0f / (1.0f + expf(-x)); }

// Kernels of LSTMs: where `seeing`, input, forget and output gates see the memory through `sees`.

// kept: input, forget, cell and output gates, memory, state.
extern "C" __global__ void lstm_step(const float *given, const float *remembered, const float *bias, const float *sees,
                                     u32 seeing, const float *start, float *kept, u32 step, u32 before, u32 batch, u32 hidden) {
    size_t total = (size_t)batch * hidden;
    for (size_t n = here(); n < total; n += all()) {
        size_t item = n / hidden, channel = n % hidden, row = (size_t)step * batch + item;
        float gates[4];
        for (u32 gate = 0; gate < 4; gate++) {
            size_t at = gate * hidden + channel;
            gates[gate] = given[row * 4 * hidden + at] + remembered[item * 4 * hidden + at] + bias[at];
        }
        float *to = kept + row * 6 * hidden + channel;
        const float *from = kept + ((size_t)before * batch + item) * 6 * hidden + channel;
        float memory = before == 0xffffffff ? 0.0f : from[4 * (size_t)hidden];
        float fresh = tanhf(gates[2]);
        if (seeing) {
            gates[0] += sees[channel] * memory;
            gates[1] += sees[hidden + channel] * memory;
        }
        float input = squash(gates[0]), forget = squash(gates[1]);
        memory = forget * memory + input * fresh;
        if (seeing) gates[3] += sees[2 * (size_t)hidden + channel] * memory;
        float output = squash(gates[3]);
        to[0] = input;
        to[hidden] = forget;
        to[2 * (size_t)hidden] = fresh;
        to[3 * (size_t)hidden] = output;
        to[4 * (size_t)hidden] = memory;
        to[5 * (size_t)hidden] = output * tanhf(memory);
    }
}

// kept: reset, update and new gates, what the state gave to the last of them, state.
extern "C" __global__ void gru_step(const float *given, const float *remembered, const float *bias, const float *,
                                    u32, const float *start, float *kept, u32 step, u32 before, u32 batch, u32 hidden) {
    size_t total = (size_t)batch * hidden;
    for (size_t n = here(); n < total; n += all()) {
        size_t item = n / hidden, channel = n % hidden, row = (size_t)step * batch + item;
        const float *in = given + row * 3 * hidden + channel, *back = remembered + item * 3 * hidden + channel;
        const float *add = bias + channel;
        float *to = kept + row * 5 * hidden + channel;
        const float *from = kept + ((size_t)before * batch + item) * 5 * hidden + channel;
        float state = before == 0xffffffff ? start[n] : from[4 * (size_t)hidden];
        float reset = squash(in[0] + back[0] + add[0]);
        float update = squash(in[hidden] + back[hidden] + add[hidden]);
        float recalled = back[2 * (size_t)hidden] + add[2 * (size_t)hidden];
        float fresh = tanhf(in[2 * (size_t)hidden] + reset * recalled);
        to[0] = reset;
        to[hidden] = update;
        to[2 * (size_t)hidden] = fresh;
        to[3 * (size_t)hidden] = recalled;
        to[4 * (size_t)hidden] = fresh + update * (state - fresh);
    }
}

// pull: gradient of the state that later steps sent back. carry: gradient of the memory, past the products.
extern "C" __global__ void lstm_step_gradient(const float *kept, const float *gradient, const float *sees, u32 seeing,
                                              const float *start,
                                              const float *pull, float *carry, float *to, u32 step, u32 before,
                                              u32 batch, u32 hidden) {
    size_t total = (size_t)batch * hidden;
    for (size_t n = here(); n < total; n += all()) {
        size_t item = n / hidden, channel = n % hidden, row = (size_t)step * batch + item;
        const float *own = kept + row * 6 * hidden + channel;
        float input = own[0], forget = own[hidden], fresh = own[2 * (size_t)hidden], output = own[3 * (size_t)hidden];
        float squashed = tanhf(own[4 * (size_t)hidden]);
        const float *from = kept + ((size_t)before * batch + item) * 6 * hidden + channel;
        float earlier = before == 0xffffffff ? 0.0f : from[4 * (size_t)hidden];
        float of_state = gradient[row * hidden + channel] + pull[n];
        float of_memory = carry[n] + of_state * output * (1.0f - squashed * squashed);
        float of_output = of_state * squashed * output * (1.0f - output);
        if (seeing) of_memory += sees[2 * (size_t)hidden + channel] * of_output;
        float of_input = of_memory * fresh * input * (1.0f - input);
        float of_forget = of_memory * earlier * forget * (1.0f - forget);
        float *into = to + row * 4 * hidden + channel;
        into[0] = of_input;
        into[hidden] = of_forget;
        into[2 * (size_t)hidden] = of_memory * input * (1.0f - fresh * fresh);
        into[3 * (size_t)hidden] = of_output;
        carry[n] = of_memory * forget;
        if (seeing) carry[n] += sees[channel] * of_input + sees[hidden + channel] * of_forget;
    }
}

// to: gradients before reset and update, of what the state gave to the new gate, and before the new gate.
extern "C" __global__ void gru_step_gradient(const float *kept, const float *gradient, const float *, u32,
                                             const float *start,
                                             const float *pull, float *carry, float *to, u32 step, u32 before,
                                             u32 batch, u32 hidden) {
    size_t total = (size_t)batch * hidden;
    for (size_t n = here(); n < total; n += all()) {
        size_t item = n / hidden, channel = n % hidden, row = (size_t)step * batch + item;
        const float *own = kept + row * 5 * hidden + channel;
        float reset = own[0], update = own[hidden], fresh = own[2 * (size_t)hidden];
        float recalled = own[3 * (size_t)hidden];
        const float *from = kept + ((size_t)before * batch + item) * 5 * hidden + channel;
        float earlier = before == 0xffffffff ? start[n] : from[4 * (size_t)hidden];
        float of_state = gradient[row * hidden + channel] + pull[n] + carry[n];
        float of_fresh = of_state * (1.0f - update) * (1.0f - fresh * fresh);
        float *into = to + row * 4 * hidden + channel;
        into[0] = of_fresh * recalled * reset * (1.0f - reset);
        into[hidden] = of_state * (earlier - fresh) * update * (1.0f - update);
        into[2 * (size_t)hidden] = of_fresh * reset;
        into[3 * (size_t)hidden] = of_fresh;
        carry[n] = of_state * update;
    }
}

// One step of an LSTM that looks at words first, one block of whole warps per item. Everything given has `looking` channels for the
// attention, then four times `hidden` for the gates; words have before them whether they are seen.
extern "C" __global__ void attending_step(const float *given, const float *remembered, const float *words,
                                          const float *score, float *memory, float *to, u32 length, u32 looking,
                                          u32 hidden) {
    extern __shared__ float shares[];
    size_t width = (size_t)looking + 4 * hidden, item = blockIdx.x;
    given += item * width;
    remembered += item * width;
    words += item * length * (width + 1);
    u32 lane = threadIdx.x % 32, warp = threadIdx.x / 32, warps = blockDim.x / 32;
    for (u32 word = warp; word < length; word += warps) {
        const float *of = words + word * (width + 1);
        float sum = 0.0f;
        for (u32 n = lane; n < looking; n += 32) sum += score[n] * tanhf(given[n] + remembered[n] + of[1 + n]);
        for (u32 other = 16; other > 0; other /= 2) sum += __shfl_xor_sync(0xffffffff, sum, other);
        if (lane == 0) shares[word] = of[0] > 0.0f ? sum : -1e30f;
    }
    __syncthreads();
    // Every thread adds up all of them by itself: there are few.
    float most = shares[0], total = 0.0f;
    for (u32 word = 1; word < length; word++) most = fmaxf(most, shares[word]);
    for (u32 word = 0; word < length; word++) total += expf(shares[word] - most);
    __syncthreads();
    for (u32 word = threadIdx.x; word < length; word += blockDim.x) shares[word] = expf(shares[word] - most) / total;
    __syncthreads();
    for (u32 n = threadIdx.x; n < hidden; n += blockDim.x) {
        float gates[4];
        for (u32 gate = 0; gate < 4; gate++) {
            size_t channel = looking + (size_t)gate * hidden + n;
            gates[gate] = given[channel] + remembered[channel];
        }
        for (u32 word = 0; word < length; word++) {
            const float *of = words + word * (width + 1) + 1 + looking + n;
            float share = shares[word];
            for (u32 gate = 0; gate < 4; gate++) gates[gate] += share * of[(size_t)gate * hidden];
        }
        size_t at = item * hidden + n;
        float now = squash(gates[1]) * memory[at] + squash(gates[0]) * tanhf(gates[2]);
        memory[at] = now;
        to[at] = squash(gates[3]) * tanhf(now);
    }
}

// What reaches the state that a layer started from; `carried` says whether it also arrives past the products.
extern "C" __global__ void start_gradient(const float *pull, const float *carry, float *to, size_t count, u32 carried) {
    for (size_t n = here(); n < count; n += all()) to[n] = pull[n] + (carried ? carry[n] : 0.0f);
}

// The 32 bits that decide whether the number at a place is dropped; those of `dropout.rs`.
static __device__ __forceinline__ u32 bits(unsigned long long seed, size_t place) {
    unsigned long long x = seed + (place + 1) * 0x9E3779B97F4A7C15ull;
    x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9ull;
    x = (x ^ (x >> 27)) * 0x94D049BB133111EBull;
    return (u32)((x ^ (x >> 31)) >> 32);
}

// to = from, or 0 where the bits of a place are below `limit`, the rest scaled.
extern "C" __global__ void dropout(const float *from, float *to, size_t count, unsigned long long seed, u32 limit,
                                   float scale) {
    for (size_t n = here(); n < count; n += all()) to[n] = bits(seed, n) < limit ? 0.0f : from[n] * scale;
}

// to = x and what dropout leaves of the branch.
extern "C" __global__ void residual(const float *x, const float *branch, float *to, size_t count,
                                    unsigned long long seed, u32 limit, float scale) {
    for (size_t n = here(); n < count; n += all()) to[n] = x[n] + (bits(seed, n) < limit ? 0.0f : branch[n] * scale);
}
