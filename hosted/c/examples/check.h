/* What every example does with an error: it prints what the library says, and ends. Its node starts
 * the next incarnation. */
#ifndef CHECK_H
#define CHECK_H

#include <stdio.h>
#include <stdlib.h>
#include <weft.h>

/* The code, if it is no error. */
static inline weft_code check(weft_code code) {
    if (code > WEFT_NONE) {
        weft_error error = {code, "", ""};
        weft_last_error(&error);
        fprintf(stderr, "%s: %s: %s\n", weft_code_name((int)code), error.cause, error.cure);
        exit(EXIT_FAILURE);
    }
    return code;
}

/* Whether a put was refused for now alone: poll, then put again. */
static inline bool waits(weft_code code) { return code == WEFT_FULL || code == WEFT_ABSENT; }

/* One step of a loop: polls, waits for 10 ms at most, and drains the events. */
static inline void step(weft_member *member) {
    weft_event event;
    check(weft_wait(member, 10000));
    while (check(weft_next_event(member, &event, 0)) == WEFT_OK) {
    }
}

/* The argument of this number, or another number where there is none. */
static inline uint64_t argument(int argc, char **argv, int at, uint64_t otherwise) {
    return at < argc ? strtoull(argv[at], NULL, 10) : otherwise;
}

#endif
