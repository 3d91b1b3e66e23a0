/* Objects from one rte_ring go through Weft into another: an lcore of DPDK fills and drains the
 * rings, and another one is the member, which polls.
 *
 *     worker ─▶ [ tx ring ] ─▶ member ══ memory of the next ══▶ member ─▶ [ rx ring ] ─▶ worker
 *
 *     cc lcore.c $(pkg-config --cflags --libs weft libdpdk) -o lcore
 *     weft run -n 2 -- ./lcore 100000
 *
 * It needs Debian's dpdk-dev, and neither huge pages nor devices.
 */
#include "check.h"

#include <rte_eal.h>
#include <rte_launch.h>
#include <rte_lcore.h>
#include <rte_pause.h>
#include <rte_ring.h>
#include <sched.h>
#include <string.h>

#define RING_LEN 1024
#define BURST 32

static struct rte_ring *tx, *rx;
static uint64_t count;

/* What has been taken from the ring to be put. */
static void *objects[BURST];
static unsigned first, held;

/* What has long steps before the loop: as a step of the member, for it polls nothing. */
struct start {
    char *program;
    bool is_done;
};

static void start_dpdk(void *context) {
    struct start *start = context;
    char *arguments[] = {start->program,  "--no-huge",         "--no-pci",   "--no-shconf",
                         "--no-telemetry", "--log-level=error", "-m",         "64",
                         "--lcores",      "0@(0-1),1@(0-1)"};
    if (rte_eal_init(sizeof arguments / sizeof *arguments, arguments) < 0) {
        return;
    }
    tx = rte_ring_create("tx", RING_LEN, SOCKET_ID_ANY, RING_F_SP_ENQ | RING_F_SC_DEQ);
    rx = rte_ring_create("rx", RING_LEN, SOCKET_ID_ANY, RING_F_SP_ENQ | RING_F_SC_DEQ);
    start->is_done = tx != NULL && rx != NULL;
}

/* Fills one ring with numbers and drains the other until the last one has come. */
static int works(void *unused) {
    (void)unused;
    uint64_t sent = 0, seen = 0;
    while (sent < count || seen < count) {
        void *numbers[BURST];
        unsigned burst = 0, taken;
        while (burst < BURST && sent + burst < count) {
            numbers[burst] = (void *)(uintptr_t)(sent + burst + 1);
            burst++;
        }
        sent += rte_ring_enqueue_burst(tx, numbers, burst, NULL);
        taken = rte_ring_dequeue_burst(rx, numbers, BURST, NULL);
        for (unsigned at = 0; at < taken; at++) {
            uint64_t number = (uintptr_t)numbers[at];
            if (seen != 0 && number != seen + 1) {
                return -1;
            }
            seen = number;
        }
        if (taken == 0) {
            /* A machine of its own would spin; this one may have fewer cores than lcores. */
            rte_pause();
            sched_yield();
        }
    }
    return 0;
}

/* Puts what the ring holds, in its order; what finds no room stays first in line. */
static void put_all(weft_member *member, uint16_t next) {
    if (first == held) {
        first = 0;
        held = rte_ring_dequeue_burst(tx, objects, BURST, NULL);
    }
    while (first < held) {
        uint64_t object = (uintptr_t)objects[first];
        weft_code put = weft_put(member, next, (uint8_t *)&object, sizeof object, 0);
        if (waits(put)) {
            return;
        }
        /* One that has finished has all numbers, from an earlier incarnation of this member. */
        if (put != WEFT_FINISHED) {
            check(put);
        }
        first++;
    }
}

/* Whether the worker has ended, and all that it enqueued is in the memory of the next. Its state is
 * asked first: an empty ring stays empty only once it has ended. */
static bool is_done(weft_member *member) {
    return rte_eal_get_lcore_state(1) != RUNNING && rte_ring_empty(tx) && first == held &&
           check(weft_flush(member, 0)) == WEFT_OK;
}

/* Takes what has come; what finds no room in the ring stays in the mailbox. As in ring.c, an
 * incarnation after a kill begins where its mailbox does, and the last number is never released. */
static void take_all(weft_member *member, uint64_t *seen) {
    weft_message message;
    while (rte_ring_free_count(rx) > 0 && check(weft_take(member, &message, 0)) == WEFT_OK) {
        uint64_t object;
        memcpy(&object, message.payload, sizeof object);
        bool is_next = *seen == 0 || object == *seen + 1;
        if (is_next) {
            rte_ring_enqueue(rx, (void *)(uintptr_t)object);
            *seen = object;
        }
        if (object < count || !is_next) {
            check(weft_release(member, message.receipt));
        }
    }
}

int main(int argc, char **argv) {
    struct start start = {argv[0], false};
    count = argument(argc, argv, 1, 100000);
    weft_member *member;
    weft_identity self;
    weft_event event;
    check(weft_join(&member, WEFT_FOREVER));
    check(weft_identify(member, &self));
    check(weft_working(member, 30000000, start_dpdk, &start));
    if (!start.is_done || rte_eal_remote_launch(works, NULL, 1) != 0) {
        fprintf(stderr, "DPDK does not start\n");
        return EXIT_FAILURE;
    }
    uint16_t next = (uint16_t)((self.rank + 1) % self.size);
    uint64_t seen = 0;
    while (!is_done(member)) {
        check(weft_poll(member));
        put_all(member, next);
        take_all(member, &seen);
        while (check(weft_next_event(member, &event, 0)) == WEFT_OK) {
        }
    }
    if (rte_eal_wait_lcore(1) != 0) {
        fprintf(stderr, "an object is missing\n");
        return EXIT_FAILURE;
    }
    printf("%llu objects round\n", (unsigned long long)count);
    return EXIT_SUCCESS;
}
