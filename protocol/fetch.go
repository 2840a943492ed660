package protocol

import (
	"maps"

	"github.com/brine-salt/brine/protocol/payload"
)

// FetchFun stands in the place of the function of a job that is only announced: its minions ask for it ([FetchCmd]), each under its own
// session key. So what others can read on the publish channel is who has something to do, and not what. Only masters of ours send it, and
// only to minions that said that they fetch.
const (
	FetchFun = "brine.fetch"
	FetchCmd = "_brine_job"
)

// Announce makes the job map that is published in place of job. tgt, when not nil, are the minions in place of its own target.
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

// Announced tells whether a job is one that must be fetched.
func (j Job) Announced() bool { return !j.Compound && len(j.Fun) == 1 && j.Fun[0] == FetchFun }

// Fetched makes the job map that a minion gets for a job as a master stores it: the published fields, and those that Salt's command line
// keeps apart under kwargs. What only concerns who asked is left out.
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

// PublishedKwargs copies what travels to the minions out of the kwargs of a publish request (salt/master.py: ClearFuncs._prep_pub).
func PublishedKwargs(job map[string]any, kwargs any) {
	m, _ := payload.Map(kwargs)
	for _, k := range [...]string{"ret_config", "metadata", "module_executors", "executor_opts", "ret_kwargs", "id", "master_id"} {
		if v, ok := m[k]; ok {
			job[k] = v
		}
	}
}
