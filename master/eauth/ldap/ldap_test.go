package ldap

import (
	"context"
	"log/slog"
	"net"
	"slices"
	"strings"
	"sync"
	"testing"

	ber "github.com/go-asn1-ber/asn1-ber"
	ldap "github.com/go-ldap/ldap/v3"
	"github.com/google/go-cmp/cmp"
)

// server is a directory with some names and passwords. As real servers do, it accepts any name without a password.
type server struct {
	uri       string
	passwords map[string]string
	entries   map[string][]*ldap.Entry // by filter

	mu             sync.Mutex
	bound, filters []string // guarded by mu
}

func start(t *testing.T, s *server) *server {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s.uri = "ldap://" + ln.Addr().String()
	var wg sync.WaitGroup
	t.Cleanup(func() { ln.Close(); wg.Wait() })
	wg.Go(func() {
		for {
			c, err := ln.Accept()
			if err != nil {
				return
			}
			wg.Go(func() {
				defer c.Close()
				for s.answer(c) {
				}
			})
		}
	})
	return s
}

// answer answers one message, false at the end.
func (s *server) answer(c net.Conn) bool {
	p, err := ber.ReadPacket(c)
	if err != nil || len(p.Children) < 2 {
		return false
	}
	id, op := p.Children[0].Value.(int64), p.Children[1]
	s.mu.Lock()
	defer s.mu.Unlock()
	switch op.Tag {
	case ldap.ApplicationBindRequest:
		dn, password := op.Children[1].Value.(string), op.Children[2].Data.String()
		s.bound = append(s.bound, dn)
		code := ldap.LDAPResultSuccess
		if password != "" && s.passwords[dn] != password {
			code = ldap.LDAPResultInvalidCredentials
		}
		return s.reply(c, id, ldap.ApplicationBindResponse, code)
	case ldap.ApplicationSearchRequest:
		filter, err := ldap.DecompileFilter(op.Children[6])
		if err != nil {
			return false
		}
		s.filters = append(s.filters, filter)
		for _, e := range s.entries[filter] {
			found := ber.Encode(ber.ClassApplication, ber.TypeConstructed, ldap.ApplicationSearchResultEntry, nil, "")
			found.AppendChild(text(e.DN))
			list := ber.NewSequence("")
			for _, a := range e.Attributes {
				attribute, values := ber.NewSequence(""), ber.Encode(ber.ClassUniversal, ber.TypeConstructed, ber.TagSet, nil, "")
				for _, v := range a.Values {
					values.AppendChild(text(v))
				}
				attribute.AppendChild(text(a.Name))
				attribute.AppendChild(values)
				list.AppendChild(attribute)
			}
			found.AppendChild(list)
			if !send(c, id, found) {
				return false
			}
		}
		return s.reply(c, id, ldap.ApplicationSearchResultDone, ldap.LDAPResultSuccess)
	case ldap.ApplicationExtendedRequest:
		return s.reply(c, id, ldap.ApplicationExtendedResponse, ldap.LDAPResultProtocolError)
	}
	return false
}

func text(s string) *ber.Packet {
	return ber.NewString(ber.ClassUniversal, ber.TypePrimitive, ber.TagOctetString, s, "")
}

func (s *server) reply(c net.Conn, id int64, tag ber.Tag, code int) bool {
	op := ber.Encode(ber.ClassApplication, ber.TypeConstructed, tag, nil, "")
	op.AppendChild(ber.NewInteger(ber.ClassUniversal, ber.TypePrimitive, ber.TagEnumerated, code, ""))
	op.AppendChild(text(""))
	op.AppendChild(text(""))
	return send(c, id, op)
}

func send(c net.Conn, id int64, op *ber.Packet) bool {
	m := ber.NewSequence("")
	m.AppendChild(ber.NewInteger(ber.ClassUniversal, ber.TypePrimitive, ber.TagInteger, id, ""))
	m.AppendChild(op)
	_, err := c.Write(m.Bytes())
	return err == nil
}

func entry(dn string, attributes map[string][]string) *ldap.Entry {
	return ldap.NewEntry(dn, attributes)
}

