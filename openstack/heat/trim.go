package heat

import (
	"fmt"
	"io"
	"unicode/utf8"

	"github.com/brine-salt/brine/internal/headtail"
	"github.com/brine-salt/brine/internal/modkit/pycodec"
)

// MaxSignal is the maximum size of a signal's JSON in bytes. Heat refuses bodies above 1 MiB; the number comes from
// heat-config-notify.
const MaxSignal = 950_000

// trim shortens the texts of a result until its JSON has at most limit bytes. A shortened text keeps its beginning
// and end, with a line between them that states how much is missing. Texts below 2 KiB are not shortened.
// heat-config-notify keeps only the end, and fails on Python 3.
func trim(r Result, limit int) Result {
	size := len(encode(r))
	if size <= limit {
		return r
	}
	const small = 2 << 10
	out := Result{}
	kept, long := size, 0 // bytes of values that are not shortened, and of the others
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
	// Values that are not texts, or very many outputs, are too large. The streams and the status must arrive.
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

// markerRoom is reserved for the marker of a shortened text, in bytes of JSON.
const markerRoom = 64

func marker(dropped int) string { return fmt.Sprintf("\n[... %d bytes left out ...]\n", dropped) }

// shorten keeps the beginning and the end of a text so that its JSON has at most limit bytes.
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

// encodedLen returns the length of a text in encode's JSON, without the quotes.
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

// capture is a bounded buffer that can also pass on the output.
type capture struct {
	headtail.Buffer
	also io.Writer // also receives all output; may be nil
}

// newCapture returns a capture that keeps up to limit bytes.
func newCapture(limit int) *capture { return &capture{Buffer: headtail.Buffer{Limit: limit}} }

// Write implements io.Writer; it never fails.
func (c *capture) Write(b []byte) (int, error) {
	if c.also != nil {
		_, _ = c.also.Write(b) // an error of this writer must not stop the program
	}
	return c.Buffer.Write(b)
}

// String returns the output as valid UTF-8, with a marker where bytes are missing.
func (c *capture) String() string {
	return pycodec.Replace(c.Join(func(n int64) string { return marker(int(n)) }))
}
