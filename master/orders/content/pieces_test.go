package content

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/google/go-cmp/cmp"

	"github.com/brine-salt/brine/master/store"
	"github.com/brine-salt/brine/protocol/payload"
)

// xor is a sealer for tests. Its output depends on the place and differs from the clear text.
type xor struct{}

func (xor) Seal(place string, clear []byte) ([]byte, error) {
	out := append([]byte(place+"\x00"), clear...)
	for i := range out {
		out[i] ^= 0x55
	}
	return out, nil
}

func (x xor) Open(place string, sealed []byte) ([]byte, error) {
	out, _ := x.Seal("", sealed)
	clear, ok := bytes.CutPrefix(out[1:], []byte(place+"\x00"))
	if !ok {
		return nil, errors.New("another place")
	}
	return clear, nil
}

func (xor) Digests(clear []byte) []string { return []string{fmt.Sprint(len(clear))} }

func newStore(t *testing.T) store.Contents {
	t.Helper()
	c, ok := store.ContentsOf(store.NewMemory())
	if !ok {
		t.Fatal("no contents")
	}
	return c
}

var wide = Limits{Files: 10, Bytes: 10 << 20, Pillar: 1 << 20}

// counted counts what is read at once.
type counted struct {
	io.Reader
	most int
}

func (c *counted) Read(b []byte) (int, error) {
	c.most = max(c.most, len(b))
	return c.Reader.Read(b)
}

func TestContentComesBack(t *testing.T) {
	ctx, to := t.Context(), newStore(t)
	w := NewWriter(to, xor{}, wide)
	texts := map[string]string{"empty": "", "one": "x", "exact": strings.Repeat("e", PieceSize), "two": strings.Repeat("t", 2*PieceSize), "more": strings.Repeat("m", 2*PieceSize+7)}
	for _, name := range []string{"two", "one", "more", "empty", "exact"} {
		r := &counted{Reader: iotest.OneByteReader(strings.NewReader(texts[name]))}
		if name != "one" {
			r.Reader = strings.NewReader(texts[name])
		}
		if err := w.AddFile(ctx, name, r); err != nil || r.most > PieceSize {
			t.Fatal(name, err, r.most)
		}
	}
	args, pillar := []any{"a", map[string]any{"__kwarg__": true, "k": int64(1)}}, map[string]any{"p": []any{int64(1), "é", nil}}
	if err := errors.Join(w.SetArgs(args), w.SetPillar(pillar), w.Commit(ctx)); err != nil {
		t.Fatal(err)
	}
	h, err := ReadHeader(ctx, to, xor{}, w.Key())
	if err != nil || !h.Secret || cmp.Diff(any(args), payload.Plain(h.Args)) != "" || cmp.Diff(pillar, h.Pillar) != "" || !h.Made.Equal(w.Header().Made) {
		t.Fatalf("%+v %v", h, err)
	}
	if string(h.Digest()) != string(w.Header().Digest()) {
		t.Error("what was stored has another digest than what was written")
	}
	names := []string{}
	for _, f := range h.Files {
		names = append(names, f.Name)
		var got []byte
		for at := int64(0); ; {
			b, err := ReadAt(ctx, to, xor{}, w.Key(), f, at)
			if err != nil {
				t.Fatal(err)
			}
			if len(b) == 0 {
				break
			}
			got = append(got, b...)
			at += int64(len(b))
		}
		if string(got) != texts[f.Name] || f.Size != int64(len(got)) {
			t.Errorf("%s: %d bytes", f.Name, len(got))
		}
		for _, at := range []int64{-1, f.Size, f.Size + 1, 1 << 62} {
			if b, err := ReadAt(ctx, to, xor{}, w.Key(), f, at); len(b) > 0 || err != nil {
				t.Errorf("%s at %d: %q %v", f.Name, at, b, err)
			}
		}
	}
	if !slices.Equal(names, []string{"empty", "exact", "more", "one", "two"}) {
		t.Error(names)
	}
	if b, err := ReadAt(ctx, to, xor{}, w.Key(), h.Files[2], PieceSize+PieceSize-1); err != nil || string(b) != "m" {
		t.Errorf("across pieces: %d bytes %v", len(b), err)
	}
}

