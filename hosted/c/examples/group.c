/* Member 0 sends one long message to all others, which read its blocks from its memory; then all
 * meet at a barrier.
 *
 *     printf 'name = "g"\nnodes = 4\n[group]\ncount = 1\n' > g.toml
 *     weft run g.toml -- ./group 300000000
 */
#include "check.h"

#define ALL "all"
#define PIECE (1u << 20)

static uint8_t piece[PIECE];

/* The byte of the message at `offset`, so that every part can be judged by itself. */
static uint8_t byte_at(uint64_t offset) { return (uint8_t)(offset ^ offset >> 9); }

static void send_all(weft_member *member, uint64_t len) {
    uint64_t seq;
    weft_standing standing = {0, 0, 0};
    /* Each block is sent on by those that have it, whatever the cluster file says. */
    check(weft_group_set_topology(member, ALL, WEFT_TOPOLOGY_PIPELINE));
    check(weft_group_begin(member, ALL, 0, len, &seq, WEFT_FOREVER));
    for (uint64_t written = 0; written < len;) {
        size_t part = len - written < PIECE ? (size_t)(len - written) : PIECE, taken;
        for (size_t at = 0; at < part; at++) {
            piece[at] = byte_at(written + at);
        }
        check(weft_group_write(member, ALL, piece, part, &taken, WEFT_FOREVER));
        written += taken;
        step(member);
    }
    /* What all have received is stable. */
    while (standing.stable < seq) {
        step(member);
        check(weft_group_standing(member, ALL, 0, &standing));
    }
    printf("sent %llu bytes\n", (unsigned long long)len);
}

static void receive_all(weft_member *member, uint64_t len) {
    weft_part part;
    size_t part_len;
    weft_standing standing = {0, 0, 0};
    check(weft_group_standing(member, ALL, 0, &standing));
    /* A later incarnation goes on where the one before it has received; perhaps that was all. */
    while (standing.received == 0) {
        step(member);
        while (check(weft_group_receive(member, ALL, piece, PIECE, &part_len, &part, 0)) ==
               WEFT_OK) {
            bool is_right = part.kind == WEFT_PART && part.message_len == len;
            for (size_t at = 0; at < part_len && is_right; at++) {
                is_right = piece[at] == byte_at(part.offset + at);
            }
            if (!is_right) {
                fprintf(stderr, "not what member 0 sent, at %llu\n",
                        (unsigned long long)part.offset);
                exit(EXIT_FAILURE);
            }
        }
        check(weft_group_standing(member, ALL, 0, &standing));
    }
    printf("received %llu bytes\n", (unsigned long long)len);
}

int main(int argc, char **argv) {
    uint64_t len = argument(argc, argv, 1, 64u << 20), number;
    weft_member *member;
    weft_identity self;
    check(weft_join(&member, WEFT_FOREVER));
    check(weft_identify(member, &self));
    if (self.rank == 0) {
        send_all(member, len);
    } else {
        receive_all(member, len);
    }
    check(weft_barrier(member, ALL, &number, WEFT_FOREVER));
    return EXIT_SUCCESS;
}
