/* What the library refuses, and what it says: everything that a program in C can pass and must not.
 * `refusals outside` is run by hand, as no member. */
#include "check.h"

#include <pthread.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static weft_member *member;
static weft_identity self;
static weft_mask *mask;

/* `call` returns `code`, and where that is an error its cause and its cure are there. */
#define EXPECT(expected, call) expect(expected, call, #call, __LINE__)

static void expect(weft_code expected, weft_code code, const char *call, int line) {
    weft_error error = {WEFT_OK, "", ""};
    if (code > WEFT_NONE) {
        weft_last_error(&error);
    }
    bool is_said = code <= WEFT_NONE ||
                   (error.code == code && strlen(error.cause) > 5 && strlen(error.cure) > 5);
    if (code != expected || !is_said) {
        fprintf(stderr, "line %d: %s: %s, not %s: %s: %s\n", line, call, weft_code_name((int)code),
                weft_code_name((int)expected), error.cause, error.cure);
        exit(EXIT_FAILURE);
    }
}

static void says(const char *part) {
    weft_error error = {WEFT_OK, "", ""};
    weft_last_error(&error);
    if (strstr(error.cause, part) == NULL && strstr(error.cure, part) == NULL) {
        fprintf(stderr, "not %s: %s: %s\n", part, error.cause, error.cure);
        exit(EXIT_FAILURE);
    }
}

static uint8_t bytes[1 << 20];

static void no_member_yet(void) {
    weft_error none;
    EXPECT(WEFT_NONE, weft_last_error(&none));
    EXPECT(WEFT_NULL, weft_poll(NULL));
    says("member");
    EXPECT(WEFT_CLOSED, weft_poll((weft_member *)bytes));
    EXPECT(WEFT_CLOSED, weft_close((weft_member *)(uintptr_t)1));
    EXPECT(WEFT_NULL, weft_join(NULL, 0));
}

static void what_is_null_or_not_aligned(void) {
    weft_message message;
    EXPECT(WEFT_NULL, weft_take(member, (weft_message *)((uintptr_t)&message + 1), 0));
    EXPECT(WEFT_NULL, weft_put(member, self.rank, NULL, 1, 0));
    says("payload");
    EXPECT(WEFT_ARGUMENT, weft_save(member, bytes, SIZE_MAX));

    size_t count = 7;
    weft_payload bad[2] = {{bytes, 1}, {NULL, 1}};
    EXPECT(WEFT_NULL, weft_put_batch(member, self.rank, NULL, 1, &count, 0));
    EXPECT(WEFT_NULL, weft_put_batch(member, self.rank, bad, 1, NULL, 0));
    EXPECT(WEFT_NULL, weft_put_batch(member, self.rank, bad, 2, &count, 0));
    says("payloads");
    EXPECT(WEFT_ARGUMENT, weft_put_batch(member, self.rank, bad, SIZE_MAX / 2, &count, 0));
    /* Nothing was put, and nothing written. */
    EXPECT(WEFT_NONE, weft_take(member, &message, 0));
    if (count != 7) {
        fprintf(stderr, "a refused batch has written %zu\n", count);
        exit(EXIT_FAILURE);
    }
}

/* Null in each place where it means nothing, in the order of weft.h; the test `header` compares the
 * names. Every other argument is good, and nothing happens. */
