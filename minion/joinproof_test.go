package minion

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func TestJoinProof(t *testing.T) {
	dir := t.TempDir()
	file := func(name string, blocks ...*pem.Block) string {
		var b []byte
		for _, x := range blocks {
			b = append(b, pem.EncodeToMemory(x)...)
		}
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, b, 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	tpl := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "m"}, NotAfter: time.Now().Add(time.Hour)}
	der, err := x509.CreateCertificate(rand.Reader, tpl, tpl, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	sec1, _ := x509.MarshalECPrivateKey(key)
	pkcs8, _ := x509.MarshalPKCS8PrivateKey(key)
	stranger, _ := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	strange, _ := x509.MarshalECPrivateKey(stranger)
	cert := file("cert.pem", &pem.Block{Type: "CERTIFICATE", Bytes: der}, &pem.Block{Type: "CERTIFICATE", Bytes: der})
	doc := filepath.Join(dir, "doc")
	if err := os.WriteFile(doc, []byte("a document"), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, k := range map[string]string{"SEC1": file("sec1.pem", &pem.Block{Type: "EC PRIVATE KEY", Bytes: sec1}), "PKCS8": file("pkcs8.pem", &pem.Block{Type: "PRIVATE KEY", Bytes: pkcs8})} {
		p, err := joinProof(cert, k, doc)
		if err != nil || len(p.Certificates) != 2 || p.Signer == nil || string(p.Document) != "a document" {
			t.Errorf("%s: %v %v", name, p, err)
		}
	}
	empty := file("empty.pem")
	for want, args := range map[string][3]string{
		"has no certificate":             {empty, empty, doc},
		"has no key":                     {cert, empty, doc},
		"is not the key of the certific": {cert, file("strange.pem", &pem.Block{Type: "EC PRIVATE KEY", Bytes: strange}), doc},
		"no such file":                   {filepath.Join(dir, "none"), "", doc},
	} {
		// What can be read is shown all the same.
		if p, err := joinProof(args[0], args[1], args[2]); err == nil || !strings.Contains(err.Error(), want) || p.Signer != nil || len(p.Document) == 0 {
			t.Errorf("%s: %v %v", want, p, err)
		}
	}
	if err := os.WriteFile(doc, make([]byte, maxProofFile+1), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := joinProof("", "", doc); err == nil || !strings.Contains(err.Error(), "more than") {
		t.Error(err)
	}
	if p, err := joinProof("", "", ""); err != nil || p.Signer != nil {
		t.Error(p, err)
	}
}

// TestReadToken: only a file that nobody else may read is used.
func TestReadToken(t *testing.T) {
	dir := t.TempDir()
	for _, c := range []struct {
		name, text string
		mode       os.FileMode
		want       string
	}{
		{"good", "tok-en_1\n", 0o600, "tok-en_1"},
		{"readable by its owner", "token", 0o400, "token"},
		{"group", "token", 0o640, "run chmod 0600"},
		{"others", "token", 0o604, "run chmod 0600"},
		{"empty", "\n", 0o600, "has no token"},
		{"two words", "a b", 0o600, "has no token"},
		{"binary", "\x00\xff", 0o600, "has no token"},
		{"large", strings.Repeat("x", 2000), 0o600, "more than 1024 bytes"},
	} {
		path := filepath.Join(dir, c.name)
		if err := os.WriteFile(path, []byte(c.text), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(path, c.mode); err != nil {
			t.Fatal(err)
		}
		token, err := readToken(path)
		if err != nil {
			token = err.Error()
		}
		if err == nil && token != c.want || !strings.Contains(token, c.want) {
			t.Errorf("%s: %q", c.name, token)
		}
	}
	if _, err := readToken(dir); err == nil || !strings.Contains(err.Error(), "is not a file") {
		t.Error(err)
	}
	if _, err := readToken(filepath.Join(dir, "none")); !os.IsNotExist(err) {
		t.Error(err)
	}
}