func directory(t *testing.T, s *server, opts map[string]any) *Directory {
	t.Helper()
	all := map[string]any{"auth.ldap.uri": s.uri, "auth.ldap.basedn": "dc=x"}
	for k, v := range opts {
		all["auth.ldap."+k] = v
	}
	d, err := New(all, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	return d
}

var byName = map[string]any{"binddn": "uid={{ username }},ou=people,dc=x"}

func TestEmptyPasswordsLetNobodyIn(t *testing.T) {
	s := start(t, &server{passwords: map[string]string{"uid=alice,ou=people,dc=x": "secret"}})
	d := directory(t, s, byName)
	for password, want := range map[string]bool{"secret": true, "": false, "wrong": false} {
		ok, _, err := d.Authenticate(t.Context(), nil, "alice", password)
		if ok != want || err != nil {
			t.Errorf("password %q: %v %v", password, ok, err)
		}
	}
}

func TestNamesAreNotPartsOfADN(t *testing.T) {
	s := start(t, &server{passwords: map[string]string{"uid=alice,ou=admins,ou=people,dc=x": "secret"}})
	ok, _, err := directory(t, s, byName).Authenticate(t.Context(), nil, "alice,ou=admins", "secret")
	if ok || err != nil {
		t.Errorf("a name with a comma became two parts of a DN: %v %v", ok, err)
	}
	if want := []string{`uid=alice\,ou=admins,ou=people,dc=x`}; !slices.Equal(s.bound, want) {
		t.Errorf("bound as %q, want %q", s.bound, want)
	}
}

func TestNamesAreNotPartsOfAFilter(t *testing.T) {
	s := start(t, &server{passwords: map[string]string{"cn=salt": "pw", "uid=x": "secret"},
		entries: map[string][]*ldap.Entry{`(uid=\2a\29\28uid=\2a)`: {entry("uid=x", nil)},
			`(&(memberUid=*)(uid=*)(objectClass=posixGroup))`: {entry("cn=admins", map[string][]string{"cn": {"admins"}, "memberUid": {"*)(uid=*"}})}}})
	ok, groups, err := directory(t, s, map[string]any{"binddn": "cn=salt", "bindpw": "pw", "filter": "(uid={{ username }})"}).
		Authenticate(t.Context(), nil, "*)(uid=*", "secret")
	if !ok || len(groups) != 0 || err != nil {
		t.Errorf("%v %q %v", ok, groups, err)
	}
	want := []string{`(uid=\2a\29\28uid=\2a)`, `(&(memberUid=\2a\29\28uid=\2a)(objectClass=posixGroup))`}
	if d := cmp.Diff(want, s.filters); d != "" {
		t.Errorf("filters (-want +got):\n%s", d)
	}
}

// TestStartTLSIsRefused: a server without TLS is an error with the server's reason, not a log-in in the clear.
func TestStartTLSIsRefused(t *testing.T) {
	s := start(t, &server{passwords: map[string]string{"uid=alice,ou=people,dc=x": "secret"}})
	d := directory(t, s, map[string]any{"binddn": byName["binddn"], "starttls": true})
	ok, _, err := d.Authenticate(t.Context(), nil, "alice", "secret")
	if ok || err == nil || !strings.Contains(err.Error(), "cannot start TLS with LDAP server "+s.uri+": LDAP Result Code 2 ") {
		t.Errorf("%v %v", ok, err)
	}
	if len(s.bound) != 0 {
		t.Errorf("a password was sent in the clear as %q", s.bound)
	}
}

// TestTheFirstServerThatAnswers: the servers of a list are tried in order. If all fail, the error names each one.
func TestTheFirstServerThatAnswers(t *testing.T) {
	s := start(t, &server{passwords: map[string]string{"uid=alice,ou=people,dc=x": "secret"}})
	gone := "ldap://127.0.0.1:1"
	d := directory(t, s, byName)
	d.opts["uri"] = gone + " " + s.uri
	if ok, _, err := d.Authenticate(t.Context(), nil, "alice", "secret"); !ok || err != nil {
		t.Errorf("%v %v", ok, err)
	}
	d.opts["uri"] = gone
	if ok, _, err := d.Authenticate(t.Context(), nil, "alice", "secret"); ok || err == nil || !strings.Contains(err.Error(), gone) {
		t.Errorf("%v %v", ok, err)
	}
}

func TestBadOptions(t *testing.T) {
	for name, c := range map[string]struct {
		opts map[string]any
		want string // in the error
	}{
		"both kinds of TLS": {map[string]any{"auth.ldap.tls": true, "auth.ldap.starttls": true}, "cannot use both auth.ldap.starttls and auth.ldap.tls"},
		"scope":             {map[string]any{"auth.ldap.scope": int64(3)}, "auth.ldap.scope must be 0 (base), 1 (one level) or 2 (subtree)"},
		"template":          {map[string]any{"auth.ldap.binddn": "uid={{ username"}, "auth.ldap.binddn: "},
	} {
		if _, err := New(c.opts, slog.New(slog.DiscardHandler)); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v", name, err)
		}
	}
	var log strings.Builder
	if _, err := New(map[string]any{"auth.ldap.bindpasswd": "x", "auth.ldap.uri": "ldap://x"}, slog.New(slog.NewTextHandler(&log, nil))); err != nil ||
		!strings.Contains(log.String(), "'auth.ldap.bindpasswd' is unknown") || strings.Count(log.String(), "\n") != 1 {
		t.Errorf("%v %s", err, &log)
	}
}

// TestExpand: the directory is asked for units only if a rule names one, and a directory that cannot be reached is
// an error.
func TestExpand(t *testing.T) {
	s := start(t, &server{passwords: map[string]string{"cn=salt": "pw"}, entries: map[string][]*ldap.Entry{
		"(objectClass=computer)": {entry("cn=web1,ou=web", map[string][]string{"cn": {"WEB1.example.com"}}), entry("cn=db,ou=web", map[string][]string{"CN": {"db"}})}}})
	d := directory(t, s, map[string]any{"binddn": "cn=salt", "bindpw": "pw", "minion_stripdomains": []any{".example.com"}})
	plain := []any{"test.ping", map[string]any{"web*": []any{".*"}}}
	got, err := d.Expand(t.Context(), plain)
	if diff := cmp.Diff(plain, got); diff != "" || err != nil || len(s.bound) != 0 {
		t.Errorf("%v, bound as %q, -want +got:\n%s", err, s.bound, diff)
	}
	got, err = d.Expand(t.Context(), append(plain, map[string]any{"ldap(ou=web)": []any{"test.ping"}}))
	want := append(plain, map[string]any{"web1": []any{"test.ping"}}, map[string]any{"db": []any{"test.ping"}})
	if diff := cmp.Diff(want, got); diff != "" || err != nil {
		t.Errorf("%v, -want +got:\n%s", err, diff)
	}
	d.opts["uri"] = "ldap://127.0.0.1:1"
	if _, err := d.Expand(context.Background(), []any{map[string]any{"ldap(ou=web)": []any{"test.ping"}}}); err == nil {
		t.Error("a directory that is gone expands rules")
	}
}
