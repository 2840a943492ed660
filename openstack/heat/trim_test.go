package heat

import "testing"

// TestOutputThatIsNoText: each part that is not UTF-8 becomes one replacement character, as in the original's
// decoder.
func TestOutputThatIsNoText(t *testing.T) {
	for in, want := range map[string]string{
		"\xff\xfe":         "\uFFFD\uFFFD",
		"a\xe2\x82b":       "a\uFFFDb",
		"\xe2\x82\xacuro":  "€uro",
		"\xf0\x9f\xf0\x9f": "\uFFFD\uFFFD",
	} {
		c := newCapture(100)
		if _, err := c.Write([]byte(in)); err != nil {
			t.Fatal(err)
		}
		if got := c.String(); got != want {
			t.Errorf("%q became %q, not %q", in, got, want)
		}
	}
}
