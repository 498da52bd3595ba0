// Recurrent layers, a whole sequence in one launch. Everything is f32, row-major and without gaps.
//
// A warp has some channels of the state and keeps them from the first step to the last; between steps all blocks of the grid wait
// for each other, for which it must be launched as a cooperative one. The counter by which they wait is the only number that
// more than one thread writes, and no result is made of it: results do not depend on scheduling.

typedef unsigned int u32;

static const u32 NONE = 0xffffffff;

static __device__ __forceinline__ float squash(float x) { return 1.0f / (1.0f + expf(-x)); }

// Waits until all blocks have come here; `arrived` has counted to `goal` then.
static __device__ __forceinline__ void wait_for_all(u32 *arrived, u32 goal) {
    __syncthreads();
    if (threadIdx.x == 0) {
        __threadfence();
        atomicAdd(arrived, 1);
        while (*(volatile u32 *)arrived < goal) {
        }
        __threadfence();
    }
    __syncthreads();
}

static __device__ __forceinline__ float sum_of_warp(float x) {
    for (u32 other = 16; other > 0; other /= 2) x += __shfl_xor_sync(0xffffffff, x, other);
    return x;
}

// The step that is read at place `n` of a sequence, and the one before it.
static __device__ __forceinline__ void order(u32 n, u32 steps, u32 backwards, u32 *step, u32 *before) {
    *step = backwards ? steps - 1 - n : n;
    *before = n == 0 ? NONE : backwards ? *step + 1 : *step - 1;
}

// kept of an LSTM: input, forget, cell and output gates, memory, state; where `seeing`, its input, forget and output gates see the
// memory through `sees`. kept of a GRU: reset, update and new gates, what the state gave to the last of them, state.
template <u32 GATES, u32 ITEMS>
static __device__ void forwards(const float *given, const float *weights, const float *bias, const float *sees, u32 seeing,
                                const float *start, float *kept, u32 *arrived, u32 steps, u32 batch, u32 hidden,
                                u32 backwards) {
    extern __shared__ float state[];
    const u32 PARTS = GATES == 4 ? 6 : 5;
    u32 lane = threadIdx.x % 32, warps = gridDim.x * (blockDim.x / 32);
    u32 first = blockIdx.x * (blockDim.x / 32) + threadIdx.x / 32;
    for (u32 n = 0; n < steps; n++) {
        u32 step, before;
        order(n, steps, backwards, &step, &before);
        for (u32 at = threadIdx.x; at < batch * hidden; at += blockDim.x) {
            u32 item = at / hidden, channel = at % hidden;
            // Others wrote it: not from the cache of this multiprocessor.
            state[at] = before == NONE ? start[at]
                                       : __ldcg(kept + (((size_t)before * batch + item) * PARTS + PARTS - 1) * hidden + channel);
        }
        __syncthreads();
        for (u32 channel = first; channel < hidden; channel += warps) {
            for (u32 item0 = 0; item0 < batch; item0 += ITEMS) {
                float sums[ITEMS][GATES];
#pragma unroll
                for (u32 i = 0; i < ITEMS; i++)
#pragma unroll
                    for (u32 gate = 0; gate < GATES; gate++) sums[i][gate] = 0.0f;
#pragma unroll 4
                for (u32 k = lane; k < hidden; k += 32) {
                    float w[GATES];
#pragma unroll
                    for (u32 gate = 0; gate < GATES; gate++) w[gate] = __ldg(weights + ((size_t)gate * hidden + channel) * hidden + k);
#pragma unroll
                    for (u32 i = 0; i < ITEMS; i++) {
                        float s = item0 + i < batch ? state[(item0 + i) * hidden + k] : 0.0f;
#pragma unroll
                        for (u32 gate = 0; gate < GATES; gate++) sums[i][gate] += w[gate] * s;
                    }
                }
                float own[GATES];
#pragma unroll
                for (u32 i = 0; i < ITEMS; i++)
#pragma unroll
                    for (u32 gate = 0; gate < GATES; gate++) {
                        float sum = sum_of_warp(sums[i][gate]);
                        if (lane == i) own[gate] = sum;
                    }
                u32 item = item0 + lane;
                if (lane >= ITEMS || item >= batch) continue;
                size_t row = (size_t)step * batch + item;
                float *to = kept + row * PARTS * hidden + channel;
                const float *from = kept + ((size_t)before * batch + item) * PARTS * hidden + channel;
                const float *in = given + row * GATES * hidden + channel;
#pragma unroll
                for (u32 gate = 0; gate < GATES; gate++) own[gate] += bias[gate * hidden + channel];
                if (GATES == 4) {
                    float memory = before == NONE ? 0.0f : from[4 * (size_t)hidden];
                    float see_in = seeing ? sees[channel] * memory : 0.0f;
                    float see_forget = seeing ? sees[hidden + channel] * memory : 0.0f;
                    float input = squash(in[0] + own[0] + see_in);
                    float forget = squash(in[hidden] + own[1] + see_forget);
                    float fresh = tanhf(in[2 * (size_t)hidden] + own[2]);
                    memory = forget * memory + input * fresh;
                    float see_out = seeing ? sees[2 * (size_t)hidden + channel] * memory : 0.0f;
                    float output = squash(in[3 * (size_t)hidden] + own[GATES - 1] + see_out);
                    to[0] = input;
                    to[hidden] = forget;
                    to[2 * (size_t)hidden] = fresh;
                    to[3 * (size_t)hidden] = output;
                    to[4 * (size_t)hidden] = memory;
                    to[5 * (size_t)hidden] = output * tanhf(memory);
                } else {
                    float reset = squash(in[0] + own[0]), update = squash(in[hidden] + own[1]), recalled = own[2];
                    float fresh = tanhf(in[2 * (size_t)hidden] + reset * recalled);
                    to[0] = reset;
                    to[hidden] = update;
                    to[2 * (size_t)hidden] = fresh;
                    to[3 * (size_t)hidden] = recalled;
                    to[4 * (size_t)hidden] = fresh + update * (state[item * hidden + channel] - fresh);
                }
            }
        }
        if (n + 1 < steps) wait_for_all(arrived, (n + 1) * gridDim.x);
    }
}

