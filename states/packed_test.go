//go:build interop

package states_test

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/md5"
	"crypto/sha256"
	"encoding/hex"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// member is a file of a packed run.
type member struct {
	name, text string
	kind       byte // 0 is a file
	mode       int64
}

// packed returns an archive like those that salt-ssh creates.
func packed(t *testing.T, list []member) []byte {
	t.Helper()
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	w := tar.NewWriter(z)
	for _, m := range list {
		h := &tar.Header{Name: m.name, Typeflag: m.kind, Mode: m.mode}
		switch {
		case m.kind == 0:
			h.Typeflag, h.Size = tar.TypeReg, int64(len(m.text))
		default:
			h.Linkname = m.text
		}
		if h.Mode == 0 {
			h.Mode = 0o755
		}
		if err := w.WriteHeader(h); err != nil {
			t.Fatal(err)
		}
		if h.Size > 0 {
			if _, err := w.Write([]byte(m.text)); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// TestStockPacked runs packed states (state.pkg).
func TestStockPacked(t *testing.T) {
	s := startStock(t)
	const nop = `[{"state":"test","fun":"nop","name":"a","__id__":"a","__sls__":"x","__env__":"base","order":10000}]`
	low := func(text string) []member { return []member{{name: "lowstate.json", text: text}} }
	chunk := func(fun, id, more string) string {
		state, name, _ := strings.Cut(fun, ".")
		return `{"__id__":"` + id + `","__sls__":"x","__env__":"base","state":"` + state + `","fun":"` + name + `","name":"` + id + `"` + more + `}`
	}
	cases := []struct {
		name    string
		members []member
		raw     string
		hash    string
		sum     string
		kwargs  map[string]any
		check   string // a file that must be there on both sides or on none
		differs string // then ours has this in its error
	}{
		{name: "one", members: low(nop)},
		{name: "sha256", members: low(nop), hash: "sha256"},
		{name: "another hash", members: low(nop), sum: "0123"},
		{name: "unknown hash", members: low(nop), hash: "crc99"},
		{name: "order and requisites", members: low("[" + chunk("test.succeed_with_changes", "a", `,"order":3`) + "," +
			chunk("test.fail_without_changes", "b", `,"order":2,"require":[{"test":"a"}]`) + "," +
			chunk("test.nop", "c", `,"order":1,"require":[{"test":"b"}]`) + "," + chunk("test.nop", "d", `,"listen":[{"test":"a"}]`) + "]")},
		{name: "test mode", members: low("[" + chunk("test.succeed_with_changes", "a", "") + "]"), kwargs: map[string]any{"test": true}},
		{name: "failhard", members: low("[" + chunk("test.fail_without_changes", "a", `,"failhard":true`) + "," + chunk("test.nop", "b", "") + "]")},
		{name: "beacon", members: low("[" + chunk("test.nop", "a", `,"beacon":true`) + "]")},
		{name: "files", members: []member{{name: "base/", kind: tar.TypeDir}, {name: "base/d/f", text: "hello {{ pillar['new'] }} {{ grains['colour'] }}\n", mode: 0o640},
			{name: "other/g", text: "other\n"}, {name: "pillar.json", text: `{"new":"pillar"}`}, {name: "roster_grains.json", text: `{"colour":"red","osrelease_info":[1,2]}`},
			{name: "lowstate.json", text: "[" + chunk("file.managed", "@DIR@/f", `,"source":"salt://d/f","template":"jinja","mode":"keep"`) + "," +
				chunk("file.managed", "@DIR@/g", `,"source":"salt://g?saltenv=other"`) + "," + chunk("file.managed", "@DIR@/h", `,"source":"salt://missing"`) + "]"}}, check: "f"},
		{name: "grains decide", members: append(low("["+chunk("test.nop", "a", "")+"]"), member{name: "roster_grains.json", text: `{"state_runs_disabled":["test.*"]}`})},
		{name: "pillar", members: append(low("["+chunk("test.check_pillar", "a", `,"present":["port","new"]`)+"]"), member{name: "pillar.json", text: `{"new":1}`})},
		{name: "no pillar", members: append(low("["+chunk("test.check_pillar", "a", `,"present":["port","new"]`)+"]"), member{name: "pillar.json", text: `null`})},
		{name: "links", members: append(low("["+chunk("file.managed", "@DIR@/f", `,"source":"salt://l"`)+"]"), member{name: "base/f", text: "linked\n"},
			member{name: "base/l", text: "f", kind: tar.TypeSymlink}, member{name: "base/m", text: "base/f", kind: tar.TypeLink}), check: "f"},
		{name: "unknown function", members: low("[" + chunk("test.nosuch", "a", "") + "," + chunk("nosuch.fun", "b", "") + "]")},
		{name: "no name", members: low(`[{"state":"test","fun":"nop","__id__":"a"}]`)},
		{name: "no state", members: low(`[{"fun":"nop","name":"a","__id__":"a"}]`)},
		{name: "little", members: low(`[{"state":"test","fun":"nop","name":"a","__id__":"a"}]`)},
		{name: "errors", members: low(`["the SLS is wrong", "so is this"]`)},
		{name: "empty", members: low(`[]`)},
		{name: "a dict", members: low(`{"a": 1}`)},
		{name: "a text", members: low(`"x"`)},
		{name: "null", members: low(`null`)},
		{name: "number", members: low(`5`)},
		{name: "no JSON", members: low(`[{`), differs: "lowstate.json: Expecting property name enclosed in double quotes: line 1 column 3 (char 2)"},
		{name: "no low state", members: []member{{name: "pillar.json", text: "{}"}}, differs: "No such file or directory"},
		{name: "absolute", members: append(low(nop), member{name: "/x", text: "x"})},
		{name: "up", members: append(low(nop), member{name: "../x", text: "x"})},
		{name: "up below", members: append(low(nop), member{name: "base/../../x", text: "x"})},
		{name: "device", members: append(low(nop), member{name: "pipe", kind: tar.TypeFifo}), differs: "cannot unpack pipe"},
		{name: "through a link", members: append(low(nop), member{name: "l", text: "@DIR@", kind: tar.TypeSymlink}, member{name: "l/f", text: "out\n"}), differs: "path escapes"},
		{name: "not packed", raw: "hello"},
		{name: "packed text", raw: "gzip:hello"},
		{name: "long packed text", raw: "gzip:" + strings.Repeat("hello", 300)},
		{name: "nothing", raw: "missing"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			dir := filepath.Join(s.Scratch, "packed")
			list := append([]member{}, c.members...)
			for i := range list {
				list[i].text = strings.ReplaceAll(list[i].text, "@DIR@", dir)
			}
			b := []byte(c.raw)
			if text, ok := strings.CutPrefix(c.raw, "gzip:"); ok {
				var z bytes.Buffer
				w := gzip.NewWriter(&z)
				_, _ = w.Write([]byte(text))
				_ = w.Close()
				b = z.Bytes()
			} else if c.raw == "" {
				b = packed(t, list)
			}
			file := filepath.Join(dir, "run.tgz")
			hash, sum := "md5", md5.Sum(b)
			hex := hex.EncodeToString(sum[:])
			if c.hash != "" {
				hash, hex = c.hash, sha256Hex(b)
			}
			if c.sum != "" {
				hex = c.sum
			}
			side := func(call func(*testing.T, string, []any, map[string]any, map[string]any) answer) answer {
				if err := os.RemoveAll(dir); err != nil {
					t.Fatal(err)
				}
				if err := os.MkdirAll(dir, 0o700); err != nil {
					t.Fatal(err)
				}
				if c.raw != "missing" {
					if err := os.WriteFile(file, b, 0o600); err != nil {
						t.Fatal(err)
					}
				}
				a := call(t, "state.pkg", []any{file, hex, hash}, c.kwargs, nil)
				if c.check != "" {
					text, err := os.ReadFile(filepath.Join(dir, c.check))
					if err != nil {
						t.Error(err)
					}
					a.Check = string(text)
				}
				return a
			}
			theirs, ours := side(s.theirs), side(s.ours)
			if c.differs != "" {
				if !strings.Contains(ours.Message, c.differs) {
					t.Errorf("ours is %+v, want %s (stock: %+v)", ours, c.differs, theirs)
				}
				if _, err := os.Stat(filepath.Join(dir, "f")); err == nil {
					t.Error("a file was made outside")
				}
				return
			}
			if diff := cmp.Diff(theirs, ours); diff != "" {
				t.Errorf("stock (-) and ours (+):\n%s", diff)
			}
		})
	}
}

func sha256Hex(b []byte) string {
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:])
}
