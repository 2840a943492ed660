package heat

import (
	"fmt"
	"io"
	"strings"
	"sync"
	"unicode/utf8"
)

// MaxSignal is how many bytes of JSON a signal has at most. Heat refuses bodies above 1 MiB; the number is heat-config-notify's.
const MaxSignal = 950_000

// trim shortens the texts of a result until its JSON has at most limit bytes. Of each shortened text the beginning and the end stay,
// with a line between them that says how much is missing. Texts below 2 KiB are kept. heat-config-notify keeps the end only, and
// fails on Python 3.
func trim(r Result, limit int) Result {
	size := len(encode(r))
	if size <= limit {
		return r
	}
	const small = 2 << 10
	out := Result{}
	kept, long := size, 0 // bytes of what is not shortened, and of the rest
	for k, v := range r {
		out[k] = v
		if s, ok := v.(string); ok {
			if n := encodedLen(s); n > small {
				kept -= n
				long += n
			}
		}
	}
	room := max(0, limit-kept)
	for k, v := range r {
		s, ok := v.(string)
		if !ok {
			continue
		}
		if n := encodedLen(s); n > small {
			out[k] = shorten(s, int(float64(n)/float64(long)*float64(room)))
		}
	}
	if len(encode(out)) <= limit {
		return out
	}
	// Values that are no text, or very many outputs, do not fit: the streams and the status must arrive.
	least := Result{}
	for _, k := range [...]string{keyStdout, keyStderr, keyStatus} {
		if v, ok := out[k]; ok {
			least[k] = v
		}
	}
	least[keyStderr] = fmt.Sprintf("%v\n[the outputs exceed %d bytes and were left out]\n", least[keyStderr], limit)
	if len(encode(least)) > limit {
		return trim(least, limit)
	}
	return least
}

// markerRoom is kept free for the marker of a shortened text, in bytes of JSON.
const markerRoom = 64

func marker(dropped int) string { return fmt.Sprintf("\n[... %d bytes left out ...]\n", dropped) }

// shorten keeps the beginning and the end of a text, so that it needs at most limit bytes of JSON.
func shorten(s string, limit int) string {
	half := max(0, limit-markerRoom) / 2
	head, n := 0, 0
	for head < len(s) {
		r, size := utf8.DecodeRuneInString(s[head:])
		if n += runeLen(r, size); n > half {
			break
		}
		head += size
	}
	tail, n := len(s), 0
	for tail > head {
		r, size := utf8.DecodeLastRuneInString(s[:tail])
		if n += runeLen(r, size); n > half {
			break
		}
		tail -= size
	}
	if tail <= head {
		return s
	}
	return s[:head] + marker(tail-head) + s[tail:]
}

// encodedLen is how many bytes encode needs for a text, without its quotes.
func encodedLen(s string) int {
	n := 0
	for i := 0; i < len(s); {
		r, size := utf8.DecodeRuneInString(s[i:])
		n += runeLen(r, size)
		i += size
	}
	return n
}

func runeLen(r rune, size int) int {
	switch {
	case r == '\n' || r == '\r' || r == '\t' || r == '"' || r == '\\' || r == '\b' || r == '\f':
		return 2
	case r < 0x20, r == '\u2028', r == '\u2029', r == utf8.RuneError && size == 1:
		return 6
	}
	return size
}

// capture keeps the beginning and the end of a stream in bounded memory. It is safe for concurrent use.
type capture struct {
	mu    sync.Mutex
	half  int
	head  []byte
	tail  []byte // a ring of half bytes once it is full
	at    int    // where the next byte of a full ring goes
	total int64
	also  io.Writer // gets everything too; may be nil
}

var _ io.Writer = (*capture)(nil)

// newCapture keeps up to limit bytes.
func newCapture(limit int) *capture { return &capture{half: limit / 2} }

// Write implements io.Writer; it never fails.
func (c *capture) Write(b []byte) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	n := len(b)
	if c.also != nil {
		_, _ = c.also.Write(b) // a listener's trouble is not the program's
	}
	c.total += int64(n)
	if room := c.half - len(c.head); room > 0 {
		k := min(room, len(b))
		c.head = append(c.head, b[:k]...)
		b = b[k:]
	}
	if len(b) > c.half {
		b = b[len(b)-c.half:]
	}
	if room := c.half - len(c.tail); room > 0 {
		k := min(room, len(b))
		c.tail = append(c.tail, b[:k]...)
		b = b[k:]
	}
	for len(b) > 0 {
		k := copy(c.tail[c.at:], b)
		b = b[k:]
		c.at = (c.at + k) % c.half
	}
	return n, nil
}

// dropped is how many bytes are missing.
func (c *capture) dropped() int64 { return c.total - int64(len(c.head)+len(c.tail)) }

// String is the stream as valid UTF-8, with a marker where bytes are missing.
func (c *capture) String() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	var b strings.Builder
	b.Write(c.head)
	if n := c.dropped(); n > 0 {
		b.WriteString(marker(int(n)))
	}
	if c.at > 0 {
		b.Write(c.tail[c.at:])
		b.Write(c.tail[:c.at])
	} else {
		b.Write(c.tail)
	}
	return strings.ToValidUTF8(b.String(), "\uFFFD")
}