// Gradients before the gates of every step, four parts of `hidden` each; `turned` are the weights `[hidden, GATES hidden]`. `pull` and
// `carry` begin as zeros and end with what reaches the start.
template <u32 GATES, u32 ITEMS>
static __device__ void backwards_through(const float *kept, const float *gradient, const float *turned, const float *sees,
                                         u32 seeing, const float *start, float *pull, float *carry, float *to, u32 *arrived,
                                         u32 steps, u32 batch, u32 hidden, u32 backwards) {
    const u32 PARTS = GATES == 4 ? 6 : 5;
    u32 lane = threadIdx.x % 32, warps = gridDim.x * (blockDim.x / 32);
    u32 first = blockIdx.x * (blockDim.x / 32) + threadIdx.x / 32;
    for (u32 left = steps; left > 0; left--) {
        u32 step, before;
        order(left - 1, steps, backwards, &step, &before);
        for (u32 channel = first; channel < hidden; channel += warps)
            for (u32 item = lane; item < batch; item += 32) {
                size_t n = (size_t)item * hidden + channel, row = (size_t)step * batch + item;
                const float *own = kept + row * PARTS * hidden + channel;
                const float *from = kept + ((size_t)before * batch + item) * PARTS * hidden + channel;
                float *into = to + row * 4 * hidden + channel;
                float of_state = gradient[row * hidden + channel] + pull[n];
                if (GATES == 4) {
                    float input = own[0], forget = own[hidden], fresh = own[2 * (size_t)hidden], output = own[3 * (size_t)hidden];
                    float squashed = tanhf(own[4 * (size_t)hidden]);
                    float earlier = before == NONE ? 0.0f : from[4 * (size_t)hidden];
                    float of_output = of_state * squashed * output * (1.0f - output);
                    float memory = carry[n] + of_state * output * (1.0f - squashed * squashed);
                    if (seeing) memory += sees[2 * (size_t)hidden + channel] * of_output;
                    float of_input = memory * fresh * input * (1.0f - input);
                    float of_forget = memory * earlier * forget * (1.0f - forget);
                    into[0] = of_input;
                    into[hidden] = of_forget;
                    into[2 * (size_t)hidden] = memory * input * (1.0f - fresh * fresh);
                    into[3 * (size_t)hidden] = of_output;
                    float on = memory * forget;
                    if (seeing) on += sees[channel] * of_input + sees[hidden + channel] * of_forget;
                    carry[n] = on;
                } else {
                    float reset = own[0], update = own[hidden], fresh = own[2 * (size_t)hidden];
                    float recalled = own[3 * (size_t)hidden];
                    float earlier = before == NONE ? start[n] : from[4 * (size_t)hidden];
                    of_state += carry[n];
                    float of_fresh = of_state * (1.0f - update) * (1.0f - fresh * fresh);
                    into[0] = of_fresh * recalled * reset * (1.0f - reset);
                    into[hidden] = of_state * (earlier - fresh) * update * (1.0f - update);
                    into[2 * (size_t)hidden] = of_fresh * reset;
                    into[3 * (size_t)hidden] = of_fresh;
                    carry[n] = of_state * update;
                }
            }
        wait_for_all(arrived, (steps - left + 1) * gridDim.x);
        const float *gates = to + (size_t)step * batch * 4 * hidden;
        u32 wide = GATES * hidden;
        for (u32 channel = first; channel < hidden; channel += warps)
            for (u32 item0 = 0; item0 < batch; item0 += ITEMS) {
                float sums[ITEMS];
#pragma unroll
                for (u32 i = 0; i < ITEMS; i++) sums[i] = 0.0f;
#pragma unroll 4
                for (u32 k = lane; k < wide; k += 32) {
                    float w = __ldg(turned + (size_t)channel * wide + k);
#pragma unroll
                    for (u32 i = 0; i < ITEMS; i++)
                        if (item0 + i < batch) sums[i] += w * __ldcg(gates + (size_t)(item0 + i) * 4 * hidden + k);
                }
#pragma unroll
                for (u32 i = 0; i < ITEMS; i++) {
                    float sum = sum_of_warp(sums[i]);
                    // By the thread that reads it in the next step.
                    if (item0 + i < batch && lane == (item0 + i) % 32) pull[(size_t)(item0 + i) * hidden + channel] = sum;
                }
            }
    }
}

