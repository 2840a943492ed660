package restapi

import (
	"context"
	"errors"
	"io"
	"maps"
	"math/rand/v2"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/brine-salt/brine/internal/cliargs"
	"github.com/brine-salt/brine/internal/nested"
	"github.com/brine-salt/brine/internal/pytext"
	"github.com/brine-salt/brine/master"
	"github.com/brine-salt/brine/master/client"
	"github.com/brine-salt/brine/master/eauth"
	"github.com/brine-salt/brine/master/runner"
	"github.com/brine-salt/brine/master/store"
	"github.com/brine-salt/brine/protocol"
	"github.com/brine-salt/brine/protocol/target"
)

// background runs what clients do not wait for.
type background struct {
	ctx    context.Context
	cancel context.CancelFunc
	wg     sync.WaitGroup
	slots  chan struct{}
}

// maxBackground bounds the runs that go on at once.
const maxBackground = 256

func newBackground() *background {
	ctx, cancel := context.WithCancel(context.Background())
	return &background{ctx: ctx, cancel: cancel, slots: make(chan struct{}, maxBackground)}
}

// start runs f, or says that there are too many.
func (b *background) start(f func(ctx context.Context)) error {
	select {
	case b.slots <- struct{}{}:
	default:
		return &statusError{http.StatusServiceUnavailable, "Too many runs are going on"}
	}
	b.wg.Go(func() {
		defer func() { <-b.slots }()
		f(b.ctx)
	})
	return nil
}

func (b *background) close() {
	b.cancel()
	b.wg.Wait()
}

// lowstate runs the commands of a body for the owner of a session.
func (s *Server) lowstate(q *request) (any, error) {
	t, err := s.session(q.Request)
	if err != nil {
		return nil, err
	}
	return s.returns(q, &t, "")
}

// run runs commands that bring their own credentials.
func (s *Server) run(q *request) (any, error) { return s.returns(q, nil, "") }

// returns runs all commands of a body and gathers what they return.
func (s *Server) returns(q *request, session *eauth.Token, client string) (any, error) {
	chunks, err := q.chunks()
	if err != nil {
		return nil, err
	}
	out := []any{}
	for _, c := range chunks {
		if client != "" {
			c["client"] = client
		}
		v, err := s.command(q.Request, session, c)
		if err != nil {
			return nil, err
		}
		if many, ok := v.(several); ok {
			out = append(out, many...)
			continue
		}
		out = append(out, v)
	}
	return map[string]any{"return": out}, nil
}

// several are the results of one command that gives many.
type several []any

// command runs one command after looking at who gives it and whether they may.
func (s *Server) command(r *http.Request, session *eauth.Token, c map[string]any) (v any, err error) {
	var t eauth.Token
	defer func() { s.audit(r, t, c, v, err) }()
	name, _ := c["client"].(string)
	// guard: CVE-2017-5200,CVE-2019-17361,CVE-2020-16846,CVE-2021-3148,CVE-2021-3197 TestCVE_2017_5200_NoSSHClient
	if !slices.Contains(Clients(), name) {
		return nil, &statusError{http.StatusBadRequest, "Invalid client specified: '" + pytext.Str(c["client"]) + "'"}
	}
	if !slices.Contains(s.o.Clients, name) {
		return nil, &statusError{http.StatusBadRequest, "Client disabled: '" + name + "'. Add to 'netapi_enable_clients' master config option to enable."}
	}
	// guard: CVE-2018-15750,CVE-2018-15751,CVE-2020-25592,CVE-2021-25281 TestCVE_2018_15751_CommandsBringCredentials
	if t, err = s.who(r, c, session); err != nil {
		return nil, err
	}
	fun, ok := c["fun"].(string)
	if list, isList := c["fun"].([]any); isList && strings.HasPrefix(name, "local") && len(list) > 0 {
		ok = true
	} else if c["fun"] == nil && !strings.HasPrefix(name, "local") {
		return nil, &statusError{http.StatusBadRequest, name + " takes at least 1 argument (0 given)"}
	} else if !ok || fun == "" {
		return nil, &statusError{http.StatusBadRequest, "fun must be the name of a function"}
	}
	tenant, err := s.tenant(t)
	if err != nil {
		return nil, err
	}
	if tenant != "" && !forTenants(name, fun) {
		return nil, errAuthZ
	}
	ctx, cancel := context.WithTimeout(r.Context(), s.o.Timeout)
	defer cancel()
	if strings.HasPrefix(name, "local") {
		return s.local(ctx, t, name, c)
	}
	v, err = s.onMaster(ctx, t, name, fun, c)
	if err == nil && tenant != "" {
		return s.ownJobs(ctx, t, fun, v)
	}
	return v, err
}

