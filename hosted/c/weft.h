/* Weft: group communication over one-sided memory access that survives its members' failures.
 *
 * A program that `weft run -n 4 -- ./program` starts is a member: it joins, sends and receives, and
 * is started again when it fails.
 *
 *     weft_member *member;
 *     weft_code code = weft_join(&member, WEFT_FOREVER);
 *     while (code <= WEFT_NONE) {
 *         code = weft_wait(member, 10000);
 *         ...
 *     }
 *
 * FORMS. A member is polled: the thread that joined calls weft_poll or weft_wait at least every few
 * milliseconds, and all other functions; one that does not for 350 ms (dirnet.timing.alarm_us) is
 * killed as hung. weft_spawn gives it a thread of its own: from then on any thread may call any
 * function, several at once, and none has to poll.
 *
 * TIMEOUTS are in microseconds. With 0 a call does what it can at once; with more it waits, and a
 * polled member goes on meanwhile. WEFT_FOREVER waits until the program is ordered to end.
 *
 * RESULTS. WEFT_OK and WEFT_NONE are no errors; every code above WEFT_NONE is one. An error changes
 * nothing, unless its function says otherwise, and weft_last_error has its cause and its cure. What
 * a function writes through a pointer is written where it returns WEFT_OK, and unchanged elsewhere,
 * but for the length that comes with WEFT_BUFFER.
 *
 * POINTERS must be null or point to as much valid, aligned memory as the function reads or writes;
 * that memory remains the caller's, and is not used after the return. A null pointer, and one that
 * is not aligned, is refused (WEFT_NULL), except where a function says what null means; bytes of
 * length 0 may be null. Texts end with a 0 byte, and must be UTF-8 (WEFT_UTF8).
 *
 * LENT memory (`payload` of a message, texts of an error or of a watched event) is the library's. It
 * is valid until the next call of the same thread on the same handle, for the texts of an error until
 * the next weft_last_error of the thread, and no longer than the thread. Copy what must stay.
 *
 * HANDLES are numbers in the form of pointers, and no memory is ever read through them. So a handle
 * that was closed, of another kind, or made up, is refused (WEFT_CLOSED): always for members, of
 * which a process has one in all its time, and for masks and watchers until the same place of the
 * same thread was opened 2^24 times. A handle is refused in any thread that did not make it
 * (WEFT_THREAD), but for a spawned member; in a callback of its own call (WEFT_BUSY); and a member
 * is refused in a child by fork (WEFT_FORKED; vfork and raw clone are not noticed).
 *
 * PANICS, which are bugs of the library, end in WEFT_PANIC and no frame of C is unwound: end the
 * program then, its node starts the next incarnation. A callback must return: it must not throw a
 * C++ exception, longjmp away, or end its thread.
 *
 * SYSTEM. Once it has joined and met the others, a polled member makes no system call and allocates
 * nothing in weft_poll, weft_put, weft_take, weft_release, weft_broadcast, weft_deliver and
 * weft_next_event, except to wake a member that sleeps, and for what failure detection sends by way
 * of its node: now and then, and when a member joins, is suspected or removed. It has one thread
 * besides the caller's, which reads orders of the node.
 */

#ifndef WEFT_H
#define WEFT_H

/* Made by cbindgen from hosted/c/src. Do not edit. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/**
 * A timeout that does not pass.
 */
#define WEFT_FOREVER UINT64_MAX

/**
 * As many notices as one call returns: those that a node keeps for a task, and one that counts
 * those it dropped.
 */
#define WEFT_NOTICES_MAX 17

/**
 * The result of a function. Above WEFT_NONE each is an error.
 */
typedef enum {
    /**
     * Done.
     */
    WEFT_OK = 0,
    /**
     * Nothing was there, or nothing came by the end of the timeout. No error.
     */
    WEFT_NONE = 1,
    /**
     * A pointer is null or not aligned.
     */
    WEFT_NULL = 10,
    /**
     * The handle is none that is open.
     */
    WEFT_CLOSED = 11,
    /**
     * The handle belongs to another thread.
     */
    WEFT_THREAD = 12,
    /**
     * The handle is in use by a call of this thread, whose callback this is.
     */
    WEFT_BUSY = 13,
    /**
     * This process was forked from the member.
     */
    WEFT_FORKED = 14,
    /**
     * The buffer is too small; the length says what is needed. Nothing is lost.
     */
    WEFT_BUFFER = 15,
    /**
     * A text is not UTF-8.
     */
    WEFT_UTF8 = 16,
    /**
     * An argument has no meaning.
     */
    WEFT_ARGUMENT = 17,
    /**
     * The receipt or the request is not open: released, taken or ended before, or never given out.
     */
    WEFT_RECEIPT = 18,
    /**
     * Only a polled member can do this, or only a spawned one.
     */
    WEFT_FORM = 19,
    /**
     * There is no room now.
     */
    WEFT_FULL = 30,
    /**
     * No incarnation of that member is admitted now.
     */
    WEFT_ABSENT = 31,
    /**
     * Not all members have joined the group yet.
     */
    WEFT_OPENING = 32,
    /**
     * The others did not come in time.
     */
    WEFT_TIMED_OUT = 33,
    /**
     * It is longer than the cluster file allows.
     */
    WEFT_TOO_LONG = 40,
    /**
     * There is no such rank.
     */
    WEFT_RANK = 41,
    /**
     * The program of that member has finished.
     */
    WEFT_FINISHED = 42,
    /**
     * There is no group or task of that name, or this member is not in it.
     */
    WEFT_UNKNOWN = 43,
    /**
     * The cluster file does not provide it.
     */
    WEFT_NOT_CONFIGURED = 44,
    /**
     * This node was removed or restarted, and takes no part in broadcasts: only where
     * neb.membership is "fixed".
     */
    WEFT_LEFT = 45,
    /**
     * Another call has to come first.
     */
    WEFT_ORDER = 46,
    /**
     * That member was removed.
     */
    WEFT_PEER_GONE = 47,
    /**
     * The step was cleaned up.
     */
    WEFT_STEP_OVER = 48,
    /**
     * The step was aborted.
     */
    WEFT_ABORTED = 49,
    /**
     * This process is no member, and cannot become one.
     */
    WEFT_NOT_JOINED = 60,
    /**
     * The program is ordered to end.
     */
    WEFT_STOPPING = 61,
    /**
     * This member was removed from its cluster.
     */
    WEFT_EXCLUDED = 62,
    /**
     * The node of this member has ended.
     */
    WEFT_NODE_ENDED = 63,
    /**
     * The fabric, the memory or the system failed.
     */
    WEFT_FAILED = 64,
    /**
     * The cluster is not found, or does not answer.
     */
    WEFT_CLUSTER = 65,
    /**
     * A bug of Weft.
     */
    WEFT_PANIC = 70,
} weft_code;

