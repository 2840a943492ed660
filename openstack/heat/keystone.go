package heat

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"time"
)

// Login holds the credentials of a Keystone user that may act in a project: a stack user.
type Login struct {
	AuthURL, UserID, Username, UserDomain, Password, ProjectID, Region string
}

// tokenMargin is how long before its expiry a token is replaced.
const tokenMargin = time.Minute

// keystone caches the tokens of logins. The zero value is ready. It is safe for concurrent use.
type keystone struct {
	mu     sync.Mutex
	tokens map[Login]*token // guarded by mu
}

type token struct {
	id      string
	expires time.Time
	catalog []any
}

// tokenURL returns the URL that issues tokens. URLs of version 2.0, and without a version, are converted to version
// 3.
func tokenURL(authURL string) string {
	u := strings.TrimRight(authURL, "/")
	u = strings.TrimSuffix(u, "/auth/tokens")
	switch {
	case strings.HasSuffix(u, "/v2.0"):
		u = strings.TrimSuffix(u, "/v2.0") + "/v3"
	case !strings.HasSuffix(u, "/v3"):
		u += "/v3"
	}
	return u + "/auth/tokens"
}

// get returns a token for the login. It is cached while it is valid.
func (k *keystone) get(ctx context.Context, w *web, l Login) (*token, error) {
	k.mu.Lock()
	have := k.tokens[l]
	k.mu.Unlock()
	if have != nil && time.Now().Add(tokenMargin).Before(have.expires) {
		return have, nil
	}
	user := map[string]any{"id": l.UserID, "password": l.Password}
	if l.UserID == "" {
		user = map[string]any{"name": l.Username, "domain": map[string]any{"id": l.UserDomain}, "password": l.Password}
	}
	body := map[string]any{"auth": map[string]any{
		"identity": map[string]any{"methods": []any{"password"}, "password": map[string]any{"user": user}},
		"scope":    map[string]any{"project": map[string]any{"id": l.ProjectID}},
	}}
	res, answer, err := w.do(ctx, request{method: http.MethodPost, url: tokenURL(l.AuthURL), body: encode(body),
		header: map[string]string{"Content-Type": "application/json", "Accept": "application/json"}})
	if err != nil {
		return nil, fmt.Errorf("cannot get a token: %w", err)
	}
	m, err := parseMap(answer, "keystone's answer")
	if err != nil {
		return nil, err
	}
	t := &token{id: res.Header.Get("X-Subject-Token")}
	inner, _ := m["token"].(map[string]any)
	t.catalog, _ = inner["catalog"].([]any)
	until, _ := inner["expires_at"].(string)
	if t.expires, err = time.Parse(time.RFC3339, until); err != nil {
		t.expires = time.Now().Add(5 * time.Minute)
	}
	if t.id == "" {
		return nil, errors.New("cannot get a token: keystone's answer has none")
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.tokens == nil || len(k.tokens) >= maxTokens {
		k.tokens = map[Login]*token{}
	}
	k.tokens[l] = t
	return t, nil
}

// maxTokens limits the cached tokens. Each deployment with HEAT_SIGNAL has its own user.
const maxTokens = 16

func (k *keystone) forget(l Login) {
	k.mu.Lock()
	defer k.mu.Unlock()
	delete(k.tokens, l)
}

// endpoint returns a service's public URL in the login's region.
func (t *token) endpoint(service, region string) (string, error) {
	for _, v := range t.catalog {
		s, _ := v.(map[string]any)
		if s["type"] != service {
			continue
		}
		list, _ := s["endpoints"].([]any)
		for _, v := range list {
			e, _ := v.(map[string]any)
			where, _ := e["region_id"].(string)
			if where == "" {
				where, _ = e["region"].(string)
			}
			if u, ok := e["url"].(string); ok && e["interface"] == "public" && (region == "" || where == region) {
				return strings.TrimRight(u, "/"), nil
			}
		}
	}
	return "", fmt.Errorf("the catalog has no public endpoint of type %s in region %q", service, region)
}

// call sends a request to a service with a token of the login. path receives the service's URL. A token that the
// service refuses is replaced once.
func (k *keystone) call(ctx context.Context, w *web, l Login, service string, q request, path func(endpoint string) string) ([]byte, error) {
	for again := false; ; again = true {
		t, err := k.get(ctx, w, l)
		if err != nil {
			return nil, err
		}
		endpoint, err := t.endpoint(service, l.Region)
		if err != nil {
			return nil, err
		}
		q.url = path(endpoint)
		header := map[string]string{"X-Auth-Token": t.id, "Accept": "application/json"}
		for name, v := range q.header {
			header[name] = v
		}
		sent := q
		sent.header = header
		_, body, err := w.do(ctx, sent)
		var status *StatusError
		if errors.As(err, &status) && status.Code == http.StatusUnauthorized && !again {
			k.forget(l)
			continue
		}
		return body, err
	}
}
