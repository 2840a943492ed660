package etcdmod

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/brine-salt/brine/internal/certpool"
	"github.com/brine-salt/brine/internal/python/pyjson"
	"github.com/brine-salt/brine/internal/python/pytext"
	"github.com/brine-salt/brine/modules"
)

// maxBody bounds what is read of an answer.
const maxBody = 64 << 20

// Classes of python-etcd's exceptions.
const (
	keyNotFound      = "etcd.EtcdKeyNotFound"
	notFile          = "etcd.EtcdNotFile"
	notDir           = "etcd.EtcdNotDir"
	rootReadOnly     = "etcd.EtcdRootReadOnly"
	connectionFailed = "etcd.EtcdConnectionFailed"
	valueError       = "etcd.EtcdValueError" // and those that are one
	otherError       = "etcd.EtcdException"
)

// exception names the class for a number of the server.
func exception(code any) string {
	n, _ := code.(int64)
	switch {
	case n == 100:
		return keyNotFound
	case n == 101 || n == 108 || n >= 200 && n <= 210:
		return valueError
	case n == 102:
		return notFile
	case n == 104:
		return notDir
	case n == 105:
		return "etcd.EtcdAlreadyExist"
	case n == 107:
		return rootReadOnly
	case n == 110:
		return "etcd.EtcdInsufficientPermissions"
	case n == 301:
		return "etcd.EtcdLeaderElectionInProgress"
	case n == 400:
		return "etcd.EtcdWatcherCleared"
	case n == 401:
		return "etcd.EtcdEventIndexCleared"
	}
	return otherError
}

func fault(class, text string) error { return &modules.PythonError{Type: class, Msg: text} }

func failedWith(err error, classes ...string) bool {
	var p *modules.PythonError
	return errors.As(err, &p) && slices.Contains(classes, p.Type)
}

// client speaks to a server.
type client struct {
	http           *http.Client
	base           url.URL
	user, password string
}

// settings returns the configuration of etcd: the profile's, or otherwise that of minion, pillar and the master
// options in the pillar.
func settings(c *modules.Call) (func(name string) any, error) {
	pillar := c.PillarData()
	master, _ := pillar["master"].(map[string]any)
	all := func(name string) any {
		for _, m := range [...]map[string]any{c.Config(), pillar, master} {
			if v, ok := m[name]; ok {
				return v
			}
		}
		return nil
	}
	if !c.Bool("profile") {
		return all, nil
	}
	v := all(c.Str("profile"))
	m, ok := v.(map[string]any)
	if !ok && v != nil {
		return nil, modules.NoAttribute(v, "get")
	}
	return func(name string) any { return m[name] }, nil
}

// keys is the store of a server, in either version of its interface. Keys are values of the caller, of any type.
type keys interface {
	get(ctx context.Context, key any, recurse bool) (any, error)
	set(ctx context.Context, key, value, ttl any, directory bool) (any, error)
	update(ctx context.Context, fields map[string]any) (any, error)
	watch(ctx context.Context, key any, recurse bool, timeout, index any) (any, error)
	ls(ctx context.Context, path any) (any, error)
	rm(ctx context.Context, key any, recurse bool) (any, error)
	tree(ctx context.Context, path any) (any, error)
}

// connect makes the client that arguments and configuration name; the option etcd.require_v2 decides which version of the
// interface it speaks.
func connect(ctx context.Context, c *modules.Call) (keys, error) {
	conf, err := settings(c)
	if err != nil {
		return nil, err
	}
	pick := func(name string, other any) any {
		if v := c.Keywords[name]; pytext.Truth(v) {
			return v
		}
		if v := conf("etcd." + name); v != nil {
			return v
		}
		return other
	}
	port := pick("port", int64(2379))
	switch port.(type) {
	case int64, float64, bool:
	default:
		return nil, &modules.TypeError{Msg: "%d format: a real number is required, not " + modules.TypeName(port)}
	}
	n, err := modules.ToInt(port)
	if err != nil {
		return nil, err
	}
	e := &client{base: url.URL{Scheme: "http", Host: pytext.Str(pick("host", "127.0.0.1")) + ":" + pytext.Str(n)}}
	if user, password := pick("username", nil), pick("password", nil); pytext.Truth(user) && pytext.Truth(password) {
		e.user, e.password = pytext.Str(user), pytext.Str(password)
	}
	transport := &http.Transport{MaxResponseHeaderBytes: 1 << 20, DisableKeepAlives: true}
	ca, cert, key := pick("ca", nil), pick("client_cert", nil), pick("client_key", nil)
	if pytext.Truth(ca) && pytext.Truth(cert) == pytext.Truth(key) {
		e.base.Scheme = "https"
		if transport.TLSClientConfig, err = secured(c, ca, cert, key); err != nil {
			return nil, err
		}
	}
	e.http = &http.Client{Transport: transport}
	if v := conf("etcd.require_v2"); v == nil || pytext.Truth(v) {
		return e, nil
	}
	return newStore(ctx, c, e, pick)
}

// secured returns the TLS configuration for a server with a certificate signed by ca. cert and key are the client's
// certificate, if it has one.
func secured(c *modules.Call, ca, cert, key any) (*tls.Config, error) {
	pool, err := certpool.Read(c.Path(pytext.Str(ca)))
	if err != nil {
		return nil, modules.FileError(err)
	}
	config := &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: pool}
	if pytext.Truth(cert) {
		pair, err := tls.LoadX509KeyPair(c.Path(pytext.Str(cert)), c.Path(pytext.Str(key)))
		if err != nil {
			return nil, modules.Errorf("cannot use the client's certificate: %s", err)
		}
		config.Certificates = []tls.Certificate{pair}
	}
	return config, nil
}

