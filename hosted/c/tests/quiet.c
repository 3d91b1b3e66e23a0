/* A polled member neither allocates nor makes a system call: after some warming up, its thread runs
 * under a filter by which the kernel kills the process with the first one, and its allocations are
 * counted. The argument is the path of files by which both processes know that both are done. */
#include "check.h"

#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/prctl.h>
#include <threads.h>
#include <time.h>

/* So few that failure detection has nothing to send meanwhile. */
#define MESSAGES 20000
#define BROADCASTS 50

/* What the allocator of glibc is below its names. */
extern void *__libc_malloc(size_t len);
extern void *__libc_calloc(size_t count, size_t len);
extern void *__libc_realloc(void *memory, size_t len);
extern void *__libc_memalign(size_t align, size_t len);

static _Thread_local uint64_t allocations;

void *malloc(size_t len) {
    allocations++;
    return __libc_malloc(len);
}

void *calloc(size_t count, size_t len) {
    allocations++;
    return __libc_calloc(count, len);
}

void *realloc(void *memory, size_t len) {
    allocations++;
    return __libc_realloc(memory, len);
}

int posix_memalign(void **memory, size_t align, size_t len) {
    allocations++;
    *memory = __libc_memalign(align, len);
    return *memory == NULL;
}

static weft_member *member;
static weft_identity self;
static uint64_t sent, seen, cast, delivered;

static void forbid_system_calls(void) {
    struct sock_filter kill = BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS);
    struct sock_fprog filter = {.len = 1, .filter = &kill};
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 ||
        prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter) != 0) {
        perror("the filter");
        exit(EXIT_FAILURE);
    }
}

/* Under the filter not even an error can be printed: the process is killed, and the test fails. */
static void pass(void) {
    weft_event event;
    weft_message message;
    weft_delivery delivery;
    check(weft_poll(member));
    while (check(weft_next_event(member, &event, 0)) == WEFT_OK) {
    }
    while (check(weft_take(member, &message, 0)) == WEFT_OK) {
        uint64_t number;
        memcpy(&number, message.payload, sizeof number);
        if (number != ++seen) {
            abort();
        }
        check(weft_release(member, message.receipt));
    }
    while (check(weft_deliver(member, &delivery, 0)) == WEFT_OK) {
        delivered = delivery.seq;
    }
}

/* Goes on until both have so many messages and broadcasts. */
static void exchange(uint64_t messages, uint64_t broadcasts) {
    uint16_t other = (uint16_t)(1 - self.rank);
    while (sent < messages || seen < messages || cast < broadcasts || delivered < broadcasts ||
           weft_flush(member, 0) != WEFT_OK) {
        for (uint64_t number = sent + 1; number <= messages; number++) {
            weft_code put = weft_put(member, other, (uint8_t *)&number, sizeof number, 0);
            if (waits(put)) {
                break;
            }
            check(put);
            sent = number;
        }
        if (cast < broadcasts) {
            weft_code code = weft_broadcast(member, (uint8_t *)"to all", 6, &cast, 0);
            if (code != WEFT_FULL) {
                check(code);
            }
        }
        pass();
    }
}

static atomic_bool is_measured;
static uint64_t measured;

static void *runs(void *unused) {
    (void)unused;
    check(weft_join(&member, WEFT_FOREVER));
    check(weft_identify(member, &self));
    /* What an exchange allocates once, and the steps that follow an admission. */
    exchange(MESSAGES / 2, BROADCASTS);
    time_t until = time(NULL) + 2;
    while (time(NULL) < until) {
        pass();
    }
    /* Neither sleeps from here on, so neither has to be woken. */
    exchange(MESSAGES / 2 + 1, BROADCASTS + 1);
    forbid_system_calls();
    uint64_t before = allocations;
    exchange(MESSAGES, 2 * BROADCASTS);
    measured = allocations - before;
    atomic_store(&is_measured, true);
    for (;;) {
        pass();
    }
    return NULL;
}

static void pause_shortly(void) { thrd_sleep(&(struct timespec){.tv_nsec = 1000000}, NULL); }

int main(int argc, char **argv) {
    pthread_t thread;
    if (argc < 2 || pthread_create(&thread, NULL, runs, NULL) != 0) {
        return EXIT_FAILURE;
    }
    while (!atomic_load(&is_measured)) {
        pause_shortly();
    }
    printf("allocations: %llu\n", (unsigned long long)measured);
    fflush(stdout);
    /* The end of one reaches the other, which must be done by then. */
    for (unsigned rank = 0; rank < 2; rank++) {
        char path[512];
        snprintf(path, sizeof path, "%s%u", argv[1], rank);
        FILE *there = fopen(path, rank == self.rank ? "w" : "r");
        while (there == NULL) {
            pause_shortly();
            there = fopen(path, "r");
        }
        fclose(there);
    }
    /* The thread may not even end. */
    quick_exit(EXIT_SUCCESS);
}
