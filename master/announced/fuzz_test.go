package announced

import (
	"crypto/hmac"
	"testing"
	"time"

	"github.com/brine-salt/brine/master/requests/signin"
	"github.com/brine-salt/brine/protocol"
)

// FuzzToken: of all texts and MACs that a peer may show, only the token that a minion was given lets its key in.
func FuzzToken(f *testing.F) {
	b, token := newFuzzBook(f)
	const pub, nonce = "key", "00000000000000000000000000000000"
	right := protocol.JoinMAC(token, "m", pub, nonce)
	for _, text := range []string{token, "", " " + token, token + "\n", token[1:], "brine-0000000000000000.0000000000000000"} {
		f.Add("m", text, []byte(text))
		f.Add("n", text, right)
	}
	f.Fuzz(func(t *testing.T, id, text string, mac []byte) {
		for _, shown := range [][]byte{mac, protocol.JoinMAC(text, id, pub, nonce)} {
			v, err := b.JudgeToken(t.Context(), protocol.AuthRequest{ID: id, PubText: pub, Nonce: nonce, JoinMAC: shown})
			if err != nil {
				t.Fatal(err)
			}
			if want := id == "m" && hmac.Equal(shown, right); (v.Decision == signin.Accept) != want {
				t.Fatalf("%q with %q, %x: %v", id, text, shown, v)
			}
		}
	})
}

// newFuzzBook returns a Book with the minion "m" and its token.
func newFuzzBook(f *testing.F) (*Book, string) {
	f.Helper()
	b, _ := newBook(f)
	return b, ensure(f, b, Spec{ID: "m", TokenTTL: 24 * time.Hour}).Token
}
