# SPDX-License-Identifier: MIT
# Programs with a sanitizer linked in, which have fixed addresses of their own and end, or map over it, where they find
# something there: the region must lie where they leave room.  Three runs each, for it lies elsewhere each time.
# SANITIZER: thread, memory, address or go.
# The allocator is the library's, so what a sanitizer would say of malloc is not asked; that it still sees a race is.
# needs: gcc
cat > work.c <<'END_PROGRAM'
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
static long shared;
static void *work(void *with)
{
    long sum = 0;
    char *kept[100] = {0};
    for (int i = 0; i < 4000; i++) {
        size_t bytes = (size_t)(i * 7919) % (i % 500 == 0 ? 3000000 : 6000) + 1;
        free(kept[i % 100]);
        kept[i % 100] = malloc(bytes);
        memset(kept[i % 100], (int)(long)with, bytes);
        sum += kept[i % 100][bytes / 2];
    }
    for (int i = 0; i < 100; i++)
        free(kept[i]);
    __atomic_fetch_add(&shared, sum, __ATOMIC_RELAXED);
    return NULL;
}
static void *race(void *unused) { shared++; return unused; }
int main(int arguments, char **argument)
{
    pthread_t thread[4];
    for (long i = 0; i < 4; i++)
        pthread_create(&thread[i], NULL, arguments > 1 ? race : work, (void *)(i + 1));
    for (int i = 0; i < 4; i++)
        pthread_join(thread[i], NULL);
    printf("%s %ld\n", arguments > 1 ? argument[1] : "work", arguments > 1 ? 0 : shared);
    return 0;
}
END_PROGRAM

# try PROGRAM COMMAND...: three runs of the program that the command builds; no if it cannot be built, for a machine may
# have a compiler without these libraries, or if it does not run, for some kernels place programs where it cannot have
# them.
try() {
    program=$1
    shift
    LD_PRELOAD= "$@" 2> errors && LD_PRELOAD= "./$program" > /dev/null 2>&1 || return 1
    tried=yes
    for n in 1 2 3; do "./$program" || echo "$program: status $?"; done
}

# by_clang SANITIZER: another release's libraries do as well, if there are none of its own.
by_clang() {
    command -v clang > /dev/null || return 0
    own=$(clang -print-resource-dir)
    for resources in "$own" /usr/lib/llvm-*/lib/clang/*; do
        if try "clang-$1" clang "-fsanitize=$1" -resource-dir "$resources" -isystem "$own/include" $options \
            -o "clang-$1"; then
            return
        fi
    done
}

tried=
options='-O1 -g -pthread work.c'
case $SANITIZER in
thread)
    if try gcc-thread gcc -fsanitize=thread -static-libtsan $options -o gcc-thread; then
        ./gcc-thread race 2>&1 | grep -c -m 1 'WARNING: ThreadSanitizer: data race' || echo "the race was not seen"
    fi
    by_clang thread
    ;;
memory)
    by_clang memory
    ;;
address)
    try gcc-address gcc -fsanitize=address -static-libasan $options -o gcc-address || :
    by_clang address
    ;;
go)
    mkdir program
    cat > program/go.mod <<'END_PROGRAM'
module program

go 1.18
END_PROGRAM
    cat > program/main.go <<'END_PROGRAM'
package main

/*
#include <stdlib.h>
#include <string.h>
static void *take(size_t bytes) { void *block = malloc(bytes); memset(block, 1, bytes); return block; }
*/
import "C"
import (
	"fmt"
	"sync"
)

func main() {
	var group sync.WaitGroup
	var mutex sync.Mutex
	done := 0
	for i := 0; i < 4; i++ {
		group.Add(1)
		go func() {
			defer group.Done()
			for k := 0; k < 5000; k++ {
				C.free(C.take(C.size_t(k%9000 + 1)))
				mutex.Lock()
				done++
				mutex.Unlock()
			}
		}()
	}
	group.Wait()
	fmt.Println("go", done)
}
END_PROGRAM
    export GOFLAGS=-mod=mod GOPROXY=off GOTOOLCHAIN=local CGO_ENABLED=1
    cd program
    try go-race go build -race -o go-race . || :
    ;;
esac
test -n "$tried" || { echo "no sanitizer '$SANITIZER' can be built and run here"; exit 77; }
