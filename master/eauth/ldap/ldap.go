// Package ldap is Salt's system "ldap" of external_auth (salt/auth/ldap.py): an LDAP directory checks a user's
// password and returns the user's groups. It is a separate package because it needs a client library.
//
//	auth.ldap.uri: ldaps://ldap.example.com
//	auth.ldap.basedn: dc=example,dc=com
//	auth.ldap.binddn: cn=salt,dc=example,dc=com        # searches with these ...
//	auth.ldap.bindpw: secret
//	auth.ldap.filter: uid={{ username }}               # ... for the user, who is then bound with the password given
//
// Without bindpw the binddn names the user: uid={{ username }},ou=people,dc=example,dc=com.
package ldap

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net"
	"net/url"
	"os"
	"slices"
	"strings"
	"time"

	ldap "github.com/go-ldap/ldap/v3"

	"github.com/brine-salt/brine/internal/certpool"
	"github.com/brine-salt/brine/internal/python/pytext"
	"github.com/brine-salt/brine/states/render/jinja"
)

// prefix is the prefix of the options' names.
const prefix = "auth.ldap."

const (
	// timeout limits a connection and each request. In Salt, a directory that does not answer blocks a worker
	// for ever.
	timeout = 10 * time.Second
	// maxEntries limits the result of a search.
	maxEntries = 10_000
)

// defaults are Salt's (__defopts__). Other options have none.
var defaults = map[string]any{"basedn": "", "uri": "", "server": "localhost", "port": "389", "starttls": false, "tls": false,
	"no_verify": false, "anonymous": false, "scope": 2, "groupou": "Groups", "accountattributename": "memberUid",
	"groupattribute": "memberOf", "persontype": "person", "groupclass": "posixGroup", "activedirectory": false,
	"freeipa": false, "minion_stripdomains": []any{},
	"binddn": nil, "bindpw": nil, "filter": nil, "auth_by_group_membership_only": nil, "group_basedn": nil, "group_filter": nil}

// Directory is an LDAP directory, an [eauth.System]. It is safe for concurrent use.
type Directory struct {
	opts  map[string]any // by name without the prefix
	roots *x509.CertPool // nil means the host's
	log   *slog.Logger
}

// New returns a Directory for a master's options. It does not connect. An error names the invalid option.
func New(opts map[string]any, log *slog.Logger) (*Directory, error) {
	d := &Directory{opts: maps.Clone(defaults), log: log}
	for name, v := range opts {
		key, ok := strings.CutPrefix(name, prefix)
		if !ok {
			continue
		}
		if _, known := defaults[key]; !known {
			log.Warn("Config option '" + name + "' is unknown")
			continue
		}
		d.opts[key] = v
	}
	if d.truth("starttls") && d.truth("tls") {
		return nil, errors.New("cannot use both auth.ldap.starttls and auth.ldap.tls: enable one of them")
	}
	if _, err := d.scope(); err != nil {
		return nil, err
	}
	for _, name := range []string{"binddn", "filter", "group_filter"} {
		if _, err := jinja.NewEnv().Compile(prefix+name, "", d.text(name)); err != nil {
			return nil, fmt.Errorf("%s%s: %w", prefix, name, err)
		}
	}
	var err error
	d.roots, err = authorities()
	return d, err
}

func (d *Directory) text(name string) string {
	if v := d.opts[name]; v != nil && v != false {
		return pytext.Str(v)
	}
	return ""
}

func (d *Directory) truth(name string) bool { return pytext.Truth(d.opts[name]) }

// scope returns the depth of a search for a user: 0 is the base, 1 its direct children, 2 everything below it.
func (d *Directory) scope() (int, error) {
	i := slices.Index([]string{"0", "1", "2"}, d.text("scope"))
	if i < 0 {
		return 0, fmt.Errorf("%sscope must be 0 (base), 1 (one level) or 2 (subtree), not %q", prefix, d.text("scope"))
	}
	return i, nil
}

