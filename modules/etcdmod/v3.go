package etcdmod

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/brine-salt/brine/internal/python/pyjson"
	"github.com/brine-salt/brine/internal/python/pytext"
	"github.com/brine-salt/brine/internal/serializers"
	"github.com/brine-salt/brine/modules"
	"github.com/brine-salt/brine/modules/pyobj"
)

// store uses version 3 of the interface through the server's JSON gateway. There are no directories: a key is a text,
// and / has a meaning only for ls and tree.
type store struct {
	*client
	call *modules.Call
	// token is the token of a user who has logged in.
	token string
	// prefix begins every path: /v3, or /v3beta of a server of the line 3.3.
	prefix string
	// packKeys and packValues say what is packed as msgpack, rawValues that texts are given as bytes.
	packKeys, packValues, rawValues bool
}

// newStore makes the client for version 3. A user logs in at once, as with etcd3-py.
func newStore(ctx context.Context, c *modules.Call, e *client, pick func(name string, other any) any) (*store, error) {
	truth := func(name string, other bool) bool { return pytext.Truth(pick(name, other)) }
	s := &store{client: e, call: c, prefix: "/v3", packKeys: truth("encode_keys", false), packValues: truth("encode_values", true),
		rawValues: truth("raw_values", false)}
	if e.user == "" {
		return s, nil
	}
	m, err := s.ask(ctx, "/auth/authenticate", map[string]any{"name": e.user, "password": e.password})
	if err != nil {
		return nil, err
	}
	s.token, _ = m["token"].(string)
	return s, nil
}

