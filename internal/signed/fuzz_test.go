package signed

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// FuzzVerify: only a file's own signature verifies it, whatever a master or a mirror sends instead.
func FuzzVerify(f *testing.F) {
	keys, err := ReadKeys("testdata/key.pub")
	if err != nil {
		f.Fatal(err)
	}
	good, err := os.ReadFile("testdata/file.txt" + Suffix)
	if err != nil {
		f.Fatal(err)
	}
	legacy, err := os.ReadFile("testdata/legacy.minisig")
	if err != nil {
		f.Fatal(err)
	}
	lines := strings.Split(string(good), "\n")
	f.Add(good)
	f.Add(legacy)
	f.Add([]byte(strings.ReplaceAll(string(good), "\n", "\r\n")))
	f.Add([]byte(strings.Join(lines[:2], "\n")))
	f.Add([]byte(lines[2] + "\n" + lines[3] + "\n" + lines[0] + "\n" + lines[1]))
	f.Add([]byte(strings.Replace(string(good), "file:file.txt", "file:../file.txt", 1)))
	path := filepath.Join(f.TempDir(), "signature")
	f.Fuzz(func(t *testing.T, text []byte) {
		if err := os.WriteFile(path, text, 0o600); err != nil {
			t.Fatal(err)
		}
		_, comment, err := Verify("testdata/file.txt", path, keys)
		if err != nil {
			return
		}
		got := strings.Split(strings.TrimRight(string(text), "\r\n"), "\n")
		for i, l := range got[1:] {
			if strings.TrimRight(l, "\r") != lines[i+1] {
				t.Fatalf("%q verifies, with the comment %q", text, comment)
			}
		}
	})
}
