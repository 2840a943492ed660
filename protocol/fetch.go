package protocol

import (
	"maps"

	"github.com/brine-salt/brine/protocol/payload"
)

// FetchFun is the function of a job that is only announced. Each minion that the announcement
// targets then requests the job itself with [FetchCmd], sealed with its own session key. Every
// minion can read the publish channel; an announcement shows it which minions have a job, but not
// the job. Only brine masters announce, and only to minions that support it.
const (
	FetchFun = "brine.fetch"
	FetchCmd = "_brine_job"
)

// Announce returns the job map that is published in place of job. A tgt that is not nil is the list of minions to
// announce to, in place of the job's target.
func Announce(job map[string]any, tgt []any) map[string]any {
	out := map[string]any{"jid": job["jid"], "tgt": job["tgt"], "tgt_type": job["tgt_type"], "fun": FetchFun, "arg": []any{}, "ret": ""}
	if d, ok := job["delimiter"]; ok {
		out["delimiter"] = d
	}
	if tgt != nil {
		out["tgt"], out["tgt_type"] = tgt, "list"
		delete(out, "delimiter")
	}
	return out
}

// Announced reports whether the job must be fetched.
func (j Job) Announced() bool { return !j.Compound && len(j.Fun) == 1 && j.Fun[0] == FetchFun }

// Fetched returns the job map that a minion gets for a job as a master stores it: the published fields, and those
// that Salt's command line passes in kwargs. Fields that concern only the user who published it, such as the
// password, are removed.
func Fetched(jid string, fun any, arg []any, load map[string]any) map[string]any {
	out := maps.Clone(load)
	if out == nil {
		out = make(map[string]any)
	}
	PublishedKwargs(out, load["kwargs"])
	for _, k := range [...]string{"cmd", "kwargs", "key", "token", "eauth", "username", "password", "nocache", "serial"} {
		delete(out, k)
	}
	if arg == nil {
		arg = []any{}
	}
	out["jid"], out["fun"], out["arg"] = jid, fun, arg
	return out
}

// PublishedKwargs copies the kwargs of a publish request that minions need into the job (salt/master.py:
// ClearFuncs._prep_pub).
func PublishedKwargs(job map[string]any, kwargs any) {
	m, _ := payload.Map(kwargs)
	for _, k := range [...]string{"ret_config", "metadata", "module_executors", "executor_opts", "ret_kwargs", "id", "master_id"} {
		if v, ok := m[k]; ok {
			job[k] = v
		}
	}
}