// ask sends a request and reads the one answer.
func (s *store) ask(ctx context.Context, path string, body map[string]any) (map[string]any, error) {
	within, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	resp, err := s.post(within, path, body)
	if err != nil {
		return nil, cmp.Or(ctx.Err(), err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(io.LimitReader(resp.Body, maxBody+1))
	switch {
	case ctx.Err() != nil:
		return nil, ctx.Err()
	case err != nil:
		return nil, s.unreachable(err)
	case len(text) > maxBody:
		return nil, modules.Errorf("the answer of the server is larger than %d bytes", maxBody)
	}
	return said(resp.StatusCode, text)
}

// unreachable returns the error for a server that does not answer.
func (s *store) unreachable(err error) error {
	return modules.Errorf("cannot reach etcd at %s: %s", s.base.String(), err)
}

// post sends a request; the caller closes the body of the answer.
func (s *store) post(ctx context.Context, path string, body map[string]any) (*http.Response, error) {
	text, err := pyjson.Format(body, pyjson.Options{Indent: -1, ASCII: true})
	if err != nil {
		return nil, err
	}
	for {
		to := s.base
		to.Path = s.prefix + path
		req, err := http.NewRequestWithContext(ctx, http.MethodPost, to.String(), strings.NewReader(text))
		if err != nil {
			return nil, s.unreachable(err)
		}
		req.Header.Set("Content-Type", "application/json")
		if s.token != "" {
			req.Header.Set("Authorization", s.token)
		}
		resp, err := s.http.Do(req)
		if err != nil {
			return nil, s.unreachable(err)
		}
		if resp.StatusCode != http.StatusNotFound || s.prefix != "/v3" {
			return resp, nil
		}
		_ = resp.Body.Close()
		s.prefix = "/v3beta"
	}
}

// classOf is etcd3-py's exception for what a server says about keys, leases and log-ins.
func classOf(text string) string {
	switch strings.TrimPrefix(text, "etcdserver: ") {
	case "key is not provided":
		return "ErrEmptyKey"
	case "authentication is not enabled":
		return "ErrAuthNotEnabled"
	case "authentication failed, invalid user ID or password":
		return "ErrAuthFailed"
	case "invalid auth token":
		return "ErrInvalidAuthToken"
	case "permission denied":
		return "ErrPermissionDenied"
	case "user name is empty":
		return "ErrUserEmpty"
	case "too large lease TTL":
		return "ErrLeaseTTLTooLarge"
	case "requested lease not found":
		return "ErrLeaseNotFound"
	case "mvcc: database space exceeded":
		return "ErrNoSpace"
	case "request is too large":
		return "ErrRequestTooLarge"
	case "too many requests":
		return "ErrTooManyRequests"
	case "no leader":
		return "ErrNoLeader"
	case "request timed out":
		return "ErrTimeout"
	}
	return "ErrUnknownError"
}

// said reads an answer, or the error that it is.
func said(status int, text []byte) (map[string]any, error) {
	v, err := pyjson.Parse(text)
	m, ok := v.(map[string]any)
	if status == http.StatusOK && err == nil && ok {
		return m, nil
	}
	if m == nil {
		return nil, modules.Errorf("cannot read the answer of etcd, status %d: %.200q", status, text)
	}
	return nil, refusal(m)
}

// refusal returns the exception for an error message of the server.
func refusal(m map[string]any) error {
	text := pytext.Str(m["error"])
	if text == "None" {
		text = pytext.Str(m["message"])
	}
	class := classOf(text)
	return fault("etcd3.errors.go_etcd_rpctypes_error."+class, fmt.Sprintf("<%s error:'%s', code:%s>", class, text, pytext.Str(m["code"])))
}

// refused reports whether the server itself has said no, which functions that read take for nothing found.
func refused(err error) bool {
	var p *modules.PythonError
	return errors.As(err, &p) && strings.HasPrefix(p.Type, "etcd3.")
}

// keyBytes encodes a key as the server stores it.
func (s *store) keyBytes(key any) ([]byte, error) {
	if s.packKeys {
		return pack(key)
	}
	switch k := key.(type) {
	case nil:
		return nil, nil
	case []byte:
		return k, nil
	}
	return []byte(pytext.Str(key)), nil
}

// pack encodes a value in msgpack.
func pack(v any) ([]byte, error) {
	out, err := serializers.Serialize("msgpack", pyobj.From(v), pyobj.NewDict())
	if err != nil {
		class := "TypeError"
		if strings.HasPrefix(err.Error(), "Integer value") {
			class = "OverflowError"
		}
		return nil, fault(class, err.Error())
	}
	return out.([]byte), nil
}

// unpack decodes a value from msgpack, or from text if packed is false.
func unpack(b []byte, packed, raw bool) (any, error) {
	if packed {
		v, err := serializers.Deserialize("msgpack", "", b, pyobj.NewDict())
		if err != nil {
			return nil, err
		}
		if v = pyobj.Plain(v); raw {
			v = rawTexts(v)
		}
		return v, nil
	}
	if raw {
		return b, nil
	}
	return string(b), nil
}

// rawTexts turns texts into bytes, as msgpack's option raw does.
func rawTexts(v any) any {
	switch v := v.(type) {
	case string:
		return []byte(v)
	case []any:
		for i := range v {
			v[i] = rawTexts(v[i])
		}
	case map[string]any:
		for k := range v {
			v[k] = rawTexts(v[k])
		}
	}
	return v
}

// span returns the fields of a request that select a key, or with recurse all keys with that prefix.
func (s *store) span(key any, recurse bool) (map[string]any, error) {
	b, err := s.keyBytes(key)
	if err != nil {
		return nil, err
	}
	m := map[string]any{"key": base64.StdEncoding.EncodeToString(b)}
	if recurse {
		if len(b) == 0 {
			return nil, fault("IndexError", "bytearray index out of range")
		}
		end := bytes.Clone(b)
		for i := len(end) - 1; i >= 0; i-- {
			if end[i]++; end[i] != 0 {
				end = end[:i+1]
				break
			}
		}
		m["range_end"] = base64.StdEncoding.EncodeToString(end)
	}
	return m, nil
}

// pair is a key with its value.
type pair struct {
	key      []byte
	value    any
	revision int64 // of the last change
}

// readPair reads a key and its value, as the gateway has them.
func (s *store) readPair(v any) (pair, error) {
	m, ok := v.(map[string]any)
	if !ok {
		return pair{}, errors.New("an entry is missing")
	}
	part := func(name string) ([]byte, error) {
		text, _ := m[name].(string)
		return base64.StdEncoding.DecodeString(text)
	}
	key, err := part("key")
	if err != nil {
		return pair{}, err
	}
	p := pair{key: key}
	if s.packKeys {
		k, err := unpack(key, true, false)
		if err != nil {
			return pair{}, err
		}
		p.key = []byte(pytext.Str(k))
	}
	value, err := part("value")
	if err != nil {
		return pair{}, err
	}
	text, _ := m["mod_revision"].(string)
	p.revision, _ = strconv.ParseInt(text, 10, 64)
	p.value, err = unpack(value, s.packValues, s.rawValues)
	return p, err
}

// pairs returns the value of a key, or with recurse the values of all keys with that prefix. As in Salt, it returns
// nil both if they are missing and if the server refuses; only the log shows which.
func (s *store) pairs(ctx context.Context, key any, recurse bool) ([]pair, error) {
	body, err := s.span(key, recurse)
	var m map[string]any
	if err == nil {
		m, err = s.ask(ctx, "/kv/range", body)
	}
	if err == nil || refused(err) || failedWith(err, "IndexError") {
		list, _ := m["kvs"].([]any)
		if err == nil && len(list) == 0 {
			err = fmt.Errorf("No values found for key %s", pytext.Str(key))
		}
		out := make([]pair, 0, len(list))
		for _, v := range list {
			p, failed := s.readPair(v)
			if err = failed; err != nil {
				break
			}
			out = append(out, p)
		}
		if err != nil {
			s.call.Logger().Error("etcd3 read: " + err.Error())
			return nil, nil
		}
		return out, nil
	}
	return nil, err
}

func (s *store) get(ctx context.Context, key any, recurse bool) (any, error) {
	if recurse {
		return s.tree(ctx, key)
	}
	list, err := s.pairs(ctx, key, false)
	if err != nil || len(list) == 0 {
		return nil, err
	}
	return list[len(list)-1].value, nil
}

func (s *store) set(ctx context.Context, key, value, ttl any, directory bool) (any, error) {
	if directory {
		return nil, fault("salt.loaded.int.utils.etcd_util.Etcd3DirectoryException", "etcd3 does not have directories")
	}
	body, err := s.span(key, false)
	if err != nil {
		return nil, err
	}
	b := []byte(nil)
	switch v := value.(type) {
	case []byte:
		b = v
	default:
		b = []byte(pytext.Str(value))
	}
	if s.packValues {
		if b, err = pack(value); err != nil {
			return nil, err
		}
	}
	body["value"] = base64.StdEncoding.EncodeToString(b)
	if pytext.Truth(ttl) {
		switch ttl.(type) {
		case int64, float64, bool:
		default:
			return nil, &modules.TypeError{Msg: "'<' not supported between instances of '" + modules.TypeName(ttl) + "' and 'int'"}
		}
		seconds, err := modules.ToInt(ttl)
		if err != nil {
			return nil, err
		}
		lease, err := s.ask(ctx, "/lease/grant", map[string]any{"TTL": seconds, "ID": int64(0)})
		if err != nil {
			return nil, err
		}
		body["lease"] = lease["ID"]
	}
	if _, err := s.ask(ctx, "/kv/put", body); err != nil {
		return nil, err
	}
	return s.get(ctx, key, false)
}

func (s *store) update(ctx context.Context, fields map[string]any) (any, error) {
	out := map[string]any{}
	for _, key := range slices.Sorted(maps.Keys(fields)) {
		if _, directory := fields[key].(map[string]any); directory {
			s.call.Logger().Warn("etcd3 has no concept of directories, skipping key " + key)
			continue
		}
		v, err := s.set(ctx, key, fields[key], nil, false)
		if err != nil {
			return nil, err
		}
		out[key] = v
	}
	return out, nil
}

func (s *store) rm(ctx context.Context, key any, recurse bool) (any, error) {
	if key == nil {
		return nil, &modules.TypeError{Msg: "delete_range() requires at least one argument of key,all"}
	}
	body, err := s.span(key, recurse)
	if err != nil {
		return nil, err
	}
	m, err := s.ask(ctx, "/kv/deleterange", body)
	if err != nil || m["deleted"] == nil || m["deleted"] == "0" {
		return nil, err
	}
	return true, nil
}

// watch waits for one change. A timeout of 0 has no end, which etcd3-py refuses.
func (s *store) watch(ctx context.Context, key any, recurse bool, timeout, index any) (any, error) {
	within, cancel, err := limit(ctx, timeout)
	if err != nil {
		s.call.Logger().Error("etcd3 watch: " + err.Error())
		return nil, nil
	}
	defer cancel()
	create, err := s.span(key, recurse)
	if err == nil && index != nil {
		create["start_revision"], err = modules.ToInt(index)
	}
	var p *pair
	if err == nil {
		p, err = s.nextChange(within, create)
	}
	switch {
	case ctx.Err() != nil:
		return nil, ctx.Err()
	case within.Err() != nil:
		return nil, nil
	case modules.IsExecError(err):
		return nil, err
	case err != nil:
		s.call.Logger().Error("etcd3 watch: " + err.Error())
		return nil, nil
	}
	return map[string]any{"key": string(p.key), "value": p.value, "mIndex": p.revision, "changed": true, "dir": false}, nil
}

// nextChange reads the stream of a watcher up to the first change.
func (s *store) nextChange(ctx context.Context, create map[string]any) (*pair, error) {
	resp, err := s.post(ctx, "/watch", map[string]any{"create_request": create})
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	lines := bufio.NewScanner(resp.Body)
	lines.Buffer(nil, maxBody)
	for lines.Scan() {
		m, err := said(resp.StatusCode, lines.Bytes())
		if err != nil {
			return nil, err
		}
		if failed, ok := m["error"].(map[string]any); ok {
			return nil, refusal(failed)
		}
		result, _ := m["result"].(map[string]any)
		if result["canceled"] == true {
			return nil, errors.New("the server ended the watch: " + pytext.Str(result["cancel_reason"]))
		}
		events, _ := result["events"].([]any)
		if len(events) == 0 {
			continue
		}
		event, _ := events[0].(map[string]any)
		p, err := s.readPair(event["kv"])
		return &p, err
	}
	if err := lines.Err(); err != nil {
		return nil, s.unreachable(err)
	}
	return nil, s.unreachable(io.ErrUnexpectedEOF)
}

func (s *store) tree(ctx context.Context, path any) (any, error) {
	list, err := s.pairs(ctx, path, true)
	if err != nil || list == nil {
		return nil, err
	}
	at := pytext.Str(path)
	if len(list) == 1 && string(list[0].key) == at {
		return map[string]any{at[strings.LastIndexByte(at, '/')+1:]: list[0].value}, nil
	}
	out := map[string]any{}
	for _, p := range list {
		if err := expand(out, string(p.key[min(len(at), len(p.key)):]), p.value); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// expand puts a value into maps in maps, one for each part of the key.
func expand(into map[string]any, key string, value any) error {
	for depth := 0; ; depth++ {
		if depth > maxDepth {
			return &modules.PythonError{Type: "RecursionError", Msg: "maximum recursion depth exceeded"}
		}
		outer, inner, more := strings.Cut(strings.TrimLeft(key, "/"), "/")
		if !more {
			into[outer] = value
			return nil
		}
		if _, there := into[outer]; !there {
			into[outer] = map[string]any{}
		}
		next, ok := into[outer].(map[string]any)
		if !ok {
			return modules.Errorf("cannot show %s as a directory: it is a key with a value, and there are keys below it", outer)
		}
		into, key = next, inner
	}
}

func (s *store) ls(ctx context.Context, path any) (any, error) {
	v, err := s.tree(ctx, path)
	if err != nil {
		return nil, err
	}
	m, ok := v.(map[string]any)
	if !ok {
		return map[string]any{}, nil
	}
	at, in := pytext.Str(path), map[string]any{}
	base := at
	if !strings.HasSuffix(at, "/") {
		base += "/"
	}
	for k, x := range m {
		if _, ok := x.(map[string]any); ok {
			in[base+k+"/"] = map[string]any{}
		} else {
			in[base+k] = x
		}
	}
	return map[string]any{at: in}, nil
}