static void null_in_each_place(void) {
    weft_member *const m = member;
    weft_identity identity;
    weft_view view;
    weft_event event;
    weft_message message;
    weft_payload payload = {bytes, 1};
    weft_delivery delivery;
    weft_part part;
    weft_standing standing;
    const weft_value *values;
    weft_shape shape = {.dtype = WEFT_U8, .rank = 1, .dims = {1}};
    weft_notice notices[WEFT_NOTICES_MAX];
    weft_generation generation;
    weft_watched watched;
    uint32_t request;
    uint64_t number;
    size_t count;
    int descriptor;
    const uint8_t *const b = bytes;
    const uint16_t to = self.rank;
#define NULL_IN(call) EXPECT(WEFT_NULL, call)
    if (weft_last_error(NULL) != WEFT_NULL) {
        fprintf(stderr, "weft_last_error takes null\n");
        exit(EXIT_FAILURE);
    }
    NULL_IN(weft_join(NULL, 0));
    NULL_IN(weft_spawn(NULL));
    NULL_IN(weft_close(NULL));
    NULL_IN(weft_identify(NULL, &identity)), NULL_IN(weft_identify(m, NULL));
    NULL_IN(weft_poll(NULL));
    NULL_IN(weft_wait(NULL, 0));
    NULL_IN(weft_descriptor(NULL, &descriptor)), NULL_IN(weft_descriptor(m, NULL));
    NULL_IN(weft_working(NULL, 9, (weft_step)abort, NULL)), NULL_IN(weft_working(m, 9, NULL, NULL));
    NULL_IN(weft_current_view(NULL, &view)), NULL_IN(weft_current_view(m, NULL));
    NULL_IN(weft_members(NULL, &number)), NULL_IN(weft_members(m, NULL));
    NULL_IN(weft_next_event(NULL, &event, 0)), NULL_IN(weft_next_event(m, NULL, 0));
    NULL_IN(weft_put(NULL, to, b, 1, 0)), NULL_IN(weft_put(m, to, NULL, 1, 0));
    NULL_IN(weft_flush(NULL, 0));
    NULL_IN(weft_take(NULL, &message, 0)), NULL_IN(weft_take(m, NULL, 0));
    NULL_IN(weft_release(NULL, 0));
    NULL_IN(weft_put_batch(NULL, to, &payload, 1, &count, 0));
    NULL_IN(weft_put_batch(m, to, NULL, 1, &count, 0));
    NULL_IN(weft_put_batch(m, to, &payload, 1, NULL, 0));
    NULL_IN(weft_take_batch(NULL, &message, 1, &count, 0));
    NULL_IN(weft_take_batch(m, NULL, 1, &count, 0));
    NULL_IN(weft_take_batch(m, &message, 1, NULL, 0));
    NULL_IN(weft_release_batch(NULL, NULL, 0)), NULL_IN(weft_release_batch(m, NULL, 1));
    NULL_IN(weft_broadcast(NULL, b, 1, NULL, 0)), NULL_IN(weft_broadcast(m, NULL, 1, NULL, 0));
    NULL_IN(weft_deliver(NULL, &delivery, 0)), NULL_IN(weft_deliver(m, NULL, 0));
    NULL_IN(weft_delivered(NULL, 0, 1, &delivery)), NULL_IN(weft_delivered(m, 0, 1, NULL));
    NULL_IN(weft_group_open(NULL, "all", 0)), NULL_IN(weft_group_open(m, NULL, 0));
    NULL_IN(weft_group_set_topology(NULL, "all", 0)), NULL_IN(weft_group_set_topology(m, NULL, 0));
    NULL_IN(weft_group_broadcast(NULL, "all", 0, b, 1, &number, 0));
    NULL_IN(weft_group_broadcast(m, NULL, 0, b, 1, &number, 0));
    NULL_IN(weft_group_broadcast(m, "all", 0, NULL, 1, &number, 0));
    NULL_IN(weft_group_broadcast(m, "all", 0, b, 1, NULL, 0));
    NULL_IN(weft_group_begin(NULL, "all", 0, 1, &number, 0));
    NULL_IN(weft_group_begin(m, NULL, 0, 1, &number, 0));
    NULL_IN(weft_group_begin(m, "all", 0, 1, NULL, 0));
    NULL_IN(weft_group_write(NULL, "all", b, 1, &count, 0));
    NULL_IN(weft_group_write(m, NULL, b, 1, &count, 0));
    NULL_IN(weft_group_write(m, "all", NULL, 1, &count, 0));
    NULL_IN(weft_group_write(m, "all", b, 1, NULL, 0));
    NULL_IN(weft_group_receive(NULL, "all", bytes, 1, &count, &part, 0));
    NULL_IN(weft_group_receive(m, NULL, bytes, 1, &count, &part, 0));
    NULL_IN(weft_group_receive(m, "all", NULL, 1, &count, &part, 0));
    NULL_IN(weft_group_receive(m, "all", bytes, 1, NULL, &part, 0));
    NULL_IN(weft_group_receive(m, "all", bytes, 1, &count, NULL, 0));
    NULL_IN(weft_group_standing(NULL, "all", 0, &standing));
    NULL_IN(weft_group_standing(m, NULL, 0, &standing));
    NULL_IN(weft_group_standing(m, "all", 0, NULL));
    NULL_IN(weft_barrier(NULL, "all", &number, 0)), NULL_IN(weft_barrier(m, NULL, &number, 0));
    NULL_IN(weft_barrier(m, "all", NULL, 0));
    NULL_IN(weft_all_gather(NULL, "all", b, 1, &values, &count, 0));
    NULL_IN(weft_all_gather(m, NULL, b, 1, &values, &count, 0));
    NULL_IN(weft_all_gather(m, "all", NULL, 1, &values, &count, 0));
    NULL_IN(weft_all_gather(m, "all", b, 1, NULL, &count, 0));
    NULL_IN(weft_all_gather(m, "all", b, 1, &values, NULL, 0));
    NULL_IN(weft_send(NULL, to, "e", 0, &shape, b, 1, &request, 0));
    NULL_IN(weft_send(m, to, NULL, 0, &shape, b, 1, &request, 0));
    NULL_IN(weft_send(m, to, "e", 0, &shape, NULL, 1, &request, 0));
    NULL_IN(weft_send(m, to, "e", 0, &shape, b, 1, NULL, 0));
    NULL_IN(weft_receive(NULL, to, "e", 0, NULL, &request, 0));
    NULL_IN(weft_receive(m, to, NULL, 0, NULL, &request, 0));
    NULL_IN(weft_receive(m, to, "e", 0, NULL, NULL, 0));
    NULL_IN(weft_cancel(NULL, 1));
    NULL_IN(weft_take_tensor(NULL, 1, bytes, 1, &count, &shape));
    NULL_IN(weft_take_tensor(m, 1, NULL, 1, &count, &shape));
    NULL_IN(weft_take_tensor(m, 1, bytes, 1, NULL, &shape));
    NULL_IN(weft_take_tensor(m, 1, bytes, 1, &count, NULL));
    NULL_IN(weft_clean_step(NULL, 0));
    NULL_IN(weft_abort_step(NULL, 0));
    NULL_IN(weft_save(NULL, b, 1)), NULL_IN(weft_save(m, NULL, 1));
    NULL_IN(weft_saved(NULL, bytes, 4, &count)), NULL_IN(weft_saved(m, NULL, 4, &count));
    NULL_IN(weft_saved(m, bytes, 4, NULL));
    NULL_IN(weft_vote_number(NULL, "t", 1, 1)), NULL_IN(weft_vote_number(m, NULL, 1, 1));
    NULL_IN(weft_vote_bytes(NULL, "t", 1, b, 1)), NULL_IN(weft_vote_bytes(m, NULL, 1, b, 1));
    NULL_IN(weft_vote_bytes(m, "t", 1, NULL, 1));
    NULL_IN(weft_report_phase(NULL, "t", 1)), NULL_IN(weft_report_phase(m, NULL, 1));
    NULL_IN(weft_notices(NULL, "t", notices, WEFT_NOTICES_MAX, &count, 0));
    NULL_IN(weft_notices(m, NULL, notices, WEFT_NOTICES_MAX, &count, 0));
    NULL_IN(weft_notices(m, "t", NULL, WEFT_NOTICES_MAX, &count, 0));
    NULL_IN(weft_notices(m, "t", notices, WEFT_NOTICES_MAX, NULL, 0));
    NULL_IN(weft_mask_open(NULL, "t", 0, 0)), NULL_IN(weft_mask_open(&mask, NULL, 0, 0));
    NULL_IN(weft_mask_changes(NULL, &number)), NULL_IN(weft_mask_changes(mask, NULL));
    NULL_IN(weft_mask_load(NULL, &number, &number)), NULL_IN(weft_mask_load(mask, NULL, &number));
    NULL_IN(weft_mask_load(mask, &number, NULL));
    NULL_IN(weft_mask_incarnation(NULL, 1, 0, &generation));
    NULL_IN(weft_mask_incarnation(mask, 1, 0, NULL));
    NULL_IN(weft_mask_close(NULL));
    NULL_IN(weft_watch(NULL, "t", 0)), NULL_IN(weft_watch(&(weft_watcher *){NULL}, NULL, 0));
    NULL_IN(weft_watch_next(NULL, &watched, 0));
    NULL_IN(weft_watch_close(NULL));
    EXPECT(WEFT_NONE, weft_take(m, &message, 0));
}

