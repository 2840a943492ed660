package minion

import (
	"context"
	"strings"
	"unicode/utf8"

	"github.com/brine-salt/brine/internal/modkit/owncode"
	"github.com/brine-salt/brine/internal/python/pytext"
	"github.com/brine-salt/brine/internal/sorting"
	"github.com/brine-salt/brine/modules"
	"github.com/brine-salt/brine/protocol"
)

// Limits of the event for a failed start: states, and bytes of each text.
const (
	maxFailedStates  = 20
	maxFailedComment = 512
)

// startupStates implements option startup_states (salt/minion.py: _state_run). A failure is logged as an error
// and fires the event salt/startup/failed/<id>. Stock has no such event: there the failure is only one return
// among others.
func (l *link) startupStates(ctx context.Context) {
	set := l.m.settings()
	fun, arg := "state.highstate", []any{}
	switch set.optional("startup_states") {
	case "":
		return
	case "sls":
		fun, arg = "state.sls", []any{set.options["sls_list"]}
	case "top":
		fun, arg = "state.top", []any{set.options["top_file"]}
	}
	e := l.m.jobEnvironment(ctx, l, nil)
	jid := string(l.m.jids.Next(l.m.now()))
	res := l.m.o.Registry.Run(ctx, e, modules.Request{Fun: fun, JID: jid, Args: arg})
	l.m.returnInternal(ctx, l, fun, arg, res)
	if res.Err == nil && res.Retcode == 0 || ctx.Err() != nil {
		return
	}
	failure := startupFailure(fun, jid, res)
	l.log.Error("The startup states failed", "fun", fun, "retcode", res.Retcode, "err",
		failure["comment"])
	if err := (masterDoor{l}).Fire(ctx, protocol.Tagify("startup", "failed", set.id),
		failure); err != nil && ctx.Err() == nil {
		l.log.Warn("Cannot tell the master that the startup states failed", "err", err)
	}
}

// tellShipped logs which code the master distributes that this minion does not run, so that its absence is
// noticed.
func (l *link) tellShipped(ctx context.Context) {
	files := l.files()
	if files == nil {
		return
	}
	e := l.m.jobEnvironment(ctx, l, nil)
	var kinds []string
	for _, k := range owncode.Kinds() {
		kinds = append(kinds, k.Name)
	}
	list, err := owncode.List(ctx, e, files, l.m.settings().textOr("saltenv", "base"), kinds)
	if err != nil {
		if ctx.Err() == nil {
			l.log.Debug("Cannot ask the master for the code that it distributes", "err", err)
		}
		return
	}
	if len(list) > 0 {
		l.log.Warn(owncode.Notice(list))
	}
}

// startupFailure describes a failed run: its first failed states, or the text of its error.
func startupFailure(fun, jid string, res modules.Result) map[string]any {
	out := map[string]any{"fun": fun, "jid": jid, "retcode": int64(res.Retcode)}
	states, _ := res.Return.(map[string]any)
	var names []string
	for name, v := range states {
		if s, ok := v.(map[string]any); ok && s["result"] == false {
			names = append(names, name)
		}
	}
	if len(names) == 0 {
		text := ""
		if res.Err != nil {
			text = res.Err.Error()
		}
		switch v := res.Return.(type) {
		case string:
			text = v
		case []any:
			parts := make([]string, len(v))
			for i := range v {
				parts[i] = pytext.Str(v[i])
			}
			text = strings.Join(parts, "\n")
		}
		out["comment"] = shorten(text)
		return out
	}
	sorting.Stable(names, func(a, b string) int { return orderOf(states[a]) - orderOf(states[b]) })
	failed := make([]any, 0, min(len(names), maxFailedStates))
	for _, name := range names[:min(len(names), maxFailedStates)] {
		s := states[name].(map[string]any)
		failed = append(failed,
			map[string]any{"state": shorten(name), "comment": shorten(pytext.Str(s["comment"]))})
	}
	out["states"], out["failed"] = failed, int64(len(names))
	out["comment"] = failed[0].(map[string]any)["comment"]
	return out
}

// orderOf returns a state's position in the run.
func orderOf(v any) int {
	s, _ := v.(map[string]any)
	n, _ := s["__run_num__"].(int64)
	return int(n)
}

// shorten cuts a text to maxFailedComment bytes.
func shorten(s string) string {
	s = strings.ToValidUTF8(s, "�")
	if len(s) <= maxFailedComment {
		return s
	}
	n := maxFailedComment
	for !utf8.RuneStart(s[n]) {
		n--
	}
	return s[:n] + "…"
}