// waiting describes how to wait for a change.
type waiting struct{ timeout, index any }

// read reads a key, or waits until it changes.
func (e *client) read(ctx context.Context, key any, recurse bool, wait *waiting) (node, error) {
	q, timeout := url.Values{"recursive": {flag(recurse)}, "wait": {flag(wait != nil)}}, any(nil)
	if wait != nil {
		timeout = wait.timeout
		if pytext.Truth(wait.index) {
			q.Set("waitIndex", pytext.Str(wait.index))
		}
	}
	return e.do(ctx, http.MethodGet, key, q, timeout)
}

// write sets a key, or makes a directory.
func (e *client) write(ctx context.Context, key, value, ttl any, directory bool) (node, error) {
	q := url.Values{}
	if value != nil {
		q.Set("value", pytext.Str(value))
	}
	if ttl != nil {
		q.Set("ttl", pytext.Str(ttl))
	}
	if directory {
		q.Set("dir", "true")
	}
	return e.do(ctx, http.MethodPut, key, q, nil)
}

func (e *client) remove(ctx context.Context, key any, recurse bool) error {
	_, err := e.do(ctx, http.MethodDelete, key, url.Values{"recursive": {flag(recurse)}}, nil)
	return err
}

func flag(b bool) string {
	if b {
		return "true"
	}
	return "false"
}

// limit gives the context the time that a request may take: a minute if the caller says nothing, all time for 0.
func limit(ctx context.Context, timeout any) (context.Context, context.CancelFunc, error) {
	seconds := 60.0
	switch v := timeout.(type) {
	case nil:
	case int64:
		seconds = float64(v)
	case float64:
		seconds = v
	default:
		seconds = -1
	}
	if seconds == 0 {
		ctx, cancel := context.WithCancel(ctx)
		return ctx, cancel, nil
	}
	if !(seconds > 0) {
		return nil, nil, fault(valueError, "Attempted to set a timeout to "+pytext.Str(timeout))
	}
	ctx, cancel := context.WithTimeout(ctx, time.Duration(min(seconds, 1e9)*float64(time.Second)))
	return ctx, cancel, nil
}

// do sends a request about a key and parses the server's answer.
func (e *client) do(ctx context.Context, method string, key any, params url.Values, timeout any) (node, error) {
	path, ok := key.(string)
	if !ok {
		return node{}, modules.NoAttribute(key, "startswith")
	}
	if !strings.HasPrefix(path, "/") {
		path = "/" + path
	}
	within, cancel, err := limit(ctx, timeout)
	if err != nil {
		return node{}, err
	}
	defer cancel()
	to, body := e.base, io.Reader(nil)
	to.Path = "/v2/keys" + path
	if method == http.MethodPut {
		body = strings.NewReader(params.Encode())
	} else {
		to.RawQuery = params.Encode()
	}
	req, err := http.NewRequestWithContext(within, method, to.String(), body)
	if err != nil {
		return node{}, fault(connectionFailed, "Connection to etcd failed due to "+err.Error())
	}
	if body != nil {
		req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	}
	if e.user != "" {
		req.SetBasicAuth(e.user, e.password)
	}
	resp, err := e.http.Do(req)
	var text []byte
	if err == nil {
		defer resp.Body.Close()
		text, err = io.ReadAll(io.LimitReader(resp.Body, maxBody+1))
	}
	switch {
	case ctx.Err() != nil:
		return node{}, ctx.Err()
	case err != nil:
		return node{}, fault(connectionFailed, "Connection to etcd failed due to "+err.Error())
	case len(text) > maxBody:
		return node{}, modules.Errorf("the answer of the server is larger than %d bytes", maxBody)
	}
	return answer(resp.StatusCode, text)
}

// answer reads an answer.
func answer(status int, text []byte) (node, error) {
	v, err := pyjson.Parse(text)
	m, _ := v.(map[string]any)
	if status != http.StatusOK && status != http.StatusCreated {
		message, cause, code := any("Bad response"), any(string(text)), any(nil)
		if m != nil {
			message, cause, code = m["message"], m["cause"], m["errorCode"]
			switch status {
			case http.StatusNotFound:
				code = int64(100)
			case http.StatusUnauthorized:
				code = int64(110)
			}
		}
		return node{}, fault(exception(code), pytext.Str(message)+" : "+pytext.Str(cause))
	}
	if err != nil {
		return node{}, fault(otherError, "Server response was not valid JSON: JSONDecodeError('Expecting value: line 1 column 1 (char 0)')")
	}
	raw, ok := m["node"].(map[string]any)
	if !ok {
		return node{}, fault(otherError, `Unable to decode server response: TypeError("argument of type 'NoneType' is not iterable")`)
	}
	n := read(raw)
	if before, ok := m["prevNode"].(map[string]any); ok && before["dir"] == true {
		n.dir = true // what the server says about a directory that is gone
	}
	return n, nil
}

// node is a key or a directory.
type node struct {
	key, value, index, dir any
	nodes                  []any
}

func read(m map[string]any) node {
	n := node{key: m["key"], value: m["value"], index: m["modifiedIndex"], dir: false}
	if d, ok := m["dir"]; ok {
		n.dir = d
	}
	if pytext.Truth(n.dir) {
		n.nodes, _ = m["nodes"].([]any)
	}
	return n
}

// leaves returns the nodes at or below n that have no children.
func (n node) leaves() []node {
	if len(n.nodes) == 0 {
		return []node{n}
	}
	var out []node
	for _, x := range n.nodes {
		if m, ok := x.(map[string]any); ok {
			out = append(out, read(m).leaves()...)
		}
	}
	return out
}
