package restapi

import (
	"context"
	"errors"
	"io"
	"maps"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/brine-salt/brine/master/restapi/internal/exchange"
	"github.com/brine-salt/brine/master/restapi/internal/lowstate"
	"github.com/brine-salt/brine/master/restapi/internal/scope"

	"github.com/brine-salt/brine/internal/cliargs"
	"github.com/brine-salt/brine/internal/nested"
	"github.com/brine-salt/brine/internal/python/pytext"
	"github.com/brine-salt/brine/master"
	"github.com/brine-salt/brine/master/client"
	"github.com/brine-salt/brine/master/eauth"
	"github.com/brine-salt/brine/master/runner"
	"github.com/brine-salt/brine/master/store"
	"github.com/brine-salt/brine/protocol"
	"github.com/brine-salt/brine/protocol/target"
)

// background runs the commands that clients do not wait for (runner_async, wheel_async). Close cancels them and waits
// for their end.
type background struct {
	ctx    context.Context
	cancel context.CancelFunc
	wg     sync.WaitGroup
	places *places
}

// maxBackground is how many of these commands run at once; more are refused with 503. One user gets at most half.
const maxBackground = 256

func newBackground() *background {
	ctx, cancel := context.WithCancel(context.Background())
	return &background{ctx: ctx, cancel: cancel, places: newPlaces(maxBackground)}
}

// start runs f for a user in a goroutine of its own, or returns a 503 if too many are running.
func (b *background) start(who string, f func(ctx context.Context)) error {
	if !b.places.take(who, 1) {
		return exchange.NewError(http.StatusServiceUnavailable, "Too many runs are in progress")
	}
	b.wg.Go(func() {
		defer b.places.leave(who, 1)
		f(b.ctx)
	})
	return nil
}

func (b *background) close() {
	b.cancel()
	b.wg.Wait()
}

// runSession answers POST /: it runs the commands of a body for the caller of the request.
func (s *Server) runSession(q *exchange.Request) (any, error) {
	t, err := s.session(q.Request)
	if err != nil {
		return nil, err
	}
	return s.runCommands(q, &t, "")
}

// runUnsessioned answers POST /run, whose commands bring their own credentials.
func (s *Server) runUnsessioned(q *exchange.Request) (any,
	error) {
	return s.runCommands(q, nil, "")
}

