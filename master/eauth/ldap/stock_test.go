//go:build interop

package ldap

import (
	"fmt"
	"log/slog"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/brine-salt/brine/internal/testkit/freeport"
	"github.com/brine-salt/brine/internal/testkit/testsalt"
)

// slapd starts OpenLDAP with the entries of testdata/directory.ldif and returns its address.
func slapd(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	if err := os.Mkdir(filepath.Join(dir, "db"), 0o700); err != nil {
		t.Fatal(err)
	}
	conf := filepath.Join(dir, "slapd.conf")
	text := ""
	for _, schema := range []string{"core", "cosine", "nis", "inetorgperson"} {
		text += "include /etc/ldap/schema/" + schema + ".schema\n"
	}
	text += fmt.Sprintf(`objectclass ( 1.1.2.1 NAME 'computer' SUP device STRUCTURAL )
modulepath /usr/lib/ldap
moduleload back_mdb
database mdb
suffix dc=example,dc=com
directory %s/db
access to attrs=userPassword by anonymous auth
access to * by users read
`, dir)
	if err := os.WriteFile(conf, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command("/usr/sbin/slapadd", "-f", conf, "-l", "testdata/directory.ldif").CombinedOutput(); err != nil {
		t.Fatalf("slapadd: %v\n%s", err, out)
	}
	addr := fmt.Sprintf("127.0.0.1:%d", freeport.Port(t))
	cmd := exec.Command("/usr/sbin/slapd", "-d", "0", "-f", conf, "-h", "ldap://"+addr)
	cmd.Stderr = t.Output()
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	for deadline := time.Now().Add(30 * time.Second); ; time.Sleep(10 * time.Millisecond) {
		if c, err := net.Dial("tcp", addr); err == nil {
			c.Close()
			return addr
		} else if time.Now().After(deadline) {
			t.Fatal(err)
		}
	}
}

// TestBesideStock compares stock's module with ours on a real directory: who can log in with the same options,
// their groups, and the minions of their rules.
func TestBesideStock(t *testing.T) {
	addr := slapd(t)
	// Debian's python3-ldap, alone: the rest of that directory would come before the libraries of stock Salt.
	libraries := t.TempDir()
	for _, pattern := range []string{"ldap", "_ldap*.so", "ldapurl.py", "ldif.py", "pyasn1*"} {
		found, _ := filepath.Glob("/usr/lib/python3/dist-packages/" + pattern)
		for _, name := range found {
			if err := os.Symlink(name, filepath.Join(libraries, filepath.Base(name))); err != nil {
				t.Fatal(err)
			}
		}
	}
	host, port, _ := net.SplitHostPort(addr)
	type m = map[string]any
	people := "ou=people,dc=example,dc=com"
	base := m{"uri": "ldap://" + addr, "basedn": "dc=example,dc=com"}
	direct := m{"binddn": "uid={{ username }}," + people}
	searching := m{"binddn": "cn=salt,dc=example,dc=com", "bindpw": "search", "filter": "uid={{ username }}"}
	ad := m{"activedirectory": true, "accountattributename": "uid", "persontype": "inetOrgPerson", "groupclass": "groupOfNames"}
	ipa := m{"freeipa": true, "groupattribute": "member", "group_basedn": "ou=directory,dc=example,dc=com", "group_filter": "(&(member=uid={{ username }}," + people + ")(objectClass=groupOfNames))"}
	units := []any{"test.ping", m{"web*": []any{".*"}}, m{"ldap(ou=computers,dc=example,dc=com)": []any{"test.*"}}, m{"ldap(ou=none,dc=example,dc=com)": []any{".*"}}}
	cases := map[string]struct {
		opts  []m
		rules []any
		ours  []any // the expanded rules where stock's are wrong
	}{
		"direct":                         {opts: []m{base, direct}},
		"server and port":                {opts: []m{direct, {"basedn": "dc=example,dc=com", "server": host, "port": port}}},
		"search":                         {opts: []m{base, searching}},
		"search with brackets":           {opts: []m{base, searching, {"filter": "(&(uid={{ username }})(objectClass=inetOrgPerson))"}}},
		"search one level":               {opts: []m{base, searching, {"basedn": people, "scope": int64(1)}}},
		"search at the base only":        {opts: []m{base, searching, {"scope": int64(0)}}},
		"search below what is not there": {opts: []m{base, searching, {"basedn": "ou=none,dc=example,dc=com"}}},
		"wrong bindpw":                   {opts: []m{base, searching, {"bindpw": "wrong"}}},
		"no filter":                      {opts: []m{base, searching, {"filter": nil}}},
		"bad filter":                     {opts: []m{base, searching, {"filter": "(uid={{ username }}"}}},
		"no binddn":                      {opts: []m{base}},
		"binddn and anonymous":           {opts: []m{base, direct, {"anonymous": true}}},
		"bindpw and anonymous":           {opts: []m{base, searching, {"anonymous": true}}},
		"no groupou":                     {opts: []m{base, searching, {"groupou": ""}}},
		"members of entries":             {opts: []m{base, searching, {"groupou": "people", "accountattributename": "uid", "groupattribute": "seeAlso", "groupclass": "inetOrgPerson"}}},
		"Active Directory":               {opts: []m{base, searching, ad}, rules: units},
		"Active Directory, direct":       {opts: []m{base, direct, ad}},
		"FreeIPA":                        {opts: []m{base, searching, ipa}},
		"FreeIPA, direct":                {opts: []m{base, direct, ipa}},
		"nobody there":                   {opts: []m{direct, {"uri": "ldap://127.0.0.1:1"}}},
		"domains": {opts: []m{base, searching, {"minion_stripdomains": []any{".example.org", ".example.com"}}}, rules: units,
			// Stock drops every computer, since it compares bytes with text.
			ours: append(units[:2:2], m{"db1": []any{"test.*"}}, m{"web1": []any{"test.*"}})},
		"rules without units": {opts: []m{base, searching}, rules: units[:2]},
	}
	logins := [][2]string{{"alice", "wonder land"}, {"alice", "wrong"}, {"alice", ""}, {"bob", "pässwörd"}, {"robert", "pässwörd"}, {"carol", ""}, {"carol", "x"},
		{"dave", "one"}, {"twin", "two"}, {"nobody", "x"}, {"", ""}, {"", "x"}, {"*", "wonder land"}, {"ali*", "wonder land"}, {"ALICE", "wonder land"},
		{"alice)(uid=*", "wonder land"}, {"alice,ou=people", "wonder land"}, {"äöü", "x"}}
	type question struct {
		Opts   m
		Logins [][2]string
		Rules  []any
	}
	var names []string
	var questions []question
	for name, c := range cases {
		q := question{Opts: m{}, Logins: logins, Rules: c.rules}
		for _, o := range c.opts {
			for k, v := range o {
				q.Opts[k] = v
			}
		}
		names, questions = append(names, name), append(questions, q)
	}
	type login struct {
		OK     bool
		Groups []string
	}
	var stock []struct {
		Logins []login
		Rules  []any
	}
	testsalt.Ask(t, questions, &stock, "testdata/stock_ldap.py", libraries)
	let, inGroups, expanded := 0, 0, 0
	for i, q := range questions {
		opts := m{}
		for k, v := range q.Opts {
			opts["auth.ldap."+k] = v
		}
		d, err := New(opts, slog.New(slog.DiscardHandler))
		if err != nil {
			t.Fatal(err)
		}
		for j, l := range logins {
			var got login
			got.OK, got.Groups, _ = d.Authenticate(t.Context(), nil, l[0], l[1])
			if diff := cmp.Diff(stock[i].Logins[j], got, cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("%s, %q with %q (-stock +ours):\n%s", names[i], l[0], l[1], diff)
			}
			if got.OK {
				let++
			}
			inGroups += len(got.Groups)
		}
		if q.Rules == nil {
			continue
		}
		rules, err := d.Expand(t.Context(), q.Rules)
		want := stock[i].Rules
		if ours := cases[names[i]].ours; ours != nil {
			want = ours
		}
		if diff := cmp.Diff(want, rules); diff != "" || err != nil {
			t.Errorf("%s: %v, rules (-stock +ours):\n%s", names[i], err, diff)
		}
		expanded += len(rules)
	}
	t.Logf("%d log-ins at %d configurations, %d let in, %d groups, %d rules", len(logins)*len(questions), len(questions), let, inGroups, expanded)
	if let == 0 || inGroups == 0 || expanded == 0 {
		t.Error("nothing was compared")
	}
}
