/* Prints what happens in a running cluster, as a process that is no member of it.
 *
 *     weft up -n 4 &
 *     ./watch weft
 *
 * A second argument says after how many events it ends.
 */
#include "check.h"

int main(int argc, char **argv) {
    static const char *const kinds[] = {"",         "view",     "joined",    "failed",
                                        "removed",  "isolated", "released",  "suspected",
                                        "trusted",  "task",     "missed"};
    uint64_t count = argument(argc, argv, 2, UINT64_MAX);
    weft_watcher *watcher;
    check(weft_watch(&watcher, argc > 1 ? argv[1] : "weft", 3000000));
    for (uint64_t at = 0; at < count; at++) {
        weft_watched event;
        /* Goes on at the next node when the one that it asks has died. */
        check(weft_watch_next(watcher, &event, WEFT_FOREVER));
        const char *kind = event.kind < WEFT_WATCHED_OTHER ? kinds[event.kind] : "other";
        if (event.kind == WEFT_WATCHED_VIEW) {
            printf("view %#llx: members %#llx\n", (unsigned long long)event.view,
                   (unsigned long long)event.members);
        } else {
            printf("%s %d %s %s\n", kind, (int)event.rank, event.incarnation, event.verdict);
        }
        fflush(stdout);
    }
    check(weft_watch_close(watcher));
    return EXIT_SUCCESS;
}
