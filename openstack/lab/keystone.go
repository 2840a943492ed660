//go:build linux

package lab

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"time"
)

// keystone is a client of the identity service for one user. It also sends authenticated requests to other services.
type keystone struct {
	base     string // without /v3
	user     string
	domain   string // an id
	password string
	project  string // a name in the same domain

	mu        sync.Mutex
	token     string
	projectID string
}

// httpClient uses no proxy, because everything is on loopback.
var httpClient = &http.Client{Timeout: 120 * time.Second, Transport: &http.Transport{MaxIdleConnsPerHost: 8, IdleConnTimeout: 5 * time.Second}}

// An HTTPError is a service's response with a status of 400 or more.
type HTTPError struct {
	Method, URL string
	Status      int
	Body        string
}

func (e *HTTPError) Error() string {
	return fmt.Sprintf("%s %s: status %d: %s", e.Method, e.URL, e.Status, tail([]byte(e.Body), 2000))
}

// signIn returns a token and the project's id. If renew is false, it may return the stored ones.
func (k *keystone) signIn(ctx context.Context, renew bool) (token, project string, err error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.token != "" && !renew {
		return k.token, k.projectID, nil
	}
	type m = map[string]any
	body, err := json.Marshal(m{"auth": m{
		"identity": m{"methods": []string{"password"},
			"password": m{"user": m{"name": k.user, "domain": m{"id": k.domain}, "password": k.password}}},
		"scope": m{"project": m{"name": k.project, "domain": m{"id": k.domain}}},
	}})
	if err != nil {
		return "", "", err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, k.base+"/v3/auth/tokens", bytes.NewReader(body))
	if err != nil {
		return "", "", err
	}
	req.Header.Set("Content-Type", "application/json")
	res, err := httpClient.Do(req)
	if err != nil {
		return "", "", err
	}
	var t struct {
		Token struct {
			Project struct{ ID string }
		}
	}
	if err := decode(res, &t); err != nil {
		return "", "", fmt.Errorf("cannot sign in as %s: %w", k.user, err)
	}
	k.token, k.projectID = res.Header.Get("X-Subject-Token"), t.Token.Project.ID
	return k.token, k.projectID, nil
}

// raw sends a request with the user's token to a path of keystone or to a complete URL. The caller closes the
// response's body.
func (k *keystone) raw(ctx context.Context, method, path string, body []byte) (*http.Response, error) {
	url := path
	if !strings.HasPrefix(path, "http://") {
		url = k.base + path
	}
	for again := false; ; again = true {
		token, _, err := k.signIn(ctx, again)
		if err != nil {
			return nil, err
		}
		// Use a bytes.Reader, so that the request has a length: keystone's server does not support chunks.
		req, err := http.NewRequestWithContext(ctx, method, url, bytes.NewReader(body))
		if err != nil {
			return nil, err
		}
		req.Header.Set("X-Auth-Token", token)
		req.Header.Set("Content-Type", "application/json")
		req.Header.Set("Accept", "application/json")
		res, err := httpClient.Do(req)
		if err != nil || res.StatusCode != http.StatusUnauthorized || again {
			return res, err
		}
		res.Body.Close()
	}
}

// call sends in as JSON and decodes the answer into out; both may be nil.
func (k *keystone) call(ctx context.Context, method, path string, in, out any) error {
	var body []byte
	if in != nil {
		var err error
		if body, err = json.Marshal(in); err != nil {
			return err
		}
	}
	res, err := k.raw(ctx, method, path, body)
	if err != nil {
		return err
	}
	return decode(res, out)
}

// decode reads and closes a response. A status of 400 or more is an HTTPError.
func decode(res *http.Response, out any) error {
	defer res.Body.Close()
	b, err := io.ReadAll(io.LimitReader(res.Body, 64<<20))
	if err != nil {
		return err
	}
	if res.StatusCode >= http.StatusBadRequest {
		return &HTTPError{Method: res.Request.Method, URL: res.Request.URL.String(), Status: res.StatusCode, Body: string(b)}
	}
	if out == nil || len(b) == 0 {
		return nil
	}
	if err := json.Unmarshal(b, out); err != nil {
		return fmt.Errorf("cannot read the answer of %s: %w", res.Request.URL, err)
	}
	return nil
}

// populate creates the projects, users, roles and the domain that heat, swift and zaqar need. Keystone must be
// bootstrapped.
func (k *keystone) populate(ctx context.Context) error {
	type m = map[string]any
	ids := map[string]string{}
	create := func(kind, name string, more m) error {
		body := m{"name": name}
		for key, v := range more {
			body[key] = v
		}
		out := map[string]struct{ ID string }{}
		if err := k.call(ctx, http.MethodPost, "/v3/"+kind+"s", m{kind: body}, &out); err != nil {
			return err
		}
		ids[kind+" "+name] = out[kind].ID
		return nil
	}
	lookup := func(kind, name string) error {
		out := map[string]json.RawMessage{}
		if err := k.call(ctx, http.MethodGet, "/v3/"+kind+"s?name="+name, nil, &out); err != nil {
			return err
		}
		var found []struct{ ID string }
		if err := json.Unmarshal(out[kind+"s"], &found); err != nil || len(found) != 1 {
			return fmt.Errorf("keystone has %d %ss %q: %v", len(found), kind, name, err)
		}
		ids[kind+" "+name] = found[0].ID
		return nil
	}
	grant := func(on, user, role string) error {
		kind, _, _ := strings.Cut(on, " ")
		return k.call(ctx, http.MethodPut,
			fmt.Sprintf("/v3/%ss/%s/users/%s/roles/%s", kind, ids[on], ids["user "+user], ids["role "+role]), nil, nil)
	}
	var err error
	step := func(e error) {
		if err == nil {
			err = e
		}
	}
	for _, r := range []string{"admin", "member"} {
		step(lookup("role", r))
	}
	step(lookup("user", "admin"))
	step(lookup("project", "admin"))
	for _, p := range []string{"service", "demo"} {
		step(create("project", p, m{"domain_id": "default"}))
	}
	for _, r := range []string{"heat_stack_owner", "heat_stack_user"} {
		step(create("role", r, nil))
	}
	for _, u := range []string{"heat", "swift", "zaqar", "nova"} {
		step(create("user", u, m{"domain_id": "default", "password": servicePasswords[u]}))
		if err == nil {
			step(grant("project service", u, "admin"))
		}
	}
	step(create("user", "demo", m{"domain_id": "default", "password": demoPassword}))
	step(create("domain", "heat", nil))
	step(create("user", "heat_domain_admin", m{"domain_id": ids["domain heat"], "password": domainPassword}))
	if err != nil {
		return fmt.Errorf("cannot populate keystone: %w", err)
	}
	step(grant("domain heat", "heat_domain_admin", "admin"))
	step(grant("project admin", "admin", "heat_stack_owner"))
	step(grant("project demo", "demo", "member"))
	step(grant("project demo", "demo", "heat_stack_owner"))
	step(grant("project demo", "admin", "admin"))
	step(grant("project demo", "admin", "heat_stack_owner"))
	if err != nil {
		return fmt.Errorf("cannot grant roles: %w", err)
	}
	return nil
}
