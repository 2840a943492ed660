package testserver

import (
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// Servers starts the servers that differential cases use. In their texts, @HTTP@, @HTTPS@, @ETCD@ (version 2 of its
// interface), @ETCD3@, @INFLUXDB@, @S3@, @ECHO@ (see echo.go), @VAULT@ (recorded, see vault.go), @REDIS@, @MYSQL@ and
// @POSTGRES@ are replaced by ports of 127.0.0.1, and @MYSQLSOCKET@ by a socket. A server starts when the first case
// uses it. Both sides of a case use the same server, so the case's setup must create its data and remove the data of
// earlier cases.
type Servers struct {
	// T is the test. Its end stops the servers.
	T testing.TB
	// Replay compares with stock's recorded results, for cases for which [Replayable] returns true. Our own servers
	// start; others are replaced by tapes (see tape.go). PostgreSQL gets a port without a server.
	Replay bool

	values map[string]string
	tapes  map[string]*tape
}

// taped lists the servers that have a tape in front of them, with their networks.
var taped = map[string]string{"@ETCD3@": "tcp", "@INFLUXDB@": "tcp", "@REDIS@": "tcp", "@MYSQLSOCKET@": "unix"}

// asked matches the names of servers in a text.
var asked = regexp.MustCompile(`@(HTTPS?|ECHO|ETCD3?|INFLUXDB|S3|VAULT|REDIS|MYSQL(SOCKET)?|POSTGRES)@`)

// Replayable reports whether all servers in a text are available in a replay: our own, and those with recorded
// conversations. PostgreSQL needs no server in a replay, since functions use it through the program psql.
func Replayable(text string) bool {
	return !slices.ContainsFunc(asked.FindAllString(text, -1), func(name string) bool {
		switch name {
		case "@HTTP@", "@HTTPS@", "@ECHO@", "@ETCD@", "@VAULT@", "@POSTGRES@":
			return false
		}
		return taped[name] == ""
	})
}

func (v *Servers) get(name string) string {
	if v.values == nil {
		v.values = map[string]string{}
	}
	if _, ok := v.values[name]; !ok {
		switch {
		case name == "@HTTP@":
			v.values[name] = web(v.T, httptest.NewServer)
		case name == "@HTTPS@":
			v.values[name] = web(v.T, httptest.NewTLSServer) // with a certificate that is not trusted
		case name == "@ECHO@":
			v.values[name] = echo(v.T)
		case name == "@ETCD@":
			v.values[name] = etcd(v.T)
		case name == "@VAULT@":
			v.values[name] = Vault(v.T)
		case v.Replay && taped[name] == "":
			v.values[name] = "5432"
		case v.Replay:
			v.putTape(name, taped[name], "")
		default:
			v.start(name)
			if taped[name] != "" {
				v.putTape(name, taped[name], v.values[name])
			}
		}
	}
	return v.values[name]
}

// putTape puts a tape in front of a server, or in place of it if server is "".
func (v *Servers) putTape(name, network, server string) {
	if v.tapes == nil {
		v.tapes = map[string]*tape{}
	}
	if v.values == nil {
		v.values = map[string]string{}
	}
	v.tapes[name] = newTape(v.T, network, server)
	v.values[name] = v.tapes[name].address
}

// Lend puts a tape in front of a server that the test started or, in a replay, in place of it. It returns the address
// for clients: a port of 127.0.0.1 or, with network "unix", the path of a socket. Its conversations are stored under
// the name.
func (v *Servers) Lend(name, network, server string) (address string) {
	if v.Replay {
		server = ""
	}
	v.putTape(name, network, server)
	return v.values[name]
}

// Rewind discards the recorded conversations.
func (v *Servers) Rewind() {
	for _, p := range v.tapes {
		p.mu.Lock()
		p.said, p.lacks = nil, nil
		p.mu.Unlock()
	}
}

// Conversations returns the recorded conversations of this process with servers that have tapes.
func (v *Servers) Conversations() (said []Conversation) {
	for _, name := range slices.Sorted(maps.Keys(v.tapes)) {
		p := v.tapes[name]
		p.mu.Lock()
		for _, c := range p.said {
			said = append(said, Conversation{Server: name, Parts: slices.Clone(c.Parts), Ends: c.Ends})
		}
		p.mu.Unlock()
	}
	return said
}

// Give loads conversations into the tapes for a replay. The test fails if its requests differ from them.
func (v *Servers) Give(t testing.TB, said []Conversation) {
	v.Rewind()
	for _, c := range said {
		if p := v.tapes[c.Server]; p != nil {
			p.mu.Lock()
			p.said = append(p.said, &c)
			p.mu.Unlock()
		}
	}
	t.Cleanup(func() {
		for name, p := range v.tapes {
			p.mu.Lock()
			for _, lack := range p.lacks {
				t.Errorf("%s: %q", name, lack)
			}
			p.mu.Unlock()
		}
	})
}

// web starts a web server and returns its port. Each page contains its own path; /status/404 has that status,
// /reason/404/words also the reason "words", and pages below /etag have an entity tag. It also serves OpenPGP keys.
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

// reason responds with a custom status line.
func reason(w http.ResponseWriter, status string) {
	conn, _, err := http.NewResponseController(w).Hijack()
	if err != nil {
		return
	}
	_, _ = io.WriteString(conn, "HTTP/1.1 "+status+"\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
	_ = conn.Close()
}

// keyserver implements a server of OpenPGP keys with one key: Eve's.
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

// Text replaces the names of servers in a text by their ports or sockets.
func (v *Servers) Text(s string) string { return asked.ReplaceAllStringFunc(s, v.get) }

// Names returns, for each server in use, its port or socket followed by its name in cases.
func (v *Servers) Names() []string {
	return v.pairs(func(name, text string) []string { return []string{text, name} })
}

// Texts returns, for each server in use, its name in cases followed by its port or socket.
func (v *Servers) Texts() []string {
	return v.pairs(func(name, text string) []string { return []string{name, text} })
}

func (v *Servers) pairs(pair func(name, text string) []string) (list []string) {
	for _, name := range slices.Sorted(maps.Keys(v.values)) {
		list = append(list, pair(name, v.values[name])...)
	}
	return list
}
