package serve

import (
	"bytes"
	"errors"
	"net"
	"sync"
	"time"
)

// ErrSlow is the reason for disconnecting a subscriber that does not keep up.
var ErrSlow = errors.New("transport: subscriber is too slow")

// writeChunk is how many bytes are written under one deadline. With 64 KiB and 30 s, a peer must take about 2 KB/s.
const writeChunk = 64 << 10

// joinBelow is the size up to which the parts of a message are copied into one buffer. Sending one buffer costs the
// kernel less than sending several.
const joinBelow = 4 << 10

// Write sends bufs in as few system calls as the deadlines allow: timeout starts again with each 64 KiB. It does
// not change the slices that bufs points to. The caller holds the lock of the write side of c.
func Write(c net.Conn, timeout time.Duration, bufs ...[]byte) error {
	var batch net.Buffers
	size := 0
	flush := func() error {
		if size == 0 {
			return nil
		}
		if err := c.SetWriteDeadline(time.Now().Add(timeout)); err != nil {
			return err
		}
		var err error
		switch {
		case len(batch) == 1:
			_, err = c.Write(batch[0])
		case size <= joinBelow:
			_, err = c.Write(bytes.Join(batch, nil))
		default:
			b := batch // WriteTo consumes its slice
			_, err = b.WriteTo(c)
		}
		batch, size = batch[:0], 0
		return err
	}
	for _, b := range bufs {
		for len(b) > 0 {
			n := min(len(b), writeChunk-size)
			batch = append(batch, b[:n])
			b = b[n:]
			if size += n; size == writeChunk {
				if err := flush(); err != nil {
					return err
				}
			}
		}
	}
	return flush()
}

// An Outbox is the write side of one subscriber. It queues messages within limits. A goroutine that exists only while
// there are messages writes them in batches. An idle Outbox costs 100 bytes and no goroutine.
type Outbox struct {
	g    *Group
	sink Sink
	drop func() // called once, when the limit is exceeded

	mu      sync.Mutex // guards the fields below
	queue   []item
	msgs    int   // waiting or being written
	bytes   int64 // their bytes
	writing bool
	dead    bool
}

// An item is one message in two parts, so that topics can share the second.
type item struct{ head, body []byte }

func (i item) size() int64 { return int64(len(i.head) + len(i.body)) }

// A Sink is where an Outbox writes. Send gets the parts of whole messages, two for each, and may make no progress for
// at most timeout.
type Sink interface {
	Send(timeout time.Duration, parts ...[]byte) error
	Close() error
}

// Stream is the Sink of a connection that sends messages unchanged.
type Stream struct{ net.Conn }

// Send implements Sink.
func (s Stream) Send(timeout time.Duration, parts ...[]byte) error {
	return Write(s.Conn, timeout, parts...)
}

// NewOutbox returns the write side of s. If the peer does not keep up, drop is called once and s is closed.
func NewOutbox(g *Group, s Sink, drop func()) *Outbox {
	return &Outbox{g: g, sink: s, drop: drop}
}

// Put queues a message, which may come in two parts, and never waits. If a limit is exceeded the connection is
// closed. Control messages, which have no body, count like others.
func (o *Outbox) Put(head, body []byte) {
	it := item{head, body}
	o.mu.Lock()
	if o.dead {
		o.mu.Unlock()
		return
	}
	// One message is allowed whatever its size: the limit is for a backlog.
	if o.msgs > 0 && (o.msgs >= o.g.o.PubHWM || o.bytes+it.size() > o.g.o.PubBytes) {
		o.discardAll()
		o.mu.Unlock()
		o.dropSlow()
		return
	}
	o.queue = append(o.queue, it)
	o.msgs++
	o.bytes += it.size()
	start := !o.writing
	o.writing = true
	o.mu.Unlock()
	if start && !o.g.Go(o.flushQueue) {
		o.mu.Lock()
		o.discardAll()
		o.mu.Unlock()
	}
}

// discardAll drops all messages. The caller holds mu.
func (o *Outbox) discardAll() {
	o.dead, o.queue, o.msgs, o.bytes = true, nil, 0, 0
}

// dropSlow closes a connection that does not keep up.
func (o *Outbox) dropSlow() {
	o.sink.Close()
	if o.drop != nil {
		o.drop()
	}
}

// flushQueue writes until the queue is empty. Messages count against the limits until they are written.
func (o *Outbox) flushQueue() {
	var bufs [][]byte
	for {
		o.mu.Lock()
		batch := o.queue
		o.queue = nil
		if len(batch) == 0 {
			o.writing = false
			o.mu.Unlock()
			return
		}
		o.mu.Unlock()
		for len(batch) > 0 {
			n, size := 0, int64(0)
			bufs = bufs[:0]
			for n < len(batch) && (n == 0 || size+batch[n].size() <= writeChunk) {
				bufs = append(bufs, batch[n].head, batch[n].body)
				size += batch[n].size()
				n++
			}
			err := o.sink.Send(o.g.o.WriteTimeout, bufs...)
			clear(bufs)
			o.mu.Lock()
			if err != nil {
				timeout := isTimeout(err) && !o.dead
				o.discardAll()
				o.mu.Unlock()
				if timeout {
					o.dropSlow()
				}
				o.sink.Close()
				return
			}
			o.msgs -= n
			o.bytes -= size
			o.mu.Unlock()
			batch = batch[n:]
		}
	}
}

func isTimeout(err error) bool {
	var ne net.Error
	return errors.As(err, &ne) && ne.Timeout()
}
