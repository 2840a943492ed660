// Package keystone asks a Keystone server (Identity API v3) to which identity a token belongs.
package keystone

import (
	"bufio"
	"bytes"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/brine-salt/brine/internal/certpool"
)

// ErrDenied means that Keystone does not accept a token, or that its user is not allowed.
var ErrDenied = errors.New("the token is denied")

// Limits of tokens and of Keystone's responses.
const (
	maxToken  = 16 << 10
	maxAnswer = 1 << 20
)

// Config describes how to reach Keystone, and which tokens are accepted.
type Config struct {
	// URL is Keystone's URL, with or without /v3.
	URL string
	// User, Password and Project are the credentials for the queries, with the names of their domains; an empty domain
	// means Default.
	User, Password, Project   string
	UserDomain, ProjectDomain string
	// CACert is a file of certificates that verify Keystone's; empty means the system's.
	CACert string
	// Roles are role names; a valid token has at least one of them. Users are user names; if not empty, a valid token
	// belongs to one of them.
	Roles, Users []string
}

// Identity is the owner of a token.
type Identity struct {
	UserID    string    `json:"user_id"`
	User      string    `json:"user"`
	ProjectID string    `json:"project_id,omitempty"`
	Project   string    `json:"project,omitempty"`
	Roles     []string  `json:"roles"`
	Expires   time.Time `json:"expires"`
}

// ReadConfig reads the variables of OpenStack's command line (OS_AUTH_URL, OS_USERNAME, OS_PASSWORD, OS_PROJECT_NAME,
// OS_USER_DOMAIN_NAME, OS_PROJECT_DOMAIN_NAME, OS_CACERT), and ALLOW_ROLES and ALLOW_USERS, which are separated by
// commas. They come from lines NAME=value of a file, or from the environment if path is empty. Other users must not
// be able to read the file.
func ReadConfig(path string) (Config, error) {
	get := os.Getenv
	if path != "" {
		values, err := readFile(path)
		if err != nil {
			return Config{}, err
		}
		get = func(name string) string { return values[name] }
	}
	c := Config{URL: get("OS_AUTH_URL"), User: get("OS_USERNAME"), Password: get("OS_PASSWORD"), Project: get("OS_PROJECT_NAME"),
		UserDomain: get("OS_USER_DOMAIN_NAME"), ProjectDomain: get("OS_PROJECT_DOMAIN_NAME"), CACert: get("OS_CACERT"),
		Roles: words(get("ALLOW_ROLES")), Users: words(get("ALLOW_USERS"))}
	if len(c.Roles) == 0 {
		c.Roles = []string{"service", "admin"}
	}
	for name, value := range map[string]string{"OS_AUTH_URL": c.URL, "OS_USERNAME": c.User, "OS_PASSWORD": c.Password, "OS_PROJECT_NAME": c.Project} {
		if value == "" {
			return c, fmt.Errorf("%s is not set", name)
		}
	}
	return c, nil
}

func words(list string) []string {
	return strings.FieldsFunc(list, func(r rune) bool { return r == ',' || r == ' ' })
}

func readFile(path string) (map[string]string, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	if info.Mode().Perm()&0o007 != 0 {
		return nil, fmt.Errorf("%s has the mode %04o: others can read the password", path, info.Mode().Perm())
	}
	values := map[string]string{}
	s := bufio.NewScanner(io.LimitReader(f, maxAnswer))
	for n := 1; s.Scan(); n++ {
		line := strings.TrimPrefix(strings.TrimSpace(s.Text()), "export ")
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		name, value, ok := strings.Cut(line, "=")
		if !ok {
			return nil, fmt.Errorf("%s, line %d: want NAME=value", path, n)
		}
		if len(value) > 1 && (value[0] == '"' || value[0] == '\'') && value[len(value)-1] == value[0] {
			value = value[1 : len(value)-1]
		}
		values[strings.TrimSpace(name)] = value
	}
	return values, s.Err()
}