// runCommands runs the commands of a body one after the other and collects their results. client, unless empty,
// replaces the client that the commands name. The first error ends it: as in Salt, what ran before is not reported
// then.
func (s *Server) runCommands(q *exchange.Request, session *eauth.Token, client string) (any,
	error) {
	chunks, err := q.Chunks()
	if err != nil {
		return nil, err
	}
	out := []any{}
	for _, c := range chunks {
		if client != "" {
			c["client"] = client
		}
		v, err := s.runCommand(q.Request, session, c)
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

// several holds the results of a command that answers once for each minion (local_batch).
type several []any

// runCommand authenticates and authorizes one command and runs it. The order matters: a client that is disabled is
// refused before any password is checked, and every outcome is written to the audit log.
func (s *Server) runCommand(r *http.Request, session *eauth.Token, c map[string]any) (v any,
	err error) {
	var t eauth.Token
	defer func() { s.auditCommand(r, t, c, v, err) }()
	name, _ := c["client"].(string)
	// guard: CVE-2017-5200,CVE-2019-17361,CVE-2020-16846,CVE-2021-3148,CVE-2021-3197 TestCVE_2017_5200_NoSSHClient
	if !slices.Contains(Clients(), name) {
		return nil, exchange.NewError(http.StatusBadRequest, "Invalid client specified: '"+
			pytext.Str(c["client"])+"'")
	}
	if !slices.Contains(s.o.Clients, name) {
		return nil, exchange.NewError(http.StatusBadRequest, "Client disabled: '"+name+
			"'. Add to 'netapi_enable_clients' master config option to enable.")
	}
	// guard: CVE-2018-15750,CVE-2018-15751,CVE-2020-25592,CVE-2021-25281 TestCVE_2018_15751_CommandsBringCredentials
	if t, err = s.commandOwner(r, c, session); err != nil {
		return nil, err
	}
	fun, ok := c["fun"].(string)
	if list, isList := c["fun"].([]any); isList && strings.HasPrefix(name, "local") &&
		len(list) > 0 {
		ok = true
	} else if c["fun"] == nil && !strings.HasPrefix(name, "local") {
		return nil, exchange.NewError(http.StatusBadRequest, name+
			" takes at least 1 argument (0 given)")
	} else if !ok || fun == "" {
		return nil, exchange.NewError(http.StatusBadRequest, "fun must be the name of a function")
	}
	tenant, err := s.tenantOf(t)
	if err != nil {
		return nil, err
	}
	if tenant != "" && !forTenants(name, fun) {
		return nil, exchange.ErrRefused
	}
	ctx, cancel := context.WithTimeout(r.Context(), s.o.Timeout)
	defer cancel()
	if strings.HasPrefix(name, "local") {
		return s.runLocal(ctx, t, name, c)
	}
	v, err = s.onMaster(ctx, t, name, fun, c)
	if err == nil && tenant != "" {
		return s.ownJobs(ctx, t, fun, v)
	}
	return v, err
}

// onMaster runs a runner or wheel function. It passes the command's fields that the function declares as
// parameters and ignores the others, as Salt does.
func (s *Server) onMaster(ctx context.Context, t eauth.Token, name, fun string,
	c map[string]any) (any, error) {
	kind, async := strings.CutSuffix(name, "_async")
	cl := s.o.Runner
	if kind == "wheel" {
		cl = s.o.Wheel
	}
	if cl == nil {
		return nil, exchange.NewError(http.StatusBadRequest, "There are no "+kind+" functions here")
	}
	q := runner.Request{Fun: fun, User: t.Name, JID: string(protocol.NewJID(time.Now()))}
	args, _ := lowstate.List(c["arg"])
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
		case "client", "fun", "arg", "kwarg", "token", "eauth", "username", "password",
			"sharedsecret":
			continue
		}
		declared := def != nil && slices.ContainsFunc(def.Params, isNamed(key))
		meant := key != "timeout" && key != "full_return" && key != "user" && key != "key"
		// As in Salt, fields that the function does not accept are ignored.
		if declared || meant && def != nil && def.Kwargs != "" {
			q.Kwargs[key] = v
		}
	}
	if !s.o.Auth.MayRun(s.o.Auth.Rules(t), kind, fun, q.Args, q.Kwargs) {
		s.o.Log.Warn("Function refused", "user", t.Name, "eauth", t.EAuth, "fun", kind+"."+fun)
		shown := "eauth"
		if t.ID != "" {
			shown = "token"
		}
		return nil, notAuthenticated(c, shown, t.Name)
	}
	if def == nil && kind == "runner" {
		return nil, exchange.NewError(http.StatusBadRequest, "'"+fun+"' is not available.")
	}
	if async {
		tag := map[string]string{"runner": "salt/run/", "wheel": "salt/wheel/"}[kind] + q.JID
		call := func(ctx context.Context) { cl.Call(ctx, q) }
		if err := s.async.start(t.EAuth+" "+t.Name, call); err != nil {
			return nil, err
		}
		return map[string]any{"tag": tag, "jid": q.JID}, nil
	}
	res := cl.Call(ctx, q)
	if res.Missing {
		res.Data = map[string]any{"fun": kind + "." + fun, "jid": q.JID, "user": t.Name,
			"return": res.Return, "success": false}
	}
	if kind == "runner" && !pytext.Truth(c["full_return"]) {
		return res.Ordered, nil
	}
	data := maps.Clone(res.Data)
	data["_stamp"] = protocol.Stamp(time.Now())
	if kind == "runner" { // Salt waits for the final event and returns its data
		return map[string]any{"tag": res.Tag + "/ret", "data": data}, nil
	}
	data["tag"] = res.Tag
	delete(data, "fun_args")
	return map[string]any{"tag": res.Tag, "data": data}, nil
}

// runLocal publishes a job if the caller's rules allow it. Targets by grains or pillar are judged by the minions
// themselves, whose answer may differ from the master's cache. Unless the rules hold for all minions, the job is
// therefore sent to the list of ids for which the rules were checked.
func (s *Server) runLocal(ctx context.Context, t eauth.Token, name string, c map[string]any) (any,
	error) {
	j, err := lowstate.Job(c)
	if err != nil {
		return nil, err
	}
	j.User = t.Name
	funs, args := lowstate.Calls(j)
	v, err := s.viewOf(t)
	if err != nil {
		return nil, err
	}
	rules := s.o.Auth.Rules(t)
	if !target.OfIDs(j.TgtType) &&
		!s.o.Auth.MayPublish(eauth.Everywhere(rules), funs, args, j.TgtType, j.Tgt) {
		// Minions match grains and pillars themselves, and theirs may differ from the master's copy. So the job
		// goes to the ids for which the rules were checked.
		ids, err := v.Match(ctx, j.TgtType, j.Tgt)
		if err != nil {
			return nil, exchange.ErrRefused
		}
		j.TgtType, j.Tgt = target.TypeList, ids
	}
	if s.o.Master.Denied(t.Name, funs...) ||
		!s.o.Auth.MayPublish(rules, funs, args, j.TgtType, j.Tgt) {
		s.o.Log.Warn("Job refused", "user", t.Name, "eauth", t.EAuth, "fun", funs)
		return nil, exchange.ErrRefused
	}
	switch name {
	case "local_async":
		return s.publishJob(ctx, v, j)
	case "local_batch":
		return s.runBatch(ctx, v, j, pytext.Str(c["batch"]), c)
	case "local_subset":
		return s.runSubset(ctx, v, j, c)
	}
	return s.awaitJob(ctx, v, j, pytext.Truth(c["full_return"]))
}

