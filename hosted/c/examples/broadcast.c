/* Each member broadcasts numbered messages, and delivers those of all others, in order.
 *
 *     weft run -n 4 -- ./broadcast 1000
 */
#include "check.h"

#include <string.h>

int main(int argc, char **argv) {
    uint64_t count = argument(argc, argv, 1, 1000), sent = 0, delivered[64] = {0};
    weft_member *member;
    weft_identity self;
    check(weft_join(&member, WEFT_FOREVER));
    check(weft_identify(member, &self));
    delivered[self.rank] = count;

    for (bool is_done = false; !is_done || sent < count;) {
        char text[64];
        while (sent < count) {
            int len = snprintf(text, sizeof text, "number %llu of %u",
                               (unsigned long long)sent + 1, (unsigned)self.rank);
            weft_code code = weft_broadcast(member, (uint8_t *)text, (size_t)len, &sent, 0);
            if (code == WEFT_FULL) {
                /* Some member has not delivered what was broadcast before. */
                break;
            }
            check(code);
        }
        step(member);
        weft_delivery message;
        while (check(weft_deliver(member, &message, 0)) == WEFT_OK) {
            uint64_t *last = &delivered[message.origin];
            int len = snprintf(text, sizeof text, "number %llu of %u",
                               (unsigned long long)*last + 1, (unsigned)message.origin);
            if ((size_t)len != message.len || memcmp(text, message.payload, message.len) != 0) {
                fprintf(stderr, "not what was expected: %s\n", text);
                return EXIT_FAILURE;
            }
            *last = message.seq;
        }
        is_done = true;
        for (uint16_t rank = 0; rank < self.size; rank++) {
            is_done = is_done && delivered[rank] >= count;
        }
    }
    printf("delivered %llu messages of each of %u members\n", (unsigned long long)count,
           (unsigned)self.size - 1);
    return EXIT_SUCCESS;
}
