// Package vaultkv is a client for the HTTP interface of HashiCorp Vault and OpenBao. It uses the minion's own
// configuration. Salt's source: salt/utils/vault.
package vaultkv

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"net/http"
	"os"
	"strings"
	"time"

	"github.com/brine-salt/brine/internal/python/pyjson"
	"github.com/brine-salt/brine/internal/python/pytext"
	"github.com/brine-salt/brine/modules"
	"github.com/brine-salt/brine/modules/pyobj"
)

const (
	maxBody = 64 << 20         // bytes of a response
	longest = 60 * time.Second // for one request; Salt has no limit
)

// Error is an exception of Salt's client: the class without its module, and the text.
type Error struct{ Class, Msg string }

func (e *Error) Error() string { return e.Msg }

// Classes of exceptions that callers check for (salt/utils/vault/exceptions.py).
const (
	NotFound         = "VaultNotFoundError"
	PermissionDenied = "VaultPermissionDeniedError"
	unsupported      = "VaultUnsupportedOperationError"
	invalidConfig    = "InvalidConfigError"
)

// Is reports whether an error is an exception of a class.
func Is(err error, class string) bool {
	var e *Error
	return errors.As(err, &e) && e.Class == class
}

// Client is a signed-in client for one job.
type Client struct {
	http   *http.Client
	base   string // the address without a trailing slash
	config config
	token  string
	mounts *pyobj.Dict // cached responses about mounts, by path
}

// config holds the values of the option vault (parse_config).
type config struct {
	url               string
	namespace, verify any
	auth              map[string]any
}

// Config returns the address, namespace and verify in the form of vault.get_server_config.
func (c *Client) Config() any {
	return pyobj.NewDict("url", c.config.url, "namespace", c.config.namespace, "verify", c.config.verify)
}

func wrongConfig(text string) error {
	return &Error{invalidConfig, "Invalid vault configuration: " + text}
}

// parseConfig parses the option vault in the form of Salt 3007 or 3006.
func parseConfig(opts map[string]any) (config, error) {
	all, ok := opts["vault"].(map[string]any)
	if !ok && opts["vault"] != nil {
		return config{}, wrongConfig("vault must be a dictionary")
	}
	switch v := all["config_location"]; {
	case v == "local" || !pytext.Truth(v) && (opts["local"] == true || opts["file_client"] == "local" || opts["master_type"] == "disable"):
	case pytext.Truth(v) && v != "master":
		return config{}, wrongConfig("config_location must be either local or master")
	default:
		return config{}, wrongConfig("brine does not ask the master for it. Set vault:config_location to local, with server and auth in the minion's configuration")
	}
	auth, _ := all["auth"].(map[string]any)
	server, _ := all["server"].(map[string]any)
	pick := func(name string) any {
		if v, ok := all[name]; ok { // the form of Salt 3006
			return v
		}
		return server[name]
	}
	c := config{namespace: pick("namespace"), verify: pick("verify"), auth: auth}
	switch method := or(auth["method"], "token"); {
	case method == "approle":
		if _, ok := auth["role_id"]; !ok {
			return c, wrongConfig("auth:role_id is required for approle auth")
		}
	case method == "token":
		if _, ok := auth["token"]; !ok {
			return c, wrongConfig("auth:token is required for token auth")
		}
	default:
		return c, wrongConfig("`" + pytext.Str(method) + "` is not a valid auth method.")
	}
	if c.url, ok = pick("url").(string); !ok {
		return c, wrongConfig("server:url is required")
	}
	return c, nil
}

func or(v, other any) any {
	if v == nil {
		return other
	}
	return v
}

// contextKey is the key of the client in the job's context.
const contextKey = "vault"

// Open returns the job's client. The first call signs in, or checks the token from the configuration.
func Open(ctx context.Context, call *modules.Call) (*Client, error) {
	if v, ok := call.Context().Get(contextKey); ok {
		if c, ok := v.(*Client); ok && c != nil {
			return c, nil
		}
	}
	conf, err := parseConfig(call.Options())
	if err != nil {
		return nil, err
	}
	c := &Client{config: conf, base: conf.url, mounts: pyobj.NewDict()}
	if c.http, err = newHTTP(call, conf.verify); err != nil {
		return nil, err
	}
	if err := c.signIn(ctx); err != nil {
		return nil, err
	}
	call.Context().Set(contextKey, c)
	return c, nil
}

// Forget makes the next request of the job sign in again.
func Forget(call *modules.Call) { call.Context().Set(contextKey, (*Client)(nil)) }

// newHTTP creates an HTTP client that checks the server's certificate with the host's authorities. verify may instead
// be certificates of authorities in PEM, or the path of a file of them. If verify is False, certificates are not
// checked.
func newHTTP(call *modules.Call, verify any) (*http.Client, error) {
	conf := &tls.Config{MinVersion: tls.VersionTLS12}
	switch v := verify.(type) {
	case nil:
	case string:
		pem := []byte(v)
		if !strings.HasPrefix(v, "-----BEGIN CERTIFICATE") {
			var err error
			if pem, err = os.ReadFile(call.Path(v)); err != nil {
				return nil, wrongConfig("cannot read vault:server:verify: " + err.Error())
			}
		}
		conf.RootCAs = x509.NewCertPool()
		if !conf.RootCAs.AppendCertsFromPEM(pem) {
			return nil, wrongConfig("vault:server:verify holds no certificate")
		}
	default:
		conf.InsecureSkipVerify = !pytext.Truth(v)
	}
	// Go follows redirects, but sends the token only to the same host.
	return &http.Client{Timeout: longest, Transport: &http.Transport{
		Proxy: http.ProxyFromEnvironment, TLSClientConfig: conf, MaxResponseHeaderBytes: 1 << 20, DisableKeepAlives: true,
	}}, nil
}