/**
 * What happened, and which fields of the event say more.
 */
typedef enum {
    /**
     * This member shows a view: number, members.
     */
    WEFT_EVENT_VIEW = 1,
    /**
     * Messages have gone to an incarnation and back: rank, incarnation.
     */
    WEFT_EVENT_JOINED = 2,
    /**
     * The program of a member has finished: rank.
     */
    WEFT_EVENT_FINISHED = 3,
    /**
     * An incarnation is gone and fenced: rank, incarnation, verdict, and the term of a removal.
     */
    WEFT_EVENT_REMOVED = 4,
    /**
     * A member is not heard of. No verdict: rank.
     */
    WEFT_EVENT_SUSPECTED = 5,
    /**
     * A suspect was heard of again: rank.
     */
    WEFT_EVENT_TRUSTED = 6,
    /**
     * No incarnation takes part until an operator releases it: rank.
     */
    WEFT_EVENT_ISOLATED = 7,
    /**
     * An operator has released a member: rank.
     */
    WEFT_EVENT_RELEASED = 8,
    /**
     * Two members show different broadcasts under one number: rank (the origin), number, replayer.
     */
    WEFT_EVENT_CONFLICT = 9,
    /**
     * A receive has ended, once for each: request, received, and the shape of a mismatch.
     */
    WEFT_EVENT_ENDED = 10,
    /**
     * The memory of a receive is free, once for each: request.
     */
    WEFT_EVENT_RETURNED = 11,
    /**
     * The receiver has a tensor that was sent: request (what weft_send has returned).
     */
    WEFT_EVENT_CONSUMED = 12,
    /**
     * This member was removed; its node ends the process at once.
     */
    WEFT_EVENT_EXCLUDED = 13,
    /**
     * End in order, within 5 s.
     */
    WEFT_EVENT_STOP = 14,
    /**
     * The program did not drain the events, and so many are lost: number.
     */
    WEFT_EVENT_MISSED = 15,
    /**
     * An event of a later version of the library.
     */
    WEFT_EVENT_OTHER = 99,
} weft_event_kind;

/**
 * How it is known that an incarnation is gone.
 */
typedef enum {
    /**
     * No verdict.
     */
    WEFT_VERDICT_NONE = 0,
    /**
     * Its process has ended.
     */
    WEFT_VERDICT_ENDED = 1,
    /**
     * The manager has removed its node.
     */
    WEFT_VERDICT_NODE_REMOVED = 2,
    /**
     * As a later version of the library says.
     */
    WEFT_VERDICT_OTHER = 99,
} weft_verdict;

/**
 * How a receive ended.
 */
typedef enum {
    /**
     * No receive.
     */
    WEFT_RECEIVED_NONE = 0,
    /**
     * The tensor is there: take it.
     */
    WEFT_RECEIVED_VALUE = 1,
    /**
     * The tensor is dead.
     */
    WEFT_RECEIVED_DEAD = 2,
    /**
     * Its timeout has passed.
     */
    WEFT_RECEIVED_TIMED_OUT = 3,
    /**
     * By weft_cancel.
     */
    WEFT_RECEIVED_CANCELLED = 4,
    /**
     * The step was aborted.
     */
    WEFT_RECEIVED_ABORTED = 5,
    /**
     * The source's incarnation has ended.
     */
    WEFT_RECEIVED_PEER_GONE = 6,
    /**
     * The name was that of another boot of the source.
     */
    WEFT_RECEIVED_SOURCE_RESTARTED = 7,
    /**
     * The tensor is not what was expected, and stays at its source.
     */
    WEFT_RECEIVED_MISMATCH = 8,
    /**
     * Its bytes were damaged; it stays at its source.
     */
    WEFT_RECEIVED_CORRUPT = 9,
    /**
     * It is longer than the memory for tensors.
     */
    WEFT_RECEIVED_TOO_LARGE = 10,
    /**
     * The step was cleaned up.
     */
    WEFT_RECEIVED_STEP_OVER = 11,
    /**
     * The source has no room for one more receive that waits.
     */
    WEFT_RECEIVED_NO_SPACE = 12,
    /**
     * The host could not hand it over; it stays at its source.
     */
    WEFT_RECEIVED_NOT_HANDED_OVER = 13,
} weft_received;

/**
 * What a member receives of one root.
 */
typedef enum {
    /**
     * The next part of a message.
     */
    WEFT_PART = 1,
    /**
     * The message will not become whole, at any member.
     */
    WEFT_PART_ABANDONED = 2,
    /**
     * The root was removed; all survivors have received its messages up to `seq`, and no other.
     */
    WEFT_PART_ROOT_LOST = 3,
    /**
     * A delivery of a later version of the library.
     */
    WEFT_PART_OTHER = 99,
} weft_part_kind;

/**
 * What a notice is.
 */
