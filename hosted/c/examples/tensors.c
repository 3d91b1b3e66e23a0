/* Two members exchange a tensor in each step, and check it.
 *
 *     printf 'name = "t"\nnodes = 2\nrendezvous.pool_mib = 4\n' > t.toml
 *     weft run t.toml --state 4KiB -- ./tensors 1000
 *
 * A member that saves what it has received before its next poll receives nothing twice: the example
 * in Rust also shows what its next incarnation does.
 */
#include "check.h"

#define LEN_MAX 80000

static float sent[LEN_MAX], received[LEN_MAX];

/* What member `rank` sends in `step`: within a message, by one read, by several. */
static size_t values(uint16_t rank, uint64_t step, float *into) {
    static const size_t lens[] = {16, 1000, LEN_MAX};
    size_t len = lens[step % 3];
    for (size_t at = 0; at < len; at++) {
        into[at] = 2.0f * (float)(step % 10007) + (float)rank + (float)at;
    }
    return len;
}

/* How many of the tensors that were sent have arrived, and whether the other has finished. */
static uint64_t consumed;
static bool has_finished;

static weft_event next(weft_member *member) {
    weft_event event;
    check(weft_next_event(member, &event, WEFT_FOREVER));
    consumed += event.kind == WEFT_EVENT_CONSUMED;
    has_finished = has_finished || event.kind == WEFT_EVENT_FINISHED;
    return event;
}

/* Waits until the receive has ended; whether with a tensor. */
static bool has_come(weft_member *member, uint32_t request) {
    for (;;) {
        weft_event event = next(member);
        if (event.kind == WEFT_EVENT_ENDED && event.request == request) {
            return event.received == WEFT_RECEIVED_VALUE;
        }
    }
}

int main(int argc, char **argv) {
    uint64_t steps = argument(argc, argv, 1, 1000), exchanged = 0;
    weft_member *member;
    weft_identity self;
    check(weft_join(&member, WEFT_FOREVER));
    check(weft_identify(member, &self));
    uint16_t other = (uint16_t)(1 - self.rank);

    for (uint64_t step = 0; step < steps; step++) {
        uint32_t offer, request;
        size_t len = values(self.rank, step, sent), bytes;
        weft_shape shape = {.dtype = WEFT_F32, .rank = 1, .dims = {len}};
        weft_expect expect = {.dtype = WEFT_F32, .shape = &shape};
        check(weft_send(member, other, "state", (int64_t)step, &shape, (uint8_t *)sent,
                        len * sizeof *sent, &offer, WEFT_FOREVER));
        check(weft_receive(member, other, "state", (int64_t)step, &expect, &request, 30000000));
        if (!has_come(member, request)) {
            fprintf(stderr, "no tensor in step %llu\n", (unsigned long long)step);
            return EXIT_FAILURE;
        }
        check(weft_take_tensor(member, request, (uint8_t *)received, sizeof received, &bytes,
                               &shape));
        values(other, step, sent);
        for (size_t at = 0; at < len; at++) {
            if (bytes != len * sizeof *sent || received[at] != sent[at]) {
                fprintf(stderr, "a wrong tensor in step %llu\n", (unsigned long long)step);
                return EXIT_FAILURE;
            }
        }
        check(weft_save(member, (uint8_t *)&step, sizeof step));
        check(weft_clean_step(member, (int64_t)step - 1));
        exchanged++;
    }
    /* What this member has sent ends with it, and the other may not have the last one yet. */
    while (consumed < exchanged && !has_finished) {
        next(member);
    }
    /* And that this member has its last one is reported with a poll. */
    check(weft_wait(member, 0));
    printf("exchanged %llu tensors\n", (unsigned long long)exchanged);
    return EXIT_SUCCESS;
}
