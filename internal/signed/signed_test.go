package signed

import (
	"bytes"
	"crypto/rand"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/iotest"

	"aead.dev/minisign"
	xblake2b "golang.org/x/crypto/blake2b"
)

// TestMinisign verifies a signature made by minisign 0.11.
func TestMinisign(t *testing.T) {
	keys, err := ReadKeys("testdata/key.pub")
	if err != nil || len(keys) != 1 {
		t.Fatal(keys, err)
	}
	key, comment, err := Verify("testdata/file.txt", "testdata/file.txt"+Suffix, keys)
	if err != nil || key.ID() != keys[0].ID() || comment != "timestamp:1700000000 file:file.txt hashed" {
		t.Errorf("%v %q %v", key.ID(), comment, err)
	}
	if _, _, err := Verify("testdata/file.txt", "testdata/legacy.minisig", keys); err == nil || !strings.Contains(err.Error(), "older form") {
		t.Errorf("a signature without a hash: %v", err)
	}
}

// TestVerify changes every byte of a file and of its signature: no such change may verify.
func TestVerify(t *testing.T) {
	dir := t.TempDir()
	pub, priv, err := minisign.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	other, otherPriv, err := minisign.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	write := func(name string, b []byte) string {
		t.Helper()
		name = filepath.Join(dir, name)
		if err := os.WriteFile(name, b, 0o644); err != nil {
			t.Fatal(err)
		}
		return name
	}
	sign := func(priv minisign.PrivateKey, content []byte, comment string) []byte {
		r := minisign.NewReader(bytes.NewReader(content))
		if _, err := new(bytes.Buffer).ReadFrom(r); err != nil {
			t.Fatal(err)
		}
		return r.SignWithComments(priv, comment, "a signature")
	}
	content := []byte("the content of a package")
	sig := sign(priv, content, "timestamp:1\tfile:a.deb\thashed")
	list, _ := pub.MarshalText()
	second, _ := other.MarshalText()
	keys, err := ReadKeys(write("keys", []byte("# ours\n"+string(second)+"\n\n"+string(list)+"\n")))
	if err != nil || len(keys) != 2 {
		t.Fatal(keys, err)
	}
	name, sigName := write("a.deb", content), write("a.deb"+Suffix, sig)
	if key, _, err := Verify(name, sigName, keys); err != nil || key.ID() != keys[1].ID() {
		t.Fatalf("%v %v", key.ID(), err)
	}
	if _, _, err := Verify(name, sigName, keys[:1]); err == nil || !strings.Contains(err.Error(), "not one of the pinned ones") {
		t.Errorf("a key that is not pinned: %v", err)
	}
	for i := range content {
		bad := bytes.Clone(content)
		bad[i] ^= 1
		write("a.deb", bad)
		if _, _, err := Verify(name, sigName, keys); err == nil || !strings.Contains(err.Error(), "it is not the file") {
			t.Fatalf("byte %d of the file: %v", i, err)
		}
	}
	write("a.deb", content)
	comment := bytes.IndexByte(sig, '\n')
	for i := range sig {
		bad := bytes.Clone(sig)
		bad[i] ^= 1
		write("a.deb"+Suffix, bad)
		_, _, err := Verify(name, sigName, keys)
		// The text after the mark in the first line is not signed.
		if unsigned := i >= len("untrusted comment: ") && i < comment; (err == nil) != unsigned {
			t.Fatalf("byte %d of the signature, in %q: %v", i, bad, err)
		}
	}
	for what, c := range map[string]struct {
		text []byte
		want string
	}{
		"of another file's name": {sign(priv, content, "file:b.deb"), "the signature is that of b.deb"},
		"of another key":         {sign(otherPriv, []byte("x"), ""), "it is not the file"},
		"empty":                  {nil, "no signature of minisign"},
		"endless":                {bytes.Repeat([]byte("x"), maxSignature+1), "has more than 8192 bytes"},
	} {
		write("a.deb"+Suffix, c.text)
		if _, _, err := Verify(name, sigName, keys); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("a signature %s: %v", what, err)
		}
	}
	if _, _, err := Verify(name, dir, keys); err == nil || !strings.Contains(err.Error(), "not a regular file") {
		t.Errorf("a directory as signature: %v", err)
	}
}

// TestBlake2b compares with golang.org/x/crypto, for all lengths around the block size and for readers that return
// short pieces.
func TestBlake2b(t *testing.T) {
	content := make([]byte, 200<<10)
	rand.Read(content)
	for _, n := range []int{0, 1, 127, 128, 129, 255, 256, 257, 1000, 64<<10 - 1, 64 << 10, 64<<10 + 1, 64<<10 + 128, 64<<10 + 129, 128 << 10, 200 << 10} {
		want := xblake2b.Sum512(content[:n])
		for kind, r := range map[string]io.Reader{"whole": bytes.NewReader(content[:n]), "bytes": iotest.OneByteReader(bytes.NewReader(content[:n])),
			"halves": iotest.HalfReader(bytes.NewReader(content[:n])), "early end": iotest.DataErrReader(bytes.NewReader(content[:n]))} {
			if got, err := blake2b(r); err != nil || !bytes.Equal(got, want[:]) {
				t.Errorf("%d bytes, %s: %x %v", n, kind, got, err)
			}
		}
	}
	if _, err := blake2b(iotest.ErrReader(io.ErrUnexpectedEOF)); err != io.ErrUnexpectedEOF {
		t.Errorf("an error is %v", err)
	}
}

func TestReadKeys(t *testing.T) {
	dir := t.TempDir()
	name := filepath.Join(dir, "release.pub")
	good, err := os.ReadFile("testdata/key.pub")
	if err != nil {
		t.Fatal(err)
	}
	for what, c := range map[string]struct {
		text, want string
		mode       os.FileMode
	}{
		"a group may write it": {string(good), "others than its owner may write it", 0o664},
		"empty":                {"", "there is none", 0o644},
		"comments only":        {"# none\nuntrusted comment: x\n", "there is none", 0o644},
		"damaged":              {string(good) + "RWQ broken\n", "release.pub:3: it is no public key", 0o644},
		"endless":              {strings.Repeat("#\n", maxKeys), "has more than 65536 bytes", 0o644},
	} {
		if err := os.WriteFile(name, []byte(c.text), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(name, c.mode); err != nil {
			t.Fatal(err)
		}
		if keys, err := ReadKeys(name); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v %v", what, keys, err)
		}
	}
	if _, err := ReadKeys(filepath.Join(dir, "none")); err == nil || !strings.Contains(err.Error(), "cannot read the keys of releases") {
		t.Errorf("no file: %v", err)
	}
}
