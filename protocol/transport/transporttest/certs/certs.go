// Package certs creates certificates for tests of TLS: an authority, a server and a client.
package certs

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// Make is like For with a server named localhost and 127.0.0.1.
func Make(t testing.TB) string {
	t.Helper()
	return For(t, "localhost", "127.0.0.1")
}

// For writes ca.pem, server.pem, server.key, client.pem and client.key into a new directory and returns it. hosts are
// the server's names and addresses.
func For(t testing.TB, hosts ...string) string {
	t.Helper()
	return at(t, time.Now(), hosts)
}

// Expired is like Make with certificates that expired a year ago, as a host sees them whose clock is far ahead.
func Expired(t testing.TB) string {
	t.Helper()
	return at(t, time.Now().AddDate(-1, 0, 0), []string{"localhost", "127.0.0.1"})
}

// at creates certificates that are valid from an hour before now to an hour after it.
func at(t testing.TB, now time.Time, hosts []string) string {
	t.Helper()
	dir := t.TempDir()
	ca := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "test authority"}, IsCA: true, BasicConstraintsValid: true,
		NotBefore: now.Add(-time.Hour), NotAfter: now.Add(time.Hour), KeyUsage: x509.KeyUsageCertSign,
	}
	caKey := newKey(t)
	write(t, filepath.Join(dir, "ca.pem"), "CERTIFICATE", sign(t, ca, ca, &caKey.PublicKey, caKey))
	for i, name := range []string{"server", "client"} {
		c := &x509.Certificate{
			SerialNumber: big.NewInt(int64(2 + i)), Subject: pkix.Name{CommonName: name},
			NotBefore: ca.NotBefore, NotAfter: ca.NotAfter, KeyUsage: x509.KeyUsageDigitalSignature,
			ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
		}
		if name == "server" {
			for _, h := range hosts {
				if ip := net.ParseIP(h); ip != nil {
					c.IPAddresses = append(c.IPAddresses, ip)
				} else {
					c.DNSNames = append(c.DNSNames, h)
				}
			}
		}
		key := newKey(t)
		write(t, filepath.Join(dir, name+".pem"), "CERTIFICATE", sign(t, c, ca, &key.PublicKey, caKey))
		der, err := x509.MarshalECPrivateKey(key)
		if err != nil {
			t.Fatal(err)
		}
		write(t, filepath.Join(dir, name+".key"), "EC PRIVATE KEY", der)
	}
	return dir
}

func newKey(t testing.TB) *ecdsa.PrivateKey {
	t.Helper()
	k, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return k
}

func sign(t testing.TB, c, parent *x509.Certificate, pub *ecdsa.PublicKey, key *ecdsa.PrivateKey) []byte {
	t.Helper()
	der, err := x509.CreateCertificate(rand.Reader, c, parent, pub, key)
	if err != nil {
		t.Fatal(err)
	}
	return der
}

func write(t testing.TB, path, kind string, der []byte) {
	t.Helper()
	if err := os.WriteFile(path, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}), 0o600); err != nil {
		t.Fatal(err)
	}
}
