package restapi

import (
	"archive/tar"
	"bytes"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"time"

	"github.com/brine-salt/brine/master/restapi/internal/exchange"

	"github.com/brine-salt/brine/master/eauth"
	"github.com/brine-salt/brine/modules"
	"github.com/brine-salt/brine/protocol"
)

// isNamed returns a predicate for the parameter of this name.
func isNamed(name string) func(modules.Param) bool {
	return func(p modules.Param) bool { return p.Name == name }
}

// listMinions answers GET /minions with the grains of the minions, as a job that runs grains.items.
func (s *Server) listMinions(q *exchange.Request) (any, error) {
	t, err := s.session(q.Request)
	if err != nil {
		return nil, err
	}
	tgt, err := q.Named("mid")
	if err != nil {
		return nil, err
	}
	if tgt == "" {
		tgt = "*"
	}
	v, err := s.runCommand(q.Request, &t,
		map[string]any{"client": "local", "tgt": tgt, "fun": "grains.items"})
	if err != nil {
		return nil, err
	}
	return map[string]any{"return": []any{v}}, nil
}

// minionsPost publishes jobs without waiting for them, and answers with links to their results.
func (s *Server) minionsPost(q *exchange.Request) (any, error) {
	t, err := s.session(q.Request)
	if err != nil {
		return nil, err
	}
	v, err := s.runCommands(q, &t, "local_async")
	if err != nil {
		return nil, err
	}
	out := v.(map[string]any)
	links := []any{}
	for _, j := range out["return"].([]any) {
		if m, ok := j.(map[string]any); ok && len(m) > 0 {
			links = append(links, map[string]any{"href": fmt.Sprintf("/jobs/%v", m["jid"])})
		}
	}
	out["_links"] = map[string]any{"jobs": links}
	q.Code = http.StatusAccepted
	return out, nil
}

// runAsSession runs a command on behalf of the caller of a request.
func (s *Server) runAsSession(q *exchange.Request, c map[string]any) (any, error) {
	t, err := s.session(q.Request)
	if err != nil {
		return nil, err
	}
	return s.runCommand(q.Request, &t, c)
}

// listJobs answers GET /jobs. Stock takes the job id from the query as well, so a request with one shows that job.
func (s *Server) listJobs(q *exchange.Request) (any, error) {
	if jid, err := q.Named("jid"); err != nil || jid != "" {
		return s.showJob(q)
	}
	v, err := s.runAsSession(q, map[string]any{"client": "runner", "fun": "jobs.list_jobs"})
	if err != nil {
		return nil, err
	}
	return map[string]any{"return": []any{v}}, nil
}

// showJob answers GET /jobs/{jid} with the job and, apart from it, what its minions returned.
func (s *Server) showJob(q *exchange.Request) (any, error) {
	jid, err := q.Named("jid")
	if err != nil {
		return nil, err
	}
	if !protocol.ValidJID(jid) {
		return nil, exchange.NewError(http.StatusBadRequest, "jid must be a job id")
	}
	v, err := s.runAsSession(q,
		map[string]any{"client": "runner", "fun": "jobs.list_job",
			"kwarg": map[string]any{"jid": jid}})
	if err != nil {
		return nil, err
	}
	info, ok := v.(map[string]any)
	if !ok {
		return nil, fmt.Errorf("jobs.list_job gave %v", v)
	}
	returns := map[string]any{}
	results, _ := info["Result"].(map[string]any)
	for id, r := range results {
		if m, ok := r.(map[string]any); ok {
			returns[id] = m["return"]
		}
	}
	return map[string]any{"info": []any{info}, "return": []any{returns}}, nil
}

// wheelReturn extracts the function's value from the answer of a wheel command.
func wheelReturn(v any, err error) (any, error) {
	if err != nil {
		return nil, err
	}
	if m, ok := v.(map[string]any); ok {
		if d, ok := m["data"].(map[string]any); ok {
			return map[string]any{"return": d["return"]}, nil
		}
	}
	return map[string]any{"return": map[string]any{}}, nil
}

// showKeys answers GET /keys: all keys by state, or the fingerprint of one minion's key.
func (s *Server) showKeys(q *exchange.Request) (any, error) {
	mid, err := q.Named("mid")
	if err != nil {
		return nil, err
	}
	c := map[string]any{"client": "wheel", "fun": "key.list_all"}
	if mid != "" {
		c = map[string]any{"client": "wheel", "fun": "key.finger",
			"kwarg": map[string]any{"match": mid}}
	}
	v, err := s.runAsSession(q, c)
	if errors.Is(err, exchange.ErrNoToken) || errors.Is(err, exchange.ErrOldToken) {
		err = exchange.ErrNoCreds // in Salt this is a command like any other
	}
	return wheelReturn(v, err)
}

