// Recurrent layers, a whole sequence in one launch. Everything is f32, row-major and without gaps.
//
// A warp has some channels of the state and keeps them from the first step to the last; between steps all blocks of the grid wait
// for each other, for which it must be launched as a cooperative one. The counter by which they wait is the only number that
// more than one thread writes, and no result is made of it: results do not depend on scheduling.
//
// Waiting empties the first-level cache, so weights that are read from memory are read from the second level at every step. Where a
// warp has one channel of at most `32 KEPT`, its weights stay in registers.

typedef unsigned int u32;

static const u32 NONE = 0xffffffff;

// Numbers of a row of weights that a lane keeps.
static const u32 KEPT = 16;

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
template <u32 GATES, u32 ITEMS, bool KEEPS>
static __device__ void forwards(const float *given, const float *weights, const float *bias, const float *sees, u32 seeing,
                                const float *start, float *kept, u32 *arrived, u32 steps, u32 batch, u32 hidden,
                                u32 backwards) {
    extern __shared__ float state[];
    const u32 PARTS = GATES == 4 ? 6 : 5;
    u32 lane = threadIdx.x % 32, warps = gridDim.x * (blockDim.x / 32);
    u32 first = blockIdx.x * (blockDim.x / 32) + threadIdx.x / 32;
    // Where weights are kept there is one channel, `first`, for which the loop over channels below turns once.
    float own_weights[GATES][KEPT];
    if (KEEPS) {
#pragma unroll
        for (u32 gate = 0; gate < GATES; gate++)
#pragma unroll
            for (u32 turn = 0; turn < KEPT; turn++) {
                u32 k = turn * 32 + lane;
                bool inside = first < hidden && k < hidden;
                own_weights[gate][turn] = inside ? weights[((size_t)gate * hidden + first) * hidden + k] : 0.0f;
            }
    }
    const u32 turns = KEEPS ? KEPT : (hidden + 31) / 32;
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
#pragma unroll(KEEPS ? KEPT : 4)
                for (u32 turn = 0; turn < turns; turn++) {
                    u32 k = turn * 32 + lane;
                    bool inside = k < hidden;
                    float w[GATES];
#pragma unroll
                    for (u32 gate = 0; gate < GATES; gate++)
                        w[gate] = KEEPS    ? own_weights[gate][turn]
                                  : inside ? __ldg(weights + ((size_t)gate * hidden + channel) * hidden + k)
                                           : 0.0f;
#pragma unroll
                    for (u32 i = 0; i < ITEMS; i++) {
                        float s = inside && item0 + i < batch ? state[(item0 + i) * hidden + k] : 0.0f;
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

#define FORWARDS(NAME, GATES, ITEMS, KEEPS)                                                                                 \
    extern "C" __global__ void NAME(const float *given, const float *weights, const float *bias, const float *sees, u32 seeing, \
                                    const float *start, float *kept, u32 *arrived, u32 steps, u32 batch, u32 hidden,        \
                                    u32 backwards) {                                                                        \
        forwards<GATES, ITEMS, KEEPS>(given, weights, bias, sees, seeing, start, kept, arrived, steps, batch, hidden,       \
                                      backwards);                                                                           \
    }

#define LAYER(NAME, GATES, ITEMS)                                                                                           \
    FORWARDS(NAME##_##ITEMS, GATES, ITEMS, false)                                                                           \
    FORWARDS(NAME##_kept_##ITEMS, GATES, ITEMS, true)                                                                       \
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

static const u32 GATES_AND_LOOK = 5, MOST_ITEMS = 4;

// An LSTM that looks at words before every step. Everything given has `looking` channels for the attention, then four times `hidden`
// for the gates; words have before them whether they are seen. `parts` is room for `batch` times `length` times the blocks.
//
// A warp has one row of the attention and one channel of the state. A step goes through the grid twice: first every block hands in
// what its rows of the attention give to each word, then everyone adds that up in the same order and has the weights of the words.
extern "C" __global__ void __launch_bounds__(256) attending(const float *given, const float *words, const float *weights,
                                                            const float *score, float *parts, float *to, u32 *arrived,
                                                            u32 steps, u32 batch, u32 length, u32 looking, u32 hidden) {
    extern __shared__ float shared[];
    const u32 WIDE = KEPT * 32;
    u32 lane = threadIdx.x % 32, warp = threadIdx.x / 32, warps = blockDim.x / 32, channel = blockIdx.x * warps + warp;
    u32 pairs = batch * length, goal = 0;
    size_t width = (size_t)looking + 4 * hidden;
    float *state = shared;                       // [batch][WIDE], zeros from `hidden` on
    float *seen = state + batch * WIDE;          // [batch][length]
    float *logits = seen + pairs;                // [batch][length]
    float *bent = logits + pairs;                // [warps][batch][length]
    float *gives = bent + (size_t)warps * pairs; // [warps][GATES_AND_LOOK][batch][length]: what words give to the rows of a warp
    gives += (size_t)warp * GATES_AND_LOOK * pairs;
    bent += (size_t)warp * pairs;

    size_t rows[GATES_AND_LOOK]; // the attention's first
    bool has[GATES_AND_LOOK];
    float own[GATES_AND_LOOK][KEPT];
#pragma unroll
    for (u32 r = 0; r < GATES_AND_LOOK; r++) {
        has[r] = channel < (r == 0 ? looking : hidden);
        rows[r] = r == 0 ? channel : looking + (size_t)(r - 1) * hidden + channel;
#pragma unroll
        for (u32 turn = 0; turn < KEPT; turn++) {
            u32 k = turn * 32 + lane;
            own[r][turn] = has[r] && k < hidden ? weights[rows[r] * hidden + k] : 0.0f;
        }
        for (u32 pair = lane; pair < pairs; pair += 32)
            gives[r * pairs + pair] = has[r] ? words[pair * (width + 1) + 1 + rows[r]] : 0.0f;
    }
    for (u32 pair = threadIdx.x; pair < pairs; pair += blockDim.x) seen[pair] = words[pair * (width + 1)];
    for (u32 at = threadIdx.x; at < batch * WIDE; at += blockDim.x) state[at] = 0.0f;
    float scores = has[0] ? score[channel] : 0.0f;
    float memory = 0.0f; // of the item whose number the lane has
    size_t own_row = lane == 0 ? channel : looking + (size_t)(lane - 1) * hidden + channel;
    bool own_given = lane < GATES_AND_LOOK && channel < (lane == 0 ? looking : hidden);

    for (u32 step = 0; step < steps; step++) {
        // Lane r has what the step gives to row r.
        float in[MOST_ITEMS];
#pragma unroll
        for (u32 item = 0; item < MOST_ITEMS; item++)
            in[item] = own_given && item < batch ? given[((size_t)step * batch + item) * width + own_row] : 0.0f;
        if (step > 0)
            for (u32 at = threadIdx.x; at < batch * hidden; at += blockDim.x)
                state[at / hidden * WIDE + at % hidden] = __ldcg(to + (size_t)(step - 1) * batch * hidden + at);
        __syncthreads();
        float sums[MOST_ITEMS][GATES_AND_LOOK];
#pragma unroll
        for (u32 item = 0; item < MOST_ITEMS; item++) {
            if (item >= batch) continue;
#pragma unroll
            for (u32 r = 0; r < GATES_AND_LOOK; r++) sums[item][r] = lane == r ? in[item] : 0.0f;
#pragma unroll
            for (u32 turn = 0; turn < KEPT; turn++) {
                float s = state[item * WIDE + turn * 32 + lane];
#pragma unroll
                for (u32 r = 0; r < GATES_AND_LOOK; r++) sums[item][r] += own[r][turn] * s;
            }
#pragma unroll
            for (u32 r = 0; r < GATES_AND_LOOK; r++) sums[item][r] = sum_of_warp(sums[item][r]);
            for (u32 word = lane; word < length; word += 32)
                bent[item * length + word] = scores * tanhf(sums[item][0] + gives[item * length + word]);
        }
        __syncthreads();
        for (u32 pair = threadIdx.x; pair < pairs; pair += blockDim.x) {
            const float *first = logits + pairs; // where the first warp's lie
            float sum = 0.0f;
            for (u32 other = 0; other < warps; other++) sum += first[(size_t)other * pairs + pair];
            parts[(size_t)pair * gridDim.x + blockIdx.x] = sum;
        }
        goal += gridDim.x;
        wait_for_all(arrived, goal);
        for (u32 pair = warp; pair < pairs; pair += warps) {
            float sum = 0.0f;
            for (u32 block = lane; block < gridDim.x; block += 32) sum += __ldcg(parts + (size_t)pair * gridDim.x + block);
            sum = sum_of_warp(sum);
            if (lane == 0) logits[pair] = seen[pair] > 0.0f ? sum : -1e30f;
        }
        __syncthreads();
#pragma unroll
        for (u32 item = 0; item < MOST_ITEMS; item++) {
            if (item >= batch) continue;
            const float *of_item = logits + item * length;
            float most = -INFINITY, total = 0.0f, seen_by[4] = {0.0f, 0.0f, 0.0f, 0.0f};
            for (u32 word = 0; word < length; word++) most = fmaxf(most, of_item[word]);
            for (u32 word = lane; word < length; word += 32) {
                float share = expf(of_item[word] - most);
                total += share;
#pragma unroll
                for (u32 gate = 0; gate < 4; gate++) seen_by[gate] += share * gives[(gate + 1) * pairs + item * length + word];
            }
            total = sum_of_warp(total);
            float gates[4];
#pragma unroll
            for (u32 gate = 0; gate < 4; gate++) gates[gate] = sums[item][gate + 1] + sum_of_warp(seen_by[gate]) / total;
            if (lane == item && has[1]) {
                memory = squash(gates[1]) * memory + squash(gates[0]) * tanhf(gates[2]);
                to[((size_t)step * batch + item) * hidden + channel] = squash(gates[3]) * tanhf(memory);
            }
        }
        goal += gridDim.x;
        if (step + 1 < steps) wait_for_all(arrived, goal);
    }
}
