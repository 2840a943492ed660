//go:build openstack && trove

package trove

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"math/big"
	stdnet "net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/brine-salt/brine/openstack/lab"
)

// TestTroveTLS: with the TLS options, guests reach the master only over TLS, and verify its certificate with the
// configured authority.
func TestTroveTLS(t *testing.T) {
	ca, roots := certificates(t)
	configure := func(transport, server, guest string) {
		t.Helper()
		must(t, dbaas.Configure(map[string]map[string]string{"brine": {"config": transport, "ssl": server, "guest_ssl": guest}}, lab.TroveServices...))
		eventually(t, "trove-api", func() bool {
			resp, err := http.Get(dbaas.URL)
			if err == nil {
				resp.Body.Close()
			}
			return err == nil
		})
	}
	t.Cleanup(func() { configure("", "", "") })
	configure("transport:tcp", "certfile:"+filepath.Join(dir, "salt.pem")+",keyfile:"+filepath.Join(dir, "salt.key")+",cert_reqs:CERT_NONE", "ca_certs:"+ca)

	id := create(t, "sealed", "10.11", "ann")
	healthy(t, id)
	users(t, id, "ann")
	heartbeat(t, id)
	conf, err := guestOf(t, "sealed").ReadFile("/etc/salt/minion.d/99-bootstrap.conf")
	must(t, err)
	if !strings.Contains(string(conf), ca) {
		t.Errorf("the guest is told nothing of the authority: %s", conf)
	}
	for _, at := range dbaas.Guests {
		c, err := tls.Dial("tcp", at, &tls.Config{RootCAs: roots})
		if err != nil {
			t.Errorf("%s: %v", at, err)
			continue
		}
		c.Close()
		if c, err = tls.Dial("tcp", at, &tls.Config{RootCAs: x509.NewCertPool()}); err == nil {
			t.Errorf("%s is trusted without the authority", at)
			c.Close()
		}
	}
}

// certificates creates an authority and the master's files salt.pem and salt.key in dir, and returns the authority's
// file.
func certificates(t *testing.T) (ca string, roots *x509.CertPool) {
	t.Helper()
	write := func(name, kind string, der []byte) string {
		t.Helper()
		name = filepath.Join(dir, name)
		must(t, os.WriteFile(name, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}), 0o600))
		return name
	}
	key := func() *ecdsa.PrivateKey {
		t.Helper()
		k, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
		must(t, err)
		return k
	}
	until := time.Now().Add(24 * time.Hour)
	authority := &x509.Certificate{SerialNumber: big.NewInt(1), NotAfter: until, IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign}
	theirs, ours := key(), key()
	der, err := x509.CreateCertificate(rand.Reader, authority, authority, &theirs.PublicKey, theirs)
	must(t, err)
	roots = x509.NewCertPool()
	parsed, err := x509.ParseCertificate(der)
	must(t, err)
	roots.AddCert(parsed)
	ca = write("ca.pem", "CERTIFICATE", der)
	server := &x509.Certificate{SerialNumber: big.NewInt(2), NotAfter: until, IPAddresses: []stdnet.IP{stdnet.ParseIP(address)}}
	der, err = x509.CreateCertificate(rand.Reader, server, authority, &ours.PublicKey, theirs)
	must(t, err)
	write("salt.pem", "CERTIFICATE", der)
	der, err = x509.MarshalPKCS8PrivateKey(ours)
	must(t, err)
	write("salt.key", "PRIVATE KEY", der)
	return ca, roots
}
