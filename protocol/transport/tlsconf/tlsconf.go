// Package tlsconf translates Salt's ssl option into TLS for the tcp and ws transports: certfile, keyfile, ca_certs,
// cert_reqs, ssl_version, ciphers, verify_locations, verify_flags. It is a separate package, so that a program
// without TLS does not link crypto/tls.
//
// As in Salt 3008, a client checks the server's certificate and name, and a server requires certificates of
// clients, unless cert_reqs says otherwise. A setting that cannot be honoured is an error; it never results in less
// security than requested.
//
//	nil, false           no TLS
//	true, {…}            Options ─▶ Client or Server ─▶ Wrap or WrapListener ─▶ transport options
//
// Salt's sources: salt/transport/base.py:ssl_context, salt/config/__init__.py:_update_ssl_config.
package tlsconf

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
)

// Options reads the value of the option: off (nil or false), on without settings (true), or a map of settings.
func Options(v any) (ssl map[string]any, on bool, err error) {
	switch v := v.(type) {
	case nil:
		return nil, false, nil
	case bool:
		return map[string]any{}, v, nil
	case map[string]any:
		return v, true, nil
	}
	return nil, false, fmt.Errorf("tlsconf: ssl must be a map, true or false, not %T", v)
}

// Client returns the configuration of a minion. Wrap sets ServerName for each connection.
func Client(ssl map[string]any) (*tls.Config, error) {
	c, pool, err := commonConfig(ssl)
	if err != nil {
		return nil, err
	}
	reqs, err := certReqs(ssl)
	if err != nil {
		return nil, err
	}
	c.RootCAs = pool // nil means the system's authorities
	c.InsecureSkipVerify = reqs == certNone
	return c, nil
}

// Server returns the configuration of a master. It needs certfile, and certificate authorities unless cert_reqs is
// CERT_NONE.
func Server(ssl map[string]any) (*tls.Config, error) {
	c, pool, err := commonConfig(ssl)
	if err != nil {
		return nil, err
	}
	if len(c.Certificates) == 0 {
		return nil, errors.New("tlsconf: a server needs ssl:certfile")
	}
	reqs, err := certReqs(ssl)
	if err != nil {
		return nil, err
	}
	switch reqs {
	case certNone:
		c.ClientAuth = tls.NoClientCert
		return c, nil
	case certOptional:
		c.ClientAuth = tls.VerifyClientCertIfGiven
	default:
		c.ClientAuth = tls.RequireAndVerifyClientCert
	}
	if c.ClientCAs = pool; pool == nil {
		return nil, errors.New("tlsconf: asking clients for certificates needs ssl:ca_certs, or ssl:cert_reqs must be CERT_NONE")
	}
	return c, nil
}

// Wrap returns the function for transport.ClientOptions.Wrap.
func Wrap(c *tls.Config) func(ctx context.Context, conn net.Conn, host string) (net.Conn, error) {
	return func(ctx context.Context, conn net.Conn, host string) (net.Conn, error) {
		c := c
		if c.ServerName == "" {
			c = c.Clone()
			c.ServerName, _, _ = strings.Cut(host, "%") // certificates have no zones
		}
		t := tls.Client(conn, c)
		if err := t.HandshakeContext(ctx); err != nil {
			return nil, err
		}
		return t, nil
	}
}

// WrapListener returns the function for transport.ServerOptions.Wrap.
func WrapListener(c *tls.Config) func(net.Listener) net.Listener {
	return func(ln net.Listener) net.Listener { return listener{ln, c} }
}

// listener adds TLS to the connections of another one.
type listener struct {
	net.Listener
	config *tls.Config
}

// Accept implements net.Listener.
func (l listener) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return serverConn{tls.Server(c, l.config)}, nil
}

// serverConn is a server's connection.
type serverConn struct{ *tls.Conn }

// Heard reports whether the client sent a ClientHello that the server can answer. What comes before that costs no
// signature.
func (c serverConn) Heard() bool { return c.ConnectionState().Version != 0 }

// commonConfig reads the settings of both sides. The pool is nil if no authority is named, which means the system's.
func commonConfig(ssl map[string]any) (*tls.Config, *x509.CertPool, error) {
	c := &tls.Config{MinVersion: tls.VersionTLS12}
	certfile, err := textSetting(ssl, "certfile")
	if err != nil {
		return nil, nil, err
	}
	keyfile, err := textSetting(ssl, "keyfile")
	if err != nil {
		return nil, nil, err
	}
	if certfile != "" {
		if keyfile == "" {
			keyfile = certfile
		}
		cert, err := tls.LoadX509KeyPair(certfile, keyfile)
		if err != nil {
			return nil, nil, fmt.Errorf("tlsconf: cannot load ssl:certfile %q with ssl:keyfile %q: %w", certfile, keyfile, err)
		}
		c.Certificates = []tls.Certificate{cert}
	}
	if err := setVersion(c, ssl); err != nil {
		return nil, nil, err
	}
	list, err := textSetting(ssl, "ciphers")
	if err != nil {
		return nil, nil, err
	}
	if c.CipherSuites, err = cipherList(list); err != nil {
		return nil, nil, err
	}
	if err := verifyFlags(ssl["verify_flags"]); err != nil {
		return nil, nil, err
	}
	pool, err := authorities(ssl)
	return c, pool, err
}