// keyPair creates a minion's key pair, accepts it, and answers with both keys as a tar file. Unlike other requests it
// takes credentials in the body or the token of a session.
func (s *Server) keyPair(w http.ResponseWriter, r *http.Request) {
	q := &exchange.Request{Request: r, W: w}
	tarball, id, err := s.makePair(q)
	s.settleBody(q, err)
	if err != nil {
		s.answerError(w, r, err)
		return
	}
	h := w.Header()
	h.Set("Content-Disposition", `attachment; filename="saltkeys-`+
		strings.ReplaceAll(id, `"`, `\"`)+`.tar"`)
	h.Set("Content-Type", "application/x-tar")
	h.Set("Content-Length", fmt.Sprint(len(tarball)))
	h.Set("Cache-Control", "no-cache")
	_, _ = w.Write(tarball)
}

func (s *Server) makePair(q *exchange.Request) (tarball []byte, id string, err error) {
	if err := s.readBody(q); err != nil {
		return nil, "", err
	}
	chunks, err := q.Chunks()
	if err != nil {
		return nil, "", err
	}
	if len(chunks) == 0 {
		return nil, "", exchange.NewError(http.StatusBadRequest, "Lowstates must be a list")
	}
	c := chunks[0]
	id, ok := c["mid"].(string)
	if !ok {
		id, ok = c["id_"].(string)
	}
	if !ok || protocol.ValidID(id) != nil {
		return nil, "", exchange.NewError(http.StatusBadRequest, "mid must be a minion id")
	}
	delete(c, "mid")
	c["client"], c["fun"], c["id_"] = "wheel", "key.gen_accept", id
	var session *eauth.Token
	if _, has := c["eauth"]; !has && c["token"] == nil && tokenID(q.Request) != "" {
		session = &eauth.Token{ID: tokenID(q.Request)}
	}
	v, err := wheelReturn(s.runCommand(q.Request, session, c))
	if err != nil {
		return nil, "", err
	}
	pair, _ := v.(map[string]any)["return"].(map[string]any)
	var b bytes.Buffer
	tw := tar.NewWriter(&b)
	for _, f := range []struct{ name, key string }{{"minion.pub", "pub"}, {"minion.pem", "priv"}} {
		text, _ := pair[f.key].(string)
		if err := tw.WriteHeader(&tar.Header{Name: f.name, Mode: 0o600, Size: int64(len(text)),
			ModTime: time.Unix(0, 0)}); err != nil {
			return nil, "", err
		}
		if _, err := tw.Write([]byte(text)); err != nil {
			return nil, "", err
		}
	}
	if err := tw.Close(); err != nil {
		return nil, "", err
	}
	return b.Bytes(), id, nil
}

// fireHook fires an event with the body and the headers of a request, for reactors. Headers that authenticate the
// caller are left out: every listener of the bus reads the event.
func (s *Server) fireHook(q *exchange.Request) (any, error) {
	tag := "salt/netapi/hook"
	if p := strings.Trim(q.PathValue("path"), "/"); p != "" {
		tag += "/" + p
	}
	var t eauth.Token
	var err error
	if !s.o.OpenHooks {
		t, err = s.operator(q.Request)
	} else {
		q.Refund = 0 // success proves nothing about the caller
	}
	e := s.auditEntry(q.Request, t, "hook", err)
	e.Fun = []string{tag}
	s.o.Master.Audit(e)
	if err != nil {
		return nil, err
	}
	headers := map[string]any{}
	for name, values := range q.Header {
		switch name {
		case "X-Auth-Token", "Cookie", "Authorization": // every listener of the bus would see them
			continue
		}
		headers[name] = strings.Join(values, ", ")
	}
	headers["Host"], headers["Remote-Addr"] = q.Host, strings.TrimSuffix(q.RemoteAddr, "@")
	post := q.Sent
	if post == nil {
		post = map[string]any{}
	}
	s.o.Master.Events().Publish(tag,
		map[string]any{"body": q.Raw, "post": post, "headers": headers})
	return map[string]any{"success": true}, nil
}

// stats counts requests and open streams for GET /stats.
type stats struct {
	requests, posts, streams atomic.Int64
}

func (s *stats) count(r *http.Request) {
	s.requests.Add(1)
	if r.Method == http.MethodPost {
		s.posts.Add(1)
	}
}

func (s *Server) showStats(q *exchange.Request) (any, error) {
	if !s.o.OpenStats {
		if _, err := s.operator(q.Request); err != nil {
			return nil, err
		}
	}
	return map[string]any{"Salt REST API": map[string]any{"Uptime": time.Since(s.started).Seconds(),
		"Total Requests":      s.stats.requests.Load(),
		"Total POST Requests": s.stats.posts.Load(), "Event Streams": s.stats.streams.Load(),
		"Connected Minions": int64(len(s.o.Master.Present()))}}, nil
}

// mayFollow reports whether a caller may go on following events. A peer of a unix socket may for as long as its
// connection lasts; others need a valid token.
func (s *Server) mayFollow(t eauth.Token) bool {
	if t.UID != "" && t.ID == "" {
		return true
	}
	_, ok := s.o.Auth.Token(t.ID)
	return ok
}
