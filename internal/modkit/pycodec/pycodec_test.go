package pycodec

import (
	"errors"
	"testing"

	"github.com/brine-salt/brine/modules"
)

// The expected values come from Python.
func TestEncodeAndBack(t *testing.T) {
	for _, c := range []struct{ s, encoding, want string }{
		{"é€", "cp1252", "\xe9\x80"}, {"é€", "iso8859-15", "\xe9\xa4"}, {"é", "Latin_1", "\xe9"}, {"a", "utf-16", "\xff\xfea\x00"},
		{"a😀", "utf-16-be", "\x00a\xd8\x3d\xde\x00"}, {"é", "utf-8-sig", "\xef\xbb\xbfé"}, {"é", "utf-32-le", "\xe9\x00\x00\x00"}, {"a", "ascii", "a"},
	} {
		b, err := Encode(c.s, c.encoding, "strict")
		if err != nil || string(b) != c.want {
			t.Errorf("Encode(%q, %s) = %q, %v", c.s, c.encoding, b, err)
		}
		if s, err := Decode(b, c.encoding); err != nil || s != c.s {
			t.Errorf("Decode(%q, %s) = %q, %v", b, c.encoding, s, err)
		}
	}
	for errorsArg, want := range map[string]string{"replace": "a?", "ignore": "a", "backslashreplace": `a\u20ac`, "xmlcharrefreplace": "a&#8364;"} {
		if b, err := Encode("a€", "latin-1", errorsArg); err != nil || string(b) != want {
			t.Errorf("%s: %q, %v", errorsArg, b, err)
		}
	}
}

func TestErrors(t *testing.T) {
	for _, c := range []struct {
		err  error
		want string
	}{
		{second(Encode("a€", "latin-1", "strict")), `UnicodeEncodeError: 'latin-1' codec can't encode character '\u20ac' in position 1: ordinal not in range(256)`},
		{second(Encode("a", "nosuch", "")), "LookupError: unknown encoding: nosuch"},
		{second(Decode([]byte("a\x81"), "cp1252")), "UnicodeDecodeError: 'charmap' codec can't decode byte 0x81 in position 1: character maps to <undefined>"},
		{second(Decode([]byte("a\xff"), "ascii")), "UnicodeDecodeError: 'ascii' codec can't decode byte 0xff in position 1: ordinal not in range(128)"},
		{second(UTF8([]byte("ab\xe2\x82"))), "UnicodeDecodeError: 'utf-8' codec can't decode bytes in position 2-3: unexpected end of data"},
		{second(Decode([]byte("a"), "utf-16-le")), "UnicodeDecodeError: 'utf-16-le' codec can't decode byte 0x61 in position 0: truncated data"},
	} {
		var python *modules.PythonError
		if !errors.As(c.err, &python) || python.Error() != c.want {
			t.Errorf("got %v, want %s", c.err, c.want)
		}
	}
}

func second[T any](_ T, err error) error { return err }

func FuzzDecode(f *testing.F) {
	f.Add([]byte("é"), "utf-16")
	f.Fuzz(func(t *testing.T, b []byte, encoding string) {
		s, err := Decode(b, encoding)
		if err != nil {
			return
		}
		if back, err := Encode(s, encoding, "strict"); err == nil {
			if again, err := Decode(back, encoding); err != nil || again != s {
				t.Errorf("%s: %q became %q, %v", encoding, s, again, err)
			}
		}
	})
}
