package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestVerifyCommand verifies a file that minisign signed with the pinned key, and one with a changed byte.
func TestVerifyCommand(t *testing.T) {
	const data = "../../internal/signed/testdata/"
	dir := t.TempDir()
	put := func(from, to string, change func([]byte)) string {
		t.Helper()
		b, err := os.ReadFile(data + from)
		if err != nil {
			t.Fatal(err)
		}
		if change != nil {
			change(b)
		}
		to = filepath.Join(dir, to)
		if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(to, b, 0o644); err != nil {
			t.Fatal(err)
		}
		return to
	}
	flip := func(b []byte) { b[3] ^= 1 }
	good := put("file.txt", "file.txt", nil)
	put("file.txt.minisig", "file.txt.minisig", nil)
	bad := put("file.txt", "bad/file.txt", flip)
	put("file.txt.minisig", "bad/file.txt.minisig", nil)
	unsigned := put("file.txt", "unsigned.txt", nil)
	put("key.pub", "release.pub", nil)
	wrong := put("key.pub", "other.pub", func(b []byte) { b[len(b)-30] ^= 2 })
	for name, c := range map[string]struct {
		args     []string
		code     int
		out, err string // parts of them
	}{
		"good":        {[]string{"-c", dir, good}, 0, "file.txt: good, signed with the key B4F5E62D33077008 (timestamp:1700000000 file:file.txt hashed)", ""},
		"flipped":     {[]string{"-c", dir, bad}, 1, "", "cannot verify " + bad + ": it is not the file that " + bad + ".minisig was made for"},
		"one of two":  {[]string{"-c", dir, good, bad}, 1, "file.txt: good", "cannot verify " + bad},
		"unsigned":    {[]string{"-c", dir, unsigned}, 1, "", "cannot verify " + unsigned + ": stat " + unsigned + ".minisig"},
		"named":       {[]string{"-c", dir, "--signature", good + ".minisig", good}, 0, "good", ""},
		"renamed":     {[]string{"-c", dir, "--signature", good + ".minisig", unsigned}, 1, "", "the signature is that of file.txt"},
		"other key":   {[]string{"--keys", wrong, good}, 1, "", "cannot verify " + good},
		"no pinned":   {[]string{"-c", dir + "/bad", good}, 1, "", "cannot read the keys of releases: stat " + dir + "/bad/release.pub"},
		"no file":     {[]string{"-c", dir}, 64, "", "name at least one FILE; --signature goes with exactly one"},
		"two for one": {[]string{"--signature", "x", good, bad}, 64, "", "name at least one FILE; --signature goes with exactly one"},
		"help":        {[]string{"--help"}, 0, "Usage: brine-minion verify [options] FILE...", ""},
	} {
		t.Run(name, func(t *testing.T) {
			r := start(t, nil, append([]string{"brine-minion", "verify"}, c.args...)...)
			if r.code != c.code || !strings.Contains(r.out, c.out) || !strings.Contains(r.err, c.err) || c.out == "" && r.out != "" || c.err == "" && r.err != "" {
				t.Errorf("%d %q %q", r.code, r.out, r.err)
			}
		})
	}
}