// fill renders an option that is a template of the user name. The caller escapes the name.
func (d *Directory) fill(ctx context.Context, option, username string) (string, error) {
	t, err := jinja.NewEnv().Compile(prefix+option, "", d.text(option))
	if err != nil {
		return "", fmt.Errorf("%s%s: %w", prefix, option, err)
	}
	return t.Render(ctx, map[string]any{"username": username})
}

// uris returns the servers in the order of attempts.
func (d *Directory) uris() []string {
	if list := strings.Fields(d.text("uri")); len(list) > 0 {
		return list
	}
	scheme := "ldap"
	if d.truth("tls") {
		scheme = "ldaps"
	}
	return []string{scheme + "://" + net.JoinHostPort(d.text("server"), d.text("port"))}
}

// connect connects to the first server that answers.
func (d *Directory) connect(ctx context.Context) (*ldap.Conn, error) {
	var errs []error
	for _, uri := range d.uris() {
		c, err := d.dial(ctx, uri)
		if err == nil {
			return c, nil
		}
		errs = append(errs, err)
	}
	return nil, errors.Join(errs...)
}

// dial connects to one server, with TLS if the options say so. The connection is closed when ctx ends.
func (d *Directory) dial(ctx context.Context, uri string) (*ldap.Conn, error) {
	to, err := url.Parse(uri)
	if err != nil {
		return nil, fmt.Errorf("%suri: %w", prefix, err)
	}
	config := &tls.Config{ServerName: to.Hostname(), RootCAs: d.roots, InsecureSkipVerify: d.truth("no_verify")}
	c, err := ldap.DialURL(uri, ldap.DialWithDialer(&net.Dialer{Timeout: timeout}), ldap.DialWithTLSConfig(config))
	if err != nil {
		return nil, fmt.Errorf("cannot connect to LDAP server %s: %w", uri, err)
	}
	c.SetTimeout(timeout)
	context.AfterFunc(ctx, func() { c.Close() })
	if d.truth("starttls") {
		if err := c.StartTLS(config); err != nil {
			c.Close()
			return nil, fmt.Errorf("cannot start TLS with LDAP server %s: %w", uri, err)
		}
	}
	return c, nil
}

// authorities returns the certificates that libldap would trust: TLS_CACERT of its configuration file, or
// LDAPTLS_CACERT.
func authorities() (*x509.CertPool, error) {
	file := os.Getenv("LDAPTLS_CACERT")
	for _, conf := range []string{"/etc/ldap/ldap.conf", "/etc/openldap/ldap.conf"} {
		if b, err := os.ReadFile(conf); err == nil && file == "" {
			for line := range strings.Lines(string(b)) {
				if w := strings.Fields(line); len(w) > 1 && strings.EqualFold(w[0], "TLS_CACERT") {
					file = w[1]
				}
			}
		}
	}
	if file == "" {
		return nil, nil
	}
	pool, err := certpool.Read(file)
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil // Debian's file names a file of ca-certificates, which may not be installed
	}
	if err != nil {
		return nil, fmt.Errorf("ldap: cannot read the certificates of TLS_CACERT: %w", err)
	}
	return pool, nil
}

// bind connects and logs in as a distinguished name.
func (d *Directory) bind(ctx context.Context, dn, password string) (*ldap.Conn, error) {
	c, err := d.connect(ctx)
	if err != nil {
		return nil, err
	}
	if err := c.Bind(dn, password); err != nil {
		c.Close()
		return nil, fmt.Errorf("cannot bind to LDAP server as %s: %w", dn, err)
	}
	return c, nil
}

// searcher connects and logs in as auth.ldap.binddn.
func (d *Directory) searcher(ctx context.Context) (*ldap.Conn, error) {
	return d.bind(ctx, d.text("binddn"), d.text("bindpw"))
}

// searches reports whether the options have a name and a password for searches.
func (d *Directory) searches() bool { return d.text("binddn") != "" && d.text("bindpw") != "" }

