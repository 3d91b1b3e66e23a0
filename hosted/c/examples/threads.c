/* A member that several threads share: each of three puts numbers to every other member, and the
 * main thread takes what comes, as its descriptor says.
 *
 *     weft run -n 4 -- ./threads 5000
 */
#include "check.h"

#include <poll.h>
#include <pthread.h>

#define THREADS 3
#define BATCH 64

static weft_member *member;
static weft_identity self;
static uint64_t count;

static void *puts_all(void *unused) {
    for (uint64_t number = 1; number <= count; number++) {
        for (uint16_t rank = 0; rank < self.size; rank++) {
            if (rank != self.rank) {
                /* Waits for room, and for one that has not joined yet. */
                check(weft_put(member, rank, (uint8_t *)&number, sizeof number, 60000000));
            }
        }
    }
    return unused;
}

int main(int argc, char **argv) {
    count = argument(argc, argv, 1, 5000);
    pthread_t threads[THREADS];
    struct pollfd due = {.events = POLLIN};
    check(weft_join(&member, WEFT_FOREVER));
    check(weft_identify(member, &self));
    check(weft_spawn(member));
    check(weft_descriptor(member, &due.fd));
    for (int at = 0; at < THREADS; at++) {
        if (pthread_create(&threads[at], NULL, puts_all, NULL) != 0) {
            return EXIT_FAILURE;
        }
    }
    uint64_t expected = THREADS * count * (self.size - 1u), taken = 0;
    while (taken < expected) {
        weft_message messages[BATCH];
        weft_event event;
        size_t came;
        poll(&due, 1, 1000);
        while (check(weft_next_event(member, &event, 0)) == WEFT_OK) {
        }
        /* One hand-over to the thread of the member for all of them, and one for their release. */
        while (check(weft_take_batch(member, messages, BATCH, &came, 0)) == WEFT_OK) {
            check(weft_release_batch(member, messages, came));
            taken += came;
        }
    }
    for (int at = 0; at < THREADS; at++) {
        pthread_join(threads[at], NULL);
    }
    printf("took %llu messages\n", (unsigned long long)taken);
    /* Waits until what was put has arrived. */
    check(weft_close(member));
    return EXIT_SUCCESS;
}
