// Package freeport finds ports for tests whose programs bind them a moment later. The kernel may give a port that it
// chose, and that was closed, to another process meanwhile. Ports of this package are below the kernel's range (from
// 32768 on Linux) and random, so that two tests rarely choose the same port.
package freeport

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"sync"
	"testing"
)

const (
	first, last = 10000, 31999
	maxTries    = 1000 // for each port
)

var (
	mu    sync.Mutex
	given = make(map[int]bool) // guarded by mu; by this process
)

// Find returns a port that is free on all addresses and that it did not return to this process before.
func Find() (int, error) {
	mu.Lock()
	defer mu.Unlock()
	for range maxTries {
		port := first + rand.N(last-first+1)
		if given[port] {
			continue
		}
		l, err := net.Listen("tcp", fmt.Sprint(":", port))
		if err != nil {
			continue
		}
		if err := l.Close(); err != nil {
			return 0, err
		}
		given[port] = true
		return port, nil
	}
	return 0, errors.New("no free port")
}

// Ports returns n ports like [Find].
func Ports(t testing.TB, n int) []int {
	t.Helper()
	list := make([]int, n)
	for i := range list {
		var err error
		if list[i], err = Find(); err != nil {
			t.Fatal(err)
		}
	}
	return list
}

// Port returns one port like [Find].
func Port(t testing.TB) int {
	t.Helper()
	return Ports(t, 1)[0]
}