// textSetting returns a setting that must be a string, "" if it is missing.
func textSetting(ssl map[string]any, key string) (string, error) {
	switch v := ssl[key].(type) {
	case nil:
		return "", nil
	case string:
		return v, nil
	default:
		return "", fmt.Errorf("tlsconf: ssl:%s must be text, not %T", key, v)
	}
}

// reqs is a value of cert_reqs.
type reqs int

const (
	certDefault reqs = iota
	certNone
	certOptional
	certRequired
)

// certReqs reads cert_reqs. The error text is Salt's.
func certReqs(ssl map[string]any) (reqs, error) {
	v, err := textSetting(ssl, "cert_reqs")
	if err != nil {
		return 0, err
	}
	switch v {
	case "":
		return certDefault, nil
	case "CERT_NONE":
		return certNone, nil
	case "CERT_OPTIONAL":
		return certOptional, nil
	case "CERT_REQUIRED":
		return certRequired, nil
	}
	return 0, errors.New("SSL option 'cert_reqs' must be set to one of the following values: 'CERT_NONE', 'CERT_OPTIONAL', 'CERT_REQUIRED'.")
}

// setVersion translates ssl_version. Python's PROTOCOL_TLSv1_2 and similar names mean exactly that version.
func setVersion(c *tls.Config, ssl map[string]any) error {
	v, err := textSetting(ssl, "ssl_version")
	if err != nil {
		return err
	}
	exact := uint16(0)
	switch v {
	case "", "PROTOCOL_TLS", "PROTOCOL_TLS_CLIENT", "PROTOCOL_TLS_SERVER", "PROTOCOL_SSLv23":
		return nil
	case "PROTOCOL_TLSv1":
		exact = tls.VersionTLS10
	case "PROTOCOL_TLSv1_1":
		exact = tls.VersionTLS11
	case "PROTOCOL_TLSv1_2":
		exact = tls.VersionTLS12
	default:
		return errors.New("SSL option 'ssl_version' must be set to one of the following values: 'PROTOCOL_SSLv23', 'PROTOCOL_TLS', " +
			"'PROTOCOL_TLS_CLIENT', 'PROTOCOL_TLS_SERVER', 'PROTOCOL_TLSv1', 'PROTOCOL_TLSv1_1', 'PROTOCOL_TLSv1_2'.")
	}
	c.MinVersion, c.MaxVersion = exact, exact
	return nil
}

// verifyFlags accepts flags for checks that are always made. It refuses flags for further checks, such as revocation
// lists, because ignoring them would be less secure than requested.
func verifyFlags(v any) error {
	var flags []any
	switch v := v.(type) {
	case nil:
	case []any:
		flags = v
	case []string:
		for _, s := range v {
			flags = append(flags, s)
		}
	default:
		return fmt.Errorf("tlsconf: ssl:verify_flags must be a list, not %T", v)
	}
	for _, f := range flags {
		s, _ := f.(string)
		switch strings.ToUpper(s) {
		case "VERIFY_DEFAULT", "VERIFY_X509_STRICT", "VERIFY_X509_TRUSTED_FIRST", "VERIFY_ALLOW_PROXY_CERTS", "VERIFY_X509_PARTIAL_CHAIN":
		default:
			return fmt.Errorf("tlsconf: ssl:verify_flags: %v is not supported", f)
		}
	}
	return nil
}

// authorities collects ca_certs and verify_locations.
func authorities(ssl map[string]any) (*x509.CertPool, error) {
	var pool *x509.CertPool
	add := func(what string, pem []byte) error {
		if pool == nil {
			pool = x509.NewCertPool()
		}
		if pool.AppendCertsFromPEM(pem) {
			return nil
		}
		if certs, err := x509.ParseCertificates(pem); err == nil && len(certs) > 0 {
			for _, c := range certs {
				pool.AddCert(c)
			}
			return nil
		}
		return fmt.Errorf("tlsconf: %s holds no certificate", what)
	}
	addFile := func(key, path string) error {
		b, err := os.ReadFile(path)
		if err != nil {
			return fmt.Errorf("tlsconf: cannot read ssl:%s: %w", key, err)
		}
		return add(fmt.Sprintf("ssl:%s %q", key, path), b)
	}
	ca, err := textSetting(ssl, "ca_certs")
	if err != nil {
		return nil, err
	}
	if ca != "" {
		if err := addFile("ca_certs", ca); err != nil {
			return nil, err
		}
	}
	locations, err := listOf(ssl["verify_locations"])
	if err != nil {
		return nil, err
	}
	for _, l := range locations {
		if err := addLocation(l, add, addFile); err != nil {
			return nil, err
		}
	}
	return pool, nil
}