// onMaster runs a runner or wheel function.
func (s *Server) onMaster(ctx context.Context, t eauth.Token, name, fun string, c map[string]any) (any, error) {
	kind, async := strings.CutSuffix(name, "_async")
	cl := s.o.Runner
	if kind == "wheel" {
		cl = s.o.Wheel
	}
	if cl == nil {
		return nil, &statusError{http.StatusBadRequest, "There are no " + kind + " functions here"}
	}
	q := runner.Request{Fun: fun, User: t.Name, JID: string(protocol.NewJID(time.Now()))}
	args, _ := listOf(c["arg"])
	q.Args, q.Kwargs = cliargs.Values(args, nil)
	if q.Kwargs == nil {
		q.Kwargs = map[string]any{}
	}
	kw, called := c["kwarg"].(map[string]any)
	maps.Copy(q.Kwargs, kw)
	q.Named = !called && c["arg"] == nil
	def := cl.Argspec(fun)
	for key, v := range c {
		switch key {
		case "client", "fun", "arg", "kwarg", "token", "eauth", "username", "password", "sharedsecret":
			continue
		}
		declared := def != nil && slices.ContainsFunc(def.Params, isNamed(key))
		meant := key != "timeout" && key != "full_return" && key != "user" && key != "key"
		if declared || meant && def != nil && def.Kwargs != "" { // Salt ignores what a function does not take
			q.Kwargs[key] = v
		}
	}
	if !s.o.Auth.MayRun(s.o.Auth.Rules(t), kind, fun, q.Args, q.Kwargs) {
		s.o.Log.Warn("function refused", "user", t.Name, "eauth", t.EAuth, "fun", kind+"."+fun)
		shown := "eauth"
		if t.ID != "" {
			shown = "token"
		}
		return nil, denied(c, shown, t.Name)
	}
	if def == nil && kind == "runner" {
		return nil, &statusError{http.StatusBadRequest, "'" + fun + "' is not available."}
	}
	if async {
		tag := map[string]string{"runner": "salt/run/", "wheel": "salt/wheel/"}[kind] + q.JID
		if err := s.async.start(func(ctx context.Context) { cl.Call(ctx, q) }); err != nil {
			return nil, err
		}
		return map[string]any{"tag": tag, "jid": q.JID}, nil
	}
	res := cl.Call(ctx, q)
	if res.Missing {
		res.Data = map[string]any{"fun": kind + "." + fun, "jid": q.JID, "user": t.Name, "return": res.Return, "success": false}
	}
	if kind == "runner" && !pytext.Truth(c["full_return"]) {
		return res.Ordered, nil
	}
	data := maps.Clone(res.Data)
	data["_stamp"] = protocol.Stamp(time.Now())
	if kind == "runner" { // Salt waits for the event of the end, and gives it
		return map[string]any{"tag": res.Tag + "/ret", "data": data}, nil
	}
	data["tag"] = res.Tag
	delete(data, "fun_args")
	return map[string]any{"tag": res.Tag, "data": data}, nil
}

// listOf reads an argument that may be one value or a list.
func listOf(v any) ([]any, bool) {
	switch v := v.(type) {
	case nil:
		return nil, false
	case []any:
		return v, true
	}
	return []any{v}, true
}

// job makes the job that a command means. keys are Salt's parameters of LocalClient.cmd.
func job(c map[string]any) (master.Job, error) {
	bad := func(text string) (master.Job, error) { return master.Job{}, &statusError{http.StatusBadRequest, text} }
	j := master.Job{Tgt: c["tgt"], TgtType: "glob"}
	switch tgt := j.Tgt.(type) {
	case string:
	case []any:
		j.TgtType = "list"
		for _, id := range tgt {
			if _, ok := id.(string); !ok {
				return bad("tgt must be text or a list of names")
			}
		}
	default:
		return bad("tgt must be text or a list of names")
	}
	if s, ok := c["tgt_type"].(string); ok && s != "" {
		j.TgtType = s
	}
	if jid, ok := c["jid"].(string); ok && jid != "" {
		if !protocol.ValidJID(jid) {
			return bad("jid must be a job id")
		}
		j.JID = jid
	}
	j.Ret, _ = c["ret"].(string)
	if m, ok := c["metadata"]; ok {
		j.Metadata = m
	}
	var err error
	if j.Timeout, err = seconds(c["timeout"]); err != nil {
		return bad("timeout must be a number of seconds")
	}
	kw, _ := c["kwarg"].(map[string]any)
	if funs, ok := c["fun"].([]any); ok {
		args, _ := listOf(c["arg"])
		for i, f := range funs {
			name, ok := f.(string)
			if !ok {
				return bad("fun must be the name of a function, or a list of names")
			}
			call := master.Step{Fun: name}
			if i < len(args) {
				call.Args, _ = listOf(args[i])
			}
			j.Steps = append(j.Steps, call)
		}
		return j, nil
	}
	j.Fun = c["fun"].(string)
	j.Args, _ = listOf(c["arg"]) // as they are: minions read "name=value"
	j.Kwargs = kw
	return j, nil
}

