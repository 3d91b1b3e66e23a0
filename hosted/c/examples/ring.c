/* Each member puts numbers to the next one in the ring, and takes those of the one before.
 *
 *     weft run -n 4 -- ./ring 1000000
 *
 * It survives `weft inject kill 1`: the next incarnation starts from the first number again, and
 * its receiver takes only the number that is due. The last number is never released, so that an
 * incarnation that starts late finds it.
 */
#include "check.h"

#include <string.h>

int main(int argc, char **argv) {
    uint64_t count = argument(argc, argv, 1, 100000), sent = 0, seen = 0;
    weft_member *member;
    weft_identity self;
    check(weft_join(&member, WEFT_FOREVER));
    check(weft_identify(member, &self));
    uint16_t next = (uint16_t)((self.rank + 1) % self.size);

    while (sent < count || seen < count || check(weft_flush(member, 0)) != WEFT_OK) {
        while (sent < count) {
            uint64_t number = sent + 1;
            weft_code put = weft_put(member, next, (uint8_t *)&number, sizeof number, 0);
            if (waits(put)) {
                break;
            } else if (put == WEFT_FINISHED) {
                /* It has all numbers, from an earlier incarnation of this member. */
                sent = count;
            } else {
                check(put);
                sent++;
            }
        }
        step(member);
        weft_message message;
        while (check(weft_take(member, &message, 0)) == WEFT_OK) {
            uint64_t number;
            memcpy(&number, message.payload, sizeof number);
            /* A sender that was killed in the middle of a batch leaves a hole in it. */
            bool is_next = seen == 0 || number == seen + 1;
            if (is_next) {
                seen = number;
            }
            if (number < count || !is_next) {
                check(weft_release(member, message.receipt));
            }
        }
    }
    printf("%llu messages round\n", (unsigned long long)count);
    return EXIT_SUCCESS;
}
