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

// Servers are servers that differential cases may ask for: in their texts, @HTTP@, @HTTPS@, @ETCD@ (version 2 of its interface),
// @ETCD3@, @INFLUXDB@, @S3@, @ECHO@ (see echo.go), @VAULT@ (recorded, see vault.go), @REDIS@, @MYSQL@ and @POSTGRES@ stand for ports of 127.0.0.1,
// @MYSQLSOCKET@ for a socket. Each starts when the first case asks for it. Both sides of a case use the same server, so its setup
// makes the fixture and leaves nothing of the case before.
type Servers struct {
	// T is the test with which the servers end.
	T testing.TB
	// Replay says that stock's kept answers are compared, with the servers for which [Replayable] holds: those that are ours start,
	// others have tapes (see tape.go), and PostgreSQL has a port where no server is.
	Replay bool

	values map[string]string
	tapes  map[string]*tape
}

// taped are the servers in front of which is a tape, with their networks.
var taped = map[string]string{"@ETCD3@": "tcp", "@INFLUXDB@": "tcp", "@REDIS@": "tcp", "@MYSQLSOCKET@": "unix"}

// asked finds the servers that a text asks for.
var asked = regexp.MustCompile(`@(HTTPS?|ECHO|ETCD3?|INFLUXDB|S3|VAULT|REDIS|MYSQL(SOCKET)?|POSTGRES)@`)

// Replayable reports whether a replay has all servers that a text names: our own, and those with recorded
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
			v.values[name] = web(v.T, httptest.NewTLSServer) // its certificate is not trusted
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

// putTape puts a tape in front of a server, or in its place.
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

// Lend puts a tape in front of a server that the test started, or in its place if this is a replay, and returns the address
// where clients connect: a port of 127.0.0.1, or with network "unix" the path of a socket. The conversations bear the name.
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

// Conversations returns what this process recorded of its conversations with servers that have tapes.
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

// Give loads the conversations of a replay into the tapes, and fails the test if other requests were made.
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
// /reason/404/words also the reason "words", and pages below /etag have an entity tag. It serves OpenPGP keys, too.
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

// reason answers with a custom status line.
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

// Text replaces the names of servers in a text.
func (v *Servers) Text(s string) string { return asked.ReplaceAllStringFunc(s, v.get) }

// Names returns, for each server in use, the text that stands for it followed by its name in cases.
func (v *Servers) Names() []string {
	return v.pairs(func(name, text string) []string { return []string{text, name} })
}

// Texts returns, for each server in use, its name in cases followed by the text that stands for it.
func (v *Servers) Texts() []string {
	return v.pairs(func(name, text string) []string { return []string{name, text} })
}

func (v *Servers) pairs(pair func(name, text string) []string) (list []string) {
	for _, name := range slices.Sorted(maps.Keys(v.values)) {
		list = append(list, pair(name, v.values[name])...)
	}
	return list
}