// seconds reads a number of seconds, which may come as text.
func seconds(v any) (time.Duration, error) {
	var f float64
	switch v := v.(type) {
	case nil:
		return 0, nil
	case int64:
		f = float64(v)
	case float64:
		f = v
	case string:
		if v == "" {
			return 0, nil
		}
		var err error
		if f, err = strconv.ParseFloat(v, 64); err != nil {
			return 0, err
		}
	default:
		return 0, errors.New("not a number")
	}
	if !(f >= 0 && f <= 1e6) {
		return 0, errors.New("out of range")
	}
	return time.Duration(f * float64(time.Second)), nil
}

// calls are the functions of a job and the arguments of each, as rules look at them.
func calls(j master.Job) (funs []string, args [][]any) {
	for _, call := range append(slices.Clone(j.Steps), master.Step{Fun: j.Fun, Args: j.Args, Kwargs: j.Kwargs}) {
		if call.Fun == "" {
			continue
		}
		funs, args = append(funs, call.Fun), append(args, withKwargs(call.Args, call.Kwargs))
	}
	return funs, args
}

// local publishes a job, if the rules allow it.
func (s *Server) local(ctx context.Context, t eauth.Token, name string, c map[string]any) (any, error) {
	j, err := job(c)
	if err != nil {
		return nil, err
	}
	j.User = t.Name
	funs, args := calls(j)
	v, err := s.view(t)
	if err != nil {
		return nil, err
	}
	rules := s.o.Auth.Rules(t)
	if !target.OfIDs(j.TgtType) && !s.o.Auth.MayPublish(eauth.Everywhere(rules), funs, args, j.TgtType, j.Tgt) {
		// Minions judge grains and pillars by themselves, also those of which the master knows others: it is for whom the rules were asked.
		ids, err := v.Match(ctx, j.TgtType, j.Tgt)
		if err != nil {
			return nil, errAuthZ
		}
		j.TgtType, j.Tgt = target.TypeList, ids
	}
	if s.o.Master.Denied(t.Name, funs...) || !s.o.Auth.MayPublish(rules, funs, args, j.TgtType, j.Tgt) {
		s.o.Log.Warn("job refused", "user", t.Name, "eauth", t.EAuth, "fun", funs)
		return nil, errAuthZ
	}
	switch name {
	case "local_async":
		return s.publish(ctx, v, j)
	case "local_batch":
		return s.batch(ctx, v, j, pytext.Str(c["batch"]), c)
	case "local_subset":
		return s.subset(ctx, v, j, c)
	}
	return s.wait(ctx, v, j, pytext.Truth(c["full_return"]))
}

// publish answers with the job's id. A job id that the client chose, and that is taken by the same job, gets the same answer:
// so a client that heard nothing may ask again.
func (s *Server) publish(ctx context.Context, v view, j master.Job) (any, error) {
	p, err := v.Publish(ctx, j)
	var none *master.NoMinionsError
	switch {
	case errors.As(err, &none):
		return map[string]any{}, nil
	case errors.Is(err, store.ErrExists) && j.JID != "":
		old, err := s.o.Master.Store().Job(ctx, j.JID)
		if err != nil {
			return nil, err
		}
		if old.User != j.User || pytext.Str(old.Fun) != j.Fun || pytext.Str(old.Tgt) != pytext.Str(j.Tgt) {
			return nil, &statusError{http.StatusConflict, "The job id is taken by another job"}
		}
		return map[string]any{"jid": j.JID, "minions": nested.Anys(old.Minions)}, nil
	case err != nil:
		return nil, badTarget(err)
	}
	return map[string]any{"jid": p.JID, "minions": nested.Anys(p.Minions)}, nil
}

