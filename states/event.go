package states

import (
	"context"

	"github.com/brine-salt/brine/internal/python/pytext"
	"github.com/brine-salt/brine/modules/pyobj"
	"github.com/brine-salt/brine/protocol"
)

// fireEvent sends the master the event of a state that ran, if the options (state_events) or the state (fire_event)
// ask for it (State.event). Sending is best effort: a state must not fail because its event was lost.
func (r *Run) fireEvent(ctx context.Context, rec record, total int, low *Low) {
	fire := low.d.Value("fire_event")
	progress, set := r.opts["state_events"]
	if !set {
		progress = true
	}
	onMaster := r.env.Master == nil && r.opts["__role"] == "master" && r.env.Agent != nil
	if r.env.Master == nil && !onMaster || pytext.Truth(r.opts["local"]) || !pytext.Truth(progress) && !pyobj.Truth(fire) {
		return
	}
	shown := record{}
	for k, v := range rec {
		if k != "sub_state_run" && k != "proc" {
			shown[k] = v
		}
	}
	data := map[string]any{"ret": map[string]any(shown)}
	id := pytext.Str(r.opts["id"])
	jid, preload := r.jid, any(r.jid)
	if jid == "" { // state.sls_id in a salt-call has no job; stock's tag then has Python's None
		jid, preload = "None", nil
	}
	var tag string
	switch f := fire.(type) {
	case bool:
		if f {
			tag = protocol.Tagify("state_result", jid, id, pytext.Str(rec["name"]))
			break
		}
		tag = progressTag(jid, id, rec, data, total, low)
	case string:
		tag = protocol.Tagify("state_result", jid, id, f)
	default:
		tag = progressTag(jid, id, rec, data, total, low)
	}
	if onMaster {
		r.env.Agent.FireLocal(tag, data)
		return
	}
	if r.hasExec("event.fire_master") {
		if _, err := r.callExec(ctx, "event.fire_master", []any{data, tag}, map[string]any{"preload": map[string]any{"jid": preload}}); err != nil {
			r.env.Logger().Warn("Cannot send the event of a state", "jid", r.jid, "err", err)
		}
		return
	}
	if err := r.env.Master.Fire(ctx, tag, data); err != nil {
		r.env.Logger().Warn("Cannot send the event of a state", "jid", r.jid, "err", err)
	}
}

// progressTag returns the tag of a progress event. It adds to data the run's number of chunks and the chunk's
// function; stock's event lacks the function.
func progressTag(jid, id string, rec record, data map[string]any, total int, low *Low) string {
	data["len"], data["fun"] = int64(total), low.state+"."+low.fun
	return protocol.Tagify("job", jid, "prog", id, pytext.Str(rec["__run_num__"]))
}