static void what_has_no_meaning(void) {
    uint32_t request;
    weft_shape shape = {.dtype = 99, .rank = 1, .dims = {4}};
    EXPECT(WEFT_UTF8, weft_group_open(member, "\xff", 0));
    EXPECT(WEFT_UNKNOWN, weft_group_open(member, "nobody's", 0));
    EXPECT(WEFT_RANK, weft_put(member, 99, bytes, 1, 0));
    EXPECT(WEFT_RANK, weft_put(member, 99, bytes, 1, 1000000));
    EXPECT(WEFT_TOO_LONG, weft_put(member, self.rank, bytes, self.message_len + 1, 0));
    EXPECT(WEFT_TOO_LONG, weft_broadcast(member, bytes, self.broadcast_len + 1, NULL, 0));
    EXPECT(WEFT_TOO_LONG, weft_save(member, bytes, sizeof bytes));
    says("component.state");
    EXPECT(WEFT_ARGUMENT, weft_send(member, 0, "e", 0, &shape, bytes, 4, &request, 0));
    shape.dtype = WEFT_F32;
    EXPECT(WEFT_ARGUMENT, weft_send(member, 0, "e", 0, &shape, bytes, 4, &request, 0));
    EXPECT(WEFT_ARGUMENT, weft_send(member, 0, "a;b", 0, &shape, bytes, 16, &request, 0));
    EXPECT(WEFT_TOO_LONG, weft_working(member, UINT64_MAX - 1, (weft_step)abort, NULL));

    size_t count;
    weft_payload one = {bytes, 1};
    EXPECT(WEFT_RANK, weft_put_batch(member, 99, &one, 1, &count, 1000000));
    one.len = self.message_len + 1;
    EXPECT(WEFT_TOO_LONG, weft_put_batch(member, self.rank, &one, 1, &count, 0));
    EXPECT(WEFT_ARGUMENT, weft_group_set_topology(member, "all", 99));
    EXPECT(WEFT_UNKNOWN, weft_group_set_topology(member, "no such", WEFT_TOPOLOGY_PIPE));
    EXPECT(WEFT_UNKNOWN, weft_vote_number(member, "no such", 1, 40));
    EXPECT(WEFT_UNKNOWN, weft_vote_bytes(member, "no such", 1, bytes, 4));
    EXPECT(WEFT_UNKNOWN, weft_report_phase(member, "no such", 3));
    weft_notice notices[WEFT_NOTICES_MAX];
    EXPECT(WEFT_UNKNOWN, weft_notices(member, "no such", notices, WEFT_NOTICES_MAX, &count, 0));
    says("no such");
}

