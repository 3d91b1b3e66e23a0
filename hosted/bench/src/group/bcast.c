/* MPI_Bcast as the rival of a group: from the root's call to the last return elsewhere, in ns of
 * the clock that all processes of one host share.
 *
 *   mpirun -n MEMBERS bcast BYTES COUNT WARM_UP ...      prints "BYTES NS" for each of COUNT
 */
#include <mpi.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static int64_t now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

static void measure(size_t bytes, int64_t count, int64_t warm_up, int me)
{
    char *buffer = malloc(bytes);
    if (buffer == NULL)
        MPI_Abort(MPI_COMM_WORLD, 1);
    memset(buffer, 0x5a, bytes);
    for (int64_t number = 0; number < warm_up + count; number++) {
        if (me == 0)
            memcpy(buffer, &number, sizeof number);
        /* The messages before are no part of this one. */
        MPI_Barrier(MPI_COMM_WORLD);
        int64_t began = now_ns();
        MPI_Bcast(buffer, (int)bytes, MPI_CHAR, 0, MPI_COMM_WORLD);
        int64_t ended = me == 0 ? began : now_ns(), last = 0;
        if (memcmp(buffer, &number, sizeof number) != 0)
            MPI_Abort(MPI_COMM_WORLD, 2);
        MPI_Reduce(&ended, &last, 1, MPI_INT64_T, MPI_MAX, 0, MPI_COMM_WORLD);
        if (me == 0 && number >= warm_up)
            printf("%zu %lld\n", bytes, (long long)(last - began));
    }
    free(buffer);
}

int main(int argc, char **argv)
{
    int me;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &me);
    for (int at = 1; at + 2 < argc; at += 3)
        measure(strtoull(argv[at], NULL, 10), strtoll(argv[at + 1], NULL, 10),
                strtoll(argv[at + 2], NULL, 10), me);
    return MPI_Finalize();
}
