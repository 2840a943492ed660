package tlsconf_test

import (
	"context"
	"crypto/tls"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/brine-salt/brine/protocol/transport"
	"github.com/brine-salt/brine/protocol/transport/tcp"
	"github.com/brine-salt/brine/protocol/transport/tlsconf"
	"github.com/brine-salt/brine/protocol/transport/transporttest"
	"github.com/brine-salt/brine/protocol/transport/transporttest/certs"
	"github.com/brine-salt/brine/protocol/transport/ws"
)

// with returns a transport over TLS with these ssl options.
func with(t *testing.T, i transporttest.Impl, server, client map[string]any) transporttest.Impl {
	t.Helper()
	s, err := tlsconf.Server(server)
	if err != nil {
		t.Fatal(err)
	}
	c, err := tlsconf.Client(client)
	if err != nil {
		t.Fatal(err)
	}
	i.Server = func(o *transport.ServerOptions) { o.Wrap = tlsconf.WrapListener(s) }
	i.Client = func(o *transport.ClientOptions) { o.Wrap = tlsconf.Wrap(c) }
	return i
}

var impls = map[string]transporttest.Impl{
	"tcp": {Listen: tcp.Listen, Dialer: tcp.New(), Topics: true, Presence: true},
	"ws":  {Listen: ws.Listen, Dialer: ws.New()},
}

// TestSuite runs the whole suite over TLS with certificates on both sides.
func TestSuite(t *testing.T) {
	d := certs.Make(t)
	for name, i := range impls {
		t.Run(name, func(t *testing.T) {
			transporttest.Run(t, with(t, i,
				map[string]any{"certfile": d + "/server.pem", "keyfile": d + "/server.key", "ca_certs": d + "/ca.pem"},
				map[string]any{"certfile": d + "/client.pem", "keyfile": d + "/client.key", "ca_certs": d + "/ca.pem"}))
		})
	}
}

func TestWhoMayTalk(t *testing.T) {
	d, other := certs.Make(t), certs.Make(t)
	server := map[string]any{"certfile": d + "/server.pem", "keyfile": d + "/server.key", "ca_certs": d + "/ca.pem"}
	mutual := map[string]any{"certfile": d + "/client.pem", "keyfile": d + "/client.key", "ca_certs": d + "/ca.pem"}
	plus := func(m map[string]any, kv ...any) map[string]any {
		n := map[string]any{}
		for k, v := range m {
			n[k] = v
		}
		for i := 0; i < len(kv); i += 2 {
			if kv[i+1] == nil {
				delete(n, kv[i].(string))
			} else {
				n[kv[i].(string)] = kv[i+1]
			}
		}
		return n
	}
	for _, c := range []struct {
		name           string
		server, client map[string]any
		want           string // part of the error; "" if it works
	}{
		{"mutual", server, mutual, ""},
		{"TLS 1.2 only", plus(server, "ssl_version", "PROTOCOL_TLSv1_2"), mutual, ""},
		{"one cipher", plus(server, "ssl_version", "PROTOCOL_TLSv1_2", "ciphers", "HIGH:ECDHE-ECDSA-AES256-GCM-SHA384:!aNULL"), mutual, ""},
		{"no version in common", plus(server, "ssl_version", "PROTOCOL_TLSv1_2"), plus(mutual, "ssl_version", "PROTOCOL_TLSv1_1"), "protocol version"},
		{"client without certificate", server, map[string]any{"ca_certs": d + "/ca.pem"}, "certificate required"},
		{"client without certificate, optional", plus(server, "cert_reqs", "CERT_OPTIONAL"), map[string]any{"ca_certs": d + "/ca.pem"}, ""},
		{"client without certificate, none", plus(server, "cert_reqs", "CERT_NONE", "ca_certs", nil), map[string]any{"ca_certs": d + "/ca.pem"}, ""},
		{"client of another authority", server, plus(mutual, "certfile", other+"/client.pem", "keyfile", other+"/client.key"), "certificate"},
		{"server of another authority", server, plus(mutual, "ca_certs", other+"/ca.pem"), "certificate signed by unknown authority"},
		{"server of another authority, unchecked", server, plus(mutual, "ca_certs", other+"/ca.pem", "cert_reqs", "CERT_NONE"), ""},
		{"server without a known name", plus(server, "certfile", d+"/client.pem", "keyfile", d+"/client.key"), mutual, "127.0.0.1"},
		{"verify_locations", plus(server, "ca_certs", nil, "verify_locations", []any{map[string]any{"cafile": d + "/ca.pem"}}),
			plus(mutual, "ca_certs", nil, "verify_locations", []any{other + "/ca.pem", map[string]any{"capath": d}}), ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			transporttest.NoLeaks(t)
			i := with(t, impls["tcp"], c.server, c.client)
			s := i.StartServer(t, nil)
			r := i.NewRequester(t, s, nil)
			if c.want == "" {
				transporttest.MustRequest(t, r, "x")
				return
			}
			// The request is retried until its context ends, and a busy machine may not complete a handshake in a short
			// time.
			for patience := 150 * time.Millisecond; ; patience *= 4 {
				ctx, cancel := context.WithTimeout(t.Context(), patience)
				_, err := r.Request(ctx, transporttest.Pack("x"))
				cancel()
				if err != nil && strings.Contains(err.Error(), c.want) {
					return
				}
				if err == nil || !errors.Is(err, context.DeadlineExceeded) || patience > transporttest.Patience {
					t.Fatalf("error %v, want %q", err, c.want)
				}
			}
		})
	}
}