/* Three of which one is empty come whole and in order, in two batches. */
static void batches(void) {
    weft_payload three[3] = {{(const uint8_t *)"one", 3}, {NULL, 0}, {(const uint8_t *)"three", 5}};
    weft_message taken[3];
    size_t count = 0, came = 0;
    EXPECT(WEFT_OK, weft_put_batch(member, self.rank, three, 0, &count, 0));
    EXPECT(WEFT_OK, weft_put_batch(member, self.rank, three, 3, &count, WEFT_FOREVER));
    if (count != 3) {
        fprintf(stderr, "%zu of 3 were accepted\n", count);
        exit(EXIT_FAILURE);
    }
    EXPECT(WEFT_NONE, weft_take_batch(member, NULL, 0, &count, WEFT_FOREVER));
    for (size_t capacity = 2; came < 3; came += count) {
        if (came == 2) {
            capacity = 1;
        }
        EXPECT(WEFT_OK, weft_take_batch(member, taken + came, capacity, &count, WEFT_FOREVER));
        for (size_t at = came; at < came + count; at++) {
            if (count > capacity || taken[at].sender != self.rank ||
                taken[at].len != three[at].len ||
                (three[at].len > 0 && memcmp(taken[at].payload, three[at].bytes, three[at].len))) {
                fprintf(stderr, "another message %zu of %zu bytes\n", at, taken[at].len);
                exit(EXIT_FAILURE);
            }
        }
    }
    EXPECT(WEFT_OK, weft_release_batch(member, taken, 3));
    EXPECT(WEFT_RECEIPT, weft_release_batch(member, taken, 3));
    EXPECT(WEFT_OK, weft_release_batch(member, NULL, 0));
    EXPECT(WEFT_NONE, weft_take_batch(member, taken, 3, &count, 20000));
}

