# SPDX-License-Identifier: MIT
# Go with cgo: its threads call malloc and free on stacks and with signal masks of Go's; blocks freed by another thread
# than took them, a timer's signals to whichever thread runs, and processes started in between.  Few packages: the first
# build on a machine compiles them all.
# needs: go gcc
export SUTLER_MANAGER=on GOFLAGS=-mod=mod GOPROXY=off GOTOOLCHAIN=local CGO_ENABLED=1
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
#include <sys/time.h>
static void interrupt(void) { struct itimerval every = {{0, 5000}, {0, 5000}}; setitimer(ITIMER_PROF, &every, NULL); }
static void *take(size_t bytes, int with) { void *block = malloc(bytes); memset(block, with, bytes); return block; }
static int check(unsigned char *block, size_t bytes, int with) {
    for (size_t i = 0; i < bytes; i += 97) if (block[i] != with) return 0;
    return 1;
}
*/
import "C"

import (
	"os"
	"os/exec"
	"strconv"
	"sync"
	"unsafe"
)

type block struct {
	address unsafe.Pointer
	bytes   C.size_t
	with    C.int
}

func main() {
	C.interrupt()
	var takers, givers sync.WaitGroup
	handed := make(chan block, 1000)
	sums := make([]int, 8)
	for n := 0; n < 8; n++ {
		takers.Add(1)
		go func(n int) {
			defer takers.Done()
			kept := []block{}
			for i := 0; i < 20000; i++ {
				bytes := C.size_t(1 + (i*(n+3)*7919)%6000)
				b := block{C.take(bytes, C.int(i&127)), bytes, C.int(i & 127)}
				sums[n] += int(bytes)
				if i%4 == 0 {
					kept = append(kept, b)
				} else {
					handed <- b
				}
			}
			for _, b := range kept {
				handed <- b
			}
		}(n)
	}
	for n := 0; n < 4; n++ {
		givers.Add(1)
		go func() {
			defer givers.Done()
			for b := range handed {
				if C.check((*C.uchar)(b.address), b.bytes, b.with) == 0 {
					panic("a block was overwritten")
				}
				C.free(b.address)
			}
		}()
	}
	for i := 0; i < 20; i++ {
		out, err := exec.Command("sh", "-c", "echo child "+strconv.Itoa(i)).Output()
		os.Stdout.Write(out)
		if err != nil {
			panic(err)
		}
	}
	takers.Wait()
	close(handed)
	givers.Wait()
	for _, sum := range sums {
		os.Stdout.WriteString(strconv.Itoa(sum) + "\n")
	}
}
END_PROGRAM
(cd program && LD_PRELOAD= go build -o ../go-program .)
./go-program
./go-program