typedef enum {
    /**
     * SEND of the recovery script: number.
     */
    WEFT_NOTICE_NUMBER = 1,
    /**
     * WARN of the recovery script: number (the error; 0 for a plain WARN), about.
     */
    WEFT_NOTICE_WARNING = 2,
    /**
     * A round of a vote is over: round, nversion, voters; and if the versions agree, is_agreed,
     * agreed, and number, or is_digest and digest.
     */
    WEFT_NOTICE_OUTCOME = 3,
    /**
     * The program did not ask, and so many older notices are lost: number.
     */
    WEFT_NOTICE_MISSED = 4,
} weft_notice_kind;

/**
 * What happened in a cluster that is watched.
 */
typedef enum {
    /**
     * A view, after the joins and removals that led to it.
     */
    WEFT_WATCHED_VIEW = 1,
    /**
     * An incarnation is a member.
     */
    WEFT_WATCHED_JOINED = 2,
    /**
     * A manager has decided that an incarnation has failed.
     */
    WEFT_WATCHED_FAILED = 3,
    /**
     * An incarnation is no member any more.
     */
    WEFT_WATCHED_REMOVED = 4,
    /**
     * A node was isolated until it is released.
     */
    WEFT_WATCHED_ISOLATED = 5,
    /**
     * An operator has released an isolated node.
     */
    WEFT_WATCHED_RELEASED = 6,
    /**
     * A node is not heard.
     */
    WEFT_WATCHED_SUSPECTED = 7,
    /**
     * A suspect was heard again.
     */
    WEFT_WATCHED_TRUSTED = 8,
    /**
     * A task of a node has started, ended, or hangs.
     */
    WEFT_WATCHED_TASK = 9,
    /**
     * The watcher read too slowly: suspicions and verdicts are missing.
     */
    WEFT_WATCHED_MISSED = 10,
    /**
     * An event of a later version of the library.
     */
    WEFT_WATCHED_OTHER = 99,
} weft_watched_kind;

/**
 * The type of the elements of a tensor.
 */
typedef enum {
    /**
     * One byte, 0 or 1.
     */
    WEFT_BOOL = 1,
    /**
     * Unsigned, 8 bits.
     */
    WEFT_U8 = 2,
    /**
     * Signed, 8 bits.
     */
    WEFT_I8 = 3,
    /**
     * Unsigned, 16 bits.
     */
    WEFT_U16 = 4,
    /**
     * Signed, 16 bits.
     */
    WEFT_I16 = 5,
    /**
     * Unsigned, 32 bits.
     */
    WEFT_U32 = 6,
    /**
     * Signed, 32 bits.
     */
    WEFT_I32 = 7,
    /**
     * Unsigned, 64 bits.
     */
    WEFT_U64 = 8,
    /**
     * Signed, 64 bits.
     */
    WEFT_I64 = 9,
    /**
     * IEEE 754 binary16.
     */
    WEFT_F16 = 10,
    /**
     * The upper half of a binary32.
     */
    WEFT_BF16 = 11,
    /**
     * IEEE 754 binary32: float.
     */
    WEFT_F32 = 12,
    /**
     * IEEE 754 binary64: double.
     */
    WEFT_F64 = 13,
    /**
     * 8 bits: 4 of exponent, 3 of mantissa.
     */
    WEFT_F8_E4M3 = 14,
    /**
     * 8 bits: 5 of exponent, 2 of mantissa.
     */
    WEFT_F8_E5M2 = 15,
    /**
     * Two binary32.
     */
    WEFT_C64 = 16,
    /**
     * Two binary64.
     */
    WEFT_C128 = 17,
} weft_dtype;

/**
 * How the blocks of a message travel from its root to the others.
 */
typedef enum {
    /**
     * As suits the fabric.
     */
    WEFT_TOPOLOGY_AUTO = 0,
    /**
     * The root serves each member.
     */
    WEFT_TOPOLOGY_SERIAL = 1,
    /**
     * Each member serves the next.
     */
    WEFT_TOPOLOGY_PIPE = 2,
    /**
     * Each member serves the first of each half of its range.
     */
    WEFT_TOPOLOGY_BINARY = 3,
    /**
     * The same, with parts of unequal size.
     */
    WEFT_TOPOLOGY_FIBONACCI = 4,
    /**
     * Blocks by the binomial pipeline.
     */
    WEFT_TOPOLOGY_PIPELINE = 5,
} weft_topology;

/**
 * The membership of a running cluster, in memory.
 */
typedef struct weft_mask weft_mask;

/**
 * A member of a cluster: this process.
 */
typedef struct weft_member weft_member;

/**
 * Watches a running cluster.
 */
typedef struct weft_watcher weft_watcher;

/**
 * The last error of a thread.
 */
typedef struct {
    /**
     * What the function returned.
     */
    weft_code code;
    /**
     * What happened: UTF-8, lent.
     */
    const char *cause;
    /**
     * What to do: UTF-8, lent.
     */
    const char *cure;
} weft_error;

/**
 * What a member knows of itself and of its cluster from the start.
 */
typedef struct {
    /**
     * The rank of this member.
     */
    uint16_t rank;
    /**
     * How many members the cluster has, running or not: ranks are 0 to size - 1.
     */
    uint16_t size;
    /**
     * One higher for each start of a process at this node.
     */
    uint32_t incarnation;
    /**
     * The longest message of the mailbox, in bytes.
     */
    size_t message_len;
    /**
     * The longest broadcast, in bytes.
     */
    size_t broadcast_len;
    /**
     * The name of the cluster.
     */
    char name[33];
} weft_identity;

/**
 * A step of a program, with what weft_working was given for it.
 */
typedef void (*weft_step)(void *context);

/**
 * An incarnation of a member as views name it; a boot of 0 is none.
 */
