package crypt

import (
	"bytes"
	"strings"
	"testing"
)

// Budgets of allocations for one message of 0.9 KB: its buffer, the cipher and the HMAC.
const (
	sealAllocs = 12
	openAllocs = 12
)

func TestAllocations(t *testing.T) {
	k, err := NewKey()
	if err != nil {
		t.Fatal(err)
	}
	nonce, msg := strings.Repeat("0", NonceLen), bytes.Repeat([]byte{'x'}, 900)
	ct, err := k.Seal(msg, nonce)
	if err != nil {
		t.Fatal(err)
	}
	if n := testing.AllocsPerRun(100, func() { _, _ = k.Seal(msg, nonce) }); n > sealAllocs {
		t.Errorf("Seal: %v allocations, budget %d", n, sealAllocs)
	}
	if n := testing.AllocsPerRun(100, func() { _, _ = k.Open(ct, nonce) }); n > openAllocs {
		t.Errorf("Open: %v allocations, budget %d", n, openAllocs)
	}
}

func BenchmarkSeal(b *testing.B) {
	k, _ := NewKey()
	msg := bytes.Repeat([]byte{'x'}, 900)
	b.ReportAllocs()
	for b.Loop() {
		_, _ = k.Seal(msg, "")
	}
}

func BenchmarkOpen(b *testing.B) {
	k, _ := NewKey()
	ct, _ := k.Seal(bytes.Repeat([]byte{'x'}, 900), "")
	b.ReportAllocs()
	for b.Loop() {
		_, _ = k.Open(ct, "")
	}
}

func BenchmarkSignX931(b *testing.B) {
	k := private(b, "minion")
	for b.Loop() {
		k.x931 = x931Cache{}
		_, _ = k.SignX931([]byte("salt"))
	}
}

func BenchmarkRecoverX931(b *testing.B) {
	k := private(b, "minion")
	sig, _ := k.SignX931([]byte("salt"))
	b.ReportAllocs()
	for b.Loop() {
		_, _ = k.Public().RecoverX931(sig)
	}
}

func BenchmarkSign(b *testing.B) {
	k := private(b, "minion")
	for b.Loop() {
		_, _ = k.Sign(PKCS1v15SHA1, []byte("salt"))
	}
}