// Check returns the identity of a token. It returns ErrDenied if Keystone does not accept the token, or its roles or
// user are not in the configuration. Any other error means that the result is unknown.
func Check(ctx context.Context, c Config, token string) (Identity, error) {
	if token == "" || len(token) > maxToken || strings.ContainsFunc(token, func(r rune) bool { return r <= ' ' || r > '~' }) {
		return Identity{}, fmt.Errorf("%w: it has a form that no token has", ErrDenied)
	}
	client, err := c.client()
	if err != nil {
		return Identity{}, err
	}
	defer client.CloseIdleConnections()
	own, err := c.signIn(ctx, client)
	if err != nil {
		return Identity{}, err
	}
	r, body, err := c.call(ctx, client, http.MethodGet, "/auth/tokens?nocatalog", nil, map[string]string{"X-Auth-Token": own, "X-Subject-Token": token})
	if err != nil {
		return Identity{}, err
	}
	if r.StatusCode == http.StatusNotFound {
		return Identity{}, fmt.Errorf("%w: Keystone does not know it", ErrDenied)
	}
	if r.StatusCode != http.StatusOK {
		return Identity{}, fmt.Errorf("keystone answers %s when %s asks about a token", r.Status, c.User)
	}
	id, err := identity(body)
	if err != nil {
		return id, err
	}
	if !slices.ContainsFunc(id.Roles, func(role string) bool { return slices.Contains(c.Roles, role) }) {
		return id, fmt.Errorf("%w: %s has none of the roles %s", ErrDenied, id.User, strings.Join(c.Roles, ", "))
	}
	if len(c.Users) > 0 && !slices.Contains(c.Users, id.User) {
		return id, fmt.Errorf("%w: the user is %s", ErrDenied, id.User)
	}
	return id, nil
}

func identity(body []byte) (Identity, error) {
	type named struct{ ID, Name string }
	var v struct {
		Token struct {
			User    named
			Project named
			Roles   []named
			Expires time.Time `json:"expires_at"`
		}
	}
	if err := json.Unmarshal(body, &v); err != nil || v.Token.User.ID == "" {
		return Identity{}, fmt.Errorf("cannot read keystone's answer: %w", errors.Join(err, io.ErrUnexpectedEOF))
	}
	id := Identity{UserID: v.Token.User.ID, User: v.Token.User.Name, ProjectID: v.Token.Project.ID, Project: v.Token.Project.Name, Expires: v.Token.Expires, Roles: []string{}}
	for _, role := range v.Token.Roles {
		id.Roles = append(id.Roles, role.Name)
	}
	return id, nil
}

func (c Config) client() (*http.Client, error) {
	t := &http.Transport{Proxy: http.ProxyFromEnvironment}
	if c.CACert != "" {
		pool, err := certpool.Read(c.CACert)
		if err != nil {
			return nil, err
		}
		t.TLSClientConfig = &tls.Config{RootCAs: pool}
	}
	refuse := func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	return &http.Client{Transport: t, CheckRedirect: refuse}, nil
}

// signIn returns a token for the queries.
func (c Config) signIn(ctx context.Context, client *http.Client) (string, error) {
	type m = map[string]any
	domain := func(name string) m {
		if name == "" {
			name = "Default"
		}
		return m{"name": name}
	}
	r, _, err := c.call(ctx, client, http.MethodPost, "/auth/tokens", m{"auth": m{
		"identity": m{"methods": []string{"password"}, "password": m{"user": m{"name": c.User, "domain": domain(c.UserDomain), "password": c.Password}}},
		"scope":    m{"project": m{"name": c.Project, "domain": domain(c.ProjectDomain)}}}}, nil)
	if err != nil {
		return "", err
	}
	if r.StatusCode != http.StatusCreated {
		return "", fmt.Errorf("keystone answers %s to the log-in of %s", r.Status, c.User)
	}
	return r.Header.Get("X-Subject-Token"), nil
}

func (c Config) call(ctx context.Context, client *http.Client, method, path string, in any, headers map[string]string) (*http.Response, []byte, error) {
	var body []byte
	if in != nil {
		var err error
		if body, err = json.Marshal(in); err != nil {
			return nil, nil, err
		}
	}
	base := strings.TrimSuffix(strings.TrimSuffix(c.URL, "/"), "/v3")
	q, err := http.NewRequestWithContext(ctx, method, base+"/v3"+path, bytes.NewReader(body))
	if err != nil {
		return nil, nil, err
	}
	q.Header.Set("Content-Type", "application/json")
	for name, value := range headers {
		q.Header.Set(name, value)
	}
	r, err := client.Do(q)
	if err != nil {
		return nil, nil, err
	}
	defer r.Body.Close()
	answer, err := io.ReadAll(io.LimitReader(r.Body, maxAnswer))
	return r, answer, err
}