// Authenticate implements eauth.System. A refusal by the directory is a failed log-in; an error means that the
// directory could not be asked. If the search for groups fails, the user has no groups and the reason is
// logged.
func (d *Directory) Authenticate(ctx context.Context, _ map[string]any, username, password string) (bool, []string, error) {
	ctx, cancel := context.WithTimeout(ctx, 3*timeout)
	defer cancel()
	c, err := d.login(ctx, username, password)
	if c == nil || err != nil {
		return false, nil, err
	}
	if d.searches() {
		c.Close()
		if c, err = d.searcher(ctx); err != nil {
			return false, nil, err
		}
	}
	defer c.Close()
	groups, err := d.groups(ctx, c, username)
	if err != nil {
		d.log.Error("The groups of a user cannot be found in LDAP", "user", username, "err", err)
	}
	return true, groups, nil
}

// login connects and logs in as the user. It returns nil if the name or password is wrong (auth and _bind).
func (d *Directory) login(ctx context.Context, username, password string) (*ldap.Conn, error) {
	switch {
	case !d.truth("anonymous"):
	case d.searches():
		return nil, errors.New("auth.ldap.anonymous and auth.ldap.bindpw exclude each other: remove one")
	case d.truth("auth_by_group_membership_only"):
		return nil, errors.New("auth.ldap.anonymous and auth_by_group_membership_only together would accept every user without a password: disable one")
	}
	dn, err := d.nameOf(ctx, username)
	if dn == "" || err != nil {
		return nil, err
	}
	// Most servers treat a name without a password as an anonymous log-in, which succeeds.
	// guard: empty-ldap-password TestEmptyPasswordsLetNobodyIn
	if password == "" {
		return nil, nil
	}
	c, err := d.bind(ctx, dn, password)
	if refused := new(ldap.Error); errors.As(err, &refused) && slices.Contains([]uint16{ldap.LDAPResultInvalidCredentials,
		ldap.LDAPResultNoSuchObject, ldap.LDAPResultInvalidDNSyntax, ldap.LDAPResultUnwillingToPerform,
		ldap.LDAPResultInappropriateAuthentication, ldap.LDAPResultConstraintViolation}, refused.ResultCode) {
		d.log.Debug("LDAP refused a log-in", "dn", dn, "err", err)
		return nil, nil
	}
	return c, err
}

// nameOf returns the user's distinguished name, or "" unless exactly one entry matches.
func (d *Directory) nameOf(ctx context.Context, username string) (string, error) {
	if !d.searches() {
		if d.text("binddn") == "" {
			return "", errors.New("auth.ldap.binddn is not set")
		}
		// guard: ldap-name-in-dn TestNamesAreNotPartsOfADN instead: dn, err := d.fill(ctx, "binddn", username)
		dn, err := d.fill(ctx, "binddn", ldap.EscapeDN(username))
		return dn, err
	}
	filter, err := d.fill(ctx, "filter", ldap.EscapeFilter(username))
	if err != nil {
		return "", err
	}
	if filter == "" {
		return "", errors.New("auth.ldap.filter is not set")
	}
	c, err := d.searcher(ctx)
	if err != nil {
		return "", err
	}
	defer c.Close()
	scope, err := d.scope()
	if err != nil {
		return "", err
	}
	found, err := search(c, d.text("basedn"), scope, filter, nil)
	if err != nil {
		return "", err
	}
	switch len(found) {
	case 0:
		d.log.Warn("Unable to find user "+username, "filter", filter)
		return "", nil
	case 1:
		return found[0].DN, nil
	}
	d.log.Error("LDAP lookup found multiple results for user "+username, "filter", filter)
	return "", nil
}

// search returns the matching entries, or nil if base does not exist. It does not follow referrals.
func search(c *ldap.Conn, base string, scope int, filter string, attributes []string) ([]*ldap.Entry, error) {
	if filter = strings.TrimSpace(filter); !strings.HasPrefix(filter, "(") {
		filter = "(" + filter + ")" // like libldap
	}
	r, err := c.Search(ldap.NewSearchRequest(base, scope, ldap.NeverDerefAliases, maxEntries, int(timeout/time.Second), false,
		filter, attributes, nil))
	switch {
	case ldap.IsErrorWithCode(err, ldap.LDAPResultNoSuchObject):
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("cannot search LDAP below %q for %s: %w", base, filter, err)
	}
	return r.Entries, nil
}
