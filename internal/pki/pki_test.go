package pki

import (
	"crypto/x509"
	"math/big"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestKeys(t *testing.T) {
	for _, algo := range []string{"ec", "ed25519"} {
		key, err := NewKey(t.Context(), algo, 0)
		if err != nil {
			t.Fatal(err)
		}
		for _, pass := range [][]byte{nil, []byte("secret")} {
			b, kind, err := EncodeKey(key, pass)
			if err != nil {
				t.Fatal(err)
			}
			got, err := PrivateKey(PEM(kind, b), pass)
			if err != nil || !SamePublic(got.Public(), key.Public()) {
				t.Errorf("%s with passphrase %q: %v", algo, pass, err)
			}
			if _, err := PrivateKey(PEM(kind, b), []byte("wrong")); err == nil {
				t.Errorf("%s with passphrase %q: the wrong one is taken", algo, pass)
			}
		}
	}
}

func TestCertificate(t *testing.T) {
	key, err := NewKey(t.Context(), "ec", 256)
	if err != nil {
		t.Fatal(err)
	}
	name, err := Name(`CN=a\, b+OU=c,O=d`)
	if err != nil {
		t.Fatal(err)
	}
	list, err := Build(map[string]any{"basicConstraints": "critical, CA:TRUE", "subjectAltName": "DNS:*.example.com, IP:::1"}, "c", Issuer{Public: key.Public(), Subject: key.Public()})
	if err != nil {
		t.Fatal(err)
	}
	b, err := Certificate{Serial: big.NewInt(5), Subject: name, Issuer: name, NotBefore: time.Unix(1e9, 0), NotAfter: time.Unix(5e9, 0), PublicKey: key.Public(), Extensions: list}.Sign(key, "sha256")
	if err != nil {
		t.Fatal(err)
	}
	cert, err := Cert(PEM("CERTIFICATE", b))
	if err != nil {
		t.Fatal(err)
	}
	if err := cert.CheckSignature(x509.ECDSAWithSHA256, cert.RawTBSCertificate, cert.Signature); err != nil {
		t.Error(err)
	}
	if got := NameText(cert.RawSubject); got != `CN=a\, b+OU=c,O=d` {
		t.Errorf("the name is %s", got)
	}
	want := map[string]any{
		"basicConstraints": map[string]any{"ca": true, "pathlen": nil, "critical": true},
		"subjectAltName":   map[string]any{"critical": false, "value": []any{"DNS:*.example.com", "IP:0000:0000:0000:0000:0000:0000:0000:0001"}},
	}
	if diff := cmp.Diff(want, Render(cert.Extensions, false)); diff != "" {
		t.Error(diff)
	}
}

func FuzzRender(f *testing.F) {
	f.Add([]byte{0x30, 3, 0x82, 1, 'x'})
	f.Add([]byte{0x30, 0x80, 0, 0})
	f.Add([]byte{0x30, 8, 0xa0, 6, 0xa0, 4, 0x86, 2, 'a', ':'})
	f.Fuzz(func(t *testing.T, b []byte) {
		for _, k := range kinds() {
			render(k.name, b) // must not panic
		}
		_, _ = PrivateKey(b, []byte("x"))
		NameText(b)
	})
}

func TestInDays(t *testing.T) {
	from := time.Date(2026, 11, 22, 0, 0, 0, 0, time.UTC)
	if got, ok := InDays(from, 200000); !ok || got.Year() != 2574 {
		t.Errorf("InDays(200000) = %v, %v", got, ok)
	}
	for _, days := range []int64{4_000_000, -4_000_000, 1 << 40, -1 << 40} {
		if got, ok := InDays(from, days); ok {
			t.Errorf("InDays(%d) = %v", days, got)
		}
	}
}