// TestDamagedContent: pieces that were changed, or put in each other's place, are not read.
func TestDamagedContent(t *testing.T) {
	ctx, to := t.Context(), newStore(t)
	write := func() *Writer {
		w := NewWriter(to, xor{}, wide)
		if err := errors.Join(w.AddFile(ctx, "f", strings.NewReader(strings.Repeat("f", 2*PieceSize))), w.Commit(ctx)); err != nil {
			t.Fatal(err)
		}
		return w
	}
	a, b := write(), write()
	piece := func(w *Writer, n int) []byte {
		p, err := to.Piece(ctx, w.Key(), n)
		if err != nil {
			t.Fatal(err)
		}
		return p
	}
	good := piece(a, 1)
	f := a.Header().Files[0]
	for name, bad := range map[string][]byte{"of another order": piece(b, 1), "another one": piece(a, 2), "changed": append([]byte{good[0] ^ 1}, good[1:]...), "empty": {}} {
		if err := to.SavePiece(ctx, a.Key(), 1, a.made, bad); err != nil {
			t.Fatal(err)
		}
		if got, err := ReadAt(ctx, to, xor{}, a.Key(), f, 0); !errors.Is(err, ErrUnreadable) {
			t.Errorf("%s: %d bytes %v", name, len(got), err)
		}
	}
	if err := to.SavePiece(ctx, a.Key(), 0, a.made, piece(a, 2)); err != nil {
		t.Fatal(err)
	}
	if _, err := ReadHeader(ctx, to, xor{}, a.Key()); !errors.Is(err, ErrUnreadable) {
		t.Error(err)
	}
	if err := b.Drop(ctx); err != nil {
		t.Fatal(err)
	}
	if _, err := ReadHeader(ctx, to, xor{}, b.Key()); !errors.Is(err, store.ErrNotFound) {
		t.Error(err)
	}
}

// TestDigestOnly: a writer without a store digests the same, and stores nothing.
func TestDigestOnly(t *testing.T) {
	digest := func(to store.Contents, text string) string {
		w := NewWriter(to, xor{}, wide)
		if err := errors.Join(w.AddFile(context.Background(), "f", strings.NewReader(text)), w.SetPillar(map[string]any{"a": "b"}), w.Commit(context.Background()),
			w.Drop(context.Background())); err != nil {
			t.Fatal(err)
		}
		return string(w.Header().Digest())
	}
	if a, b := digest(newStore(t), "x"), digest(nil, "x"); a != b || a == digest(nil, "y") {
		t.Errorf("%q %q", a, b)
	}
}

func TestMasks(t *testing.T) {
	secret := func(jid string) bool { return jid == "s" }
	for _, c := range []struct{ got, want any }{
		{Masked(nil, false), []any{}},
		{Masked([]any{"a", "b"}, false), []any{Sealed}},
		{Masked([]any{[]any{"a"}, []any{}, "odd"}, true), []any{[]any{Sealed}, []any{}, []any{}}},
		{MaskReturn(map[string]any{"fun": "f", "fun_args": []any{"a"}, "return": "r"}), map[string]any{"fun": "f", "fun_args": []any{Sealed}, "return": "r"}},
		{MaskReturn(map[string]any{"fun": []any{"f", "g"}, "fun_args": []any{[]any{"a"}, []any{}}}), map[string]any{"fun": []any{"f", "g"}, "fun_args": []any{[]any{Sealed}, []any{}}}},
		{MaskReturn(map[string]any{"fun": "f", "fun_args": "odd"}), map[string]any{"fun": "f", "fun_args": []any{Sealed}}},
		{MaskReturn(map[string]any{"fun": "f", "fun_args": []any{}}), map[string]any{"fun": "f", "fun_args": []any{}}},
		{MaskJobs([]any{map[string]any{"jid": "s", "fun": "f", "arg": []any{"a"}}, map[string]any{"jid": "o", "fun": "f", "arg": []any{"a"}}, "text"}, secret),
			[]any{map[string]any{"jid": "s", "fun": "f", "arg": []any{Sealed}}, map[string]any{"jid": "o", "fun": "f", "arg": []any{"a"}}, "text"}},
		{MaskJobs(map[string]any{"saltutil.find_job": map[string]any{"jid": "s", "fun": "f", "arg": []any{"a"}}}, secret),
			map[string]any{"saltutil.find_job": map[string]any{"jid": "s", "fun": "f", "arg": []any{Sealed}}}},
	} {
		if d := cmp.Diff(c.want, c.got); d != "" {
			t.Error(d)
		}
	}
	if !TellsOfJobs(map[string]any{"fun": []any{"test.ping", "saltutil.running"}}) || TellsOfJobs(map[string]any{"fun": "test.ping"}) {
		t.Error("which functions tell of jobs")
	}
}
