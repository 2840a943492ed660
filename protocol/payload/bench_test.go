package payload_test

import (
	"strings"
	"testing"

	"github.com/brine-salt/brine/protocol/payload"
)

// smallReturn is a return of about 0.9 KB when packed.
func smallReturn() map[string]any {
	return map[string]any{
		"cmd": "_return", "id": "web01.example.com", "jid": "20231114221320123456", "fun": "cmd.run_all",
		"fun_args": []any{"df -h", map[string]any{"__kwarg__": true, "python_shell": true}},
		"return": map[string]any{"pid": int64(4711), "retcode": int64(0), "stderr": "",
			"stdout": strings.Repeat("/dev/mapper/vg0-root  20G  5G  15G  25% /\n", 15)},
		"retcode": int64(0), "success": true, "user": "sudo_alice", "out": "nested", "ts": int64(1700000000),
		"nonce": "0123456789abcdef0123456789abcdef",
	}
}

// Budgets of allocations for one small return. The decoder's allocations are the containers and texts of the result.
const (
	marshalAllocs   = 4
	unmarshalAllocs = 40
)

func TestAllocations(t *testing.T) {
	v := smallReturn()
	packed, err := payload.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	if len(packed) < 800 || len(packed) > 1000 {
		t.Fatalf("%d bytes", len(packed))
	}
	if n := testing.AllocsPerRun(100, func() { _, _ = payload.Marshal(v) }); n > marshalAllocs {
		t.Errorf("Marshal: %v allocations, budget %d", n, marshalAllocs)
	}
	if n := testing.AllocsPerRun(100, func() { _, _ = payload.Unmarshal(packed) }); n > unmarshalAllocs {
		t.Errorf("Unmarshal: %v allocations, budget %d", n, unmarshalAllocs)
	}
}

func BenchmarkMarshal(b *testing.B) {
	v := smallReturn()
	b.ReportAllocs()
	for b.Loop() {
		_, _ = payload.Marshal(v)
	}
}

func BenchmarkUnmarshal(b *testing.B) {
	packed, err := payload.Marshal(smallReturn())
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		_, _ = payload.Unmarshal(packed)
	}
}