typedef struct {
    /**
     * How often its node was started.
     */
    uint32_t boot;
    /**
     * How many components that boot had before.
     */
    uint32_t generation;
} weft_generation;

/**
 * A membership on which all members that show its number agree.
 */
typedef struct {
    /**
     * Its number: of two views the later one has the higher number.
     */
    uint64_t number;
    /**
     * The members, a bit for each rank.
     */
    uint64_t members;
    /**
     * The manager that decided it.
     */
    uint16_t manager;
    /**
     * The membership may be another by now.
     */
    bool is_stale;
    /**
     * The incarnation of each member, by rank.
     */
    weft_generation incarnations[64];
} weft_view;

/**
 * The shape of a tensor; its elements are in row-major order and in the byte order of the host.
 */
typedef struct {
    /**
     * The type of its elements: a weft_dtype.
     */
    uint8_t dtype;
    /**
     * How many dimensions it has, at most 8; 0 for a scalar.
     */
    uint8_t rank;
    /**
     * Its dimensions.
     */
    uint64_t dims[8];
} weft_shape;

/**
 * Something that a member learns of its cluster. A field that its kind does not name is 0.
 */
typedef struct {
    /**
     * What happened.
     */
    weft_event_kind kind;
    /**
     * The member that it is about.
     */
    uint16_t rank;
    /**
     * The member that shows another broadcast than this one.
     */
    uint16_t replayer;
    /**
     * The incarnation of `rank`.
     */
    uint32_t incarnation;
    /**
     * What weft_receive or weft_send has returned.
     */
    uint32_t request;
    /**
     * The number of a view or a broadcast, or how many events are lost.
     */
    uint64_t number;
    /**
     * The members of a view, a bit for each rank.
     */
    uint64_t members;
    /**
     * How it is known that an incarnation is gone.
     */
    weft_verdict verdict;
    /**
     * The term of a removal: how many terms there were before it, at least.
     */
    uint32_t term_epoch;
    /**
     * The term of a removal: the manager that decided it.
     */
    uint16_t term_manager;
    /**
     * How a receive ended.
     */
    weft_received received;
    /**
     * What the tensor is that was not expected.
     */
    weft_shape shape;
} weft_event;

/**
 * A message that was taken.
 */
typedef struct {
    /**
     * The sender.
     */
    uint16_t sender;
    /**
     * The sender's number for it: one higher for each message of an incarnation. One that is put
     * again after a failure has the same.
     */
    uint32_t sequence;
    /**
     * What weft_release takes.
     */
    uint64_t receipt;
    /**
     * Its bytes, lent.
     */
    const uint8_t *payload;
    /**
     * How many they are.
     */
    size_t len;
} weft_message;

/**
 * The bytes of one message of a batch.
 */
typedef struct {
    /**
     * Where they are.
     */
    const uint8_t *bytes;
    /**
     * How many they are.
     */
    size_t len;
} weft_payload;

/**
 * A broadcast that was delivered.
 */
typedef struct {
    /**
     * The member that broadcast it.
     */
    uint16_t origin;
    /**
     * Its number among those of its origin, from 1.
     */
    uint64_t seq;
    /**
     * Its bytes, lent.
     */
    const uint8_t *payload;
    /**
     * How many they are.
     */
    size_t len;
} weft_delivery;

/**
 * A part of a message of a group.
 */
typedef struct {
    /**
     * What it is.
     */
    weft_part_kind kind;
    /**
     * The sender.
     */
    uint16_t root;
    /**
     * The message is whole with it.
     */
    bool is_last;
    /**
     * The number of the message, from 1.
     */
    uint64_t seq;
    /**
     * The sender's tag.
     */
    uint64_t tag;
    /**
     * Bytes of the whole message.
     */
    uint64_t message_len;
    /**
     * Where in the message the part begins.
     */
    uint64_t offset;
} weft_part;

/**
 * How many messages of a root have come how far, as this member knows it.
 */
typedef struct {
    /**
     * Held here.
     */
    uint64_t held;
    /**
     * Received by the program here.
     */
    uint64_t received;
    /**
     * Received by all members; known to the root alone.
     */
    uint64_t stable;
} weft_standing;

/**
 * What a member has given to an all-gather.
 */
typedef struct {
    /**
     * Its bytes, lent; null of a member that was removed before it gave any.
     */
    const uint8_t *bytes;
    /**
     * How many they are.
     */
    size_t len;
} weft_value;

/**
 * What a receive takes; what differs stays at its source.
 */
typedef struct {
    /**
     * Elements of this type alone: a weft_dtype; 0 for any.
     */
    uint8_t dtype;
    /**
     * This shape alone; null for any.
     */
    const weft_shape *shape;
    /**
     * At most so many bytes; 0 for any.
     */
    uint64_t bytes_max;
} weft_expect;

/**
 * What a recovery script, or the outcome of a vote, has for a task. A field that its kind does not
 * name is 0.
 */
typedef struct {
    /**
     * What it is.
     */
    weft_notice_kind kind;
    /**
     * The round of the vote.
     */
    uint32_t round;
    /**
     * What is sent, what the error is, what was voted for, or how many are lost.
     */
    int64_t number;
    /**
     * The first eight bytes of the SHA-256 of what was voted for, as a number.
     */
    uint64_t digest;
    /**
     * The task, group or node that a warning is about, as the script names it: "T3".
     */
    char about[8];
    /**
     * The number of the N-version task.
     */
    uint8_t nversion;
    /**
     * The versions that have voted, the lowest bit for version 1.
     */
    uint8_t voters;
    /**
     * Those that agree.
     */
    uint8_t agreed;
    /**
     * Whether the versions agree.
     */
    bool is_agreed;
    /**
     * Whether they agree on bytes.
     */
    bool is_digest;
} weft_notice;

/**
 * An event of a cluster that is watched. Texts are lent; one that the event does not have is
 * empty.
 */
