// Package headtail keeps the beginning and the end of a stream in bounded memory.
package headtail

import "sync"

// A Buffer keeps up to Limit bytes of what is written to it: half from the beginning, half from the end. It is safe
// for concurrent use.
type Buffer struct {
	// Limit must be set before the first Write.
	Limit int

	mu    sync.Mutex
	head  []byte // guarded by mu
	tail  []byte // guarded by mu; a ring buffer once it is full
	at    int    // guarded by mu; the position of the next byte in a full ring
	total int64  // guarded by mu
}

// Write implements io.Writer; it never fails.
func (c *Buffer) Write(b []byte) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	n, half := len(b), c.Limit/2
	c.total += int64(n)
	if room := half - len(c.head); room > 0 {
		k := min(room, len(b))
		c.head = append(c.head, b[:k]...)
		b = b[k:]
	}
	if len(b) > half {
		b = b[len(b)-half:]
	}
	if room := half - len(c.tail); room > 0 {
		k := min(room, len(b))
		c.tail = append(c.tail, b[:k]...)
		b = b[k:]
	}
	for len(b) > 0 {
		k := copy(c.tail[c.at:], b)
		b = b[k:]
		c.at = (c.at + k) % half
	}
	return n, nil
}

// Total returns the number of bytes that were written.
func (c *Buffer) Total() int64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.total
}

// Dropped returns the number of written bytes that were dropped.
func (c *Buffer) Dropped() int64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.dropped()
}

func (c *Buffer) dropped() int64 { return c.total - int64(len(c.head)+len(c.tail)) }

// Join returns the kept bytes. If n bytes are missing in the middle, mark(n) is inserted there.
func (c *Buffer) Join(mark func(n int64) string) []byte {
	c.mu.Lock()
	defer c.mu.Unlock()
	out := append([]byte(nil), c.head...)
	if n := c.dropped(); n > 0 {
		out = append(out, mark(n)...)
	}
	return append(append(out, c.tail[c.at:]...), c.tail[:c.at]...)
}
