package pybase64

import (
	"bytes"
	"strings"
	"testing"
)

// TestDecode expects the results of Python 3.11.
func TestDecode(t *testing.T) {
	cases := []struct{ in, out, err string }{
		{"aGVsbG8=", "hello", ""}, {"aGVs bG8=\n", "hello", ""}, {"aGVsbG8=zzzz", "hello", ""}, {"aGVs", "hel", ""}, {"", "", ""},
		{"aGVsbG8", "", "Incorrect padding"}, {"=aGVs", "hel", ""}, {"a-G_V.s", "hel", ""},
		{"aGVsb", "", "Invalid base64-encoded string: number of data characters (5) cannot be 1 more than a multiple of 4"},
	}
	for _, c := range cases {
		got, err := Decode(c.in)
		text := ""
		if err != nil {
			text = err.Error()
		}
		if string(got) != c.out || text != c.err {
			t.Errorf("%q: %q, %q", c.in, got, text)
		}
	}
}

func FuzzRoundTrip(f *testing.F) {
	f.Add([]byte("hello"))
	f.Add(bytes.Repeat([]byte{1}, 58))
	f.Fuzz(func(t *testing.T, b []byte) {
		text := Encode(b)
		for line := range strings.Lines(text) {
			if len(line) > 77 || !strings.HasSuffix(line, "\n") {
				t.Fatalf("line %q", line)
			}
		}
		if got, err := Decode(text); err != nil || !bytes.Equal(got, b) {
			t.Fatalf("%q, %v", got, err)
		}
	})
}