// signIn gets a token with the approle, or checks the token from the configuration.
func (c *Client) signIn(ctx context.Context) error {
	if or(c.config.auth["method"], "token") == "approle" {
		body := pyobj.NewDict("role_id", c.config.auth["role_id"])
		switch secret := c.config.auth["secret_id"].(type) {
		case map[string]any:
			return wrongConfig("brine does not unwrap auth:secret_id; it must be text")
		case nil:
		default:
			_ = body.Set("secret_id", secret) // text is a valid key
		}
		answer, err := c.request(ctx, http.MethodPost, "auth/"+pytext.Str(or(c.config.auth["approle_mount"], "approle"))+"/login", body, "")
		if err != nil {
			return err
		}
		token, ok := field(answer, "auth", "client_token").(string)
		if !ok {
			return &Error{"VaultException", "cannot sign in to Vault: its answer has no token"}
		}
		c.token = token
		return nil
	}
	token, ok := c.config.auth["token"].(string)
	if !ok {
		return wrongConfig("auth:token must be text; brine does not unwrap it")
	}
	c.token = token
	_, err := c.request(ctx, http.MethodGet, "auth/token/lookup-self", nil, "")
	var e *Error
	if errors.As(err, &e) {
		return &Error{"VaultException", "Configured token cannot be verified. It is most likely expired or invalid."}
	}
	return err
}

// field follows the keys through the dictionaries of a response. It returns nil if one is missing.
func field(v any, names ...string) any {
	for _, name := range names {
		d, ok := v.(*pyobj.Dict)
		if !ok {
			return nil
		}
		v = d.Value(name)
	}
	return v
}

// Request sends a request to an endpoint, which has no leading /v1/. It returns true for an empty response. The error
// is an [*Error] if the server refuses the request, and a [*modules.PythonError] if it cannot be reached.
func (c *Client) Request(ctx context.Context, method, endpoint string, payload any) (any, error) {
	return c.request(ctx, method, endpoint, payload, "")
}

func (c *Client) request(ctx context.Context, method, endpoint string, payload any, kind string) (any, error) {
	var body io.Reader
	if payload != nil {
		text, err := pyjson.Format(payload, pyjson.Options{Indent: -1, ASCII: true, Comma: ", ", Colon: ": "})
		if err != nil {
			return nil, &modules.TypeError{Msg: err.Error()}
		}
		body = strings.NewReader(text)
	}
	req, err := http.NewRequestWithContext(ctx, method, c.base+"/v1/"+strings.Trim(endpoint, "/"), body)
	if err != nil {
		return nil, modules.Errorf("cannot ask Vault: %s", err)
	}
	if kind == "" {
		kind = "application/json"
	}
	req.Header.Set("Content-Type", kind)
	req.Header.Set("X-Vault-Request", "true")
	if c.config.namespace != nil {
		req.Header.Set("X-Vault-Namespace", pytext.Str(c.config.namespace))
	}
	if c.token != "" {
		req.Header.Set("X-Vault-Token", c.token)
	}
	resp, err := c.http.Do(req)
	var text []byte
	if err == nil {
		defer resp.Body.Close()
		text, err = io.ReadAll(io.LimitReader(resp.Body, maxBody+1))
	}
	switch {
	case err != nil:
		return nil, &modules.PythonError{Type: "requests.exceptions.ConnectionError", Msg: "cannot ask Vault: " + err.Error()}
	case len(text) > maxBody:
		return nil, modules.Errorf("the answer of Vault is larger than %d MB", maxBody>>20)
	case resp.StatusCode == http.StatusNoContent:
		return true, nil
	}
	answer, err := pyjson.ParseObject(bytes.TrimSpace(text))
	if err != nil {
		return nil, &modules.PythonError{Type: "requests.exceptions.JSONDecodeError", Msg: err.Error()}
	}
	if resp.StatusCode >= 400 {
		return nil, refusal(resp, answer)
	}
	return answer, nil
}

// refusal returns the exception for an unsuccessful response (_raise_status).
func refusal(resp *http.Response, answer any) error {
	var said []string
	if list, ok := field(answer, "errors").(*pyobj.List); ok {
		for _, v := range list.Items {
			said = append(said, pyobj.Str(v))
		}
	}
	text := strings.Join(said, ", ")
	switch resp.StatusCode {
	case 400:
		return &Error{"VaultInvocationError", text}
	case 403:
		return &Error{PermissionDenied, text}
	case 404:
		return &Error{NotFound, text}
	case 405:
		return &Error{unsupported, text}
	case 412:
		return &Error{"VaultPreconditionFailedError", text}
	case 500, 502:
		return &Error{"VaultServerError", text}
	case 503:
		return &Error{"VaultUnavailableError", text}
	}
	kind := "Client"
	if resp.StatusCode >= 500 {
		kind = "Server"
	}
	return &modules.PythonError{Type: "requests.exceptions.HTTPError",
		Msg: strings.TrimSpace(resp.Status[:3]+" "+kind+" Error: "+http.StatusText(resp.StatusCode)) + " for url: " + resp.Request.URL.String()}
}

// Do calls f with the job's client. If the server denies permission, Do signs in again and calls f once more: the
// policies may have changed.
func Do(ctx context.Context, call *modules.Call, f func(*Client) (any, error)) (any, error) {
	c, err := Open(ctx, call)
	if err != nil {
		return nil, err
	}
	v, err := f(c)
	if !Is(err, PermissionDenied) {
		return v, err
	}
	Forget(call)
	if c, err = Open(ctx, call); err != nil {
		return nil, err
	}
	return f(c)
}