// listOf returns verify_locations as a list.
func listOf(v any) ([]any, error) {
	switch v := v.(type) {
	case nil:
		return nil, nil
	case []any:
		return v, nil
	}
	return nil, fmt.Errorf("tlsconf: ssl:verify_locations must be a list, not %T", v)
}

// addLocation adds one entry of verify_locations: a file, or {cafile | capath | cadata: x}.
func addLocation(l any, add func(string, []byte) error, addFile func(string, string) error) error {
	if path, ok := l.(string); ok {
		return addFile("verify_locations", path)
	}
	m, ok := l.(map[string]any)
	if !ok {
		return fmt.Errorf("tlsconf: ssl:verify_locations: %T is neither text nor a map", l)
	}
	for k, v := range m {
		s, ok := v.(string)
		if !ok {
			b, isBytes := v.([]byte)
			if !isBytes {
				return fmt.Errorf("tlsconf: ssl:verify_locations:%s must be text, not %T", k, v)
			}
			s = string(b)
		}
		var err error
		switch strings.ToLower(k) {
		case "cafile":
			err = addFile("verify_locations:cafile", s)
		case "cadata":
			err = add("ssl:verify_locations:cadata", []byte(s))
		case "capath":
			err = addDir(s, add)
		default:
			err = fmt.Errorf("tlsconf: ssl:verify_locations: unknown type %q", k)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// addDir adds the certificates in a directory. Other files there are ignored, as OpenSSL does.
func addDir(dir string, add func(string, []byte) error) error {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return fmt.Errorf("tlsconf: cannot read ssl:verify_locations:capath: %w", err)
	}
	found := false
	for _, e := range entries {
		b, err := os.ReadFile(filepath.Join(dir, e.Name()))
		if err == nil && add("", b) == nil {
			found = true
		}
	}
	if !found {
		return fmt.Errorf("tlsconf: ssl:verify_locations:capath %q holds no certificate", dir)
	}
	return nil
}

// cipherList translates an OpenSSL cipher list, which applies to TLS 1.2 and below. Class names (HIGH, !aNULL,
// @STRENGTH…) select among suites. They are ignored, since Go has only secure suites. Named suites keep their
// order.
func cipherList(list string) ([]uint16, error) {
	var ids []uint16
	for _, name := range strings.FieldsFunc(list, func(r rune) bool { return r == ':' || r == ',' || r == ' ' }) {
		if strings.ContainsAny(name[:1], "!-+@") || !strings.Contains(name, "-") && !strings.HasPrefix(name, "TLS_") {
			continue
		}
		id, ok := cipherSuite(name)
		if !ok {
			return nil, fmt.Errorf("tlsconf: ssl:ciphers: %q is not supported", name)
		}
		if id != 0 {
			ids = append(ids, id)
		}
	}
	return ids, nil
}

// cipherSuite returns a suite by OpenSSL's or the standard's name; 0 for the suites of TLS 1.3, which are always
// enabled.
func cipherSuite(name string) (uint16, bool) {
	switch name {
	case "ECDHE-ECDSA-AES128-GCM-SHA256":
		return tls.TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256, true
	case "ECDHE-ECDSA-AES256-GCM-SHA384":
		return tls.TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384, true
	case "ECDHE-RSA-AES128-GCM-SHA256":
		return tls.TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256, true
	case "ECDHE-RSA-AES256-GCM-SHA384":
		return tls.TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384, true
	case "ECDHE-ECDSA-CHACHA20-POLY1305":
		return tls.TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256, true
	case "ECDHE-RSA-CHACHA20-POLY1305":
		return tls.TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256, true
	case "ECDHE-ECDSA-AES128-SHA":
		return tls.TLS_ECDHE_ECDSA_WITH_AES_128_CBC_SHA, true
	case "ECDHE-ECDSA-AES256-SHA":
		return tls.TLS_ECDHE_ECDSA_WITH_AES_256_CBC_SHA, true
	case "ECDHE-RSA-AES128-SHA":
		return tls.TLS_ECDHE_RSA_WITH_AES_128_CBC_SHA, true
	case "ECDHE-RSA-AES256-SHA":
		return tls.TLS_ECDHE_RSA_WITH_AES_256_CBC_SHA, true
	case "AES128-GCM-SHA256":
		return tls.TLS_RSA_WITH_AES_128_GCM_SHA256, true
	case "AES256-GCM-SHA384":
		return tls.TLS_RSA_WITH_AES_256_GCM_SHA384, true
	case "TLS_AES_128_GCM_SHA256", "TLS_AES_256_GCM_SHA384", "TLS_CHACHA20_POLY1305_SHA256":
		return 0, true
	}
	for _, s := range tls.CipherSuites() {
		if s.Name == name {
			return s.ID, true
		}
	}
	return 0, false
}
