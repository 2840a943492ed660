//go:build linux

package lab

import (
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"syscall"
)

// The ports of labs are below the range from which the kernel chooses the ports of outgoing connections.
const (
	firstPort    = 20000
	lastPort     = 32000
	portsPerLab  = 40
	portLocksDir = "brine-lab-ports"
)

// A portBlock is a range of ports that belongs to one lab until it is released. Labs of other processes respect it.
type portBlock struct {
	lock *os.File
	next int
	end  int
}

// reservePorts reserves a free block of ports.
func reservePorts() (*portBlock, error) {
	dir := filepath.Join(os.TempDir(), portLocksDir)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, err
	}
	for base := firstPort; base+portsPerLab <= lastPort; base += portsPerLab {
		f, err := os.OpenFile(filepath.Join(dir, fmt.Sprint(base)), os.O_CREATE|os.O_RDWR, 0o600)
		if err != nil {
			return nil, err
		}
		err = syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
		if err == nil && allFree(base, base+portsPerLab) {
			return &portBlock{lock: f, next: base, end: base + portsPerLab}, nil
		}
		f.Close()
		if err != nil && !errors.Is(err, syscall.EWOULDBLOCK) {
			return nil, err
		}
	}
	return nil, fmt.Errorf("no free ports between %d and %d", firstPort, lastPort)
}

func allFree(from, to int) bool {
	for p := from; p < to; p++ {
		ln, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", p))
		if err != nil {
			return false
		}
		ln.Close()
	}
	return true
}

// take returns the next port of the block. A lab needs fewer ports than a block has.
func (b *portBlock) take() int {
	if b.next == b.end {
		panic("lab: a block of ports is too small")
	}
	b.next++
	return b.next - 1
}

func (b *portBlock) release() { b.lock.Close() }
