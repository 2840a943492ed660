package serve

import (
	"bytes"
	"errors"
	"net"
	"sync"
	"time"
)

// ErrSlow is why a subscriber was cut off.
var ErrSlow = errors.New("transport: subscriber does not keep up")

// writeChunk is how many bytes go out under one deadline: at 64 KiB and 30 s, a peer that takes 2 KB/s lives.
const writeChunk = 64 << 10

// joinBelow is up to how many bytes the parts of a message are joined: to send one buffer costs the kernel less than to send several.
const joinBelow = 4 << 10

// Write sends bufs with as few system calls as fit the deadlines: timeout runs anew for each 64 KiB. The slices that bufs
// points to are not changed. The caller holds whatever guards the write side of c.
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
			b := batch // WriteTo consumes
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

// Outbox is the write side of one subscriber: messages wait in it, within limits, and a goroutine that exists only while there are
// any writes them out together. At rest it costs 100 bytes and no goroutine.
type Outbox struct {
	g    *Group
	sink Sink
	drop func() // called once, when the limit is exceeded

	mu      sync.Mutex // guards the fields below
	queue   []item
	msgs    int   // waiting or being written
	bytes   int64 // of these
	writing bool
	dead    bool
}

// item is one message in two parts, so that the second can be shared between topics.
type item struct{ head, body []byte }

func (i item) size() int64 { return int64(len(i.head) + len(i.body)) }

// Sink is where an Outbox writes: Send gets the parts of whole messages, two for each, and stands at most timeout without progress.
type Sink interface {
	Send(timeout time.Duration, parts ...[]byte) error
	Close() error
}

// Stream is the Sink of a connection to which messages are just written.
type Stream struct{ net.Conn }

// Send implements Sink.
func (s Stream) Send(timeout time.Duration, parts ...[]byte) error {
	return Write(s.Conn, timeout, parts...)
}

// NewOutbox makes the write side of s; drop is called, once, when the peer did not keep up, and s closed.
func NewOutbox(g *Group, s Sink, drop func()) *Outbox {
	return &Outbox{g: g, sink: s, drop: drop}
}

// Put queues a message, which may come in two parts, and never waits. Over the limits the connection is closed. Messages that count as
// control (no body) are subject to the same limits.
func (o *Outbox) Put(head, body []byte) {
	it := item{head, body}
	o.mu.Lock()
	if o.dead {
		o.mu.Unlock()
		return
	}
	// One message is let through whatever its size: the limit is for what piles up.
	if o.msgs > 0 && (o.msgs >= o.g.o.PubHWM || o.bytes+it.size() > o.g.o.PubBytes) {
		o.fail()
		o.mu.Unlock()
		o.slow()
		return
	}
	o.queue = append(o.queue, it)
	o.msgs++
	o.bytes += it.size()
	start := !o.writing
	o.writing = true
	o.mu.Unlock()
	if start && !o.g.Go(o.flush) {
		o.mu.Lock()
		o.fail()
		o.mu.Unlock()
	}
}

// fail forgets everything. The caller holds mu.
func (o *Outbox) fail() {
	o.dead, o.queue, o.msgs, o.bytes = true, nil, 0, 0
}

func (o *Outbox) slow() {
	o.sink.Close()
	if o.drop != nil {
		o.drop()
	}
}

func (o *Outbox) flush() {
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
				o.fail()
				o.mu.Unlock()
				if timeout {
					o.slow()
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
