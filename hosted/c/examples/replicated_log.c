/* A log that every member keeps, in one order: each member broadcasts its entries, and the log
 * takes one entry of each origin a round. It survives `kill -9` of any member.
 *
 *     weft run -n 3 --state 1MiB -- ./replicated_log 1000
 *
 * What a broadcast promises is the order of each origin, and one message under each number; the
 * order among origins is made here, by rounds. A round waits for all origins, so the log goes on
 * when the next incarnation of a killed member does.
 */
#include "check.h"

#include <string.h>

enum { MEMBERS = 32, ROUNDS = 10000, RECORD = 1 << 20 };

/* A line for each entry, as this member has got them: its origin, and what it says. */
static char record[RECORD];
static size_t record_len;
/* Where in the record the entries of each origin are, and how many there are. */
static size_t entries[MEMBERS][ROUNDS];
static uint64_t counts[MEMBERS];

static void append(uint16_t origin, const void *entry, size_t len) {
    size_t room = sizeof record - record_len;
    size_t head = (size_t)snprintf(record + record_len, room, "%u ", (unsigned)origin);
    if (counts[origin] == ROUNDS || head + len + 1 > room) {
        fprintf(stderr, "the log is full\n");
        exit(EXIT_FAILURE);
    }
    entries[origin][counts[origin]++] = record_len + head;
    memcpy(record + record_len + head, entry, len);
    record_len += head + len + 1;
    record[record_len - 1] = '\n';
}

static void save(weft_member *member) {
    check(weft_save(member, (uint8_t *)record, record_len));
}

/* Takes up what was saved, and what the incarnation before delivered or broadcast after that. */
static void restore(weft_member *member, uint16_t size) {
    check(weft_saved(member, (uint8_t *)record, sizeof record, &record_len));
    for (char *line = record; line < record + record_len; line = strchr(line, '\n') + 1) {
        unsigned long origin = strtoul(line, &line, 10);
        entries[origin][counts[origin]++] = (size_t)(line + 1 - record);
    }
    for (uint16_t origin = 0; origin < size; origin++) {
        weft_delivery next;
        while (check(weft_delivered(member, origin, counts[origin] + 1, &next)) == WEFT_OK) {
            append(origin, next.payload, next.len);
        }
    }
    save(member);
}

/* Broadcasts the next entry of this member, if there is room for it. */
static void broadcast(weft_member *member, uint16_t me) {
    char entry[64];
    int len = snprintf(entry, sizeof entry, "entry %llu of %u",
                       (unsigned long long)counts[me] + 1, (unsigned)me);
    weft_code code = weft_broadcast(member, (uint8_t *)entry, (size_t)len, NULL, 0);
    if (code != WEFT_FULL) {
        check(code);
        append(me, entry, (size_t)len);
    }
}

int main(int argc, char **argv) {
    uint64_t count = argument(argc, argv, 1, 100), rounds = 0;
    weft_member *member;
    weft_identity self;
    check(weft_join(&member, WEFT_FOREVER));
    check(weft_identify(member, &self));
    restore(member, self.size);
    while (rounds < count) {
        if (counts[self.rank] < count) {
            broadcast(member, self.rank);
        }
        /* `restore` finds what a kill before the next save leaves out, which is not too much. */
        weft_delivery message;
        for (int i = 0; i < 32 && check(weft_deliver(member, &message, 0)) == WEFT_OK; i++) {
            append(message.origin, message.payload, message.len);
        }
        save(member);
        step(member);
        rounds = count;
        for (uint16_t origin = 0; origin < self.size; origin++) {
            rounds = counts[origin] < rounds ? counts[origin] : rounds;
        }
    }
    for (uint64_t round = 0; round < count; round++) {
        for (uint16_t origin = 0; origin < self.size; origin++) {
            const char *entry = record + entries[origin][round];
            printf("%.*s\n", (int)strcspn(entry, "\n"), entry);
        }
    }
    return EXIT_SUCCESS;
}