static void a_receipt_twice(void) {
    weft_message message;
    EXPECT(WEFT_OK, weft_put(member, self.rank, (const uint8_t *)"once", 4, WEFT_FOREVER));
    EXPECT(WEFT_OK, weft_take(member, &message, WEFT_FOREVER));
    EXPECT(WEFT_OK, weft_release(member, message.receipt));
    EXPECT(WEFT_RECEIPT, weft_release(member, message.receipt));
    for (uint64_t made_up = 1; made_up != 0; made_up <<= 1) {
        EXPECT(WEFT_RECEIPT, weft_release(member, ~made_up));
    }
    EXPECT(WEFT_RECEIPT, weft_cancel(member, UINT32_MAX));
    EXPECT(WEFT_NONE, weft_take(member, &message, 0));
    EXPECT(WEFT_NONE, weft_take(member, &message, 20000));
}

static void a_buffer_too_small(void) {
    size_t len = 0;
    weft_part part;
    EXPECT(WEFT_OK, weft_save(member, (const uint8_t *)"ten bytes.", 10));
    EXPECT(WEFT_BUFFER, weft_saved(member, bytes, 4, &len));
    says("10");
    EXPECT(WEFT_BUFFER, weft_saved(member, NULL, 0, &(size_t){0}));
    EXPECT(WEFT_OK, weft_saved(member, bytes, len, &len));
    if (len != 10 || memcmp(bytes, "ten bytes.", 10) != 0) {
        fprintf(stderr, "another record: %zu bytes\n", len);
        exit(EXIT_FAILURE);
    }
    weft_notice notice;
    EXPECT(WEFT_BUFFER, weft_notices(member, "t", &notice, 1, &len, 0));
    if (len != WEFT_NOTICES_MAX) {
        fprintf(stderr, "%zu notices are needed\n", len);
        exit(EXIT_FAILURE);
    }
    EXPECT(WEFT_BUFFER, weft_group_receive(member, "all", bytes, 8, &len, &part, 1000000));
    EXPECT(WEFT_NONE, weft_group_receive(member, "all", bytes, len, &len, &part, 0));
}

