/* Each member greets every other one, and ends when all have greeted it.
 *
 *     cc -std=c11 hello.c $(pkg-config --cflags --libs weft) -o hello && weft run -n 4 -- ./hello
 */
#include "check.h"

int main(void) {
    weft_member *member;
    weft_identity self;
    check(weft_join(&member, WEFT_FOREVER));
    check(weft_identify(member, &self));

    char greeting[64];
    int len = snprintf(greeting, sizeof greeting, "hello from %u, incarnation %u",
                       (unsigned)self.rank, (unsigned)self.incarnation);
    bool has_greeted[64] = {false};
    unsigned due = self.size - 1u, greeted = 0;
    while (due > 0 || greeted < self.size - 1u || weft_flush(member, 0) != WEFT_OK) {
        for (uint16_t rank = 0; rank < self.size; rank++) {
            if (rank == self.rank || has_greeted[rank]) {
                continue;
            }
            /* One that has not joined yet is tried again. */
            weft_code put = weft_put(member, rank, (uint8_t *)greeting, (size_t)len, 0);
            has_greeted[rank] = put == WEFT_OK;
            due -= has_greeted[rank];
        }
        check(weft_wait(member, 10000));
        weft_message message;
        while (check(weft_take(member, &message, 0)) == WEFT_OK) {
            printf("%.*s\n", (int)message.len, (const char *)message.payload);
            check(weft_release(member, message.receipt));
            greeted++;
        }
        weft_event event;
        while (check(weft_next_event(member, &event, 0)) == WEFT_OK) {
            fprintf(stderr, "event %d: member %u\n", (int)event.kind, (unsigned)event.rank);
        }
    }
    check(weft_close(member));
    return EXIT_SUCCESS;
}
