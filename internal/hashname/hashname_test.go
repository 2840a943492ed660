package hashname

import (
	"encoding/hex"
	"errors"
	"strings"
	"testing"
	"testing/iotest"
)

func TestNew(t *testing.T) {
	cases := []struct{ name, begin string }{
		{"md5", "900150983cd24fb0"}, {"sha1", "a9993e364706816a"}, {"sha224", "23097d223405d822"},
		{"sha256", "ba7816bf8f01cfea"}, {"sha384", "cb00753f45a35e8b"}, {"sha512", "ddaf35a193617aba"},
	}
	for _, c := range cases {
		h := New(c.name)
		if h == nil {
			t.Errorf("%s is unknown", c.name)
			continue
		}
		h.Write([]byte("abc"))
		if got := hex.EncodeToString(h.Sum(nil))[:16]; got != c.begin {
			t.Errorf("%s of abc begins with %s, want %s", c.name, got, c.begin)
		}
	}
}

func TestUnknown(t *testing.T) {
	for _, name := range []string{"", "SHA256", "sha-256", "sha3_256", "crc32"} {
		if New(name) != nil || Func(name) != nil {
			t.Errorf("%q is known", name)
		}
	}
}

func TestDigest(t *testing.T) {
	const million = "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0" // of the letter a, a million times
	for range 2 {
		if got, err := Digest(New("sha256"), strings.NewReader(strings.Repeat("a", 1_000_000))); got != million || err != nil {
			t.Errorf("the digest is %s, %v", got, err)
		}
	}
	broken := errors.New("broken")
	if got, err := Digest(New("md5"), iotest.ErrReader(broken)); got != "" || err != broken {
		t.Errorf("a broken reader gives %q, %v", got, err)
	}
}
