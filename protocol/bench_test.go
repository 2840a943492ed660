package protocol

import (
	"strings"
	"testing"
	"time"

	"github.com/brine-salt/brine/protocol/payload"
)

func smallReturn() Return {
	return Return{JID: "20231114221320123456", ID: "web01.example.com", Fun: "cmd.run_all",
		FunArgs: []any{"df -h", map[string]any{"__kwarg__": true, "python_shell": true}},
		Return: map[string]any{"pid": int64(4711), "retcode": int64(0), "stderr": "",
			"stdout": strings.Repeat("/dev/mapper/vg0-root  20G  5G  15G  25% /\n", 15)},
		Retcode: int64(0), Success: true, User: "sudo_alice", Out: "nested"}
}

// Budgets of allocations for one return of 0.9 KB with its token, from the struct to the bytes and back.
const (
	packAllocs = 45
	openAllocs = 80 // nine of these are the RSA operation that checks the token
)

func TestAllocations(t *testing.T) {
	key, session := private(t, "minion"), newKey(t)
	r := Requester{ID: "web01.example.com", Session: session, Token: token(t, "minion"), EncAlgo: "OAEP-SHA1", SigAlgo: "PKCS1v15-SHA1"}
	ret, now := smallReturn(), time.Unix(1700000000, 0)
	packIt := func() []byte {
		e, _, err := r.Pack(ret.Load(), now)
		if err != nil {
			t.Fatal(err)
		}
		b, err := e.Marshal()
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
	wire := packIt()
	if n := testing.AllocsPerRun(50, func() { packIt() }); n > packAllocs {
		t.Errorf("packing: %v allocations, budget %d", n, packAllocs)
	}
	if n := testing.AllocsPerRun(50, func() {
		e, err := ParseEnvelope(wire, payload.Limits{})
		if err != nil {
			t.Fatal(err)
		}
		v, err := OpenRequest(e, session, key.Public())
		if err != nil {
			t.Fatal(err)
		}
		if _, err := ParseReturn(v.Load()); err != nil {
			t.Fatal(err)
		}
	}); n > openAllocs {
		t.Errorf("opening: %v allocations, budget %d", n, openAllocs)
	}
}

func BenchmarkPack(b *testing.B) {
	r := Requester{ID: "m", Session: newKey(b), Token: token(b, "minion")}
	ret, now := smallReturn(), time.Unix(1700000000, 0)
	b.ReportAllocs()
	for b.Loop() {
		e, _, _ := r.Pack(ret.Load(), now)
		_, _ = e.Marshal()
	}
}

func BenchmarkOpenRequest(b *testing.B) {
	key, session := private(b, "minion").Public(), newKey(b)
	r := Requester{ID: "m", Session: session, Token: token(b, "minion")}
	e, _, err := r.Pack(smallReturn().Load(), time.Unix(1700000000, 0))
	if err != nil {
		b.Fatal(err)
	}
	wire, err := e.Marshal()
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		e, _ := ParseEnvelope(wire, payload.Limits{})
		_, _ = OpenRequest(e, session, key)
	}
}

func BenchmarkAccept(b *testing.B) {
	s := &Signin{ID: "m", Key: private(b, "minion"), MasterKey: private(b, "master").Public()}
	r := ask(b, s)
	id, aes, session := AuthIdentity{Key: private(b, "master")}, newKey(b), newKey(b)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := r.Accept(id, aes, session, 4505); err != nil {
			b.Fatal(err)
		}
	}
}
