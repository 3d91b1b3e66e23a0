/* Looks at the membership in a polling loop, for the price of a load: a page that a node keeps.
 *
 *     weft up -n 4 &
 *     ./mask weft
 *
 * A second argument says after how many changes it ends.
 */
#include "check.h"

#include <threads.h>
#include <time.h>

int main(int argc, char **argv) {
    uint64_t count = argument(argc, argv, 2, UINT64_MAX), last = 0, seen = 0;
    weft_mask *mask;
    check(weft_mask_open(&mask, argc > 1 ? argv[1] : "weft", 0, 3000000));
    while (seen < count) {
        /* A loop that polls something else anyway needs no more than this. */
        uint64_t now, number, members;
        check(weft_mask_changes(mask, &now));
        if (now == last || check(weft_mask_load(mask, &number, &members)) != WEFT_OK) {
            thrd_sleep(&(struct timespec){.tv_nsec = 50000}, NULL);
            continue;
        }
        printf("view %#llx: members %#llx\n", (unsigned long long)number,
               (unsigned long long)members);
        fflush(stdout);
        last = now;
        seen++;
    }
    check(weft_mask_close(mask));
    return EXIT_SUCCESS;
}