// badTarget tells a client about a target that cannot be understood.
func badTarget(err error) error {
	if errors.Is(err, master.ErrNotServing) || errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled) {
		return err
	}
	if errors.Is(err, master.ErrNotStored) {
		return &statusError{http.StatusServiceUnavailable, err.Error()}
	}
	return &statusError{http.StatusBadRequest, err.Error()}
}

// wait answers with what the minions returned.
func (s *Server) wait(ctx context.Context, v view, j master.Job, full bool) (any, error) {
	run, err := v.Submit(ctx, j)
	var none *master.NoMinionsError
	switch {
	case errors.As(err, &none):
		return map[string]any{}, nil
	case err != nil:
		return nil, badTarget(err)
	}
	defer run.Close()
	out := map[string]any{}
	for _, id := range run.Minions {
		out[id] = false // as LocalClient.cmd has those that did not return
	}
	for {
		r, err := run.Next(ctx)
		switch {
		case errors.Is(err, io.EOF), errors.Is(err, context.DeadlineExceeded): // what came until then
			return out, nil
		case err != nil:
			return nil, badTarget(err)
		case r.Status == master.Returned:
			out[r.ID] = returned(r, full)
		case r.Status == master.Missing:
			text := client.LostText(run.JID)
			if out[r.ID] = text; full {
				out[r.ID] = map[string]any{"out": "no_return", "ret": text, "retcode": int64(1)}
			}
		}
	}
}

func returned(r master.Result, full bool) any {
	if !full {
		return r.Ordered
	}
	out := map[string]any{"ret": r.Ordered, "retcode": int64(r.Retcode)}
	if jid, ok := r.Load["jid"]; ok {
		out["jid"] = jid
	}
	if r.Out != "" {
		out["out"] = r.Out
	}
	return out
}

// batch runs a job on some minions at a time.
func (s *Server) batch(ctx context.Context, v view, j master.Job, size string, c map[string]any) (any, error) {
	ids, err := v.Match(ctx, j.TgtType, j.Tgt)
	if err != nil {
		return nil, badTarget(err)
	}
	if c["batch"] == nil {
		size = "10%"
	}
	n, err := client.BatchSize(size, len(ids))
	if err != nil {
		return nil, &statusError{http.StatusBadRequest, err.Error()}
	}
	pause, err := seconds(c["batch_wait"])
	if err != nil {
		return nil, &statusError{http.StatusBadRequest, "batch_wait must be a number of seconds"}
	}
	out := several{}
	for part := range slices.Chunk(ids, max(1, n)) {
		if len(out) > 0 && pause > 0 {
			select {
			case <-time.After(pause):
			case <-ctx.Done():
				return out, nil
			}
		}
		one := j
		one.Tgt, one.TgtType, one.JID = part, "list", ""
		res, err := v.Run(ctx, one)
		var none *master.NoMinionsError
		if err != nil && !errors.As(err, &none) && !errors.Is(err, context.DeadlineExceeded) {
			return nil, badTarget(err)
		}
		failed := false
		for _, id := range part {
			r, ok := res[id]
			if !ok || r.Status != master.Returned {
				continue
			}
			failed = failed || r.Retcode != 0
			out = append(out, map[string]any{id: returned(r, pytext.Truth(c["full_return"]))})
		}
		if failed && pytext.Truth(c["failhard"]) {
			break
		}
	}
	return out, nil
}

// subset runs a job on some minions, chosen by chance.
func (s *Server) subset(ctx context.Context, v view, j master.Job, c map[string]any) (any, error) {
	n := 3
	for _, key := range []string{"sub", "subset"} {
		if v, ok := c[key]; ok {
			d, err := seconds(v)
			if err != nil {
				return nil, &statusError{http.StatusBadRequest, key + " must be a number"}
			}
			n = int(d / time.Second)
		}
	}
	ids, err := v.Match(ctx, j.TgtType, j.Tgt)
	if err != nil {
		return nil, badTarget(err)
	}
	rand.Shuffle(len(ids), func(i, k int) { ids[i], ids[k] = ids[k], ids[i] })
	j.Tgt, j.TgtType = ids[:min(n, len(ids))], "list"
	if pytext.Truth(c["cli"]) {
		return s.publish(ctx, v, j)
	}
	return s.wait(ctx, v, j, pytext.Truth(c["full_return"]))
}
