/* Members send numbers to member 0, which adds them up: each counts once, whichever is killed.
 *
 *     weft run -n 4 --state 4KiB -- ./counter 100000
 *
 * The record of member 0 is the sum, and the last number of each sender in it; that of a sender is
 * the last number known to be in the mailbox of member 0. The next incarnation puts what follows.
 */
#include "check.h"

#include <string.h>

/* Word 0: the sum, or what was sent. Word n: the last number of member n. */
static uint64_t record[64];

static void save(weft_member *member, size_t words) {
    check(weft_save(member, (uint8_t *)record, words * sizeof *record));
}

static void add(weft_member *member, uint16_t size, uint64_t count) {
    uint64_t expected = (size - 1u) * (count * (count + 1) / 2);
    bool is_done = false;
    while (!is_done) {
        step(member);
        weft_message message;
        while (check(weft_take(member, &message, 0)) == WEFT_OK) {
            uint64_t number;
            memcpy(&number, message.payload, sizeof number);
            /* Put again by the next incarnation, or before a hole in its last batch: not it. */
            if (number == record[message.sender] + 1) {
                record[message.sender] = number;
                record[0] += number;
                save(member, size);
            }
            check(weft_release(member, message.receipt));
        }
        is_done = true;
        for (uint16_t rank = 1; rank < size; rank++) {
            is_done = is_done && record[rank] >= count;
        }
    }
    printf("sum %llu, expected %llu\n", (unsigned long long)record[0],
           (unsigned long long)expected);
    exit(record[0] == expected ? EXIT_SUCCESS : EXIT_FAILURE);
}

static void send_all(weft_member *member, uint64_t count) {
    uint64_t sent = record[0];
    while (record[0] < count) {
        while (sent < count) {
            uint64_t number = sent + 1;
            weft_code put = weft_put(member, 0, (uint8_t *)&number, sizeof number, 0);
            if (waits(put)) {
                break;
            } else if (put == WEFT_FINISHED) {
                /* It has counted all, and this incarnation's predecessor did not save that. */
                sent = count;
            } else {
                check(put);
                sent++;
            }
        }
        step(member);
        if (check(weft_flush(member, 0)) == WEFT_OK) {
            record[0] = sent;
            save(member, 1);
        }
    }
}

int main(int argc, char **argv) {
    uint64_t count = argument(argc, argv, 1, 10000);
    weft_member *member;
    weft_identity self;
    size_t len;
    check(weft_join(&member, WEFT_FOREVER));
    check(weft_identify(member, &self));
    check(weft_saved(member, (uint8_t *)record, sizeof record, &len));
    if (self.rank == 0) {
        add(member, self.size, count);
    }
    send_all(member, count);
    return EXIT_SUCCESS;
}