static void a_tensor_too_long_for_its_buffer(void) {
    const float sent[3] = {1.5f, -2.0f, 3.25f};
    float taken[3] = {0};
    uint32_t offer, request;
    size_t len = 0;
    weft_event event = {0};
    weft_shape shape = {.dtype = WEFT_F32, .rank = 1, .dims = {3}};
    EXPECT(WEFT_OK, weft_receive(member, self.rank, "e", 1, NULL, &request, 10000000));
    EXPECT(WEFT_OK, weft_send(member, self.rank, "e", 1, &shape, (const uint8_t *)sent,
                              sizeof sent, &offer, 0));
    while (event.kind != WEFT_EVENT_ENDED) {
        EXPECT(WEFT_OK, weft_next_event(member, &event, WEFT_FOREVER));
    }
    EXPECT(WEFT_BUFFER, weft_take_tensor(member, request, bytes, 11, &len, &shape));
    EXPECT(WEFT_OK, weft_take_tensor(member, request, (uint8_t *)taken, len, &len, &shape));
    if (len != sizeof sent || memcmp(sent, taken, len) != 0 || shape.dims[0] != 3) {
        fprintf(stderr, "another tensor: %zu bytes\n", len);
        exit(EXIT_FAILURE);
    }
    EXPECT(WEFT_RECEIPT, weft_take_tensor(member, request, bytes, 12, &len, &shape));
}

static void *from_another_thread(void *unused) {
    EXPECT(WEFT_THREAD, weft_poll(member));
    says("weft_spawn");
    EXPECT(WEFT_THREAD, weft_close(member));
    EXPECT(WEFT_THREAD, weft_spawn(member));
    EXPECT(WEFT_THREAD, weft_put_batch(member, 0, NULL, 0, &(size_t){0}, 0));
    EXPECT(WEFT_THREAD, weft_release_batch(member, NULL, 0));
    EXPECT(WEFT_THREAD, weft_group_set_topology(member, "all", WEFT_TOPOLOGY_AUTO));
    EXPECT(WEFT_THREAD, weft_report_phase(member, "t", 1));
    weft_notice notices[WEFT_NOTICES_MAX];
    EXPECT(WEFT_THREAD, weft_notices(member, "t", notices, WEFT_NOTICES_MAX, &(size_t){0}, 0));
    return unused;
}

static void from_a_callback(void *context) {
    EXPECT(WEFT_BUSY, weft_poll(member));
    EXPECT(WEFT_BUSY, weft_spawn(member));
    EXPECT(WEFT_BUSY, weft_close(member));
    *(bool *)context = true;
}

static void from_a_fork(void) {
    pid_t child = fork();
    if (child == 0) {
        EXPECT(WEFT_FORKED, weft_poll(member));
        EXPECT(WEFT_FORKED, weft_close(member));
        _exit(EXIT_SUCCESS);
    }
    int status = EXIT_FAILURE;
    waitpid(child, &status, 0);
    if (status != 0) {
        fprintf(stderr, "the child: %d\n", status);
        exit(EXIT_FAILURE);
    }
    EXPECT(WEFT_FORM, weft_descriptor(member, &(int){0}));
}

static void in_thread(void *(*act)(void *)) {
    pthread_t thread;
    if (pthread_create(&thread, NULL, act, NULL) != 0 || pthread_join(thread, NULL) != 0) {
        exit(EXIT_FAILURE);
    }
}

static void *of_another_thread(void *unused) {
    uint64_t changes;
    EXPECT(WEFT_THREAD, weft_mask_changes(mask, &changes));
    EXPECT(WEFT_THREAD, weft_mask_close(mask));
    return unused;
}

