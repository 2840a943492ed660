package serve

import (
	"net"
	"os"
	"runtime"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// pollBatch is how many connections a poller wakes with one system call.
const pollBatch = 128

// A poller waits for the next message of many connections. A goroutine for each would need 2.5 KB.
//
// It has an epoll instance of its own, which is in turn a file that Go's poller watches. Each wait ends once: with
// an event, or when the connection is closed here, which the kernel does not report.
type poller struct {
	g     *Group
	epoll *os.File
	fd    int // of epoll
	ended chan struct{}

	mu      sync.Mutex // guards the fields below, and those of connections
	waiting map[int64]*watched
	last    int64 // the last id
}

// watched is a connection that can wait in a poller.
type watched struct {
	*net.TCPConn
	p  *poller
	s  Session // while it waits
	id int64   // in the epoll instance; 0 before the first wait
}

// newPoller starts a poller.
func newPoller(g *Group) (*poller, error) {
	fd, err := unix.EpollCreate1(unix.EPOLL_CLOEXEC)
	if err != nil {
		return nil, os.NewSyscallError("epoll_create1", err)
	}
	if err := unix.SetNonblock(fd, true); err != nil { // or os.NewFile does not let Go's poller watch it
		unix.Close(fd)
		return nil, os.NewSyscallError("fcntl", err)
	}
	epoll := os.NewFile(uintptr(fd), "epoll")
	// NewFile hides that Go's poller cannot watch the file. Then it has no deadlines.
	if err := epoll.SetReadDeadline(time.Time{}); err != nil {
		epoll.Close()
		return nil, err
	}
	p := &poller{g: g, epoll: epoll, fd: fd, ended: make(chan struct{}), waiting: make(map[int64]*watched)}
	go p.run()
	return p, nil
}

// close ends the poller. No connection may wait any more.
func (p *poller) close() {
	p.epoll.Close()
	<-p.ended
}

// run wakes connections until close.
func (p *poller) run() {
	defer close(p.ended)
	rc, err := p.epoll.SyscallConn()
	events := make([]unix.EpollEvent, pollBatch)
	for err == nil {
		n := 0
		err = rc.Read(func(fd uintptr) (done bool) {
			err := error(unix.EINTR)
			for err == unix.EINTR {
				n, err = unix.EpollWait(int(fd), events, 0)
			}
			return n > 0
		})
		for _, e := range events[:max(n, 0)] {
			p.wake(int64(e.Pad)<<32 | int64(uint32(e.Fd)))
		}
		runtime.Gosched() // so that the answers of these connections are counted
		p.g.answers.awaitRoom()
	}
	if !p.g.isStopped() { // close ended it
		p.g.o.Log.Error("Connections without a message are no longer served", "err", err)
	}
}

// wake continues with a connection in a goroutine of its own, if it waits.
func (p *poller) wake(id int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if c := p.waiting[id]; c != nil {
		s := c.s
		c.s = nil
		delete(p.waiting, id)
		go p.g.awaitMessage(c, s)
	}
}

// watch returns c as a connection that can wait in the poller, if it is one of TCP without TLS.
func (g *Group) watch(c net.Conn) net.Conn {
	t, ok := c.(*net.TCPConn)
	if !ok {
		return c
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.poller == nil && !g.closed {
		p, err := newPoller(g)
		if err != nil { // the next connection tries again
			g.o.Log.Debug("Cannot wait for connections together", "err", err)
			return c
		}
		g.poller = p
	}
	if g.poller == nil {
		return c
	}
	return &watched{TCPConn: t, p: g.poller}
}

// park has the poller call awaitMessage once there is something to read, or once c is closed. It returns false if
// the caller must wait itself.
func park(c net.Conn, s Session) bool {
	w, ok := c.(*watched)
	if !ok {
		return false
	}
	if s, ok := s.(Sleeper); !ok || !s.Sleep() {
		return false
	}
	rc, err := w.SyscallConn()
	if err != nil {
		return false
	}
	p, op := w.p, unix.EPOLL_CTL_MOD
	p.mu.Lock()
	if w.id == 0 {
		p.last++
		w.id, op = p.last, unix.EPOLL_CTL_ADD
	}
	w.s = s
	p.waiting[w.id] = w
	e := unix.EpollEvent{Events: unix.EPOLLIN | unix.EPOLLRDHUP | unix.EPOLLONESHOT, Fd: int32(w.id), Pad: int32(w.id >> 32)}
	p.mu.Unlock()
	var failed error
	err = rc.Control(func(fd uintptr) { failed = unix.EpollCtl(p.fd, op, int(fd), &e) })
	return err == nil && failed == nil || !p.unpark(w)
}

// unpark ends a wait that has not begun. It returns false if Close has ended it.
func (p *poller) unpark(w *watched) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.waiting[w.id] != w {
		return false
	}
	delete(p.waiting, w.id)
	w.s, w.id = nil, 0
	return true
}

// Close closes the connection, and ends its wait.
func (c *watched) Close() error {
	err := c.TCPConn.Close()
	c.p.mu.Lock()
	id := c.id
	c.p.mu.Unlock()
	c.p.wake(id)
	return err
}
