/* SPDX-License-Identifier: MIT
 *
 * A program that changes what all its threads may do by libpsx, and looks up in /proc that every task has it.
 */
#define _GNU_SOURCE
#include <dirent.h>
#include <grp.h>
#include <linux/capability.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/psx_syscall.h>
#include <sys/syscall.h>
#include <unistd.h>

static void *held[70000];
static volatile int stop;

static void fail(const char *what)
{
    fprintf(stderr, "%s\n", what);
    exit(1);
}

/* How many tasks there are whose status has no line `wanted`; in `*tasks` how many there are. */
static int tasks_without(const char *wanted, int *tasks, int *managers)
{
    DIR *folder = opendir("/proc/self/task");
    int without = 0;
    *tasks = *managers = 0;
    for (struct dirent *entry; (entry = readdir(folder)) != NULL;) {
        if (entry->d_name[0] == '.')
            continue;
        char path[300], line[500];
        snprintf(path, sizeof path, "/proc/self/task/%s/status", entry->d_name);
        FILE *file = fopen(path, "r");
        if (file == NULL)
            continue;
        int found = 0;
        while (fgets(line, sizeof line, file) != NULL) {
            found |= strncmp(line, wanted, strlen(wanted)) == 0;
            *managers += strcmp(line, "Name:\tsutler-manager\n") == 0;
        }
        fclose(file);
        *tasks += 1;
        without += !found;
    }
    closedir(folder);
    return without;
}

static void *thread_main(void *argument)
{
    while (!stop) {
        free(malloc(1000 + (size_t)argument));
        usleep(100);
    }
    return NULL;
}

static void expect(const char *wanted)
{
    int tasks, managers;
    int without = tasks_without(wanted, &tasks, &managers);
    printf("%.*s: %d tasks without\n", (int)strcspn(wanted, "\n"), wanted, without);
    fflush(stdout);
}

int main(void)
{
    pthread_t threads[3];
    for (int i = 0; i < 3; i++)
        pthread_create(&threads[i], NULL, thread_main, (void *)(size_t)i);
    int tasks, managers = 0, with_library = getenv("CASE_LIBRARY") != NULL && *getenv("CASE_LIBRARY") != '\0';
    for (int i = 0; i < 70000; i++) {
        held[i] = malloc(1000);
        memset(held[i], 1, 1000);
    }
    for (int i = 0; with_library && managers == 0; i++) {
        tasks_without("Name:", &tasks, &managers);
        if (i == 1000)
            fail("the heap is large and there is no manager");
        for (int k = 0; k < 100; k++)
            memset(malloc(5000), 1, 5000);
        usleep(10000);
    }
    if (psx_syscall6(SYS_prctl, PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0, 0) != 0)
        fail("prctl");
    expect("NoNewPrivs:\t1\n");
    for (int i = 0; i < 200; i++) {
        if (psx_syscall6(SYS_prctl, PR_SET_KEEPCAPS, i % 2, 0, 0, 0, 0) != 0)
            fail("prctl");
    }
    if (geteuid() == 0) {
        const gid_t groups[2] = {7, 8};
        if (psx_syscall3(SYS_setgroups, 2, (long)groups, 0) != 0)
            fail("setgroups");
        expect("Groups:\t7 8 \n");
        if (psx_syscall3(SYS_setresgid, 65534, 65534, 65534) != 0 ||
            psx_syscall3(SYS_setresuid, 65534, 65534, 65534) != 0)
            fail("setresuid");
        expect("Gid:\t65534\t65534\t65534\t65534\n");
        expect("Uid:\t65534\t65534\t65534\t65534\n");
        struct __user_cap_header_struct header = {_LINUX_CAPABILITY_VERSION_3, 0};
        struct __user_cap_data_struct none[2];
        memset(none, 0, sizeof none);
        if (psx_syscall3(SYS_capset, (long)&header, (long)none, 0) != 0)
            fail("capset");
        expect("CapPrm:\t0000000000000000\n");
        expect("CapEff:\t0000000000000000\n");
    }
    for (int i = 0; i < 70000; i++)
        free(held[i]);
    stop = 1;
    for (int i = 0; i < 3; i++)
        pthread_join(threads[i], NULL);
    puts("ended");
}
