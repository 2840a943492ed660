package certpool_test

import (
	"crypto/ed25519"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"io/fs"
	"math/big"
	"os"
	"path/filepath"
	"testing"

	"github.com/brine-salt/brine/internal/certpool"
)

func TestRead(t *testing.T) {
	public, private, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1)}
	der, err := x509.CreateCertificate(rand.Reader, template, template, public, private)
	if err != nil {
		t.Fatal(err)
	}
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	write := func(name string, text []byte) string {
		file := filepath.Join(dir, name)
		if err := os.WriteFile(file, text, 0o600); err != nil {
			t.Fatal(err)
		}
		return file
	}
	want := x509.NewCertPool()
	want.AddCert(cert)
	pool, err := certpool.Read(write("ca.pem", pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})))
	if err != nil || !pool.Equal(want) {
		t.Errorf("the certificate of the file is not in the pool; error %v", err)
	}
	if _, err := certpool.Read(filepath.Join(dir, "missing")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a missing file: %v", err)
	}
	empty := write("empty.pem", []byte("no certificate\n"))
	var none *certpool.EmptyError
	if _, err := certpool.Read(empty); !errors.As(err, &none) || err.Error() != empty+" holds no certificate" {
		t.Errorf("a file without a certificate: %v", err)
	}
}
