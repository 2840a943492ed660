package requests

import (
	"context"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"

	"github.com/brine-salt/brine/master/fileserver"
	"github.com/brine-salt/brine/master/internal/requesttest"
	"github.com/brine-salt/brine/protocol"
)

// onlyA lets minions see what is named a, and minion "all" everything.
type onlyA struct{}

func (onlyA) MayRead(_ context.Context, id, name, _ string) bool {
	clean, _, ok := fileserver.Split(name, "base")
	return id == "all" || ok && clean == "a"
}

// TestFiles: what a minion may not see is like what is not there.
func TestFiles(t *testing.T) {
	s, err := fileserver.New(fileserver.Options{HashType: "md5", BufferSize: 4, Backends: []fileserver.Backend{
		fileserver.NewFS("base", fstest.MapFS{"a": {Data: []byte("hello")}, "d/b": {Data: []byte("secret")}})}})
	if err != nil {
		t.Fatal(err)
	}
	open, limited := &Files{Server: s}, &Files{Server: s, Access: onlyA{}}
	r := requesttest.NewSender(t)
	sum := func(hash string) object { return object{"hash_type": "md5", "hsum": hash} }
	at := func(path string, more ...any) object {
		load := object{"path": path, "saltenv": "base"}
		for i := 0; i < len(more); i += 2 {
			load[more[i].(string)] = more[i+1]
		}
		return load
	}
	const hello, secret = "5d41402abc4b2a76b9719d911017c592", "5ebe2294ecd0e0f08eab7690d2a6ee69"
	for _, c := range []struct {
		name string
		do   func(context.Context, protocol.Verified) (any, error)
		id   string
		load object
		want any
	}{
		{"hash", open.Hash, "m", at("a"), sum(hello)},
		{"hash, seen", limited.Hash, "m", at("a"), sum(hello)},
		{"hash, hidden", limited.Hash, "m", at("d/b"), ""},
		{"hash, hidden from others", limited.Hash, "all", at("d/b"), sum(secret)},
		{"hash, missing", open.Hash, "m", at("z"), ""},
		{"hash, no path", open.Hash, "m", object{"saltenv": "base"}, ""},
		{"hash, no environment", open.Hash, "m", object{"path": "a"}, ""},
		{"find, hidden", limited.Find, "m", at("d/b"), object{"path": "", "rel": ""}},
		{"hash and stat, hidden", limited.HashAndStat, "m", at("d/b"), []any{"", nil}},
		{"serve", open.Serve, "m", at("a", "loc", int64(0)), object{"data": []byte("hell"), "dest": "a"}},
		{"serve the rest", open.Serve, "m", at("a", "loc", int64(4)), object{"data": []byte("o"), "dest": "a"}},
		{"serve, no offset", open.Serve, "m", at("a"), object{"data": "", "dest": ""}},
		{"serve, hidden", limited.Serve, "m", at("d/b", "loc", int64(0)), object{"data": "", "dest": ""}},
		{"list", open.List, "m", object{"saltenv": "base"}, []any{"a", "d/b"}},
		{"list, limited", limited.List, "m", object{"saltenv": "base"}, []any{"a"}},
		{"list below", open.List, "m", object{"saltenv": "base", "prefix": "d/"}, []any{"d/b"}},
		{"list, no environment", open.List, "m", object{}, []any{}},
		{"environments", open.Envs, "m", object{}, []any{"base"}},
	} {
		got, err := c.do(t.Context(), r.From(c.id, c.load))
		if d := cmp.Diff(c.want, got); d != "" || err != nil {
			t.Errorf("%s: %v %s", c.name, err, d)
		}
	}
}