/* Waits for another process, which polls nothing: as a step. */
static void masks_and_watchers(void *unused) {
    (void)unused;
    uint64_t changes, number, members;
    weft_watcher *watcher;
    weft_watched event;
    EXPECT(WEFT_ARGUMENT, weft_mask_open(&mask, "No Name", 0, 0));
    EXPECT(WEFT_CLUSTER, weft_mask_open(&mask, "is-not-there", 0, 0));
    EXPECT(WEFT_CLUSTER, weft_watch(&watcher, "is-not-there", 0));
    EXPECT(WEFT_RANK, weft_mask_open(&mask, self.name, 99, 1000000));
    EXPECT(WEFT_OK, weft_mask_open(&mask, self.name, self.rank, 10000000));
    EXPECT(WEFT_OK, weft_mask_load(mask, &number, &members));
    in_thread(of_another_thread);
    EXPECT(WEFT_CLOSED, weft_watch_close((weft_watcher *)mask));
    EXPECT(WEFT_CLOSED, weft_poll((weft_member *)mask));
    EXPECT(WEFT_OK, weft_watch(&watcher, self.name, 10000000));
    EXPECT(WEFT_NULL, weft_watch_next(watcher, NULL, 0));
    EXPECT(WEFT_OK, weft_watch_next(watcher, &event, 10000000));
    EXPECT(WEFT_CLOSED, weft_mask_changes((weft_mask *)watcher, &changes));
    EXPECT(WEFT_OK, weft_watch_close(watcher));
    EXPECT(WEFT_CLOSED, weft_watch_next(watcher, &event, 0));
    EXPECT(WEFT_OK, weft_mask_close(mask));
    EXPECT(WEFT_CLOSED, weft_mask_changes(mask, &changes));
    EXPECT(WEFT_CLOSED, weft_mask_close(mask));
}

static void *of_a_spawned_member(void *unused) {
    int descriptor;
    EXPECT(WEFT_FORM, weft_poll(member));
    EXPECT(WEFT_FORM, weft_wait(member, 1000));
    EXPECT(WEFT_FORM, weft_spawn(member));
    EXPECT(WEFT_OK, weft_descriptor(member, &descriptor));
    a_receipt_twice();
    batches();
    EXPECT(WEFT_OK, weft_group_set_topology(member, "all", WEFT_TOPOLOGY_PIPE));
    a_buffer_too_small();
    a_tensor_too_long_for_its_buffer();
    return unused;
}

static void after_the_end(void) {
    EXPECT(WEFT_OK, weft_close(member));
    EXPECT(WEFT_CLOSED, weft_close(member));
    EXPECT(WEFT_CLOSED, weft_poll(member));
    EXPECT(WEFT_CLOSED, weft_put(member, 0, bytes, 1, 0));
    EXPECT(WEFT_CLOSED, weft_identify(member, &self));
    EXPECT(WEFT_NOT_JOINED, weft_join(&member, 0));
}

int main(int argc, char **argv) {
    (void)argv;
    no_member_yet();
    if (argc > 1) {
        EXPECT(WEFT_NOT_JOINED, weft_join(&member, 0));
        says("weft run");
        puts("no member");
        return EXIT_SUCCESS;
    }
    bool was_called = false;
    EXPECT(WEFT_OK, weft_join(&member, WEFT_FOREVER));
    EXPECT(WEFT_OK, weft_identify(member, &self));
    EXPECT(WEFT_OK, weft_group_open(member, "all", WEFT_FOREVER));
    null_in_each_place();
    what_is_null_or_not_aligned();
    what_has_no_meaning();
    a_receipt_twice();
    batches();
    a_buffer_too_small();
    a_tensor_too_long_for_its_buffer();
    in_thread(from_another_thread);
    EXPECT(WEFT_OK, weft_working(member, 10000000, from_a_callback, &was_called));
    from_a_fork();
    EXPECT(WEFT_OK, weft_working(member, 30000000, masks_and_watchers, NULL));
    EXPECT(WEFT_OK, weft_spawn(member));
    in_thread(of_a_spawned_member);
    after_the_end();
    puts(was_called ? "all refused" : "the step was not called");
    return EXIT_SUCCESS;
}
