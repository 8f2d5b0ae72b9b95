/* SPDX-License-Identifier: MIT */
/*
 * program-log.h - logs what the programs of pools write to standard output and error.  Each process
 * writes into a pipe of its own, and each of its lines becomes a message with the name of the pool.
 *
 * So no program has the server's log open: it cannot write lines that seem to be the server's, nor
 * truncate a file.  What a pool logs is limited, and nothing waits for a program.  A pipe is read until
 * no process has it open: those that a program has left running outlive its pool, and reloads.
 *
 * For the main thread.
 */
#ifndef SWEET_PROGRAM_LOG_H
#define SWEET_PROGRAM_LOG_H

struct loop;
struct pollfd;
struct program_log;

struct program_log *program_log_open(struct loop *loop);

/*
 * Returns the program's end of a new pipe, which the caller closes when the program has its copy; or
 * -errno.
 */
int program_log_pipe(struct program_log *log, const char *pool);

/* Logs what the programs of a pool have written so far; NULL: of all. */
void program_log_read(struct program_log *log, const char *pool);

/* After the loop: returns the number of pipes, and fills polls, unless it is NULL. */
unsigned program_log_poll(const struct program_log *log, struct pollfd *polls);

/* Logs the rest; programs that still run get EPIPE.  May be NULL. */
void program_log_close(struct program_log *log);

#endif
