/* Members that vote for the tasks of their nodes: one prints the outcome, the other what the script
 * sends. */
#include "check.h"

#include <string.h>

static weft_member *member;

/* Waits for the next notice for `task`. */
static weft_notice notice_for(const char *task) {
    weft_notice notices[WEFT_NOTICES_MAX];
    size_t count = 0;
    check(weft_notices(member, task, notices, WEFT_NOTICES_MAX, &count, WEFT_FOREVER));
    if (count != 1) {
        fprintf(stderr, "%zu notices\n", count);
        exit(EXIT_FAILURE);
    }
    return notices[0];
}

static void await_both(void) {
    weft_view view = {0};
    while (view.members != 3) {
        step(member);
        check(weft_current_view(member, &view));
    }
}

int main(void) {
    weft_identity self;
    weft_message message;
    check(weft_join(&member, WEFT_FOREVER));
    check(weft_identify(member, &self));
    await_both();
    if (self.rank == 1) {
        check(weft_spawn(member));
        check(weft_vote_bytes(member, "south", 1, (const uint8_t *)"same", 4));
        weft_notice sent = notice_for("south");
        printf("kind %d: %lld\n", (int)sent.kind, (long long)sent.number);
        check(weft_put(member, 0, (const uint8_t *)"seen", 4, WEFT_FOREVER));
        check(weft_flush(member, WEFT_FOREVER));
        return EXIT_SUCCESS;
    }
    check(weft_vote_bytes(member, "north", 1, (const uint8_t *)"same", 4));
    weft_notice outcome = notice_for("actuator");
    printf("kind %d: round %u, voters %x, agreed %x, %d%d\n", (int)outcome.kind,
           (unsigned)outcome.round, outcome.voters, outcome.agreed, outcome.is_agreed,
           outcome.is_digest && outcome.digest != 0);
    /* Until the task runs it has no phase. */
    do {
        check(weft_report_phase(member, "north", 3));
    } while (check(weft_take(member, &message, 10000)) == WEFT_NONE);
    return EXIT_SUCCESS;
}