// publishJob publishes a job and answers with its id. If the client chose the id and the same job has it already, the
// answer is the same again, so that a client that received no answer can repeat its request. Another job with that id
// is a conflict.
func (s *Server) publishJob(ctx context.Context, v scope.View, j master.Job) (any, error) {
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
		if old.User != j.User || pytext.Str(old.Fun) != j.Fun ||
			pytext.Str(old.Tgt) != pytext.Str(j.Tgt) {
			return nil, exchange.NewError(http.StatusConflict, "The job id is taken by another job")
		}
		return map[string]any{"jid": j.JID, "minions": nested.Anys(old.Minions)}, nil
	case err != nil:
		return nil, lowstate.Refused(err)
	}
	return map[string]any{"jid": p.JID, "minions": nested.Anys(p.Minions)}, nil
}

// awaitJob publishes a job and answers with what each minion returned; false stands for minions that did not, as in
// LocalClient.cmd.
func (s *Server) awaitJob(ctx context.Context, v scope.View, j master.Job, full bool) (any, error) {
	run, err := v.Submit(ctx, j)
	var none *master.NoMinionsError
	switch {
	case errors.As(err, &none):
		return map[string]any{}, nil
	case err != nil:
		return nil, lowstate.Refused(err)
	}
	defer run.Close()
	out := map[string]any{}
	for _, id := range run.Minions {
		out[id] = false // LocalClient.cmd returns false for minions that did not return
	}
	for {
		r, err := run.Next(ctx)
		switch {
		// Return the results so far.
		case errors.Is(err, io.EOF), errors.Is(err, context.DeadlineExceeded):
			return out, nil
		case err != nil:
			return nil, lowstate.Refused(err)
		case r.Status == master.Returned:
			out[r.ID] = shownReturn(r, full)
		case r.Status == master.Missing:
			text := client.LostText(run.JID)
			if out[r.ID] = text; full {
				out[r.ID] = map[string]any{"out": "no_return", "ret": text, "retcode": int64(1)}
			}
		}
	}
}

// shownReturn returns a minion's value or, with full_return, the value with its return code, job id and outputter.
func shownReturn(r master.Result, full bool) any {
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

// runBatch runs a job on batches of minions. With failhard it stops after the first batch with a failure.
func (s *Server) runBatch(ctx context.Context, v scope.View, j master.Job, size string,
	c map[string]any) (any, error) {
	ids, err := v.Match(ctx, j.TgtType, j.Tgt)
	if err != nil {
		return nil, lowstate.Refused(err)
	}
	if c["batch"] == nil {
		size = "10%"
	}
	n, err := client.BatchSize(size, len(ids))
	if err != nil {
		return nil, exchange.NewError(http.StatusBadRequest, err.Error())
	}
	pause, err := lowstate.Seconds(c["batch_wait"])
	if err != nil {
		return nil, exchange.NewError(http.StatusBadRequest,
			"batch_wait must be a number of seconds")
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
			return nil, lowstate.Refused(err)
		}
		failed := false
		for _, id := range part {
			r, ok := res[id]
			if !ok || r.Status != master.Returned {
				continue
			}
			failed = failed || r.Retcode != 0
			out = append(out, map[string]any{id: shownReturn(r, pytext.Truth(c["full_return"]))})
		}
		if failed && pytext.Truth(c["failhard"]) {
			break
		}
	}
	return out, nil
}

// runSubset runs a job on a random subset of the minions, three by default.
func (s *Server) runSubset(ctx context.Context, v scope.View, j master.Job, c map[string]any) (any,
	error) {
	n := 3
	for _, key := range []string{"sub", "subset"} {
		if v, ok := c[key]; ok {
			d, err := lowstate.Seconds(v)
			if err != nil {
				return nil, exchange.NewError(http.StatusBadRequest, key+" must be a number")
			}
			n = int(d / time.Second)
		}
	}
	ids, err := v.Match(ctx, j.TgtType, j.Tgt)
	if err != nil {
		return nil, lowstate.Refused(err)
	}
	rand.Shuffle(len(ids), func(i, k int) { ids[i], ids[k] = ids[k], ids[i] })
	j.Tgt, j.TgtType = ids[:min(n, len(ids))], "list"
	if pytext.Truth(c["cli"]) {
		return s.publishJob(ctx, v, j)
	}
	return s.awaitJob(ctx, v, j, pytext.Truth(c["full_return"]))
}
