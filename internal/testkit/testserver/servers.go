//go:build linux

package testserver

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os/exec"
	"strconv"
	"strings"
	"testing"
)

// Servers are real servers that differential cases may ask for: in their texts, @HTTP@, @HTTPS@, @ETCD@ (version 2 of its interface), @ETCD3@, @INFLUXDB@, @S3@, @VAULT@ (recorded, see vault.go),
// @REDIS@, @MYSQL@ and @POSTGRES@ stand for ports of 127.0.0.1, @MYSQLSOCKET@ for a socket. Each starts when the first case asks for it. Both sides of a case use the same server,
// so its setup makes the fixture and leaves nothing of the case before.
type Servers struct {
	// T is the test with which the servers end.
	T      testing.TB
	values map[string]string
}

func (v *Servers) get(name string) string {
	if v.values == nil {
		v.values = map[string]string{}
	}
	if _, ok := v.values[name]; !ok {
		switch name {
		case "@HTTP@":
			v.values[name] = web(v.T, httptest.NewServer)
		case "@HTTPS@":
			v.values[name] = web(v.T, httptest.NewTLSServer) // its certificate is not trusted
		case "@ETCD@":
			v.values[name] = etcd(v.T)
		case "@ETCD3@":
			v.values[name] = Etcd(v.T)
		case "@INFLUXDB@":
			v.values[name] = Influxdb(v.T)
		case "@S3@":
			v.values[name] = S3(v.T)
		case "@VAULT@":
			v.values[name] = Vault(v.T)
		case "@REDIS@":
			v.values[name] = Redis(v.T)
		case "@POSTGRES@":
			v.values[name] = Postgres(v.T)
			Until(v.T, "postgres", func(ctx context.Context) error {
				return exec.CommandContext(ctx, Program(v.T, "psql"), "-h", "127.0.0.1", "-p", v.values[name], "-U", "postgres", "-c", "select 1").Run()
			})
		default:
			v.values["@MYSQLSOCKET@"], v.values["@MYSQL@"] = MariaDB(v.T)
			Until(v.T, "mariadb", func(ctx context.Context) error {
				return exec.CommandContext(ctx, Program(v.T, "mariadb"), "--no-defaults", "-S", v.values["@MYSQLSOCKET@"], "-u", "root", "-e", "select 1").Run()
			})
		}
	}
	return v.values[name]
}

// web is a web server whose pages say which they are; /status/404 has that status, /reason/404/words the reason "words", too, and pages below
// /etag have an entity tag. It serves keys of OpenPGP, too.
func web(t testing.TB, start func(http.Handler) *httptest.Server) (port string) {
	s := start(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header()["Date"] = nil
		if r.URL.Path == "/pks/lookup" {
			keyserver(w, r.URL.Query())
			return
		}
		if rest, ok := strings.CutPrefix(r.URL.Path, "/reason/"); ok {
			reason(w, strings.Replace(rest, "/", " ", 1))
			return
		}
		if strings.HasPrefix(r.URL.Path, "/etag/") {
			w.Header().Set("ETag", `"version 1"`)
			if r.Header.Get("If-None-Match") == `"version 1"` {
				w.WriteHeader(http.StatusNotModified)
				return
			}
		}
		if code, err := strconv.Atoi(strings.TrimPrefix(r.URL.Path, "/status/")); err == nil {
			w.WriteHeader(code)
		}
		_, _ = io.WriteString(w, "this is "+r.URL.Path+"\n")
	}))
	t.Cleanup(s.Close)
	return s.URL[strings.LastIndexByte(s.URL, ':')+1:]
}

// reason answers with a status line of its own.
func reason(w http.ResponseWriter, status string) {
	conn, _, err := http.NewResponseController(w).Hijack()
	if err != nil {
		return
	}
	_, _ = io.WriteString(conn, "HTTP/1.1 "+status+"\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
	_ = conn.Close()
}

// keyserver is a server of OpenPGP keys that has one key: Eve's.
func keyserver(w http.ResponseWriter, q url.Values) {
	const fingerprint = "24EFB1FAAABEC769FEAEAA343971EF2D452902E9"
	id := strings.TrimPrefix(q.Get("search"), "0x")
	switch {
	case !strings.HasSuffix(fingerprint, id) && id != "eve":
		w.WriteHeader(http.StatusNotFound)
	case q.Get("op") == "index":
		_, _ = io.WriteString(w, "info:1:1\npub:"+fingerprint+":22:256:1767484800::\nuid:Eve %3ceve@example.com%3e:1767484800::\n")
	default:
		_, _ = io.WriteString(w, `-----BEGIN PGP PUBLIC KEY BLOCK-----

mDMEaVmtgBYJKwYBBAHaRw8BAQdAv0zT1ftpkd22L0NIswvQJzm4V+tSCShYXIzW
xv2gvZi0FUV2ZSA8ZXZlQGV4YW1wbGUuY29tPoiQBBMWCAA4FiEEJO+x+qq+x2n+
rqo0OXHvLUUpAukFAmlZrYACGwMFCwkIBwIGFQoJCAsCBBYCAwECHgECF4AACgkQ
OXHvLUUpAumHAgD/cgrxI+sMaMDsS3Xjk2oTPXmUcwiu0GWOV6EqrAjAx+0BAKnS
KgCNp0lgrClbMYGeses2XWIqTP17wcCDUkvyqUsK
=1Uu4
-----END PGP PUBLIC KEY BLOCK-----
`)
	}
}

// Text puts the servers into a text.
func (v *Servers) Text(s string) string {
	for _, name := range [...]string{"@HTTP@", "@HTTPS@", "@ETCD@", "@ETCD3@", "@INFLUXDB@", "@S3@", "@VAULT@", "@REDIS@", "@MYSQL@", "@MYSQLSOCKET@", "@POSTGRES@"} {
		if strings.Contains(s, name) {
			s = strings.ReplaceAll(s, name, v.get(name))
		}
	}
	return s
}