#define LAYER(NAME, GATES, ITEMS)                                                                                           \
    extern "C" __global__ void NAME##_##ITEMS(const float *given, const float *weights, const float *bias, const float *sees, \
                                              u32 seeing, const float *start, float *kept, u32 *arrived, u32 steps,         \
                                              u32 batch, u32 hidden, u32 backwards) {                                       \
        forwards<GATES, ITEMS>(given, weights, bias, sees, seeing, start, kept, arrived, steps, batch, hidden, backwards);  \
    }                                                                                                                       \
    extern "C" __global__ void NAME##_gradient_##ITEMS(const float *kept, const float *gradient, const float *turned,       \
                                                       const float *sees, u32 seeing, const float *start, float *pull,      \
                                                       float *carry, float *to, u32 *arrived, u32 steps, u32 batch,         \
                                                       u32 hidden, u32 backwards) {                                         \
        backwards_through<GATES, ITEMS>(kept, gradient, turned, sees, seeing, start, pull, carry, to, arrived, steps,       \
                                        batch, hidden, backwards);                                                          \
    }

LAYER(lstm, 4, 1)
LAYER(lstm, 4, 4)
LAYER(gru, 3, 1)
LAYER(gru, 3, 4)

// `[rows, columns]` to `[columns, rows]`.
extern "C" __global__ void turn(const float *from, float *to, u32 rows, u32 columns) {
    size_t count = (size_t)rows * columns;
    for (size_t n = (size_t)blockIdx.x * blockDim.x + threadIdx.x; n < count; n += (size_t)gridDim.x * blockDim.x)
        to[n] = from[(n % rows) * columns + n / rows];
}