// TestPlainPeer: a peer that does not speak TLS, or stays silent, does not keep others out.
func TestPlainPeer(t *testing.T) {
	d := certs.Make(t)
	for name, plain := range impls {
		t.Run(name, func(t *testing.T) {
			transporttest.NoLeaks(t)
			i := with(t, plain, map[string]any{"certfile": d + "/server.pem", "keyfile": d + "/server.key", "cert_reqs": "CERT_NONE"},
				map[string]any{"ca_certs": d + "/ca.pem"})
			s := i.StartServer(t, func(o *transport.ServerOptions) { o.HandshakeTimeout = 100 * time.Millisecond })
			r := plain.NewRequester(t, s, nil)
			ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
			defer cancel()
			if _, err := r.Request(ctx, transporttest.Pack("x")); err == nil {
				t.Error("a plain request was answered")
			}
			transporttest.MustRequest(t, i.NewRequester(t, s, nil), "secure")
		})
	}
}

func TestBadOptions(t *testing.T) {
	d := certs.Make(t)
	junk := filepath.Join(t.TempDir(), "junk")
	if err := os.WriteFile(junk, []byte("no certificate"), 0o600); err != nil {
		t.Fatal(err)
	}
	good := map[string]any{"certfile": d + "/server.pem", "keyfile": d + "/server.key", "ca_certs": d + "/ca.pem"}
	for _, c := range []struct {
		key   string
		value any
		want  string
	}{
		{"certfile", d + "/absent.pem", "absent.pem"},
		{"certfile", int64(1), "must be text"},
		{"certfile", nil, "needs ssl:certfile"},
		{"keyfile", d + "/client.key", "client.key"},
		{"keyfile", true, "must be text"},
		{"ca_certs", d + "/absent.pem", "absent.pem"},
		{"ca_certs", junk, "holds no certificate"},
		{"ca_certs", nil, "needs ssl:ca_certs"},
		{"cert_reqs", "REQUIRED", "'CERT_NONE', 'CERT_OPTIONAL', 'CERT_REQUIRED'"},
		{"ssl_version", "PROTOCOL_SSLv3", "'PROTOCOL_TLSv1_2'"},
		{"ciphers", "RC4-MD5", "RC4-MD5"},
		{"ciphers", int64(1), "must be text"},
		{"verify_flags", []any{"VERIFY_CRL_CHECK_LEAF"}, "VERIFY_CRL_CHECK_LEAF is not supported"},
		{"verify_flags", "VERIFY_DEFAULT", "must be a list"},
		{"verify_locations", "x", "must be a list"},
		{"verify_locations", []any{int64(1)}, "neither text nor a map"},
		{"verify_locations", []any{map[string]any{"x": "y"}}, `unknown type "x"`},
		{"verify_locations", []any{map[string]any{"cafile": int64(1)}}, "must be text"},
		{"verify_locations", []any{map[string]any{"capath": filepath.Dir(junk)}}, "holds no certificate"},
		{"verify_locations", []any{map[string]any{"cadata": "x"}}, "holds no certificate"},
	} {
		m := map[string]any{}
		for k, v := range good {
			m[k] = v
		}
		if m[c.key] = c.value; c.value == nil {
			delete(m, c.key)
		}
		if _, err := tlsconf.Server(m); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v: error %v, want %q", c.key, c.value, err, c.want)
		}
	}
	if _, _, err := tlsconf.Options("yes"); err == nil {
		t.Error("ssl: yes is text, and no setting")
	}
	for v, want := range map[any]bool{nil: false, false: false, true: true} {
		if _, on, err := tlsconf.Options(v); on != want || err != nil {
			t.Errorf("ssl: %v: %v, %v", v, on, err)
		}
	}
}

func TestCiphers(t *testing.T) {
	c, err := tlsconf.Client(map[string]any{
		"ciphers": "ECDHE-RSA-AES128-GCM-SHA256:TLS_AES_256_GCM_SHA384:ECDHE-RSA-CHACHA20-POLY1305:HIGH:!MD5:@STRENGTH"})
	want := []uint16{tls.TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256, tls.TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256}
	if err != nil || !slices.Equal(c.CipherSuites, want) {
		t.Errorf("got %v, %v", c.CipherSuites, err)
	}
	if c.MinVersion != tls.VersionTLS12 || c.InsecureSkipVerify || c.RootCAs != nil {
		t.Errorf("a client's defaults are %+v", c)
	}
}
