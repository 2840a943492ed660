package main

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"io"
	"log/slog"
	"math/big"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/brine-salt/brine/internal/conf"
	"github.com/brine-salt/brine/internal/testkit/freeport"
)

// TestTLSListener: the listener accepts only TLS, with the certificate in the options. The error for an invalid pair
// names the option.
func TestTLSListener(t *testing.T) {
	dir := t.TempDir()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	tpl := &x509.Certificate{SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(time.Hour), IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}}
	der, err := x509.CreateCertificate(rand.Reader, tpl, tpl, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	private, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	crt, pem1 := filepath.Join(dir, "crt"), filepath.Join(dir, "key")
	for path, b := range map[string]*pem.Block{crt: {Type: "CERTIFICATE", Bytes: der}, pem1: {Type: "EC PRIVATE KEY", Bytes: private}} {
		if err := os.WriteFile(path, pem.EncodeToMemory(b), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	port := freeport.Port(t)
	o := &conf.Config{Opts: map[string]any{"host": "127.0.0.1", "port": int64(port), "ssl_crt": crt, "ssl_key": pem1}}
	ln, err := listenTCP("vendordata", o)
	if err != nil {
		t.Fatal(err)
	}
	server := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "over TLS") }),
		ErrorLog: slog.NewLogLogger(slog.DiscardHandler, slog.LevelError)}
	done := make(chan struct{})
	go func() { defer close(done); _ = server.Serve(ln) }()
	defer func() { server.Close(); <-done }()
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}))
	client := &http.Client{Timeout: time.Minute, Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: pool}}}
	defer client.CloseIdleConnections()
	resp, err := client.Get(fmt.Sprint("https://127.0.0.1:", port))
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if b, err := io.ReadAll(resp.Body); err != nil || string(b) != "over TLS" || resp.TLS.Version < tls.VersionTLS12 {
		t.Errorf("%q %v", b, err)
	}
	if plain, err := client.Get(fmt.Sprint("http://127.0.0.1:", port)); err == nil {
		plain.Body.Close()
		if plain.StatusCode != 400 {
			t.Error("plain HTTP is answered", plain.Status)
		}
	}
	o.Opts["ssl_key"] = filepath.Join(dir, "none")
	if _, err := listenTCP("vendordata", o); err == nil || !strings.HasPrefix(err.Error(), "vendordata: ") {
		t.Error(err)
	}
}