// An LSTM that looks at words before every step. Everything given has `looking` channels for the attention, then four times `hidden`
// for the gates; words have before them whether they are seen. `query` is room for `batch` times `looking`, `memory` begins as zeros.
// Every block works out the weights of the words by itself: that is less than waiting for another.
extern "C" __global__ void attending(const float *given, const float *words, const float *weights, const float *score,
                                     float *query, float *memory, float *to, u32 *arrived, u32 steps, u32 batch, u32 length,
                                     u32 looking, u32 hidden) {
    extern __shared__ float shared[];
    float *state = shared, *asks = state + (size_t)batch * hidden, *shares = asks + looking;
    size_t width = (size_t)looking + 4 * hidden;
    u32 lane = threadIdx.x % 32, warp = threadIdx.x / 32, own_warps = blockDim.x / 32, warps = gridDim.x * own_warps;
    u32 first = blockIdx.x * own_warps + warp, goal = 0;
    for (u32 step = 0; step < steps; step++) {
        for (u32 at = threadIdx.x; at < batch * hidden; at += blockDim.x)
            state[at] = step == 0 ? 0.0f : __ldcg(to + (size_t)(step - 1) * batch * hidden + at);
        __syncthreads();
        for (u32 row = first; row < looking; row += warps)
            for (u32 item = 0; item < batch; item++) {
                float sum = 0.0f;
#pragma unroll 4
                for (u32 k = lane; k < hidden; k += 32) sum += __ldg(weights + (size_t)row * hidden + k) * state[item * hidden + k];
                sum = sum_of_warp(sum);
                if (lane == 0) query[item * looking + row] = given[((size_t)step * batch + item) * width + row] + sum;
            }
        goal += gridDim.x;
        wait_for_all(arrived, goal);
        for (u32 item = 0; item < batch; item++) {
            const float *of_item = words + (size_t)item * length * (width + 1);
            for (u32 n = threadIdx.x; n < looking; n += blockDim.x) asks[n] = __ldcg(query + item * looking + n);
            __syncthreads();
            for (u32 word = warp; word < length; word += own_warps) {
                const float *of = of_item + word * (width + 1);
                float sum = 0.0f;
                for (u32 n = lane; n < looking; n += 32) sum += score[n] * tanhf(asks[n] + of[1 + n]);
                sum = sum_of_warp(sum);
                if (lane == 0) shares[word] = of[0] > 0.0f ? sum : -1e30f;
            }
            __syncthreads();
            // Every thread adds up all of them by itself: there are few.
            float most = shares[0], total = 0.0f;
            for (u32 word = 1; word < length; word++) most = fmaxf(most, shares[word]);
            for (u32 word = 0; word < length; word++) total += expf(shares[word] - most);
            for (u32 channel = first; channel < hidden; channel += warps) {
                float gates[4];
#pragma unroll
                for (u32 gate = 0; gate < 4; gate++) {
                    size_t row = looking + (size_t)gate * hidden + channel;
                    float sum = 0.0f;
#pragma unroll 4
                    for (u32 k = lane; k < hidden; k += 32) sum += __ldg(weights + row * hidden + k) * state[item * hidden + k];
                    for (u32 word = lane; word < length; word += 32)
                        sum += expf(shares[word] - most) / total * of_item[word * (width + 1) + 1 + row];
                    gates[gate] = sum_of_warp(sum) + given[((size_t)step * batch + item) * width + row];
                }
                if (lane == 0) {
                    size_t at = (size_t)item * hidden + channel;
                    float now = squash(gates[1]) * memory[at] + squash(gates[0]) * tanhf(gates[2]);
                    memory[at] = now;
                    to[(size_t)step * batch * hidden + at] = squash(gates[3]) * tanhf(now);
                }
            }
            // The next item writes over what this one's threads still read.
            __syncthreads();
        }
        goal += gridDim.x;
        if (step + 1 < steps) wait_for_all(arrived, goal);
    }
}