typedef struct {
    /**
     * What happened.
     */
    weft_watched_kind kind;
    /**
     * The member; -1 for a view.
     */
    int32_t rank;
    /**
     * The number of the view that shows it, or of the last one before it.
     */
    uint64_t view;
    /**
     * The members of a view, a bit for each rank.
     */
    uint64_t members;
    /**
     * When, by the clock of the host, in nanoseconds.
     */
    uint64_t at_ns;
    /**
     * How many entries are missing.
     */
    uint64_t missed;
    /**
     * Whether the incarnation is fenced at the node that is watched.
     */
    bool is_fenced;
    /**
     * The term, as its epoch and its manager.
     */
    const char *term;
    /**
     * The incarnation, as boot and generation.
     */
    const char *incarnation;
    /**
     * The verdict that led to a removal, or what has become of a task.
     */
    const char *verdict;
    /**
     * What the verdict rests on, a line for each.
     */
    const char *evidence;
    /**
     * The task that it is about.
     */
    const char *task;
} weft_watched;

#ifdef __cplusplus
extern "C" {
#endif // __cplusplus

/**
 * Writes the last error of this thread to `error`. A call that succeeds leaves it as it is.
 *
 * Returns WEFT_NONE if no call of this thread was refused.
 *
 * # Safety
 * POINTERS above.
 */
weft_code weft_last_error(weft_error *error);

/**
 * The version of the library, as a text that stays valid.
 */
const char *weft_version(void);

/**
 * Makes this process a member: takes over what the node that started it hands to it, and waits
 * until the cluster has admitted it. Join first, then prepare: the node kills a program that does
 * not join.
 *
 * The member is polled, by this thread, and is this process's for all time: once joined, or
 * refused by anything but WEFT_NULL, a process does not join again.
 *
 * Errors: WEFT_NOT_JOINED (this process was not started by a node, or has joined), WEFT_TIMED_OUT,
 * WEFT_STOPPING, WEFT_FAILED.
 *
 * # Safety
 * POINTERS above.
 */
weft_code weft_join(weft_member **member, uint64_t timeout_us);

/**
 * Gives the member a thread of its own that polls. The handle stays the same; from now on it is
 * for all threads.
 *
 * Errors: WEFT_FORM (it is spawned already); WEFT_FAILED, and then the member is closed.
 *
 * # Safety
 * POINTERS above.
 */
weft_code weft_spawn(weft_member *member);

/**
 * Closes the member. A polled one goes nowhere from here on, so its program should end. A spawned
 * one waits for 5 s at most until what was put has arrived, unless another thread is in a call;
 * its thread goes on until the process ends. A program may also end without it; see weft_flush.
 *
 * # Safety
 * POINTERS above.
 */
weft_code weft_close(weft_member *member);

/**
 * Writes what the member knows of itself to `identity`.
 *
 * # Safety
 * POINTERS above.
 */
weft_code weft_identify(weft_member *member, weft_identity *identity);

/**
 * Moves everything on and never waits: messages, broadcasts, failure detection. Call it at least
 * every few milliseconds.
 *
 * Returns WEFT_OK if something was done, WEFT_NONE if not, and WEFT_STOPPING once the program is
 * ordered to end: it goes on all the same, for 5 s, so that what was begun can be ended.
 *
 * Errors: WEFT_NODE_ENDED, WEFT_FAILED: end the program. WEFT_FORM: a spawned member polls itself.
 *
 * # Safety
 * POINTERS above.
 */
weft_code weft_poll(weft_member *member);

/**
 * As weft_poll, and where there is nothing to do, waits until there is: until a poll has done
 * something, or there is an event, a message or a delivery; WEFT_NONE by the end of the timeout.
 * It spins, yields or sleeps as `wait` in the cluster file says.
 *
 * # Safety
 * POINTERS above.
 */
weft_code weft_wait(weft_member *member, uint64_t timeout_us);

/**
 * Writes a descriptor to `descriptor` that is readable while a spawned member has something to
 * drain, and after its end: for poll and epoll. Drain with timeouts of 0 until nothing is left; do
 * not read from it, and do not close it. It is valid until weft_close.
 *
 * Errors: WEFT_FORM: a polled member has none.
 *
 * # Safety
 * POINTERS above.
 */
weft_code weft_descriptor(weft_member *member, int *descriptor);

/**
 * Calls `step(context)`, which takes long and polls nothing, while a thread polls in place of the
 * program: up to the limit it does not count as hung, after that it does. What arrives meanwhile
 * waits. The step cannot use the member (WEFT_BUSY). A spawned member needs no such thread, and
 * the step is called as it is.
 *
 * Errors: WEFT_TOO_LONG (the limit is above component.working_s), WEFT_FAILED; the step was not
 * called.
 *
 * # Safety
 * POINTERS above; `context` is passed on as it is.
 */
weft_code weft_working(weft_member *member, uint64_t limit_us, weft_step step, void *context);

/**
 * The name of a code as this header spells it, as a text that stays valid; "?" for none.
 */
const char *weft_code_name(int code);

/**
 * Writes the view that this member shows to `view`; WEFT_NONE before the first one. Numbers rise,
 * also under the next manager.
 *
 * # Safety
 * POINTERS above.
 */
weft_code weft_current_view(weft_member *member, weft_view *view);

/**
 * Writes the members that this one exchanges messages with now to `members`, a bit for each rank,
 * itself included. What others see may differ for as long as a change takes.
 *
 * # Safety
 * POINTERS above.
 */
weft_code weft_members(weft_member *member, uint64_t *members);

/**
 * Writes the next event to `event`, oldest first; WEFT_NONE if none comes. Drain them: of more
 * than 1024 the later ones are counted instead of kept.
 *
 * # Safety
 * POINTERS above.
 */
weft_code weft_next_event(weft_member *member, weft_event *event, uint64_t timeout_us);

/**
 * Puts the `len` bytes at `payload` into the mailbox of the member `to`, which may be this one. It
 * is copied, is on its way with the next poll, and arrives in order, also at the next incarnation
 * of `to`. With a timeout it waits for room, and for an incarnation that is admitted.
 *
 * Errors: WEFT_FULL, WEFT_ABSENT: poll, and put again. WEFT_TOO_LONG, WEFT_RANK, WEFT_FINISHED.
 *
 * # Safety
 * POINTERS above.
 */
weft_code weft_put(weft_member *member,
                   uint16_t to,
                   const uint8_t *payload,
                   size_t len,
                   uint64_t timeout_us);

/**
 * Waits until all that was put is in the memory of its receivers; WEFT_NONE if it is not by the
 * end of the timeout. Flush before a program ends.
 *
 * # Safety
 * POINTERS above.
 */
weft_code weft_flush(weft_member *member, uint64_t timeout_us);

/**
 * Takes the next message of the own mailbox; WEFT_NONE if none comes. Its payload is lent. It
 * comes again, to the next incarnation of this member, unless it is released.
 *
 * # Safety
 * POINTERS above.
 */
weft_code weft_take(weft_member *member, weft_message *message, uint64_t timeout_us);

/**
 * The message of `receipt` is processed: its memory is free for the next one. Receipts may be
 * released in any order, each once.
 *
 * Errors: WEFT_RECEIPT.
 *
 * # Safety
 * POINTERS above.
 */
weft_code weft_release(weft_member *member, uint64_t receipt);

/**
 * Puts the first of the `count` messages at `payloads` into the mailbox of the member `to`, as
 * many as there is room for, and writes how many to `accepted`: put the rest again. With a timeout
 * it waits until one was accepted.
 *
 * Errors: those of weft_put, if none was accepted. WEFT_NULL: also of the bytes of any message;
 * nothing was put.
 *
 * # Safety
 * POINTERS above.
 */
weft_code weft_put_batch(weft_member *member,
                         uint16_t to,
                         const weft_payload *payloads,
                         size_t count,
                         size_t *accepted,
                         uint64_t timeout_us);

/**
 * Takes the next messages of the own mailbox, at most `capacity`, as soon as there is one; writes
 * them to `messages`, and how many to `count`. WEFT_NONE if none comes. Their payloads are copied,
 * and lent until the next weft_take_batch of this thread. They come again, to the next incarnation
 * of this member, unless they are released.
 *
 * # Safety
 * POINTERS above.
 */
weft_code weft_take_batch(weft_member *member,
                          weft_message *messages,
                          size_t capacity,
                          size_t *count,
                          uint64_t timeout_us);

/**
 * Releases the `count` messages at `messages`, of which only the receipts are read, as
 * weft_release does one.
 *
 * Errors: WEFT_RECEIPT: those before the one that is not open are released.
 *
 * # Safety
 * POINTERS above.
 */
weft_code weft_release_batch(weft_member *member, const weft_message *messages, size_t count);

/**
 * Broadcasts the `len` bytes at `payload` to all other members. Writes its number to `seq`, unless
 * that is null. With a timeout it waits for room in the window.
 *
 * Errors: WEFT_FULL (a member has not delivered what was broadcast before), WEFT_TOO_LONG,
 * WEFT_LEFT.
 *
 * # Safety
 * POINTERS above.
 */
weft_code weft_broadcast(weft_member *member,
                         const uint8_t *payload,
                         size_t len,
                         uint64_t *seq,
                         uint64_t timeout_us);

/**
 * Delivers the next broadcast of another member, in the order of its origin; WEFT_NONE if none
 * comes. Its payload is lent. It comes once.
 *
 * # Safety
 * POINTERS above.
 */
weft_code weft_deliver(weft_member *member, weft_delivery *delivery, uint64_t timeout_us);

/**
 * Returns broadcast `seq` of `origin`, which may be this member, if this or an earlier incarnation
 * has delivered it and it is among the last neb.slots - 16 of its origin; else WEFT_NONE. Its
 * payload is lent.
 *
 * # Safety
 * POINTERS above.
 */
weft_code weft_delivered(weft_member *member,
                         uint16_t origin,
                         uint64_t seq,
                         weft_delivery *delivery);

/**
 * Whether all members have joined the group: WEFT_OK, or WEFT_NONE if not by the end of the
 * timeout. Groups are named in the cluster file, "all" where group.count is 1.
 *
 * Errors: WEFT_UNKNOWN, as of all functions of groups.
 *
 * # Safety
 * POINTERS above.
 */
weft_code weft_group_open(weft_member *member, const char *group, uint64_t timeout_us);

/**
 * The messages that this incarnation sends to the group from now on travel by `topology`, a
 * weft_topology, instead of as the cluster file says.
 *
 * Errors: WEFT_ARGUMENT: there is no such topology.
 *
 * # Safety
 * POINTERS above.
 */
weft_code weft_group_set_topology(weft_member *member, const char *group, uint8_t topology);

/**
 * Sends the `len` bytes at `payload` to all other members of the group, whole or not at all, with
 * a tag of the caller. Writes its number to `seq`.
 *
 * Errors: WEFT_OPENING, WEFT_FULL: poll, and send again; with a timeout the call does.
 * WEFT_TOO_LONG: longer than the window; begin it. WEFT_ORDER: a long message is not written to
 * its end.
 *
 * # Safety
 * POINTERS above.
 */
weft_code weft_group_broadcast(weft_member *member,
                               const char *group,
                               uint64_t tag,
                               const uint8_t *payload,
                               size_t len,
                               uint64_t *seq,
                               uint64_t timeout_us);

/**
 * Begins a message of `len` bytes, which weft_group_write writes. Writes its number to `seq`.
 *
 * Errors: as of weft_group_broadcast.
 *
 * # Safety
 * POINTERS above.
 */
weft_code weft_group_begin(weft_member *member,
                           const char *group,
                           uint64_t tag,
                           uint64_t len,
                           uint64_t *seq,
                           uint64_t timeout_us);

/**
 * Writes the next bytes of the message that was begun, in whole blocks: as many as there is room
 * for and `payload` has, the last block at its end. Writes how many to `written`; pass the rest
 * again.
 *
 * Errors: WEFT_FULL: there is room for no block. WEFT_ORDER: no message was begun.
 *
 * # Safety
 * POINTERS above.
 */
weft_code weft_group_write(weft_member *member,
                           const char *group,
                           const uint8_t *payload,
                           size_t len,
                           size_t *written,
                           uint64_t timeout_us);

/**
 * Copies the next part that any other member has sent to `buffer`, its length to `len` and what it
 * is to `part`; WEFT_NONE if none comes. Its memory is free for its root then. An incarnation
 * receives again what the one before it did not.
 *
 * Errors: WEFT_BUFFER: the buffer must have room for a block, and `len` is that length
 * (group.block_len).
 *
 * # Safety
 * POINTERS above.
 */
weft_code weft_group_receive(weft_member *member,
                             const char *group,
                             uint8_t *buffer,
                             size_t capacity,
                             size_t *len,
                             weft_part *part,
                             uint64_t timeout_us);

/**
 * Writes to `standing` how far the messages of `root` have come; WEFT_NONE if that is not known.
 *
 * # Safety
 * POINTERS above.
 */
weft_code weft_group_standing(weft_member *member,
                              const char *group,
                              uint16_t root,
                              weft_standing *standing);

/**
 * Waits until all members of the group have entered the barrier, and polls meanwhile. Writes its
 * number to `number`, from 1. Members that are removed are not waited for. An entry stands: a call
 * after one that timed out waits for the same barrier.
 *
 * Errors: WEFT_TIMED_OUT.
 *
 * # Safety
 * POINTERS above.
 */
weft_code weft_barrier(weft_member *member,
                       const char *group,
                       uint64_t *number,
                       uint64_t timeout_us);

/**
 * Gives the `len` bytes at `mine` to all members of the group, and writes what each has given to
 * `values`: `count` of them, in the order of the group, lent. All survivors return the same.
 * Receive what was sent before it. A value stands, as the entry of a barrier does.
 *
 * Errors: WEFT_TOO_LONG, WEFT_TIMED_OUT.
 *
 * # Safety
 * POINTERS above.
 */
weft_code weft_all_gather(weft_member *member,
                          const char *group,
                          const uint8_t *mine,
                          size_t len,
                          const weft_value **values,
                          size_t *count,
                          uint64_t timeout_us);

/**
 * Sends the tensor of `shape` whose `len` bytes are at `elements` to the member `to`, which may be
 * this one, under a name: `edge`, 1 to 480 bytes without ';', and a step. It is copied, and waits
 * for its receiver. With a timeout the call waits for room. Writes the number to `request` that
 * WEFT_EVENT_CONSUMED will have.
 *
 * A null `shape` sends a dead tensor: its receiver learns that there is none.
 *
 * Errors: WEFT_NOT_CONFIGURED (set rendezvous.pool_mib), WEFT_FULL, WEFT_TOO_LONG, WEFT_RANK,
 * WEFT_ARGUMENT (name, shape, or a length that is not the shape's), WEFT_FINISHED,
 * WEFT_STEP_OVER, WEFT_ABORTED.
 *
 * # Safety
 * POINTERS above.
 */
weft_code weft_send(weft_member *member,
                    uint16_t to,
                    const char *edge,
                    int64_t step,
                    const weft_shape *shape,
                    const uint8_t *elements,
                    size_t len,
                    uint32_t *request,
                    uint64_t timeout_us);

/**
 * Asks the member `from` for the tensor of a name, which it may send earlier or later. Writes the
 * number to `request` that two events will have, each once: WEFT_EVENT_ENDED, after the timeout at
 * the latest, and WEFT_EVENT_RETURNED. The call of a polled member returns at once; that of a
 * spawned one may wait as long for room. A null `expect` takes any tensor.
 *
 * Errors: as of weft_send, and WEFT_PEER_GONE.
 *
 * # Safety
 * POINTERS above.
 */
weft_code weft_receive(weft_member *member,
                       uint16_t from,
                       const char *edge,
                       int64_t step,
                       const weft_expect *expect,
                       uint32_t *request,
                       uint64_t timeout_us);

/**
 * Ends a receive by order, unless it has ended: its WEFT_EVENT_ENDED still comes.
 *
 * Errors: WEFT_RECEIPT.
 *
 * # Safety
 * POINTERS above.
 */
weft_code weft_cancel(weft_member *member, uint32_t request);

/**
 * Copies the tensor with which a receive has ended to `buffer`, its length to `len`, and what it
 * is to `shape`. Each is taken once, and keeps its memory until then.
 *
 * Errors: WEFT_RECEIPT: no tensor of this request is there. WEFT_BUFFER: `len` is what it needs.
 *
 * # Safety
 * POINTERS above.
 */
weft_code weft_take_tensor(weft_member *member,
                           uint32_t request,
                           uint8_t *buffer,
                           size_t capacity,
                           size_t *len,
                           weft_shape *shape);

/**
 * Drops the tensors of a step that were sent here, and ends its receives, here and at members that
 * wait for them, with WEFT_RECEIVED_STEP_OVER.
 *
 * Errors: WEFT_NOT_CONFIGURED.
 *
 * # Safety
 * POINTERS above.
 */
weft_code weft_clean_step(weft_member *member, int64_t step);

/**
 * As weft_clean_step, with WEFT_RECEIVED_ABORTED. The first end of a step stands.
 *
 * # Safety
 * POINTERS above.
 */
weft_code weft_abort_step(weft_member *member, int64_t step);

/**
 * Replaces the record of this member, which outlives the program and not its node. An incarnation
 * that is killed in the middle leaves the record before.
 *
 * Errors: WEFT_NOT_CONFIGURED (set component.state, or `weft run --state 1MiB`), WEFT_TOO_LONG.
 *
 * # Safety
 * POINTERS above.
 */
weft_code weft_save(weft_member *member, const uint8_t *record, size_t len);

/**
 * Copies the record that this or an earlier incarnation has saved to `buffer`, and writes its
 * length to `len`; WEFT_NONE if there is none.
 *
 * Errors: WEFT_BUFFER: `len` is what it needs.
 *
 * # Safety
 * POINTERS above.
 */
weft_code weft_saved(weft_member *member, uint8_t *buffer, size_t capacity, size_t *len);

/**
 * Votes for a number in `round` for `task`, a task of this node that is a version of an N-version
 * task. The vote stands once this returns, whatever fails later; the same vote again changes
 * nothing. Rounds are numbered from 1, and a version waits for the outcome before it votes in a
 * later one.
 *
 * Errors: WEFT_UNKNOWN: this node has no such task, or it is no version. WEFT_NOT_CONFIGURED: the
 * cluster has no recovery script. WEFT_ORDER: another vote stands, the round is over, or an
 * earlier one is open. WEFT_ARGUMENT: round 0.
 *
 * # Safety
 * POINTERS above.
 */
weft_code weft_vote_number(weft_member *member, const char *task, uint32_t round, int64_t number);

/**
 * Votes for the `len` bytes at `value`, by their SHA-256: as weft_vote_number does for a number.
 *
 * Errors: those of weft_vote_number. WEFT_ARGUMENT: also where the script compares numbers.
 *
 * # Safety
 * POINTERS above.
 */
weft_code weft_vote_bytes(weft_member *member,
                          const char *task,
                          uint32_t round,
                          const uint8_t *value,
                          size_t len);

/**
 * Reports that `task`, a task of this node, is in a phase: a number that the task defines, and the
 * guard PHASE of a recovery script reads. It does not last longer than the process of the task.
 *
 * Errors: WEFT_UNKNOWN: this node has no such task.
 *
 * # Safety
 * POINTERS above.
 */
weft_code weft_report_phase(weft_member *member, const char *task, uint8_t phase);

/**
 * Takes what SEND and WARN of the recovery script have for `task`, a task of this node, and
 * outcomes of votes, oldest first; writes them to `notices`, and how many to `count`. WEFT_NONE if
 * none comes. Ask again after each: a call has seen what the one before has returned, and what an
 * incarnation has not seen, the next one gets again.
 *
 * Errors: WEFT_UNKNOWN: this node has no such task. WEFT_BUFFER: `capacity` is less than
 * WEFT_NOTICES_MAX.
 *
 * # Safety
 * POINTERS above.
 */
weft_code weft_notices(weft_member *member,
                       const char *task,
                       weft_notice *notices,
                       size_t capacity,
                       size_t *count,
                       uint64_t timeout_us);

/**
 * Finds the running cluster of this name on this host, waiting up to the timeout for one that is
 * being started, and maps the page on which its node `node` shows the membership. The caller need
 * not be a member.
 *
 * The page stays as it was when that node's supervisor ends: who must know watches as well.
 *
 * Errors: WEFT_CLUSTER, WEFT_RANK, WEFT_ARGUMENT (no name of a cluster).
 *
 * # Safety
 * POINTERS above.
 */
weft_code weft_mask_open(weft_mask **mask, const char *cluster, uint16_t node, uint64_t timeout_us);

/**
 * Writes how often the page has changed to `changes`: one load.
 *
 * # Safety
 * POINTERS above.
 */
weft_code weft_mask_changes(weft_mask *mask, uint64_t *changes);

/**
 * Writes the number of the view that is shown last to `number`, 0 for none yet, and its members to
 * `members`, a bit for each rank, without those that are known to have ended. WEFT_NONE while the
 * page is being changed, or if it is damaged.
 *
 * # Safety
 * POINTERS above.
 */
weft_code weft_mask_load(weft_mask *mask, uint64_t *number, uint64_t *members);

/**
 * Writes the incarnation of `rank` in the view `number` to `incarnation`; WEFT_NONE if it is no
 * member of it, has ended, or another view is shown by now.
 *
 * # Safety
 * POINTERS above.
 */
weft_code weft_mask_incarnation(weft_mask *mask,
                                uint64_t number,
                                uint16_t rank,
                                weft_generation *incarnation);

/**
 * Closes the mask.
 *
 * # Safety
 * POINTERS above.
 */
weft_code weft_mask_close(weft_mask *mask);

/**
 * Watches the running cluster of this name on this host, waiting up to the timeout for one that is
 * being started. The caller need not be a member. When the node dies that it asks, it goes on at
 * the next.
 *
 * Errors: WEFT_CLUSTER, WEFT_ARGUMENT (no name of a cluster).
 *
 * # Safety
 * POINTERS above.
 */
weft_code weft_watch(weft_watcher **watcher, const char *cluster, uint64_t timeout_us);

/**
 * Writes the next event to `event`; WEFT_NONE if none comes.
 *
 * Errors: WEFT_CLUSTER: no node answers any more.
 *
 * # Safety
 * POINTERS above.
 */
weft_code weft_watch_next(weft_watcher *watcher, weft_watched *event, uint64_t timeout_us);

/**
 * Closes the watcher.
 *
 * # Safety
 * POINTERS above.
 */
weft_code weft_watch_close(weft_watcher *watcher);

#ifdef __cplusplus
}  // extern "C"
#endif  // __cplusplus

#endif  /* WEFT_H */
